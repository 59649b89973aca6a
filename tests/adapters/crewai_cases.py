"""CrewAI: what `test_conformance` has to know, and cases for all of its adapter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import crewai_teams as teams  # first: it switches off what CrewAI sends

# isort: split
from crewai import Crew
from crewai.flow import Flow

from dig.adapters import crewai as adapter
from dig.detectors import standard
from dig.runtime.setup import Setup

from .conformance import Framework, Refused
from .crewai_teams import SCENARIOS, Watched, scenario
from .framework_cases import Case, Cases
from .framework_gates import behind, usher
from .framework_watch import limited
from .harness import Script
from .test_crewai import FAILING, early, spending, twice

PLAIN = [
    "chain-kickoff", "delegating-kickoff", "hierarchy-akickoff", "failing-kickoff",
    "raising-akickoff", "alone-ask", "alone-ask_async", "guarded-akickoff",
]  # fmt: skip


def watching() -> Setup:
    return Setup(detectors=standard)


CASES = [
    *(Case(one, watching) for one in SCENARIOS if one.name in PLAIN),
    *(Case(one, mode="observe") for one in SCENARIOS if one.name in ("chain-akickoff",)),
    Case(scenario(teams.conditional), watching),
    Case(scenario(teams.chain, teams.for_each), watching),
    Case(scenario(early)),
    *(Case(scenario(spending), limited(turns)) for turns in (1, 3)),
    *(Case(scenario(teams.chain), limited(turns)) for turns in (1, 2)),
    *(Case(scenario(teams.chain, drive), limited(1)) for drive in (teams.kickoff, teams.akickoff)),
    Case(scenario(spending), limited(tokens=300)),
    Case(scenario(twice)),
    Case(scenario(teams.delegating), behind(usher("Welcome.", after_s=0.0))),
]
FAULTS = Cases(adapter, Watched, CASES)


async def in_docs(lines: Sequence[Any]) -> int:
    names: dict[str, Any] = {"crew": teams.chain(Script())}
    await teams.on_thread(lambda: exec(lines[0], names))
    assert names["result"].raw == "c done"
    return 1


FRAMEWORKS = [
    Framework(
        "crewai", Watched, teams.ITS_OWN, package="crewai", scenarios=SCENARIOS,
        healing=watching(),
        asking=[scenario(twice)], told="'answer': 'done twice'",
        faults=FAULTS, at_least=3, fragile=PLAIN, finding=watching(),
        broken_in=[*(one for one in SCENARIOS if one.name in PLAIN), scenario(early)],
        tapped=[scenario(teams.hierarchy), scenario(teams.alone, teams.ask)],
        refused=[
            Refused(lambda: Flow(), "is a Flow.*wrap the crews and agents"),
            Refused(lambda: teams.task("x"), "Task is no Crew and no Agent"),
            Refused(lambda: teams.chain(Script()), "cannot reroute", {"require": {"reroute"}}),
        ],
        lacks=(Crew, "_create_manager_agent", "Crew has no _create_manager_agent"),
        failing=FAILING,
        example=(("LOOP", "ET"), (".*", ".*", ".*", ".*")),
        docs=in_docs,
    )
]  # fmt: skip
