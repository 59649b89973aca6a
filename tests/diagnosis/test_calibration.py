"""The confidence of an answer: a map of its share, fitted to kinds of faults that are left out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench import calibration
from bench.calibration import Named, calibration_error, fit, left_out
from dig.diagnosis.diagnosing import diagnose
from dig.diagnosis.goal import Goal
from dig.diagnosis.reporting import calibrate, map_share
from dig.diagnosis.suspects import Asking
from dig.show.document import ArmRows, ChangedArm, HypothesisRow, UnchangedArm, confidence_text
from tests.diagnosis.failed_runs import failed


def made(slope: float, intercept: float, kind: str, count: int = 2000) -> list[Named]:
    """Answers that are right as often as a map says."""
    chance = random.Random(kind)
    shares = [chance.uniform(0.02, 0.98) for _ in range(count)]
    return [
        Named(frozenset({kind}), share, chance.random() < map_share(share, slope, intercept))
        for share in shares
    ]


def test_a_map_is_found_again() -> None:
    """Within what chance allows."""
    assert fit(made(0.8, 1.1, "a")) == pytest.approx((0.8, 1.1), abs=0.2)


def test_an_error_is_the_mean_distance_by_tenths() -> None:
    assert calibration_error([0.25, 0.25, 0.95], [True, False, True]) == pytest.approx(0.55 / 3)


def test_a_kind_is_asked_about_by_the_other_kinds_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a map of other kinds mends shares that say too little."""
    answers = [*made(1.0, 2.0, "a"), *made(1.0, 2.0, "b")]
    asked: list[set[frozenset[str]]] = []

    def fit_seen(known: Sequence[Named]) -> tuple[float, float]:
        asked.append({each.kinds for each in known})
        return fit(known)

    monkeypatch.setattr(calibration, "fit", fit_seen)
    confidences, right = left_out(answers), [each.is_right for each in answers]
    assert sorted(map(str, asked)) == sorted(str({frozenset({kind})}) for kind in "ab")
    before = calibration_error([each.share for each in answers], right)
    assert calibration_error(confidences, right) < before / 4


@pytest.mark.parametrize("right", [True, False])
def test_answers_that_are_all_alike_can_be_fitted(right: bool) -> None:
    """Where a slope has no bound it stays one; a larger share never lowers the confidence."""
    slope, _ = fit([Named(frozenset("k"), share / 50, right) for share in range(50)])
    assert 0 <= slope <= calibration.STEEPEST


def test_confidence_grows_with_the_share() -> None:
    confidences = [calibrate(share / 20) for share in range(21)]
    assert confidences == sorted(confidences)
    assert 0 < confidences[0] < confidences[-1] <= 1


def test_an_answer_tells_how_often_such_answers_are_right(tmp_path: Path) -> None:
    """By the usual suspect alone: of others nothing was measured."""
    path = failed(tmp_path)
    diagnosis = diagnose(path)
    assert diagnosis.answer is not None
    assert diagnosis.answer.probability == calibrate(diagnosis.candidates[0].share)
    often = f"{100 * diagnosis.answer.probability:.0f} % of such answers are right"
    assert confidence_text(diagnosis, None) == f"suspected; {often}"
    refuted = HypothesisRow(
        id="h1", candidate="c1", attempt=None, interventions=(), expects=None, verdict="refuted",
        reason=None, p=None, onset=None, no_return=None,
        arms=ArmRows(
            changed=ChangedArm(n=1, good=0, fulfilled=1, progress=(), forks=()),
            unchanged=UnchangedArm(n=1, good=0, progress=(), forks=()),
        ),
    )  # fmt: skip
    tried = diagnosis.model_copy(update={"hypotheses": (refuted,)})
    assert confidence_text(tried, None) == "suspected; no change that was tried confirms it"
    other = diagnose(path, Goal.parse("default"), asking=Asking(by=("signs",)))
    assert other.answer is not None and other.answer.probability is None
    assert confidence_text(other, None).endswith(other.answer.confidence)
