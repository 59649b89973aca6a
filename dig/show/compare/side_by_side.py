"""Two runs side by side, in lines: behaviour, counts, findings and cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dig._util.text import name
from dig.errors import UndecidedError
from dig.graph.behaviour import LIMIT_S
from dig.show.runs.summary import RunSummary, grade, summarise

from .continued import side_by_side
from .difference import Comparison, Divergence, behaviour_at
from .golden import is_golden

Line = tuple[str, str, str]
"""A label, and a value on each side."""


@dataclass(frozen=True)
class RunComparison:
    """Two runs, compared.

    Attributes:
        behaviour: The comparison of their behaviours.
        runs: The summary of each; ``None`` for a golden file.
        continued: Of a run and its fork: the decisions of both from the first difference on.
    """

    behaviour: Comparison
    runs: tuple[RunSummary | None, RunSummary | None]
    continued: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The object that `digmon diff --json` prints."""
        keys = ("outcome", "findings", "heals", "score", "cost", "seconds", "records")
        sides = [run and {key: getattr(run, key) for key in keys} for run in self.runs]
        return {**self.behaviour.to_json(), "runs": dict(zip("ab", sides, strict=True))}

    def told(self, a: str, b: str) -> Iterator[str]:
        """The comparison in lines."""
        yield from told(self.behaviour, a, b)
        yield from self.continued
        one, other = self.runs
        if one and other:
            yield from _section("findings", _unequal(one.findings, other.findings), a, b)
            yield from _section("cost", _unequal(one.cost, other.cost), a, b)
            yield from _section("run", _run_lines(one, other), a, b)


def compare_runs(
    a: Path,
    b: Path,
    *,
    strict: bool = False,
    limit_s: float = LIMIT_S,
    stopwatch: Callable[[], float] | None = None,
) -> RunComparison:
    """Compare two traces, run directories or golden files.

    Args:
        a: The path of one.
        b: The path of the other.
        strict: Whether to compare by the strict notion; by default, by the causal one.
        limit_s: Seconds that the comparison may take.
        stopwatch: See `same_behaviour`.

    Raises:
        TraceError: One of them cannot be read; the line is named.
        UndecidedError: The limit was reached before a verdict.
    """
    one, other = behaviour_at(a), behaviour_at(b)
    comparison = Comparison.of(one, other, strict=strict, limit_s=limit_s, stopwatch=stopwatch)
    sides = [None if is_golden(path) else summarise(path) for path in (a, b)]
    has_records = None not in sides and not comparison.is_same
    continued = tuple(side_by_side(a, b)) if has_records else ()
    return RunComparison(comparison, (sides[0], sides[1]), continued)


def first_difference(a: Path, b: Path) -> dict[str, Any]:
    """The first difference between the behaviours of two runs.

    Returns:
        `records`: the record of each that has nothing like it in the other one, ``None`` if all of
        it is there; `says`: what it is, in words; both are ``None`` if the limit was reached.

    Raises:
        TraceError: One of them cannot be read; the line is named.
    """
    try:
        places = Comparison.of(behaviour_at(a), behaviour_at(b)).places
    except UndecidedError:
        return {"records": None, "says": None}
    first = next(filter(None, places), None)
    return {
        "records": [place and place.record for place in places],
        "says": first and first.what,
    }


def told(comparison: Comparison, a: str, b: str) -> Iterator[str]:
    """A comparison in lines: the verdict, the first differences, and unequal counts.

    Args:
        comparison: The comparison.
        a: The name of one run, for the heading.
        b: The name of the other one.
    """
    notion = "strictly" if comparison.strict else "causally"
    if comparison.is_same:
        yield f"the same behaviour ({notion})" + (", in another order" * comparison.is_reordered)
    else:
        yield f"different behaviour ({notion})"
        yield from _parting(comparison.places, a, b)
    yield from _section("counts", _unequal(*comparison.counts), a, b)


def _parting(places: tuple[Divergence | None, Divergence | None], a: str, b: str) -> Iterator[str]:
    if places == (None, None):
        yield "they are made of the same pieces, put together in another way"
        return
    yield "first divergence:"
    width = max(len(a), len(b)) + 1
    for label, place in zip((a, b), places, strict=True):
        if place is None:
            what = "nothing that the other does not have"
        else:
            where = f"step {place.step}" if place.record is None else f"record {place.record}"
            what = f"{where}: {place.what}"
        yield f"  {f'{label}:':<{width}} {what}"


def _section(title: str, lines: Sequence[Line], a: str, b: str) -> Iterator[str]:
    """The differing lines, in columns under a heading; no lines, if there are none."""
    if not lines:
        return
    rows = [(title, a, b), *lines]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for label, one, other in rows:
        head = label if label == title else f"  {label}"
        yield f"{head:<{widths[0] + 2}}  {one:>{widths[1]}}  {other:>{widths[2]}}"


def _unequal(one: Mapping[str, float], other: Mapping[str, float]) -> list[Line]:
    keys = [*one, *(key for key in other if key not in one)]
    pairs = [(key, one.get(key, 0), other.get(key, 0)) for key in keys]
    return [(name(key), f"{x:,g}", f"{y:,g}") for key, x, y in pairs if x != y]


def _run_lines(one: RunSummary, other: RunSummary) -> list[Line]:
    values = {
        "outcome": [run.status for run in (one, other)],
        "score": [_score(run) for run in (one, other)],
        "seconds": [f"{run.seconds:,.1f}" for run in (one, other)],
        "records": [f"{run.records:,}" for run in (one, other)],
    }
    return [(label, x, y) for label, (x, y) in values.items() if x != y]


def _score(run: RunSummary) -> str:
    value = grade(run.score)
    return "none" if value is None else f"{value:.4g}"
