"""Teams of Pydantic AI agents that use each feature of the library, and how they are asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    Tool,
    UsageLimits,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from dig.adapters import pydantic_ai as adapter

from . import framework_watch
from .harness import Scenario, Script

CANCELLED = [pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]
"""Versions before 2.68 forget coroutines if a run is cancelled; so they do unwrapped."""

CAPABILITIES: ContextVar[Sequence[AbstractCapability[Any]]] = ContextVar("own", default=())
"""Capabilities of the caller's own, for all runs of a team.

A run with any has three steps of the event loop more, so that a run with one has as many steps
bare as with a monitor.
"""

Reply = Callable[[Any, int], Any]
"""What a model says: `(messages, number of its turn) -> parts`, or raises."""


class Watched(framework_watch.Watched):
    adapter = adapter


def words(messages: Any) -> list[tuple[str, str]]:
    """What stands in a conversation, without ids and times."""
    return [
        (part.part_kind, str(getattr(part, "content", None) or getattr(part, "args", "")))
        for message in messages
        for part in message.parts
    ]


def notes(messages: Any) -> list[str]:
    """The notes in what a model was given."""
    return [text for _, text in words(messages) if text.startswith("[monitor]")]


def says(text: str) -> Reply:
    return lambda messages, number: [TextPart(text)]


def calls(*names: str, **arguments: Any) -> Reply:
    """Call tools, all of them with the same arguments."""
    return lambda messages, number: [
        ToolCallPart(name, arguments, tool_call_id=f"{name}-{number}-{i}")
        for i, name in enumerate(names)
    ]


def raises(messages: Any, number: int) -> Any:
    raise ValueError("no model today")


def model(script: Script, name: str, replies: Sequence[Reply]) -> FunctionModel:
    """A model that gives one reply after the other, and the last one from then on."""

    async def parts(messages: Any) -> Any:
        async with script.turn(name, words(messages)) as number:
            return replies[min(number, len(replies)) - 1](messages, number)

    async def respond(messages: Any, info: Any) -> ModelResponse:
        return ModelResponse(parts=await parts(messages), model_name="scripted")

    async def stream(messages: Any, info: Any) -> AsyncIterator[Any]:
        for index, part in enumerate(await parts(messages)):
            if isinstance(part, TextPart):
                for word in part.content.split(" "):
                    yield word + " "
            else:
                arguments = json.dumps(part.args)
                yield {
                    index: DeltaToolCall(part.tool_name, arguments, tool_call_id=part.tool_call_id)
                }

    return FunctionModel(respond, stream_function=stream)


def agent(script: Script, name: str, *replies: Reply, **more: Any) -> Agent[Any, Any]:
    return Agent(model(script, name, replies), name=name, **more)


def team(*agents: Agent[Any, Any]) -> dict[str, Agent[Any, Any]]:
    return {str(agent.name): agent for agent in agents}


def as_tool(inner: Agent[Any, Any], *, catches: bool = False) -> Tool[Any]:
    async def ask(text: str) -> Any:
        try:
            return (await inner.run(text, capabilities=CAPABILITIES.get())).output
        except ValueError as error:
            if catches:
                return f"{inner.name} failed: {error}"
            raise

    return Tool(ask, name=inner.name)


def shown(result: Any) -> Any:
    """All of a result that a host would look at, without notes."""
    said = words(result.all_messages())
    return {
        "answer": result.output,
        "messages": [(kind, text) for kind, text in said if not text.startswith("[monitor]")],
        "new": len(result.new_messages()),
        "usage": result.usage.requests,
    }


def entry(team: Any) -> Agent[Any, Any]:
    first: Agent[Any, Any] = next(iter(team.values()))
    return first


async def ask(team: Any, question: Any = "What now?", **options: Any) -> Any:
    options = {"capabilities": CAPABILITIES.get(), **options}
    return shown(await entry(team).run(question, **options))


async def stream(team: Any, question: Any = "What now?", **options: Any) -> Any:
    options = {"capabilities": CAPABILITIES.get(), **options}
    async with entry(team).run_stream(question, **options) as result:
        pieces = [piece async for piece in result.stream_text(debounce_by=None)]
        return [pieces, words(result.all_messages())]


async def events(team: Any, question: Any = "What now?") -> Any:
    """The stream that gives all events, and the result at the end."""
    kinds = []
    async with entry(team).run_stream_events(question) as stream:
        async for event in stream:
            kinds.append(event.event_kind)
            if event.event_kind == "agent_run_result":
                kinds.append(str(event.result.output))
    return kinds


async def step_by_step(team: Any) -> Any:
    async with entry(team).iter("What now?") as run:
        nodes = [type(node).__name__ async for node in run]
    return [nodes, run.result and run.result.output]


async def leave(team: Any) -> Any:
    """Leave a run before its end."""
    async with entry(team).iter("What now?") as run:
        async for node in run:
            if type(node).__name__ == "CallToolsNode":
                break
    return [run.result is None, words(run.all_messages())]


async def at_once(team: Any) -> Any:
    return await asyncio.gather(*(ask(team, f"question {n}") for n in range(3)))


async def talk(team: Any) -> Any:
    """Two questions in one conversation."""
    first = await entry(team).run("One?", capabilities=CAPABILITIES.get())
    return [shown(first), await ask(team, "Two?", message_history=first.all_messages())]


async def ask_in_time(team: Any) -> Any:
    async with asyncio.timeout(20):
        return await ask(team)


async def within_one(team: Any) -> Any:
    return await ask(team, usage_limits=UsageLimits(request_limit=1))


async def with_capability(team: Any) -> Any:
    """A capability of the caller's own, which changes the result."""
    heard: list[Any] = []

    class Loud(AbstractCapability[Any]):  # type: ignore[misc]
        async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
            heard.append(len(request_context.messages))
            return request_context

        async def after_node_run(self, ctx: Any, *, node: Any, result: Any) -> Any:
            heard.append(type(node).__name__)
            return result

    return [await ask(team, capabilities=[Loud()]), heard]


