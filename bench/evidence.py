"""What a finding costs for each item of its evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from time import thread_time_ns
from typing import Any

from dig.detectors import standard
from dig.detectors.finding import MOST_EVIDENCE
from dig.detectors.watch import Watch
from dig.graph.records import Deliver, Emit, End, Fate, Record, Run, Start

from .measure import Table, claim

SIZES = (10, 100, 1_000, 10_000)
ROUNDS = 3


class Script:
    """A trace, written record by record; times follow from the number of the record."""

    def __init__(self, *agents: str) -> None:
        self.records: list[Record] = [Run(0, 0, "bench", agents)]

    def add(self, kind: Callable[..., Record], *fields: Any) -> None:
        t = len(self.records)
        self.records.append(kind(t, t, *fields))

    def problem(self, name: str, *to: str) -> None:
        """An event from outside, delivered."""
        self.event(name, None, to)

    def event(self, name: str, by: str | None, to: Iterable[str], final: bool = False) -> None:
        self.add(Emit, name, by, tuple(to), "message", final)
        for agent in to:
            self.add(Deliver, name, agent)

    def activation(self, name: str, agent: str, inputs: Iterable[str], *outputs: str) -> None:
        """An activation that consumes all of its inputs; its outputs are still to be emitted."""
        inputs = tuple(inputs)
        self.add(Start, name, agent, inputs)
        self.add(End, name, tuple(Fate(event, "consume") for event in inputs), outputs)

    def split(self, n: int, *to: str) -> list[str]:
        """A problem that agent `a` has split into n parts, all delivered."""
        self.problem("e0", "a")
        parts = [f"part-{i}" for i in range(n)]
        self.activation("split", "a", ["e0"], *parts, "rest")
        for part in parts:
            self.add(Emit, part, "split", to, "message")
        self.event("rest", "split", ["a"])
        for part in parts:
            for agent in to:
                self.add(Deliver, part, agent)
        return parts

    def answered(self, n: int, to: str) -> list[str]:
        """Problems that have been answered by an activation each, the answers delivered."""
        for i in range(n):
            self.problem(f"question-{i}", "b")
            self.activation(f"answer-{i}", "b", [f"question-{i}"], f"answered-{i}")
            self.event(f"answered-{i}", f"answer-{i}", [to])
        return [f"answered-{i}" for i in range(n)]


Case = Callable[[int], tuple[Script, int | None]]
"""A trace whose last record raises a finding with n items; or the moment at which it comes due."""


def _unresolved(n: int) -> tuple[Script, None]:
    script = Script("a", "b", "c")
    script.split(n, "c")
    script.activation("submit", "a", ["rest"], "final")
    script.event("final", "submit", (), True)
    return script, None


def _uncovered(n: int) -> tuple[Script, None]:
    script = Script("a", "b", "c")
    script.activation("lose", "c", script.split(n, "c"))
    script.activation("submit", "a", ["rest"], "final")
    script.event("final", "submit", (), True)
    return script, None


def _waiting(n: int) -> tuple[Script, int]:
    script = Script("a", "b")
    script.split(n, "b")
    return script, 60_000_000


def _orphaned(n: int) -> tuple[Script, int]:
    script = Script("a", "b")
    script.split(n)
    return script, 20_000_000


def _beside_one_lineage(n: int) -> tuple[Script, None]:
    script = Script("a", "b", "c")
    script.split(n, "c")
    script.answered(1, "c")
    return script, None


def _beside_many_lineages(n: int) -> tuple[Script, None]:
    script = Script("a", "b", "c")
    script.answered(n + 1, "c")
    return script, None


def _put_together(n: int) -> tuple[Script, None]:
    script = Script("a", "b", "c")
    inputs = script.split(n, "c") + script.answered(1, "c")
    script.activation("merge", "c", inputs)
    return script, None


def _solved_again(n: int) -> tuple[Script, None]:
    script = Script("a", "b", "c")
    parts = script.split(n, "b", "c")
    script.activation("first", "b", parts, "one")
    script.event("one", "first", ())
    script.activation("again", "c", parts, "two")
    return script, None


def _passed_on(n: int) -> tuple[Script, None]:
    script = Script("a", "b")
    script.problem("e0", "a")
    times = 4
    while times < n:  # raised at doublings
        times *= 2
    for i in range(times):
        agent, other = "ab"[i % 2], "ba"[i % 2]
        script.add(Start, f"pass-{i}", agent, ("e0",))
        script.add(End, f"pass-{i}", (Fate("e0", "reroute", (other,)),))
        script.add(Deliver, "e0", other)
    script.records.pop()
    return script, None


CASES: dict[str, Case] = {
    "ET: unresolved events": _unresolved,
    "ET: uncovered events": _uncovered,
    "OE: orphans, a finding each": _orphaned,
    "DL: waiting events": _waiting,
    "ER: agents on the path": _passed_on,
    "CLA at delivery: events of one lineage": _beside_one_lineage,
    "CLA at delivery: events of many lineages": _beside_many_lineages,
    "CLA at consumption: pairs": _put_together,
    "RSP: shared events": _solved_again,
}


ALL_THE_WAY = (_beside_many_lineages,)
"""Their findings come at each step, so that a trace up to the last has n * n / 2 items."""


def raised(case: Case, n: int) -> float:
    """Microseconds of CPU for the last record of a case, or for the clock."""
    script, due = case(n)
    watch = Watch(standard())
    for record in script.records if due else script.records[:-1]:
        watch.feed(record)
    start = thread_time_ns()
    found = watch.advance(due) if due else watch.feed(script.records[-1])
    ns = thread_time_ns() - start
    assert sum(_leaves(finding.evidence) for finding in found) >= min(n, MOST_EVIDENCE)
    return ns / 1e3


def _leaves(evidence: Any) -> int:
    if isinstance(evidence, dict):
        evidence = list(evidence.values())
    return sum(map(_leaves, evidence)) if isinstance(evidence, list) else 1


def evidence(quick: bool = False) -> Table:
    """Microseconds an item of evidence, at four lengths of its list."""
    rows, worst = [], 0.0
    for name, case in CASES.items():
        sizes = SIZES[:3] if quick or case in ALL_THE_WAY else SIZES
        each = [median(raised(case, n) for _ in range(ROUNDS)) / n for n in sizes]
        worst = max(worst, each[-1] / each[1])
        shown = [f"{us:.2f}" for us in each]
        rows.append((name, *shown, *["-"] * (len(SIZES) - len(shown))))
    note = claim("worst of an item of the most / one of 100", worst, 4)
    columns = ("us/item", *(f"{n:,} items" for n in SIZES))
    return Table("Findings: what an item of evidence costs (Watch.feed)", columns, rows, note)
