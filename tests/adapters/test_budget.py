"""A budget of a wrapped team: the next turn does not begin, and the entry agent hands back."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import dig
from dig.adapters import base
from dig.adapters.plain import adapter
from dig.detectors.run_so_far import RunSoFar
from dig.errors import SettingsError
from dig.graph.graph import InteractionGraph
from dig.graph.records import IncidentRow, Record
from dig.runtime import Setup

TURNS = {"turns": 20}


def ring(answer: str | None, *, catches: bool = False) -> dict[str, Any]:
    """Two agents that call each other for ever; at the limit `a` may answer."""
    team: dict[str, Any] = {}
    count = [0]

    async def a(message: str) -> str:
        if answer is not None and any("used up" in note for note in dig.notes()):
            return answer
        try:
            return str(await team["b"](f"{message}."))
        except Exception:
            if not catches:
                raise
            return str(await team["b"](f"{message}."))

    async def b(message: str) -> str:
        count[0] += 1
        return str(await team["a"](f"{message}."))

    team.update(a=a, b=b)
    return team


def incidents(records: list[Record], what: str = "budget") -> list[Any]:
    return [row.detail for row in records if isinstance(row, IncidentRow) and row.what == what]


@pytest.mark.parametrize("mode", ["observe", "heal"])
def test_a_ring_is_stopped_and_the_entry_agent_hands_back(mode: Any) -> None:
    records: list[Record] = []
    team = dig.wrap(ring("half"), mode=mode, budget=TURNS, sink=records.append)
    assert asyncio.run(team["a"]("?")) == "half"
    session = dig.session_of(team)
    dig.unwrap(team)
    assert [row["stage"] for row in incidents(records)] == ["warning", "stopped", "partial"]
    assert session.statistics().turns == 20
    assert session.statistics().partial == 1
    assert session.result().partial
    assert session.statistics().faults == 0
    assert not incidents(records, "request_failed")
    graph = InteractionGraph()
    so_far = RunSoFar(graph)
    for record in records:
        graph.apply(record)
        so_far(record)
    assert so_far.counts["failed turns"] == 0


def test_a_stopped_task_that_nobody_awaits_leaves_no_traceback_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The agent that would have awaited it has been stopped, too; its own errors are logged."""
    team: dict[str, Any] = {}

    async def a(message: str) -> str:
        tasks = [asyncio.create_task(team[agent](message)) for agent in "bcd"]
        await asyncio.wait(tasks)
        return str(tasks[0].result())

    async def b(message: str) -> str:
        return message

    async def d(message: str) -> str:
        raise ValueError("d is broken")

    team.update(a=a, b=b, c=b, d=d)
    for turns in (1, 4):
        dig.wrap(team, budget={"turns": turns})
        with suppress(dig.BudgetExceeded):
            asyncio.run(team["a"]("?"))
        dig.unwrap(team)
        gc.collect()
    logged = [str(record.exc_info) for record in caplog.records if record.name == "asyncio"]
    assert len(logged) == 1 and "d is broken" in logged[0]


def test_no_agent_can_catch_the_stop() -> None:
    """And the exception says who was asked, and what the entry agent had by then."""
    records: list[Record] = []
    team = dig.wrap(ring(None, catches=True), budget=TURNS, sink=records.append)
    with pytest.raises(
        dig.BudgetExceeded, match="stopped at 20 turns, and `a` handed back no"
    ) as it:
        asyncio.run(team["a"]("?"))
    dig.unwrap(team)
    assert (it.value.limit, it.value.spent, it.value.most) == ("turns", 20, 20)
    assert [row["how"] for row in incidents(records, "request_failed")] == ["limit"]
    assert [row["stage"] for row in incidents(records)] == ["warning", "stopped"]


