"""Failures: by what a run is not good, each with the records that show it."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps, loads
from typing import Any

import pytest

from dig.detectors.finding import Finding
from dig.diagnosis.failures import failures
from dig.diagnosis.goal import Finished, Goal
from dig.errors import SettingsError
from dig.graph.codec import decode
from dig.show.document import Attempt, Candidate, Evidence, Failure, Hypothesis
from tests.histories import arrive, deliver, final, row, trace, turn

WORK = [*arrive(0, "e0", None, "a"), *turn(1, "v1", "a", "e1", e0="consume"), final(1, "e1", "v1")]
ANSWERED = [*WORK, deliver(1, "e1", None)]
SCORE = {"valid": True, "rmse": 12.5, "reason": "", "complete": True}


def run(parts: list[Any], outcome: str | None = "submitted", **more: Any) -> Finished:
    rows = trace(parts, *([] if outcome is None else [row(2, "finish", outcome=outcome)]))
    score = SCORE | more.pop("score", {})
    return Finished([decode(one) for one in rows], {"score": score, "seconds": 9}, **more)


def found(one: Finished, goal: str = "default") -> list[tuple[str, str, int | None, str]]:
    return [
        (failure.kind, failure.about, shown.t, shown.says)
        for failure in failures(one, Goal.parse(goal))
        for shown in failure.evidence
    ]


@pytest.mark.parametrize(
    ("one", "failure"),
    [
        (run(ANSWERED), None),
        (run(WORK, "timeout"), ("no-answer", "outcome", 6, "the run ended by its time limit")),
        (run(WORK, "stopped"), ("no-answer", "outcome", 6, "the run was stopped")),
        (run(WORK, "error"), ("no-answer", "outcome", 6, "the run ended with an error")),
        (run(WORK, None), ("no-answer", "outcome", 5, "the trace ends without an outcome")),
        (run(ANSWERED, "timeout"), ("timeout", "outcome", 7, "the run ended by its time limit")),
        (
            run(ANSWERED, score={"valid": False, "reason": "no counts"}),
            ("bad-answer", "e1", 6, "no valid answer: no counts"),
        ),
        (
            run(ANSWERED, score={"complete": False}),
            ("bad-answer", "e1", 6, "the answer is not complete"),
        ),
    ],
)
def test_a_run_that_ended_badly_says_how(one: Finished, failure: Any) -> None:
    """Without an answer, too late for one, or with one that is not valid or not complete."""
    assert found(one) == ([failure] if failure else [])


@pytest.mark.parametrize(
    ("subject", "about"), [({"event": "e1"}, "e1"), ({"activation": "v1"}, "a"), ({}, "MC")]
)
def test_an_unhealed_finding_is_a_failure_of_what_it_names(subject: Any, about: str) -> None:
    """An event, the agent of an activation, or the pattern itself."""
    left = Finding("MC", 4, 0, subject, {"last": None}, severity="error")
    ((kind, what, t, says),) = found(run(ANSWERED, unhealed=[left]))
    assert (kind, what, t) == ("finding", about, 4)
    assert says.startswith("MC: ")


@pytest.mark.parametrize(
    ("goal", "failure"),
    [
        ("score.rmse<=10", ("bad-answer", "e1", 6, "score.rmse<=10 does not hold")),
        ("seconds<5", ("complaint", "outcome", 7, "seconds<5 does not hold")),
        ("none", ("complaint", "outcome", 7, "by the goal `none` no run is good")),
    ],
)
def test_a_run_that_only_the_user_calls_bad_is_a_complaint(goal: str, failure: Any) -> None:
    """Unless it is about the score: then the answer is bad."""
    assert found(run(ANSWERED), goal) == [failure]


def test_a_complaint_stands_beside_what_the_records_show() -> None:
    """By the goal `none` a run is taken as failed, and may have failed visibly, too."""
    kinds = [kind for kind, *_ in found(run(WORK, "timeout"), "none")]
    assert kinds == ["no-answer", "complaint"]
    assert [kind for kind, *_ in found(run(WORK, "timeout"), "seconds<5")] == ["no-answer"]


def test_a_sentence_is_one_short_line() -> None:
    """Texts of tasks and payloads come from others."""
    odd = run(ANSWERED, score={"valid": False, "reason": "\x1b[2J\n" + "x" * 900})
    ((*_, says),) = found(odd)
    assert len(says) <= 120 and says.isprintable()


SHOWN = (Evidence(3, "it was lost"),)


@pytest.mark.parametrize(
    "one",
    [
        Failure("finding", "OE", SHOWN),
        Attempt("p1", "v1", ("v1", "v2"), None, "no answer"),
        Candidate(id="c1", agent="a", share=0.5, evidence=SHOWN, by=("signs",), t=3),
        Hypothesis(id="h1", candidate="c1", interventions=({"kind": "seat", "at": 3},)),
    ],
)
def test_concepts_are_plain_json(one: Any) -> None:
    """What a diagnosis says can be stored and read again."""
    stored = loads(dumps(asdict(one)))
    assert stored.keys() == {*type(one).__slots__}
    assert loads(dumps(stored)) == stored


def test_nothing_is_claimed_without_evidence() -> None:
    """A claim without a record cannot be checked."""
    with pytest.raises(SettingsError, match="the failure 'finding' of 'OE' needs evidence"):
        Failure("finding", "OE", ())
    with pytest.raises(SettingsError, match="the candidate 'c1' needs evidence"):
        Candidate(id="c1", agent="a", share=0.5, evidence=(), by=())


def test_a_candidate_and_a_hypothesis_keep_their_bounds() -> None:
    """Suspects may be a user's own."""
    with pytest.raises(SettingsError, match=r"share of the candidate 'c1' .* got 1\.5"):
        Candidate(id="c1", agent="a", share=1.5, evidence=SHOWN, by=())
    wrong: list[list[dict[str, Any]]] = [[], [{}] * 4]
    for some in wrong:
        with pytest.raises(SettingsError, match=f"must have 1 to 3 interventions, got {len(some)}"):
            Hypothesis(id="h1", candidate="c1", interventions=tuple(some))
