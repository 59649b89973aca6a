"""AG2 classic, wrapped: what is found in a team, and what becomes of it when it is healed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("autogen.testing", reason="not installed: pip install .[dev,ag2-classic]")


from autogen import ConversableAgent
from autogen.testing import ToolCall, tools_message

import dig
from dig.detectors import standard, standard_healers
from dig.graph.records import Limits
from dig.runtime.host import Setup

from .ag2_classic_asked import all_at_once, hand_over, in_group, in_group_now
from .ag2_classic_teams import (
    Watched,
    Wrapping,
    agent,
    calls,
    ends,
    manager,
    says,
    scenario,
    team,
    told,
    unless_told,
)
from .conformance import AskingTheSame, GoingRound
from .harness import Outcome, Scenario, Script, play


def healed(asked: Scenario, watched: Watched, seed: int = 0) -> Outcome:
    outcome = play(asked, Wrapping(watched), seed=seed)
    watched.must_be_sound()
    assert watched.leaves_nothing_open()
    return outcome


def ping_pong(script: Script) -> Any:
    """Two desks that each believe that the other one is responsible, until they are told."""
    ann = agent(script, "ann", unless_told(calls("transfer_to_bob_1"), says("Solved")))
    bob = agent(script, "bob", unless_told(calls("transfer_to_ann_1"), says("Solved")))
    return hand_over(ann, bob)


def test_er_what_counts_as_a_handoff_can_be_told() -> None:
    def build(script: Script) -> Any:
        replies = unless_told(says("Not mine"), says("Solved TERMINATE"))
        found = manager([agent(script, name, replies) for name in ("ann", "bob")])
        return team(agent(script, "user"), found)

    watched = Watched("heal", handoff=lambda message: message["content"] == "Not mine")
    outcome = healed(scenario(build, name="by_words"), watched)
    assert "Solved" in str(outcome.returned) and watched.patterns == ["ER"]


def two_at_once(script: Script, told: str = "All of it") -> Any:
    """Ann hands over to two at once; AG2 carries out the last one, and drops the other."""
    names = ("transfer_to_bob_1", "transfer_to_cyd_2")
    ann = agent(script, "ann", lambda contents, n: tools_message(*map(ToolCall, names)))
    bob = agent(script, "bob", says("never"))
    cyd = agent(script, "cyd", unless_told(says("Half of it"), says(told)))
    return hand_over(ann, bob, cyd)


@pytest.mark.parametrize("drive", [in_group, in_group_now])
def test_et_who_has_the_last_word_in_a_group_too_early_has_the_floor_again(drive: Any) -> None:
    asked = scenario(two_at_once, drive)
    assert "All of it" not in str(play(asked).returned)
    watched = Watched("heal")
    outcome = healed(asked, watched)
    assert "All of it" in str(outcome.returned)
    assert watched.patterns == ["ET", "ET"] and watched.healed() == ["reroute", "inject"]


def in_background(script: Script, told: str = "All of it TERMINATE") -> Any:
    """Ann's tool has Bob work in the background, and she says that all is done."""
    bob = agent(script, "bob", says("The second half"))
    user = agent(script, "user", is_termination_msg=ends)
    tasks: list[Any] = []

    async def works(self: Any, messages: Any = None, sender: Any = None, config: Any = None) -> Any:
        await asyncio.sleep(5)
        return False, None

    async def give_out(part: str) -> str:
        tasks.append(asyncio.create_task(ann.a_initiate_chat(bob, message=part, max_turns=1)))
        await asyncio.sleep(0)
        return "given out"

    async def think(self: Any, messages: Any = None, sender: Any = None, config: Any = None) -> Any:
        if sender is user and not tasks:
            await give_out("the second half")
        elif dig.notes():
            await asyncio.gather(*tasks)
        return False, None

    ann = agent(script, "ann", unless_told(says("Half TERMINATE"), says(told)))
    ann.register_reply([type(user), None], think, position=2)
    bob.register_reply([type(user), None], works, position=2)
    return team(user, ann)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_et_an_answer_before_work_in_the_background_is_done_goes_back(seed: int) -> None:
    asked = scenario(in_background)
    assert "Half" in str(play(asked, seed=seed).returned)
    watched = Watched("heal")
    outcome = healed(asked, watched, seed)
    assert "All of it" in str(outcome.returned) and "Half" not in str(outcome.returned)
    assert watched.patterns[0] == "ET" and watched.healed()[0] == "reroute"


