"""Learning what is usual: which runs count, and how often each pattern was raised in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dig.detectors import standard, standard_healers
from dig.diagnosis.goal import Goal, is_healthy
from dig.diagnosis.learning import Learned, learn, usual_counts
from dig.errors import SettingsError
from dig.graph.codec import encode
from dig.graph.records import Limits, Outcome, Record
from tests.helpers import Stage, answer, out

HEALTHY = Goal.parse("default", is_healthy)


def kept(folder: Path, records: Iterable[Record], name: str = "run", **result: Any) -> Path:
    """A run directory with these records, and a result if there is one."""
    path = folder / name
    path.mkdir(parents=True)
    lines = "".join(encode(record) + "\n" for record in records)
    (path / "trace.dig.jsonl").write_text(lines)
    if result:
        (path / "result.json").write_text(json.dumps(result))
    return path


def learned(*paths: Path, at_least: int = 1, goal: Goal = HEALTHY) -> Learned:
    return learn(paths, goal, standard, at_least=at_least)


def run(early: int = 0, *, outcome: Outcome = "submitted", **settings: Any) -> Sequence[Record]:
    """A run whose answer comes while `early` of its problems lie open."""
    stage = Stage(detectors=standard(), **settings)
    stage.give("a")
    if early:
        stage.turn("a", out("b", 1), out("a", 2))
    stage.turn("a", answer())
    stage.monitor.finish(outcome)
    return stage.sink


def test_counts_say_in_how_many_runs_a_pattern_was_raised_so_often_or_more() -> None:
    runs = [{"CLA": 3, "ET": 1}, {"CLA": 1}, {}]
    assert usual_counts(runs) == {"CLA": (2, 1, 1), "ET": (1,)}


def test_runs_of_a_directory_are_learned_from(tmp_path: Path) -> None:
    """The file names the team, its thresholds, and the counts of the good runs alone."""
    for i in range(3):
        kept(tmp_path, run(early=i % 2), f"run-{i}")
    kept(tmp_path, run(outcome="timeout"), "late")
    found = learned(tmp_path)
    assert (found.runs, found.bad) == (4, {"no answer was accepted (outcome timeout)": 1})
    assert (found.team.agents, found.team.usual.runs) == (("a", "b"), 3)
    assert found.team.usual.counts == {"ET message": (1,)}
    assert found.usual == {}, "fewer than 19 runs"


def test_what_one_of_twenty_good_runs_has_is_usual(tmp_path: Path) -> None:
    """(1 + 1) / (1 + 20) is more than 5 %; a second of the pattern would be none."""
    many = [kept(tmp_path, run(early=i == 0), f"run-{i}") for i in range(20)]
    assert learned(*many).usual == {"ET message": 1}


def test_a_wrong_answer_makes_no_good_run_and_the_reason_is_told(tmp_path: Path) -> None:
    score = {"valid": True, "rmse": 1.0, "reason": "", "complete": False}
    kept(tmp_path, run(), "part", score=score)
    kept(tmp_path, run(), "whole", score={**score, "complete": True})
    found = learned(tmp_path)
    assert (found.team.usual.runs, found.bad) == (1, {"the answer is not complete": 1})


def test_a_run_in_which_an_error_was_healed_is_not_good(tmp_path: Path) -> None:
    """What healing had to save is not usual; without healing the same run would be."""
    stage = Stage(detectors=standard(), healers=standard_healers())
    stage.give("a")
    stage.turn("a", out("b", 1), out("a", 2))
    stage.turn("a", answer())  # bounced: work is open at b
    stage.turn("b", out("a", 3))
    stage.turn("a", answer())
    stage.monitor.finish("submitted")
    kept(tmp_path, stage.sink, "healed")
    kept(tmp_path, run(), "well")
    assert learned(tmp_path).bad == {"an error or a warning was healed: ET": 1}


def test_too_few_good_runs_are_refused_with_the_reasons(tmp_path: Path) -> None:
    kept(tmp_path, run(), "one")
    kept(tmp_path, run(outcome="stopped"), "two")
    with pytest.raises(SettingsError) as refused:
        learned(tmp_path, at_least=100)
    assert "1 good run of 2" in str(refused.value)
    assert "1 not: no answer was accepted (outcome stopped)" in str(refused.value)
    assert "with fewer than 19 nothing can be usual" in str(refused.value)


def test_runs_of_two_teams_are_refused(tmp_path: Path) -> None:
    """Instances are no agents of their own, other thresholds are another team."""
    first = kept(tmp_path, run(), "first")
    learned(first, kept(tmp_path, run(agents=["a", "a#2", "b"]), "instance"))
    other = kept(tmp_path, run(agents="abc"), "other")
    with pytest.raises(SettingsError, match=r"other is of another team than .*first: it has 3 age"):
        learned(first, other)
    strict = kept(tmp_path, run(limits=Limits(reroute_limit=5)), "strict")
    with pytest.raises(SettingsError, match="reroute_limit 5 and not"):
        learned(first, strict)


def test_in_a_session_each_answered_problem_is_a_run(tmp_path: Path) -> None:
    """A finding counts for the problem that it is about; one that is not answered does not."""
    stage = Stage(detectors=standard(), session=True)
    for early in (True, False):
        stage.give("a")
        if early:
            stage.turn("a", out("b", 1), out("a", 2))
        stage.turn("a", answer())
    stage.turn("b", out("", 3))
    stage.give("a", type="notice")  # no work
    stage.give("b")
    stage.monitor.finish("stopped")
    found = learned(kept(tmp_path, stage.sink))
    assert found.team.usual.runs == 2
    assert found.team.usual.counts["ET message"] == (1,)
    assert found.bad == {"no answer to the problem was accepted": 1}


def test_a_problem_of_a_session_that_was_healed_leaves_the_others_good(tmp_path: Path) -> None:
    stage = Stage(detectors=standard(), healers=standard_healers(), session=True)
    stage.give("a")
    stage.turn("a", out("b", 1), out("a", 2))
    stage.turn("a", answer())
    stage.turn("b", out("a", 3))
    stage.turn("a", answer())
    stage.give("b")
    stage.turn("b", answer())
    stage.monitor.finish("stopped")
    found = learned(kept(tmp_path, stage.sink))
    assert (found.team.usual.runs, found.bad) == (1, {"an error or a warning was healed: ET": 1})


def test_a_goal_of_the_users_chooses_among_good_runs(tmp_path: Path) -> None:
    for i, seconds in enumerate([5.0, 50.0]):
        kept(tmp_path, run(), f"run-{i}", seconds=seconds)
    found = learned(tmp_path, goal=Goal.parse("seconds<10", is_healthy))
    assert (found.team.usual.runs, found.bad) == (1, {"seconds<10 does not hold": 1})