def test_many_requests_have_a_budget_each(crowd: int) -> None:
    """A short one among them is answered; each other one is stopped by itself."""
    records: list[Record] = []
    team: dict[str, Any] = {}

    async def a(number: int) -> str:
        if any("used up" in note for note in dig.notes()):
            return f"half of {number}"
        await asyncio.sleep(0)
        return "whole" if number % 10 == 0 else str(await team["b"](number))

    async def b(number: int) -> str:
        await asyncio.sleep(0)
        return str(await team["a"](number))

    async def ask_all() -> list[Any]:
        return await asyncio.gather(*(team["a"](number) for number in range(crowd)))

    team.update(a=a, b=b)
    dig.wrap(team, budget={"turns": 4}, sink=records.append)
    answers = asyncio.run(ask_all())
    session = dig.session_of(team)
    dig.unwrap(team)
    assert answers == [f"half of {n}" if n % 10 else "whole" for n in range(crowd)]
    stopped = crowd * 9 // 10
    assert session.statistics().partial == stopped
    assert session.statistics().turns == crowd // 10 + stopped * 4
    partial = [row["event"] for row in incidents(records) if row["stage"] == "partial"]
    assert len({*partial}) == len(partial) == stopped


def asking_five_times(work: Callable[[], object]) -> dict[str, Any]:
    """An agent that asks another one five times, which works each time."""
    team: dict[str, Any] = {}

    async def a(message: str) -> int:
        if dig.notes():
            return -1
        return sum([await team["b"](message) for _ in range(5)])

    async def b(message: str) -> int:
        work()
        return 1

    team.update(a=a, b=b)
    return team


def spender(model: str, **usage: float) -> dict[str, Any]:
    """Such a team, in which the agent that is asked reports its usage."""
    return asking_five_times(lambda: dig.report_usage(model=model, **usage))


PRICES = {"small": {"input": 1.0, "output": 10.0, "cached": 0.5}}


@pytest.mark.parametrize(
    ("budget", "usage", "calls"),
    [
        ({"tokens": 300}, {"input_tokens": 90, "output_tokens": 10}, 3),
        ({"tokens": 1000}, {"input_tokens": 90, "output_tokens": 10}, 5),
        ({"dollars": 2.9, "prices": PRICES}, {"input_tokens": 1e6, "cached_tokens": 1e6}, 5),
        ({"dollars": 2.0, "prices": PRICES}, {"input_tokens": 1e6, "cached_tokens": 1e6}, 4),
        ({"dollars": 2.0, "prices": PRICES}, {"output_tokens": 1e5}, 2),
        ({"dollars": 2.0}, {"cost_usd": 1.0}, 2),
    ],
)
def test_tokens_and_dollars_are_added_up(
    budget: dict[str, Any], usage: dict[str, float], calls: int
) -> None:
    """The next call is refused before it is made."""
    team = dig.wrap(spender("small", **usage), budget=budget)
    answer = asyncio.run(team["a"]("?"))
    session = dig.session_of(team)
    dig.unwrap(team)
    assert session.statistics().turns == 1 + calls
    assert answer == (5 if calls == 5 else -1)


