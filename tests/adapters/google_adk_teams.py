"""Teams of Google ADK that use each feature of the library, and how they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from google.adk.agents import (
    BaseAgent,
    LlmAgent,
    LoopAgent,
    ParallelAgent,
    RunConfig,
    SequentialAgent,
)
from google.adk.agents.run_config import StreamingMode
from google.adk.events import Event
from google.adk.models import BaseLlm, LlmResponse
from google.adk.plugins import BasePlugin
from google.adk.runners import InMemoryRunner, Runner
from google.adk.tools import LongRunningFunctionTool, exit_loop
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import JoinNode, Workflow
from google.genai import types
from pydantic import BaseModel

from dig.adapters import google_adk as adapter
from dig.adapters.google_adk import runs

from . import framework_watch
from .harness import Scenario, Script

OLD_WAYS = [pytest.mark.filterwarnings("ignore:.*(is deprecated|EXPERIMENTAL)")]
"""ADK warns of sequences, parallels and loops, and of how its own `AgentTool` makes a runner."""

Reply = Callable[[Any, int], Any]
"""What a model says: `(contents, number of its turn) -> parts`, or raises."""


class Watched(framework_watch.Watched):
    """The methods of ADK's classes are replaced with the first team, so each team is the first."""

    adapter = adapter

    def __call__(self, team: Any) -> Any:
        for old in [*runs.TEAMS]:
            runs.remove(old)
        return super().__call__(team)


def part_words(part: Any) -> Any:
    """What a part says, without ids."""
    if part.function_call:
        return (part.function_call.name, part.function_call.args)
    if part.function_response:
        return (part.function_response.name, part.function_response.response)
    return part.text


def words(contents: Any) -> list[Any]:
    """What stands in a conversation, without ids."""
    return [
        (content.role, *(part_words(part) for part in content.parts or ()))
        for content in contents
    ]  # fmt: skip


def notes(contents: Any) -> list[str]:
    """The notes in what a model was given."""
    texts = (text for _, *said in words(contents) for text in said)
    return [text for text in texts if isinstance(text, str) and text.startswith("[monitor]")]


def says(text: str) -> Reply:
    return lambda contents, number: [types.Part.from_text(text=text)]


def calls(*names: str, **arguments: Any) -> Reply:
    """Call tools, all of them with the same arguments."""
    return lambda contents, number: [
        types.Part.from_function_call(name=name, args=arguments) for name in names
    ]


def asks(*names: str, text: str) -> Reply:
    return calls(*names, request=text)


def hands(to: str) -> Reply:
    return calls("transfer_to_agent", agent_name=to)


def raises(contents: Any, number: int) -> Any:
    raise ValueError("no model today")


class Model(BaseLlm):  # type: ignore[misc]
    """A model that gives one reply after the other, and the last one from then on."""

    script: Any
    replies: Any

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        contents = llm_request.contents
        async with self.script.turn(self.model, words(contents)) as number:
            parts = self.replies[min(number, len(self.replies)) - 1](contents, number)
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=90, candidates_token_count=10
        )
        if stream and parts[0].text:
            for word in parts[0].text.split(" "):
                said = types.Content(role="model", parts=[types.Part.from_text(text=word + " ")])
                yield LlmResponse(content=said, partial=True)
        content = types.Content(role="model", parts=parts)
        yield LlmResponse(content=content, usage_metadata=usage)


def agent(script: Script, name: str, *replies: Reply, **more: Any) -> LlmAgent:
    model = Model(model=name, script=script, replies=replies)
    return LlmAgent(name=name, model=model, **more)


def runner_of(team: Any) -> Runner:
    if isinstance(team, Runner):
        return team
    root = {"agent": team} if isinstance(team, BaseAgent) else {"node": team}
    return InMemoryRunner(app_name="team", **root)


def shown(event: Event) -> Any:
    """All of an event that a host would look at."""
    said = event.content and words([event.content])
    actions = event.actions
    marks = (actions.transfer_to_agent, actions.escalate, event.partial, event.error_code)
    return (event.author, said, *marks, event.branch and event.branch.split("@")[0])


async def begin(runner: Runner) -> Any:
    return await runner.session_service.create_session(app_name=runner.app_name, user_id="u")


async def say(runner: Runner, session: Any, text: str, **options: Any) -> list[Any]:
    message = types.UserContent(text)
    place = {"user_id": "u", "session_id": session.id}
    return [shown(event) async for event in runner.run_async(
        **place, new_message=message, **options
    )]  # fmt: skip


async def kept(runner: Runner, session: Any) -> list[Any]:
    """What stands in the session."""
    place = {"app_name": runner.app_name, "user_id": "u", "session_id": session.id}
    stored = await runner.session_service.get_session(**place)
    return [shown(event) for event in stored.events]


async def ask(team: Any, text: str = "What now?", **options: Any) -> Any:
    runner = runner_of(team)
    session = await begin(runner)
    events = await say(runner, session, text, **options)
    return {"events": events, "session": await kept(runner, session)}


def answer_of(outcome: Any) -> str:
    """The last words that a host has got."""
    events = eval(outcome.returned)["events"]
    return str(events[-1][1][0][1])


