"""`digmon run`: what is run, and what is said if it cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dig.graph.records import HealRow
from dig.traces.journal.reader import read_records

OWN = """
from dig.runtime import Decision

async def echo(view):
    return Decision.submit(view, view.events[0].payload)

async def sleeps(view):
    import asyncio
    await asyncio.sleep(1)

TASK = ({"ada": echo}, "hello")
SLOW = ({"ada": sleeps}, "hello")
TEAM = {"ada": echo, "bob": echo}

async def starts(view):
    import asyncio
    await asyncio.sleep(0)
    return Decision.submit(view, view.events[0].payload)

SLEEPERS = {"ada": starts}

def calm(run, plain):
    from dataclasses import replace
    return replace(plain, setup=replace(plain.setup, limit_s=3.0))
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are made in a folder that has a module of a user's own."""
    (tmp_path / "my_own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DIG_NEWSGROUPS", raising=False)


def test_newsgroups_are_counted_without_any_data_at_hand(call: Any) -> None:
    code, out, err = call("run", "newsgroups", "--virtual", "--json", "--agents", 3)
    told = json.loads(out)
    assert (code, err, told["agents_are"]) == (0, "", "simulated")
    assert told["measures"]["valid"] and "our own" in told["data_are"]


@pytest.mark.parametrize("clock", [[], ["--virtual"]])
def test_a_users_own_team_and_problem_run_on_both_clocks(call: Any, clock: list[str]) -> None:
    code, out, err = call("run", "my_own:TASK", "--json", *clock)
    assert (code, err, json.loads(out)["answer"]) == (0, "", "hello")


