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
from dig.runtime.host import Setup

from . import agent_framework_teams as teams
from .agent_framework_teams import (
    INSIDE,
    SCENARIOS,
    Parts,
    Watched,
    ask,
    ask_twice,
    asks,
    chain,
    ends,
    fan,
    half_join,
    inside,
    joined,
    send,
    team,
    told,
    two_workers,
)
from .conformance import Framework, Refused, Waiting
from .framework_cases import Case, Cases
from .framework_faults import PARTS
from .framework_gates import NEVER, Keeper, answers, behind, of, usher
from .harness import Script
from .test_agent_framework import (
    BACK,
    FAILING,
    MANY,
    WatchedTogether,
    all_at_once,
    approved,
    crowded,
    half_an_answer,
    join,
    kept,
    lost_and_asking,
    many,
    one_by_one,
    ping_pong,
    raising_edge,
    same_again,
    short,
    silent_branch,
    slow,
    twice,
)
from .test_agent_framework_interface import Inside

PLAIN = [
    "fan-ask", "conditional-stream", "several_at_once-ask", "asking-answer_back", "failing-ask",
    "switch-ask", "selection-ask", "turned_down-ask", "typed-ask", "half_join-ask_twice",
    "remembering-drop_and_restore", "fan-drop_and_ask", "asking_both-answer_both", "talking-ask",
]  # fmt: skip


async def ask_in_time(workflow: af.Workflow) -> Any:
    async with asyncio.timeout(20):
        return await ask(workflow)


async def last_text(workflow: af.Workflow) -> Any:
    return (await workflow.run("?")).get_outputs()[-1].text


def watching() -> Setup:
    return Setup(detectors=standard, healers=dict)


def keeping(*kept: str) -> Callable[[], Setup]:
    """Makes a setup in which nothing but a gate intervenes, which keeps some payloads."""
    return lambda: Setup(detectors=standard, healers=dict, gates=[Keeper(*kept, after_s=0.0)])


def elsewhere() -> Setup:
    """A gate that has `c` do what was sent to `b`."""
    gate = Keeper("go", after_s=0.0, wishes=[partial(Reroute, note="c has time", to=("c",))])
    return Setup(detectors=standard, healers=dict, gates=[gate])


def asking_beside(script: Script) -> af.Workflow:
    """One branch asks somebody outside, while a join has what the other one has said."""

    return joined(script, send("b's"), asks("name"))


def failing_beside(script: Script) -> af.Workflow:
    """What somebody has sent stands before a condition when one beside him fails."""

    async def late(given: Any, number: int, ctx: Any) -> None:
        await asyncio.sleep(5)
        raise ValueError("no")

    p = Parts(script, a=send("go"), b=late, c=send("c's"), d=ends)
    built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
    return built.add_edge(p.c, p.d, condition=bool).build()


def failing_late(script: Script) -> af.Workflow:
    """What somebody has sent stands before a condition when he fails."""

    async def fails(given: Any, number: int, ctx: Any) -> None:
        if number == 2:
            raise ValueError("no")
        await ctx.send_message(given)

    p = Parts(script, a=send("go"), b=send("b's"), c=send("c's"), d=fails, e=ends)
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

    p = Parts(script, a=asks, b=answers)
    return p.build("a").add_edge(p.a, p.b).add_edge(p.b, p.a).build()


async def answer_one_by_one(team: af.Workflow) -> Any:
    return [await ask(team), *[
        told(await team.run(responses={one: f"the {one}"})) for one in ("name", "place")
    ]]  # fmt: skip


