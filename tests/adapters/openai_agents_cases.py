"""Cases that together come through every call that OpenAI agents' adapter makes of a session."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import RunConfig, RunHooks

from dig import Hold
from dig.detectors import standard
from dig.runtime.host import Setup

from .framework_cases import Case
from .framework_gates import Hanging, Usher, behind
from .harness import Scenario, Script
from .openai_agents_asked import (
    SCENARIOS,
    alone,
    chain,
    going_round,
    tool_and_handoff,
    tools,
    with_tools,
)
from .openai_agents_teams import agent, ask, at_once, calls, says, scenario, stream
from .test_openai_agents_healing import never_again, twice
from .test_openai_agents_waiting import dropped as dropped_and_asking
from .test_openai_agents_waiting import in_a_tool

PLAIN = [
    "chain-ask", "chain-stream", "tool_and_handoff-ask", "raising-ask", "in_code-stream",
    "guarded-ask", "approved-approve", "alone-talk", "dropped-ask", "failing-ask",
]  # fmt: skip


OBSERVED = ["chain-at_once", "failing-stream", "tool_and_handoff-ask"]


class KeepingQuestions(Hanging):
    """A gate that keeps what agents ask each other, and never decides."""

    def hold(self, monitored: Any, event: Any) -> Hold | None:
        return Hold(60.0) if event.type == "message" else None


def watching() -> Setup:
    return Setup(detectors=standard)


def unheard(script: Script) -> Any:
    """An answer goes back, and whoever is asked again says the same."""
    both = calls("transfer_to_b", "transfer_to_c")
    handoffs = [agent(script, name, says(f"{name} done")) for name in "bc"]
    return agent(script, "a", both, handoffs=handoffs)


async def ask_twice(team: Any) -> Any:
    return [await ask(team, "One?"), await ask(team, "Two?")]


async def ask_in_time(team: Any) -> Any:
    async with asyncio.timeout(20):
        return await ask(team)


def raising_in(name: str) -> Scenario:
    """A hook of the caller's own raises, or its filter."""

    async def broken(*args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        raise LookupError(f"no {name} today")

    async def drive(team: Any) -> Any:
        if name == "filter":
            return await ask(team, run_config=RunConfig(call_model_input_filter=broken))
        hooks = RunHooks()
        setattr(hooks, name, broken)
        return await ask(team, hooks=hooks)

    return scenario(tool_and_handoff, drive, name)


THEIR_OWN = [
    raising_in(name)
    for name in ("on_agent_start", "on_llm_end", "on_tool_end", "on_handoff", "filter")
]
"""What a caller hands to the SDK is called by way of the adapter, and what it raises goes on."""

CASES = [
    *(Case(one, watching) for one in SCENARIOS if one.name in PLAIN),
    *(Case(one, mode="observe") for one in SCENARIOS if one.name in OBSERVED),
    Case(scenario(chain, ask_twice)),
    Case(scenario(tool_and_handoff, at_once)),
    Case(scenario(unheard)),
    Case(scenario(never_again)),
    Case(scenario(dropped_and_asking)),
    Case(scenario(in_a_tool)),
    Case(scenario(going_round)),
    Case(scenario(going_round, stream)),
    Case(scenario(twice), options={"same_work": True}),
    Case(scenario(with_tools), options={"tools": True}),
    Case(scenario(chain), behind(Usher())),
    Case(scenario(chain), behind(Usher("Welcome."))),
    Case(scenario(chain, stream), behind(Usher("Welcome."))),
    Case(scenario(chain), behind(Usher()), lost=("session.wait_until_released", 1)),
    Case(scenario(alone, ask_in_time), behind(Hanging())),
    Case(scenario(tools, ask_in_time), behind(KeepingQuestions())),
]
