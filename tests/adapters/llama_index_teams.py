"""Teams of LlamaIndex agents that use each feature of the library, and how they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest
from llama_index.core.agent.workflow import (
    AgentOutput,
    AgentWorkflow,
    BaseWorkflowAgent,
    CodeActAgent,
    FunctionAgent,
    ReActAgent,
)
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
)
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
from pydantic import BaseModel, PrivateAttr

from dig.adapters import llama_index as adapter

from . import framework_watch
from .harness import Scenario, Script

MARKS = [
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:is_running called from within a step"),
    pytest.mark.filterwarnings("ignore:Skipping serialization of known unserializable key"),
]
"""LlamaIndex looks at all attributes of an agent, at whether a run goes on that does, and does not
store the memory of a context."""

Reply = Callable[[Sequence[ChatMessage], int], Any]
"""What a model says: `(messages, number of its turn) -> message`, or raises."""


class Watched(framework_watch.Watched):
    adapter = adapter


def words(messages: Any) -> list[tuple[str, str]]:
    """What stands in a conversation, without ids."""
    return [(str(message.role.value), message.content or "") for message in messages]


def notes(messages: Any) -> list[str]:
    """The notes in what a model was given."""
    return [text for _, text in words(messages) if "[monitor]" in text]


def says(text: str) -> Reply:
    return lambda messages, number: ChatMessage(role="assistant", content=text)


def calls(*names: str, said: str = "", **arguments: Any) -> Reply:
    """Call tools, all of them with the same arguments."""
    return lambda messages, number: ChatMessage(
        role="assistant", content=said,
        additional_kwargs={"tool_calls": [
            ToolSelection(tool_id=f"{name}-{number}-{i}", tool_name=name, tool_kwargs=arguments)
            for i, name in enumerate(names)
        ]},
    )  # fmt: skip


def hands(to: str, reason: str = "for you", said: str = "") -> Reply:
    """Hand over to another agent."""
    return calls("handoff", to_agent=to, reason=reason, said=said)


def raises(messages: Any, number: int) -> Any:
    raise ValueError("no model today")


class Scripted(FunctionCallingLLM):  # type: ignore[misc]
    """A model that gives one reply after the other, and the last one from then on.

    Attributes:
        usage: What each response tells of its usage.
    """

    usage: dict[str, Any] | None = None
    _script: Script = PrivateAttr()
    _name: str = PrivateAttr()
    _replies: Sequence[Reply] = PrivateAttr()

    def __init__(self, script: Script, name: str, replies: Sequence[Reply], **more: Any) -> None:
        super().__init__(**more)
        self._script, self._name, self._replies = script, name, replies

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

    async def _respond(self, messages: Sequence[ChatMessage], choice: str = "") -> ChatResponse:
        seen = [*words(messages), *([("must", choice)] if choice else [])]
        async with self._script.turn(self._name, seen) as number:
            message = self._replies[min(number, len(self._replies)) - 1](messages, number)
        raw = None if self.usage is None else {"model": "scripted", "usage": self.usage}
        return ChatResponse(message=message, delta=message.content or "", raw=raw)

    async def achat(self, messages: Any, **more: Any) -> ChatResponse:
        return await self._respond(messages, more.get("choice", ""))

    async def astream_chat(self, messages: Any, **more: Any) -> AsyncIterator[ChatResponse]:
        async def stream() -> AsyncIterator[ChatResponse]:
            whole = await self._respond(messages, more.get("choice", ""))
            *before, last = (whole.message.content or "").split(" ")
            said = ""
            for word in before:
                said += f"{word} "
                message = ChatMessage(role="assistant", content=said)
                yield ChatResponse(message=message, delta=f"{word} ")
            yield whole.model_copy(update={"delta": last})

        return stream()

    def get_tool_calls_from_response(self, response: Any, **more: Any) -> list[ToolSelection]:
        return list(response.message.additional_kwargs.get("tool_calls", []))

    def _prepare_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, **more: Any
    ) -> dict[str, Any]:
        return {"messages": [*(chat_history or [])], "choice": more.get("tool_choice", "")}

    def chat(self, *args: Any, **more: Any) -> Any: ...
    def stream_chat(self, *args: Any, **more: Any) -> Any: ...
    def complete(self, *args: Any, **more: Any) -> Any: ...
    def stream_complete(self, *args: Any, **more: Any) -> Any: ...
    async def acomplete(self, *args: Any, **more: Any) -> CompletionResponse: ...
    async def astream_complete(self, *args: Any, **more: Any) -> Any: ...


def agent(
    script: Script, name: str, *replies: Reply, kind: Any = FunctionAgent, usage: Any = None,
    **more: Any,
) -> BaseWorkflowAgent:  # fmt: skip
    more = {"description": f"It is {name}.", **more}
    return kind(name=name, llm=Scripted(script, name, replies, usage=usage), **more)


def workflow(*agents: BaseWorkflowAgent, **more: Any) -> AgentWorkflow:
    return AgentWorkflow(agents=[*agents], root_agent=agents[0].name, **more)


def as_tool(inner: Any, name: str = "", **options: Any) -> FunctionTool:
    async def ask(text: str) -> str:
        return str(await inner.run(user_msg=text, **options))

    return FunctionTool.from_defaults(async_fn=ask, name=name or inner.name, description="It asks.")


def entry(team: Any) -> Any:
    """The first member of a team."""
    if isinstance(team, Mapping):
        return next(iter(team.values()))
    return team[0] if isinstance(team, Sequence) else team


def shown(result: Any) -> Any:
    """All of a result that a host would look at."""
    if not isinstance(result, AgentOutput):
        return result
    return {
        "answer": str(result), "by": result.current_agent_name,
        "tools": [call.tool_name for call in result.tool_calls],
        "structured": result.structured_response, "retries": len(result.retry_messages),
    }  # fmt: skip


def with_context(fn: Callable[..., Any]) -> FunctionTool:
    """A tool that is given the context, which LlamaIndex knows by the annotation itself."""
    fn.__annotations__["ctx"] = Context
    return FunctionTool.from_defaults(async_fn=fn)


async def ask(team: Any, question: Any = "What now?", **options: Any) -> Any:
    return shown(await entry(team).run(user_msg=question, **options))


async def stream(team: Any, question: Any = "What now?", **options: Any) -> Any:
    """All events of a run, and its result."""
    handler = entry(team).run(user_msg=question, **options)
    events = []
    async for event in handler.stream_events():
        text = getattr(event, "delta", None) or getattr(event, "tool_name", None)
        events.append((type(event).__name__, text, getattr(event, "current_agent_name", "")))
    return [events, shown(await handler)]


async def by_history(team: Any) -> Any:
    """A run that is asked by the last message of a history."""
    history = [ChatMessage(role="user", content="Before."), ChatMessage(content="What now?")]
    return shown(await entry(team).run(chat_history=history))


async def by_position(team: Any) -> Any:
    return shown(await entry(team).run("What now?"))


async def talk(team: Any) -> Any:
    """Two questions in one conversation; the second begins with who had the floor last."""
    first = entry(team)
    context = Context(first)
    answers = [shown(await first.run(user_msg="One?", ctx=context))]
    return [*answers, shown(await first.run(user_msg="Two?", ctx=context))]


async def talk_again(team: Any) -> Any:
    """The same, and the conversation is stored in between."""
    first = entry(team)
    context = Context(first)
    answers = [shown(await first.run(user_msg="One?", ctx=context))]
    context = Context.from_dict(first, context.to_dict())
    return [*answers, shown(await first.run(user_msg="Two?", ctx=context))]


async def with_memory(team: Any) -> Any:
    memory = ChatMemoryBuffer.from_defaults(token_limit=10_000)
    result = await entry(team).run(user_msg="What now?", memory=memory)
    said = [text for _, text in words(await memory.aget()) if "[monitor]" not in text]
    return [shown(result), said]


async def at_once(team: Any) -> Any:
    return await asyncio.gather(*(ask(team, f"question {n}") for n in range(3)))


async def ask_in_time(team: Any) -> Any:
    async with asyncio.timeout(20):
        return await ask(team)


async def few_steps(team: Any) -> Any:
    return await ask(team, max_iterations=2)


async def few_steps_told(team: Any) -> Any:
    """At the limit of steps the model is asked for an answer."""
    return await ask(team, max_iterations=2, early_stopping_method="generate")


async def without_question(team: Any) -> Any:
    return shown(await entry(team).run())


async def cancel_run(team: Any) -> Any:
    """A run that its caller cancels by the handler."""
    handler = entry(team).run(user_msg="What now?")
    await asyncio.sleep(0.05)
    await handler.cancel_run()
    return [handler.is_done(), type(handler._result_exception).__name__]


async def approve(team: Any) -> Any:
    """A run whose tool asks a person, who answers after ten minutes."""
    handler = entry(team).run(user_msg="Pay.")
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            await asyncio.sleep(600)
            handler.ctx.send_event(HumanResponseEvent(response="yes"))
    return shown(await handler)


def scenario(
    build: Callable[[Script], Any], drive: Callable[[Any], Any] = ask, name: str = ""
) -> Scenario:
    return Scenario(name or f"{build.__name__}-{drive.__name__}", build, drive)


# --- what each feature of the library is used by ---


def alone(script: Script) -> Any:
    return agent(script, "a", says("all done"))


def handing(script: Script) -> Any:
    """Three agents, each of which hands over to the next."""
    return workflow(
        agent(script, "a", hands("b"), system_prompt="You are a."),
        agent(script, "b", hands("c", said="I did my part.")),
        agent(script, "c", says("all done"), system_prompt="You are c."),
    )


def back_and_forth(script: Script) -> Any:
    """An agent asks another one for a part, by hand-overs."""
    return workflow(
        agent(script, "a", hands("b", "the first part"), hands("b", "the rest"), says("all done")),
        agent(script, "b", hands("a", "the first is done"), hands("a", "the rest is done")),
    )


def wrongly(script: Script) -> Any:
    """Hand-overs to nobody, and to who must not be handed over to."""
    return workflow(
        agent(script, "a", hands("nobody"), hands("c"), hands("b"), can_handoff_to=["b"]),
        agent(script, "b", says("all done")),
        agent(script, "c", says("never")),
    )


def to_two(script: Script) -> Any:
    """Two hand-overs in one response: LlamaIndex carries out one of them."""

    def both(messages: Any, number: int) -> Any:
        tool_calls = [
            ToolSelection(
                tool_id=f"x{to}", tool_name="handoff", tool_kwargs={"to_agent": to, "reason": "?"}
            )
            for to in "bc"
        ]
        return ChatMessage(
            role="assistant", content="", additional_kwargs={"tool_calls": tool_calls}
        )

    return workflow(
        agent(script, "a", both), agent(script, "b", says("b done")),
        agent(script, "c", says("c done")),
    )  # fmt: skip


def tools(script: Script) -> Any:
    """Two agents at once, then one that asks another one, then an answer."""
    b, c, inner = (agent(script, name, says(f"{name} done")) for name in ("b", "c", "inner"))
    outer = agent(
        script, "outer", calls("inner", text="x"), says("outer done"), tools=[as_tool(inner)]
    )
    replies = calls("b", "c", text="both"), calls("outer", text="you"), says("all done")
    first = agent(script, "a", *replies, tools=[as_tool(b), as_tool(c), as_tool(outer)])
    return [first, b, c, outer, inner]


def inside(script: Script) -> Any:
    """A workflow whose agent asks another workflow, in which there is a hand-over."""
    inner = workflow(agent(script, "c", hands("d")), agent(script, "d", says("d done")))
    first = workflow(
        agent(script, "a", hands("b")),
        agent(script, "b", calls("ask", text="x"), says("all done"), tools=[as_tool(inner, "ask")]),
    )
    return [first, inner]


def with_tools(script: Script) -> Any:
    """Tools that work, that raise, that are not there, and an agent."""

    async def weather(city: str) -> str:
        await asyncio.sleep(1)
        return f"sunny in {city}"

    def broken(city: str) -> str:
        raise ValueError(f"no map of {city}")

    b = agent(script, "b", says("b done"))
    replies = (
        calls("weather", "broken", city="Rome"), calls("missing"), calls("b", text="x"),
        says("done"),
    )  # fmt: skip
    return [agent(script, "a", *replies, tools=[weather, broken, as_tool(b)]), b]


def returning(script: Script) -> Any:
    """A tool whose result is the answer."""

    async def look_up(word: str) -> str:
        return f"{word} is a word"

    tool = FunctionTool.from_defaults(async_fn=look_up, return_direct=True)
    return agent(script, "a", calls("look_up", word="pen"), tools=[tool])


def same_twice(script: Script) -> Any:
    b = agent(script, "b", says("b done"))
    replies = calls("b", "b", text="same"), calls("b", text="same"), says("done")
    return [agent(script, "a", *replies, tools=[as_tool(b)]), b]


def failing(script: Script) -> Any:
    """An agent whose model raises; LlamaIndex tells the caller's model."""
    b = agent(script, "b", raises)
    return [agent(script, "a", calls("b", text="x"), says("done"), tools=[as_tool(b)]), b]


