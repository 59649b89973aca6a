"""Goals: when a finished run is good, by default and as a user writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dig.detectors.finding import Finding
from dig.diagnosis.goal import Finished, Goal, Judgement, has_answer, is_healthy
from dig.errors import SettingsError
from dig.graph.records import Finish, Run

FIRST = Run(0, 0, "run", ("a",))
SCORE = {"valid": True, "rmse": 12.5, "reason": "", "complete": True}
RESULT = {
    "outcome": "submitted", "seconds": 20.0, "score": SCORE, "raised": {"ET": 2}, "findings": [],
    "measures": {"tokens": 300, "cost": {"cost_usd": 0.5}},
}  # fmt: skip


SESSION = Run(0, 0, "run", ("a",), session=True)


def finished(outcome: Any = "submitted", score: Any = None, **more: Any) -> Finished:
    result = RESULT if score is None else {**RESULT, "score": {**SCORE, **score}}
    return Finished([FIRST, Finish(1, 1, outcome)], more.pop("result", result), **more)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (Finished([FIRST], {}), "the run has no end"),
        (finished("timeout"), "no answer was accepted (outcome timeout)"),
        (Finished([SESSION, Finish(1, 1, "stopped")], {}), "no problem came"),
        (Finished([SESSION, Finish(1, 1, "error")], {}), "no answer was accepted (outcome error)"),
        (finished(score={"valid": False, "complete": None}), "the answer is not valid"),
        (finished(score={"complete": False}), "the answer is not complete"),
    ],
)
def test_a_run_without_a_whole_answer_is_not_good(run: Finished, why: str) -> None:
    assert has_answer(run) == Goal.parse("default").verdict(run) == Judgement(False, None, why)


def test_an_answer_that_no_score_can_judge_is_taken_as_it_is() -> None:
    """A plain trace has no score, and an answer need not say what it covers."""
    assert has_answer(finished(result={})).good
    assert has_answer(finished(score={"complete": None})).good


def test_the_default_wants_no_unhealed_error() -> None:
    left = [Finding("OE", 3, 3, {"event": "e"}, {}, severity="error")] * 2
    assert Goal.parse("default").verdict(finished(unhealed=left)) == (
        False,
        None,
        "errors that were not healed: orphaned event (OE)",
    )


def test_a_run_that_healing_had_to_save_is_not_healthy_and_a_session_is_judged_apart() -> None:
    healed = finished(healed=["ET", "OE"])
    assert is_healthy(healed) == (False, None, "an error or a warning was healed: ET, OE")
    assert is_healthy(finished()).good
    session = Run(0, 0, "run", ("a",), session=True)
    assert is_healthy(Finished([session], {}, healed=["ET"])).good


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("score.rmse<=12.5", True), ("score.rmse<12.5", False), ("score.rmse >= 12.5", True),
        ("seconds>20", False), ("seconds==20", True), ("seconds!=20", False),
        ("findings.ET<=2", True), ("findings.ET==1", False), ("findings.DL==0", True),
        ("cost.tokens<301", True), ("cost.cost_usd<0.5", False), ("outcome==submitted", True),
        ("score.complete==true and seconds<60", True), ("seconds<60 and score.rmse<1", False),
        ("score.reason<3", False), ("\n seconds <\t60 \n and  findings.ET  == 2 ", True),
    ],
)  # fmt: skip
def test_a_goal_compares_values_of_the_result(text: str, good: bool) -> None:
    assert Goal.parse(text)(finished()).good is good


def test_conditions_are_added_to_the_default_and_say_which_one_does_not_hold() -> None:
    goal = Goal.parse("seconds<60 and findings.ET==0")
    assert goal.verdict(finished()) == (False, None, "findings.ET==0 does not hold")
    assert goal(finished("timeout")).why == "no answer was accepted (outcome timeout)"


def test_by_the_goal_none_no_run_is_good() -> None:
    assert not Goal.parse("none")(finished()).good


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("score.rmse<", "'score.rmse<' is no comparison; a goal is written as"),
        ("1<2<3", "is no comparison"),
        ("score.rmse<small", "'small' is no number to compare with"),
        ("rmse", "a goal is named like `my_module:goal`, not 'rmse'"),
        ("json:__doc__", "the goal 'json:__doc__' is no function"),
    ],
)
def test_what_is_no_goal_is_refused_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why.replace("(", r"\(")):
        Goal.parse(text)


def test_a_key_that_the_result_does_not_have_is_named_with_those_it_has() -> None:
    """A goal that can never hold would say that no run is good."""
    with pytest.raises(SettingsError, match=r"runs/x has no score\.f1 .*; its result has: outcome"):
        Goal.parse("score.f1>0.5")(finished(name="runs/x"))
    with pytest.raises(SettingsError, match=r"no result\.json lies beside it"):
        Goal.parse("findings.ET==0")(finished(result={}))


OWN = """
from dig.diagnosis.goal import Judgement

def short(run):
    return run.result["seconds"] < 60

def careful(run):
    return Judgement(False, 0.5, "it was careless")

def broken(run):
    return 1 / 0

def odd(run):
    return "yes"
"""


def test_a_users_own_test_stands_in_place_of_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_goal.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    assert Goal.parse("own_goal:short")(finished("timeout")).good
    assert Goal.parse("own_goal:careful")(finished()) == (False, 0.5, "it was careless")
    with pytest.raises(SettingsError, match="'own_goal:broken' raised ZeroDivisionError"):
        Goal.parse("own_goal:broken")(finished())
    with pytest.raises(SettingsError, match="returned 'yes', not a Judgement or a bool"):
        Goal.parse("own_goal:odd")(finished())
