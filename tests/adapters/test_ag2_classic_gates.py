"""AG2 classic, wrapped: what a gate keeps, and who waits for it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

pytest.importorskip("autogen.testing", reason="not installed: pip install .[dev,ag2-classic]")

from dig import Inject
from dig.detectors import standard
from dig.runtime.host import Setup

from .ag2_classic_asked import alone, chat, desks, group, in_group, nested, nested_now, reply
from .ag2_classic_teams import (
    Watched,
    Wrapping,
    agent,
    ask,
    ends,
    says,
    scenario,
    team,
    told,
)
from .harness import Script, play
from .test_gates import Keeper


def test_a_gate_keeps_a_message_and_chats_that_are_not_concerned_go_on() -> None:
    gate = Keeper("Go on", after_s=5.0, wishes=[lambda event: Inject(event, "It is late.")])
    watched = Watched("heal", Setup(detectors=standard, gates=[gate]))
    seen: list[tuple[Any, ...]] = []

    def build(script: Script) -> Any:
        def act(name: str, text: str) -> Any:
            def acts(contents: list[Any], number: int) -> str:
                seen.append((name, asyncio.get_running_loop().time(), *told(contents)))
                return text

            return acts

        user = agent(script, "user", says("Go on"), is_termination_msg=ends)
        ann = agent(script, "ann", act("ann", "One"), act("ann", "Two TERMINATE"))
        return team(user, ann, agent(script, "bob", act("bob", "Well TERMINATE")))

    async def drive(built: Any) -> Any:
        other = team(built.user, built.others[0])
        return await asyncio.gather(ask(built, silent=True), ask(other, silent=True))

    asked = scenario(build, drive, "held")
    bare = play(asked)
    seen.clear()
    assert play(asked, Wrapping(watched)).returned == bare.returned
    names = [name for name, *_ in seen]
    assert gate.seen == ["Go on"] and sorted(names[:2]) == ["ann", "bob"] and names[2] == "ann"
    assert seen[2][1] - seen[1][1] >= 4 and seen[2][2:] == ("[monitor] It is late.",)
    watched.must_be_sound()


KEPT = [(group, ask, "C TERMINATE"), (desks, in_group, "Solved"), (alone, reply, "Here I am")]


@pytest.mark.parametrize(("build", "drive", "answer"), KEPT)
def test_a_gate_keeps_an_answer(build: Any, drive: Any, answer: str) -> None:
    gate = Keeper(answer, after_s=5.0)
    watched = Watched("heal", Setup(detectors=standard, gates=[gate]))
    asked = scenario(build, drive)
    bare, mine = play(asked), play(asked, Wrapping(watched))
    assert gate.seen == [answer]
    assert mine.returned == bare.returned and mine.elapsed == bare.elapsed + 5
    watched.must_be_sound()


@pytest.mark.parametrize(
    ("build", "drive", "kept"), [*KEPT, (nested, ask, "First?"), (nested, ask, "From cyd")]
)
def test_who_waits_for_what_is_held_may_be_cancelled_at_every_await(
    build: Any, drive: Any, kept: str
) -> None:
    for step in range(1, 20):
        gate = Keeper(kept, after_s=5.0)
        watched = Watched("heal", Setup(detectors=standard, gates=[gate]))
        play(scenario(build, drive), Wrapping(watched), cancel_at=step)
        watched.must_be_sound()
        assert watched.leaves_nothing_open(), f"cancelled before step {step}"


def test_a_chat_that_is_not_awaited_waits_for_a_gate_too() -> None:
    gate = Keeper("One", after_s=0.1)
    watched = Watched("heal", Setup(detectors=standard, gates=[gate]))
    watched.clock = time.monotonic  # type: ignore[method-assign]
    built = chat(Script())
    watched(built.wrap)
    built.user.initiate_chat(built.first, message="What now?", silent=True)
    assert gate.seen == ["One"]
    watched.must_be_sound()


def test_on_a_running_loop_a_chat_that_is_not_awaited_does_not_wait() -> None:
    gate = Keeper("And?", after_s=5.0)
    watched = Watched("heal", Setup(detectors=standard, gates=[gate]))
    asked = scenario(nested_now)
    assert play(asked, Wrapping(watched)) == play(asked)
    assert gate.seen == []
    watched.must_be_sound()
