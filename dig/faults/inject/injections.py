"""The acts of faults, with places in a trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dig.graph.records import Emit, End, Leave, Record, Start

from .injector import NO_TURN, Act


@dataclass(frozen=True, slots=True)
class Injection:
    """An act of a fault, at a place in the trace.

    Attributes:
        fault: The fault's place in the list of faults.
        t: The number of the first record that the act may have changed: the `start` of an
            activation that takes longer, the `emit` of a changed message, the `end` of an
            activation with another decision, a `leave`.
        ts: The time of that record, in seconds since the run began.
        agent: The target.
        activation: The activation in which the fault acted, if in one.
        what: A description of the act.
        event: The generated event that was changed or made, if there is one (the first of many).
    """

    fault: int
    t: int
    ts: float
    agent: str
    activation: str | None
    what: str
    event: str | None = None


class ActLocator:
    """A sink that locates the acts of faults among the records of a run."""

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

    def locate(self, acts: Sequence[Act]) -> tuple[Injection, ...]:
        """Locate acts, in order; leaves out acts without effect, since the run was over."""
        # The n-th act outside activations is the agent's n-th leave.
        leaves = {agent: iter(records) for agent, records in self._leaves.items()}
        injections = (
            _at(act, next(leaves[act.agent])) if act.turn == NO_TURN else self._in_turn(act)
            for act in acts
        )
        return tuple(sorted(filter(None, injections), key=lambda act: (act.t, act.fault)))

    def _in_turn(self, act: Act) -> Injection | None:
        start = self._starts[act.agent][act.turn - 1]
        end = self._ends.get(start.activation)
        if act.since_start:
            return _at(act, start, start.activation)
        if end is None:
            return None
        if act.place is None or act.place >= len(end.outputs):  # the decision was refused
            return _at(act, end, start.activation)
        event = end.outputs[act.place]
        return _at(act, end if act.since_end else self._emits[event], start.activation, event)


def _at(
    act: Act, record: Record, activation: str | None = None, event: str | None = None
) -> Injection:
    return Injection(act.fault, record.t, record.ts, act.agent, activation, act.what, event)
