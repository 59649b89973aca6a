"""Whether a confidence of `digmon why` is as good as its word, on kinds of faults left out.

    python -m bench.calibration --seed 43001 --salt calibration --count 120 [--fit FILE]
    python -m bench.calibration SET ... [--fit FILE]

The first form makes a set of the ten kinds of `tests/faults/unseen.py`. A logistic map, of two
numbers, leads from the share of the first agent to how often it is at fault. For the table it is
fitted without the kind of fault that it is asked about; `--fit` stores the map of all kinds, which
`digmon why` uses.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from math import exp
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import NamedTuple

from dig.diagnosis.reporting import log_odds, map_share
from dig.diagnosis.suspects import SUSPECTS
from dig.lab.benchmark.attributing import case_about
from dig.lab.benchmark.candidates import Recipe
from dig.lab.benchmark.instances import FaultSet
from dig.lab.benchmark.storing import make_set
from tests.faults.unseen import DIAGNOSED, HEALED

from .measure import Table

BINS = 10
ROUNDS = 50
STEEPEST = 5.0


class Named(NamedTuple):
    """The first agent that `digmon why` names for a failure.

    Attributes:
        kinds: The kinds of the failure's faults.
        share: The share of the agent.
        is_right: Whether the agent is at fault.
    """

    kinds: frozenset[str]
    share: float
    is_right: bool


def first_named(fault_set: FaultSet) -> list[Named]:
    """Ask about each labelled failure of a set, by the records of the run alone."""
    answers = []
    for instance in fault_set.labelled():
        label = instance.label()
        candidates = SUSPECTS["attribution"].candidates(case_about(instance)) if label.harm else ()
        if candidates:
            kinds = frozenset(str(fault["kind"]) for fault in label.faults)
            guilty = {cause.component for cause in label.causes}
            first = candidates[0]
            answers.append(Named(kinds, first.share, first.agent in guilty))
    return answers


def fit(answers: Sequence[Named]) -> tuple[float, float]:
    """Fit slope and intercept by Newton's method, as Platt does, who keeps targets off 0 and 1."""
    right = sum(each.is_right for each in answers)
    high, low = (right + 1) / (right + 2), 1 / (len(answers) - right + 2)
    points = [(log_odds(each.share), high if each.is_right else low) for each in answers]
    slope, intercept = 1.0, 0.0
    for _ in range(ROUNDS):
        # Where all answers are right the best slope has no bound.
        slope = min(max(slope, 0.0), STEEPEST)
        found = [(x, y, 1 / (1 + exp(-slope * x - intercept))) for x, y in points]
        gradient = [sum((y - p) * x for x, y, p in found), sum(y - p for _, y, p in found)]
        a, b, c = (
            sum(p * (1 - p) * x**power for x, _, p in found) + (1e-6 if power != 1 else 0)
            for power in (2, 1, 0)
        )
        slope += (c * gradient[0] - b * gradient[1]) / (a * c - b * b)
        intercept += (a * gradient[1] - b * gradient[0]) / (a * c - b * b)
    # A larger share never lowers the confidence.
    return min(max(slope, 0.0), STEEPEST), intercept


def left_out(answers: Sequence[Named]) -> list[float]:
    """The confidence of each answer, by the answers about other kinds alone."""
    maps = {
        kinds: fit([each for each in answers if each.kinds.isdisjoint(kinds)])
        for kinds in {each.kinds for each in answers}
    }
    return [map_share(each.share, *maps[each.kinds]) for each in answers]


def calibration_error(confidences: Iterable[float], right: Iterable[bool]) -> float:
    """The mean distance of confidence and share of right answers, by tenths of the confidence."""
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for confidence, is_right in zip(confidences, right, strict=True):
        bins[min(int(confidence * BINS), BINS - 1)].append((confidence, is_right))
    off = [abs(sum(p - is_right for p, is_right in group)) for group in bins]
    return sum(off) / sum(map(len, bins))


def _brier(confidences: Sequence[float], right: Sequence[bool]) -> float:
    return fmean((p - is_right) ** 2 for p, is_right in zip(confidences, right, strict=True))


_ERRORS: Sequence[tuple[str, Callable[[Sequence[float], Sequence[bool]], float]]] = (
    ("expected calibration error", calibration_error),
    ("Brier score", _brier),
)


def table(answers: Sequence[Named]) -> Table:
    """Shares and confidences beside how often the named agent is at fault."""
    shares, confidences = [each.share for each in answers], left_out(answers)
    right = [each.is_right for each in answers]
    rows = [
        (name, str(len(answers)), f"{error(shares, right):.3f}", f"{error(confidences, right):.3f}")
        for name, error in _ERRORS
    ]
    by_confidence = sorted(zip(confidences, shares, right, strict=True))
    size = -(-len(answers) // 5)
    for start in range(0, len(answers), size):
        group = by_confidence[start : start + size]
        means = [fmean(column) for column in zip(*group, strict=True)]
        name = f"confidence {group[0][0]:.2f} to {group[-1][0]:.2f}: right in {means[2]:.2f}"
        rows.append((name, str(len(group)), f"{means[1]:.2f}", f"{means[0]:.2f}"))
    columns = ("", "failures", "share", "confidence")
    note = f"right in {fmean(right):.2f}; {len({each.kinds for each in answers})} kinds"
    return Table("Confidence of the first agent, on kinds left out", columns, rows, note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", type=Path, metavar="SET")
    parser.add_argument("--fit", type=Path, metavar="FILE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--salt", default="")
    parser.add_argument("--count", type=int, default=120)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        sets = options.sets
        if not sets:
            kinds = tuple(f"{kind.__module__}:{kind.__name__}" for kind in (*DIAGNOSED, *HEALED))
            seed, salt, count = options.seed, options.salt, options.count
            recipe = Recipe(seed=seed, salt=salt, count=count, foreign=kinds)
            sets = [Path(folder) / "set"]
            make_set(sets[0], recipe)
        answers = [named for path in sets for named in first_named(FaultSet.open(path))]
    print(table(answers))
    if options.fit:
        slope, intercept = (round(number, 3) for number in fit(answers))
        about = {"failures": len(answers), "seed": options.seed, "salt": options.salt}
        text = json.dumps({**about, "slope": slope, "intercept": intercept}, indent=1)
        options.fit.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
