"""`sample=`: the journal is that of the sampled requests alone; gates and budgets hold for all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import dig
from dig.cli import app
from dig.errors import SettingsError
from dig.graph.records import Emit, Record
from dig.traces.verify import verify
from tests.helpers import VirtualLoop

from .framework_gates import Keeper

ROOTS = [prime**0.5 / 1000 for prime in (2, 3, 5, 7, 11, 13)]
"""Seconds for each request, so that no two things happen at the same moment."""


def make_team() -> dict[str, Any]:
    """Three agents that ask each other, overlap, and fail, as a request says."""
    team: dict[str, Any] = {}

    async def lead(request: Sequence[Any]) -> str:
        number, pauses, fails = request
        await asyncio.sleep(pauses[0] + ROOTS[number])
        calls = [team[name](request) for name in ("ann", "bob")]
        answers = await asyncio.gather(*calls, return_exceptions=True)  # no task outlives a request
        await asyncio.sleep(pauses[1])
        if fails == "lead":
            raise ValueError("lead")
        return " ".join(map(str, answers))

    async def ann(request: Sequence[Any]) -> str:
        number, pauses, fails = request
        await asyncio.sleep(pauses[2] + ROOTS[number] + 1e-6)
        return "none" if fails == "ann" else str(await team["bob"](request))

    async def bob(request: Sequence[Any]) -> str:
        number, pauses, fails = request
        await asyncio.sleep(pauses[3] + ROOTS[number])
        if fails == "bob":
            raise ValueError("bob")
        return f"{number} is done"

    team.update(lead=lead, ann=ann, bob=bob)
    return team


def sample(team: Any, draws: Sequence[bool]) -> Any:
    """The session of a wrapped team, whose next requests are in the sample or not."""
    session = dig.session_of(team)
    assert session.unsampled is not None
    session.leave_out(session.unsampled, partial(next, iter(draws)))
    return session


def play(requests: Sequence[Any], draws: Sequence[bool] | None, **options: Any) -> list[Any]:
    """Ask some requests at once; returns the records, without their times."""
    records: list[Record] = []
    team = make_team()

    async def ask() -> None:
        await asyncio.gather(*(team["lead"](it) for it in requests), return_exceptions=True)

    dig.wrap(team, sink=records.append, sample=1.0 if draws is None else 0.5, **options)
    session = dig.session_of(team) if draws is None else sample(team, draws)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(ask())
    seen = session.statistics()
    assert (seen.faults, seen.missed, seen.open_turns) == (0, 0, 0)
    if seen.unsampled is not None:
        rest = seen.unsampled
        assert (rest.faults, rest.missed, rest.open_turns) == (0, 0, 0)
        assert seen.requests + rest.requests == len(requests)
    dig.unwrap(team)
    return [replace(record, us=0) for record in records]


pause = st.integers(0, 20).map(lambda tenths: tenths / 10)
request = st.tuples(
    st.lists(pause, min_size=4, max_size=4), st.sampled_from(["", "", "lead", "ann", "bob"])
)


@given(st.lists(st.tuples(st.booleans(), request), max_size=6))
def test_the_journal_is_that_of_the_sampled_requests_alone(drawn: list[Any]) -> None:
    """Record by record, however requests overlap and fail."""
    requests = [(number, *it) for number, (_, it) in enumerate(drawn)]
    draws = [is_sampled for is_sampled, _ in drawn]
    alone = [it for it, is_sampled in zip(requests, draws, strict=True) if is_sampled]
    assert play(requests, draws) == play(alone, None)


def test_the_journal_says_so_verifies_and_is_checked(tmp_path: Path) -> None:
    """What is left out is no dangling edge; the side file has the share."""
    team = dig.wrap(make_team(), journal=tmp_path, sample=0.5)
    session = sample(team, [True, False, False, True])
    for number in range(4):
        asyncio.run(team["lead"]((number, [0.0] * 4, "")))
    dig.unwrap(team)
    assert session.directory is not None
    assert json.loads((session.directory / "side.json").read_text())["sample"] == 0.5
    assert not verify(session.directory / "trace.dig.jsonl").problems
    checked = CliRunner().invoke(app, ["check", str(session.directory), "--fail-on", "notice"])
    assert checked.exit_code == 0, checked.output
    assert (session.statistics().requests, session.statistics().turns) == (2, 8)


def test_each_request_has_its_budget_and_all_share_that_of_the_team() -> None:
    """A request outside the sample is stopped, too, and spends what the others may spend."""

    def spent(budget: Any, draws: Sequence[bool]) -> list[str]:
        async def count(limit: int) -> str:
            for _ in range(limit):
                if dig.notes():
                    return "half"
                await team["bob"]()
            return "whole"

        async def bob() -> None:
            pass

        team: dict[str, Any] = {"count": count, "bob": bob}
        sample(dig.wrap(team, sample=0.5, budget=budget), draws)
        answers = []
        for _ in draws:
            try:
                answers.append(asyncio.run(team["count"](5)))
            except dig.BudgetExceeded as error:
                answers.append(error.limit)
        dig.unwrap(team)
        return answers

    for draws in ([True, True], [True, False], [False, True], [False, False]):
        assert spent({"turns": 4}, draws) == ["half", "half"]
        assert spent({"turns": 10}, draws) == ["whole", "whole"]
        assert spent({"team": {"turns": 8}}, draws) == ["whole", "half"]


def test_gates_decide_about_requests_outside_the_sample() -> None:
    """No detector looks at them, and nothing is healed in them."""
    gate = Keeper(keeps=lambda graph, event: event.payload == "secret", after_s=0.01)
    team: dict[str, Any] = {}

    async def ann(question: str) -> str:
        for _ in range(20):
            await team["bob"]("again")
        return question

    async def bob(question: str) -> str:
        return question

    team.update(ann=ann, bob=bob)
    records: list[Record] = []
    sample(dig.wrap(team, sample=0.5, mode="heal", gates=[gate], sink=records.append), [False] * 2)
    assert asyncio.run(team["ann"]("secret")) == "secret"
    assert gate.seen == ["secret"]
    session = dig.session_of(team)
    assert not session.findings
    dig.unwrap(team)
    assert [record.kind for record in records] == ["run", "finish"]


def test_about_the_share_is_sampled_and_the_users_random_numbers_stay() -> None:
    import random

    random.seed(7)
    expected = random.random()
    random.seed(7)
    records: list[Record] = []
    team = dig.wrap({"ann": lambda question: question}, sample=0.1, sink=records.append)
    for _ in range(2_000):
        team["ann"]("?")
    dig.unwrap(team)
    assert random.random() == expected
    asked = sum(isinstance(record, Emit) and record.by is None for record in records)
    assert 120 < asked < 290  # six standard deviations


@pytest.mark.parametrize("share", [-0.1, 1.1, "0.1", True, None, float("nan")])
def test_a_share_that_is_none_is_refused(share: Any) -> None:
    with pytest.raises(SettingsError, match=r"sample=.* is no share of the requests, from 0 to 1"):
        dig.wrap({"ann": lambda question: question}, sample=share)
