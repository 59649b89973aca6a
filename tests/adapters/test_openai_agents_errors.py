"""OpenAI agents, wrapped: whose an error is, who passes it on, and who was called off."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import RunHooks
from agents.exceptions import ModelTimeoutError

from dig.graph.records import Emit, End, IncidentRow, Start

from . import openai_agents_teams as teams
from .framework_gates import behind
from .harness import Script, play
from .openai_agents_asked import (
    failing,
    going_round,
    leave_stream,
    raises,
    stop_after_turn,
    stop_streaming,
    stopped_after,
    stopped_before,
    tools,
)
from .openai_agents_cases import KeepingQuestions, ask_in_time
from .openai_agents_teams import agent

DRIVES = pytest.mark.parametrize("drive", [teams.ask, teams.stream])


def watched_run(build: Any, drive: Any, **options: Any) -> teams.Watched:
    """Play a scenario; the host sees what it sees without a monitor, and nothing stays open."""
    watched = teams.Watched(**options)
    assert play(teams.scenario(build, drive), watched) == play(teams.scenario(build, drive))
    watched.must_be_sound()
    assert watched.leaves_nothing_open()
    return watched


def ends(watched: teams.Watched) -> dict[str, tuple[str, str | None, bool]]:
    """By agent: the error, the agent that raised it, and whether it was called off."""
    agents = {row.activation: row.agent for row in watched.records if isinstance(row, Start)}
    return {
        agents[row.activation]: (
            row.error, agents[row.because] if row.because else None, row.cancelled
        )
        for row in watched.records
        if isinstance(row, End) and row.error
    }  # fmt: skip


def failed_requests(watched: teams.Watched) -> list[tuple[str, str | None]]:
    """How requests have ended without an answer, and the agent whose error ended each."""
    agents = {row.activation: row.agent for row in watched.records if isinstance(row, Start)}
    rows = [row for row in watched.records if isinstance(row, IncidentRow)]
    details: list[Any] = [row.detail for row in rows if row.what == "request_failed"]
    return [(detail["how"], agents.get(detail.get("activation"))) for detail in details]


def finals(watched: teams.Watched) -> list[Any]:
    return [row.payload for row in watched.records if isinstance(row, Emit) and row.final]


def raising_beside(script: Script) -> Any:
    """An agent raises while another one works, and nobody catches it."""

    @teams.tool()
    async def look() -> str:
        await asyncio.sleep(5)
        return "looked"

    b = agent(script, "b", raises)
    c = agent(script, "c", teams.calls("look"), teams.says("c done"), tools=[look])
    inner = [teams.as_tool(b, failure_error_function=None), teams.as_tool(c)]
    return agent(script, "a", teams.calls("b", "c", input="x"), tools=inner)


@DRIVES
def test_an_error_is_of_who_raised_it_and_others_pass_it_on_or_are_called_off(drive: Any) -> None:
    """The run that raises has no answer, but the incident of a request that failed."""
    watched = watched_run(raising_beside, drive)
    b, c, a = (ends(watched)[name] for name in "bca")
    assert b == ("ValueError: no model today", None, False)
    assert a[1:] == ("b", False) and c[1:] == (None, True)
    assert failed_requests(watched) == [("error", "b")] and finals(watched) == []


@DRIVES
def test_an_error_that_the_caller_is_told_of_ends_the_agent_alone(drive: Any) -> None:
    watched = watched_run(failing, drive)
    assert ends(watched) == {"b": ("ValueError: no model today", None, False)}
    assert failed_requests(watched) == [] and finals(watched) == ["done"]


def too_slow(script: Script) -> Any:
    def reply(call: Any, number: int) -> Any:
        raise ModelTimeoutError(3.0)

    return agent(script, "a", teams.hands("b"), handoffs=[agent(script, "b", reply)])


@DRIVES
def test_a_model_that_raises_is_the_error_of_its_agent(drive: Any) -> None:
    watched = watched_run(too_slow, drive)
    assert [*ends(watched)] == ["b"] and ends(watched)["b"][1:] == (None, False)
    assert failed_requests(watched) == [("error", "b")] and finals(watched) == []


@DRIVES
def test_a_run_that_has_no_turns_left_ends_at_a_limit(drive: Any) -> None:
    """Who was at work was called off, and who would have been next has no activation."""
    watched = watched_run(going_round, drive)
    [(name, (error, because, cancelled))] = ends(watched).items()
    assert "MaxTurnsExceeded" in error and because is None and cancelled
    assert failed_requests(watched) == [("limit", None)] and finals(watched) == []
    started = [row.agent for row in watched.records if isinstance(row, Start)]
    assert len(started) == 10 and started[-1] == name


@DRIVES
@pytest.mark.parametrize("build", [stopped_before, stopped_after])
def test_a_guardrail_that_trips_is_the_error_of_the_agent_that_has_the_turn(
    build: Any, drive: Any
) -> None:
    watched = watched_run(build, drive)
    assert "GuardrailTripwireTriggered" in ends(watched)["a"][0]
    assert ends(watched)["a"][1:] == (None, False)
    assert failed_requests(watched) == [("error", "a")] and finals(watched) == []


class RaisingHooks(RunHooks[Any]):  # type: ignore[misc]
    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        raise LookupError("no desk today")


async def ask_with_hooks(team: Any) -> Any:
    return await teams.ask(team, hooks=RaisingHooks())


def one_handoff(script: Script) -> Any:
    return agent(script, "a", teams.hands("b"), handoffs=[agent(script, "b", teams.says("b done"))])


def badly_received(script: Script) -> Any:
    """A hook of the agent that hands over raises, after the caller's own."""
    from agents import AgentHooks

    class Hooks(AgentHooks[Any]):  # type: ignore[misc]
        async def on_handoff(self, context: Any, agent: Any, source: Any) -> None:
            await asyncio.sleep(0.1)
            raise LookupError("no desk today")

    team = one_handoff(script)
    team.hooks = Hooks()
    return team


