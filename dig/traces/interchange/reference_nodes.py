"""The nodes of a graph that another implementation stored, as far as a trace needs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dig.graph.records import SYSTEM, FateName


@dataclass(frozen=True)
class Diversion:
    """An event was sent to others: the reactions of its recipients before and after."""

    at: float
    by: str | None
    before: dict[str, str]
    after: dict[str, str]

    @property
    def new(self) -> list[str]:
        """Who is to get it now and was not before."""
        return [who for who in self.pending if self.before.get(who) != "pending"]

    @property
    def pending(self) -> list[str]:
        """Everybody who is to get it, or has it and has not reacted."""
        return [who for who, label in self.after.items() if label == "pending"]

    @property
    def gone(self) -> list[str]:
        """Those from whom it was taken."""
        return [
            who
            for who, label in self.after.items()
            if label == "reroute" and self.before.get(who) in ("pending", "wait")
        ]


@dataclass(frozen=True)
class Remark:
    """Healing wrote a note to an event."""

    at: float
    pattern: str
    note: str


@dataclass
class SourceEvent:
    """An event: who generated it, whom it was for, and when what happened to it.

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
        """Whom it was for when it was generated."""
        return list(self.diversions[0].before) if self.diversions else self.recipients


@dataclass
class SourceActivation:
    """An activation with the fates of its inputs; ``None``: it gave none."""

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
        """Whether an agent did it, rather than healing."""
        return self.agent != SYSTEM


@dataclass(frozen=True)
class SourceGraph:
    """A stored graph."""

    created: float | None
    events: dict[str, SourceEvent]
    activations: dict[str, SourceActivation]

    def times(self) -> Iterator[float]:
        """Every time that is in it."""
        if self.created is not None:
            yield self.created
        for event in self.events.values():
            yield from () if event.at is None else (event.at,)
            yield from (at for stamps in event.delivered.values() for at in stamps)
        for activation in self.activations.values():
            for at in (activation.began, activation.ended):
                yield from () if at is None else (at,)

    def agents(self) -> list[str]:
        """Everybody who acted or was to receive something, sorted."""
        found = {activation.agent for activation in self.activations.values()}
        for event in self.events.values():
            found.update(event.recipients, event.delivered)
        return sorted(found - {SYSTEM})
