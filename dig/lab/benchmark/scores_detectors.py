"""Scores of detectors: recall and delay on failures with known faults, false alarms without faults.

False alarms are counted in the runs of the baseline, which nothing has chosen; the twins of
instances are chosen because they went well, so no figure is taken from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dig._util.intervals import wilson
from dig.detectors.patterns import NAMES
from dig.faults.inject.fault_catalogue import KINDS
from dig.graph.records import End, FindingRow, Record
from dig.lab.experiment.markdown_table import Table, Value
from dig.lab.experiment.statistics import Mean, as_json, share, spread
from dig.lab.run_pair import pattern_of

from .instances import FaultSet, Instance, Label, by_kind

NO_FAULT = "no fault"
GIVEN = {
    "one": "where one agent is given the problem",
    "all": "where all are given the problem",
    "several": "where there are several problems at once",
}


@dataclass(frozen=True)
class SeenKind:
    """The findings of a run.

    Attributes:
        kind: The kinds of its faults; `no fault` for a run of the baseline.
        should: The patterns that the faults should raise.
        may: The patterns that the faults may raise.
        delays: For each pattern that was raised, the records and seconds from the first injection
            to its first finding; in a run without faults nothing but the patterns counts.
    """

    kind: str
    should: frozenset[str]
    may: frozenset[str]
    delays: Mapping[str, tuple[int, float]]


@dataclass(frozen=True)
class FaultFree:
    """A run of the baseline.

    Attributes:
        team: The size of the team.
        raised: The patterns that were raised.
        is_bad: Whether the run has no valid and complete answer.
    """

    team: str
    raised: frozenset[str]
    is_bad: bool


@dataclass(frozen=True)
class PatternScore:
    """The scores of a pattern.

    Attributes:
        name: The pattern.
        expected: Of the failures whose fault should raise it, those in which it was raised.
        false: Of the runs without a fault that ended well, those in which it was raised.
        bad: Of the candidates of the set in which it was raised, those with a bad end.
        delays: Records and seconds from injection to finding, of those whose fault should raise it.
    """

    name: str
    expected: tuple[bool, ...]
    false: tuple[bool, ...]
    bad: tuple[bool, ...]
    delays: tuple[tuple[int, float], ...]

    @property
    def figures(self) -> dict[str, Any]:
        """Scores, by name."""
        return {
            "recall": share(self.expected),
            "delay_records": spread([records for records, _ in self.delays]),
            "delay_s": spread([seconds for _, seconds in self.delays]),
            "bad_if_raised": share(self.bad),
            "false_alarms": _rate(self.false),
        }

    def row(self) -> list[str | int | Value]:
        """The pattern's line in the table."""
        recall, records, seconds, bad, false = self.figures.values()
        return [
            self.name, Value(recall), len(self.expected), _spread(records, ".0f"),
            _spread(seconds, ".1f"), Value(bad), len(self.bad), Value(false), len(self.false),
        ]  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Render the scores as plain JSON."""
        return {
            name: as_json(figure) if isinstance(figure, Mean) else figure
            for name, figure in self.figures.items()
        }


@dataclass(frozen=True)
class DetectorScores:
    """The findings in the failures and in the baseline of a set, and the scores.

    Attributes:
        failures: The failures.
        fault_free: The runs of the baseline.
        candidates: For each pattern, how many of all candidates in which it was raised ended well
            (`good`) and badly (`bad`).
    """

    failures: tuple[SeenKind, ...]
    fault_free: tuple[FaultFree, ...] = ()
    candidates: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def patterns(self) -> list[str]:
        """The standard patterns, and all other raised patterns."""
        raised = {pattern for run in self.failures for pattern in run.delays}
        raised |= {pattern for run in self.fault_free for pattern in run.raised}
        return [*NAMES, *sorted(raised - {*NAMES})]

    def pattern(self, name: str) -> PatternScore:
        """The scores of a pattern."""
        required = [run for run in self.failures if name in run.should]
        ended = self.candidates.get(name, {})
        return PatternScore(
            name,
            tuple(name in run.delays for run in required),
            tuple(name in run.raised for run in self.fault_free if not run.is_bad),
            (True,) * ended.get("bad", 0) + (False,) * ended.get("good", 0),
            tuple(run.delays[name] for run in required if name in run.delays),
        )

    def tables(self, among: str) -> list[Table]:
        """Recall, delay and false alarms of each pattern; false alarms by team; confusion.

        Args:
            among: A description of the runs, for the titles.
        """
        return [
            Table(
                "detectors",
                f"Each pattern against the faults that should raise it, {among}",
                [
                    "pattern", "recall", "should be in", "delay, records", "delay, s",
                    "bad end if raised", "raised in", "false alarms", "runs without",
                ],
                [self.pattern(name).row() for name in self.patterns],
                [
                    "Recall: of the failures whose fault should raise it, those in which it was. "
                    "Delay: from the first injection to the first finding, median and quartiles. "
                    "Bad end if raised: of all candidates of the set, dropped ones included. False "
                    "alarms: of the runs of the baseline, which are not chosen, that ended well."
                ],
            ),
            Table(
                "false-alarms",
                f"False alarms by size of team, {among}",
                ["runs without a fault", "count", *self.patterns],
                [
                    [team, len(runs), *(self._false(runs, name) for name in self.patterns)]
                    for team, runs in self._by_team()
                ],
                [f"{sum(run.is_bad for run in self.fault_free)} of {len(self.fault_free)} runs of "
                 "the baseline ended badly by themselves; they are left out."],
            ),
            Table(
                "confusion",
                f"In what share of runs a pattern was raised, {among}",
                ["fault", "runs", *self.patterns, "nothing"],
                [[kind, len(runs), *self._shares(runs)] for kind, runs in self._by_kind()],
                ["`!`: it should be raised; `?`: it may be. `no fault`: the baseline."],
            ),
        ]  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The tables as plain JSON."""
        return {
            "patterns": {name: self.pattern(name).to_json() for name in self.patterns},
            "false_alarms": {
                team: {name: as_json(self._false(runs, name).ours) for name in self.patterns}
                for team, runs in self._by_team()
            },
            "confusion": {
                kind: {
                    name: as_json(share([name in run.delays for run in runs]))
                    for name in self.patterns
                }
                for kind, runs in self._by_kind()
            },
        }

    def _by_team(self) -> list[tuple[str, list[FaultFree]]]:
        good = [run for run in self.fault_free if not run.is_bad]
        teams = by_kind(good, lambda run: run.team)
        return [(team.strip(), runs) for team, runs in teams.items()]

    def _false(self, runs: Sequence[FaultFree], name: str) -> Value:
        return Value(_rate([name in run.raised for run in runs]))

    def _by_kind(self) -> list[tuple[str, list[SeenKind]]]:
        none = frozenset[str]()
        # The baseline stands in the same table, as runs of the kind `no fault`.
        quiet = [
            SeenKind(NO_FAULT, none, none, dict.fromkeys(run.raised, (0, 0.0)))
            for run in self.fault_free
        ]
        groups = by_kind([*quiet, *self.failures], lambda run: run.kind)
        order = dict.fromkeys((NO_FAULT, *KINDS, *groups))  # hybrids last
        return [(kind, groups[kind]) for kind in order if kind in groups]

    def _shares(self, runs: Sequence[SeenKind]) -> Iterable[str]:
        for name in self.patterns:
            expected = "!" if name in runs[0].should else "?" if name in runs[0].may else ""
            yield f"{sum(name in run.delays for run in runs) / len(runs):.2f}{expected}"
        yield f"{sum(not run.delays for run in runs) / len(runs):.2f}"


