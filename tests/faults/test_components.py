"""Which components a record is about."""

from __future__ import annotations

from dig.diagnosis.components import blamed_agents, record_components
from dig.graph.records import (
    Deliver,
    Emit,
    End,
    Fate,
    FindingRow,
    Finish,
    Leave,
    Record,
    Redirect,
    Run,
    Start,
)
from dig.traces.run import RecordedRun

RUN: list[Record] = [
    Run(0, 0, "r", ("a", "b")),
    Emit(1, 0, "p", None, ("a",), "problem"),
    Deliver(2, 0, "p", "a"),
    Start(3, 0, "v", "a", ("p",)),
    End(4, 1, "v", (Fate("p", "consume"),), ("q", "n")),
    Emit(5, 1, "q", "v", ("b",), "problem"),
    Emit(6, 1, "n", "v", ("b",), "notice"),
    Deliver(7, 1, "q", "b"),
    Leave(8, 2, "b"),
    FindingRow(9, 3, "OE", None, {"event": "q"}, {"cause": "left"}),
    Redirect(10, 3, "q", ("a",)),
    FindingRow(11, 3, "DL", None, {}, {"waiting": {"a": ["q"]}}),
    Start(12, 4, "w", "a", ("q",)),
    End(13, 5, "w", (Fate("q", "reroute", ("b",)),), ("f",)),
    Emit(14, 5, "f", "w", (), "solution", final=True),
    Deliver(15, 5, "f", None),
    Finish(16, 5, "submitted"),
]


def test_a_record_is_about_those_who_do_it_and_those_it_reaches() -> None:
    """Worked out by hand, record by record."""
    assert [set(some) for some in record_components(RecordedRun(RUN))] == [
        set(),
        {"a", "task"},
        {"a", "task"},
        {"a"},
        {"a"},
        {"a", "b", "task"},
        {"a", "b"},
        {"a", "b", "task"},
        {"b"},
        {"a", "outcome"},
        {"a", "task"},
        {"a", "outcome"},
        {"a"},
        {"a", "b"},
        {"a", "task", "outcome"},
        {"a", "task", "outcome"},
        {"outcome"},
    ]


def test_a_finding_blames_whom_its_subject_names_or_else_its_evidence() -> None:
    """The generator of a lost event; whoever holds what waits."""
    assert [(row.pattern, agents) for row, agents in blamed_agents(RecordedRun(RUN))] == [
        ("OE", ("a",)),
        ("DL", ("a",)),
    ]
