"""Which event and which activation of the twin corresponds to one of the faulted run.

Up to the first record that differs, the two runs are the same, ids too. Afterwards an event is
known by what it is: the n-th of those by the same sender, of the same type and about the same
elements, or else the n-th by whomever. An activation is known by its agent and by what was in
front of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from .course import Activation, Course, Event

_Key = tuple[Hashable, ...]


class Matching:
    """Counterparts in the twin.

    Attributes:
        first: The first record that differs; the length of the shorter run, if none does.
    """

    def __init__(self, faulted: Course, twin: Course) -> None:
        """Match all that can be matched."""
        self.first = first_difference(faulted, twin)
        self._events = dict(_by_what_they_are(faulted, twin, self.first))
        self._activations = dict(self._by_inputs(faulted, twin))

    def event(self, name: str) -> str | None:
        """The event of the twin that corresponds to one of the faulted run."""
        return self._events.get(name)

    def activation(self, name: str) -> str | None:
        """The activation of the twin that corresponds to one of the faulted run."""
        return self._activations.get(name)

    def _by_inputs(self, faulted: Course, twin: Course) -> Iterator[tuple[str, str]]:
        known: dict[_Key, str] = {}
        for other in twin.activations.values():
            known.setdefault((other.agent, frozenset(other.inputs)), other.id)
        for one in faulted.activations.values():
            same = one.id if one.t < self.first else known.get(self._key(one))
            if same is not None:
                yield one.id, same

    def _key(self, activation: Activation) -> _Key:
        return activation.agent, frozenset(map(self.event, activation.inputs))


def first_difference(faulted: Course, twin: Course) -> int:
    """The number of the first record that is not the same in both runs."""
    pairs = zip(faulted.records, twin.records, strict=False)
    shorter = min(len(faulted.records), len(twin.records))
    return next((t for t, (a, b) in enumerate(pairs) if a != b), shorter)


def _by_what_they_are(faulted: Course, twin: Course, first: int) -> Iterator[tuple[str, str]]:
    exact, loose = _Numbered(twin, _exact), _Numbered(twin, _loose)
    seen: Counter[_Key] = Counter()
    for event in faulted.events.values():
        for key in (_exact(event), _loose(event)):
            seen[key] += 1
        same = event.id if event.t < first else None
        same = same or exact.get(_exact(event), seen[_exact(event)])
        same = same or loose.get(_loose(event), seen[_loose(event)])
        if same is not None:
            yield event.id, same


def _exact(event: Event) -> _Key:
    return event.sender, event.type, event.final, event.about


def _loose(event: Event) -> _Key:
    return event.type, event.final, event.about


class _Numbered:
    """The events of a run, by a key and by which of those with that key they are."""

    def __init__(self, course: Course, key: Callable[[Event], _Key]) -> None:
        seen: Counter[_Key] = Counter()
        self._found: dict[tuple[_Key, int], str] = {}
        for event in course.events.values():
            its = key(event)
            seen[its] += 1
            self._found[its, seen[its]] = event.id

    def get(self, key: _Key, number: int) -> str | None:
        return self._found.get((key, number))


@dataclass(frozen=True, slots=True)
class Runs:
    """A faulted run and its twin.

    Attributes:
        faulted: The one; twin: the other.
        matching: What corresponds to what.
    """

    faulted: Course
    twin: Course
    matching: Matching
