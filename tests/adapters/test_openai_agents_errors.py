"""OpenAI agents, wrapped: whose an error is, who passes it on, and who was called off."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import AgentHooks, RunConfig, RunHooks
from agents.exceptions import ModelTimeoutError

from dig.detectors import standard
from dig.runtime.setup import Setup

from .conformance import Failing
from .framework_gates import NEVER, behind, questions, usher
from .harness import Scenario, Script, play
from .openai_agents_teams import (
    Watched,
    agent,
    as_tool,
    ask,
    ask_in_time,
    calls,
    going_round,
    hands,
    leave_stream,
    raises,
    says,
    scenario,
    stop_after_turn,
    stop_streaming,
    stopped_after,
    stopped_before,
    stream,
    tool,
    tool_and_handoff,
    tools,
)
from .openai_agents_teams import failing as told_of


def raising_beside(script: Script) -> Any:
    """An agent raises while another one works, and nobody catches it."""

    @tool()
    async def look() -> str:
        await asyncio.sleep(5)
        return "looked"

    b = agent(script, "b", raises)
    c = agent(script, "c", calls("look"), says("c done"), tools=[look])
    inner = [as_tool(b, failure_error_function=None), as_tool(c)]
    return agent(script, "a", calls("b", "c", input="x"), tools=inner)


def too_slow(script: Script) -> Any:
    def reply(call: Any, number: int) -> Any:
        raise ModelTimeoutError(3.0)

    return agent(script, "a", hands("b"), handoffs=[agent(script, "b", reply)])


class RaisingHooks(RunHooks[Any]):  # type: ignore[misc]
    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        raise LookupError("no desk today")


async def ask_with_hooks(team: Any) -> Any:
    return await ask(team, hooks=RaisingHooks())


def one_handoff(script: Script) -> Any:
    return agent(script, "a", hands("b"), handoffs=[agent(script, "b", says("b done"))])


def badly_received(script: Script) -> Any:
    """A hook of the agent that hands over raises, after the caller's own."""

    class Hooks(AgentHooks[Any]):  # type: ignore[misc]
        async def on_handoff(self, context: Any, agent: Any, source: Any) -> None:
            await asyncio.sleep(0.1)
            raise LookupError("no desk today")

    team = one_handoff(script)
    team.hooks = Hooks()
    return team


def broken_tools(script: Script) -> Any:
    """A tool that raises beside one that works, and nobody catches it."""

    @tool(failure_error_function=None)
    async def pay(amount: int) -> str:
        await asyncio.sleep(0.1)
        raise ValueError("no money")

    @tool(failure_error_function=None)
    async def look(amount: int) -> str:
        await asyncio.sleep(5)
        return "looked"

    return agent(script, "a", calls("look", "pay", amount=3), tools=[pay, look])


def inner_tool(script: Script) -> Any:
    """The tool of an agent that is itself a tool raises."""
    inner = broken_tools(script)
    inner.name = "inner"
    outer = as_tool(inner, failure_error_function=None)
    return agent(script, "outer", calls("inner", input="x"), tools=[outer])


async def ask_for_a_moment(team: Any) -> Any:
    async with asyncio.timeout(0.05):
        return await ask(team)


def thinking(script: Script) -> Any:
    @tool()
    async def think() -> str:
        await asyncio.sleep(5)
        return "thought"

    return agent(script, "a", calls("think"), raises, tools=[think])


ERROR = "ValueError: no model today"
BESIDE = {"b": ERROR, "a": "by b", "c": "called off"}
TRIPPED = ("InputGuardrailTripwireTriggered", "OutputGuardrailTripwireTriggered")
TOOLS = {"tool:pay": "UserError: Error running tool pay: no money", "tool:look": "called off"}
NO_DESK = {"a": "LookupError: no desk today"}
HAS_TOOLS = {"tools": True}
FAILING = [
    *(
        failing
        for drive in (ask, stream)
        for failing in (
            Failing(scenario(raising_beside, drive), BESIDE, ("error", "b")),
            # The caller is told of the error, which ends the agent alone.
            Failing(scenario(told_of, drive), {"b": ERROR}, None),
            Failing(scenario(too_slow, drive), {"b": "ModelTimeoutError"}, ("error", "b")),
            # Who would have been next has no activation.
            Failing(scenario(going_round, drive), {"b": "called off"}, ("limit", None)),
            Failing(scenario(stopped_before, drive), {"a": TRIPPED[0]}, ("error", "a")),
            Failing(scenario(stopped_after, drive), {"a": TRIPPED[1]}, ("error", "a")),
            Failing(scenario(badly_received, drive), NO_DESK, ("error", "a"), "b"),
            # An agent passes on the error of its tool; without tools in the trace it is its own.
            Failing(
                scenario(broken_tools, drive), {**TOOLS, "a": "by tool:pay"},
                ("error", "tool:pay"), (), HAS_TOOLS,
            ),
            Failing(scenario(broken_tools, drive), {"a": "UserError"}, ("error", "a")),
            Failing(
                scenario(inner_tool, drive),
                {**TOOLS, "inner": "by tool:pay", "outer": "by tool:pay"},
                ("error", "tool:pay"), (), HAS_TOOLS,
            ),
        )
    ),
    Failing(scenario(one_handoff, ask_with_hooks), NO_DESK, ("error", "a"), "b"),
    # A stream that its caller leaves is no failure; a run that goes on unheard ends as ever.
    Failing(scenario(tools, stop_streaming), {"a": "called off"}, None),
    Failing(scenario(tools, stop_after_turn), {"a": "called off"}, None),
    Failing(scenario(tools, leave_stream), {}, None),
    Failing(
        scenario(thinking, ask_for_a_moment), {"a": "called off"},
        None, (), HAS_TOOLS,
    ),
]  # fmt: skip


def test_agents_whose_questions_a_gate_keeps_until_the_caller_cancels_never_ran() -> None:
    """What they were to be asked lies in front of nobody, and they have no activation."""
    watched = Watched("heal", behind(usher(keeps=questions, after_s=NEVER))())
    assert play(scenario(tools, ask_in_time), watched).raised[0][0] == "TimeoutError"
    assert {*watched.ran()} == {"a"}
    assert watched.failed() == [] and watched.leaves_nothing_open()


def raising_in(name: str) -> Scenario:
    """A hook of the caller's own raises, or its filter."""

    async def broken(*args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        raise LookupError(f"no {name} today")

    async def drive(team: Any) -> Any:
        if name == "filter":
            return await ask(team, run_config=RunConfig(call_model_input_filter=broken))
        hooks = RunHooks()
        setattr(hooks, name, broken)
        return await ask(team, hooks=hooks)

    return scenario(tool_and_handoff, drive, name)


@pytest.mark.parametrize("mode", ["observe", "heal"])
@pytest.mark.parametrize(
    "name", ["on_agent_start", "on_llm_end", "on_tool_end", "on_handoff", "filter"]
)
def test_what_the_callers_own_hook_raises_the_caller_gets(name: str, mode: str) -> None:
    """It is called by way of the adapter."""
    watched = Watched(mode, Setup(detectors=standard) if mode == "heal" else None)
    assert "today" in watched.must_change_nothing(raising_in(name)).raised[-1][1]
    assert watched.leaves_nothing_open()
