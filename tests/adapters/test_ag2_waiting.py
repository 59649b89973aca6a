"""AG2 1.x, wrapped: a channel that waits for a person is not healed meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ag2 import Context, tool
from ag2.middleware import approval_required

from dig.graph.records import IncidentRow, Limits

from .ag2_teams import Team, Watched, call, is_said, says, scenario, shown
from .harness import Scenario, play
from .test_ag2_healing import is_told

MODES = pytest.mark.parametrize("mode", ["observe", "heal"])


async def two_turns(team: Team) -> Any:
    """A workflow in which Ann asks the user, and Bob goes on with what that says."""
    steps = [("user", "ann"), ("ann", "user"), ("user", "bob")]
    found = []
    graph = team.graph(steps[0], steps[1])
    knobs = {"graph": graph}
    channel = await team.user.open(type="workflow", target=[*team.clients], knobs=knobs)
    for text in ("Go", "The left one"):
        await team.user.send(channel.channel_id, text)
        found.append(await team.user.wait_for_channel_event(
            channel_id=channel.channel_id, predicate=is_said, timeout=60
        ))  # fmt: skip
    return [shown(team.hub, envelope) for envelope in found]


@MODES
def test_an_agent_that_asks_the_person_in_a_workflow_is_waited_for(mode: Any) -> None:
    """Nothing is found while the floor is the person's, and the workflow goes on as without."""
    asked = scenario("asking", {"ann": says("Which?"), "bob": says("Done")}, two_turns)
    watched = Watched(mode)
    assert play(asked, watched) == play(asked)
    assert watched.patterns == [] and watched.healed() == []
    watched.must_be_sound()


def asking_early() -> Scenario:
    """Ann has given Bob a part, who takes his time, and asks the person meanwhile."""
    teams: list[Team] = []

    async def give_out(part: str) -> str:
        """Have Bob do something."""
        channel = await teams[-1].clients["ann"].open(type="conversation", target="bob")
        await channel.send(part)
        return "Which one?"

    def ann(texts: list[str], number: int) -> Any:
        assert not is_told(texts), "she is asked again"
        return call("give_out", part="the second half") if number == 1 else "All of it"

    async def bob(texts: list[str], number: int) -> Any:
        await asyncio.sleep(5)
        return ""

    async def ask(team: Team) -> Any:
        teams.append(team)
        team.clients["ann"].agent.add_tool(give_out)
        return await two_turns(team)

    return scenario("asking_early", {"ann": ann, "bob": bob}, ask)


def test_a_question_to_the_person_does_not_go_back_whatever_is_open() -> None:
    """The person is asked at once, and once; who has asked is not run again meanwhile."""
    watched = Watched("heal")
    bare, mine = play(asking_early()), play(asking_early(), watched)
    assert (mine.returned, mine.per_agent()["ann"]) == (bare.returned, bare.per_agent()["ann"])
    assert "reroute" not in watched.healed()
    watched.must_be_sound()


def waits(watched: Watched) -> int:
    """How many activations are said to wait for a person."""
    rows = [row for row in watched.records if isinstance(row, IncidentRow) and row.what == "waits"]
    assert all({*row.detail} == {"activation"} for row in rows)
    return len(rows)


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

    return scenario("hooked", {"ann": ann, "bob": bob}, ask)


async def directly(team: Team) -> Any:
    return (await team.clients["ann"].agent.ask("Which?")).body


async def in_workflow(team: Team) -> Any:
    return await team.workflow(("user", "ann"))


ASKS = [call("decide", question="Left?"), call("pay", amount=3)]


@MODES
@pytest.mark.parametrize("drive", [directly, in_workflow])
@pytest.mark.parametrize("asks", ASKS, ids=["input", "approval"])
def test_a_turn_that_asks_a_person_says_that_it_waits(asks: Any, drive: Any, mode: Any) -> None:
    """The hook is called once, the trace names the activation that waits, and all is as without."""
    asked, watched = hooked(drive, asks), Watched(mode)
    bare = play(asked)
    assert play(watched.ticking(asked), watched) == bare
    assert [one[0] for one in bare.log].count("person") == 1 and bare.elapsed > 20
    assert watched.patterns == [] and watched.healed() == [] and waits(watched) == 1
    watched.must_be_sound()


@MODES
@pytest.mark.parametrize("asks", ASKS, ids=["input", "approval"])
def test_a_turn_that_asks_a_person_beside_a_delegated_part_is_left_alone(
    asks: Any, mode: Any
) -> None:
    """Neither the delegated part nor the question is judged, told or run again meanwhile."""
    delegate = call("delegate", target="bob", prompt="The second half?", timeout=90)
    asked, watched = hooked(directly, delegate, asks), Watched(mode)
    bare = play(asked)
    assert play(watched.ticking(asked), watched) == bare
    assert "The second half" in str(bare.returned) and "person" in bare.per_agent()
    assert watched.patterns == [] and watched.healed() == [] and waits(watched) >= 1
    watched.must_be_sound()


MANY = 40


@MODES
def test_forty_approvals_at_once_are_waited_for_and_none_is_passed_over(mode: Any) -> None:
    """Forty questions to one agent, which asks a person in each of them."""

    async def all_at_once(team: Team) -> Any:
        ask = team.clients["ann"].agent.ask
        replies = await asyncio.gather(*(ask(f"May I, {one}?") for one in range(MANY)))
        return [reply.body for reply in replies]

    limits = Limits(dl_window_s=2, mc_window_s=2, activation_limit_s=5)
    asked, watched = hooked(all_at_once, ASKS[1]), Watched(mode, limits=limits)
    bare = play(asked)
    assert play(watched.ticking(asked), watched) == bare
    assert [one[0] for one in bare.log].count("person") == MANY == waits(watched)
    assert watched.patterns == [] and watched.healed() == []
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


@MODES
def test_a_hang_after_a_person_has_answered_is_seen(mode: Any) -> None:
    """The activation that goes on with the answer does not wait, so that it can be overdue."""

    async def slowly(team: Team) -> Any:
        async def decide(question: str, context: Context) -> str:
            """Ask a person, and take long over the answer."""
            said = str(await context.input(question))
            await asyncio.sleep(60)
            return said

        team.clients["ann"].agent.add_tool(decide)
        return (await team.clients["ann"].agent.ask("Which?")).body

    limits = Limits(mc_window_s=5, activation_limit_s=10)
    asked, watched = hooked(slowly, call("decide", question="Left?")), Watched(mode, limits=limits)
    assert play(watched.ticking(asked), watched) == play(asked)
    assert watched.patterns == ["MC"] and watched.session.findings[0].ts > 20
    watched.must_be_sound()
