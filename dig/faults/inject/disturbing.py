"""Faults as a disturbance of a run that is carried out and kept (`dig.tasks.run.execute`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dig.graph.records import Record
from dig.runtime.bus import Bus
from dig.runtime.simulator import Happening
from dig.tasks.run.methods import Arrangement
from dig.tasks.run.teams import Team

from .fault import Fault
from .injecting import Injected
from .placing import Places


class Disturbing:
    """Puts faults round a team, and tells of them beside the trace.

    Attributes:
        team: The agents by name, with the faults around them.
    """

    def __init__(self, faults: Sequence[Fault], arranged: Arrangement) -> None:
        """Put them round it.

        Raises:
            SettingsError: A target is not in the team.
        """
        self._injected = Injected.into(arranged, faults)
        self._places = Places()
        self.team: Team = self._injected.team

    def about(self) -> dict[str, Any]:
        """The faults, for the side file."""
        return {"faults": [fault.to_json() for fault in self._injected.faults]}

    def happenings(self) -> Sequence[Happening]:
        """Who comes and goes in virtual time."""
        return self._injected.happenings()

    async def keep(self, bus: Bus) -> None:
        """Have targets come and go on an open bus."""
        await self._injected.keep(bus)

    def follow(self, record: Record) -> None:
        """Keep where things are in the trace."""
        self._places(record)

    def outcome(self) -> dict[str, Any]:
        """What the faults did, for the result."""
        placed = self._places.of(self._injected.touches)
        return {"injections": [injection.to_json() for injection in placed]}
