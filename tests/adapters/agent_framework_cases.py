"""Cases that together come through every call that agent-framework's adapter makes of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from agent_framework import Workflow

from dig import Reroute
from dig.detectors import standard
from dig.runtime.host import Setup

from .agent_framework_asked import SCENARIOS, answer_back, ask, ask_twice, stream, told
from .agent_framework_teams import (
    Parts,
    around,
    asking,
    chain,
    endless,
    ends,
    failing,
    fan,
    half_join,
    passes_on,
    put_out,
    send,
)
from .framework_cases import Case
from .framework_gates import Hanging, Usher, behind
from .harness import Scenario, Script
from .test_agent_framework_healing import half_an_answer, ping_pong, short, silent_branch, twice
from .test_agent_framework_waiting import back_to, kept, lost_and_asking
from .test_gates import Keeper

PLAIN = [
    "fan-ask", "conditional-stream", "several_at_once-ask", "asking-answer_back", "failing-ask",
    "switch-ask", "selection-ask", "turned_down-ask", "typed-ask", "half_join-ask_twice",
    "remembering-drop_and_restore", "fan-drop_and_ask", "asking_both-answer_both", "talking-ask",
]  # fmt: skip


def team(build: Callable[[Script], Workflow], drive: Any = ask) -> Scenario:
    return Scenario(f"{build.__name__}-{drive.__name__}", build, drive)


def inside(build: Callable[[Script], Workflow], drive: Any = ask, **more: Any) -> Scenario:
    """The workflow is an executor of another one, which is wrapped."""

    def within(script: Script) -> Workflow:
        return around(script, build(script), **more)

    return Scenario(f"inside-{build.__name__}-{drive.__name__}", within, drive)


def deep(script: Script) -> Workflow:
    """A workflow in a workflow, to be put into a third one."""
    return around(script, chain(script))


INSIDE = [
    *map(inside, (chain, deep, fan, failing, endless)),
    inside(asking, answer_back, propagate_request=True),
    inside(chain, ask_twice),
    inside(fan, stream, allow_direct_output=True),
]
"""Workflows with others in them, in which nothing can be healed."""


async def ask_in_time(workflow: Workflow) -> Any:
    async with asyncio.timeout(20):
        return await ask(workflow)


async def last_text(workflow: Workflow) -> Any:
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


def two_workers(script: Script) -> Workflow:
    p = Parts(script, a=send("go", "b"), b=ends, c=put_out("c did it"), d=passes_on)
    built = p.build("a").add_edge(p.a, p.b)
    return built.add_edge(p.a, p.c).add_edge(p.b, p.d).build()


def same_again(script: Script) -> Workflow:
    """The same thing is sent to one executor twice."""
    p = Parts(script, a=send("Count", "b", "b"), b=put_out("three"))
    return p.build("a").add_edge(p.a, p.b).build()


def asking_beside(script: Script) -> Workflow:
    """One branch asks somebody outside, while a join has what the other one has said."""

    async def asks(given: Any, number: int, ctx: Any) -> None:
        if number == 1:
            await ctx.request_info("What is your name?", str, request_id="name")
        else:
            await ctx.send_message(f"Hello {given}")

    p = Parts(script, a=send("go"), b=send("b's"), c=asks, j=ends)
    built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
    return built.add_fan_in_edges([p.b, p.c], p.j).build()


def failing_beside(script: Script) -> Workflow:
    """What somebody has sent stands before a condition when one beside him fails."""

    async def fails(given: Any, number: int, ctx: Any) -> None:
        await asyncio.sleep(5)
        raise ValueError("no")

    p = Parts(script, a=send("go"), b=fails, c=send("c's"), d=ends)
    built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
    return built.add_edge(p.c, p.d, condition=bool).build()


def failing_late(script: Script) -> Workflow:
    """What somebody has sent stands before a condition when he fails."""

    async def fails(given: Any, number: int, ctx: Any) -> None:
        if number == 2:
            raise ValueError("no")
        await ctx.send_message(given)

    p = Parts(script, a=send("go"), b=send("b's"), c=send("c's"), d=fails, e=ends)
    built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
    built = built.add_edge(p.b, p.d).add_edge(p.c, p.d)
    return built.add_edge(p.d, p.e, condition=bool).build()


def asking_and_talking(script: Script) -> Workflow:
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


async def answer_one_by_one(team: Workflow) -> Any:
    return [await ask(team), *[
        told(await team.run(responses={one: f"the {one}"})) for one in ("name", "place")
    ]]  # fmt: skip


def raises(data: Any) -> bool:
    raise ValueError("no")


def bad_condition(script: Script) -> Workflow:
    p = Parts(script, a=send("go"), b=ends)
    return p.build("a").add_edge(p.a, p.b, condition=raises).build()


CASES = [
    Case(team(asking_and_talking, answer_one_by_one)),
    Case(team(asking_and_talking)),
    Case(team(bad_condition)),
    *(Case(one, options={"inside": True}) for one in INSIDE),
    Case(inside(chain), behind(Usher("Welcome.")), {"inside": True}),
    *(Case(one, watching) for one in SCENARIOS if one.name in PLAIN),
    Case(team(ping_pong, last_text)),
    Case(team(silent_branch)),
    Case(team(half_an_answer)),
    Case(team(short)),
    Case(team(lost_and_asking)),
    Case(team(kept, back_to(2))),
    Case(team(twice), options={"same_work": True}),
    Case(team(same_again), options={"same_work": True}),
    Case(team(asking_beside)),
    Case(team(failing_beside)),
    Case(team(failing_late)),
    Case(team(two_workers), elsewhere),
    Case(team(chain), behind(Usher("Welcome.")), {"annotate": lambda data, notes: data}),
    Case(team(chain, ask_twice), behind(Usher())),
    Case(team(chain, ask_twice), lost=("turn.emit", 1)),
    Case(team(fan), behind(Usher())),
    Case(team(half_join, ask_twice), keeping("b's")),
    Case(team(chain, ask_in_time), behind(Hanging())),
]
