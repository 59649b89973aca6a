"""Turns of wrapped agents, as told from the activations that they are made of."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import dig
from dig.detectors.run_so_far import RunSoFar
from dig.graph.graph import InteractionGraph
from dig.graph.records import Record, Start
from dig.graph.turns import starts_turn, takes_turns
from tests.adapters.test_budget import ring


def chained() -> dict[str, Any]:
    """A planner asks two agents, one after the other and then both at once."""
    team: dict[str, Any] = {}

    async def planner(message: str) -> str:
        first = await team["hotels"](message) + await team["flights"](message)
        both = await asyncio.gather(team["hotels"](first), team["flights"](first))
        return f"{first}{''.join(both)}"

    async def hotels(message: str) -> str:
        return "h"

    async def flights(message: str) -> str:
        return "f"

    team.update(planner=planner, hotels=hotels, flights=flights)
    return team


def hasty() -> dict[str, Any]:
    """An agent that answers before its helper does; its answers go back."""
    team: dict[str, Any] = {}
    tasks: list[Any] = []

    async def pilot(message: str) -> str:
        tasks.append(asyncio.ensure_future(team["tug"](message)))
        await asyncio.sleep(0)
        if len(tasks) > 2:
            await asyncio.gather(*tasks)
        return "done"

    async def tug(message: str) -> str:
        await asyncio.sleep(0.05)
        return "towed"

    team.update(pilot=pilot, tug=tug)
    return team


@pytest.mark.parametrize(
    ("team", "entry", "settings"),
    [
        (chained(), "planner", {}),
        (ring("half"), "a", {"budget": {"turns": 6}}),
        (hasty(), "pilot", {"mode": "heal", "allow": {"bounce"}}),
    ],
    ids=["calls", "budget", "answers that came back"],
)
def test_all_count_the_same_turns(team: dict[str, Any], entry: str, settings: Any) -> None:
    """A report, the history and the statistics of the session, whatever the activations."""
    records: list[Record] = []
    wrapped = dig.wrap(team, sink=records.append, **settings)
    asyncio.run(wrapped[entry]("?"))
    session = dig.session_of(wrapped)
    dig.unwrap(wrapped)
    graph = InteractionGraph.of(records)
    so_far = RunSoFar()
    for record in records:
        so_far(record)
    h, turns = graph.history, session.statistics().turns
    assert turns < sum(type(record) is Start for record in records)
    assert so_far.counts["turns"] == so_far.turns.total() == turns
    assert sum(starts_turn(h, v) for v in range(len(h.activation_ids))) == turns


def test_tools_and_parts_of_wrappers_take_no_turns() -> None:
    """As in a budget."""
    names = ("ada", "crew/ada", "tool:search", "__crew__", "crew/__crew__")
    assert [name for name in names if takes_turns(name)] == ["ada", "crew/ada"]
