"""AG2 classic, wrapped: a chat that waits for a person is neither judged nor healed meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("autogen.testing", reason="not installed: pip install .[dev,ag2-classic]")

from autogen import ConversableAgent

from dig.graph.records import IncidentRow

from .ag2_classic_teams import (
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
