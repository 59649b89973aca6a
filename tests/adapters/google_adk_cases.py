"""Google ADK: what `test_conformance` has to know, and cases for all of its adapter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.adk.agents import BaseAgent, SequentialAgent
from google.adk.sessions import InMemorySessionService

from dig.adapters import google_adk as adapter
from dig.detectors import standard
from dig.runtime.setup import Setup

from . import google_adk_teams as teams
from .conformance import Framework, Refused
from .framework_cases import Case, Cases
from .framework_gates import NEVER, answers, behind, questions, usher
from .framework_watch import limited
from .google_adk_teams import SCENARIOS, Watched, scenario
from .harness import Script
from .test_google_adk import (
    FAILING,
    ask_at_most,
    crowded,
    early,
    in_turn,
    never_again,
    ping_pong,
    spending,
    stream_at_most,
    twice,
)

PLAIN = [
    "alone-ask", "tools-ask", "transfers-ask", "sequence-ask", "workflow-ask", "task-ask",
    "failing-ask", "raising-ask", "in_code-ask", "tools-stream", "tools-leave",
]  # fmt: skip


def watching() -> Setup:
    return Setup(detectors=standard)


CASES = [
    *(Case(one, watching) for one in SCENARIOS if one.name in PLAIN),
    *(Case(one, mode="observe") for one in SCENARIOS if one.name in ("tools-ask", "raising-ask")),
    Case(scenario(early)),
    Case(scenario(never_again)),
    *(Case(scenario(build), limited(turns)) for build in (spending, in_turn) for turns in (1, 3)),
    *(Case(scenario(build), limited(tokens=100)) for build in (spending, in_turn)),
    Case(scenario(teams.sequence), limited(2)),
    Case(scenario(twice), options={"same_work": True}),
    Case(scenario(teams.with_tools), options={"tools": True}),
    Case(scenario(teams.raising), options={"tools": True}),
    Case(scenario(teams.tools), behind(usher())),
    Case(scenario(teams.transfers), behind(usher("Welcome."))),
    Case(scenario(teams.alone, teams.ask_in_time), behind(usher(keeps=answers, after_s=NEVER))),
    Case(scenario(teams.tools, teams.ask_in_time), behind(usher(keeps=questions, after_s=NEVER))),
]
FAULTS = Cases(adapter, Watched, CASES)


async def in_docs(lines: Sequence[Any]) -> int:
    root = teams.agent(Script(), "root", teams.says("all done"))
    service = InMemorySessionService()
    session = await service.create_session(app_name="app", user_id="me")
    names: dict[str, Any] = {"root": root, "sessions": service, "session": session}
    await eval(lines[0], names)
    assert names["answer"] == "all done"
    return 1


FRAMEWORKS = [
    Framework(
        "google_adk", Watched, package="google-adk", scenarios=SCENARIOS,
        cancelled=(
            "tools-ask", "transfers-ask", "loop-ask", "workflow-ask", "task-ask",
            "with_tools-ask", "raising_in_line-ask", "tools-stream", "in_code-ask",
            "transfers-talk",
        ),
        marks=teams.OLD_WAYS, adds_no_step=True, healing=watching(),
        going_round=[scenario(ping_pong, drive) for drive in (ask_at_most, stream_at_most)],
        unsolved="LlmCallsLimitExceededError", solved="'solved'",
        asking=[scenario(twice)], told="'done twice'", crowded=crowded,
        faults=FAULTS, fragile=PLAIN, finding=watching(),
        broken_in=[*(one for one in SCENARIOS if one.name in PLAIN), scenario(early)],
        tapped=SCENARIOS[:1],
        refused=[
            Refused(lambda: InMemorySessionService(), "is no agent, workflow, app or runner"),
            Refused(
                lambda: SequentialAgent(
                    name="line", sub_agents=[teams.alone(Script()), teams.alone(Script())]
                ),
                "two agents are called 'a'",
            ),
            Refused(lambda: teams.alone(Script()), "cannot reroute", {"require": {"reroute"}}),
        ],
        lacks=(BaseAgent, "run_async", "BaseAgent has no run_async"),
        at_once=scenario(teams.tools, teams.at_once), seats=("a", "a#2", "a#3"),
        beside=(scenario(teams.tools), "b", "c", {}),
        kept=(scenario(teams.alone), answers), held=(scenario(teams.alone), answers),
        failing=FAILING,
        example=(("LOOP", "ET"), (".*", ".*", ".*", ".*")),
        docs=in_docs,
    )
]  # fmt: skip
