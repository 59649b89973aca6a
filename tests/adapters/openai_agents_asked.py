"""Teams of OpenAI agents that use each feature of the SDK, and how they are asked."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import (
    AgentHooks,
    AgentOutputSchema,
    GuardrailFunctionOutput,
    RunConfig,
    RunHooks,
    Runner,
    SQLiteSession,
    handoff,
    input_guardrail,
    output_guardrail,
)
from agents.extensions.handoff_filters import remove_all_tools
from agents.run import ModelInputData

from .harness import Scenario, Script
from .openai_agents_teams import (
    agent,
    as_tool,
    ask,
    at_once,
    calls,
    guards,
    hands,
    says,
    scenario,
    shown,
    stream,
    tool,
)


def alone(script: Script) -> Any:
    return agent(script, "a", says("done"))


def chain(script: Script) -> Any:
    """Handoffs: a silent one, one with words, one with arguments and a filter."""
    d = agent(script, "d", says("done"))
    with_reason = handoff(d, input_type=str_reason(), on_handoff=nothing, input_filter=filtered)
    c = agent(script, "c", hands("d", reason="tired"), handoffs=[with_reason])
    words = [*says("Ask c.")(None, 0), *hands("c")(None, 0)]
    b = agent(script, "b", lambda call, number: words, handoffs=[c])
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
    b, c = agent(script, "b", says("b done")), agent(script, "c", says("c done"))
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
    b, c = agent(script, "b", says("b done")), agent(script, "c", says("c done"))
    replies = calls("transfer_to_b", "transfer_to_c"), says("done")
    return agent(script, "a", *replies, handoffs=[b, c])


def tool_and_handoff(script: Script) -> Any:
    b, c = agent(script, "b", says("b done")), agent(script, "c", says("c done"))
    both = [*calls("b", input="x")(None, 0), *hands("c")(None, 0)]
    return agent(script, "a", lambda call, number: both, tools=[as_tool(b)], handoffs=[c])


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

    @guards(input_guardrail)
    async def check_input(context: Any, agent: Any, given: Any) -> Any:
        result = await Runner.run(guard, given)
        return GuardrailFunctionOutput(result.final_output, False)

    @guards(output_guardrail)
    async def check_output(context: Any, agent: Any, given: Any) -> Any:
        result = await Runner.run(guard, given)
        return GuardrailFunctionOutput(result.final_output, False)

    b = agent(script, "b", says("b done"), output_guardrails=[check_output])
    a = agent(script, "a", calls("b", input="x"), hands("b"), input_guardrails=[check_input])
    a.handoffs, a.tools = [b], [as_tool(b)]
    return a


def stopped_before(script: Script) -> Any:
    @guards(input_guardrail)
    async def trip(context: Any, agent: Any, given: Any) -> Any:
        await asyncio.sleep(0.15)
        return GuardrailFunctionOutput("no", True)

    return agent(script, "a", calls("b", input="x"), says("done"), input_guardrails=[trip],
                 tools=[as_tool(agent(script, "b", says("b done")))])  # fmt: skip


def stopped_after(script: Script) -> Any:
    @guards(output_guardrail)
    async def trip(context: Any, agent: Any, given: Any) -> Any:
        await asyncio.sleep(0.15)
        return GuardrailFunctionOutput("no", True)

    return agent(script, "a", says("done"), output_guardrails=[trip])


def stopping_at_tool(script: Script) -> Any:
    b, c = agent(script, "b", says("b done")), agent(script, "c", says("c done"))
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


async def approve(team: Any) -> Any:
    first = await Runner.run(team, "Pay.")
    state = first.to_state()
    for one in first.interruptions:
        state.approve(one)
    return [shown(first), shown(await Runner.run(team, state))]


async def approve_streamed(team: Any) -> Any:
    first = await Runner.run(team, "Pay.")
    state = first.to_state()
    for one in first.interruptions:
        state.approve(one)
    return [shown(first), await stream(team, state)]


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
