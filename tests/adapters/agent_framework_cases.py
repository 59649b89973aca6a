"""agent-framework: what `test_conformance` has to know, and cases for all of its adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import agent_framework as af
from agent_framework._workflows._runner import RunnerImpl

from dig import Limits, Reroute
from dig.adapters import agent_framework as adapter
from dig.detectors import standard
from dig.runtime.setup import Setup

from . import agent_framework_teams as teams
from . import test_agent_framework as own
from .agent_framework_teams import SCENARIOS, Watched, ends, inside, joined, send, team
from .conformance import Framework, Refused, Waiting
from .framework_cases import Case, Cases
from .framework_faults import PARTS
from .framework_gates import NEVER, Keeper, answers, behind, of, usher
from .framework_watch import limited
from .harness import Script
from .test_agent_framework_budget import loop
from .test_agent_framework_interface import Inside

PLAIN = [
    "fan-ask", "conditional-stream", "several_at_once-ask", "asking-answer_back", "failing-ask",
    "switch-ask", "selection-ask", "turned_down-ask", "typed-ask", "half_join-ask_twice",
    "remembering-drop_and_restore", "fan-drop_and_ask", "asking_both-answer_both", "talking-ask",
]  # fmt: skip


async def ask_in_time(workflow: af.Workflow) -> Any:
    async with asyncio.timeout(20):
        return await teams.ask(workflow)


async def last_text(workflow: af.Workflow) -> Any:
    return (await workflow.run("?")).get_outputs()[-1].text


def watching() -> Setup:
    return Setup(detectors=standard, healers=dict)


def keeping(*kept: str) -> Callable[[], Setup]:
    """Makes a setup in which nothing but a gate intervenes, which keeps some payloads."""
    return behind(Keeper(*kept, after_s=0.0))


def elsewhere() -> Setup:
    """A gate that has `c` do what was sent to `b`."""
    gate = Keeper("go", after_s=0.0, wishes=[partial(Reroute, note="c has time", to=("c",))])
    return Setup(detectors=standard, healers=dict, gates=[gate])


def asking_beside(script: Script) -> af.Workflow:
    """One branch asks somebody outside, while a join has what the other one has said."""

    return joined(script, send("b's"), teams.asks("name"))


def failing_beside(script: Script) -> af.Workflow:
    """What somebody has sent stands before a condition when one beside him fails."""

    async def late(given: Any, number: int, ctx: Any) -> None:
        await asyncio.sleep(5)
        raise ValueError("no")

    p = teams.Parts(script, a=send("go"), b=late, c=send("c's"), d=ends)
    built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
    return built.add_edge(p.c, p.d, condition=bool).build()


def failing_late(script: Script) -> af.Workflow:
    """What somebody has sent stands before a condition when he fails."""

    async def fails(given: Any, number: int, ctx: Any) -> None:
        if number == 2:
            raise ValueError("no")
        await ctx.send_message(given)

    p = teams.Parts(script, a=send("go"), b=send("b's"), c=send("c's"), d=fails, e=ends)
    built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
    built = built.add_edge(p.b, p.d).add_edge(p.c, p.d)
    return built.add_edge(p.d, p.e, condition=bool).build()


def asking_and_talking(script: Script) -> af.Workflow:
    """Somebody asks two things, sends something beside, and hears from others while it waits."""

    async def asks(given: Any, number: int, ctx: Any) -> None:
        if number == 1:
            for one in ("name", "place"):
                await ctx.request_info(f"What is your {one}?", str, request_id=one)
            await ctx.send_message("b's")

    def answers(given: Any, number: int, ctx: Any) -> Any:
        return ctx.send_message("c's")

    p = teams.Parts(script, a=asks, b=answers)
    return p.build("a").add_edge(p.a, p.b).add_edge(p.b, p.a).build()


def passed_round(script: Script) -> af.Workflow:
    """Two send to each other for ever; the first gives an output when the budget is used up."""
    return loop("half")


async def answer_one_by_one(team: af.Workflow) -> Any:
    return [await teams.ask(team), *[
        teams.told(await team.run(responses={one: f"the {one}"})) for one in ("name", "place")
    ]]  # fmt: skip


CASES = [
    Case(team(asking_and_talking, answer_one_by_one)),
    Case(team(asking_and_talking)),
    *(Case(team(passed_round), limited(turns)) for turns in (3, 4)),
    Case(team(own.raising_edge)),
    *(Case(one, options={"inside": True}) for one in teams.INSIDE),
    Case(inside(teams.chain), behind(usher("Welcome.")), {"inside": True}),
    *(Case(one, watching) for one in SCENARIOS if one.name in PLAIN),
    Case(team(own.ping_pong, last_text)),
    Case(team(own.silent_branch)),
    Case(team(own.half_an_answer)),
    Case(team(own.short)),
    Case(team(own.lost_and_asking)),
    Case(team(own.kept, own.BACK[2])),
    Case(team(own.twice), options={"same_work": True}),
    Case(team(own.same_again), options={"same_work": True}),
    Case(team(asking_beside)),
    Case(team(failing_beside)),
    Case(team(failing_late)),
    Case(team(teams.two_workers), elsewhere),
    Case(team(teams.chain), behind(usher("Welcome.")), {"annotate": lambda data, notes: data}),
    Case(team(teams.chain, teams.ask_twice), behind(usher())),
    Case(team(teams.chain, teams.ask_twice), lost=("turn.emit", 1)),
    Case(team(teams.fan), behind(usher())),
    Case(team(teams.half_join, teams.ask_twice), keeping("b's")),
    Case(team(teams.chain, ask_in_time), behind(usher(keeps=answers, after_s=NEVER))),
]


async def in_docs(lines: Sequence[Any]) -> int:
    names: dict[str, Any] = {"workflow": teams.chain(Script())}
    await eval(lines[0], names)
    assert names["result"].get_outputs() == ["to c done"]
    return 1


async def texts(workflow: af.Workflow) -> Any:
    return [output.text for output in (await workflow.run("?")).get_outputs()]


FRAGILE = (
    "fan-ask", "conditional-stream", "several_at_once-ask", "asking-answer_back", "failing-ask",
    "half_join-ask",
)  # fmt: skip
WAITS = (3, 3, 2, 1, 2, 1)
"""How often who goes back to an earlier place is waited for."""

FORTY = own.one_by_one(*(f"r{number}" for number in range(own.MANY)))
FRAMEWORKS = [
    Framework(
        "agent_framework", Watched, package="agent-framework-core", scenarios=SCENARIOS,
        cancelled=("fan-ask", "several_at_once-ask", "asking-answer_back", "talking-stream"),
        adds_no_step=True, may_be_healed=True,
        going_round=[team(own.ping_pong, texts)],
        unsolved="WorkflowConvergenceException", solved="I do it",
        asking=[team(own.twice)], told="['once']",
        crowded=own.crowded, in_a_crowd=own.WatchedTogether,
        faults=Cases(adapter, Watched, CASES, most=6, graph="graph", caller="turn"), at_least=65,
        fragile=FRAGILE, parts=(*PARTS, "annotate", "handoff"),
        finding=Setup(detectors=standard, healers=dict),
        unhealed=[
            (team(own.ping_pong), None),
            (team(teams.two_workers, teams.ask_twice), elsewhere()),
        ],
        unheld=[team(teams.chain, teams.ask_twice)],
        tapped=SCENARIOS,
        refused=[
            Refused(
                lambda: af.Agent(teams.Model(Script(), "ann", lambda texts, number: "")),
                "Agent is no workflow; wrap the Workflow that",
            ),
            Refused(
                lambda: teams.chain(Script()), "a workflow cannot redeliver; it can: annotate",
                {"require": {"redeliver"}},
            ),
            Refused(
                lambda: teams.Parts(Script(), __end__=ends).line(), "an executor is called __end__"
            ),
        ],
        lacks=(RunnerImpl, "run_until_convergence", "RunnerImpl has no run_until"),
        beside=(team(teams.fan), "b", "c", {"annotate": lambda data, notes: f"{data} {notes}"}),
        kept=(team(teams.chain), of("to c done")), held=(team(teams.fan), of("go", "b's")),
        waiting=[
            Waiting(team(own.join, own.one_by_one("b"))),
            Waiting(team(teams.asking_both, own.one_by_one("b", "c")), 2),
            Waiting(team(own.approved), answers=0),
            *(Waiting(team(own.kept, d), n) for d, n in zip(own.BACK, WAITS, strict=True)),
            *(Waiting(team(own.many, drive), own.MANY) for drive in (own.all_at_once, FORTY)),
            Waiting(
                team(own.slow, own.one_by_one("b")), overdue_s=800,
                limits=Limits(dl_window_s=5, activation_limit_s=20),
            ),
        ],
        failing=own.FAILING,
        example=(
            ("ER", "ET"),
            (
                "WorkflowConvergenceException.*", "Nobody else will: we pay it back.", "none",
                ".*it rains on 140 days a year; nothing to complain of.",
            ),
        ),
        docs=in_docs,
    ),
    Framework(
        "agent_framework_inside", Inside, scenarios=teams.INSIDE,
        cancelled=[*map(str, teams.INSIDE[:2])],
    ),
]  # fmt: skip