def raising(script: Script) -> Any:
    """The same after a hand-over, so that nobody catches it."""
    return workflow(agent(script, "a", hands("b")), agent(script, "b", raises))


def going_round(script: Script) -> Any:
    """Two that hand over to each other until the limit of steps."""
    return workflow(agent(script, "a", hands("b")), agent(script, "b", hands("a")))


def in_code(script: Script) -> Any:
    """A tool that runs an agent twice at once, and another one in the background."""
    b, c = agent(script, "b", says("b done")), agent(script, "c", says("c done"))
    handlers: list[Any] = []

    async def work(text: str) -> str:
        handlers.append(c.run(user_msg=text))
        first, second = b.run(user_msg=text), b.run(user_msg=f"{text}!")
        return f"{await first} {await second}"

    async def wait() -> str:
        return str([str(await handler) for handler in handlers])

    replies = calls("work", text="x"), calls("wait"), says("done")
    return [agent(script, "a", *replies, tools=[work, wait]), b, c]


def in_a_thread(script: Script) -> Any:
    """A tool that is no coroutine function runs in a thread, and runs an agent there."""
    b = agent(script, "b", says("b done"))
    given: list[Any] = []

    def look(text: str) -> str:
        import dig

        given.append(len(dig.notes()))
        return f"{text} {len(given)}"

    return [agent(script, "a", calls("look", text="x"), says("done"), tools=[look]), b]