CASES = [
    Case(team(asking_and_talking, answer_one_by_one)),
    Case(team(asking_and_talking)),
    Case(team(raising_edge)),
    *(Case(one, options={"inside": True}) for one in INSIDE),
    Case(inside(chain), behind(usher("Welcome.")), {"inside": True}),
    *(Case(one, watching) for one in SCENARIOS if one.name in PLAIN),
    Case(team(ping_pong, last_text)),
    Case(team(silent_branch)),
    Case(team(half_an_answer)),
    Case(team(short)),
    Case(team(lost_and_asking)),
    Case(team(kept, BACK[2])),
    Case(team(twice), options={"same_work": True}),
    Case(team(same_again), options={"same_work": True}),
    Case(team(asking_beside)),
    Case(team(failing_beside)),
    Case(team(failing_late)),
    Case(team(two_workers), elsewhere),
    Case(team(chain), behind(usher("Welcome.")), {"annotate": lambda data, notes: data}),
    Case(team(chain, ask_twice), behind(usher())),
    Case(team(chain, ask_twice), lost=("turn.emit", 1)),
    Case(team(fan), behind(usher())),
    Case(team(half_join, ask_twice), keeping("b's")),
    Case(team(chain, ask_in_time), behind(usher(keeps=answers, after_s=NEVER))),
]


async def in_docs(lines: Sequence[Any]) -> int:
    names: dict[str, Any] = {"workflow": chain(Script())}
    await eval(lines[0], names)
    assert names["result"].get_outputs() == ["to c done"]
    return 1


async def texts(workflow: af.Workflow) -> Any:
    return [output.text for output in (await workflow.run("?")).get_outputs()]


FRAGILE = (
    "fan-ask", "conditional-stream", "several_at_once-ask", "asking-answer_back", "failing-ask",
    "half_join-ask",
)  # fmt: skip
FORTY = one_by_one(*(f"r{number}" for number in range(MANY)))
FRAMEWORKS = [
    Framework(
        "agent_framework", Watched, package="agent-framework-core", scenarios=SCENARIOS,
        cancelled=("fan-ask", "several_at_once-ask", "asking-answer_back", "talking-stream"),
        adds_no_step=True, may_be_healed=True,
        going_round=[team(ping_pong, texts)],
        unsolved="WorkflowConvergenceException", solved="I do it",
        asking=[team(twice)], told="['once']", crowded=crowded, in_a_crowd=WatchedTogether,
        faults=Cases(adapter, Watched, CASES, most=6, graph="graph", caller="turn"), at_least=65,
        fragile=FRAGILE, parts=(*PARTS, "annotate", "handoff"),
        finding=Setup(detectors=standard, healers=dict),
        unhealed=[(team(ping_pong), None), (team(two_workers, ask_twice), elsewhere())],
        unheld=[team(chain, ask_twice)],
        tapped=SCENARIOS,
        refused=[
            Refused(
                lambda: af.Agent(teams.Model(Script(), "ann", lambda texts, number: "")),
                "Agent is no workflow; wrap the Workflow that",
            ),
            Refused(
                lambda: chain(Script()), "a workflow cannot redeliver; it can: annotate",
                {"require": {"redeliver"}},
            ),
            Refused(
                lambda: Parts(Script(), __end__=ends).line(), "an executor is called __end__"
            ),
        ],
        lacks=(RunnerImpl, "run_until_convergence", "RunnerImpl has no run_until"),
        kept=(team(chain), of("to c done")), held=(team(fan), of("go", "b's")),
        waiting=[
            Waiting(team(join, one_by_one("b"))),
            Waiting(team(teams.asking_both, one_by_one("b", "c")), 2),
            Waiting(team(approved), answers=0),
            *(Waiting(team(kept, d), n) for d, n in zip(BACK, (3, 3, 2, 1, 2, 1), strict=True)),
            *(Waiting(team(many, drive), MANY) for drive in (all_at_once, FORTY)),
            Waiting(
                team(slow, one_by_one("b")), overdue_s=800,
                limits=Limits(dl_window_s=5, activation_limit_s=20),
            ),
        ],
        failing=FAILING,
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
        "agent_framework_inside", Inside, scenarios=INSIDE, cancelled=[*map(str, INSIDE[:2])]
    ),
]  # fmt: skip
