"""Experiments: a grid is carried out once, whatever comes between, and gives the same tables."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from dig.cli import main
from dig.detectors import patterns
from dig.detectors.interventions import MEANS
from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.lab.experiment import row_measures as measures
from dig.lab.experiment import run as experiment_runs
from dig.lab.experiment.ablation import ARMS, ablate
from dig.lab.experiment.experiment_report import HEADLINE, all_tables, write_report
from dig.lab.experiment.file import read_grid
from dig.lab.experiment.grid import WINDOWS, Grid, TaskGrid, on_windows, paper_tasks
from dig.lab.experiment.markdown_table import SIMULATED_AGENTS, Table, harmless
from dig.lab.experiment.paper_figures import FIGURES, PAPER_PATTERNS
from dig.lab.experiment.results import Row, append_rows, read_rows
from dig.lab.experiment.run import RESULTS, ExecutionOptions, carry_out, carry_out_cells
from dig.lab.experiment.samples import Samples
from dig.lab.experiment.trace_set import make_set
from dig.lab.judge.judge import Verdict
from dig.lab.judge.model_judge import INSTRUCTIONS
from dig.tasks.frequency import FrequencyTask
from dig.tasks.run.judging import Judging
from dig.tasks.run.methods import METHODS
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile
from dig.tasks.task import Score
from dig.traces.usage import tokens
from dig.traces.verify import verify
from tests.llm.server import Answer, fails, says, serving
from tests.llm.solver import solve

SMALL = Grid(
    tasks=(TaskGrid(task="count-frequency", sizes=(1000, 5000)),),
    agents=(1, 3),
    seeds=(1, 2),
)
NAMES = [cell.run.name for cell in SMALL.cells()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of an experiment that was carried out; `done` is a copy to change."""
    folder = tmp_path_factory.mktemp("finished")
    carry_out(SMALL, folder)
    return folder


@pytest.fixture
def done(finished: Path, tmp_path: Path) -> Path:
    """The directory of SMALL, carried out."""
    return copytree(finished, tmp_path / "done")


def tables_of(grid: Grid, rows: Sequence[Row]) -> dict[str, Table]:
    """All tables, by name."""
    return {table.name: table for table in all_tables(grid, Samples(rows))[0]}


WITHOUT_CHARTS = """
import sys
from dig.cli import main

sys.modules["matplotlib"] = None  # as if it were not installed
main()
"""


