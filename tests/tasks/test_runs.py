"""One run, put together."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import correlation
from textwrap import dedent

import pytest

from dig.cli.run import disturbing
from dig.detectors.policy import Policy, Rule
from dig.errors import SettingsError
from dig.graph.records import HealRow, Record
from dig.runtime.result import RunResult
from dig.tasks.run.arrange import make_problem, make_simulation, make_task
from dig.tasks.run.execute import execute
from dig.tasks.run.methods import METHODS
from dig.tasks.run.run_fork import fork
from dig.tasks.run.team_run import METHOD_NAMES, TeamRun
from dig.tasks.simulated.profile import Profile

DEMO = TeamRun(agents=6, size=10_000, seed=668)


def simulated(run: TeamRun) -> RunResult:
    return make_simulation(run, make_task(run), lambda record: None).run()


def test_the_demo_gets_stuck_and_submits_early_and_is_healed() -> None:
    result = simulated(DEMO)
    assert result.outcome == "submitted"
    assert {"DL", "ET"} <= result.raised().keys()
    score = make_task(DEMO).score(result.answer)
    assert score is not None
    assert score.rmse is not None
    assert score.rmse < 600


def test_the_demo_without_healing_ends_without_an_answer() -> None:
    result = simulated(replace(DEMO, method="mas"))
    assert (result.outcome, result.answer, result.heals) == ("stopped", None, {})
    assert "DL" in result.raised()


def test_a_configuration_has_a_name_of_its_own() -> None:
    """The same settings have the same name, and any other setting another one."""
    others = [
        replace(DEMO, seed=3),
        replace(DEMO, method="mas"),
        replace(DEMO, profile=Profile(wait=0.5)),
        replace(DEMO, limit_s=60.0),
        replace(DEMO, to="all"),
        replace(DEMO, options={"temperature": 0}),
    ]
    assert TeamRun(seed=668).name == DEMO.name
    assert len({run.name for run in (DEMO, *others)}) == 7


@pytest.mark.parametrize("wrong", [{"agents": 0}, {"method": "magic"}, {"limit_s": 0.0}])
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        TeamRun(**wrong)  # type: ignore[arg-type]  # that is the point


OLD = """
{"run": "count-frequency-10000-6x-dig-s25-00b5a3f0", "task": "count-frequency", "agents_are":
"simulated", "agents": 6, "size": 10000, "seed": 25, "method": "dig", "limits": {"mc_window_s":
30.0, "oe_window_s": 10.0, "dl_window_s": 30.0, "activation_limit_s": 300.0, "reroute_limit": 3,
"coverage": true}, "limit_s": 120.0, "budget": {"per_run": 100, "per_pattern": 30, "per_subject":
3}, "cooldown_s": 1.0, "designate": false, "detectors": [], "profile": {"think_s": 2.4,
"think_spread": 0.25, "read_s": 0.0005, "chunk_length": 1000, "pieces_per_agent": 10,
"reads_at_once": 4, "error": 0.1, "error_growth": 1.5, "most_error": 0.5, "wait": 0.015, "pass_on":
0.02, "discard": 0.002, "discard_double": 0.2, "broadcast": 0.05, "duplicate": 0.03, "misaddress":
0.004, "merge": 0.1, "hand_over": 0.02, "submit_early": 0.1, "fail": 0.01, "compliance": 0.9,
"recompute": 0.8}}
"""


def test_a_policy_is_part_of_a_run_and_of_its_name() -> None:
    """Without one all is healed, as in the paper, and the name is the one of before."""
    plain = TeamRun()
    ruled = replace(plain, policy=Policy((Rule(action="off", pattern="ET", agents=("a",)),)))
    assert plain.policy.heal == "all"
    assert ruled.name != plain.name
    assert TeamRun.read(json.loads(json.dumps(ruled.about()))) == ruled
    before = {key: value for key, value in plain.about().items() if key != "policy"}
    assert TeamRun.read(json.loads(json.dumps(before))) == plain


def test_a_side_file_of_agents_with_other_habits_is_refused() -> None:
    """They would do something else today, so it is another run."""
    with pytest.raises(SettingsError, match=r"profile has .*recompute, which is unknown here"):
        TeamRun.read(json.loads(OLD))


def test_what_a_run_says_about_itself_is_read_as_the_same_run() -> None:
    run = replace(DEMO, to="all", options={"temperature": 0}, agents_are="model some-name")
    assert TeamRun.read(json.loads(json.dumps(run.about()))) == run


def test_a_side_file_that_was_changed_is_refused() -> None:
    with pytest.raises(SettingsError, match="would be"):
        TeamRun.read({**json.loads(json.dumps(DEMO.about())), "seed": 26})


@pytest.mark.nightly
@pytest.mark.parametrize("task", ["count-frequency", "newsgroups"])
def test_valid_answers_of_two_settings_with_the_same_seeds_are_uncorrelated(task: str) -> None:
    """Which seeds end without an answer in one says nothing about which do in another."""
    plain = TeamRun(task=task, agents=3, method="mas", profile=Profile(wait=0.1))
    sizes = (1000, 5000) if task == "count-frequency" else (60, 100)
    valid = [
        [simulated(replace(plain, size=size, seed=s)).outcome == "submitted" for s in range(200)]
        for size in sizes
    ]
    assert all(20 < sum(some) < 180 for some in valid), "hardly any differ"
    assert abs(correlation(*valid)) < 4 / 200**0.5


def test_runs_of_two_methods_with_the_same_seed_do_the_same_until_one_of_them_acts() -> None:
    first: list[list[Record]] = []
    for method in ("mas", "dig"):
        seen: list[Record] = []
        run = replace(DEMO, method=method, seed=604)  # which goes on for long before it is stuck
        make_simulation(run, make_task(run), seen.append).run()
        acts = next((n for n, r in enumerate(seen) if isinstance(r, HealRow)), len(seen))
        first.append(seen[1:acts])
    assert min(map(len, first)) > 50
    assert all(a == b for a, b in zip(*first, strict=False))


def test_a_host_may_start_waiting_agents_again_by_itself(tmp_path: Path) -> None:
    """Then a team that waits out of habit gets on without being woken; in a fork, too."""
    stuck = replace(DEMO, method="mas")
    looking = replace(stuck, profile=Profile(look_again_s=5.0))
    assert simulated(stuck).outcome == "stopped"
    execution = execute(looking, tmp_path / "runs")
    assert execution.result.outcome == "submitted"
    lines = (execution.directory / "trace.dig.jsonl").read_bytes()
    for at in (40, 70, 100):
        again = fork(execution.directory, at, tmp_path / "forks").directory
        assert (again / "trace.dig.jsonl").read_bytes() == lines


def test_the_problem_goes_to_one_agent_or_to_all() -> None:
    one, everybody = (replace(DEMO, to=to) for to in ("one", "all"))
    assert make_problem(one, make_task(one)).to == ("agent-1",)
    assert make_problem(everybody, make_task(everybody)).to == everybody.names


def test_every_method_that_a_run_may_name_is_there() -> None:
    """Those that healing is compared with come from the laboratory."""
    assert set(METHODS) == set(METHOD_NAMES)


@pytest.mark.parametrize(
    ("method", "is_laboratory_loaded"), [("judge", True), ("retry", True), ("dig+", False)]
)
def test_a_program_runs_and_forks_a_method_without_importing_the_laboratory(
    method: str, is_laboratory_loaded: bool, tmp_path: Path
) -> None:
    """The tables find its rows; a program that uses none of them never loads it."""
    program = f"""
        import sys
        from pathlib import Path
        from dig.detectors.thresholds import Thresholds
        from dig.tasks.run.arrange import make_run
        from dig.tasks.run.execute import execute
        from dig.tasks.run.run_fork import fork

        folder = Path({str(tmp_path)!r})
        run = make_run("count-frequency", Thresholds(), agents=3, size=10, method={method!r})
        recorded = execute(run, folder / "runs").directory
        forked = fork(recorded, 10, folder / "forks").directory
        first, second = [(run / "trace.dig.jsonl").read_bytes() for run in (recorded, forked)]
        assert first == second
        assert ("dig.lab" in sys.modules) is {is_laboratory_loaded}
    """
    command = [sys.executable, "-c", dedent(program)]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


def test_a_loss_that_was_healed_is_in_the_verdict_of_the_run(tmp_path: Path) -> None:
    """The agent that left had the work, and not the agents that were given it anew."""
    run = TeamRun(seed=802, agents=9, method="dig", profile=Profile.of(["error=0"]))
    execution = execute(run, tmp_path, disturb=disturbing(["leave target=agent-5 start=4"]))
    (loss,) = [step for step in execution.verdict.wrong if "orphaned event" in step.says]
    assert "lost when agent-5 left" in loss.says
    assert execution.verdict.who[0].agent == "agent-5"
