"""The counterparts in the twin for events and activations of a faulted run.

Up to the first record that differs, the two runs are the same, ids too. Afterwards an activation
is known by its agent and by what was in front of it. An event is known by its place among the
outputs of its activation, if that has a counterpart with as many; else by what it is: the n-th of
those by the same sender, of the same type and about the same elements, or by any sender.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from dig.graph.records import Record
from dig.tasks.accounting import TaskParts
from dig.traces.run import RecordedActivation, RecordedEvent

_Key = tuple[Hashable, ...]


class Matching:
    """A faulted run and the twin, with the counterparts.

    Attributes:
        faulted: The faulted run; twin: its twin.
        faulted_parts, twin_parts: The parts of the task in each.
        first: The first record that differs; the length of the shorter run, if none does.
    """

    def __init__(self, faulted: TaskParts, twin: TaskParts) -> None:
        """Match all events and activations, from the beginning on."""
        self.faulted, self.twin = faulted.run, twin.run
        self.faulted_parts, self.twin_parts = faulted, twin
        self.first = first_difference(self.faulted.records, self.twin.records)
        self._events: dict[str, str] = {}
        self._activations: dict[str, str] = {}
        self._numbered = _number(twin, _exact), _number(twin, _loose)
        self._counts: Counter[_Key] = Counter()
        self._by_inputs: dict[_Key, str] = {}
        for other in self.twin.activations.values():
            # The first activation with these inputs; a further one only repeats it.
            self._by_inputs.setdefault((other.agent, frozenset(other.inputs)), other.id)
        items: list[RecordedEvent | RecordedActivation] = [
            *self.faulted.events.values(),
            *self.faulted.activations.values(),
        ]
        # In order of time: an activation is matched by its inputs, an output by its activation.
        for item in sorted(items, key=lambda item: item.t):
            if isinstance(item, RecordedEvent):
                names, same = self._events, self._of_event(item)
            else:
                names, same = self._activations, self._of_activation(item)
            if same is not None:
                names[item.id] = same

    def event(self, name: str) -> str | None:
        """The counterpart in the twin of an event."""
        return self._events.get(name)

    def activation(self, name: str) -> str | None:
        """The counterpart in the twin of an activation."""
        return self._activations.get(name)

    def _of_activation(self, activation: RecordedActivation) -> str | None:
        # Before the first difference, ids are the same in both runs.
        if activation.t < self.first:
            return activation.id
        inputs = frozenset(map(self.event, activation.inputs))
        return self._by_inputs.get((activation.agent, inputs))

    def _of_event(self, event: RecordedEvent) -> str | None:
        keys = _exact(self.faulted_parts, event), _loose(self.faulted_parts, event)
        # Counted before the shortcut: the n-th event here is held against the n-th there.
        self._counts.update(keys)
        if event.t < self.first:
            return event.id
        by_what = (
            numbered.get((key, self._counts[key]))
            for numbered, key in zip(self._numbered, keys, strict=True)
        )
        return self._by_place(event) or next(filter(None, by_what), None)

    def _by_place(self, event: RecordedEvent) -> str | None:
        same = self._activations.get(event.by or "")
        if same is None:
            return None
        mine = self.faulted.activations[event.by or ""].outputs
        twins = self.twin.activations[same].outputs
        # With more or fewer outputs, a place among them means nothing.
        other = twins[mine.index(event.id)] if len(mine) == len(twins) else None
        return other if other and self.twin.events[other].type == event.type else None


def first_difference(records: Sequence[Record], twin: Sequence[Record]) -> int:
    """The number of the first different record of two runs; else the length of the shorter."""
    pairs = zip(records, twin, strict=False)
    return next((t for t, (a, b) in enumerate(pairs) if a != b), min(len(records), len(twin)))


def _exact(parts: TaskParts, event: RecordedEvent) -> _Key:
    return event.agent, event.type, event.final, parts.about(event)


def _loose(parts: TaskParts, event: RecordedEvent) -> _Key:
    return event.type, event.final, parts.about(event)


def _number(
    parts: TaskParts, key: Callable[[TaskParts, RecordedEvent], _Key]
) -> dict[tuple[_Key, int], str]:
    """The events of a run, by a key and a count of events with the same key."""
    counts: Counter[_Key] = Counter()
    names: dict[tuple[_Key, int], str] = {}
    for event in parts.run.events.values():
        its = key(parts, event)
        counts[its] += 1
        names[its, counts[its]] = event.id
    return names
