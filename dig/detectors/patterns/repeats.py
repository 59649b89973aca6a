"""Parts shared by the patterns about repetition: doublings, and bounded memories of events."""

from __future__ import annotations

import marshal
from collections.abc import Iterable
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from dig._util.json_values import encoder
from dig._util.text import counted
from dig.graph.graph import InteractionGraph
from dig.graph.records import NOTICE, Emit, base_name
from dig.graph.state import EventState

GRAVE = 4
"""A repetition is an error from so many times its limit on."""

MOST_NEW = 1000
"""The number of latest events that an `EventMemory` remembers at least."""

CONTINUATION = -1
"""Stands for the content of what an agent tells itself, to go on later; no hash is -1."""

_dumps = encoder(sort_keys=True)
_DOLLAR, _BRACE = b"${"  # as numbers, which are found fastest
_GIVEN = b"$given"

_Value = TypeVar("_Value")


def is_doubling(n: int, least: int) -> bool:
    """Whether a repetition is raised at a count: at `least`, and at each doubling."""
    times, remainder = divmod(n, least)
    return remainder == 0 < times and times & (times - 1) == 0


def more_than(n: int, noun: str, evidence: Any) -> str:
    """A number with a noun, for a list of evidence: `more than 100 times` if cut."""
    return f"more than {counted(n, noun)}" if evidence.get("more") else counted(n, noun)


class EventMemory(Generic[_Value]):
    """A detector's memory of all live events, and of the latest closed events.

    A closed event (consumed, and with no agent any more) can only come back if a host sends it
    once more. At least the latest 1,000 events are remembered. When as many new ones have come as
    there are old ones, the old ones that are closed are dropped: so memory stays bounded.
    """

    def __init__(self) -> None:
        """Begin with no event."""
        self._new: dict[str, _Value] = {}
        self._old: dict[str, _Value] = {}
        self._most = MOST_NEW

    def put(self, graph: InteractionGraph, event: str, value: _Value) -> None:
        """Remember a value for a live or coming event."""
        self._new[event] = value
        if len(self._new) > self._most:
            events, to_come = self._old.keys(), {*graph.awaited}
            remaining = {e: self._old[e] for e in events & graph.live.keys() | events & to_come}
            self._old, self._new = remaining | self._new, {}
            self._most = max(MOST_NEW, len(remaining))

    def get(self, event: str) -> _Value | None:
        """The value of an event; ``None``: forgotten, or never remembered."""
        value = self._new.get(event)
        return self._old.get(event) if value is None else value

    def forget(self, graph: InteractionGraph) -> None:
        """Forget events unknown to the graph."""
        values = {**self._old, **self._new}
        self._old = {event: value for event, value in values.items() if graph.knows(event)}
        self._new = {}


class Contents(EventMemory[int]):
    """The contents of a run's events, as numbers: equal for equal payloads.

    Detectors of one run share it (`contents_of`), so that each payload is looked at once.
    """

    def __init__(self) -> None:
        """Begin with no event."""
        super().__init__()
        self._t = -1
        self._latest: int | None = None

    def note(self, graph: InteractionGraph, record: Emit) -> int | None:
        """Remember the content of a new event; return the content, if it counts."""
        if record.t != self._t:
            self._t = record.t
            content = content_of(record.payload)
            if record.type == NOTICE and _is_continuation(graph, record):
                content = CONTINUATION
            self._latest = content
            if content is not None:
                self.put(graph, record.event, content)
        return self._latest

    def of_inputs(self, events: Iterable[EventState]) -> tuple[int, ...] | None:
        """The sorted contents of some events; ``None`` if an event has no content."""
        contents: list[int] = []
        new, old = self._new, self._old
        for event in events:
            content = new.get(event.id)
            if content is None and (content := old.get(event.id)) is None:
                return None
            if content != CONTINUATION:
                contents.append(content)
        return tuple(sorted(contents))


_contents: WeakKeyDictionary[InteractionGraph, Contents] = WeakKeyDictionary()


def contents_of(graph: InteractionGraph) -> Contents:
    """The contents of a run's events, shared by the detectors of the graph."""
    contents = _contents.get(graph)
    if contents is None:
        contents = _contents[graph] = Contents()
    return contents


def _is_continuation(graph: InteractionGraph, record: Emit) -> bool:
    """Whether an agent sends a notice to itself alone, to pass lineage on."""
    if record.by != graph.ended.id or record.final or not record.to:
        return False
    agent = base_name(graph.ended.agent)
    return all(base_name(name) == agent for name in record.to)


def content_of(payload: Any) -> int | None:
    """Number the content of a payload; ``None``: no content, or not recorded whole."""
    if payload is None:
        return None
    if type(payload) is str:
        return hash(payload)
    members = sorted(payload.items()) if type(payload) is dict else payload
    written: bytes | str = marshal.dumps(members, 2)  # fast; in later versions, identity counts
    if _DOLLAR in written:
        if _GIVEN in written and (new := _new_part(payload)) != payload:
            return content_of(new)
        if type(payload) is dict and any(key[:1] == "$" for key in payload):
            return None
    if _BRACE in written:  # maybe an object in it, of whose members the order does not count
        written = _dumps(payload)
    return hash((written,))


def _new_part(payload: Any) -> Any:
    """Remove quoted context (`$given`) from a payload, and keep the new part."""
    while type(payload) is dict and payload.keys() == {"$given", "$new"}:
        payload = payload["$new"]
    if type(payload) is dict:
        return {key: _new_part(part) for key, part in payload.items()}
    return [_new_part(part) for part in payload] if type(payload) in (list, tuple) else payload
