"""OpenAI agents, wrapped: a run that waits for an approval is neither judged nor healed."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("agents.testing", reason="not installed: pip install .[dev,openai-agents]")


from .harness import Script, play
from .openai_agents_asked import approve
from .openai_agents_teams import (
    Watched,
    agent,
    as_tool,
    ask,
    calls,
    in_the_background,
    says,
    scenario,
    stream,
    tool,
)

MODES = pytest.mark.parametrize("mode", ["observe", "heal"])
DRIVES = pytest.mark.parametrize("drive", [ask, stream, approve])


def paying(script: Script) -> Any:
    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        script.log.append(("pay", str(amount), ""))
        return f"paid {amount}"

    return pay


def payer(script: Script, name: str) -> Any:
    return agent(script, name, calls("pay", amount=3), says("billed"), tools=[paying(script)])


def must_be_as_bare(build: Any, drive: Any, mode: Any) -> None:
    """Nothing is raised, bounced or run that is not without a monitor."""
    watched = Watched(mode)
    bare, mine = play(scenario(build, drive)), play(scenario(build, drive), watched)
    assert mine == bare
    assert watched.patterns == [] and watched.healed() == []
    assert "downgraded" not in watched.incidents()
    assert watched.leaves_nothing_open()


def beside(script: Script) -> Any:
    """Two agents are asked at once, and one of them needs an approval."""
    tools = [as_tool(payer(script, "b")), as_tool(agent(script, "c", says("c done")))]
    asks = [*calls("b", input="x")(None, 1), *calls("c", input="y")(None, 1)]
    return agent(script, "a", lambda call, n: asks, says("done"), tools=tools)


@MODES
@DRIVES
def test_an_agent_that_waits_for_an_approval_beside_others_is_no_early_answer(
    drive: Any, mode: Any
) -> None:
    """The run stops with an answer of one agent that nobody has looked at, and is resumed."""
    must_be_as_bare(beside, drive, mode)


def dropped(script: Script) -> Any:
    """Triage hands over to two, the SDK carries out one, and that needs an approval."""
    both = calls("transfer_to_billing", "transfer_to_shipping")
    handoffs = [payer(script, "billing"), agent(script, "shipping", says("shipped"))]
    return agent(script, "triage", both, handoffs=handoffs)


@MODES
@DRIVES
def test_an_approval_is_no_early_answer_where_a_handoff_was_dropped(drive: Any, mode: Any) -> None:
    """Nobody is run once more while a person is waited for, nor judged for it."""
    must_be_as_bare(dropped, drive, mode)


def in_background(script: Script) -> Any:
    """A tool has an agent work in the background, while another tool needs an approval."""
    begin, _ = in_the_background(script)
    tools = [begin, paying(script)]
    return agent(
        script, "a", calls("begin", text="x"), calls("pay", amount=3), says("done"), tools=tools
    )


@MODES
def test_an_approval_beside_work_in_the_background_runs_nothing(mode: Any) -> None:
    """The tool waits for its approval, whatever is open, and nobody is asked again."""
    watched = Watched(mode)
    asked = scenario(in_background, ask)
    bare, mine = play(asked), play(asked, watched)
    assert mine.returned == bare.returned and mine.per_agent()["a"] == bare.per_agent()["a"]
    assert "pay" not in mine.per_agent() and "reroute" not in watched.healed()
