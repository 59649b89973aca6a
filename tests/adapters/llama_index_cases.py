"""LlamaIndex: what `test_conformance` has to know, and cases for all of its adapter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from dig.adapters import llama_index as adapter
from dig.detectors import standard
from dig.runtime.setup import Setup

from . import llama_index_teams as teams
from .conformance import Framework, Refused, Waiting
from .framework_cases import Case, Cases
from .framework_gates import NEVER, answers, behind, questions, results, usher
from .framework_watch import limited
from .harness import Script
from .llama_index_teams import SCENARIOS, Watched, scenario
from .test_llama_index import FAILING, early, hand_on, never_again, spending, twice, working_on

PLAIN = [
    "handing-ask", "tools-ask", "with_tools-ask", "failing-ask", "raising-ask", "in_code-ask",
    "thinking-ask", "handing-stream", "handing-few_steps", "handing-talk_again", "approved-approve",
]  # fmt: skip


def watching() -> Setup:
    return Setup(detectors=standard)


CASES = [
    *(Case(one, watching) for one in SCENARIOS if one.name in PLAIN),
    *(Case(one, mode="observe") for one in SCENARIOS if one.name in ("tools-ask", "raising-ask")),
    *(Case(scenario(build)) for build in (early, never_again, working_on)),
    *(Case(scenario(build), limited(turns)) for build in (spending, hand_on) for turns in (1, 3)),
    Case(scenario(spending), limited(tokens=100)),
    Case(scenario(twice), options={"same_work": True}),
    *(
        Case(scenario(build, drive), watching, options={"tools": True})
        for build, drive in ((teams.with_tools, teams.ask), (teams.approved, teams.approve))
    ),
    Case(scenario(teams.with_tools), behind(usher(keeps=results)), options={"tools": True}),
    Case(scenario(teams.handing), behind(usher())),
    Case(scenario(teams.handing), behind(usher("Welcome."))),
    Case(scenario(teams.alone, teams.ask_in_time), behind(usher(keeps=answers, after_s=NEVER))),
    Case(scenario(teams.tools, teams.ask_in_time), behind(usher(keeps=questions, after_s=NEVER))),
]
FAULTS = Cases(adapter, Watched, CASES)


class Plain(Workflow):  # type: ignore[misc]
    @step  # type: ignore[untyped-decorator]
    async def work(self, event: StartEvent) -> StopEvent:
        return StopEvent(result="done")


async def in_docs(lines: Sequence[Any]) -> int:
    script = Script()
    names: dict[str, Any] = {
        "AgentWorkflow": AgentWorkflow,
        "writer": teams.agent(script, "writer", teams.hands("editor")),
        "editor": teams.agent(script, "editor", teams.says("all done")),
    }
    await eval(lines[0], names)
    assert str(names["result"]) == "all done"
    return 1


FRAMEWORKS = [
    Framework(
        "llama_index", Watched, package="llama-index-core", scenarios=SCENARIOS,
        adds_no_step=True, cancelled=(
            "handing-ask", "tools-ask", "with_tools-ask", "handing-stream", "in_code-ask",
            "thinking-ask", "approved-approve", "handing-talk",
        ),
        marks=teams.MARKS, healing=watching(),
        asking=[scenario(twice)], told="'answer': 'done twice'",
        faults=FAULTS, at_least=4, fragile=PLAIN, finding=watching(),
        broken_in=[*(one for one in SCENARIOS if one.name in PLAIN), scenario(early)],
        tapped=SCENARIOS[:1],
        refused=[
            Refused(Plain, "Plain is no AgentWorkflow and no agent of LlamaIndex; the steps"),
            Refused(lambda: [Plain()], "the steps of a plain Workflow are no agents"),
            Refused(
                lambda: [teams.alone(Script()), teams.alone(Script())], "two agents are called 'a'"
            ),
            Refused(lambda: teams.alone(Script()), "cannot reroute", {"require": {"reroute"}}),
        ],
        lacks=(AgentWorkflow, "_call_tool", "AgentWorkflow has no _call_tool"),
        at_once=scenario(teams.tools, teams.at_once), seats=("a", "a#2", "a#3"),
        beside=(scenario(teams.tools), "b", "c", {}),
        kept=(scenario(teams.alone), answers), held=(scenario(teams.handing), answers),
        waiting=[Waiting(scenario(teams.approved, teams.approve))],
        failing=FAILING,
        example=(("LOOP", "ET"), (".*", ".*", ".*", ".*")),
        docs=in_docs,
    )
]  # fmt: skip
