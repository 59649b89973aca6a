"""OpenAI agents, wrapped: what is found in a team, and what becomes of it when it is healed."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("agents.testing", reason="not installed: pip install .[dev,openai-agents]")


from .harness import Script, play
from .openai_agents_teams import Watched, agent, calls, says, scenario, stream, told


def two_at_once(script: Script) -> Any:
    """Triage hands over to two; the SDK carries out the first handoff, and drops the other."""

    def bill(call: Any, number: int) -> Any:
        return says("billed, and shipped" if told(call) else "billed")(call, number)

    both = calls("transfer_to_billing", "transfer_to_shipping")
    handoffs = [agent(script, "billing", bill), agent(script, "shipping", says("shipped"))]
    return agent(script, "triage", both, handoffs=handoffs)


def test_et_an_answer_without_what_a_dropped_handoff_was_for_goes_back() -> None:
    watched = Watched("heal")
    outcome = play(scenario(two_at_once), watched)
    assert "'answer': 'billed, and shipped'" in str(outcome.returned)
    assert watched.patterns == ["ET", "ET"] and watched.healed() == ["reroute", "inject"]
    assert "monitor" not in str(outcome.returned)  # the note stays between monitor and model
    assert watched.leaves_nothing_open()


def test_et_a_streamed_answer_cannot_go_back_and_that_is_said() -> None:
    watched = Watched("heal")
    outcome = play(scenario(two_at_once, stream), watched)
    assert "'answer': 'billed'" in str(outcome.returned)
    assert watched.patterns == ["ET"] and watched.incidents() == ["downgraded"]
    assert watched.leaves_nothing_open()
