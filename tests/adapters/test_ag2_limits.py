"""AG2 1.x, wrapped: what goes back counts against the limits of AG2."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ag2.network import (
    AgentTarget,
    FromSpeaker,
    TerminateTarget,
    ToolCalled,
    Transition,
    TransitionGraph,
)

from .ag2_teams import Act, Team, Watched, call, is_said, scenario, shown
from .ends import answers, ends, failed
from .harness import Outcome, Scenario, play
from .test_ag2_healing import is_told


def early(limit: int, *, learns: bool, hands_over: bool = False) -> Scenario:
    """Ann and Cyd give Bob parts, and speak without them in a workflow of so many turns.

    Args:
        limit: The workflow's `max_turns`, the user's own turn included.
        learns: Whether who is told waits for Bob; else it answers too early again.
        hands_over: Whether Ann gives the floor back to the user, and not to Cyd.
    """
    teams: list[Team] = []

    async def give_out(by: str, part: str) -> str:
        """Have Bob do something."""
        channel = await teams[-1].clients[by].open(type="conversation", target="bob")
        await channel.send(part)
        return "half of it"

    def half(name: str) -> Act:
        async def act(texts: list[str], number: int) -> Any:
            if learns and is_told(texts):
                await asyncio.sleep(10)
                return "all of it"
            return call("give_out", by=name, part=f"the second half, {number}")

        return act

    async def bob(texts: list[str], number: int) -> Any:
        await asyncio.sleep(5)
        return ""

    async def ask(team: Team) -> Any:
        teams.append(team)
        for name in ("ann", "cyd"):
            team.clients[name].agent.add_tool(give_out)
        ids = {"user": team.user.agent_id} | {n: c.agent_id for n, c in team.clients.items()}
        turns = [("user", "ann"), ("ann", "user" if hands_over else "cyd"), ("cyd", "ann")]
        graph = TransitionGraph(
            initial_speaker=ids["user"], max_turns=limit,
            transitions=[Transition(FromSpeaker(ids[a]), AgentTarget(ids[b])) for a, b in turns],
        )  # fmt: skip
        channel = await team.user.open(
            type="workflow", target=["ann", "cyd"], knobs={"graph": graph.to_dict()}
        )
        await team.user.send(channel.channel_id, "Go")
        told = await team.heard(channel.channel_id, 60)
        wal = await team.hub.read_wal(channel.channel_id)
        return [told, [shown(team.hub, envelope)[0] for envelope in wal if is_said(envelope)]]

    return scenario("early", {"ann": half("ann"), "bob": bob, "cyd": half("cyd")}, ask)


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
    assert play(asked, watched) == play(asked) and watched.healed() == ["inject"]


def talking(ends_by_tool: bool) -> Scenario:
    """Ann and Bob talk until there are no turns left, or one calls `finish`."""

    async def ask(team: Team) -> Any:
        ids = {"user": team.user.agent_id} | {n: c.agent_id for n, c in team.clients.items()}
        turns = [("user", "ann"), ("ann", "bob"), ("bob", "ann")]
        steps = [Transition(FromSpeaker(ids[a]), AgentTarget(ids[b])) for a, b in turns]
        if ends_by_tool:
            steps.insert(0, Transition(ToolCalled("finish"), TerminateTarget()))
        graph = TransitionGraph(initial_speaker=ids["user"], max_turns=4, transitions=steps)
        knobs = {"graph": graph.to_dict()}
        channel = await team.user.open(type="workflow", target=["ann", "bob"], knobs=knobs)
        await team.user.send(channel.channel_id, "Go")
        return await team.heard(channel.channel_id, 60)

    return scenario("talking", {"ann": lambda *given: "One", "bob": lambda *given: "Two"}, ask)


@pytest.mark.parametrize("mode", ["observe", "heal"])
def test_a_number_of_turns_that_guards_another_end_is_no_answer(mode: Any) -> None:
    """The workflow can end by a transition, and has come to `max_turns` before."""
    watched, asked = Watched(mode), talking(ends_by_tool=True)
    assert play(asked, watched) == play(asked)
    assert ends(watched.records) == {"ann": "called off"}
    assert failed(watched.records) == [("limit", None)] and answers(watched.records) == []
    assert watched.patterns == ["FAIL"] and watched.healed() == []
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


@pytest.mark.parametrize("mode", ["observe", "heal"])
def test_a_workflow_that_is_to_end_at_a_number_of_turns_is_answered_there(mode: Any) -> None:
    """Each speaker is followed by another one, so that nothing else can end it."""
    watched, asked = Watched(mode), talking(ends_by_tool=False)
    assert play(asked, watched) == play(asked)
    assert failed(watched.records) == [] and len(answers(watched.records)) == 1
    assert watched.patterns == []
    watched.must_be_sound()


def test_an_agent_whose_model_fails_has_the_error_and_the_question_no_answer() -> None:
    """A direct question ends by it; in a channel the others go on waiting."""

    async def ask(team: Team) -> Any:
        try:
            return (await team.clients["ann"].agent.ask("?")).body
        except ValueError as error:
            return repr(error)

    watched, asked = Watched(), scenario("failing", {"ann": lambda *given: ValueError("no")}, ask)
    assert play(asked, watched) == play(asked)
    assert ends(watched.records) == {"ann#2": "raised"}  # beside what channels bring
    assert failed(watched.records) == [("error", "ann#2")] and answers(watched.records) == []
    watched.must_be_sound()
