"""The acts of faults, and their places in a trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dig.graph.records import Emit, End, Leave, Record, Start

from .injector import NO_TURN, Touch


@dataclass(frozen=True, slots=True)
class Injection:
    """One act of a fault.

    Attributes:
        fault: The fault's place in the list of faults.
        t: The number of the first record that may be another one because of it: the `start` of
            an activation that takes longer, the `emit` of a message that was changed, the `end`
            of an activation that decides otherwise, a `leave`.
        ts: The time of that record, in seconds since the run began.
        agent: The fault's target.
        activation: The activation in which it acted, if in one.
        what: A description of the act.
        event: The generated event that was changed or made, if one was (the first of many).
    """

    fault: int
    t: int
    ts: float
    agent: str
    activation: str | None
    what: str
    event: str | None = None


class Places:
    """Collects the records of a run in which faults may have acted; a sink."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        """Begin with some records."""
        self._starts: dict[str, list[Start]] = defaultdict(list)
        self._leaves: dict[str, list[Leave]] = defaultdict(list)
        self._ends: dict[str, End] = {}
        self._emits: dict[str, Emit] = {}
        for record in records:
            self(record)

    def __call__(self, record: Record) -> None:
        """Take a record into account."""
        if isinstance(record, Start):
            self._starts[record.agent].append(record)
        elif isinstance(record, Leave):
            self._leaves[record.agent].append(record)
        elif isinstance(record, End):
            self._ends[record.activation] = record
        elif isinstance(record, Emit):
            self._emits[record.event] = replace(record, payload=None)

    def of(self, touches: Sequence[Touch]) -> tuple[Injection, ...]:
        """The acts in order; those that had no effect, since the run was over, are left out."""
        gone = {agent: iter(leaves) for agent, leaves in self._leaves.items()}
        found = (
            _at(touch, next(gone[touch.agent])) if touch.turn == NO_TURN else self._in_turn(touch)
            for touch in touches
        )
        return tuple(sorted(filter(None, found), key=lambda one: (one.t, one.fault)))

    def _in_turn(self, touch: Touch) -> Injection | None:
        start = self._starts[touch.agent][touch.turn - 1]
        end = self._ends.get(start.activation)
        if touch.since_start:
            return _at(touch, start, start.activation)
        if end is None:
            return None
        if touch.place is None or touch.place >= len(end.outputs):  # the decision was refused
            return _at(touch, end, start.activation)
        event = end.outputs[touch.place]
        place = end if touch.since_end else self._emits[event]
        return _at(touch, place, start.activation, event)


def _at(
    touch: Touch, record: Record, activation: str | None = None, event: str | None = None
) -> Injection:
    return Injection(touch.fault, record.t, record.ts, touch.agent, activation, touch.what, event)
