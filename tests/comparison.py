"""What the detectors find in a trace, beside what the oracle finds in it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from dig.detectors import standard
from dig.detectors.mended import Mending
from dig.detectors.protocols import Detector
from dig.detectors.watch import Watch
from dig.graph.codec import decode

from .features import features
from .oracle import Row, State
from .oracle_findings import PATTERNS, kind_of, ordered
from .oracle_mended import mended_of
from .random_traces import random_trace

LENGTHS = [12, 25, 40, 60]


@dataclass(frozen=True)
class Comparison:
    """One trace, what the oracle finds in it, and what the detectors find or fail with.

    Attributes:
        session: Whether it is a session.
        expected: The findings of the oracle, as `digmon check` prints them, and whether each was
            mended.
        found: Those of the detectors.
        fault: What a detector or the graph raised, if one did.
        features: The corners that the trace visits (`FEATURES`).
    """

    session: bool
    expected: list[Row]
    found: list[Row]
    fault: str | None
    features: list[str]

    @property
    def agree(self) -> bool:
        """Whether the findings are equal: evidence, times and order included."""
        return self.fault is None and self.found == self.expected

    @property
    def kinds(self) -> Iterator[str]:
        """The pattern of each finding, with its stage."""
        return map(kind_of, self.expected)

    def difference(self) -> str:
        """The first place at which they are not equal, for people."""
        if self.fault is not None:
            return self.fault
        for place in range(max(len(self.expected), len(self.found))):
            mine, its = self.expected[place : place + 1], self.found[place : place + 1]
            if mine != its:
                return f"finding {place}\n  by the oracle:   {mine}\n  by the detectors: {its}"
        return "none"


def numbered_trace(number: int) -> list[Row]:
    """The random trace with this number, the same on every machine."""
    rng = random.Random(number)
    return random_trace(rng, length=rng.choice(LENGTHS))


def detectors_with_an_oracle() -> list[Detector]:
    """The standard detectors of the patterns that the oracle has; a test says that it has all."""
    return [detector for detector in standard() if detector.pattern in PATTERNS]


def find(rows: list[Row], detectors: list[Detector] | None = None) -> list[Row]:
    """What some detectors, by default those with an oracle, find, row after row."""
    found, _ = _find(rows, detectors or detectors_with_an_oracle())
    return found


def _find(rows: list[Row], detectors: list[Detector]) -> tuple[list[Row], list[bool]]:
    """The findings, and whether each was mended."""
    faults: list[tuple[str, str]] = []
    watch = Watch(detectors, on_fault=lambda *fault: faults.append(fault))
    mending = Mending()
    found: list[Row] = []
    for one in rows:
        record = decode(one)
        before = watch.advance(record.us)
        for finding in before:
            mending.add(watch.graph, finding)
        watch.graph.apply(record)
        mending.look(watch.graph, record)
        raised = watch.look(record)
        for finding in raised:
            mending.add(watch.graph, finding)
        found += [finding.row() for finding in before + raised]
    assert faults == []
    return found, mending.mended


def compare(rows: list[Row]) -> Comparison:
    """Has both look at a trace."""
    states = State.each(rows)
    theirs = ordered(states)
    findings = [one.as_json() for one in theirs]
    expected = _with(findings, mended_of(rows, states, theirs))
    found, fault = [], None
    try:
        found = _with(*_find(rows, detectors_with_an_oracle()))
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
    return Comparison(states[-1].session, expected, found, fault, features(states, findings))


def _with(findings: list[Row], mended: list[bool]) -> list[Row]:
    return [{**row, "mended": one} for row, one in zip(findings, mended, strict=True)]
