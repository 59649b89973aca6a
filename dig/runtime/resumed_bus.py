"""A bus that goes on with a recorded run: a fork, or a run whose process ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio

from dig.monitor.sinks import Sink

from .agents import Agent, AgentFunction, PlannedAgent, Thinking
from .alerts import Alerts, OnAlarm
from .bus import Bus
from .checkpoint import Checkpoint, ExternalInput, PendingStart, RunningActivation, restore
from .group_commit import Durable
from .host import REAL_TIME, Host, Setup
from .observers import AgentTask
from .resume import Lines, Resumption


def resume_bus(
    lines: Lines,
    team: Mapping[str, Agent | AgentFunction | PlannedAgent],
    setup: Setup | None = None,
    *,
    sink: Sink | None = None,
    durable: Durable | None = None,
    on_alarm: OnAlarm | None = None,
    follow: Sink = lambda record: None,
    resumed: Mapping[str, Any] | None = None,
    name: str = "the journal",
) -> Bus:
    """Go on with a run that stopped anywhere, in real time.

    Activations that were in progress begin again, as do their timeouts. A last request that lacks
    records is completed; one of which the outputs of an activation are missing is refused
    (`dig.traces.journal.recovery.whole_requests`).

    Args:
        lines: The lines of the run's journal.
        team: The agents by name.
        setup: The parts that the run was made with.
        sink: Is given every new record before its effect happens; the run's own journal, for
            instance, opened with `is_new=False`.
        durable: The sink's data, if they are to be synced before their effect happens.
        on_alarm: The destination of new alarms, as for `Bus`.
        follow: Is given every record, the recorded ones too.
        resumed: The detail of the incident `resumed`, such as `down_s`: for how long nothing ran.
        name: The name of the journal, for errors.

    Returns:
        The bus, to `open`.

    Raises:
        DigError: As by `dig.runtime.resume.resume`.
        SettingsError: An agent that is present is missing in the team.
    """
    resumption = Resumption(
        lines, setup or Setup(), name=name, sink=follow, completes=True, remembers=True,
        timing=REAL_TIME,
    )  # fmt: skip
    resumption.feed()
    sinks = [] if sink is None else [sink]
    if (alerts := Alerts.of(on_alarm)) is not None:
        sinks.append(alerts.sink())
        sinks[-1](resumption.monitor.graph.run)  # from which it knows the name
    bus = Resumed(resumption.checkpoint(resumed or {}), team, durable=durable)
    resumption.go_live(*sinks)  # after the last error about the team
    return bus


class Resumed(Bus):
    """Goes on from a moment with a team in real time.

    What comes from outside comes as it was recorded. An activation in progress ends as it was
    recorded, too, if that is known: its agent was called before the moment.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        team: Mapping[str, Agent | AgentFunction | PlannedAgent],
        *,
        durable: Durable | None = None,
    ) -> None:
        """Prepare the run; nothing happens before `open`.

        Args:
            checkpoint: The run as it stands.
            team: The agents by name; one with a `plan` alone takes the time that this says.
            durable: The data of the sink of the checkpoint's monitor, if they are to be synced.

        Raises:
            SettingsError: An agent that is present is missing in the team.
            ReplayError: An agent cannot be brought back to the moment.
        """
        speed = checkpoint.setup.speed
        agents = {n: _in_real_time(a, speed) for n, a in restore(team, checkpoint).items()}
        super().__init__(agents, checkpoint.setup, durable=durable)
        self._checkpoint = checkpoint
        self._outside = deque(checkpoint.outside)

    def _make_host(self) -> Host:
        # The clock shows the moment of the checkpoint, not zero.
        self._began -= self._checkpoint.us / 1_000_000 / self._setup.speed
        self._checkpoint.clock.source = self._clock
        return self._checkpoint.host

    def _begin(self) -> None:
        self._match_agents()
        # What is due now comes before all that follows from it.
        while self._outside and self._outside[0].us <= self._checkpoint.us:
            self._repeat(self._outside.popleft())
        for item in self._checkpoint.agenda:
            agent = item.agent if isinstance(item, PendingStart) else item.started.agent
            task = self._agents.get(agent)
            if task is not None:
                self._tasks.start_soon(self._take_up, task, item)
        self._tasks.start_soon(self._repeat_outside)
        self._carry_out_durably(self._checkpoint.effects)
        self._review()

    def _match_agents(self) -> None:
        """Start the agents present, and end the tasks of absent agents."""
        present = self._host.monitor.graph.agents
        for name, agent in self._team.items():
            if name in present and name not in self._agents:
                self._start_agent(name, agent)
        for name in [name for name in self._agents if name not in present]:
            self._agents.pop(name).scope.cancel()

    async def _take_up(self, task: AgentTask, item: PendingStart | RunningActivation) -> None:
        """Continue an activation or a wait of the recorded run."""
        if isinstance(item, PendingStart):
            await self._sleep_until(item.until_us or 0)
            task.mail.set()
        elif item.end is None:
            await self._act(task, item.started, item.view)
        else:
            await self._sleep_until(item.end.us)
            end = partial(self._host.repeat_end, item.started, item.end, item.outputs, item.stack)
            await self._close(task, item.started, end)

    async def _repeat_outside(self) -> None:
        while self._outside:
            await self._sleep_until(self._outside[0].us)
            self._repeat(self._outside.popleft())

    def _repeat(self, outside: ExternalInput) -> None:
        self._request(partial(outside.request, self._host.monitor))
        self._match_agents()

    async def _sleep_until(self, us: int) -> None:
        await anyio.sleep(max(0.0, us / 1_000_000 - self._clock()) / self._setup.speed)


def _in_real_time(agent: Agent | AgentFunction | PlannedAgent, speed: float) -> Any:
    if callable(agent) or not hasattr(agent, "plan") or hasattr(agent, "act"):
        return agent
    return Thinking(agent, speed)
