"""AG2, wrapped: what is found and healed, what its limits allow, and who waits for a person."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Any

import pytest
from ag2 import Context, tool
from ag2.events import ModelResponse, ToolCallsEvent
from ag2.middleware import approval_required
from ag2.network import AgentClient, TerminateTarget, ToolCalled, Transition

import dig
from dig.graph.records import Emit, End, Limits, Start

from .ag2_teams import (
    CHAIN,
    PAIR,
    SCENARIOS,
    Act,
    Model,
    Team,
    Watched,
    call,
    consult,
    is_said,
    is_told,
    said,
    says,
    scenario,
    shown,
)
from .conformance import REQUESTS, Failing, Shown
from .harness import Outcome, Scenario, Script, play

MODES = pytest.mark.parametrize("mode", ["observe", "heal"])


# --- it is used as before ---


def test_unwrapping_gives_hub_agents_and_class_back_as_they_were() -> None:
    receive = AgentClient.receive

    async def drive() -> None:
        team = Team(Script(), CHAIN)
        async with team:
            agents = [client.agent for client in team.clients.values()]
            before = [{**vars(one)} for one in (team.hub, *agents)]
            assert dig.wrap(team.hub) is team.hub
            await team.workflow(*PAIR)
            assert dig.unwrap(team.hub) is team.hub
            assert [vars(one).keys() for one in (team.hub, *agents)] == [
                one.keys() for one in before
            ]
            assert AgentClient.receive is receive
            assert len(await team.workflow(*PAIR)) == 3

    asyncio.run(drive())


def test_an_answer_is_in_the_lineage_of_whom_its_agent_has_asked() -> None:
    watched = Watched()
    play(next(one for one in SCENARIOS if one.name == "delegating"), watched)
    (final,) = (row for row in watched.rows(Emit) if row.final)
    (last,) = (row for row in watched.rows(Start) if row.activation == final.by)
    ends = [row for row in watched.rows(End) if {*row.outputs} & {*last.inputs}]
    starts = {row.activation: row.agent for row in watched.rows(Start)}
    assert {starts[end.activation] for end in ends} == {"ann#2", "bob"}
    watched.must_be_sound()


# --- what is found, and healed ---


def hand_on(to: str) -> Act:
    """Somebody who thinks that another one is in charge, until it is told."""
    return lambda texts, number: (
        call("finish", summary="solved") if is_told(texts) else call("hand_to", agent=to)
    )


async def ask_ping_pong(team: Team) -> Any:
    try:
        async with asyncio.timeout(20):
            return await team.workflow(("user", "ann"))
    except TimeoutError:
        return "round and round"


ping_pong = scenario("ping_pong", {"ann": hand_on("bob"), "bob": hand_on("ann")}, ask_ping_pong)


async def works(texts: list[str], number: int) -> str:
    """Bob takes his time for a part, and says nothing."""
    await asyncio.sleep(5)
    return ""


def early_team() -> Scenario:
    """Ann gives a part to Bob, who takes his time, and answers without it."""

    async def ann(texts: list[str], number: int) -> Any:
        if not is_told(texts):
            return call("give_out", part="the second half")
        await asyncio.sleep(10)
        return call("finish", summary="all of it")

    async def ask(team: Team) -> Any:
        team.gives_out("ann")
        return await team.workflow(("user", "ann"))

    return scenario("early", {"ann": ann, "bob": works}, ask)


def test_et_an_early_answer_goes_back_and_its_agent_looks_at_it_again() -> None:
    asked = early_team()
    assert "half of it" in str(play(asked).returned)
    watched = Watched("heal")
    outcome = play(asked, watched)
    assert "all of it" in str(outcome.returned) and "half of it" not in str(outcome.returned)
    assert {*watched.patterns} == {"ET"} and watched.healed()[0] == "reroute"
    watched.must_be_sound()


def silent_team(answer: Any = "") -> Scenario:
    """Ann has the floor and says nothing, or fails, until she is told."""

    def ann(texts: list[str], number: int) -> Any:
        return "Here I am" if is_told(texts) else answer

    acts = {"ann": ann, "bob": says("The whole")}
    return scenario("silent", acts, lambda team: team.workflow(*PAIR))


@pytest.mark.parametrize("answer", ["", ValueError("no model")], ids=["silent", "failing"])
def test_mc_who_has_the_floor_and_says_nothing_is_asked_again(answer: Any) -> None:
    asked = silent_team(answer)
    assert play(asked).returned == "['silence']"
    watched = Watched("heal")
    outcome = play(watched.ticking(asked), watched)
    assert "Here I am" in str(outcome.returned) and "The whole" in str(outcome.returned)
    assert watched.patterns[-1] == "MC" and watched.healed() == ["create"]
    assert {*watched.patterns[:-1]} <= {"FAIL"}
    assert 30 <= outcome.elapsed < 35
    watched.must_be_sound()


def test_dl_an_answer_that_its_asker_can_never_take_up_is_found_while_it_waits() -> None:
    """Ann delegates while she works, and cannot take up the answer: AG2 waits for her turn."""

    def ann(texts: list[str], number: int) -> Any:
        if is_told(texts):
            return call("finish", summary="alone then")
        return call("delegate", target="bob", prompt="?", timeout=60)

    asked = scenario(
        "delegating", {"ann": ann, "bob": says("Yes")},
        lambda team: team.workflow(("user", "ann"), wait=80),
    )  # fmt: skip
    watched = Watched("heal", limits=Limits(dl_window_s=5))
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

    return scenario("twice", {"ann": ann, "bob": says("Three"), "cyd": says("Three")}, consult)


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


class Thinking(Model):
    """A model that is given all that its turn has come to: `await act(messages, 0)`."""

    async def __call__(self, messages: Any, context: Any, **more: Any) -> ModelResponse:
        does = await self.act(messages, 0)
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
            model.create = partial(Thinking, model.script, model.name, model.act)
        await asyncio.gather(*(ask_one(team, number) for number in range(REQUESTS)))

    return scenario("crowd", {"ann": ann, "store": store}, ask)


# --- what goes back counts against the limits of AG2 ---


def early(limit: int, *, learns: bool, hands_over: bool = False) -> Scenario:
    """Ann and Cyd give Bob parts, and speak without them in a workflow of so many turns.

    Args:
        limit: The workflow's `max_turns`, the user's own turn included.
        learns: Whether who is told waits for Bob; else it answers too early again.
        hands_over: Whether Ann gives the floor back to the user, and not to Cyd.
    """

    async def half(texts: list[str], number: int) -> Any:
        if learns and is_told(texts):
            await asyncio.sleep(10)
            return "all of it"
        return call("give_out", part=f"the second half, {number}")

    async def ask(team: Team) -> Any:
        for name in ("ann", "cyd"):
            team.gives_out(name)
        turns = [("user", "ann"), ("ann", "user" if hands_over else "cyd"), ("cyd", "ann")]
        channel = await team.begin(*turns, agents=("ann", "cyd"), max_turns=limit)
        told = await team.heard(channel, 60)
        wal = await team.hub.read_wal(channel)
        return [told, [shown(team.hub, envelope)[0] for envelope in wal if is_said(envelope)]]

    return scenario("early", {"ann": half, "bob": works, "cyd": half}, ask)


def asks(outcome: Outcome) -> int:
    """How often the models of Ann and Cyd were asked to begin a turn."""
    return sum(what == "sees" and name != "bob" for name, what, _ in outcome.log)


@pytest.mark.parametrize("limit", [2, 3, 4])
@pytest.mark.parametrize("learns", [True, False])
def test_an_answer_that_went_back_takes_no_turn_of_a_workflow_beyond_its_limit(
    limit: int, learns: bool
) -> None:
    """The channel has as many turns as without, and AG2 closes it for the same reason."""
    asked, watched = early(limit, learns=learns), Watched("heal")
    bare, mine = play(asked), play(asked, watched)
    said = str(["user", "ann", "cyd", "ann"][:limit])
    assert said in str(bare.returned) and said in str(mine.returned)
    assert "'max_turns'" in str(bare.returned) and "'max_turns'" in str(mine.returned)
    assert ("all of it" in str(mine.returned)) == learns
    bounces = watched.healed().count("reroute")
    assert 1 <= bounces <= 2 and asks(mine) == asks(bare) + bounces
    watched.must_be_sound()


def test_the_last_turn_of_a_workflow_asks_no_person() -> None:
    """Its limit closes the channel before the person has the floor, so it is an answer."""
    asked, watched = early(2, learns=True, hands_over=True), Watched("heal")
    mine = play(asked, watched)
    assert "all of it" in str(mine.returned) and "max_turns" in str(mine.returned)
    assert watched.patterns[:1] == ["ET"] and watched.healed()[:1] == ["reroute"]
    asked, watched = early(9, learns=True, hands_over=True), Watched("heal")
    watched.must_change_nothing(asked)
    assert watched.healed() == ["inject"]


def talking(ends_by_tool: bool) -> Scenario:
    """Ann and Bob talk until there are no turns left, or one calls `finish`."""
    first = [Transition(ToolCalled("finish"), TerminateTarget())] if ends_by_tool else []
    turns = [("user", "ann"), ("ann", "bob"), ("bob", "ann")]
    acts: dict[str, Act] = {"ann": says("One"), "bob": says("Two")}
    return scenario("talking", acts, lambda team: team.workflow(*turns, first=first, max_turns=4))


@MODES
def test_a_workflow_that_is_to_end_at_a_number_of_turns_is_answered_there(mode: Any) -> None:
    """Each speaker is followed by another one, so that nothing else can end it."""
    watched = Watched(mode)
    watched.must_change_nothing(talking(ends_by_tool=False))
    assert watched.failed() == [] and len(watched.answers()) == 1
    assert watched.patterns == []
    watched.must_be_sound()


async def ask_and_catch(team: Team) -> Any:
    try:
        return await consult(team)
    except ValueError as error:
        return repr(error)


FAILING = [
    # The workflow can end by a transition, and has come to `max_turns` before.
    Failing(talking(ends_by_tool=True), {"ann": "called off"}, ("limit", None)),
    # A direct question ends by it, which is asked beside what channels bring.
    Failing(
        scenario("failing", {"ann": lambda *given: ValueError("no")}, ask_and_catch),
        {"ann#2": "ValueError: no"}, ("error", "ann#2"),
    ),
]  # fmt: skip


# --- who waits for a person ---


async def two_turns(team: Team) -> Any:
    """A workflow in which Ann asks the user, and Bob goes on with what that says."""
    channel = await team.begin(("user", "ann"), ("ann", "user"))
    answers = [await team.answer(channel)]
    await team.user.send(channel, "The left one")
    return [shown(team.hub, envelope) for envelope in [*answers, await team.answer(channel)]]


def test_a_question_to_the_person_does_not_go_back_whatever_is_open() -> None:
    """Ann has given Bob a part, and asks the person meanwhile: at once, and once."""

    def ann(texts: list[str], number: int) -> Any:
        assert not is_told(texts), "she is asked again"
        return call("give_out", part="the second half") if number == 1 else "All of it"

    async def ask(team: Team) -> Any:
        team.gives_out("ann", "Which one?")
        return await two_turns(team)

    asked, watched = scenario("asking_early", {"ann": ann, "bob": works}, ask), Watched("heal")
    bare, mine = play(asked), play(asked, watched)
    assert (mine.returned, mine.per_agent()["ann"]) == (bare.returned, bare.per_agent()["ann"])
    assert "reroute" not in watched.healed()
    watched.must_be_sound()


def hooked(drive: Any, *calls: Any) -> Scenario:
    """Tools of Ann's ask a person, who takes its time, by the hook of her agent."""

    async def ask(team: Team) -> Any:
        agent = team.clients["ann"].agent

        async def person(event: Any) -> str:
            team.script.log.append(("person", "is asked", event.content))
            await asyncio.sleep(20)
            return "yes"

        async def decide(question: str, context: Context) -> str:
            """Ask a person."""
            return str(await context.input(question))

        async def pay(amount: int) -> str:
            """Pay."""
            return f"paid {amount}"

        agent.hitl_hook(person)
        for one in (decide, tool(pay, middleware=[approval_required()])):
            agent.add_tool(one)
        return await drive(team)

    def ann(texts: list[str], number: int) -> Any:
        assert not is_told(texts), "she is told something, or asked again"
        return [*calls]

    async def bob(texts: list[str], number: int) -> Any:
        await asyncio.sleep(40)
        return "The second half"

    return scenario(
        f"{drive.__name__} {[call.name for call in calls]}", {"ann": ann, "bob": bob}, ask
    )


