"""What the detectors find in random traces is what the definition says, and in its order.

A pattern is compared as soon as `standard()` has a detector for it.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dig.codec import decode
from dig.detectors import standard
from dig.findings import Finding
from dig.watch import Watch

from .histories import arrive, deliver, emit, end, row, start, trace, turn
from .oracle import Row
from .oracle_findings import PATTERNS, findings
from .random_traces import random_trace
from .strategies import traces

COVERED = [p for p in PATTERNS if p in {detector.pattern for detector in standard()}]

VARIANTS: list[dict[str, bool]] = [
    {},  # all left to chance
    {"session": False, "memory": False},
    {"session": False, "memory": True},
    {"session": True, "memory": False},
    {"session": True, "memory": True},
    {"coverage": False},
]
LENGTHS = [12, 25, 40, 60]
ROUNDS = 15


@dataclass(frozen=True)
class Case:
    """One trace, what the oracle finds in it, and what the detectors find."""

    name: str
    session: bool
    expected: list[Row]
    found: list[Row]


def find(rows: list[Row]) -> list[Row]:
    """What the standard detectors find, row after row."""
    faults: list[tuple[str, str]] = []
    watch = Watch(standard(), on_fault=lambda *fault: faults.append(fault))
    found: list[Finding] = []
    for one in rows:
        found += watch.feed(decode(one))
    assert faults == []
    return [finding.row() for finding in found]


def expected(rows: list[Row]) -> list[Row]:
    return findings(rows, patterns=COVERED)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Traces of all variants and lengths, the same on every machine."""
    made = []
    for seed in range(ROUNDS):
        for number, variant in enumerate(VARIANTS):
            for length in LENGTHS:
                name = f"variant {number}, length {length}, seed {seed}"
                rows = random_trace(random.Random(name), length=length, **variant)
                session = rows[0].get("session", False)
                made.append(Case(name, session, expected(rows), find(rows)))
    return made


def only(rows: list[Row], pattern: str) -> list[Row]:
    return [one for one in rows if one["pattern"] == pattern]


@pytest.mark.parametrize("pattern", COVERED)
def test_a_pattern_is_found_where_it_is_and_nowhere_else(pattern: str, cases: list[Case]) -> None:
    """Subject, stage, evidence and both times of each finding are the oracle's."""
    for case in cases:
        assert only(case.found, pattern) == only(case.expected, pattern), case.name


def test_findings_of_all_patterns_come_in_the_order_of_the_oracle(cases: list[Case]) -> None:
    """By moment, then by record, then in the order of the table, then by subject."""
    for case in cases:
        assert case.found == case.expected, case.name


@pytest.mark.parametrize("pattern", COVERED)
@pytest.mark.parametrize("session", [False, True], ids=["run", "session"])
def test_the_traces_hold_the_pattern_often(pattern: str, session: bool, cases: list[Case]) -> None:
    """The comparison is about something: no pattern is rare in the traces compared."""
    raised = Counter(
        one["pattern"] for case in cases if case.session == session for one in case.expected
    )
    assert raised[pattern] >= 10


def test_evidence_holds_what_random_traces_should_reach(cases: list[Case]) -> None:
    """Both lists of ET are filled at times, and deadlocks have more than one agent in them."""
    found: list[Any] = [one["evidence"] for case in cases for one in case.found]
    assert sum(bool(e.get("unresolved")) for e in found) > 10
    assert sum(bool(e.get("uncovered")) for e in found) > 10
    assert sum(len(e.get("waiting", ())) > 1 for e in found) > 10


@given(traces())
def test_findings_equal_the_oracles_in_traces_drawn_anew(rows: list[Row]) -> None:
    """Like above, over traces that shrink; `--hypothesis-profile=dev` looks at a thousand."""
    assert find(rows) == expected(rows)


@settings(max_examples=30)
@given(traces(most=40), st.randoms(use_true_random=False))
def test_what_is_found_does_not_depend_on_when_the_clock_is_looked_at(
    rows: list[Row], rng: random.Random
) -> None:
    """A host may look at the clock between two records as often as it likes."""
    watch = Watch(standard())
    found: list[Finding] = []
    for one in rows:
        record = decode(one)
        for us in sorted(rng.randint(watch.graph.now, record.us) for _ in range(2)):
            found += watch.advance(us)
        found += watch.feed(record)
    assert [finding.row() for finding in found] == find(rows)


def test_reading_a_notice_is_work_on_the_problem_behind_it() -> None:
    """A deadlock of a problem waits for whoever looks at anything that concerns it."""
    rows = trace(
        arrive(0, "e", None, "a"),
        turn(1, "v", "a", "x n", e="consume"),
        [emit(1, "x", "v", "b"), emit(1, "n", "v", "c", "notice")],
        [deliver(1, "x", "b"), deliver(1, "n", "c")],
        start(2, "w", "c", "n"),
        row(5, "incident", what="x", detail=None),
        end(6, "w", n="delay"),
        limits={"dl_window_s": 2},
        session=True,
    )
    assert find(rows) == expected(rows)
    assert [(one["pattern"], one["ts"]) for one in find(rows)] == [("DL", 6.0)]


@pytest.mark.parametrize("session", [False, True])
def test_who_leaves_holds_nothing_back_any_more(session: bool) -> None:
    """An activation that was cut off is not in progress: the deadlock is raised at the leave."""
    rows = trace(
        arrive(0, "e", None, "ab"),
        start(1, "v", "a", "e"),
        row(4, "leave", agent="a"),
        row(9, "incident", what="x", detail=None),
        limits={"dl_window_s": 2},
        session=session,
    )
    assert find(rows) == expected(rows)
    assert [(one["pattern"], one["t"], one["ts"]) for one in find(rows)] == [("DL", 5, 4.0)]
