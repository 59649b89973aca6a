"""A budget of an AG2 hub: no further handler runs, and the channel is closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("ag2.network")

from ag2.network import AgentClient, HumanClient

import dig
from dig.graph.records import Record

from .ag2_teams import Team, call
from .harness import Script
from .test_budget import incidents

RING = (("user", "ann"), ("ann", "bob"), ("bob", "ann"))


def speak(answer: str | None, name: str) -> Any:
    """A model that speaks for ever, or hands back when it is asked to."""

    def act(texts: list[str], number: int) -> Any:
        if any("used up" in text for text in texts):
            return call("hand_to", agent="bob") if answer is None else answer
        return f"{name}{number}"

    return act


def ask(
    answer: str | None, budget: dict[str, Any], mode: Any = "observe", channels: int = 1
) -> tuple[list[Any], dig.adapters.Session, list[Record]]:
    """Ask a ring of two agents; gives what is heard in each channel."""
    records: list[Record] = []
    script = Script()
    team = Team(script, {"ann": speak(answer, "ann"), "bob": speak(answer, "bob")})
    dig.wrap(team.hub, mode=mode, budget=budget, sink=records.append)

    async def drive() -> list[Any]:
        async with team:
            asked = (team.workflow(*RING, wait=600) for _ in range(channels))
            return await asyncio.gather(*asked)

    heard = asyncio.run(drive())
    session = dig.session_of(team.hub)
    dig.unwrap(team.hub)
    return heard, session, records


@pytest.mark.parametrize("mode", ["observe", "heal"])
def test_a_ring_is_stopped(mode: Any) -> None:
    """The agent that began has the last word, and the channel says why it is closed."""
    (heard,), session, records = ask("half", {"turns": 20}, mode)
    assert len(heard) == 20 + 1 + 1
    assert heard[-2:] == [("ann", "text", "half"), "stopped at 20 turns"]
    assert [row["stage"] for row in incidents(records)] == ["warning", "stopped", "partial"]
    assert session.result().partial
    assert session.statistics().faults == 0
    assert session.statistics().open_turns == 0


def test_an_agent_that_only_hands_over_fails_the_request() -> None:
    (heard,), session, records = ask(None, {"turns": 20})
    assert heard[-1] == "stopped at 20 turns"
    assert [row["how"] for row in incidents(records, "request_failed")] == ["limit"]
    assert session.statistics().faults == 0
    assert session.statistics().open_turns == 0


def test_without_the_floor_the_entry_agent_has_no_last_turn() -> None:
    """A channel gives the floor to its next speaker alone."""
    (heard,), session, records = ask("half", {"turns": 5})
    assert [who for who, *_ in heard[:-1]] == ["ann", "bob", "ann", "bob", "ann"]
    assert heard[-1] == "stopped at 5 turns"
    assert [row["how"] for row in incidents(records, "request_failed")] == ["limit"]
    assert session.statistics().faults == 0


@pytest.mark.timeout(900)  # AG2 builds a model of pydantic for each turn
def test_many_channels_have_a_budget_each(crowd: int) -> None:
    """All at once; each is stopped by itself, after its own second turn."""
    heard, session, records = ask("half", {"turns": 2}, channels=crowd)
    end = [("ann", "text", "half"), "stopped at 2 turns"]
    assert [said[-2:] for said in heard] == [end] * crowd
    assert [len(said) for said in heard] == [2 + 1 + 1] * crowd
    assert session.statistics().partial == crowd
    assert session.statistics().faults == 0
    assert session.statistics().open_turns == 0
    partial = [row["event"] for row in incidents(records) if row["stage"] == "partial"]
    assert len({*partial}) == len(partial) == crowd


@pytest.mark.parametrize(("answer", "turns"), [(None, 20), ("half", 5)])
def test_who_waits_for_an_answer_gets_the_exception(answer: str | None, turns: int) -> None:
    """Not only the end of a time: no answer is to come, whoever had the floor at the limit."""
    team = Team(Script(), {"ann": speak(answer, "ann"), "bob": speak(answer, "bob")})
    before = {client: client.wait_for_channel_event for client in (AgentClient, HumanClient)}
    dig.wrap(team.hub, budget={"turns": turns})

    async def drive() -> None:
        async with team:
            channel = await team.begin(*RING)
            with pytest.raises(dig.BudgetExceeded, match=f"stopped at {turns} turns") as raised:
                await team.user.wait_for_channel_event(
                    channel_id=channel, predicate=lambda envelope: False, timeout=60
                )
            assert (raised.value.limit, raised.value.most) == ("turns", turns)
            assert raised.value.partial[-1]["body"].startswith("bob")

    asyncio.run(drive())
    dig.unwrap(team.hub)
    assert before == {client: client.wait_for_channel_event for client in before}


def test_an_agent_that_is_asked_directly_is_stopped_too() -> None:
    """A question from outside when the team's budget is used up is refused."""
    team = Team(Script(), {"ann": speak("half", "ann")})
    dig.wrap(team.hub, budget={"team": {"turns": 2}})

    async def drive() -> None:
        async with team:
            for _ in range(2):
                await team.clients["ann"].agent.ask("?")
            with pytest.raises(dig.BudgetExceeded, match="2 turns of the whole team"):
                await team.clients["ann"].agent.ask("?")

    asyncio.run(drive())
    dig.unwrap(team.hub)
