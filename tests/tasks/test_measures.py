"""What is measured of a run, and that every output says who worked on what data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dig import cli
from dig.detectors.thresholds import Thresholds
from dig.graph.records import End, Finish
from dig.runtime.agents import Decision, Plan, View
from dig.tasks.run.arrange import make_run
from dig.tasks.run.crew import Crew
from dig.tasks.run.execute import Execution, execute
from dig.tasks.run.judging import Judging
from dig.tasks.run.measures import origin_rows
from dig.tasks.run.run_fork import fork
from dig.tasks.run.team_run import TeamRun
from dig.traces.usage import Costs, tokens


class Costly:
    """Submits at once, and says what that cost."""

    def plan(self, view: View) -> Plan:
        decision = Decision.submit(view, {"counts": {}})
        return Plan(
            1.5, decision.model_copy(update={"usage": {"input_tokens": 70, "more": {"a": 2}}})
        )


@pytest.fixture(scope="module")
def execution(tmp_path_factory: pytest.TempPathFactory) -> Execution:
    return execute(TeamRun(task="newsgroups", size=60, agents=3), tmp_path_factory.mktemp("runs"))


def test_the_result_tells_all_by_which_runs_are_compared(execution: Execution) -> None:
    told = json.loads((execution.directory / "result.json").read_text())
    measured = told["measures"]
    assert measured["valid"] is True and measured["rmse"] == told["score"]["rmse"] is not None
    assert measured["seconds"] == told["seconds"] and measured["clock"] == "virtual"
    assert measured["calls"] == told["activations"] > 3
    assert measured["findings"] == told["raised"]
    assert measured["tokens"] is None, "no language model was called"


def test_a_judge_is_counted_apart(tmp_path: Path) -> None:
    """Else a method that only looks on would seem to make the team work more."""
    run = TeamRun(task="newsgroups", size=60, agents=3, method="judge", judging=Judging(every=2))
    judged = execute(run, tmp_path)
    measured = judged.to_json()["measures"]
    assert measured["judge_calls"] > 0
    assert measured["calls"] + measured["judge_calls"] == judged.result.activations


def test_tokens_are_added_up_wherever_the_trace_tells_them() -> None:
    costs = Costs()
    costs(End(4, 0, "a1", (), (), {"input_tokens": 70, "output_tokens": 5, "model": "m"}))
    costs(Finish(9, 0, "stopped", None, {"a2": {"input_tokens": 30}}))
    assert costs.sums == {"input_tokens": 100, "output_tokens": 5}
    assert tokens(costs.sums) == 105


def test_a_fork_is_measured_from_its_beginning_and_says_who_went_on(
    execution: Execution, tmp_path: Path
) -> None:
    team = {name: Costly() for name in ("agent-1", "agent-2", "agent-3")}
    forked = fork(execution.directory, 3, tmp_path, crew=Crew(team, agents_are="mine:team"))
    told = json.loads((forked.directory / "result.json").read_text())
    assert told["measures"]["tokens"] == 70 and told["measures"]["cost"]["a"] == 2
    assert told["agents_are"] == "mine:team" and "our own" in told["data_are"]


def test_simulated_agents_are_called_so_and_others_by_their_name() -> None:
    assert origin_rows("simulated", None) == [
        ("agents", "simulated agents; no language model was called")
    ]
    assert origin_rows("model \x1b[1m", "mine")[1] == ("data", "mine")
    assert "\x1b" not in origin_rows("model \x1b[1m", None)[0][1]


@pytest.mark.parametrize(
    "command",
    [
        ["run", "newsgroups", "--virtual", "--runs", "{folder}"],
        ["runs", "{runs}"],
        ["show", "{run}"],
    ],
)
def test_every_output_says_that_agents_are_simulated(
    command: list[str], execution: Execution, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.delenv("DIG_NEWSGROUPS", raising=False)
    names: dict[str, Any] = {
        "folder": tmp_path, "run": execution.directory, "runs": execution.directory.parent,
    }  # fmt: skip
    monkeypatch.setattr("sys.argv", ["digmon", *(part.format(**names) for part in command)])
    with pytest.raises(SystemExit):
        cli.main()
    said = capsys.readouterr().out
    assert "simulated" in said
    assert command[0] == "runs" or "our own, not the real newsgroups" in said


def test_the_task_reads_the_folder_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DIG_NEWSGROUPS", "/some/where")
    assert make_run("newsgroups", Thresholds.load()).data == "/some/where"
    assert make_run("newsgroups", Thresholds.load(), data="/else").data == "/else"