def test_a_run_of_async_functions_in_virtual_time_forks_in_virtual_time(call: Any) -> None:
    """With the run's task named again the fork has its tools and its team, and comes out alike."""
    _, out, _ = call("run", "my_own:TASK", "--json", "--virtual")
    parent = Path(json.loads(out)["directory"])
    code, out, err = call("fork", parent, "--at", 3, "--task", "my_own:TASK", "--json")
    told = json.loads(out)
    assert (code, err, told["clock"]) == (0, "", "virtual")
    trace = "trace.dig.jsonl"
    assert Path(told["directory"], trace).read_bytes() == (parent / trace).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--task", "my_own:SLOW"], "the run's task was 'my_own:TASK', not 'my_own:SLOW'"),
        ([], "--task my_own:TASK --team MODULE:TEAM"),
        (["--team", "my_own:SLEEPERS"], "with fork, --real-time"),
    ],
)
def test_what_a_fork_of_a_users_team_lacks_is_said(
    call: Any, arguments: list[str], said: str
) -> None:
    """In one line, and nothing is left of the fork."""
    _, out, _ = call("run", "my_own:TASK", "--json", "--virtual")
    code, _, err = call("fork", json.loads(out)["directory"], "--at", 3, *arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert said in err and len(list(Path("runs").iterdir())) == 1


def test_a_fork_of_a_run_in_virtual_time_may_go_on_in_real_time(call: Any) -> None:
    """`--real-time` is for a team that awaits something."""
    _, out, _ = call("run", "my_own:TASK", "--json", "--virtual")
    more = ("--at", 3, "--team", "my_own:SLEEPERS", "--real-time", "--json")
    _, out, _ = call("fork", json.loads(out)["directory"], *more)
    assert json.loads(out)["clock"] == "real time x 1"


def test_a_users_own_team_works_on_a_task_of_ours(call: Any) -> None:
    code, out, _ = call("run", "count-frequency", "--team", "my_own:TEAM", "--json")
    told = json.loads(out)
    assert (code, told["agents_are"], told["score"]["valid"]) == (0, "my_own:TEAM", False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cooking"], "known are: count-frequency, newsgroups"),
        (["newsgroups", "--data", "nowhere"], "nowhere: No such file or directory"),
        (["newsgroups", "--size", "201"], "try 2 to 200"),
        (["count-frequency", "--data", "."], "leave --data out"),
        (["my_own:SLOW", "--virtual"], "agent 'ada' awaits something real at my_own.py:9"),
        (["my_own:NOTHING"], "there is no task 'my_own:NOTHING'"),
        (["count-frequency", "--team", "my_own:TASK"], "has no team"),
        (["count-frequency", "--team", "my_own:TEAM", "--model", "m"], "leave one out"),
        (["count-frequency", "--speed", "0"], "--speed must be greater than 0"),
        (["count-frequency", "--habit", "eror=0"], "known are think_s, think_spread"),
        (["count-frequency", "--habit", "error=2"], "error must be from 0 to 1, got 2.0"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_sentence_and_leaves_nothing(
    call: Any, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    code, out, err = call("run", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert not list(Path().glob("runs/*"))


def test_a_habit_of_the_simulated_agents_is_chosen(call: Any) -> None:
    """Agents that count without mistakes have the true counts if no work is lost."""
    options = ("--seed", 606, "--habit", "error=0")
    _, out, _ = call("run", "count-frequency", "--virtual", "--json", *options)
    assert json.loads(out)["score"]["rmse"] == 0


def test_a_policy_is_read_from_the_file_and_from_the_project(call: Any) -> None:
    """What it silences is in the trace with the reason; `thresholds` shows what holds."""
    Path("dig.toml").write_text('[policy]\nany = {action = "off", reason = "for fun"}')
    Path("pyproject.toml").write_text('[tool.digmon.policy]\nany = "off"')
    for config, reason in ((["--config", "dig.toml"], "for fun"), ([], "policy: every pattern = ")):
        many = ("--virtual", "--json", "--agents", 4, "--to", "all", "--size", 100)
        code, out, err = call("run", "count-frequency", *many, *config)
        assert (code, err) == (0, "")
        trace = Path(json.loads(out)["directory"], "trace.dig.jsonl").read_text()
        rows = [json.loads(line) for line in trace.splitlines()]
        silenced = [row["silenced"] for row in rows if row["kind"] == "finding"]
        assert silenced and all(why.startswith(reason) for why in silenced)
        assert not [row for row in rows if row["kind"] == "heal"]
        assert '"action": "off"' in call("thresholds", *config)[1]


def test_a_wrong_policy_is_refused_before_the_run(call: Any) -> None:
    """With its place, and what was meant."""
    Path("dig.toml").write_text('[policy]\nRPS = "off"')
    code, out, err = call("run", "count-frequency", "--virtual", "--config", "dig.toml")
    assert (code, out) == (2, "")
    assert "dig.toml, [policy], RPS: there is no pattern 'RPS'; did you mean RSP?" in err


def test_a_run_heals_by_severity_and_an_experiment_heals_all(call: Any) -> None:
    """The first line of the trace and the side file say so."""
    code, out, _ = call("run", "count-frequency", "--virtual", "--json", "--size", 100)
    assert code == 0
    folder = Path(json.loads(out)["directory"])
    header = json.loads((folder / "trace.dig.jsonl").read_text().splitlines()[0])["journal"]
    assert header["policy"] == {"heal": "severity"}
    assert call("replay", folder, "--rerun")[0] == 0


def test_a_run_says_what_became_of_its_alerts(call: Any, tmp_path: Path) -> None:
    """At its end, for each destination, without its address or its arguments."""
    (tmp_path / "dig.toml").write_text("[alerts]\nto = ['command:true hush']\n")
    settings = ["--virtual", "--agents", 6, "--size", 10_000, "--seed", 668, "--config", "dig.toml"]
    code, out, _ = call("run", "count-frequency", *settings)
    (line,) = [line for line in out.splitlines() if line.startswith("alerts")]
    assert code == 0 and line.split(maxsplit=1)[1] == "command true: 2 sent"
    side = "".join(file.read_text() for file in (tmp_path / "runs").rglob("*.json*"))
    assert "hush" not in side


def test_a_simulated_run_does_not_load_the_client_of_models(tmp_path: Path) -> None:
    """It takes longer than the run; only a run that names a model needs it."""
    code = (
        "import sys; from dig.cli import main\n"
        "sys.argv = ['digmon', 'run', 'count-frequency', '--virtual', '--size', '100']\n"
        "try: main()\nfinally: print('openai' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.endswith("False\n"), ran.stdout + ran.stderr


STUCK = ("count-frequency", "--seed", 668, "--method", "dig", "--habit", "error=0", "--virtual")


def test_a_run_with_a_twin_ends_with_the_difference(call: Any) -> None:
    """Five rows: without the monitor, with it, what it did, the report, and what to do next."""
    code, out, err = call("run", *STUCK, "--twin")
    rows = [line for line in out.splitlines() if not line.startswith(" ")]
    assert (code, err) == (0, "")
    heads = ["without the monitor", "with it", "what it did", "report", "your own team"]
    assert [next(h for h in heads if row.startswith(h)) for row in rows] == heads
    said = " ".join(out.split())
    assert "without the monitor Got stuck after" in said
    assert "with it Right answer after" in said
    assert len(list(Path("runs").iterdir())) == 2


def test_a_twin_is_the_same_run_unwatched(call: Any) -> None:
    """As `--method mas` gives it; the two are the same up to the monitor's first act."""
    settings = [setting for setting in STUCK if setting != "--virtual"]
    _, out, _ = call("run", *settings, "--speed", 1000, "--quiet", "--twin", "--json")
    run = json.loads(out)
    twin = run["twin"]
    healed, unwatched = (
        [replace(record, us=0) for record in read_records(Path(each["directory"]))]
        for each in (run, twin)
    )
    pairs = zip(healed[1:], unwatched[1:], strict=False)
    difference = next(i for i, (record, other) in enumerate(pairs, 1) if record != other)
    assert isinstance(healed[difference], HealRow)
    _, alone, _ = call("run", *STUCK, "--method", "mas", "--json")
    assert twin["clock"] == "virtual"
    assert twin["findings"] == json.loads(alone)["findings"] != []


def test_a_method_of_a_users_own_arranges_the_run(call: Any) -> None:
    """As in an experiment; `--resume` imports it only if it is named once more."""
    settings = ("count-frequency", "--method", "my_own:calm", "--seed", 1, "--virtual")
    code, out, _ = call("run", *settings, "--json")
    run = json.loads(out)
    assert (code, run["outcome"]) == (1, "timeout")
    trace = Path(run["directory"], "trace.dig.jsonl")
    trace.write_text("".join(trace.read_text().splitlines(keepends=True)[:40]))
    code, _, err = call("run", "--resume", trace.parent)
    assert code == 2 and "parts of the user's, to be named here too: my_own:calm" in err


def test_a_language_model_has_no_twin(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would answer anew; nothing is left of the run."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    code, out, err = call("run", "count-frequency", "--model", "m", "--twin")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "leave --twin out" in err and not Path("runs").exists()