def not_streamed(script: Script) -> Any:
    return workflow(
        agent(script, "a", hands("b"), streaming=False),
        agent(script, "b", says("all done"), streaming=False),
    )


def thinking(script: Script) -> Any:
    """ReAct agents, one of which writes what is no action, and then hands over."""
    handover = 'Thought: b.\nAction: handoff\nAction Input: {"to_agent": "b", "reason": "yes"}'
    return workflow(
        agent(script, "a", says("Thought: hm."), says(handover), kind=ReActAgent),
        agent(script, "b", says("Thought: I can.\nAnswer: all done"), kind=ReActAgent),
    )


def acting(script: Script) -> Any:
    """An agent that writes code, and then answers."""

    async def execute(code: str) -> str:
        return f"ran {code}"

    replies = says("Run it: <execute>1 + 1</execute>"), says("It is 2.")
    return agent(script, "a", *replies, kind=CodeActAgent, code_execute_fn=execute)


class Answer(BaseModel):
    number: int


def structured(script: Script) -> Any:
    """An answer that a function makes an object of."""
    return workflow(
        agent(script, "a", hands("b")), agent(script, "b", says("3")),
        structured_output_fn=lambda messages: {"number": int(messages[-1].content)},
    )  # fmt: skip


def stateful(script: Script) -> Any:
    """A tool that changes the state of the workflow."""

    async def note(ctx: Context, text: str) -> str:
        state = await ctx.store.get("state")
        await ctx.store.set("state", {**state, "text": text})
        return "noted"

    return workflow(
        agent(script, "a", calls("note", text="x"), hands("b"), tools=[with_context(note)]),
        agent(script, "b", says("all done")), initial_state={"text": ""},
    )  # fmt: skip


