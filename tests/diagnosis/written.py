"""Traces that are written by hand: a few acts of agents, as records that keep all rules."""

from __future__ import annotations

from typing import Any

from dig.diagnosis.case import Case
from dig.diagnosis.signs.analysis import RunAnalysis, Sign, UsualTeam
from dig.diagnosis.signs.table import find_signs, learn_habits
from dig.graph.records import (
    Deliver,
    Emit,
    End,
    Expire,
    Fate,
    Finish,
    Leave,
    Outcome,
    Record,
    Run,
    Start,
)
from dig.tasks.accounting import PAYLOADS
from dig.traces.run import RecordedRun

WHOLE = (0, 20)


def part(start: int, stop: int, **more: Any) -> dict[str, Any]:
    """The payload of a problem, or of raw data."""
    return {"part": [start, stop], **more}


def counts(start: int, stop: int, number: float = 1.0, to: str = "a") -> dict[str, Any]:
    """The payload of a solution, with an amount for each element."""
    whole = round((stop - start) * number * 100)
    return {"covers": [[start, stop]], "counts": {"x": whole}, "report_to": to}


class Written:
    """A trace as it is written; each act takes a second unless it says otherwise."""

    def __init__(self, *agents: str, whole: tuple[int, int] = WHOLE) -> None:
        """Begin with a problem for the first agent, `p`."""
        self.records: list[Record] = [Run(0, 0, "r", agents or ("a", "b", "c"))]
        self.us = 0
        self.before: dict[str, list[str]] = {name: [] for name in agents or ("a", "b", "c")}
        self.acts = 0
        self.say("p", None, "problem", part(*whole), next(iter(self.before)))

    def add(self, kind: type[Record], *values: Any, **more: Any) -> None:
        self.records.append(kind(len(self.records), self.us, *values, **more))

    def say(
        self, event: str, by: str | None, kind: str, payload: Any, *to: str,
        final: bool = False, arrives: bool = True, after_s: float = 0.0,
    ) -> None:  # fmt: skip
        self.add(Emit, event, by, to, kind, final, payload)
        if arrives and not after_s:
            self.deliver(event, *to)

    def deliver(self, event: str, *to: str, after_s: float = 0.0) -> None:
        self.us += round(after_s * 1_000_000)
        for name in to:
            if name in self.before:
                self.before[name].append(event)
                self.add(Deliver, event, name)

    def act(
        self, agent: str, *said: tuple[Any, ...], lasts: float = 1.0, error: str | None = None,
        **fates: str,
    ) -> str:  # fmt: skip
        """An activation: what it says is `(event, type, payload, recipients...)`."""
        self.acts += 1
        name, seen = f"v{self.acts}", tuple(self.before[agent])
        self.add(Start, name, agent, seen)
        self.us += round(lasts * 1_000_000)
        known: Any = {one: fates.get(one, "consume") for one in seen} if error is None else {}
        gone = [one for one, fate in known.items() if fate != "delay"]
        self.before[agent] = [one for one in seen if one not in gone]
        to_c = {one: ("c",) for one in gone if known[one] == "reroute"}
        rows = tuple(Fate(one, known[one], to_c.get(one, ())) for one in gone)
        ids = tuple(str(one[0]) for one in said)
        self.add(End, name, rows, ids, None, error)
        for event, kind, payload, *to in said:
            final = kind == "answer"
            self.add(Emit, event, name, tuple(to), "solution" if final else kind, final, payload)
        for event, kind, _, *to in said:
            if kind == "answer":
                self.add(Deliver, event, None)
            elif kind != "lost":
                self.deliver(event, *to)
        for one in to_c:
            self.deliver(one, "c")
        return name

    def leave(self, agent: str) -> None:
        del self.before[agent]
        self.add(Leave, agent)

    def expire(self, event: str) -> None:
        self.add(Expire, event)

    def finish(self, outcome: Outcome = "stopped") -> Written:
        self.add(Finish, outcome)
        return self

    @property
    def run(self) -> RecordedRun:
        return RecordedRun(self.records)

    def analysis(self, usual: UsualTeam | None = None, accounting: Any = PAYLOADS) -> RunAnalysis:
        return RunAnalysis(self.run, accounting, usual)

    def case(self, usual: UsualTeam) -> Case:
        return Case("written", "trace", self.run, (), (), usual=usual)

    def signs(self, usual: UsualTeam | None = None) -> list[Sign]:
        return find_signs(self.analysis(usual))


def good(number: float = 1.0) -> Written:
    """A run that goes well: `a` splits, `b` and `c` read and count, `a` answers."""
    trace = Written()
    trace.act("a", ("q1", "problem", part(0, 10), "b"), ("q2", "problem", part(10, 20), "c"))
    for agent, problem, (start, stop) in (("b", "1", (0, 10)), ("c", "2", (10, 20))):
        trace.act(agent, (f"d{problem}", "raw_data", part(start, stop, data="x" * 10), agent))
        trace.act(agent, (f"s{problem}", "solution", counts(start, stop, number), "a"))
        if problem == "1":
            trace.act("a", s1="delay")
    trace.act("a", ("f", "answer", counts(*WHOLE, number)))
    return trace.finish("submitted")


def usual() -> UsualTeam:
    """What twenty good runs do."""
    return learn_habits([good(0.9 + number / 100).records for number in range(20)], PAYLOADS)
