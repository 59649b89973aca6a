"""What the scripted workflows are asked, in every way in which a workflow can be called."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from agent_framework import Workflow

from . import agent_framework_teams as teams
from .harness import Scenario, Script


def told(events: Any) -> list[str]:
    """What a host sees of events: types, executors, and data."""
    return [f"{event.type} {event.executor_id} {_plain(event.data)!r}" for event in events]


def _plain(data: Any) -> Any:
    if isinstance(data, list):
        return [_plain(one) for one in data]
    return data.to_dict() if hasattr(data, "to_dict") else data


async def ask(team: Workflow) -> Any:
    result = await team.run("?")
    return [told(result), told(result.status_timeline()), _plain(result.get_outputs())]


async def ask_twice(team: Workflow) -> Any:
    return [await ask(team), await ask(team)]


async def stream(team: Workflow) -> Any:
    pieces = team.run("?", stream=True)
    seen = [told([event]) async for event in pieces]
    return [seen, told(await pieces.get_final_response())]


async def look_at_some(team: Workflow) -> Any:
    seen = []
    async for event in team.run("?", stream=True):
        seen.append(event.type)
        if event.type == "executor_completed":
            break
    return seen


async def answer_back(team: Workflow) -> Any:
    return [await ask(team), told(await team.run(responses={"name": "Ada"}))]


async def branch_off(team: Workflow) -> Any:
    first = await ask(team)
    storage: Any = team._runner.context._get_effective_checkpoint_storage()
    kept = sorted(await storage.list_checkpoints(workflow_name="team"), key=lambda c: c.timestamp)
    return [first, *[told(await team.run(checkpoint_id=one.checkpoint_id)) for one in kept]]


async def drop_and_restore(team: Workflow) -> Any:
    """A stream is dropped after the first step, and another run takes up what it has left."""
    stream = team.run("?", stream=True)
    async for event in stream:
        if event.type == "superstep_completed":
            break
    del stream
    storage: Any = team._runner.context._get_effective_checkpoint_storage()
    kept = sorted(await storage.list_checkpoints(workflow_name="team"), key=lambda c: c.timestamp)
    return told(await team.run(checkpoint_id=kept[-1].checkpoint_id))


async def drop_and_ask(team: Workflow) -> Any:
    """The framework refuses another run, since the messages of the first are there still."""
    await look_at_some(team)
    try:
        return await ask(team)
    except RuntimeError as error:
        return repr(error)


async def answer_both(team: Workflow) -> Any:
    await team.run("?")
    return told(await team.run(responses={"b": "Ada", "c": "Rome"}))


async def as_agent(team: Workflow) -> Any:
    response = await team.as_agent("all").run("?")
    return [message.text for message in response.messages]


async def refused(team: Workflow) -> Any:
    """A second run at the same time is refused by the framework."""
    first = asyncio.ensure_future(ask(team))
    await asyncio.sleep(0)
    try:
        await ask(team)
    except Exception as error:
        return [repr(error), await first]


ASKED: dict[Callable[[Any], Awaitable[Any]], tuple[Callable[[Script], Any], ...]] = {
    ask: (
        teams.chain, teams.fan, teams.conditional, teams.async_condition, teams.switch,
        teams.selection, teams.several_at_once, teams.turned_down, teams.failing,
        teams.bad_condition, teams.endless, teams.half_join, teams.nested, teams.designated,
        teams.talking, teams.typed, teams.on_a_thread,
    ),
    ask_twice: (teams.chain, teams.fan, teams.half_join),
    stream: (teams.fan, teams.conditional, teams.designated, teams.talking, teams.failing),
    look_at_some: (teams.fan,),
    answer_back: (teams.asking,),
    answer_both: (teams.asking_both,),
    branch_off: (teams.remembering,),
    drop_and_ask: (teams.fan,),
    drop_and_restore: (teams.remembering,),
    as_agent: (teams.talking,),
    refused: (teams.chain,),
}  # fmt: skip

SCENARIOS = [
    Scenario(f"{build.__name__}-{drive.__name__}", build, drive)
    for drive, builds in ASKED.items()
    for build in builds
]