def twice(script: Script) -> Any:
    """Ann puts the same question to two others, and answers when both have."""
    others = [agent(script, name, says(f"From {name}")) for name in ("bob", "cyd")]
    user = agent(script, "user", is_termination_msg=lambda message: True)

    async def asks(self: Any, messages: Any = None, sender: Any = None, config: Any = None) -> Any:
        if sender is not user:
            return False, None
        for one in others:
            await ann.a_initiate_chat(one, message="How many?", max_turns=1, silent=True)
        return False, None

    ann = agent(script, "ann", unless_told(says("Six"), says("Three")))
    ann.register_reply([type(user), None], asks, position=2)
    return team(user, ann)


class TestAskingTheSame(AskingTheSame):
    watched, asking, told = Watched, [scenario(twice)], "Three"

    def wrap(self, watched: Any) -> Wrapping:
        return Wrapping(watched)


def slow(made: Any) -> Any:
    """An agent that thinks for twenty seconds."""

    async def thinks(self: Any, *given: Any, **more: Any) -> Any:
        await asyncio.sleep(20)
        return False, None

    made.register_reply([ConversableAgent, None], thinks, position=2)
    return made


def test_oe_who_has_dropped_a_handoff_is_told_with_its_next_turn() -> None:
    def build(script: Script) -> Any:
        names = ("transfer_to_bob_1", "transfer_to_cyd_2")
        both = tools_message(*map(ToolCall, names))
        ann = agent(script, "ann", unless_told(lambda contents, n: both, says("I know")))
        cyd = slow(agent(script, "cyd", calls("transfer_to_ann_1")))
        return hand_over(ann, agent(script, "bob", says("never")), cyd)

    watched = Watched("heal")
    asked = watched.ticking(scenario(build, in_group, "dropped"))
    outcome = play(asked, Wrapping(watched))
    assert "I know" in str(outcome.returned)
    assert watched.patterns[0] == "OE" and watched.healed()[0] == "create"
    watched.must_be_sound()


def waiting_pair(script: Script) -> Any:
    """Two agents that wait for each other's word before they ask their models, for a while."""
    words = {"ann": asyncio.Event(), "bob": asyncio.Event()}
    user = agent(script, "user", is_termination_msg=lambda message: True)

    def one(name: str, other: str) -> Any:
        async def waits(self: Any, *given: Any, **more: Any) -> Any:
            with suppress(TimeoutError):
                async with asyncio.timeout(30):
                    await words[other].wait()
            return False, None

        def acts(contents: Any, number: int) -> str:
            words[name].set()
            return "I go first" if told(contents) else "After you"

        made = agent(script, name, acts)
        made.register_reply([type(user), None], waits, position=2)
        return made

    return team(user, one("ann", "bob"), one("bob", "ann"))


def test_dl_two_that_wait_for_each_other_are_told_when_they_ask_their_models() -> None:
    limits = Limits(dl_window_s=5, activation_limit_s=5)
    watched = Watched("heal", Setup(detectors=standard, healers=standard_healers, limits=limits))
    asked = watched.ticking(scenario(waiting_pair, all_at_once))
    outcome = play(asked, Wrapping(watched))
    watched.must_be_sound()  # but the note to the user, who has no further turn, stays where it is
    assert "I go first" in str(outcome.returned)
    assert watched.patterns == ["DL", "DL"] and watched.healed() == ["create", "create"]
    assert 30 <= outcome.elapsed < 40


class TestGoingRound(GoingRound):
    watched = Watched
    going_round = tuple(scenario(ping_pong, drive) for drive in (in_group, in_group_now))
    unsolved, solved = "", "Solved"

    def wrap(self, watched: Any) -> Wrapping:
        return Wrapping(watched)
