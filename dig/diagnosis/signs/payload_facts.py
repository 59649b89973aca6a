"""Facts about the payloads of a run: each is read once, since payloads may lie in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from dig.detectors.siblings import Shape, shape_of
from dig.traces.run import RecordedEvent


def amounts_of(payload: Any) -> dict[str, float]:
    """Return the numbers of a payload in mappings of numbers, by place."""
    amounts: dict[str, float] = {}
    if isinstance(payload, Mapping):
        for key, value in payload.items():
            if isinstance(value, Mapping) and all(type(n) in (int, float) for n in value.values()):
                amounts.update({f"{key}.{name}": float(n) for name, n in value.items()})
    return amounts


class PayloadFacts:
    """Small facts about payloads, by event; the payloads themselves are not kept."""

    def __init__(self) -> None:
        """Start with no payload read."""
        self._contents: dict[str, int | None] = {}
        self._shapes: dict[str, Shape] = {}
        self._known_shapes: dict[Shape, Shape] = {}
        self._with_amounts: set[str] = set()

    def read(self, event: RecordedEvent) -> Any:
        """Return the payload of an event, and note the facts."""
        payload = event.payload
        text = json.dumps(payload, sort_keys=True, default=str)
        # A digest in place of the text: payloads may be long, and a run may have many.
        words = f"{event.type} {text}".encode("utf-8", "surrogatepass")
        digest = blake2b(words, digest_size=8).digest()
        is_content = payload is not None and event.agent is not None
        self._contents[event.id] = int.from_bytes(digest, "big") if is_content else None
        shape = shape_of(payload)
        self._shapes[event.id] = self._known_shapes.setdefault(shape, shape)
        if amounts_of(payload):
            self._with_amounts.add(event.id)
        return payload

    def content(self, event: RecordedEvent) -> int | None:
        """A number for type and payload, equal for equal ones.

        ``None``: the event has no payload, or no agent generated it.
        """
        if event.id not in self._contents:
            self.read(event)
        return self._contents[event.id]

    def shape(self, event: RecordedEvent) -> Shape:
        """The shape of the payload."""
        if event.id not in self._shapes:
            self.read(event)
        return self._shapes[event.id]

    def amounts(self, event: RecordedEvent) -> dict[str, float]:
        """The numbers of the payload, by place."""
        if event.id not in self._contents:
            self.read(event)
        return amounts_of(event.payload) if event.id in self._with_amounts else {}
