"""Teams of OpenAI agents that use each feature of the SDK, and how they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from agents import (
    Agent,
    AgentHooks,
    AgentOutputSchema,
    GuardrailFunctionOutput,
    RunConfig,
    RunHooks,
    Runner,
    RunResultStreaming,
    SQLiteSession,
    function_tool,
    handoff,
    input_guardrail,
    output_guardrail,
    set_tracing_disabled,
)
from agents.extensions.handoff_filters import remove_all_tools
from agents.run import ModelInputData, set_default_agent_runner
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from dig.adapters import openai_agents as adapter

from . import framework_watch
from .harness import Scenario, Script

set_tracing_disabled(True)

CANCELLED = [
    pytest.mark.filterwarnings("ignore:coroutine 'run_single_turn' was never awaited"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""The SDK forgets a coroutine if it is cancelled before the first step; so it does unwrapped."""

Reply = Callable[[Any, int], Any]
"""What a model says: `(call, number of its turn) -> output items`, or raises."""


class Watched(framework_watch.Watched):
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


def together(*replies: Reply) -> Reply:
    """All of what several replies say."""
    return lambda call, number: [item for reply in replies for item in reply(call, number)]


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


def done(script: Script, *names: str) -> list[Agent[Any]]:
    """Agents that say that they are done."""
    return [agent(script, name, says(f"{name} done")) for name in names]