async def approve(team: Any) -> Any:
    """A run that ends with a question for a person, and the run that goes on with the answer."""
    first = await entry(team).run("Pay.")
    assert isinstance(first.output, DeferredToolRequests)
    results = DeferredToolResults(
        approvals={call.tool_call_id: True for call in first.output.approvals}
    )
    history = first.all_messages()
    second = await ask(team, None, message_history=history, deferred_tool_results=results)
    return [words(history), second]


def scenario(
    build: Callable[[Script], Any], drive: Callable[[Any], Any] = ask, name: str = ""
) -> Scenario:
    return Scenario(name or f"{build.__name__}-{drive.__name__}", build, drive)


def quietly(build: Callable[[Script], Any], drive: Callable[[Any], Any] = ask) -> Scenario:
    """A scenario in which each run has a capability of the caller's own, which does nothing."""

    async def drive_quietly(team: Any) -> Any:
        CAPABILITIES.set([AbstractCapability()])
        return await drive(team)

    return scenario(build, drive_quietly, f"{build.__name__}-{drive.__name__}-quietly")


# --- what each feature of the library is used by ---


def alone(script: Script) -> Any:
    return team(agent(script, "a", says("all done")))


def tools(script: Script) -> Any:
    """Two agents at once, then one that asks another one, then an answer."""
    b, c, inner = (agent(script, name, says(f"{name} done")) for name in ("b", "c", "inner"))
    outer = agent(
        script, "outer", calls("inner", text="x"), says("outer done"), tools=[as_tool(inner)]
    )
    replies = calls("b", "c", text="both"), calls("outer", text="you"), says("all done")
    first = agent(script, "a", *replies, tools=[as_tool(b), as_tool(c), as_tool(outer)])
    return team(first, b, c, outer, inner)


def with_tools(script: Script) -> Any:
    """Two tools at once, one of which asks the model to try again, and an agent."""

    async def weather(city: str) -> str:
        await asyncio.sleep(1)
        return f"sunny in {city}"

    tries = []

    async def time(city: str) -> str:
        tries.append(city)
        if len(tries) == 1:
            raise ModelRetry("which one?")
        return "noon"

    b = agent(script, "b", says("b done"))
    replies = (
        calls("weather", "time", city="Rome"), calls("time", city="Rome"), calls("b", text="x"),
        says("done"),
    )  # fmt: skip
    return team(agent(script, "a", *replies, tools=[weather, time, as_tool(b)]), b)


