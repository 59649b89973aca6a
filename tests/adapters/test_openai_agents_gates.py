"""OpenAI agents, wrapped: what a gate keeps, and who waits for it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("agents.testing", reason="not installed: pip install .[dev,openai-agents]")


from dig.detectors import standard
from dig.runtime.host import Setup

from .harness import Script, play
from .openai_agents_asked import alone
from .openai_agents_teams import (
    CANCELLED,
    Watched,
    agent,
    as_tool,
    ask,
    calls,
    hands,
    says,
    scenario,
    stream,
)
from .test_gates import Keeper


@pytest.mark.parametrize("drive", [ask, stream])
def test_a_gate_keeps_what_one_agent_is_given_while_another_goes_on(drive: Any) -> None:
    def build(script: Script) -> Any:
        b, c = agent(script, "b", says("b done")), agent(script, "c", says("c done"))
        both = [*calls("b", input="rome")(None, 1), *calls("c", input="oslo")(None, 1)]
        return agent(
            script,
            "a",
            lambda call, n: both,
            hands("c"),
            tools=[as_tool(b), as_tool(c)],
            handoffs=[c],
        )

    gate = Keeper("rome", {"handoff": "c"}, after_s=5.0)
    watched = Watched("heal", Setup(detectors=standard, gates=[gate]))
    bare, mine = play(scenario(build, drive)), play(scenario(build, drive), watched)
    assert gate.seen == ["rome", {"handoff": "c"}]
    assert mine.returned == bare.returned and mine.per_agent() == bare.per_agent()
    assert bare.elapsed + 9 < mine.elapsed <= bare.elapsed + 10
    assert [who for who, what, _ in mine.log if what == "ends"] == ["a", "c", "b", "a", "c"]
    assert watched.leaves_nothing_open()


def test_a_gate_keeps_an_answer() -> None:
    gate = Keeper("done", after_s=5.0)
    watched = Watched("heal", Setup(detectors=standard, gates=[gate]))
    bare, mine = play(scenario(alone)), play(scenario(alone), watched)
    assert gate.seen == ["done"]
    assert mine.returned == bare.returned and mine.elapsed == bare.elapsed + 5
    assert watched.leaves_nothing_open()


@CANCELLED[0]
@CANCELLED[1]
def test_who_waits_for_what_is_held_may_be_cancelled_at_every_await() -> None:
    asked = scenario(alone)
    for step in range(1, 60):
        gate = Keeper("done", after_s=5.0)
        watched = Watched("heal", Setup(detectors=standard, gates=[gate]))
        play(asked, watched, cancel_at=step)
        assert watched.leaves_nothing_open(), f"cancelled before step {step}"