def tool(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a function a tool."""
    decorate: Callable[[Callable[..., Any]], Any] = function_tool(**options)
    return decorate


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


# --- what each feature of the SDK is used by ---


def alone(script: Script) -> Any:
    return agent(script, "a", says("done"))


def chain(script: Script) -> Any:
    """Handoffs: a silent one, one with words, one with arguments and a filter."""
    d = agent(script, "d", says("done"))
    with_reason = handoff(d, input_type=str_reason(), on_handoff=nothing, input_filter=filtered)
    c = agent(script, "c", hands("d", reason="tired"), handoffs=[with_reason])
    b = agent(script, "b", together(says("Ask c."), hands("c")), handoffs=[c])
    return agent(script, "a", hands("b"), handoffs=[b])


def str_reason() -> Any:
    from pydantic import BaseModel

    class Reason(BaseModel):
        reason: str

    return Reason


async def nothing(context: Any, given: Any) -> None:
    await asyncio.sleep(0)


def filtered(data: Any) -> Any:
    return remove_all_tools(data)


def tools(script: Script) -> Any:
    """Two agents as tools at once, then one that has one of its own, then an answer."""
    inner = agent(script, "inner", says("inner done"))
    outer = agent(script, "outer", calls("inner", input="x"), says("outer done"))
    outer.tools = [as_tool(inner)]
    b, c = done(script, *"bc")
    replies = calls("b", "c", input="both"), calls("outer", input="you"), says("all done")
    return agent(script, "a", *replies, tools=[as_tool(b), as_tool(c), as_tool(outer)])


def with_tools(script: Script) -> Any:
    """Two tools at once, one of which fails, and an agent as a tool."""

    @tool()
    async def weather(city: str) -> str:
        await asyncio.sleep(1)
        return f"sunny in {city}"

    @tool()
    async def time(city: str) -> str:
        raise ValueError(city)

    b = agent(script, "b", says("b done"))
    replies = (calls("weather", "time", city="Rome"), calls("b", input="x"), says("done"))
    return agent(script, "a", *replies, tools=[weather, time, as_tool(b)])


def same_twice(script: Script) -> Any:
    b = agent(script, "b", says("b done"))
    replies = calls("b", "b", input="same"), calls("b", input="same"), says("done")
    return agent(script, "a", *replies, tools=[as_tool(b)])


def dropped(script: Script) -> Any:
    """Two handoffs at once, of which one is carried out; and a tool call beside them."""
    b, c = done(script, *"bc")
    replies = calls("transfer_to_b", "transfer_to_c"), says("done")
    return agent(script, "a", *replies, handoffs=[b, c])


def tool_and_handoff(script: Script) -> Any:
    b, c = done(script, *"bc")
    both = together(calls("b", input="x"), hands("c"))
    return agent(script, "a", both, tools=[as_tool(b)], handoffs=[c])


def failing(script: Script) -> Any:
    """An agent as a tool whose model raises; the SDK tells the caller's model."""
    b = agent(script, "b", raises)
    return agent(script, "a", calls("b", input="x"), says("done"), tools=[as_tool(b)])


def raises(call: Any, number: int) -> Any:
    raise ValueError("no model today")


def raising(script: Script) -> Any:
    """The same, and nobody catches it."""
    b = agent(script, "b", raises)
    c = agent(script, "c", says("c done"))
    inner = [as_tool(b, failure_error_function=None), as_tool(c)]
    return agent(script, "a", calls("b", "c", input="x"), says("done"), tools=inner)


def going_round(script: Script) -> Any:
    """Two that hand over to each other, until the SDK has enough."""
    a, b = agent(script, "a", hands("b")), agent(script, "b", hands("a"))
    a.handoffs, b.handoffs = [b], [a]
    return a


def guarded(script: Script) -> Any:
    """Guardrails that ask an agent of their own, beside the model and after it."""
    guard = agent(script, "guard", says("fine"))

    async def check(context: Any, agent: Any, given: Any) -> Any:
        result = await Runner.run(guard, given)
        return GuardrailFunctionOutput(result.final_output, False)

    b = agent(script, "b", says("b done"), output_guardrails=[output_guardrail(check)])
    checks = [input_guardrail(check)]
    a = agent(script, "a", calls("b", input="x"), hands("b"), input_guardrails=checks)
    a.handoffs, a.tools = [b], [as_tool(b)]
    return a


async def trips(context: Any, agent: Any, given: Any) -> Any:
    await asyncio.sleep(0.15)
    return GuardrailFunctionOutput("no", True)


def stopped_before(script: Script) -> Any:
    [b] = done(script, "b")
    checks = [input_guardrail(trips)]
    replies = calls("b", input="x"), says("done")
    return agent(script, "a", *replies, input_guardrails=checks, tools=[as_tool(b)])


def stopped_after(script: Script) -> Any:
    return agent(script, "a", says("done"), output_guardrails=[output_guardrail(trips)])


def stopping_at_tool(script: Script) -> Any:
    b, c = done(script, *"bc")
    return agent(script, "a", calls("b", "c", input="x"), tools=[as_tool(b), as_tool(c)],
                 tool_use_behavior="stop_on_first_tool")  # fmt: skip


def in_code(script: Script) -> Any:
    """Tools that run agents themselves, one of them in the background, and one that fails."""
    b, c = agent(script, "b", says("b done")), agent(script, "c", raises)

    @tool()
    async def ask_b(text: str) -> str:
        first, second = await asyncio.gather(Runner.run(b, text), Runner.run(b, text + "!"))
        return f"{first.final_output} {second.final_output}"

    @tool()
    async def ask_c(text: str) -> str:
        await Runner.run(c, text)
        return "never"

    replies = calls("ask_b", "ask_c", text="x"), says("done")
    return agent(script, "a", *replies, tools=[ask_b, ask_c])


def structured(script: Script) -> Any:
    schema = AgentOutputSchema(dict[str, Any], strict_json_schema=False)
    answer = '{"response": {"n": 1}}'
    return agent(script, "a", says(answer), output_type=schema)


def listening(script: Script) -> Any:
    """An agent as a tool whose stream is listened to."""

    async def hear(event: Any) -> None:
        script.log.append(("listener", event["event"].type, event["agent"].name))

    b = agent(script, "b", hands("c"), handoffs=[agent(script, "c", says("c done"))])
    b_tool = as_tool(b, on_stream=hear)
    return agent(script, "a", calls("b", input="x"), says("done"), tools=[b_tool])


def hooked(script: Script) -> Any:
    """Hooks of the agents."""

    class Hooks(AgentHooks[Any]):  # type: ignore[misc]
        async def on_handoff(self, context: Any, agent: Any, source: Any) -> None:
            script.log.append((agent.name, "gets it from", source.name))

        async def on_start(self, context: Any, agent: Any) -> None:
            script.log.append((agent.name, "starts", ""))

    team = chain(script)
    team.hooks = Hooks()
    team.handoffs[0].hooks = Hooks()
    return team


def approved(script: Script) -> Any:
    """A tool that somebody outside has to approve, in an agent as a tool."""

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        return f"paid {amount}"

    b = agent(script, "b", calls("pay", amount=3), says("b paid"), tools=[pay])
    return agent(script, "a", calls("b", input="x"), says("done"), tools=[as_tool(b)])


def approved_state(result: Any) -> Any:
    """The state of a run of which all that somebody has to approve is approved."""
    state = result.to_state()
    for one in result.interruptions:
        state.approve(one)
    return state


async def approve(team: Any) -> Any:
    first = await Runner.run(team, "Pay.")
    return [shown(first), await ask(team, approved_state(first))]


async def approve_streamed(team: Any) -> Any:
    first = await Runner.run(team, "Pay.")
    return [shown(first), await stream(team, approved_state(first))]


async def talk(team: Any) -> Any:
    """Two questions in one session."""
    session = SQLiteSession("one")
    try:
        first = await ask(team, "One?", session=session)
        return [first, await ask(team, "Two?", session=session)]
    finally:
        session.close()


async def go_on(team: Any) -> Any:
    """The last agent is asked further."""
    first = await Runner.run(team, "One?")
    more = [*first.to_input_list(), {"role": "user", "content": "Two?"}]
    return [shown(first), await ask(first.last_agent, more)]


async def ask_in_time(team: Any) -> Any:
    async with asyncio.timeout(20):
        return await ask(team)


async def with_handlers(team: Any) -> Any:
    return await ask(team, error_handlers={"max_turns": lambda given: "enough"}, max_turns=4)


async def with_config(team: Any) -> Any:
    """A filter and hooks of the caller's own."""
    heard: list[Any] = []

    class Hooks(RunHooks[Any]):  # type: ignore[misc]
        async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
            heard.append((from_agent.name, to_agent.name))

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            await asyncio.sleep(0)
            heard.append((agent.name, len(response.output)))

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            heard.append((agent.name, tool.name))

    async def cut(data: Any) -> Any:
        await asyncio.sleep(0)
        return ModelInputData(input=data.model_data.input[-2:], instructions="Be short.")

    config = RunConfig(call_model_input_filter=cut, workflow_name="cut")
    return [await ask(team, hooks=Hooks(), run_config=config), heard]


async def with_wrong_hooks(team: Any) -> Any:
    return await ask(team, hooks=AgentHooks())


async def stop_streaming(team: Any) -> Any:
    """Whoever listens has heard enough."""
    result = Runner.run_streamed(team, "What now?")
    found = []
    async for event in result.stream_events():
        found.append(event.type)
        if len(found) == 4:
            result.cancel()
    return [found, result.final_output]


async def stop_after_turn(team: Any) -> Any:
    result = Runner.run_streamed(team, "What now?")
    found = []
    async for event in result.stream_events():
        found.append(event.type)
        result.cancel(mode="after_turn")
    return [found, result.final_output]


async def leave_stream(team: Any) -> Any:
    result = Runner.run_streamed(team, "What now?")
    async for _ in result.stream_events():
        break
    await asyncio.sleep(10)
    return result.is_complete


EVERY = (
    alone, chain, tools, same_twice, dropped, tool_and_handoff, failing, raising, going_round,
    guarded, stopped_before, stopped_after, stopping_at_tool, in_code, structured, listening,
    hooked,
)  # fmt: skip

SCENARIOS: list[Scenario] = [
    *(scenario(build, drive) for build in EVERY for drive in (ask, stream)),
    *(scenario(build, at_once) for build in (chain, tools, guarded)),
    *(scenario(approved, drive) for drive in (approve, approve_streamed)),
    *(scenario(build, drive) for build in (chain, tools) for drive in (talk, go_on, with_config)),
    *(scenario(tools, one) for one in (stop_streaming, stop_after_turn, leave_stream)),
    scenario(alone, talk),
    scenario(going_round, with_handlers),
    scenario(alone, with_wrong_hooks),
]
