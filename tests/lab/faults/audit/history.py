"""Reads a trace: who did what with which event, and where each event was."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Ranges = list[list[int]]


def tidy(ranges: Iterable[Any]) -> Ranges:
    """Ranges in order, with what touches or overlaps put together."""
    result: Ranges = []
    for low, high in sorted(map(list, ranges)):
        if result and result[-1][1] >= low:
            result[-1][1] = max(high, result[-1][1])
        else:
            result.append([low, high])
    return result


def size(ranges: Ranges) -> int:
    return sum(high - low for low, high in ranges)


def both(one: Ranges, other: Ranges) -> int:
    """How many elements are in both."""
    return sum(
        min(high, top) - max(low, bottom)
        for low, high in one
        for bottom, top in other
        if max(low, bottom) < min(high, top)
    )


def referred(rows: list[Row]) -> dict[str, list[int]]:
    """The part that each problem with a reference is about."""
    parts: dict[str, list[int]] = {}
    for row in rows:
        payload = row.get("payload") if row["kind"] == "emit" and row["type"] == "problem" else None
        if isinstance(payload, dict) and ("ref" in payload or row["by"] is None):
            parts.setdefault(payload.get("ref", "whole"), payload["part"])
    return parts


def elements(row: Row, parts: dict[str, list[int]]) -> Ranges:
    """What an event is about."""
    payload = row.get("payload")
    if not isinstance(payload, dict):
        return []
    if row["type"] == "solution" and "answers" in payload:
        return tidy(parts[name] for name in payload["answers"])
    ranges = payload.get("covers") if row["type"] == "solution" else [payload.get("part")]
    if not isinstance(ranges, list):
        return []
    for one in ranges:
        if not (isinstance(one, list) and len(one) == 2 and all(type(x) is int for x in one)):
            return []
        if not 0 <= one[0] < one[1]:
            return []
    return tidy(ranges)


@dataclass
class Event:
    """What became of an event.

    `others`: whether it is about another problem alone; `consumer`: the activation that consumed
    it first; `lost`: the record that first lost it; `is_lost`: whether it is lost in the end.
    """

    id: str
    t: int
    by: str
    sender: str | None
    to: list[str]
    type: str
    final: bool
    work: bool
    payload: Any
    about: Ranges
    others: bool
    flight: set[str]
    copies: set[str] = field(default_factory=set)
    arrivals: list[tuple[str, int]] = field(default_factory=list)
    consumer: str | None = None
    reroutes: list[int] = field(default_factory=list)
    lost: int | None = None
    is_lost: bool = False

    @property
    def tell(self) -> Any:
        """Who is to be told."""
        return self.payload.get("report_to") if isinstance(self.payload, dict) else None


@dataclass
class Turn:
    """What became of an activation: `stop` is the record of its end."""

    id: str
    agent: str
    inputs: list[str]
    t: int
    stop: int | None = None
    fates: dict[str, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    error: Any = None

    def having(self, fate: str) -> list[str]:
        return [event for event, its in self.fates.items() if its == fate]


class History:
    """One trace.

    `rows`: its lines; `events` and `turns` (activations): what became of them, by id, in order.
    `problem`: the range of the one problem of several that is looked at, and of nothing else.
    """

    def __init__(self, text: str, problem: list[int] | None = None) -> None:
        self.problem = problem
        self.rows: list[Row] = [json.loads(line) for line in text.splitlines() if line]
        self._parts = referred(self.rows)
        self.us = [round(row["ts"] * 1_000_000) for row in self.rows]
        self.events: dict[str, Event] = {}
        self.turns: dict[str, Turn] = {}
        self.agents: list[str] = list(self.rows[0]["agents"])
        self.present = set(self.agents)
        self.left: dict[str, int] = {}
        self.findings = [row for row in self.rows if row["kind"] == "finding"]
        self.answer: Event | None = None
        self.outcome: str | None = None
        for row in self.rows:
            getattr(self, "_" + row["kind"], lambda row: None)(row)
        asked = [e.about for e in self.events.values() if not e.by and e.about]
        self.whole: Ranges = [problem] if problem else asked[0] if asked else []
        self.end = len(self.rows) - 1

    @classmethod
    def read(cls, path: Path, problem: list[int] | None = None) -> History:
        return cls(path.read_text("utf-8"), problem)

    def _seen(self, ranges: Ranges) -> Ranges:
        """The part of some ranges that is looked at."""
        if self.problem is None:
            return ranges
        low, high = self.problem
        return tidy([max(a, low), min(b, high)] for a, b in ranges if a < high and low < b)

    def first_at(self, us: int) -> int:
        """The first record that is not before a moment, the last one if there is none."""
        return next((t for t, its in enumerate(self.us) if its >= us), self.end)

    def behind(self, name: str) -> set[str]:
        """The events that are behind an event."""
        found: set[str] = set()
        todo = [name]
        while todo:
            one = todo.pop()
            if one not in found:
                found.add(one)
                turn = self.turns.get(self.events[one].by)
                todo += turn.having("consume") if turn else []
        return found

    # --- rows ---

    def _emit(self, row: Row) -> None:
        turn, final = self.turns.get(row["by"]), row.get("final", False)
        said = elements(row, self._parts)
        about = self._seen(said)
        event = self.events[row["event"]] = Event(
            id=row["event"],
            t=row["t"],
            by=row["by"] or "",
            sender=turn.agent if turn else None,
            to=row["to"],
            type=row["type"],
            final=final,
            work=not final and row["by"] != "system" and row["type"] != "notice",
            payload=row.get("payload"),
            about=about,
            others=bool(said) and not about,
            flight=set() if final else self.present.intersection(row["to"]),
        )
        self._look(event, row["t"])

    def _deliver(self, row: Row) -> None:
        event = self.events[row["event"]]
        if row["to"] is None:
            payload = event.payload if isinstance(event.payload, dict) else {}
            if self.problem is None or payload.get("whole") == self.problem:
                self.answer = event
            event.flight.clear()
            return
        event.flight.discard(row["to"])
        event.copies.add(row["to"])
        event.arrivals.append((row["to"], row["t"]))
        self._look(event, row["t"])

    def _start(self, row: Row) -> None:
        self.turns[row["activation"]] = Turn(
            row["activation"], row["agent"], row["inputs"], row["t"]
        )

    def _end(self, row: Row) -> None:
        turn = self.turns[row["activation"]]
        turn.stop, turn.outputs, turn.error = row["t"], row["outputs"], row.get("error")
        for one in row["fates"]:
            event, fate = self.events[one["event"]], one["fate"]
            turn.fates[event.id] = fate
            if fate == "consume":
                event.consumer = event.consumer or turn.id
            if fate == "reroute":
                event.reroutes.append(row["t"])
            if fate != "delay":
                event.copies.discard(turn.agent)
            if fate == "reroute":
                event.flight |= self.present.intersection(one["to"]) - event.copies
            self._look(event, row["t"])

    def _redirect(self, row: Row) -> None:
        event = self.events[row["event"]]
        event.flight = self.present.intersection(row["to"]) - event.copies
        self._look(event, row["t"])

    def _expire(self, row: Row) -> None:
        event = self.events[row["event"]]
        event.flight.clear()
        self._look(event, row["t"])

    def _join(self, row: Row) -> None:
        self.present.add(row["agent"])

    def _leave(self, row: Row) -> None:
        self.present.discard(row["agent"])
        self.left[row["agent"]] = row["t"]
        for event in self.events.values():
            if row["agent"] in event.copies | event.flight:
                event.copies.discard(row["agent"])
                event.flight.discard(row["agent"])
                self._look(event, row["t"])

    def _finish(self, row: Row) -> None:
        self.outcome = row["outcome"]

    def _look(self, event: Event, t: int) -> None:
        """Whether an event is lost now."""
        if not event.work or event.consumer or event.copies or event.flight:
            event.is_lost = False
        else:
            event.is_lost = True
            event.lost = t if event.lost is None else event.lost
