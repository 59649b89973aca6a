"""AG2 1.x, wrapped: a channel that waits for a person is not healed meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("ag2", reason="AG2 is not installed: pip install .[dev,ag2]")

from .ag2_teams import Team, call, is_said, says, scenario, shown
from .ag2_watch import Watched
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
