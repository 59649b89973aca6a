"""Pydantic AI: what `test_conformance` has to know, and cases for all of its adapter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.agent import WrapperAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.test import TestModel

from dig.adapters import pydantic_ai as adapter
from dig.detectors import standard
from dig.runtime.setup import Setup

from . import pydantic_ai_teams as teams
from .conformance import Framework, Refused
from .framework_cases import Case, Cases
from .framework_gates import NEVER, answers, behind, questions, results, usher
from .framework_watch import limited
from .harness import Script
from .pydantic_ai_teams import SCENARIOS, Watched, scenario
from .test_pydantic_ai import FAILING, early, never_again, spending, twice

PLAIN = [
    "alone-ask", "tools-ask", "with_tools-ask", "failing-ask", "raising-ask", "in_code-ask",
    "structured-ask", "tools-stream", "tools-leave",
]  # fmt: skip


def watching() -> Setup:
    return Setup(detectors=standard)


CASES = [
    *(Case(one, watching) for one in SCENARIOS if one.name in PLAIN),
    *(Case(one, mode="observe") for one in SCENARIOS if one.name in ("tools-ask", "raising-ask")),
    Case(scenario(early)),
    Case(scenario(never_again)),
    *(Case(scenario(spending), limited(turns)) for turns in (1, 3)),
    Case(scenario(spending), limited(tokens=100)),
    Case(scenario(twice), options={"same_work": True}),
    Case(scenario(teams.with_tools), options={"tools": True}),
    Case(scenario(teams.raising), options={"tools": True}),
    Case(scenario(teams.with_tools), behind(usher(keeps=results)), options={"tools": True}),
    Case(scenario(teams.tools), behind(usher())),
    Case(scenario(teams.tools), behind(usher("Welcome."))),
    Case(scenario(teams.alone, teams.ask_in_time), behind(usher(keeps=answers, after_s=NEVER))),
    Case(scenario(teams.tools, teams.ask_in_time), behind(usher(keeps=questions, after_s=NEVER))),
]
FAULTS = Cases(adapter, Watched, CASES)


async def in_docs(lines: Sequence[Any]) -> int:
    names: dict[str, Any] = {"leader": teams.alone(Script())["a"]}
    names["helper"] = Agent(TestModel(), name="helper")
    await eval(lines[0], names)
    assert names["result"].output == "all done"
    return 1


FRAMEWORKS = [
    Framework(
        "pydantic_ai", Watched, package="pydantic-ai-slim", scenarios=SCENARIOS,
        cancelled=(
            "tools-ask-quietly", "with_tools-ask-quietly", "tools-stream-quietly",
            "in_code-ask-quietly", "alone-talk-quietly",
        ),
        marks=teams.CANCELLED, healing=watching(),
        asking=[scenario(twice)], told="'answer': 'done twice'",
        faults=FAULTS, fragile=PLAIN, finding=watching(),
        broken_in=[*(one for one in SCENARIOS if one.name in PLAIN), scenario(early)],
        tapped=SCENARIOS[:1],
        refused=[
            Refused(lambda: [WrapperAgent(teams.alone(Script())["a"])], "is no pydantic_ai.Agent"),
            Refused(
                lambda: [Agent(TestModel()), Agent(TestModel())], "two agents are called 'agent'"
            ),
            Refused(lambda: teams.alone(Script()), "cannot reroute", {"require": {"reroute"}}),
        ],
        lacks=(AbstractCapability, "after_node_run", "AbstractCapability has no after_node_run"),
        at_once=scenario(teams.tools, teams.at_once), seats=("a", "a#2", "a#3"),
        beside=(scenario(teams.tools), "b", "c", {}),
        kept=(scenario(teams.alone), answers), held=(scenario(teams.alone), answers),
        failing=FAILING,
        example=(("LOOP", "ET"), (".*", ".*", ".*", ".*")),
        docs=in_docs,
    )
]  # fmt: skip
