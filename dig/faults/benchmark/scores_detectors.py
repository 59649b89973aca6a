"""Scores of detectors against known faults: precision, recall, delay and confusion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dig.detectors.patterns import NAMES
from dig.faults.inject.catalogue import KINDS
from dig.graph.records import FindingRow, Record
from dig.tasks.experiment.statistics import as_json, share, spread
from dig.tasks.experiment.table import Table, Value

from .instances import FaultSet, Instance, Label, by_kind

NO_FAULT = "no fault"
GIVEN = {"one": "where one agent is given the problem", "all": "where all are given the problem"}


@dataclass(frozen=True)
class Seen:
    """The findings of one run.

    Attributes:
        kind: The kinds of its faults; `no fault` for a twin.
        should: The patterns that the faults should raise.
        may: The patterns that the faults may raise.
        delays: For each pattern that was raised, the records and seconds from the first injection
            to its first finding; in a twin, from the beginning.
    """

    kind: str
    should: frozenset[str]
    may: frozenset[str]
    delays: Mapping[str, tuple[int, float]]


@dataclass(frozen=True)
class PatternScore:
    """The scores of one pattern.

    Attributes:
        name: The pattern.
        expected: Of the runs whose fault should raise it, those in which it was raised.
        rightly: Of the runs and twins in which it was raised, those whose fault should or may.
        delays: Records and seconds from injection to finding, of those whose fault should raise it.
    """

    name: str
    expected: tuple[bool, ...]
    rightly: tuple[bool, ...]
    delays: tuple[tuple[int, float], ...]

    def row(self) -> list[str | int | Value]:
        """Its line in the table."""
        records = spread([records for records, _ in self.delays])
        seconds = spread([seconds for _, seconds in self.delays])
        return [
            self.name,
            Value(share(self.rightly)),
            len(self.rightly),
            Value(share(self.expected)),
            len(self.expected),
            _spread(records, ".0f"),
            _spread(seconds, ".1f"),
        ]

    def to_json(self) -> dict[str, Any]:
        """The same as plain JSON."""
        return {
            "precision": as_json(share(self.rightly)),
            "recall": as_json(share(self.expected)),
            "delay_records": spread([records for records, _ in self.delays]),
            "delay_s": spread([seconds for _, seconds in self.delays]),
        }


@dataclass(frozen=True)
class DetectorScores:
    """The findings in the runs of a set and in their twins, and their scores."""

    seen: tuple[Seen, ...]

    @property
    def patterns(self) -> list[str]:
        """The patterns: the standard ones, and others that were raised."""
        others = {pattern for one in self.seen for pattern in one.delays} - {*NAMES}
        return [*NAMES, *sorted(others)]

    def pattern(self, name: str) -> PatternScore:
        """The scores of a pattern."""
        wanted = [one for one in self.seen if name in one.should]
        return PatternScore(
            name,
            tuple(name in one.delays for one in wanted),
            tuple(name in one.should | one.may for one in self.seen if name in one.delays),
            tuple(one.delays[name] for one in wanted if name in one.delays),
        )

    def tables(self, among: str) -> list[Table]:
        """Precision, recall and delay of each pattern; kinds of faults against patterns.

        Args:
            among: A description of the runs, for the titles.
        """
        return [
            Table(
                "detectors",
                f"Each pattern against the faults that should raise it, {among}",
                [
                    "pattern", "precision", "raised in", "recall", "should be in",
                    "delay, records", "delay, s",
                ],
                [self.pattern(name).row() for name in self.patterns],
                [
                    "Precision: of the runs and twins in which it was raised, those whose fault "
                    "should or may raise it. Recall: of the runs whose fault should raise it, "
                    "those in which it was. Delay: from the first injection to the first finding, "
                    "median and quartiles."
                ],
            ),
            Table(
                "confusion",
                f"In what share of runs a pattern was raised, {among}",
                ["fault", "runs", *self.patterns, "nothing"],
                [[kind, len(some), *self._shares(kind, some)] for kind, some in self._by_kind()],
                ["`!`: it should be raised; `?`: it may be. `no fault`: the twins."],
            ),
        ]  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The tables as plain JSON."""
        return {
            "patterns": {name: self.pattern(name).to_json() for name in self.patterns},
            "confusion": {
                kind: {
                    name: as_json(share([name in one.delays for one in some]))
                    for name in self.patterns
                }
                for kind, some in self._by_kind()
            },
        }

    def _by_kind(self) -> list[tuple[str, list[Seen]]]:
        found = by_kind(self.seen, lambda one: one.kind)
        order = dict.fromkeys((NO_FAULT, *KINDS, *found))  # hybrids last
        return [(kind, found[kind]) for kind in order if kind in found]

    def _shares(self, kind: str, some: Sequence[Seen]) -> Iterable[str]:
        for name in self.patterns:
            expected = "!" if name in some[0].should else "?" if name in some[0].may else ""
            yield f"{sum(name in one.delays for one in some) / len(some):.2f}{expected}"
        yield f"{sum(not one.delays for one in some) / len(some):.2f}"


def score_detectors(known: FaultSet) -> dict[str, DetectorScores]:
    """The scores of the findings that the traces of a set have.

    Runs that are healed are left out: their agents have habits that fail without any fault.

    Returns:
        The scores by the recipients of the problem: where all agents are given it, each begins a
        lineage of its own, and findings about that are no mistakes, fault or not.

    Raises:
        SettingsError: The set has no labels.
    """
    seen: dict[str, list[Seen]] = {}
    for instance in known.labelled():
        label = instance.label()
        if not label.is_healed:
            seen.setdefault(GIVEN[label.run["to"]], []).extend(_both(instance, label))
    return {among: DetectorScores(tuple(seen[among])) for among in GIVEN.values() if among in seen}


def _both(instance: Instance, label: Label) -> Iterable[Seen]:
    rows = [KINDS[fault["kind"]] for fault in label.faults]
    should = frozenset(pattern for row in rows for pattern in row.raises)
    may = frozenset(pattern for row in rows for pattern in row.may_raise) - should
    first = min((injection["t"], injection["ts"]) for injection in label.injections)
    yield Seen(label.kind, should, may, _delays(instance.records(), first))
    yield Seen(NO_FAULT, frozenset(), frozenset(), _delays(instance.twin(), (0, 0.0)))


def _delays(run: Iterable[Record], since: tuple[int, float]) -> dict[str, tuple[int, float]]:
    """When each pattern was first raised after some record."""
    t, ts = since
    delays: dict[str, tuple[int, float]] = {}
    for record in run:
        if isinstance(record, FindingRow) and record.t >= t:
            delays.setdefault(record.pattern, (record.t - t, record.ts - ts))
    return delays


def _spread(values: tuple[float, float, float] | None, form: str) -> str:
    if values is None:
        return "-"
    middle, low, high = (format(value, form) for value in values)
    return f"{middle} [{low}, {high}]"
