"""A2A: what `test_conformance` has to know, and cases for all of its adapter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from a2a.client import Client

import dig
from dig.adapters import a2a as adapter
from dig.detectors import standard
from dig.runtime.setup import Setup

from . import a2a_teams as teams
from .a2a_teams import SCENARIOS, TEAMS, Watched, scenario
from .conformance import Framework, Refused, Waiting
from .framework_cases import Case, Cases
from .framework_gates import NEVER, answers, behind, questions, usher
from .framework_watch import limited
from .harness import Script
from .test_a2a import FAILING, ask_and_wait, early, slow

EARLY = scenario("early", ask_and_wait, a=early, b=slow)
AT_ONCE = scenario("at_once", **TEAMS["at_once"])
ALONE = scenario("alone", **TEAMS["alone"])
PAYING = [one for one in SCENARIOS if one.name.startswith("paying")]
PLAIN = [
    "alone-ask_first-both", "chain-ask_first-both", "task-ask_first-client-stream",
    "task-ask_first-server-stream", "failing-ask_first-server", "passing-ask_first-both",
]  # fmt: skip


def watching() -> Setup:
    return Setup(detectors=standard)


CASES = [
    *(Case(one, watching) for one in SCENARIOS if one.name in PLAIN),
    *(Case(one) for one in PAYING),
    Case(EARLY),
    Case(AT_ONCE, limited(1)),
    Case(scenario("chain", watch="client", **TEAMS["chain"]), limited(1)),
    Case(AT_ONCE, options={}, mode="observe"),
    Case(scenario("chain", **TEAMS["chain"]), behind(usher("Welcome."))),
    Case(scenario("alone", teams.ask_in_time, streaming=True, **TEAMS["alone"]),
         behind(usher(keeps=answers, after_s=NEVER))),
    Case(scenario("chain", teams.ask_in_time, streaming=True, **TEAMS["chain"]),
         behind(usher(keeps=questions, after_s=NEVER))),
]  # fmt: skip
FAULTS = Cases(adapter, Watched, CASES)


async def in_docs(lines: Sequence[Any]) -> int:
    made = teams.team(Script(), "client", a=teams.says("x"))
    names: dict[str, Any] = {"handler": made.handlers["a"], "writer": made.clients["a"]}
    names["request"] = teams.request("What now?")
    await eval(lines[0], names)
    exec(lines[1], names)
    assert await teams.words(made.clients["a"], "?") == "x"
    dig.unwrap(names["handler"])
    return 2


FRAMEWORKS = [
    Framework(
        "a2a", Watched, package="a2a-sdk", scenarios=SCENARIOS, healing=watching(),
        # Servers that stream to each other are ended in any order, without a monitor, too.
        cancelled=[one.name for one in SCENARIOS if "patiently" in one.name and (
            "chain" not in one.name or ("client" in one.name and "stream" not in one.name))],
        asking=[AT_ONCE], told="done twice",
        faults=FAULTS, at_least=4, fragile=PLAIN, finding=watching(),
        broken_in=[*(one for one in SCENARIOS if one.name in PLAIN), EARLY],
        tapped=SCENARIOS[:1],
        refused=[
            Refused(lambda: [teams.team(Script(), a=teams.says("x"))["a"], 3],
                    "int is no A2A client, executor or request handler"),
            Refused(lambda: [*teams.team(Script(), "client", a=teams.says("x")).values()],
                    "two agents are called 'a'"),
            Refused(lambda: [teams.team(Script(), a=teams.says("x"))["a"]], "cannot bounce",
                    {"require": {"bounce"}}),
        ],
        lacks=(Client, "cancel_task", "Client has no cancel_task"),
        at_once=scenario("chain", teams.ask_at_once, **TEAMS["chain"]), seats=("a", "a#2", "a#3"),
        beside=(AT_ONCE, "b", "c", {}),
        kept=(ALONE, answers),
        waiting=[Waiting(one) for one in PAYING if "go_on" in one.name],
        failing=FAILING, docs=in_docs,
    )
]  # fmt: skip