def approved(script: Script) -> Any:
    """A tool that a person has to approve."""

    async def pay(ctx: Context, amount: int) -> str:
        said = await ctx.wait_for_event(
            HumanResponseEvent, waiter_id="pay", waiter_event=InputRequiredEvent(prefix="Pay?")
        )
        return f"paid {amount}: {said.response}"

    return workflow(
        agent(script, "a", hands("b")),
        agent(script, "b", calls("pay", amount=3), says("done"), tools=[with_context(pay)]),
    )


BUILDS = (
    handing, alone, back_and_forth, wrongly, to_two, tools, inside, with_tools, returning,
    same_twice, failing, raising, going_round, in_code, in_a_thread, not_streamed, thinking,
    acting, structured, stateful,
)  # fmt: skip
SCENARIOS = [
    *(scenario(build) for build in BUILDS),
    *(scenario(build, stream) for build in (handing, alone, tools, thinking, raising)),
    *(scenario(build, with_memory) for build in (handing, thinking, tools)),
    *(scenario(build, talk) for build in (alone, handing, thinking)),
    *(scenario(handing, drive) for drive in (by_history, by_position, talk_again, at_once)),
    *(scenario(handing, drive) for drive in (few_steps, few_steps_told, without_question)),
    *(scenario(build, cancel_run) for build in (handing, tools)),
    scenario(tools, at_once), scenario(tools, few_steps), scenario(tools, few_steps_told),
    scenario(approved, approve),
]  # fmt: skip
