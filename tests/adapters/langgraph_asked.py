"""What the scripted teams on LangGraph are asked, in every way in which a graph can be called."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, Literal

from langchain_core.messages import HumanMessage
from langgraph.types import Command

from .harness import Scenario, Script
from .langgraph_teams import (
    asking,
    bad_update,
    both,
    by_enum,
    cached,
    cached_fan,
    chain,
    command,
    conditional,
    deferred,
    endless,
    failing,
    fan,
    half_join,
    lost,
    nested_send,
    remembering,
    retried,
    send,
    send_in_command,
    subgraph,
    talking,
    two_doors,
    two_teams,
    typed,
    writing,
)


def thread(number: int = 1, **more: Any) -> Any:
    """A config with a thread of a checkpointer."""
    return {"configurable": {"thread_id": str(number)}, **more}


QUESTION = {"done": ["?"], "messages": [HumanMessage("Rome?", id="q")]}
MODES: Sequence[Literal["values", "updates", "custom", "messages", "checkpoints", "tasks", "debug"]]
MODES = ("values", "updates", "custom", "messages", "checkpoints", "tasks", "debug")


async def ask(team: Any) -> Any:
    return await team.ainvoke(QUESTION)


async def ask_with_limit(team: Any) -> Any:
    return await team.ainvoke(QUESTION, {"recursion_limit": 5})


async def ask_form(team: Any) -> Any:
    return await team.ainvoke({"done": ["?"], "name": "form"})


async def ask_at_once(team: Any) -> Any:
    return await asyncio.gather(*(team.ainvoke({"done": [str(i)]}) for i in range(3)))


async def ask_again(team: Any) -> Any:
    return [await team.ainvoke(QUESTION, thread(i), durability="sync") for i in (1, 2, 1)]


async def ask_twice(team: Any) -> Any:
    return [await ask(team), await ask(team)]


async def answer_back(team: Any) -> Any:
    asked = await team.ainvoke(QUESTION, thread())
    before = await team.aget_state(thread())
    return [asked, before.next, await team.ainvoke(Command(resume="Ada"), thread())]


async def stop_before(team: Any) -> Any:
    first = await team.ainvoke(QUESTION, thread(), interrupt_before=["b"])
    await team.aupdate_state(thread(), {"done": ["!"]})
    return [first, await team.ainvoke(None, thread())]


async def branch_off(team: Any) -> Any:
    await team.ainvoke(QUESTION, thread())
    states = [state async for state in team.aget_state_history(thread())]
    return [await team.ainvoke(None, state.config) for state in states if state.next]


async def look_at_first(team: Any) -> Any:
    async with aclosing(team.astream(QUESTION, stream_mode="updates")) as stream:
        async for piece in stream:
            return piece


async def events(team: Any) -> Any:
    found = [event async for event in team.astream_events(QUESTION, version="v2")]
    return [(event["event"], event["name"], event["tags"], event["data"]) for event in found]


async def batch(team: Any) -> Any:
    return await team.abatch([{"done": [str(i)]} for i in range(2)])


def streamed(mode: Any, **more: Any) -> Callable[[Any], Awaitable[Any]]:
    async def drive(team: Any) -> Any:
        return [piece async for piece in team.astream(QUESTION, stream_mode=mode, **more)]

    return drive


ASKED: dict[Callable[[Any], Awaitable[Any]], tuple[Callable[[Script], Any], ...]] = {
    ask: (
        chain, fan, two_doors, command, both, send, send_in_command, conditional, deferred,
        subgraph, two_teams, nested_send, failing, retried, lost, half_join, bad_update, talking,
        writing, by_enum,
    ),
    ask_with_limit: (endless,),
    ask_form: (typed,),
    ask_at_once: (chain, fan, send, subgraph),
    ask_again: (remembering,),
    ask_twice: (cached, cached_fan, chain),
    answer_back: (asking,),
    stop_before: (remembering,),
    branch_off: (remembering,),
    look_at_first: (fan,),
    events: (chain, subgraph, talking),
    batch: (chain,),
}  # fmt: skip

SCENARIOS = [
    *(Scenario(f"{build.__name__}-{drive.__name__}", build, drive)
      for drive, builds in ASKED.items() for build in builds),
    *(Scenario(f"{build.__name__}-{mode}", build, streamed(mode))
      for mode in MODES for build in (fan, talking, writing)),
    Scenario("subgraph-streamed-inside", subgraph, streamed(["updates", "values"], subgraphs=True)),
    Scenario("failing-streamed", failing, streamed("updates")),
]  # fmt: skip
