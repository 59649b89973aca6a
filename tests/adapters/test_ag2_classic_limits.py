"""AG2 classic, wrapped: what goes back counts against the limits of AG2."""

from __future__ import annotations

import ast
import asyncio
from functools import partial
from typing import Any

import pytest

pytest.importorskip("autogen.testing", reason="not installed: pip install .[dev,ag2-classic]")

from autogen import ConversableAgent
from autogen.agentchat import a_initiate_group_chat, initiate_group_chat

import dig

from .ag2_classic_teams import (
    Watched,
    Wrapping,
    agent,
    ask,
    ends,
    manager,
    says,
    scenario,
    shown,
    team,
    unless_told,
)
from .harness import Outcome, Script, play
from .test_ag2_classic_healing import two_at_once


def sides(build: Any, drive: Any) -> tuple[Outcome, Outcome, Watched]:
    """The same play without a monitor, and healed."""
    watched, asked = Watched("heal"), scenario(build, drive, "limited")
    bare, mine = play(asked), play(asked, Wrapping(watched))
    watched.must_be_sound()
    assert watched.leaves_nothing_open()
    return bare, mine, watched


def words(outcome: Outcome) -> list[Any]:
    """What was said in the chat that was begun."""
    found: list[Any] = ast.literal_eval(outcome.returned or "")[0][0][0]
    return [message["content"] for message in found]


def said(outcome: Outcome) -> list[Any]:
    """What was said in the group."""
    found: list[Any] = ast.literal_eval(outcome.returned or "")[0][1]
    return found


def half(script: Script, waits: bool = True) -> Any:
    """An agent that has Bob work in the background, and says that all is done.

    Args:
        script: Told of each turn.
        waits: Whether it waits for Bob once it is told, or gives him more to do.
    """
    told = "All of it TERMINATE" if waits else "Still half TERMINATE"
    bob = agent(script, "bob", says("The second half"))
    tasks: list[Any] = []

    async def works(self: Any, *given: Any, **more: Any) -> Any:
        await asyncio.sleep(5)
        return False, None

    async def think(self: Any, *given: Any, **more: Any) -> Any:
        if not tasks or (dig.notes() and not waits):
            talk = ann.a_initiate_chat(bob, message=f"{len(tasks)}?", max_turns=1)
            tasks.append(asyncio.create_task(talk))
            await asyncio.sleep(0)
        elif dig.notes():
            await asyncio.gather(*tasks)
        return False, None

    ann = agent(script, "ann", unless_told(says("Half TERMINATE"), says(told)))
    ann.register_reply([ConversableAgent, None], think, position=2)
    bob.register_reply([ConversableAgent, None], works, position=2)
    return ann


def replies(most: int, waits: bool = True) -> Any:
    """Ann answers while Bob still works; she may reply so often without a person."""

    def build(script: Script) -> Any:
        ann = half(script, waits)
        ann.update_max_consecutive_auto_reply(most)
        return team(agent(script, "user", is_termination_msg=ends), ann)

    return build


def test_an_answer_does_not_go_back_to_an_agent_that_may_not_reply_again() -> None:
    """At `max_consecutive_auto_reply` the agent would say nothing, so its answer stands."""
    bare, mine, watched = sides(replies(1), ask)
    assert mine == bare and "Half" in str(mine.returned)
    assert watched.patterns == ["ET"] and "reroute" not in watched.healed()


def test_an_answer_goes_back_as_often_as_its_agent_may_still_reply() -> None:
    """One more reply is left, so the second early answer stands."""
    bare, mine, watched = sides(replies(2, waits=False), ask)
    assert "Still half" in str(mine.returned) and watched.healed().count("reroute") == 1
    assert watched.incidents().count("downgraded") == 1
    assert len(words(mine)) == len(words(bare))


@pytest.mark.parametrize("turns", [1, 2])
def test_a_chat_has_no_more_turns_than_max_turns_if_an_answer_went_back(turns: int) -> None:
    """Nobody has heard the early answer, so the messages are as many as without."""
    bare, mine, watched = sides(replies(99), partial(ask, max_turns=turns))
    assert watched.healed().count("reroute") <= 2 and "All of it" in str(mine.returned)
    assert len(words(mine)) == len(words(bare)) == 2


async def rounds(built: Any, most: int) -> Any:
    result, _, last = await a_initiate_group_chat(built.wrap, "I was charged twice.", most)
    return [shown(result), last.name]


async def rounds_now(built: Any, most: int) -> Any:
    result, _, last = initiate_group_chat(built.wrap, "I was charged twice.", most)
    return [shown(result), last.name]


@pytest.mark.parametrize("drive", [rounds, rounds_now])
def test_an_early_answer_takes_up_a_round_of_a_group_and_none_beyond_its_limit(drive: Any) -> None:
    """Where its limit leaves a round the agent has the floor again, else its answer stands."""
    for most in range(2, 8):
        bare, mine, watched = sides(two_at_once, partial(drive, most=most))
        if "Half of it" not in str(bare.returned):
            assert mine.returned == bare.returned
            continue
        is_last = len(words(bare)) == most
        assert len(words(mine)) <= most
        assert (
            ("reroute" in watched.healed()) == ("All of it" in str(mine.returned)) == (not is_last)
        )


@pytest.mark.parametrize("most", [3, 4])
def test_an_answer_that_ends_a_group_goes_back_within_the_rounds_that_it_has(most: int) -> None:
    """Ann's word is said once, however often she was asked for it."""

    def build(script: Script) -> Any:
        members = [agent(script, "cyd", says("Go on")), half(script)]
        return team(agent(script, "user"), manager(members, max_round=most))

    bare, mine, watched = sides(build, ask)
    assert "All of it" in str(mine.returned) and 1 <= watched.healed().count("reroute") <= 2
    assert len(said(mine)) == len(said(bare)) <= most
