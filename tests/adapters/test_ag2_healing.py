"""AG2, wrapped: what is found in a team, and what becomes of it when it is healed."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Any

import pytest
from ag2.events import ModelResponse, ToolCallsEvent

import dig
from dig.graph.records import Limits

from . import harness
from .ag2_teams import PAIR, Act, Client, Team, Watched, call, said, says, scenario
from .conformance import REQUESTS, AskingTheSame, GoingRound, NotesStayApart, Shown
from .harness import Scenario, play


def is_told(texts: list[str]) -> bool:
    return any(text.startswith("[monitor]") for text in texts)


def hand_on(to: str) -> Act:
    """Somebody who thinks that another one is in charge, until it is told."""
    return lambda texts, number: (
        call("finish", summary="solved") if is_told(texts) else call("hand_to", agent=to)
    )


PING_PONG = {"ann": hand_on("bob"), "bob": hand_on("ann")}


async def ask_ping_pong(team: Team) -> Any:
    try:
        async with asyncio.timeout(20):
            return await team.workflow(("user", "ann"))
    except TimeoutError:
        return "round and round"


def test_et_an_early_answer_goes_back_and_its_agent_looks_at_it_again() -> None:
    asked = early_team()
    assert "half of it" in str(play(asked).returned)
    watched = Watched("heal")
    outcome = play(asked, watched)
    assert "all of it" in str(outcome.returned) and "half of it" not in str(outcome.returned)
    assert {*watched.patterns} == {"ET"} and watched.healed()[0] == "reroute"
    watched.must_be_sound()


def early_team() -> Scenario:
    """Ann gives a part to Bob, who takes his time, and answers without it."""

    async def give_out(part: str) -> str:
        """Have Bob do something."""
        team = teams[-1]
        channel = await team.clients["ann"].open(type="conversation", target="bob")
        await channel.send(part)
        return "half of it"

    teams: list[Team] = []

    async def ann(texts: list[str], number: int) -> Any:
        if not is_told(texts):
            return call("give_out", part="the second half")
        await asyncio.sleep(10)
        return call("finish", summary="all of it")

    async def bob(texts: list[str], number: int) -> Any:
        await asyncio.sleep(5)
        return ""

    async def ask(team: Team) -> Any:
        teams.append(team)
        team.clients["ann"].agent.add_tool(give_out)
        return await team.workflow(("user", "ann"))

    return scenario("early", {"ann": ann, "bob": bob}, ask)


async def ask_and_wait(team: Team) -> Any:
    return await team.workflow(*PAIR, wait=60)


@pytest.mark.parametrize("answer", ["", ValueError("no model")], ids=["silent", "failing"])
def test_mc_who_has_the_floor_and_says_nothing_is_asked_again(answer: Any) -> None:
    def ann(texts: list[str], number: int) -> Any:
        return "Here I am" if is_told(texts) else answer

    asked = scenario("silent", {"ann": ann, "bob": says("The whole")}, ask_and_wait)
    assert play(asked).returned == "['silence']"
    watched = Watched("heal")
    outcome = play(watched.ticking(asked), watched)
    assert "Here I am" in str(outcome.returned) and "The whole" in str(outcome.returned)
    assert watched.patterns[-1] == "MC" and watched.healed() == ["create"]
    assert {*watched.patterns[:-1]} <= {"FAIL"}
    assert 30 <= outcome.elapsed < 35
    watched.must_be_sound()


def delegating_pair(timeout: float) -> Scenario:
    """Ann delegates while she works, and cannot take up the answer: AG2 waits for her turn."""

    def ann(texts: list[str], number: int) -> Any:
        if is_told(texts):
            return call("finish", summary="alone then")
        return call("delegate", target="bob", prompt="?", timeout=timeout)

    async def ask(team: Team) -> Any:
        return await team.workflow(("user", "ann"), wait=timeout + 20)

    return scenario("delegating", {"ann": ann, "bob": says("Yes")}, ask)


def test_dl_an_answer_that_its_asker_can_never_take_up_is_found_while_it_waits() -> None:
    limits = Limits(dl_window_s=5)
    watched = Watched("heal", limits=limits)
    asked = delegating_pair(60)
    assert "timed out after 60" in str(play(asked).returned)
    outcome = play(watched.ticking(asked), watched)
    assert "alone then" in str(outcome.returned)
    assert watched.patterns[:2] == ["DL", "ET"] and watched.healed()[:2] == ["create", "reroute"]
    assert watched.session.findings[0].ts < 10
    assert [*watched.session.findings[0].evidence["waiting"]] == ["ann"]
    watched.must_be_sound()


def twice_asked() -> Scenario:
    """Ann has the same thing done by two, and hears of it before she answers."""

    def ann(texts: list[str], number: int) -> Any:
        if is_told(texts):
            return "once is enough"
        return [call("delegate", target=name, prompt="Count") for name in ("bob", "cyd")]

    async def ask(team: Team) -> Any:
        return (await team.clients["ann"].agent.ask("How many?")).body

    return scenario("twice", {"ann": ann, "bob": says("Three"), "cyd": says("Three")}, ask)


class TestAskingTheSame(AskingTheSame):
    watched, asking, told = Watched, [twice_asked()], "once is enough"


def test_oe_a_message_to_an_agent_that_is_not_connected_any_more_is_found() -> None:
    async def ask(team: Team) -> Any:
        knobs = {"graph": team.graph(*PAIR)}
        channel = await team.user.open(type="workflow", target=["ann", "bob"], knobs=knobs)
        await team.clients["bob"]._hub_client.close()
        await team.user.send(channel.channel_id, "Go")
        return await team.heard(channel.channel_id, 20)

    asked = scenario("gone", {"ann": says("A part"), "bob": says("x")}, ask)
    watched = Watched()
    assert play(watched.ticking(asked), watched).returned == play(asked).returned
    assert watched.patterns == ["OE"]
    assert watched.session.findings[0].evidence == {"cause": "no_recipient"}
    watched.must_be_sound()


class TestGoingRound(GoingRound):
    watched, going_round = Watched, [scenario("ping_pong", PING_PONG, ask_ping_pong)]
    unsolved, solved = "round and round", "solved"


class Thinking(Client):
    """A model that is given all that its turn has come to: `await act(messages, 0)`."""

    async def __call__(self, messages: Any, context: Any, **more: Any) -> ModelResponse:
        does = await self.model.act(messages, 0)
        if isinstance(does, str):
            return await said(context, does)
        return ModelResponse(tool_calls=ToolCallsEvent([does]))


def crowded(shown: Shown) -> Scenario:
    """Ann is asked by workflows, and says nothing at first; and directly, and hangs, for some.

    In a direct question she delegates to `store`, for some requests until she is told.
    """

    def number_of(messages: Any) -> int:
        number = int(re.findall(r"request (\d+)", str(messages))[0])
        shown.append((number, dig.notes_about()))
        return number

    def is_by_workflow(number: int) -> bool:
        return number % 5 == 3

    async def ann(messages: Any, _: int) -> Any:
        number, asked = number_of(messages), str(messages).count("ToolResultsEvent(")
        if is_by_workflow(number):
            return "" if number % 10 == 3 and not dig.notes() else f"request {number} is done"
        if not asked:
            await asyncio.sleep(30 if number % 10 == 4 else number % 7)
        is_told = any(about.pattern == "LOOP" for about in dig.notes_about())
        if is_told or asked >= (12 if number % 10 == 0 else 1):
            return f"request {number} is done"
        return call("delegate", target="store", prompt=f"how many for request {number}")

    async def store(messages: Any, _: int) -> str:
        await asyncio.sleep(0.01)
        number_of(messages)
        return "4"

    def ask_one(team: Team, number: int) -> Any:
        text = f"request {number}"
        if is_by_workflow(number):
            return team.workflow(("user", "ann"), says=text, wait=1_000)
        return team.clients["ann"].agent.ask(text)

    async def ask(team: Team) -> Any:
        for client in team.clients.values():
            model = client.agent.config
            model.create = partial(Thinking, model)
        await asyncio.gather(*(ask_one(team, number) for number in range(REQUESTS)))

    return scenario("crowd", {"ann": ann, "store": store}, ask)


class TestNotesStayApart(NotesStayApart):
    watched, crowded = Watched, staticmethod(crowded)

    @pytest.fixture(autouse=True)
    def takes_many_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A hub makes several steps for each message."""
        monkeypatch.setattr(harness, "STEPS", 100_000)
