"""AG2 classic, wrapped: a chat that waits for a person is neither judged nor healed meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("autogen.testing", reason="not installed: pip install .[dev,ag2-classic]")

from autogen import ConversableAgent
from autogen.agentchat.group import AskUserTarget, RevertToUserTarget
from autogen.agentchat.group.patterns import DefaultPattern
from autogen.io import IOStream

from dig.graph.records import Emit, IncidentRow

from .ag2_classic_asked import in_group as ask_pattern
from .ag2_classic_teams import (
    Heard,
    Watched,
    Wrapping,
    agent,
    ask,
    ask_now,
    ends,
    manager,
    says,
    scenario,
    team,
)
from .harness import Script, play
from .test_ag2_classic_healing import in_background
from .test_ag2_classic_limits import half, rounds

MODES = pytest.mark.parametrize("mode", ["observe", "heal"])
DRIVES = pytest.mark.parametrize("drive", [ask, ask_now])


def person(script: Script, *says: str, mode: str = "TERMINATE") -> Any:
    """A person behind an agent: types one line after the other, and then leaves."""
    lines = list(says)

    def types(prompt: str) -> str:
        script.log.append(("person", "types", prompt))
        return lines.pop(0) if lines else "exit"

    class Person(ConversableAgent):  # type: ignore[misc]
        def get_human_input(self, prompt: str, **more: Any) -> str:
            return types(prompt)

        async def a_get_human_input(self, prompt: str, **more: Any) -> str:
            return types(prompt)

    return Person("user", human_input_mode=mode, is_termination_msg=ends, llm_config=False)


def waits(watched: Watched) -> int:
    rows = [row for row in watched.records if isinstance(row, IncidentRow) and row.what == "waits"]
    assert all({*row.detail} == {"activation"} for row in rows)
    return len(rows)


def feedback(script: Script) -> Any:
    """Ann says that she is done, the person wants more, and then is content."""
    ann = agent(script, "ann", says("A draft TERMINATE"), says("The whole TERMINATE"))
    return team(person(script, "More, please"), ann)


@MODES
@DRIVES
def test_a_person_that_is_asked_whether_it_is_the_end_is_waited_for(drive: Any, mode: Any) -> None:
    """What the person is asked about is no answer yet, and each wait is told of."""
    watched = Watched(mode)
    asked = scenario(feedback, drive)
    assert play(asked, Wrapping(watched)) == play(asked)
    assert watched.patterns == [] and watched.healed() == [] and waits(watched) == 2
    assert watched.session.statistics().requests == 1
    watched.must_be_sound()


def background_and_person(script: Script) -> Any:
    """Ann says that she is done while Bob still works, and a person decides about that."""
    built = in_background(script)
    asked = built.user
    asked.human_input_mode = "TERMINATE"

    def types(prompt: str, **more: Any) -> str:
        script.log.append(("person", "types", prompt))
        return "exit"

    async def a_types(prompt: str, **more: Any) -> str:
        return types(prompt, **more)

    asked.get_human_input, asked.a_get_human_input = types, a_types
    return built


@MODES
def test_an_answer_that_a_person_is_asked_about_does_not_go_back(mode: Any) -> None:
    """The person decides, once; nobody works behind that, whatever is open."""
    watched = Watched(mode)
    asked = scenario(background_and_person)
    bare, mine = play(asked), play(asked, Wrapping(watched))
    assert (mine.returned, mine.log) == (bare.returned, bare.log)
    assert "reroute" not in watched.healed() and waits(watched) == 1


def in_group(script: Script) -> Any:
    """A person takes part in a group chat, and ends it."""
    user = person(script, "Go on", "Enough TERMINATE", mode="ALWAYS")
    first = agent(script, "first")
    return team(first, manager([agent(script, "ann", says("A part")), user]))


@MODES
@DRIVES
def test_a_person_in_a_group_chat_is_asked_as_often_as_without(drive: Any, mode: Any) -> None:
    """What a person says is never sent back for another try."""
    watched = Watched(mode)
    asked = scenario(in_group, drive)
    bare, mine = play(asked), play(asked, Wrapping(watched))
    assert mine == bare
    assert watched.patterns == [] and waits(watched) == 2
    watched.must_be_sound()


def unhurried(script: Script, mode: str = "ALWAYS") -> Any:
    """A person that takes its time, says one thing, and then leaves."""
    made = person(script, "Go on", mode=mode)
    types = made.a_get_human_input

    async def a_types(prompt: str, **more: Any) -> str:
        await asyncio.sleep(2)
        return str(await types(prompt, **more))

    made.a_get_human_input = a_types
    return made


def reverting(script: Script) -> Any:
    """Whoever has spoken gives the floor to the person, which a tool of Ann's does not wait for."""
    ann, user = half(script), unhurried(script)
    pattern = DefaultPattern(
        initial_agent=ann, agents=[ann], user_agent=user, group_after_work=RevertToUserTarget()
    )
    return team(user, ann, wrap=pattern)


def in_turns(mode: str) -> Any:
    """A group chat in which Ann and a person take turns."""

    def build(script: Script) -> Any:
        members = [half(script), unhurried(script, mode)]
        found = manager(members)
        found._is_termination_msg = lambda message: False  # the person decides
        return team(agent(script, "first"), found)

    return build


def choosing(script: Script) -> Any:
    """A person chooses who is next after each word, for as many rounds as there are."""
    ann, cyd = half(script), agent(script, "cyd", says("And now?"))
    pattern = DefaultPattern(initial_agent=ann, agents=[ann, cyd], group_after_work=AskUserTarget())
    return team(ann, cyd, wrap=pattern)


class Chooser(Heard):
    """A person that makes a mistake, and then chooses Ann, and then Cyd."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = ["99", "2", "3"]

    def input(self, prompt: str = "", *, password: bool = False) -> str:
        self.events.append(("asked", prompt))
        return self.numbers.pop(0)


async def choose(built: Any) -> Any:
    chooser = Chooser()
    with IOStream.set_default(chooser):
        return [await rounds(built, 4), chooser.events]


@MODES
@pytest.mark.parametrize(
    ("build", "drive", "number"),
    [
        (reverting, ask_pattern, 2), (in_turns("ALWAYS"), ask, 2), (in_turns("TERMINATE"), ask, 2),
        (choosing, choose, 2),
    ],
    ids=["RevertToUserTarget", "ALWAYS", "TERMINATE", "AskUserTarget"],
)  # fmt: skip
def test_a_group_that_asks_a_person_while_work_is_open_is_left_alone(
    build: Any, drive: Any, number: int, mode: Any
) -> None:
    """Bob works in the background, and no question is an answer: all is as without a monitor."""
    watched, asked = Watched(mode), scenario(build, drive, "asked")
    bare, mine = play(asked), play(asked, Wrapping(watched))
    assert mine == bare and "Half TERMINATE" in str(bare.returned)
    assert waits(watched) == number and "reroute" not in watched.healed()
    answers = [row for row in watched.records if isinstance(row, Emit) and row.final]
    assert len(answers) == watched.session.statistics().requests == 1
    assert all(found.us == answers[0].us for found in watched.session.findings)
    watched.must_be_sound()
