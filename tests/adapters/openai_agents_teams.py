"""Teams of OpenAI agents whose models follow a script, and what is asked of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled
from agents.run import set_default_agent_runner
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from dig.adapters import openai_agents as adapter

from .framework_watch import Watched as Framework
from .harness import Scenario, Script

set_tracing_disabled(True)

CANCELLED = [
    pytest.mark.filterwarnings("ignore:coroutine 'run_single_turn' was never awaited"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""The SDK forgets a coroutine if it is cancelled before the first step; so it does unwrapped."""

Reply = Callable[[Any, int], Any]
"""What a model says: `(call, number of its turn) -> output items`, or raises."""


class Watched(Framework):
    adapter = adapter


def says(text: str) -> Reply:
    return lambda call, number: [assistant_message(text)]


def calls(*names: str, **arguments: Any) -> Reply:
    """Call tools, all of them with the same arguments."""

    def reply(call: Any, number: int) -> Any:
        return [
            function_call(name, arguments, call_id=f"{name}-{number}-{i}")
            for i, name in enumerate(names)
        ]

    return reply


def hands(to: str, **arguments: Any) -> Reply:
    return calls(f"transfer_to_{to}", **arguments)


def told(call: Any) -> list[str]:
    """The notes in what a model was given."""
    texts = (item.get("content") for item in call.input if isinstance(item, dict))
    return [text for text in texts if isinstance(text, str) and text.startswith("[monitor]")]


def unless_told(before: Reply, after: Reply) -> Reply:
    """One thing without a note, and another with one."""
    return lambda call, number: (after if told(call) else before)(call, number)


def model(script: Script, name: str, replies: Sequence[Reply]) -> ScriptedModel:
    """A model that gives one reply after the other, and the last one from then on."""

    async def respond(call: Any) -> Any:
        scripted.enqueue(ModelStep.respond(respond))
        async with script.turn(name, call.input) as number:
            return replies[min(number, len(replies)) - 1](call, number)

    scripted = ScriptedModel([ModelStep.respond(respond)])
    return scripted


def agent(script: Script, name: str, *replies: Reply, **more: Any) -> Agent[Any]:
    return Agent(name=name, model=model(script, name, replies), **more)


def tool(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a function a tool."""
    decorate: Callable[[Callable[..., Any]], Any] = function_tool(**options)
    return decorate


def guards(kind: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a function a guardrail, of the input or the output."""
    return lambda function: kind(function)


def as_tool(inner: Agent[Any], **more: Any) -> Any:
    return inner.as_tool(inner.name, f"Asks {inner.name}.", **more)


def shown(result: Any) -> Any:
    """All of a result that a host would look at."""
    return {
        "answer": result.final_output,
        "by": result.last_agent.name,
        "items": result.to_input_list(),
        "responses": len(result.raw_responses),
        "asks": [one.raw_item for one in result.interruptions],
    }


async def ask(team: Any, question: Any = "What now?", **options: Any) -> Any:
    return shown(await Runner.run(team, question, **options))


async def pieces(result: RunResultStreaming) -> list[Any]:
    """What a stream gives, in order."""
    found: list[Any] = []
    async for event in result.stream_events():
        data = getattr(event, "data", None) or getattr(event, "item", None)
        found.append((event.type, getattr(data, "type", ""), getattr(data, "delta", "")))
    return found


async def stream(team: Any, question: Any = "What now?", **options: Any) -> Any:
    result = Runner.run_streamed(team, question, **options)
    return [await pieces(result), shown(result)]


def scenario(
    build: Callable[[Script], Any], drive: Callable[[Any], Any] = ask, name: str = ""
) -> Scenario:
    """A team and what is asked of it; each play begins with the runner that the SDK has."""

    def fresh(script: Script) -> Any:
        set_default_agent_runner(None)
        return build(script)

    return Scenario(name or f"{build.__name__}-{drive.__name__}", fresh, drive)


async def at_once(team: Any) -> Any:
    return await asyncio.gather(*(ask(team, f"question {n}") for n in range(3)))


def in_the_background(script: Script) -> list[Any]:
    """A tool that has an agent work, which it does not wait for; and a tool that waits for it."""
    tasks = set()

    @tool()
    async def work() -> str:
        await asyncio.sleep(5)
        return "worked"

    b = agent(script, "b", calls("work"), says("b done"), tools=[work])

    @tool()
    async def begin(text: str) -> str:
        tasks.add(asyncio.create_task(Runner.run(b, text)))
        return "begun"

    @tool()
    async def wait() -> str:
        return str([result.final_output for result in await asyncio.gather(*tasks)])

    return [begin, wait]