async def stream(team: Any) -> Any:
    return await ask(team, run_config=RunConfig(streaming_mode=StreamingMode.SSE))


async def leave(team: Any) -> Any:
    """Leave a run after its first event."""
    runner = runner_of(team)
    session = await begin(runner)
    place = {"user_id": "u", "session_id": session.id}
    async with aclosing(runner.run_async(**place, new_message=types.UserContent("x"))) as events:
        async for event in events:
            return [shown(event), await kept(runner, session)]


async def at_once(team: Any) -> Any:
    runner = runner_of(team)
    sessions = [await begin(runner) for _ in range(3)]
    return await asyncio.gather(
        *(say(runner, session, f"question {n}") for n, session in enumerate(sessions))
    )


async def talk(team: Any) -> Any:
    """Two questions in one session."""
    runner = runner_of(team)
    session = await begin(runner)
    first = await say(runner, session, "One?")
    return [first, await say(runner, session, "Two?"), await kept(runner, session)]


async def ask_in_time(team: Any) -> Any:
    async with asyncio.timeout(20):
        return await ask(team)


async def within_one(team: Any) -> Any:
    return await ask(team, run_config=RunConfig(max_llm_calls=1))


async def debug(team: Any) -> Any:
    """The way in for a quick look."""
    events = await runner_of(team).run_debug("What now?", quiet=True)
    return [shown(event) for event in events]


async def with_plugin(team: Any) -> Any:
    """A plugin of the caller's own, which changes events."""
    heard: list[Any] = []

    class Loud(BasePlugin):  # type: ignore[misc]
        async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
            heard.append((callback_context.agent_name, len(llm_request.contents)))

        async def after_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
            heard.append(agent.name)

        async def on_event_callback(self, *, invocation_context: Any, event: Any) -> Any:
            if event.content and event.content.parts and event.content.parts[0].text:
                event.content.parts[0].text += "!"
                return event
            return None

    runner = InMemoryRunner(app_name="team", agent=team, plugins=[Loud(name="loud")])
    return [await ask(runner), heard]


def scenario(
    build: Callable[[Script], Any], drive: Callable[[Any], Any] = ask, name: str = ""
) -> Scenario:
    return Scenario(name or f"{build.__name__}-{drive.__name__}", build, drive)


# --- what each feature of the library is used by ---


def alone(script: Script) -> Any:
    return agent(script, "a", says("all done"))


def tools(script: Script) -> Any:
    """Two agents at once, then one that asks another one, then an answer."""
    b, c, inner = (agent(script, name, says(f"{name} done")) for name in ("b", "c", "inner"))
    outer = agent(
        script, "outer", asks("inner", text="x"), says("outer done"), tools=[AgentTool(inner)]
    )
    replies = asks("b", "c", text="both"), asks("outer", text="you"), says("all done")
    return agent(script, "a", *replies, tools=[AgentTool(b), AgentTool(c), AgentTool(outer)])


def transfers(script: Script) -> Any:
    """One asks an agent, hands over to a second, which hands on to a third."""
    c = agent(script, "c", says("c done"))

    def hand_on(contents: Any, number: int) -> Any:
        return [types.Part.from_text(text="You know more."), *hands("c")(contents, number)]

    b = agent(script, "b", hand_on, sub_agents=[c])
    h = agent(script, "h", says("h done"))
    return agent(
        script, "a", asks("h", text="who?"), hands("b"), tools=[AgentTool(h)], sub_agents=[b]
    )


def sequence(script: Script) -> Any:
    """A sequence of one, of two beside each other, and of one that hands over."""
    z = agent(script, "z", says("z done"))
    both = ParallelAgent(name="both", sub_agents=[
        agent(script, "x", says("x done")), agent(script, "y", says("y done"))
    ])  # fmt: skip
    last = agent(script, "last", hands("z"), sub_agents=[z])
    return SequentialAgent(
        name="line", sub_agents=[agent(script, "first", says("first done")), both, last]
    )


def loop(script: Script) -> Any:
    """Two that improve a text until one of them leaves the loop."""
    writer = agent(script, "writer", says("one"), says("two"))
    critic = agent(script, "critic", says("shorter"), calls("exit_loop"), tools=[exit_loop])
    return LoopAgent(name="rounds", sub_agents=[writer, critic], max_iterations=5)


def workflow(script: Script) -> Any:
    """Two beside each other, joined, and a function between two agents."""
    x, y, last = (agent(script, name, says(f"{name} done")) for name in ("x", "y", "last"))

    def count(node_input: Any) -> str:
        return f"{len(node_input)} reports"

    joined = JoinNode(name="joined")
    return Workflow(name="flow", edges=[("START", (x, y), joined, count, last)])


def single_turn(script: Script) -> Any:
    """A sub-agent that works in the session of the agent that asks it."""
    b = agent(script, "b", says("b done"), mode="single_turn")
    return agent(script, "a", asks("b", text="x"), says("all done"), sub_agents=[b])