def score_detectors(fault_set: FaultSet) -> dict[str, DetectorScores]:
    """Score the findings in the traces of a set.

    Runs that are healed are left out: their agents have habits that fail without any fault. So are
    runs without harm.

    Returns:
        The scores by the recipients of the problem: where all agents are given it, each begins a
        lineage of its own, and findings about that are no mistakes, fault or not.

    Raises:
        SettingsError: The set has no labels.
    """
    runs: dict[str, list[SeenKind]] = {}
    for instance in fault_set.labelled():
        label = instance.label()
        if not label.is_healed and label.harm:
            recipients = "several" if label.problems > 1 else label.run["to"]
            runs.setdefault(GIVEN[recipients], []).append(_see_instance(instance, label))
    free = _fault_free(fault_set)
    return {
        among: DetectorScores(
            tuple(runs.get(among, ())),
            tuple(free.get(among, ())),
            fault_set.raised(in_sessions=among == GIVEN["several"]),
        )
        for among in GIVEN.values()
        if among in runs or among in free
    }


def _see_instance(instance: Instance, label: Label) -> SeenKind:
    rows = [KINDS[fault["kind"]] for fault in label.faults if fault["kind"] in KINDS]
    should = frozenset(pattern for row in rows for pattern in row.raises)
    # Where two faults meet, what one should raise is expected, even if the other only may.
    may = frozenset(pattern for row in rows for pattern in row.may_raise) - should
    records = instance.records()
    # What an activation decides is seen at its end, before what it generates is there.
    ends = {row.activation: (row.t, row.ts) for row in records if isinstance(row, End)}
    acts = (
        (injection["activation"], (injection["t"], injection["ts"]))
        for injection in label.injections
    )
    first = min(min(at, ends.get(activation, at)) for activation, at in acts)
    delays = _delays(records, first, is_session=label.problems > 1)
    return SeenKind(label.kind, should, may, delays)


def _fault_free(fault_set: FaultSet) -> dict[str, list[FaultFree]]:
    """The unhealed runs of the baseline, by the recipients of the problem."""
    runs: dict[str, list[FaultFree]] = {}
    for name, endings in fault_set.baseline_endings():
        # The folder's name is all that is known of a configuration: see `Configuration.name`.
        team = re.search(r"-(\d+)x-(one|all)(-\d+p)?(-memory)?$", name)
        if team is None:  # healed, or no configuration of ours
            continue
        for ending in endings:
            # Padded, so that names sort by number; the table strips the space.
            row = FaultFree(f"{team[1]:>2} agents", frozenset(ending.raised), ending.is_bad)
            runs.setdefault(GIVEN["several" if team[3] else team[2]], []).append(row)
    return runs


def _delays(
    run: Iterable[Record], since: tuple[int, float], *, is_session: bool
) -> dict[str, tuple[int, float]]:
    """When each pattern was first raised after some record."""
    t, ts = since
    delays: dict[str, tuple[int, float]] = {}
    for record in run:
        # Earlier findings are no reaction to the fault.
        if isinstance(record, FindingRow) and record.t >= t:
            pattern = pattern_of(record, is_session=is_session)
            delays.setdefault(pattern, (record.t - t, record.ts - ts))
    return delays


def _rate(flags: Sequence[bool]) -> Mean | None:
    """A share with Wilson's interval: with hundreds of runs the usual interval for rare events."""
    if not flags:
        return None
    hits, count = sum(flags), len(flags)
    return Mean(hits / count, *wilson(hits, count), count)


def _spread(values: tuple[float, float, float] | None, form: str) -> str:
    if values is None:
        return "-"
    middle, low, high = (format(value, form) for value in values)
    return f"{middle} [{low}, {high}]"