@pytest.mark.parametrize(("use", "warnings"), [({}, 1), ({"input_tokens": 5}, 0)])
def test_a_limit_of_tokens_that_counts_nothing_is_told_once(
    use: dict[str, float], warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    """By the first answer without usage; a team that tells of it, and a limit of turns, are not."""
    for budget in ({"tokens": 1000}, TURNS):
        team = dig.wrap(spender("small", **use), budget=budget)
        for _ in range(2):
            asyncio.run(team["a"]("?"))
        dig.unwrap(team)
    lines = [line for line in caplog.messages if "no agent has told of its usage" in line]
    assert len(lines) == warnings


def test_a_ring_under_a_limit_of_tokens_is_told_before_any_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A team that never answers is what the limit is for."""
    team = dig.wrap(ring("half"), budget={"tokens": 1000, "turns": 100})
    asyncio.run(team["a"]("?"))
    dig.unwrap(team)
    told = [line for line in caplog.messages if "dig: " in line]
    assert "no agent has told of its usage" in told[0] and len(told) == 2


def test_a_model_without_a_price_counts_as_all_the_dollars() -> None:
    """It is never taken for free."""
    records: list[Record] = []
    team = spender("large", input_tokens=1)
    dig.wrap(team, budget={"dollars": 5, "prices": PRICES}, sink=records.append)
    assert asyncio.run(team["a"]("?")) == -1
    dig.unwrap(team)
    assert {row["limit"] for row in incidents(records)} == {"dollars"}
    assert {row["unpriced"] for row in incidents(records)} == {"large"}


def test_seconds_are_looked_at_before_each_turn() -> None:
    """A turn that works is not cut off."""
    now = [0.0]

    def work() -> None:
        now[0] += 10

    team = asking_five_times(work)
    plan = adapter.plan(team)
    session = base.Session(
        plan.agents, Setup().ruled(None, {"seconds": 25}), clock=lambda: now[0], keeps_time=False
    )
    restore = plan.attach(session).restore
    assert asyncio.run(team["a"]("?")) == -1
    restore()
    assert session.statistics().turns == 4


def test_requests_share_the_budget_of_the_team() -> None:
    """A request after its end has no turn at all."""
    team = dig.wrap(spender("small", input_tokens=1), budget={"team": {"turns": 8}})
    assert asyncio.run(team["a"]("?")) == 5
    assert asyncio.run(team["a"]("?")) == -1
    with pytest.raises(dig.BudgetExceeded, match="8 turns of the whole team, and no agent"):
        asyncio.run(team["a"]("?"))
    session = dig.session_of(team)
    dig.unwrap(team)
    assert session.result().outcome == "stopped"


def test_calls_at_once_share_the_budget() -> None:
    """Of five calls that are made together, those beyond the limit do not begin."""
    team: dict[str, Any] = {}
    began = []

    async def a(message: str) -> str:
        if dig.notes():
            return "half"
        await asyncio.gather(*(team["b"](number) for number in range(5)))
        return "whole"

    async def b(number: int) -> None:
        began.append(number)
        await asyncio.sleep(0)

    team.update(a=a, b=b)
    dig.wrap(team, budget={"turns": 4})
    assert asyncio.run(team["a"]("?")) == "half"
    dig.unwrap(team)
    assert began == [0, 1, 2]


def test_functions_that_are_not_async_are_stopped_too() -> None:
    team: dict[str, Any] = {}

    def a(message: str) -> str:
        return "half" if dig.notes() else str(team["b"](message))

    def b(message: str) -> str:
        return str(team["a"](message))

    team.update(a=a, b=b)
    dig.wrap(team, budget=TURNS)
    assert team["a"]("?") == "half"
    dig.unwrap(team)


def test_a_stream_is_stopped_without_a_last_turn() -> None:
    """What was streamed cannot be taken back."""
    records: list[Record] = []
    team: dict[str, Any] = {}

    async def a(message: str) -> Any:
        while True:
            yield await team["b"](message)

    async def b(message: str) -> str:
        return "piece"

    async def read() -> list[str]:
        pieces: list[str] = []
        async for piece in team["a"]("?"):
            pieces.append(piece)
        return pieces

    team.update(a=a, b=b)
    dig.wrap(team, budget={"turns": 4}, sink=records.append)
    with pytest.raises(dig.BudgetExceeded) as raised:
        asyncio.run(read())
    assert raised.value.partial == ["piece"] * 3
    dig.unwrap(team)
    assert [row["how"] for row in incidents(records, "request_failed")] == ["limit"]


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"turn": 3}, "budget: there is no key 'turn'; did you mean turns"),
        ({"turns": 0}, "^turns is 0; it must be a number above 0"),
        ({"turns": 10**30}, "it must be a number above 0 to 1e"),
        ({"team": {"turns": -3}}, "^team: turns is -3; it must be a number above 0"),
        ({}, "a budget needs a limit"),
        (20, "budget is 20; it must be a table"),
        ({"dollars": 1, "prices": {"m": {"input": 1}}}, "prices, m lacks a value"),
        ({"dollars": 1, "prices": {"m": {"input": -1, "output": 1}}}, "m: input is -1; .*from 0"),
        (
            {"dollars": 1, "prices": {"m": {"input": None, "output": 1}}},
            "m: input is None; .*from 0",
        ),
    ],
)
def test_a_wrong_budget_is_refused(budget: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        dig.wrap(ring(None), budget=budget)
