"""AG2 1.x, wrapped: a channel that waits for a person is not healed meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("ag2", reason="AG2 is not installed: pip install .[dev,ag2]")

from ag2 import Context, tool
from ag2.middleware import approval_required

from dig.graph.records import IncidentRow

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
    assert watched.patterns == [] and watched.healed() == [] and waits(watched) == 1
    watched.must_be_sound()
