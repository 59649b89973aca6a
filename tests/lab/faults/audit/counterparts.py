"""Counterparts of a trace's events, activations and findings in its twin."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .history import Event, History, Turn


class Counterparts:
    """What corresponds to what; `first` is the first record that differs."""

    def __init__(self, trace: History, twin: History) -> None:
        self.trace, self.twin = trace, twin
        same = [a == b for a, b in zip(trace.rows, twin.rows, strict=False)]
        self.first = same.index(False) if False in same else len(same)
        self.of: dict[str, str] = {}
        named = (self._numbered(full=True), self._numbered(full=False))
        for row in trace.rows:
            if row["kind"] == "start":
                self._keep(row["activation"], self._turn(trace.turns[row["activation"]]))
            elif row["kind"] == "emit":
                event = trace.events[row["event"]]
                by_name = [names.get(mine[event.id]) for mine, names in named]
                candidates = [self._placed(event), *by_name]
                if event.t < self.first:
                    candidates = [event.id]
                self._keep(event.id, next((one for one in candidates if one), None))

    def _keep(self, name: str, same: str | None) -> None:
        if same:
            self.of[name] = same

    def _turn(self, turn: Turn) -> str | None:
        if turn.t < self.first:
            return turn.id
        wanted = {self.of.get(one) for one in turn.inputs}
        for other in self.twin.turns.values():
            if other.agent == turn.agent and set(other.inputs) == wanted:
                return other.id
        return None

    def _placed(self, event: Event) -> str | None:
        turn, other = self.trace.turns.get(event.by), self.twin.turns.get(self.of.get(event.by, ""))
        if not turn or not other or len(turn.outputs) != len(other.outputs):
            return None
        name = other.outputs[turn.outputs.index(event.id)]
        return name if self.twin.events[name].type == event.type else None

    def _numbered(self, *, full: bool) -> tuple[dict[str, Any], dict[Any, str]]:
        """For the trace each event's key and number; for the twin the event of each of these."""
        mine = dict(_keys(self.trace, full))
        return mine, {key: name for name, key in _keys(self.twin, full)}

    def finding_is_new(self, row: dict[str, Any]) -> bool:
        """Whether the twin has no finding that corresponds to one of the trace."""
        subject = {
            key: self.of.get(value) if key == "event" else value
            for key, value in row["subject"].items()
        }
        return not any(
            other["pattern"] == row["pattern"] and other["subject"] == subject
            for other in self.twin.findings
        )


def _keys(history: History, full: bool) -> list[tuple[str, Any]]:
    seen: Counter[Any] = Counter()
    keys = []
    for event in history.events.values():
        key = (event.type, event.final, str(event.about), event.sender if full else None)
        seen[key] += 1
        keys.append((event.id, (key, seen[key])))
    return keys
