"""OpenAI agents, wrapped: whose an error is, who passes it on, and who was called off."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import AgentHooks, RunConfig, RunHooks
from agents.exceptions import ModelTimeoutError

from dig.detectors import standard
from dig.runtime.host import Setup

from .framework_gates import NEVER, behind, questions, usher
from .harness import Scenario, Script, play
from .openai_agents_teams import (
    Watched,
    agent,
    as_tool,
    ask,
    ask_in_time,
    calls,
    failing,
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

DRIVES = pytest.mark.parametrize("drive", [ask, stream])


def watched_run(build: Any, drive: Any, **options: Any) -> Watched:
    """Play a scenario; the host sees what it sees without a monitor, and nothing stays open."""
    watched = Watched(**options)
    watched.must_change_nothing(scenario(build, drive))
    watched.must_be_over()
    return watched


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


@DRIVES
def test_an_error_is_of_who_raised_it_and_others_pass_it_on_or_are_called_off(drive: Any) -> None:
    """The run that raises has no answer, but the incident of a request that failed."""
    watched = watched_run(raising_beside, drive)
    b, c, a = (watched.errors()[name] for name in "bca")
    assert b == ("ValueError: no model today", None, False)
    assert a[1:] == ("b", False) and c[1:] == (None, True)
    assert watched.failed() == [("error", "b")] and watched.answers() == []


@DRIVES
def test_an_error_that_the_caller_is_told_of_ends_the_agent_alone(drive: Any) -> None:
    watched = watched_run(failing, drive)
    assert watched.errors() == {"b": ("ValueError: no model today", None, False)}
    assert watched.failed() == [] and watched.answers() == ["done"]


def too_slow(script: Script) -> Any:
    def reply(call: Any, number: int) -> Any:
        raise ModelTimeoutError(3.0)

    return agent(script, "a", hands("b"), handoffs=[agent(script, "b", reply)])


@DRIVES
def test_a_model_that_raises_is_the_error_of_its_agent(drive: Any) -> None:
    watched = watched_run(too_slow, drive)
    assert [*watched.errors()] == ["b"] and watched.errors()["b"][1:] == (None, False)
    assert watched.failed() == [("error", "b")] and watched.answers() == []


@DRIVES
def test_a_run_that_has_no_turns_left_ends_at_a_limit(drive: Any) -> None:
    """Who was at work was called off, and who would have been next has no activation."""
    watched = watched_run(going_round, drive)
    [(name, (error, because, cancelled))] = watched.errors().items()
    assert "MaxTurnsExceeded" in error and because is None and cancelled
    assert watched.failed() == [("limit", None)] and watched.answers() == []
    assert len(watched.ran()) == 10 and watched.ran()[-1] == name


@DRIVES
@pytest.mark.parametrize("build", [stopped_before, stopped_after])
def test_a_guardrail_that_trips_is_the_error_of_the_agent_that_has_the_turn(
    build: Any, drive: Any
) -> None:
    watched = watched_run(build, drive)
    assert "GuardrailTripwireTriggered" in watched.errors()["a"][0]
    assert watched.errors()["a"][1:] == (None, False)
    assert watched.failed() == [("error", "a")] and watched.answers() == []


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


@pytest.mark.parametrize(
    ("build", "drive"),
    [(one_handoff, ask_with_hooks), (badly_received, ask), (badly_received, stream)],
)
def test_an_agent_that_is_handed_over_to_and_never_runs_has_no_activation(
    build: Any, drive: Any
) -> None:
    watched = watched_run(build, drive)
    assert {*watched.ran()} == {"a"}
    assert watched.errors() == {"a": ("LookupError: no desk today", None, False)}
    assert watched.failed() == [("error", "a")]


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


@DRIVES
def test_a_tool_that_raises_has_the_error_and_those_beside_it_are_called_off(drive: Any) -> None:
    """Its agent passes it on; without tools in the trace, the error is the agent's."""
    watched = watched_run(broken_tools, drive, tools=True)
    found = watched.errors()
    assert found["tool:pay"][1:] == (None, False) and "no money" in found["tool:pay"][0]
    assert found["tool:look"][1:] == (None, True)
    assert found["a"][1:] == ("tool:pay", False)
    assert watched.failed() == [("error", "tool:pay")] and watched.answers() == []
    watched = watched_run(broken_tools, drive)
    assert watched.errors()["a"][1:] == (None, False) and [*watched.errors()] == ["a"]


def inner_tool(script: Script) -> Any:
    """The tool of an agent that is itself a tool raises."""
    inner = broken_tools(script)
    inner.name = "inner"
    outer = as_tool(inner, failure_error_function=None)
    return agent(script, "outer", calls("inner", input="x"), tools=[outer])


@DRIVES
def test_the_error_of_a_tool_is_known_through_agents_within_each_other(drive: Any) -> None:
    found = watched_run(inner_tool, drive, tools=True).errors()
    assert found["tool:pay"][1:] == (None, False) and found["tool:look"][1:] == (None, True)
    assert found["inner"][1] == found["outer"][1] == "tool:pay"


@pytest.mark.parametrize("drive", [stop_streaming, stop_after_turn, leave_stream])
def test_a_stream_that_its_caller_leaves_is_no_failure(drive: Any) -> None:
    """What was at work says that it was called off; a run that goes on unheard ends as ever."""
    watched = watched_run(tools, drive)
    assert watched.failed() == []
    assert all(cancelled for _, _, cancelled in watched.errors().values())
    assert len(watched.answers()) == 1


async def ask_for_a_moment(team: Any) -> Any:
    async with asyncio.timeout(0.05):
        return await ask(team)


def thinking(script: Script) -> Any:
    @tool()
    async def think() -> str:
        await asyncio.sleep(5)
        return "thought"

    return agent(script, "a", calls("think"), raises, tools=[think])


def test_what_the_caller_cancels_is_no_failure_of_the_team() -> None:
    watched = watched_run(thinking, ask_for_a_moment, tools=True)
    assert watched.failed() == [] and len(watched.answers()) == 1
    assert all(cancelled for _, _, cancelled in watched.errors().values())


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
