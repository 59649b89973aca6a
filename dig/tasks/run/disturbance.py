"""What interferes with a run from outside, such as faults that are injected into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dig.graph.records import Record
from dig.runtime.bus import Bus
from dig.runtime.simulator import Happening

from .methods import Arrangement
from .teams import Team


class Disturbance(Protocol):
    """Interferes with one run."""

    @property
    def team(self) -> Team:
        """The agents by name, as they are to be instead."""
        ...

    def about(self) -> Mapping[str, Any]:
        """What the side file says of it."""
        ...

    def happenings(self) -> Sequence[Happening]:
        """What happens in virtual time besides."""
        ...

    async def keep(self, bus: Bus) -> None:
        """Have it happen on an open bus."""
        ...

    def follow(self, record: Record) -> None:
        """Be told of each record, after it was written."""
        ...

    def outcome(self) -> Mapping[str, Any]:
        """What the result says of it, when the run is over."""
        ...


class Undisturbed:
    """Interferes with nothing."""

    def __init__(self, arranged: Arrangement) -> None:
        """Leave the team of a run as it is."""
        self.team = arranged.team

    def about(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    def happenings(self) -> Sequence[Happening]:
        """Nothing."""
        return ()

    async def keep(self, bus: Bus) -> None:
        """Nothing happens."""

    def follow(self, record: Record) -> None:
        """Nobody is told."""

    def outcome(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}