async def in_workflow(team: Team) -> Any:
    return await team.workflow(("user", "ann"))


ASKS = [call("decide", question="Left?"), call("pay", amount=3)]
DELEGATES = call("delegate", target="bob", prompt="The second half?", timeout=90)


@pytest.mark.parametrize("asks", ASKS, ids=["input", "approval"])
def test_a_person_is_asked_once_and_what_was_delegated_beside_is_done(asks: Any) -> None:
    """Which holds without a monitor, so that it holds with one, too."""
    bare = play(hooked(consult, DELEGATES, asks))
    assert [one[0] for one in bare.log].count("person") == 1 and bare.elapsed > 20
    assert "The second half" in str(bare.returned)


MANY = 40


async def all_at_once(team: Team) -> Any:
    """Forty questions to one agent, which asks a person in each of them."""
    ask = team.clients["ann"].agent.ask
    replies = await asyncio.gather(*(ask(f"May I, {one}?") for one in range(MANY)))
    return [reply.body for reply in replies]


async def slowly(team: Team) -> Any:
    async def decide(question: str, context: Context) -> str:
        """Ask a person, and take long over the answer."""
        said = str(await context.input(question))
        await asyncio.sleep(60)
        return said

    team.clients["ann"].agent.add_tool(decide)
    return await consult(team)
