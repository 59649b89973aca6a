"""Stands where `Runner` has its work done, and has the runs of wrapped teams monitored.

`Runner` asks one object for every run, agents as tools included. This one is put in its place for
as long as a team is wrapped, and hands every run on; agents and tools are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agents import Agent, RunState
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner

from dig.adapters import Session
from dig.adapters.base.running import inside

from .run import Run, running
from .taps import Annotate, tapped


@dataclass(eq=False)
class Team:
    """A wrapped team.

    Attributes:
        session: Its session.
        first: The agent that was wrapped.
        agents: All of its agents.
        annotate: Puts notes into what a model is given.
        is_lost: Whether track was lost of any of its runs: what that has left lying about may
            concern others, so that none is healed any more.
    """

    session: Session
    first: Agent[Any] = field(repr=False)
    agents: tuple[Agent[Any], ...] = field(repr=False)
    annotate: Annotate
    is_lost: bool = False

    def has(self, agent: Any) -> bool:
        """Whether an agent is one of its own."""
        return any(agent is one for one in self.agents)


class MonitoredRunner(AgentRunner):  # type: ignore[misc]
    """Has every run done by the runner that was there, and tells sessions of those of teams."""

    def __init__(self, inner: AgentRunner) -> None:
        self.inner = inner
        self.teams: list[Team] = []

    async def run(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:
        """Run an agent until there is a result."""
        run = self._run_of(starting_agent, input, kwargs)
        if run is None:
            return await self.inner.run(starting_agent, input, **kwargs)
        options = tapped(kwargs, run)
        if isinstance(input, RunState):
            options["max_turns"] = input._max_turns  # the SDK, too, looks at nothing else then
        try:
            await run.begun()
            with inside(run.as_turn):
                result = await self.inner.run(starting_agent, input, **options)
                while await run.is_handed_back(result, options):
                    result = await run.once_more(self.inner, result, options)
        except BaseException as error:
            run.fail(error)
            raise
        return result

    def run_sync(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:
        """Run an agent on the thread's own loop; that comes back to `run`."""
        return AgentRunner.run_sync(self, starting_agent, input, **kwargs)

    def run_streamed(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:
        """Begin to run an agent, and return what streams what happens."""
        run = self._run_of(starting_agent, input, kwargs, is_streamed=True)
        if run is None:
            return self.inner.run_streamed(starting_agent, input, **kwargs)
        try:
            with inside(run.as_turn):
                options = tapped(kwargs, run)
                result = self.inner.run_streamed(starting_agent, input, **options)
        except BaseException as error:
            run.fail(error)
            raise
        run.follow(result)
        return result

    def _run_of(
        self, agent: Any, given: Any, options: dict[str, Any], *, is_streamed: bool = False
    ) -> Run | None:
        """What is to be known of a run, if it belongs to a wrapped team."""
        if isinstance(given, RunState):
            agent = given._current_agent or agent
        caller = running()
        if caller is not None and any(caller.team is team for team in self.teams):
            if caller.is_lost:
                return None
            return Run(caller.team, agent, given, caller=caller, is_streamed=is_streamed)
        mine = [team for team in self.teams if team.has(agent)]
        first = [team for team in mine if team.first is agent]
        if not mine:
            return None
        is_kept = any(
            options.get(name)
            for name in ("conversation_id", "previous_response_id", "auto_previous_response_id")
        )
        return Run((first or mine)[0], agent, given, is_streamed=is_streamed, is_kept=is_kept)


def install(team: Team) -> None:
    """Have the runs of a team monitored from now on."""
    now = get_default_agent_runner()
    if not isinstance(now, MonitoredRunner):
        now = MonitoredRunner(now)
        set_default_agent_runner(now)
    now.teams.append(team)


def remove(team: Team) -> None:
    """Have the runs of a team not monitored any more; the last one puts back what was there."""
    now = get_default_agent_runner()
    if not isinstance(now, MonitoredRunner):
        return  # somebody else has put another in its place
    now.teams[:] = [one for one in now.teams if one is not team]
    if not now.teams:
        set_default_agent_runner(now.inner)