def task(script: Script) -> Any:
    """A sub-agent that is given a task, and ends it by a tool."""
    b = agent(script, "b", calls("finish_task", result="b done"), mode="task")
    return agent(script, "a", asks("b", text="x"), says("all done"), sub_agents=[b])


def with_tools(script: Script) -> Any:
    """Two tools at once, one of which fails, and an agent."""

    async def weather(city: str) -> str:
        await asyncio.sleep(1)
        return f"sunny in {city}"

    async def time(city: str) -> dict[str, str]:
        return {"error": "which one?"}

    b = agent(script, "b", says("b done"))
    replies = calls("weather", "time", city="Rome"), asks("b", text="x"), says("done")
    return agent(script, "a", *replies, tools=[weather, time, AgentTool(b)])


def failing(script: Script) -> Any:
    """An agent whose model raises; its caller's model is told."""
    b = agent(script, "b", raises)

    def tell(tool: Any, args: Any, tool_context: Any, error: Any) -> Any:
        return {"error": str(error)}

    return agent(
        script, "a", asks("b", text="x"), says("done"),
        tools=[AgentTool(b)], on_tool_error_callback=tell,
    )  # fmt: skip


def raising(script: Script) -> Any:
    """The same, and nobody catches it."""
    return agent(script, "a", asks("b", text="x"), tools=[AgentTool(agent(script, "b", raises))])


def raising_in_line(script: Script) -> Any:
    b = agent(script, "b", raises)
    return SequentialAgent(name="line", sub_agents=[agent(script, "a", says("a done")), b])


def blocked(script: Script) -> Any:
    """A model that is not allowed to answer: ADK tells that in an event, and raises nothing."""

    class Blocked(Model):
        async def generate_content_async(
            self, llm_request: Any, stream: bool = False
        ) -> AsyncIterator[LlmResponse]:
            async with self.script.turn(self.model, words(llm_request.contents)):
                pass
            yield LlmResponse(error_code="SAFETY", error_message="not allowed")

    return LlmAgent(name="a", model=Blocked(model="a", script=script, replies=()))


def in_code(script: Script) -> Any:
    """A tool that runs an agent twice at once, and another one in the background."""
    b, c = agent(script, "b", says("b done")), agent(script, "c", says("c done"))
    tasks = set()

    async def work(text: str) -> str:
        tasks.add(asyncio.create_task(ask(c, text)))
        both = await asyncio.gather(ask(b, text), ask(b, text + "!"))
        return " ".join(str(one["events"][-1][1]) for one in both)

    async def wait() -> str:
        return str([one["events"] for one in await asyncio.gather(*tasks)])

    replies = calls("work", text="x"), calls("wait"), says("done")
    return agent(script, "a", *replies, tools=[work, wait])


class Answer(BaseModel):
    number: int


def structured(script: Script) -> Any:
    """An answer of a type, which is kept in the state."""
    return agent(script, "a", says('{"number": 3}'), output_schema=Answer, output_key="it")


def with_callbacks(script: Script) -> Any:
    """Callbacks of the agent's own, the last of which has the last word."""

    def before(callback_context: Any) -> None:
        callback_context.state["began"] = True

    def after(callback_context: Any) -> Any:
        return types.ModelContent("after all")

    return agent(
        script, "a", says("done"), before_agent_callback=before, after_agent_callback=after
    )


def asking_a_person(script: Script) -> Any:
    """A tool whose result comes later."""

    def pay(amount: int) -> None:
        return None

    return agent(
        script, "a", calls("pay", amount=3), says("done"), tools=[LongRunningFunctionTool(pay)]
    )


class Leaf(BaseAgent):  # type: ignore[misc]
    """An agent without a model."""

    async def _run_async_impl(self, ctx: Any) -> AsyncIterator[Event]:
        content = types.ModelContent("leaf done")
        yield Event(author=self.name, invocation_id=ctx.invocation_id, content=content)


class Chooses(BaseAgent):  # type: ignore[misc]
    """An agent of one's own that only runs others, in code."""

    async def _run_async_impl(self, ctx: Any) -> AsyncIterator[Event]:
        for inner in self.sub_agents:
            async for event in inner.run_async(ctx):
                yield event


def own_class(script: Script) -> Any:
    inner = [Leaf(name="leaf"), agent(script, "b", says("b done"))]
    return Chooses(name="chooses", sub_agents=inner)


BUILDS: Sequence[Callable[[Script], Any]] = (
    alone, tools, transfers, sequence, loop, workflow, single_turn, task, with_tools, failing,
    raising, raising_in_line, blocked, in_code, structured, with_callbacks, asking_a_person,
    own_class,
)  # fmt: skip
SCENARIOS = [
    *(scenario(build) for build in BUILDS),
    *(scenario(build, stream) for build in (alone, tools, transfers, sequence)),
    *(scenario(build, leave) for build in (alone, tools, transfers, sequence, workflow)),
    *(scenario(build, talk) for build in (alone, transfers, sequence)),
    scenario(tools, at_once), scenario(transfers, at_once), scenario(tools, within_one),
    scenario(transfers, debug), scenario(tools, with_plugin), scenario(transfers, with_plugin),
]  # fmt: skip