def digmon(
    *args: object, seed: str = "0", cwd: Path | None = None, charts: bool = False
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own; charts take three times as long as all the rest."""
    program = ["-m", "dig"] if charts else ["-c", WITHOUT_CHARTS]
    command = [sys.executable, *program, "experiment", *map(str, args)]
    env = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd, timeout=100)


OWN = """
agents = [3]
seeds = 2
methods = ["mas", "dig"]
[[tasks]]
task = "count-frequency"
sizes = [1000, 2000]
[thresholds]
dl_window_s = 7.0
[profile]
wait = 0.1
"""


# --- the same seeds, the same tables ---


@pytest.mark.nightly
def test_tables_are_the_same_in_any_process_and_with_any_number_of_them(tmp_path: Path) -> None:
    """Byte for byte: results, tables and charts."""
    grid = tmp_path / "own.toml"
    grid.write_text(OWN)
    for jobs, seed in ((1, "1"), (2, "2")):
        done = digmon(grid, "--out", tmp_path / f"{jobs}", "--jobs", jobs, seed=seed, charts=True)
        assert done.returncode == 0, done.stderr
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / n).iterdir()} for n in "12")
    assert one == two
    assert {RESULTS, "tables.md", "table-2.csv", "effects.csv", "patterns-3.svg"} <= one.keys()


def test_every_table_says_what_was_fixed_and_that_agents_were_simulated(done: Path) -> None:
    outcome = carry_out(SMALL, done)
    for table in tables_of(SMALL, outcome.rows).values():
        text = table.markdown()
        assert SIMULATED_AGENTS in table.title
        assert "mc_window_s: 10.0" in text and "limit_s: 120" in text and "one agent" in text
        assert "random numbers" in text
        assert "mc_window_s: 10.0" in table.csv()


# --- what is there is not run again ---


def test_what_was_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = carry_out(SMALL, tmp_path)
    monkeypatch.setattr(experiment_runs, "measure", _must_not_be_called)
    assert carry_out(SMALL, tmp_path) == first


def _must_not_be_called(*args: object) -> Any:
    raise AssertionError("a run was made again")


@pytest.mark.parametrize("cut", [0, 1, 7, 200])
def test_a_torn_last_line_is_run_again(done: Path, cut: int) -> None:
    """However much of it is missing, and the file is then as if nothing had happened."""
    whole = carry_out(SMALL, done)
    results = done / RESULTS
    before = results.read_bytes()
    lines = before.splitlines(keepends=True)
    results.write_bytes(b"".join(lines[:-1]) + lines[-1][:cut])
    assert carry_out(SMALL, done) == whole
    assert results.read_bytes() == before


def test_an_interrupted_experiment_keeps_what_it_has_and_goes_on(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done >= total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(SMALL, tmp_path, progress=interrupt)
    kept = read_rows(tmp_path / RESULTS)
    assert 0 < len(kept) < len(NAMES)
    assert [row.run for row in carry_out(SMALL, tmp_path).rows] == NAMES


def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    """The whole group of processes is interrupted, as a terminal does it."""
    (tmp_path / "long.toml").write_text(OWN.replace("seeds = 2", "seeds = 900"))
    command = [sys.executable, "-m", "dig", "experiment", "long.toml", "--out", "out"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    running = subprocess.Popen(
        [*command, "--jobs", "2"], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    signal.signal(signal.SIGINT, before)
    results = tmp_path / "out" / RESULTS
    while not (results.exists() and results.stat().st_size):
        assert running.poll() is None
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "the same command goes on from there" in told and "Traceback" not in told
    assert 0 < len(read_rows(results)) < 3600


def test_another_setting_is_another_run(done: Path) -> None:
    other = replace(SMALL, thresholds=WINDOWS.model_copy(update={"dl_window_s": 3.0}))
    assert len(carry_out(other, done).rows) == len(NAMES)
    assert len(read_rows(done / RESULTS)) == 2 * len(NAMES)


def test_a_damaged_line_is_named(done: Path) -> None:
    results = done / RESULTS
    lines = results.read_text().splitlines(keepends=True)
    results.write_text("".join([*lines[:4], "{}\n", *lines[5:]]))
    with pytest.raises(SettingsError, match=r"results\.jsonl, line 5 is no result"):
        carry_out(SMALL, done)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("agents", "x"),
        ("agents", True),
        ("agents", 3.0),
        ("agents", 10**400),
        ("calls", -1),
        ("rmse", "1"),
        ("seconds", None),
        ("valid", 1),
        ("findings", []),
        ("findings", {"ET": "many"}),
        ("usage", {"tokens": {}}),
        ("level", 3),
    ],
)
def test_a_row_of_wrong_kinds_is_named(done: Path, key: str, value: object) -> None:
    """By file, line and key, before a table is made of it."""
    results = done / RESULTS
    first, *others = results.read_text().splitlines(keepends=True)
    changed = json.dumps({**json.loads(first), key: value})
    results.write_text("".join([*others, f"{changed}\n"]))
    with pytest.raises(SettingsError, match=rf"line {len(NAMES)} is no result of a run \({key}"):
        carry_out(SMALL, done)


def test_a_score_that_is_no_number_is_a_run_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a task of one's own, say; nobody could read its row again."""
    monkeypatch.setattr(FrequencyTask, "score", lambda *_: Score(True, float("nan")))
    outcome = carry_out(SMALL, tmp_path)
    assert (outcome.rows, len(outcome.failed)) == ((), len(NAMES))
    assert "is nan, which is no number" in outcome.failed[0].why
    assert read_rows(tmp_path / RESULTS) == []


def test_one_run_that_fails_does_not_end_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = experiment_runs._measure_cell

    def fails(cell: Any, *rest: Any) -> Any:
        if cell.run.name == NAMES[3]:
            raise RuntimeError("no luck")
        return real(cell, *rest)

    monkeypatch.setattr(experiment_runs, "_measure_cell", fails)
    outcome = carry_out(SMALL, tmp_path)
    assert [(one.run, one.why) for one in outcome.failed] == [(NAMES[3], "RuntimeError('no luck')")]
    assert len(outcome.rows) == len(NAMES) - 1


def test_traces_are_kept_if_asked_for(tmp_path: Path) -> None:
    few = replace(SMALL, seeds=(1,), agents=(3,))
    kept = carry_out(few, tmp_path / "kept", keep=True)
    assert kept == carry_out(few, tmp_path / "not")
    traces = list((tmp_path / "kept" / "traces").glob("*/trace.dig.jsonl"))
    assert len(traces) == len(kept.rows)
    assert not any(verify(trace).problems for trace in traces)
    assert not (tmp_path / "not" / "traces").exists()


# --- a grid of one's own ---


def test_a_file_says_what_is_run(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    grid = read_grid(path)
    assert (grid.agents, grid.seeds, grid.methods) == ((3,), (1, 2), ("mas", "dig"))
    assert grid.thresholds == WINDOWS.model_copy(update={"dl_window_s": 7.0})
    assert grid.profile == Profile(wait=0.1)
    assert "wait 0.1" in grid.settings()["habits"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("agents = [1", "is not TOML"),
        ("agents = [3]", "names no tasks"),
        ("agent = 3", "no 'agent'; did you mean agents?"),
        ("[[tasks]]\ntask = 'count-frequency'", "`task`, a name, and `sizes`"),
        ("[[tasks]]\ntask = 'x'\nsizes = [5]\nsize = 3", "no 'size'"),
        ("agents = 3\n[[tasks]]\ntask = 'x'\nsizes = [5]", "`agents` is a list of whole numbers"),
        ("seeds = 99999999999\n[[tasks]]\ntask = 'x'\nsizes = [5]", "`seeds` is 99999999999"),
        ("speed = inf\n[[tasks]]\ntask = 'x'\nsizes = [5]", "`speed` is inf"),
        ("[[tasks]]\ntask = 'x'\nsizes = [5]\noptions = 3", "`options` is a table"),
        ("seeds = 0\n[[tasks]]\ntask = 'x'\nsizes = [5]", "`seeds` is 0"),
        ("agents = [3, 3]\n[[tasks]]\ntask = 'x'\nsizes = [5]", "one of its agents twice"),
        (
            "[[tasks]]\ntask = 'x'\nsizes = [5]\n[judge]\nrecall = 3",
            "recall must be from 0 to 1, got 3",
        ),
        ("[[tasks]]\ntask = 'x'\nsizes = [5]\n[profile]\nlazy = 3", "no 'lazy'"),
        ("[[tasks]]\ntask = 'x'\nsizes = [5]\n[thresholds]\nmc_window_s = -1", "mc_window_s"),
        ("to = 'me'\n[[tasks]]\ntask = 'x'\nsizes = [5]", "`to` is 'one' or 'all'"),
        ("limit_s = 'x'\n[[tasks]]\ntask = 'count-frequency'\nsizes = [5]", "`limit_s` is 'x'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=why) as caught:
        carry_out(read_grid(path), tmp_path / "out")
    assert "\n" not in str(caught.value)


def test_a_task_and_agents_of_ones_own(tmp_path: Path) -> None:
    """By `module:object`, from the directory in which it is run."""
    (tmp_path / "mine.py").write_text(
        "from dig.tasks.count_frequency import CountFrequency\n"
        "from dig.tasks.catalogue import kind\n"
        "from dig.tasks.simulated.profile import Profile\n"
        "def task(size, seed):\n"
        "    return CountFrequency(size, seed)\n"
        "def team(names, task, seed, wait=0.0):\n"
        "    make = kind('count-frequency').agent\n"
        "    return dict.fromkeys(names, make(seed, Profile(wait=wait)))\n"
    )
    (tmp_path / "grid.toml").write_text(
        "agents = [2]\nseeds = 2\nmethods = ['mas', 'dig']\n"
        "[[tasks]]\ntask = 'mine:task'\nsizes = [1000]\nagents_are = 'mine:team'\n"
        "options = {wait = 0.1}\n"
    )
    done = digmon("grid.toml", "--out", "out", "--jobs", "2", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"] == 4
    assert "agents: mine:team" in (tmp_path / "out" / "tables.md").read_text()
    assert SIMULATED_AGENTS not in (tmp_path / "out" / "tables.md").read_text()


SUMMING = """
seeds = 2
methods = ["mas", "dig"]

[[tasks]]
task = "own_task:Summing"
sizes = [40, 100]
"""


@pytest.fixture
def own_task(tmp_path: Path) -> Path:
    """A directory with the example of a task, and a grid of it."""
    examples = Path(__file__).parents[3] / "examples"
    (tmp_path / "own_task.py").write_text((examples / "own_task.py").read_text())
    (tmp_path / "own.toml").write_text(SUMMING)
    return tmp_path


@pytest.mark.parametrize("speed", ["", "speed = 100\n"])
def test_the_example_of_a_task_runs_in_an_experiment(own_task: Path, speed: str) -> None:
    """In virtual and in real time; its team has two members, however large teams are to be."""
    (own_task / "own.toml").write_text(speed + SUMMING)
    done = digmon("own.toml", "--out", "out", "--jobs", "1", "--json", cwd=own_task)
    assert (done.returncode, json.loads(done.stdout)["runs"]) == (0, 8), done.stderr
    rows = read_rows(own_task / "out" / RESULTS)
    assert {(row.agents, row.valid, row.rmse) for row in rows} == {(2, True, 0.0)}
    assert not [*(own_task / "out").glob("*.svg")], "there is no matplotlib"


def test_async_functions_give_the_same_bytes_again(own_task: Path) -> None:
    """The traces of two experiments, with one process and with two."""
    for jobs in ("1", "2"):
        done = digmon("own.toml", "--out", jobs, "--jobs", jobs, "--keep", cwd=own_task)
        assert done.returncode == 0, done.stderr
    traces = [
        sorted(path.read_bytes() for path in (own_task / jobs).glob("traces/*/trace.dig.jsonl"))
        for jobs in ("1", "2")
    ]
    assert len(traces[0]) == 8 and traces[0] == traces[1]


COUNTING = """
from dig.runtime import Decision

class Counts:
    def __init__(self):
        self.runs = 0

    async def act(self, view):
        self.runs += 1
        return Decision.submit(view, self.runs)

class Task:
    name, size, data = "counting", 1, "nothing"

    def __init__(self):
        self.team = {"ada": Counts()}

    def problem(self, *to):
        from dig.monitor.messages import Output
        return Output("?", to, "problem")

    def tools(self):
        return {}

    def score(self, answer):
        from dig.tasks.task import Score
        return Score(True, answer)
"""


def test_a_task_brings_new_agents_to_each_run(tmp_path: Path) -> None:
    """So that an agent with a state of its own begins each run of an experiment alike."""
    (tmp_path / "counting.py").write_text(COUNTING)
    (tmp_path / "own.toml").write_text("seeds = 3\n[[tasks]]\ntask = 'counting:Task'\nsizes = [1]")
    done = digmon("own.toml", "--out", "out", "--jobs", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {row.rmse for row in read_rows(tmp_path / "out" / RESULTS)} == {1.0}


WAITING = """
import asyncio

async def ada(view):
    await asyncio.sleep(1)

team = {"ada": ada}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_agents_that_wait_end_an_experiment_in_virtual_time_at_once(
    tmp_path: Path, jobs: str
) -> None:
    """With one error, which names the agent, the line and the cure."""
    (tmp_path / "waiting.py").write_text(WAITING)
    task = "task = 'count-frequency'\nsizes = [100]\nagents_are = 'waiting:team'"
    (tmp_path / "own.toml").write_text(f"seeds = 9\n[[tasks]]\n{task}")
    done = digmon("own.toml", "--out", "out", "--jobs", jobs, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("digmon:")) == (2, 1)
    assert "agent 'ada' awaits something real at waiting.py:5" in done.stderr
    assert "in an experiment's file give `speed`" in done.stderr


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["papr"], "no experiment 'papr'"),
        (["paper", "--tasks", "chess"], "there is no task 'chess'"),
        (["paper", "--tasks", "newsgroups", "--data", "nowhere"], "nowhere"),
        (["paper", "--judge", "recall=7"], "recall must be from 0 to 1, got 7"),
        (["gone.toml"], "gone.toml cannot be read"),
        (["paper", "--agents", "1,two"], "--agents two: a team's size is a number"),
        (["own.toml", "--agents", "3"], "leave --agents out"),
        (["own.toml", "--method", "dig"], "leave --methods out"),
        (["ablation", "--method", "dig"], "leave --methods out"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_said_in_one_line(
    tmp_path: Path,
    args: list[str],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["digmon", "experiment", *args, "--out", "out"])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert why in told and told.count("\n") == 1


METHODS_OF_ONES_OWN = """
from dataclasses import replace

def calm(run, plain):
    return replace(plain, setup=replace(plain.setup, limit_s=9.0))

def nothing(run, plain):
    return None

def broken(run, plain):
    raise KeyError("limit")
"""


def test_a_method_of_ones_own_stands_beside_ours(tmp_path: Path) -> None:
    """By module:object; of all that it arranges the runs of the others have nothing."""
    (tmp_path / "calming.py").write_text(METHODS_OF_ONES_OWN)
    (tmp_path / "my.toml").write_text(OWN.replace('"dig"', '"calming:calm"'))
    ended = digmon("my.toml", "--out", "own", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    rows = read_rows(tmp_path / "own" / RESULTS)
    assert {row.method for row in rows} == {"mas", "calming:calm"} and len(rows) == 8
    longest = {
        row.method: max(it.seconds for it in rows if it.method == row.method) for row in rows
    }
    assert longest["calming:calm"] <= 9 < longest["mas"]
    small = ("paper", "--tasks", "count-frequency", "--agents", 3, "--runs", 1)
    ended = digmon(*small, "--method", "mas,calming:calm", "--out", "paper", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert len(read_rows(tmp_path / "paper" / RESULTS)) == 6
    assert "calming:calm" in (tmp_path / "paper" / "tables.md").read_text()


@pytest.mark.parametrize(
    ("method", "why"),
    [
        ("calming:nothing", "'calming:nothing' returned None, which is no Arrangement"),
        ("calming:broken", "'calming:broken' raised KeyError('limit')"),
        ("calming:calmer", "there is no method 'calming:calmer': module 'calming' has no"),
        ("nowhere:calm", "there is no method 'nowhere:calm': No module named 'nowhere'"),
        ("calm", "a method of your own is named module:object"),
    ],
)
def test_what_is_wrong_with_a_method_is_said_before_anything_is_run(
    method: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Any
) -> None:
    (tmp_path / "calming.py").write_text(METHODS_OF_ONES_OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "calming", raising=False)
    code, out, err = call("experiment", "paper", "--method", f"mas,{method}", "--out", "out")
    sys.modules.pop("calming", None)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1 and why in err
    assert not (tmp_path / "out").exists()


def test_a_run_is_not_taken_up_with_a_method_that_only_its_file_names() -> None:
    """Nothing is imported because a side file says so."""
    run = TeamRun(method="calming:calm")
    with pytest.raises(SettingsError, match="to be named here too: calming:calm"):
        run.with_named(())
    assert run.with_named(("calming:calm",)) is run


def test_thresholds_that_are_set_replace_those_of_the_experiment() -> None:
    assert on_windows(Thresholds()) == WINDOWS
    given = Thresholds(oe_window_s=3.0)
    assert on_windows(given) == WINDOWS.model_copy(update={"oe_window_s": 3.0})


# --- with a language model ---


def asking(url: str, **options: Any) -> Grid:
    """A small grid in real time."""
    options = {"base_url": url, "retries": 0, **options}
    task = TaskGrid(task="count-frequency", sizes=(600,), agents_are="model m", options=options)
    return Grid(
        tasks=(task,), agents=(2,), seeds=(1,), speed=1.0, judging=Judging(every=2),
        methods=("mas", "judge", "dig"),
    )  # fmt: skip


def answers(request: dict[str, Any]) -> Answer:
    """A model that solves the problem, and has nothing to say as a judge."""
    if request["messages"][0]["content"] == INSTRUCTIONS:
        return says(Verdict())
    return solve(request)


def test_a_model_may_decide_and_judge(tmp_path: Path) -> None:
    """Each method has its row, with the tokens that it took; no table speaks of simulation."""
    with serving(answers) as server:
        grid = asking(server.url)
        outcome = carry_out(grid, tmp_path)
    assert [row.method for row in outcome.rows] == ["mas", "judge", "dig"], outcome.failed
    for row in outcome.rows:
        assert (row.valid, row.rmse, row.clock) == (True, 0.0, "real time x 1")
        assert row.usage["input_tokens"] == 100 * row.usage["model_calls"] > 0
        assert (row.judge_calls > 0) == (row.method == "judge")
    assert SIMULATED_AGENTS not in tables_of(grid, outcome.rows)["table-2"].markdown()
    assert "judge: the agents' model" in tables_of(grid, outcome.rows)["table-2"].markdown()


@pytest.mark.parametrize(
    ("script", "more", "why"),
    [
        ([fails(401, "no")], {}, "the key in"),
        (answers, {"max_tokens": 150}, "budget of 150 tokens"),
    ],
)
def test_what_would_go_wrong_each_time_is_tried_once(
    tmp_path: Path, script: Any, more: dict[str, Any], why: str
) -> None:
    """A wrong key, a budget that is used up: it says so, and the run counts as not made."""
    with serving(script) as server:
        outcome = carry_out(asking(server.url, **more), tmp_path)
    assert (outcome.rows, len(outcome.failed)) == ((), 1)
    assert why in outcome.failed[0].why
    assert read_rows(tmp_path / RESULTS) == []


def test_a_budget_is_for_the_whole_experiment_and_more_of_it_goes_on(tmp_path: Path) -> None:
    """Several runs share it; the run that it stops is no result, and those before it are kept."""
    with serving(answers) as server:
        grid = asking(server.url)
        first = carry_out(replace(grid, methods=("mas",)), tmp_path)
        spent = tokens(first.rows[0].usage)
        assert spent is not None
        scarce = carry_out(replace(grid, max_tokens=int(spent) + 150), tmp_path)
        assert scarce.rows == first.rows
        assert [failed.why.split(",")[0] for failed in scarce.failed] == [
            "the budget of the experiment is used up"
        ]
        asked = len(server.requests)
        none = carry_out(replace(grid, max_tokens=int(spent)), tmp_path)
        assert (none.rows, len(server.requests)) == (first.rows, asked)
        whole = carry_out(replace(grid, max_tokens=10**6), tmp_path)
    assert [row.method for row in whole.rows] == ["mas", "judge", "dig"]
    assert whole.rows[0] == first.rows[0]


def test_a_budget_is_kept_by_one_process(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="leave --jobs out"):
        carry_out(replace(SMALL, max_tokens=5), tmp_path, jobs=2)


# --- tables ---


def test_the_paper_has_a_row_for_each_of_its_settings() -> None:
    """Three methods, two tasks, three levels, three team sizes; and a figure of each table."""
    assert len(FIGURES) == 54
    one = FIGURES["count-frequency", "hard", 6, "judge"]
    assert (one.findings["ET"], one.total, one.rmse, one.seconds, one.valid) == (
        1.0, 2.0, 1070.67, 18.79, 1.0,
    )  # fmt: skip
    assert FIGURES["newsgroups", "easy", 6, "dig"].findings["RSP"] == 2.67
    assert FIGURES["count-frequency", "hard", 3, "dig"].valid == 0.6


def row(**changes: Any) -> Row:
    first = next(iter(SMALL.cells())).run
    usual: dict[str, Any] = {
        "run": first.name, "task": "count-frequency", "size": 1000, "level": "level 1",
        "agents": 1, "agents_are": "simulated", "data_are": "numbers", "method": "mas",
        "seed": 1, "clock": "virtual", "outcome": "submitted", "reason": "", "valid": True,
        "rmse": 3.0, "seconds": 10.0, "calls": 5,
    }  # fmt: skip
    return Row(**{**usual, **changes})


def test_findings_are_totalled_by_severity_and_those_of_the_paper_together() -> None:
    """Without the judge; in a row that does not say, each is worth what its pattern is."""
    found = {**dict.fromkeys(PAPER_PATTERNS, 1), "LOOP": 9, "judge:ET": 5}
    names = ("errors", "warnings", "notices", "findings")

    def totals(one: Row) -> list[str]:
        table = tables_of(SMALL, [one])["table-3"]
        return [str(table.rows[0][table.columns.index(name)]) for name in names]

    assert totals(row(findings=found)) == ["4.00", "11.00", "1.00", "7.00"]
    assert row(findings=found).judged == 5
    worth = {"error": 2, "notice": 12, "silenced": 2}
    assert totals(row(findings=found, worth=worth)) == ["2.00", "0.00", "12.00", "7.00"]


def test_a_pattern_that_the_paper_does_not_have_is_a_column_if_it_was_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that was never raised changes no table; the paper's sum stays the paper's."""
    monkeypatch.setattr(measures, "NAMES", ("ET", "TOY", *PAPER_PATTERNS[1:]))
    quiet = tables_of(SMALL, [row(findings={"ET": 1, "TOY": 0})])["table-3"]
    assert [name for name in quiet.columns if name in {"TOY", *PAPER_PATTERNS}] == [*PAPER_PATTERNS]
    assert "TOY" not in quiet.markdown()
    raised = tables_of(SMALL, [row(), row(seed=2, findings={"TOY": 3})])["table-3"]
    assert raised.columns[3:6] == ["ET", "TOY", "MC"]
    assert "findings: ET+MC+OE+DL+ER+CLA+RSP, as in the paper;" in raised.markdown()
    line = next(line for line in raised.rows if line[2] == "MAS only")
    assert str(line[4]).startswith("1.50")


def test_rmse_and_time_are_of_valid_answers_only() -> None:
    rows = [row(seed=1), row(seed=2, valid=False, rmse=None, seconds=99.0)]
    line = next(line for line in tables_of(SMALL, rows)["table-3"].rows if line[2] == "MAS only")
    cells = dict(zip(tables_of(SMALL, rows)["table-3"].columns, map(str, line), strict=True))
    assert cells["RMSE"] == "3.00"
    assert cells["seconds"] == "10.00"
    assert cells["valid"].startswith("0.50")


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd", "-x", "@SUM(A1)", "=HYPERLINK('x')", "\t=1", "\n@x"]
)
def test_nothing_in_a_table_is_a_formula(text: str) -> None:
    table = Table("t", "title", ["task"], [[text]], [text])
    cells = [cell for line in csv.reader(io.StringIO(table.csv())) for cell in line]
    assert not [cell for cell in cells if cell.lstrip()[:1] in "=+-@"]
    assert harmless("-3.5") == "-3.5", "a number stays one"


def test_names_do_not_break_a_table() -> None:
    lines = Table("t", "a|b", ["x"], [["<b>|\n\x1b[31m"]]).markdown().splitlines()
    assert len(lines) == 6
    assert lines[-1].count("|") - lines[-1].count("\\|") == 2
    assert "<b>" not in lines[-1] and "\x1b" not in lines[-1]


def test_charts_are_drawn_and_say_that_agents_were_simulated(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    small = replace(SMALL, seeds=(1, 2), agents=(1,))
    rows = carry_out(small, tmp_path).rows
    written, _ = write_report(small, rows, tmp_path)
    drawn = [path for path in written if path.suffix == ".svg"]
    assert {path.stem for path in drawn} == {
        "valid", "complete", "rmse", "seconds", "calls", "findings", "patterns-1",
    }  # fmt: skip
    assert all(SIMULATED_AGENTS in path.read_text() for path in drawn)


# --- ablations, and sets of traces ---


def test_an_ablation_compares_each_arm_on_the_same_seeds(tmp_path: Path) -> None:
    """The hardest size, the largest team; words are what blank notes lack, also of each pattern."""
    grid = replace(SMALL, seeds=(1, 2))
    outcome, tables, words = ablate(grid, tmp_path, jobs=1)
    assert not outcome.failed
    assert {row.size for row in outcome.rows} == {5000} and {r.agents for r in outcome.rows} == {3}
    pairs = {name: {(one[3], one[4]) for one in table.rows} for name, table in by_name(tables)}
    assert {
        ("dig", "mas"), ("dig", "dig, blank notes"), ("dig, blank notes", "mas"),
        ("dig, notes alone", "mas"), ("dig", "dig without new events"),
        ("dig", "dig without returning early answers"),
        ("dig", "dig without sending lost work elsewhere"),
    } <= pairs["contributions"]  # fmt: skip
    assert pairs["patterns"] == {
        pair
        for one in PAPER_PATTERNS
        for blank in [f"{one} alone, blank notes"]
        for pair in [(f"{one} alone", "mas"), (blank, "mas"), (f"{one} alone", blank)]
    }
    habits = {str(line[2]) for line in dict(by_name(tables))["habits"].rows}
    assert {"compliance 0", "compliance 1", "bad habits x 4"} <= habits
    assert all(SIMULATED_AGENTS in table.title for table in tables)
    assert "a quick look: 2 seeds tell little" in words[HEADLINE][0]


def test_arms_differ_in_nothing_but_what_is_taken_away() -> None:
    """A pattern's arm heals that pattern alone; a blank one has all means but notes."""
    arms = {arm.name: arm for arm in ARMS}
    assert set(arms["dig, blank notes"].means) == {"bounce", "redirect", "create"}
    blank, whole = arms["ET alone, blank notes"], arms["ET alone"]
    assert (blank.means, whole.means) == (arms["dig, blank notes"].means, MEANS)
    for arm in (blank, whole):
        rules = {rule.pattern: rule.action for rule in arm.policy.rules}
        assert rules == {"ET": "heal", None: "observe"}
    assert {"watchdog", "retry"} & METHODS.keys() <= arms.keys()


def by_name(tables: Sequence[Table]) -> list[tuple[str, Table]]:
    return [(table.name, table) for table in tables]


def test_a_set_of_traces_is_the_same_each_time(tmp_path: Path) -> None:
    """Byte for byte; with runs with and without findings, an index and a card."""
    made = [
        make_set(replace(SMALL, seeds=range_of(6), agents=(3,)), tmp_path / name) for name in "ab"
    ]
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / n).iterdir()} for n in "ab")
    assert made[0] == made[1] and one == two
    lines = list(csv.DictReader(io.StringIO(one["index.csv"].decode())))
    assert len(lines) == len(made[0].rows) == len(one) - 2
    failing = [any(int(line[p]) for p in patterns.NAMES) for line in lines]
    assert {True, False} == set(failing)
    assert SIMULATED_AGENTS in one["README.md"].decode()
    for line in lines:
        assert not verify(tmp_path / "a" / line["file"]).problems
    with pytest.raises(SettingsError, match="not empty"):
        make_set(SMALL, tmp_path / "a")


def range_of(count: int) -> tuple[int, ...]:
    return tuple(range(1, count + 1))


PAGE = Path(__file__).parents[3] / "docs" / "lab" / "experiments" / "tables.md"


@pytest.mark.nightly
@pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs beside it")
def test_the_docs_show_what_comes_out(tmp_path: Path) -> None:
    """The means of the easy CountFrequency with three agents, for all methods and seeds.

    Intervals take the range of values from all teams, so they are not compared.
    """
    grid = Grid(tasks=paper_tasks(["count-frequency"]), agents=(3,))
    cells = [cell for cell in grid.cells() if cell.level == "easy"]
    rows = carry_out_cells(cells, tmp_path, ExecutionOptions()).rows
    page = PAGE.read_text().partition("## Table 3")[2].partition("## ")[0]
    shown = lines_of(page)
    assert len(shown) == 2 * 3 * len(grid.methods), "two tasks, three team sizes"
    for line in lines_of(tables_of(grid, rows)["table-3"].markdown()):
        assert any(line.items() <= one.items() for one in shown), "make the tables anew"


def lines_of(markdown: str) -> list[dict[str, str]]:
    """The lines of a table by column, means without their intervals."""
    cells = [
        [re.sub(r" \[[^]]*\]", "", cell).strip() for cell in line.split("|")]
        for line in markdown.splitlines()
        if line.startswith("|")
    ]
    return [dict(zip(cells[0], line, strict=True)) for line in cells[2:]]


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = [row(), row(seed=2, rmse=None, findings={"ET": 2}, usage={"input_tokens": 3})]
    append_rows(tmp_path / "r", rows)
    assert read_rows(tmp_path / "r") == rows


def test_an_experiment_of_which_nothing_came_is_reported(tmp_path: Path) -> None:
    """Tables without rows, and no charts."""
    grid = Grid(name="g", tasks=(TaskGrid(task="count-frequency", sizes=(100,)),), seeds=(1,))
    written, words = write_report(grid, [], tmp_path)
    names = {path.name for path in written}
    assert not words
    assert "tables.md" in names
    assert not [name for name in names if name.endswith(".svg")]


@pytest.mark.parametrize("wrong", [{"agents": 10**9}, {"size": 10**22}])
def test_a_run_that_would_fill_the_memory_is_refused(wrong: dict[str, Any]) -> None:
    """A number in a file is quickly written."""
    with pytest.raises(SettingsError, match="agents must be at most 100,000"):
        TeamRun(**wrong)
