"""The nodes of a stored graph of the paper's program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from dig.graph.records import SYSTEM, FateName


@dataclass(frozen=True)
class Diversion:
    """A redirection of an event: the reactions of its recipients before and after."""

    at: float
    by: str | None
    before: dict[str, str]
    after: dict[str, str]

    @property
    def new(self) -> list[str]:
        """The new recipients."""
        return [recipient for recipient in self.pending if self.before.get(recipient) != "pending"]

    @property
    def pending(self) -> list[str]:
        """The recipients that will get the event, or have the event and no reaction yet."""
        return [recipient for recipient, label in self.after.items() if label == "pending"]

    @property
    def lost_recipients(self) -> list[str]:
        """The recipients that lost the event."""
        return [
            recipient
            for recipient, label in self.after.items()
            if label == "reroute" and self.before.get(recipient) in ("pending", "wait")
        ]


@dataclass(frozen=True)
class Remark:
    """A note of healing at an event."""

    at: float
    pattern: str
    note: str


@dataclass
class SourceEvent:
    """An event: generator, recipients, and the times of all happenings.

    Times are in seconds of the source's clock.
    """

    id: str
    by: str | None
    label: str
    payload: Any
    recipients: list[str]
    note: str | None
    intervention: str | None
    at: float | None = None
    delivered: dict[str, list[float]] = field(default_factory=dict)
    diversions: list[Diversion] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)

    @property
    def to(self) -> list[str]:
        """The recipients at generation."""
        return list(self.diversions[0].before) if self.diversions else self.recipients


@dataclass
class SourceActivation:
    """An activation with the fates of its inputs; ``None`` for an input without a fate."""

    id: str
    agent: str
    fates: dict[str, FateName | None]
    began: float | None
    ended: float | None
    error: Any
    submits: bool
    intervention: str | None

    @property
    def is_agents(self) -> bool:
        """Whether an agent, not healing, is behind the activation."""
        return self.agent != SYSTEM


@dataclass(frozen=True)
class SourceGraph:
    """A stored graph."""

    created: float | None
    events: dict[str, SourceEvent]
    activations: dict[str, SourceActivation]

    def times(self) -> Iterator[float]:
        """All times in the graph."""
        times = [self.created]
        for event in self.events.values():
            times += (event.at, *chain.from_iterable(event.delivered.values()))
        for activation in self.activations.values():
            times += (activation.began, activation.ended)
        return (at for at in times if at is not None)

    def agents(self) -> list[str]:
        """All acting or receiving agents, sorted."""
        names = {activation.agent for activation in self.activations.values()}
        for event in self.events.values():
            names.update(event.recipients, event.delivered)
        return sorted(names - {SYSTEM})
