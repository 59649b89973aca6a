"""OpenAI agents, wrapped: what a gate keeps, and who waits for it."""

from __future__ import annotations

from typing import Any

import pytest

from dig.detectors import standard
from dig.runtime.host import Setup

from . import openai_agents_teams as teams
from .harness import Script, play
from .openai_agents_asked import alone
from .test_gates import Keeper


@pytest.mark.parametrize("drive", [teams.ask, teams.stream])
def test_a_gate_keeps_what_one_agent_is_given_while_another_goes_on(drive: Any) -> None:
    def build(script: Script) -> Any:
        b, c = (
            teams.agent(script, "b", teams.says("b done")),
            teams.agent(script, "c", teams.says("c done")),
        )
        both = [*teams.calls("b", input="rome")(None, 1), *teams.calls("c", input="oslo")(None, 1)]
        return teams.agent(
            script,
            "a",
            lambda call, n: both,
            teams.hands("c"),
            tools=[teams.as_tool(b), teams.as_tool(c)],
            handoffs=[c],
        )

    gate = Keeper("rome", {"handoff": "c"}, after_s=5.0)
    watched = teams.Watched("heal", Setup(detectors=standard, gates=[gate]))
    bare, mine = play(teams.scenario(build, drive)), play(teams.scenario(build, drive), watched)
    assert gate.seen == ["rome", {"handoff": "c"}]
    assert mine.returned == bare.returned and mine.per_agent() == bare.per_agent()
    assert bare.elapsed + 9 < mine.elapsed <= bare.elapsed + 10
    assert [who for who, what, _ in mine.log if what == "ends"] == ["a", "c", "b", "a", "c"]
    assert watched.leaves_nothing_open()


def test_a_gate_keeps_an_answer() -> None:
    gate = Keeper("done", after_s=5.0)
    watched = teams.Watched("heal", Setup(detectors=standard, gates=[gate]))
    bare, mine = play(teams.scenario(alone)), play(teams.scenario(alone), watched)
    assert gate.seen == ["done"]
    assert mine.returned == bare.returned and mine.elapsed == bare.elapsed + 5
    assert watched.leaves_nothing_open()


@teams.CANCELLED[0]
@teams.CANCELLED[1]
def test_who_waits_for_what_is_held_may_be_cancelled_at_every_await() -> None:
    asked = teams.scenario(alone)
    for step in range(1, 60):
        gate = Keeper("done", after_s=5.0)
        watched = teams.Watched("heal", Setup(detectors=standard, gates=[gate]))
        play(asked, watched, cancel_at=step)
        assert watched.leaves_nothing_open(), f"cancelled before step {step}"
