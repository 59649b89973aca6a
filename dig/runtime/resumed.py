"""The bus, going on from a moment of a recorded run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import anyio

from .agents import Agent, AgentFunction
from .bus import Bus
from .commit import Durable
from .desk import Desk
from .host import Host
from .moment import Moment, Outside, ToEnd, ToStart, restore


class Resumed(Bus):
    """Goes on from a moment with a team in real time.

    What comes from outside comes as it was recorded. An activation in progress ends as it was
    recorded, too, if that is known: its agent was called before the moment.
    """

    def __init__(
        self,
        moment: Moment,
        team: Mapping[str, Agent | AgentFunction],
        *,
        durable: Durable | None = None,
    ) -> None:
        """Set the stage; nothing happens before `open`.

        Raises:
            SettingsError: Somebody is missing in the team.
            ReplayError: An agent cannot be brought back to the moment.
        """
        restore(team, moment)
        super().__init__(team, moment.setup, durable=durable)
        self._moment = moment

    def _engage(self) -> Host:
        self._began -= self._moment.us / 1_000_000 / self._setup.speed
        self._moment.clock.source = self._clock
        return self._moment.host

    def _begin(self) -> None:
        self._match_desks()
        for item in self._moment.agenda:
            desk = self._desks.get(item.agent if isinstance(item, ToStart) else item.started.agent)
            if desk is not None:
                self._tasks.start_soon(self._take_up, desk, item)
        self._tasks.start_soon(self._repeat_outside)
        self._commits.carry_out(self._moment.effects)
        self._pause.look()

    def _match_desks(self) -> None:
        """Hire who is there, dismiss who is not."""
        present = self._host.monitor.graph.agents
        for name, agent in self._team.items():
            if name in present and name not in self._desks:
                self._hire(name, agent)
        for name in [name for name in self._desks if name not in present]:
            self._desks.pop(name).scope.cancel()

    async def _take_up(self, desk: Desk, item: ToStart | ToEnd) -> None:
        """Go on with what was going on."""
        if isinstance(item, ToStart):
            await self._sleep_until(item.until_us or 0)
            desk.mail.set()
        elif item.end is None:
            await self._act(desk, item.started, item.view)
        else:
            await self._sleep_until(item.end.us)
            end = partial(self._host.repeat, item.started, item.end, item.outputs)
            await self._close(desk, item.started, end)

    async def _repeat_outside(self) -> None:
        for outside in self._moment.outside:
            await self._sleep_until(outside.us)
            self._repeat(outside)
            self._match_desks()

    def _repeat(self, outside: Outside) -> None:
        self._request(lambda: self._host.heed(outside.request(self._host.monitor)))

    async def _sleep_until(self, us: int) -> None:
        await anyio.sleep(max(0.0, us / 1_000_000 - self._clock()) / self._setup.speed)
