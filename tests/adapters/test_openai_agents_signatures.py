"""OpenAI agents, wrapped: what stands in place of the SDK's functions looks like them."""

from __future__ import annotations

import asyncio
from inspect import getmembers, isfunction
from typing import Any

import pytest
from agents import RunHooks
from agents.run import AgentRunner, get_default_agent_runner

from dig.adapters.openai_agents.runner import MonitoredHooks, MonitoredRunner

from .framework_signatures import Pair
from .harness import Script, play
from .openai_agents_teams import Watched, agent, says, scenario

REPLACED = [
    (base, stand_in, name)
    for base, stand_in in ((AgentRunner, MonitoredRunner), (RunHooks, MonitoredHooks))
    for name, _ in getmembers(base, isfunction)
    if name in vars(stand_in) and not name.startswith("_")
]


@pytest.mark.parametrize(("base", "stand_in", "name"), REPLACED, ids=lambda one: str(one))
def test_what_is_replaced_has_the_signature_of_what_was_there(
    base: Any, stand_in: Any, name: str
) -> None:
    """Names, kinds and defaults of parameters are the same, and so is what has to be awaited."""
    assert not [*Pair(getattr(base, name), getattr(stand_in, name)).differences()]


def test_the_runner_is_replaced_as_a_whole() -> None:
    """Whatever the SDK asks of its runner is a method of the one in its place."""
    names = {name for name, _ in getmembers(AgentRunner, isfunction) if not name.startswith("_")}
    replaced = {name for base, _, name in REPLACED if base is AgentRunner}
    assert names == replaced | {"run_sync"}, "which is the runner's own, and comes back to `run`"


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize("method", ["run", "run_streamed"])
def test_the_runner_can_be_called_by_name(method: str, mode: Any) -> None:
    """Each argument may be given by its name, as without a monitor."""

    def build(script: Script) -> Any:
        return agent(script, "ann", says("done"))

    async def drive(team: Any) -> Any:
        runner: Any = get_default_agent_runner()
        result = getattr(runner, method)(starting_agent=team, input="?", max_turns=3)
        if asyncio.iscoroutine(result):
            return (await result).final_output
        async for _ in result.stream_events():
            pass
        return result.final_output

    asked = scenario(build, drive, method)
    assert play(asked, Watched(mode)).returned == play(asked).returned == "'done'"