@pytest.mark.parametrize(
    ("build", "drive"),
    [(one_handoff, ask_with_hooks), (badly_received, teams.ask), (badly_received, teams.stream)],
)
def test_an_agent_that_is_handed_over_to_and_never_runs_has_no_activation(
    build: Any, drive: Any
) -> None:
    watched = watched_run(build, drive)
    assert {row.agent for row in watched.records if isinstance(row, Start)} == {"a"}
    assert ends(watched) == {"a": ("LookupError: no desk today", None, False)}
    assert failed_requests(watched) == [("error", "a")]


def broken_tools(script: Script) -> Any:
    """A tool that raises beside one that works, and nobody catches it."""

    @teams.tool(failure_error_function=None)
    async def pay(amount: int) -> str:
        await asyncio.sleep(0.1)
        raise ValueError("no money")

    @teams.tool(failure_error_function=None)
    async def look(amount: int) -> str:
        await asyncio.sleep(5)
        return "looked"

    return agent(script, "a", teams.calls("look", "pay", amount=3), tools=[pay, look])


@DRIVES
def test_a_tool_that_raises_has_the_error_and_those_beside_it_are_called_off(drive: Any) -> None:
    """Its agent passes it on; without tools in the trace, the error is the agent's."""
    watched = watched_run(broken_tools, drive, tools=True)
    found = ends(watched)
    assert found["tool:pay"][1:] == (None, False) and "no money" in found["tool:pay"][0]
    assert found["tool:look"][1:] == (None, True)
    assert found["a"][1:] == ("tool:pay", False)
    assert failed_requests(watched) == [("error", "tool:pay")] and finals(watched) == []
    watched = watched_run(broken_tools, drive)
    assert ends(watched)["a"][1:] == (None, False) and [*ends(watched)] == ["a"]


def inner_tool(script: Script) -> Any:
    """The tool of an agent that is itself a tool raises."""
    inner = broken_tools(script)
    inner.name = "inner"
    outer = teams.as_tool(inner, failure_error_function=None)
    return agent(script, "outer", teams.calls("inner", input="x"), tools=[outer])


@DRIVES
def test_the_error_of_a_tool_is_known_through_agents_within_each_other(drive: Any) -> None:
    found = ends(watched_run(inner_tool, drive, tools=True))
    assert found["tool:pay"][1:] == (None, False) and found["tool:look"][1:] == (None, True)
    assert found["inner"][1] == found["outer"][1] == "tool:pay"


@pytest.mark.parametrize("drive", [stop_streaming, stop_after_turn, leave_stream])
def test_a_stream_that_its_caller_leaves_is_no_failure(drive: Any) -> None:
    """What was at work says that it was called off; a run that goes on unheard ends as ever."""
    watched = watched_run(tools, drive)
    assert failed_requests(watched) == []
    assert all(cancelled for _, _, cancelled in ends(watched).values())
    assert len(finals(watched)) == 1


async def ask_for_a_moment(team: Any) -> Any:
    async with asyncio.timeout(0.05):
        return await teams.ask(team)


def thinking(script: Script) -> Any:
    @teams.tool()
    async def think() -> str:
        await asyncio.sleep(5)
        return "thought"

    return agent(script, "a", teams.calls("think"), raises, tools=[think])


def test_what_the_caller_cancels_is_no_failure_of_the_team() -> None:
    watched = watched_run(thinking, ask_for_a_moment, tools=True)
    assert failed_requests(watched) == [] and len(finals(watched)) == 1
    assert all(cancelled for _, _, cancelled in ends(watched).values())


def test_agents_whose_questions_a_gate_keeps_until_the_caller_cancels_never_ran() -> None:
    """What they were to be asked lies in front of nobody, and they have no activation."""
    asked, watched = (
        teams.scenario(tools, ask_in_time),
        teams.Watched("heal", behind(KeepingQuestions())()),
    )
    assert play(asked, watched).raised[0][0] == "TimeoutError"
    assert {row.agent for row in watched.records if isinstance(row, Start)} == {"a"}
    assert failed_requests(watched) == [] and watched.leaves_nothing_open()