def same_twice(script: Script) -> Any:
    b = agent(script, "b", says("b done"))
    replies = calls("b", "b", text="same"), calls("b", text="same"), says("done")
    return team(agent(script, "a", *replies, tools=[as_tool(b)]), b)


def failing(script: Script) -> Any:
    """An agent whose model raises; its caller's tool tells the caller's model."""
    b = agent(script, "b", raises)
    return team(
        agent(script, "a", calls("b", text="x"), says("done"), tools=[as_tool(b, catches=True)]), b
    )


def raising(script: Script) -> Any:
    """The same beside an agent that works, and nobody catches it."""
    b, c = agent(script, "b", raises), agent(script, "c", says("c done"))
    return team(agent(script, "a", calls("b", "c", text="x"), tools=[as_tool(b), as_tool(c)]), b, c)


def going_round(script: Script) -> Any:
    """Two that ask each other, within one limit of requests for both."""
    a, b = agent(script, "a", calls("b", text="?")), agent(script, "b", calls("a", text="?"))
    limits = UsageLimits(request_limit=8)

    def pass_on(inner: Agent[Any, Any]) -> Tool[Any]:
        async def ask(context: RunContext[Any], text: str) -> Any:
            return (await inner.run(text, usage=context.usage, usage_limits=limits)).output

        return Tool(ask, name=str(inner.name))

    a = agent(script, "a", calls("b", text="?"), tools=[pass_on(b)])
    b.toolsets[0].add_tool(pass_on(a))
    return team(a, b)


def in_code(script: Script) -> Any:
    """A tool that runs an agent twice at once, and another one in the background."""
    b, c = agent(script, "b", says("b done")), agent(script, "c", says("c done"))
    tasks = set()

    async def work(text: str) -> str:
        options: Any = {"capabilities": CAPABILITIES.get()}
        tasks.add(asyncio.create_task(c.run(text, **options)))
        first, second = await asyncio.gather(b.run(text, **options), b.run(text + "!", **options))
        return f"{first.output} {second.output}"

    async def wait() -> str:
        return str([result.output for result in await asyncio.gather(*tasks)])

    replies = calls("work", text="x"), calls("wait"), says("done")
    return team(agent(script, "a", *replies, tools=[work, wait]), b, c)


class Answer(BaseModel):
    number: int


def structured(script: Script) -> Any:
    """An answer of a type, at the second try."""
    replies = calls("final_result", number="many"), calls("final_result", number=3)
    return team(agent(script, "a", *replies, output_type=Answer))


def validated(script: Script) -> Any:
    first = agent(script, "a", says("short"), says("long enough"))

    @first.output_validator  # type: ignore[untyped-decorator]
    async def check(text: str) -> str:
        if len(text) < 8:
            raise ModelRetry("too short")
        return text

    return team(first)


def approved(script: Script) -> Any:
    """A tool that a person has to approve."""

    async def pay(amount: int) -> str:
        return f"paid {amount}"

    replies = calls("pay", amount=3), says("done")
    return team(agent(
        script, "a", *replies, tools=[Tool(pay, requires_approval=True)],
        output_type=[str, DeferredToolRequests],
    ))  # fmt: skip


BUILDS = (
    alone, tools, with_tools, same_twice, failing, raising, going_round, in_code, structured,
    validated,
)  # fmt: skip
SCENARIOS = [
    *(scenario(build) for build in BUILDS),
    *(scenario(build, drive) for build in (alone, tools) for drive in (stream, events)),
    *(scenario(build, drive) for build in (tools, validated) for drive in (step_by_step, leave)),
    scenario(approved, approve), scenario(alone, talk), scenario(tools, at_once),
    quietly(tools), quietly(with_tools), quietly(tools, stream), quietly(in_code),
    quietly(alone, talk), scenario(tools, within_one), scenario(tools, with_capability),
    scenario(raising, stream),
]  # fmt: skip
