"""A budget of an AG2 hub: no further handler runs, and the channel is closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("ag2.network")

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
            asked = (team.workflow(*RING) for _ in range(channels))
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


def test_channels_have_a_budget_each() -> None:
    heard, session, _ = ask("half", {"turns": 4}, channels=8)
    assert [len(said) for said in heard] == [4 + 1 + 1] * 8
    assert session.statistics().partial == 8
    assert session.statistics().faults == 0


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
