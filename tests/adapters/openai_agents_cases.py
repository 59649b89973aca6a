"""OpenAI agents: what `test_conformance` has to know, and cases for all of their adapter."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import getmembers, isfunction
from typing import Any

from agents import Agent, RunHooks, Usage
from agents.realtime import RealtimeAgent
from agents.run import AgentRunner
from agents.testing import assistant_message, function_call

from dig.adapters import openai_agents as adapter
from dig.adapters.openai_agents.runner import MonitoredHooks, MonitoredRunner
from dig.detectors import standard
from dig.runtime.setup import Setup

from . import openai_agents_teams as teams
from .conformance import Framework, Refused
from .framework_cases import Case, Cases
from .framework_gates import NEVER, answers, behind, questions, results, usher
from .framework_signatures import Pair
from .framework_watch import limited
from .harness import Script
from .openai_agents_teams import SCENARIOS, Watched, scenario
from .test_openai_agents import crowded, never_again, ping_pong, twice, two_at_once
from .test_openai_agents_budget import scripted
from .test_openai_agents_errors import FAILING
from .test_openai_agents_waiting import dropped as dropped_and_asking
from .test_openai_agents_waiting import in_a_tool

PLAIN = [
    "chain-ask", "chain-stream", "tool_and_handoff-ask", "raising-ask", "in_code-stream",
    "guarded-ask", "approved-approve", "alone-talk", "dropped-ask", "failing-ask",
]  # fmt: skip


OBSERVED = ["chain-at_once", "failing-stream", "tool_and_handoff-ask"]


def watching() -> Setup:
    return Setup(detectors=standard)


def unheard(script: Script) -> Any:
    """An answer goes back, and whoever is asked again says the same."""
    both = teams.calls("transfer_to_b", "transfer_to_c")
    return teams.agent(script, "a", both, handoffs=teams.done(script, *"bc"))


async def ask_twice(team: Any) -> Any:
    return [await teams.ask(team, "One?"), await teams.ask(team, "Two?")]


def spending(script: Script) -> Any:
    """An agent that asks another one again and again, at 100 tokens a call of a model."""
    usage = Usage(requests=1, input_tokens=90, output_tokens=10, total_tokens=100)

    def act(call: Any) -> Any:
        if "used up" in str(call.input) or len(call.input) > 8:
            return [assistant_message("half")]
        return [function_call("ask", {"input": "?"}, call_id=f"c{len(call.input)}")]

    inner = Agent(name="b", model=scripted(lambda call: [assistant_message("x")], usage))
    return Agent(name="a", model=scripted(act, usage), tools=[inner.as_tool("ask", "asks")])


CASES = [
    *(Case(scenario(teams.chain), limited(turns)) for turns in (1, 2)),
    Case(scenario(spending), limited(tokens=300)),
    Case(scenario(teams.going_round), limited(3)),
    Case(scenario(teams.going_round, teams.stream), limited(3)),
    *(Case(one, watching) for one in SCENARIOS if one.name in PLAIN),
    *(Case(one, mode="observe") for one in SCENARIOS if one.name in OBSERVED),
    Case(scenario(teams.chain, ask_twice)),
    Case(scenario(teams.tool_and_handoff, teams.at_once)),
    Case(scenario(unheard)),
    Case(scenario(never_again)),
    Case(scenario(dropped_and_asking)),
    Case(scenario(in_a_tool)),
    Case(scenario(teams.going_round)),
    Case(scenario(teams.going_round, teams.stream)),
    Case(scenario(twice), options={"same_work": True}),
    Case(scenario(teams.with_tools), options={"tools": True}),
    Case(scenario(teams.with_tools), behind(usher(keeps=results)), options={"tools": True}),
    Case(scenario(teams.chain), behind(usher())),
    Case(scenario(teams.chain), behind(usher("Welcome."))),
    Case(scenario(teams.chain, teams.stream), behind(usher("Welcome."))),
    Case(scenario(teams.chain), behind(usher()), lost=("session.wait_until_released", 1)),
    Case(scenario(teams.alone, teams.ask_in_time), behind(usher(keeps=answers, after_s=NEVER))),
    Case(scenario(teams.tools, teams.ask_in_time), behind(usher(keeps=questions, after_s=NEVER))),
]
FAULTS = Cases(adapter, Watched, CASES, asker="turn")


async def in_docs(lines: Sequence[Any]) -> int:
    names: dict[str, Any] = {"agent": teams.chain(Script())}
    await eval(lines[0], names)
    assert names["result"].final_output == "done"
    return 1


def replaced() -> list[Pair]:
    """The methods of the SDK's runner and hooks, and those of what stands in their place."""
    return [
        Pair(getattr(base, name), getattr(stand_in, name))
        for base, stand_in in ((AgentRunner, MonitoredRunner), (RunHooks, MonitoredHooks))
        for name, _ in getmembers(base, isfunction)
        if name in vars(stand_in) and not name.startswith("_")
    ]


FRAMEWORKS = [
    Framework(
        "openai_agents", Watched, package="openai-agents", scenarios=SCENARIOS,
        cancelled=(
            "chain-ask", "tool_and_handoff-ask", "tool_and_handoff-stream", "in_code-ask",
            "alone-talk",
        ),
        marks=teams.CANCELLED, adds_no_step=True, healing=watching(),
        going_round=[scenario(ping_pong, drive) for drive in (teams.ask, teams.stream)],
        unsolved="MaxTurnsExceeded", solved="'answer': 'solved'",
        asking=[scenario(twice, drive) for drive in (teams.ask, teams.stream)],
        told="'answer': 'done twice'", crowded=crowded,
        faults=FAULTS, at_least=35, fragile=PLAIN, finding=watching(),
        broken_in=[
            *(one for one in SCENARIOS if one.name in PLAIN),
            scenario(two_at_once), scenario(ping_pong),
        ],
        unhealed=[(scenario(two_at_once, ask_twice), None)],
        tapped=SCENARIOS[:1], replaced=replaced,
        refused=[
            Refused(
                lambda: RealtimeAgent(name="voice"), "RealtimeAgent is no agent that Runner"
            ),
            Refused(lambda: teams.alone(Script()), "cannot reroute", {"require": {"reroute"}}),
        ],
        lacks=(AgentRunner, "run_streamed", "AgentRunner has no run_streamed"),
        at_once=scenario(teams.chain, teams.at_once), seats=("a", "a#2", "a#3"),
        beside=(scenario(teams.tools), "b", "c", {}),
        kept=(scenario(teams.alone), answers), held=(scenario(teams.alone), answers),
        failing=FAILING,
        example=(
            ("ER", "ET"),
            (
                r"MaxTurnsExceeded: Max turns \(10\) exceeded",
                "Nobody else will: refunds pays it back.", "The bill is mended.",
                "The bill is mended, and your parcel comes on Monday.",
            ),
        ),
        docs=in_docs,
    )
]  # fmt: skip
