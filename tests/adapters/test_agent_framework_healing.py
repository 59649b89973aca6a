"""Microsoft agent-framework, wrapped: what is found in a workflow, and what healing makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from agent_framework import Workflow, WorkflowBuilder

import dig
from dig.adapters import Attached, Session, WrapPlan
from dig.adapters.agent_framework import CAN, _agents
from dig.adapters.agent_framework.handlers import is_handoff
from dig.adapters.agent_framework.team import WorkflowTeam
from dig.adapters.agent_framework.workflow import WorkflowPatches
from dig.detectors import standard, standard_healers
from dig.detectors.policy import HEAL_ALL
from dig.graph.records import Limits
from dig.runtime.host import Setup

from . import harness
from .agent_framework_teams import (
    Act,
    Parts,
    Watched,
    agents,
    ends,
    half_join,
    passes_on,
    put_out,
    send,
)
from .conformance import REQUESTS, AskingTheSame, GoingRound, NotesStayApart, Shown
from .framework_watch import Watched as Framework
from .harness import Scenario, Script, play


async def outputs(team: Workflow) -> Any:
    return (await team.run("?")).get_outputs()


async def texts(team: Workflow) -> Any:
    return [one.text for one in await outputs(team)]


async def pieces(team: Workflow) -> Any:
    return [event.data async for event in team.run("?", stream=True) if event.type == "output"]


def asked(build: Callable[[Script], Workflow], drive: Any = outputs) -> Scenario:
    return Scenario(build.__name__, build, drive)


def is_told() -> bool:
    return bool(dig.notes())


# --- early answers ----------------------------------------------------------------------------


def silent_branch(script: Script) -> Workflow:
    """A join waits for somebody who says nothing, until he is told."""

    def hesitant(given: Any, number: int, ctx: Any) -> Any:
        return ctx.send_message("c's") if is_told() else None

    p = Parts(script, a=send("go"), b=send("b's"), c=hesitant, j=ends)
    built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
    return built.add_fan_in_edges([p.b, p.c], p.j).build()


@pytest.mark.parametrize("drive", [outputs, pieces])
def test_et_who_said_nothing_is_asked_again_while_a_join_waits_for_him(drive: Any) -> None:
    assert play(asked(silent_branch, drive)).returned == "[]"
    watched = Watched("heal")
    outcome = play(asked(silent_branch, drive), watched)
    assert outcome.returned == repr(["""["b's", "c's"] done"""])
    assert outcome.per_agent()["b"] == play(asked(silent_branch, drive)).per_agent()["b"]
    assert watched.patterns == ["ET"] and watched.healed() == ["reroute"]
    watched.must_be_sound()


def half_an_answer(script: Script) -> Workflow:
    """One part of the work goes to nobody, since there is no edge to him."""

    async def act(given: Any, number: int, ctx: Any) -> None:
        await ctx.send_message("a part", "bob" if is_told() else "bbo")
        await ctx.yield_output("all" if is_told() else "half")

    p = Parts(script, ann=act, bob=ends)
    return p.build("ann").add_edge(p.ann, p.bob).build()


def test_et_an_answer_without_a_part_that_was_lost_is_taken_back() -> None:
    assert play(asked(half_an_answer)).returned == "['half']"
    watched = Watched("heal")
    assert play(asked(half_an_answer), watched).returned == "['all', 'a part done']"
    assert {*watched.patterns} == {"ET"} and watched.healed()[0] == "reroute"
    watched.must_be_sound()


def test_et_what_was_streamed_stays_and_the_stream_goes_on() -> None:
    watched = Watched("heal")
    assert play(asked(half_an_answer, pieces), watched).returned == "['half', 'all', 'a part done']"


def never(script: Script, most: int = 100) -> Workflow:
    p = Parts(script, ann=send("a part", "bbo"), bob=ends)
    return p.build("ann", max_iterations=most).add_edge(p.ann, p.bob).build()


def test_et_who_never_learns_is_asked_again_twice_and_no_more() -> None:
    """The limit of the base holds, and what is refused beyond it is written down."""
    watched = Watched("heal")
    outcome = play(asked(never), watched)
    assert len(outcome.per_agent()["ann"]) == 3 * 2 and watched.healed().count("reroute") == 2
    assert "downgraded" in watched.incidents()
    watched.must_be_sound()


@pytest.mark.parametrize(("most", "turns"), [(2, 1), (3, 2), (4, 2), (6, 3)])
def test_et_an_answer_that_goes_back_counts_against_the_iterations(most: int, turns: int) -> None:
    """The framework's own `max_iterations` is for the run with all that healing adds to it."""
    watched = Watched("heal")
    outcome = play(asked(lambda script: never(script, most)), watched)
    assert outcome.returned == play(asked(never)).returned
    assert len(outcome.per_agent()["ann"]) == turns * 2
    watched.must_be_sound()


def short(script: Script) -> Workflow:
    async def act(given: Any, number: int, ctx: Any) -> None:
        if is_told():
            await ctx.send_message("a part", "bob")
        else:
            await ctx.send_message("a part", "bbo")
            await ctx.yield_output("half")

    p = Parts(script, ann=act, bob=passes_on, cyd=ends)
    built = p.build("ann", max_iterations=3).add_edge(p.ann, p.bob)
    return built.add_edge(p.bob, p.cyd).build()


@pytest.mark.parametrize("drive", [outputs, pieces])
def test_et_if_the_iterations_end_after_an_answer_went_back_it_stands(drive: Any) -> None:
    """Healing makes no run raise that would have had an answer."""

    watched = Watched("heal")
    assert play(asked(short, drive), watched).returned == "['half']"
    assert watched.incidents() == ["bounce failed", "never ran"]
    watched.must_be_sound()


# --- handing on, waiting, doing twice, losing -------------------------------------------------


def ping_pong(script: Script) -> Workflow:
    """Two agents who leave everything to each other, until they are told."""

    def act(texts: list[str], number: int) -> str:
        return "I do it" if any(text.startswith("[monitor]") for text in texts) else " "

    team = agents(script, ann=act, bob=act)
    built = WorkflowBuilder(start_executor=team["ann"], max_iterations=12)
    for one, other in (("ann", "bob"), ("bob", "ann")):
        built.add_edge(
            team[one], team[other], condition=lambda said: not said.agent_response.text.strip()
        )
    return built.build()


def test_a_note_is_seen_by_its_agent_alone() -> None:
    watched, script = Watched("heal"), asked(ping_pong)
    seen = [detail for _, what, detail in play(script, watched).log if what == "sees"]
    assert sum("[monitor]" in detail for detail in seen) == 1
    assert "[monitor]" not in str(play(script, Watched("heal")).returned)


def stuck_branch(script: Script) -> Workflow:
    """A join waits for a branch that hangs, and gives up after a while by itself."""

    async def hangs(given: Any, number: int, ctx: Any) -> None:
        await asyncio.sleep(40)
        await ctx.send_message("nothing")

    def closes(given: Any, number: int, ctx: Any) -> Any:
        return ctx.yield_output("without c" if is_told() else f"{given}")

    p = Parts(script, a=send("go"), b=send("b's"), c=hangs, j=closes)
    built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
    return built.add_fan_in_edges([p.b, p.c], p.j).build()


def test_dl_a_branch_that_takes_long_is_told_of_while_it_does_and_nobody_is_woken() -> None:
    """It has only lasted longer than others: a warning, since it may be at work."""
    limits = Limits(dl_window_s=5, activation_limit_s=5)
    watched = Watched("heal", limits=limits)
    outcome = play(watched.ticking(asked(stuck_branch)), watched)
    assert outcome.returned == play(asked(stuck_branch)).returned
    (found,) = watched.session.findings
    assert (found.pattern, found.severity) == ("DL", "warning") and found.ts < 15
    assert {*found.evidence["waiting"]} == {"c", "j"} and watched.healed() == []
    watched.must_be_sound()


def test_a_note_about_a_request_that_was_given_up_is_shown_in_no_later_one() -> None:
    """A run is stuck and is cancelled; the join, which was told, has nothing to say of it later."""
    seen: list[tuple[str, ...]] = []

    async def hangs(given: Any, number: int, ctx: Any) -> None:
        await asyncio.sleep(40 if number == 1 else 0)
        await ctx.send_message("c's")

    def closes(given: Any, number: int, ctx: Any) -> Any:
        seen.append(dig.notes())
        return ctx.yield_output("all")

    def build(script: Script) -> Workflow:
        p = Parts(script, a=send("go"), b=send("b's"), c=hangs, j=closes)
        built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
        return built.add_fan_in_edges([p.b, p.c], p.j).build()

    async def drive(team: Workflow) -> Any:
        async def stuck() -> None:
            async for _ in team.run("?", stream=True):
                pass

        with suppress(TimeoutError):
            await asyncio.wait_for(stuck(), 20)
        team._runner.context._messages.clear()  # what the framework itself would refuse to drop
        for edges in team._runner._edge_runners:
            getattr(edges, "_buffer", {}).clear()
        return [(await team.run("again")).get_outputs() for _ in range(3)]

    limits = Limits(dl_window_s=5, activation_limit_s=5)
    setup = Setup(detectors=standard, healers=standard_healers, limits=limits, policy=HEAL_ALL)
    watched = Watched("heal", setup)
    play(watched.ticking(Scenario("stuck", build, drive)), watched)
    assert watched.patterns[0] == "DL" and "create" in watched.healed()
    assert seen == [(), (), ()]
    watched.must_be_sound()


def twice(script: Script) -> Workflow:
    """The same part is given to two, and who puts it together hears of that."""

    def counts(given: Any, number: int, ctx: Any) -> Any:
        return ctx.yield_output("once" if is_told() else len(given))

    p = Parts(script, a=send("Count", "b", "c"), b=send("three"), c=send("three"), j=counts)
    built = p.build("a").add_edge(p.a, p.b).add_edge(p.a, p.c)
    return built.add_fan_in_edges([p.b, p.c], p.j).build()


class TestAskingTheSame(AskingTheSame):
    watched, asking, told = Watched, [asked(twice)], "['once']"


def test_rsp_the_same_thing_sent_twice_to_one_can_be_declared_to_be_the_same_work() -> None:
    def again(script: Script) -> Workflow:
        p = Parts(script, a=send("Count", "b", "b"), b=put_out("three"))
        return p.build("a").add_edge(p.a, p.b).build()

    for same, found in ((False, []), (True, ["RSP"])):
        watched = Watched(same_work=same)
        assert play(asked(again), watched).returned == "['three', 'three']"
        assert watched.patterns == found
        watched.must_be_sound()


def test_branches_by_design_are_no_finding() -> None:
    def by_design(script: Script) -> Workflow:
        p = Parts(script, a=send("Count"), b=send("three"), c=send("three"), j=ends)
        built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
        return built.add_fan_in_edges([p.b, p.c], p.j).build()

    watched = Watched(same_work=True)
    play(asked(by_design), watched)
    assert watched.patterns == []


def test_oe_a_message_that_nobody_can_take_is_found_while_the_others_work() -> None:
    def lost(script: Script) -> Workflow:
        async def both(given: Any, number: int, ctx: Any) -> None:
            await ctx.send_message(17)
            await ctx.send_message("go")

        async def long(given: Any, number: int, ctx: Any) -> None:
            await asyncio.sleep(20)
            await ctx.yield_output("done")

        p = Parts(script, a=both, b=long)
        return p.build("a").add_edge(p.a, p.b).build()

    watched = Watched()
    assert play(watched.ticking(asked(lost)), watched).returned == "['done']"
    assert watched.patterns == ["OE", "ET"]
    assert watched.session.findings[0].evidence == {"cause": "no_recipient"}
    watched.must_be_sound()


def test_cla_what_a_join_has_kept_from_the_request_before_meets_the_next_one() -> None:
    """The framework keeps it for the next run, without a word."""

    async def ask_twice(team: Workflow) -> Any:
        return [await outputs(team), await outputs(team)]

    watched = Watched()
    play(asked(half_join, ask_twice), watched)
    assert watched.patterns == ["ET", "CLA", "ET"]
    watched.must_be_sound()


def test_executors_are_named_as_the_workflow_names_them() -> None:
    watched = Watched()
    play(asked(silent_branch), watched)
    assert watched.session.monitor.graph.run.agents == ("a", "b", "c", "j", "__end__")


class TestGoingRound(GoingRound):
    watched, going_round = Watched, [asked(ping_pong, texts)]
    unsolved, solved = "WorkflowConvergenceException", "I do it"


class OneSession:
    """Many workflows under one session: a workflow refuses a second run while one lasts."""

    @staticmethod
    def plan(workflows: list[Workflow]) -> WrapPlan:
        by_prefix = {f"{number}/": one for number, one in enumerate(workflows)}
        teams: list[WorkflowTeam] = []

        def attach(session: Session) -> Attached:
            patches = [
                WorkflowPatches(one, WorkflowTeam(one, prefix, session, is_handoff, teams), None)
                for prefix, one in by_prefix.items()
            ]

            def restore() -> None:
                for one in patches:
                    one.restore()

            return Attached(workflows, restore)

        return WrapPlan("workflows", _agents(by_prefix), attach, CAN, lambda wish: "not here")


class WatchedTogether(Framework):
    adapter = OneSession


def crowded(shown: Shown) -> Scenario:
    """`ask` and `store` talk until they are told, for some requests; for some `ask` hangs."""

    def workflow(script: Script, number: int) -> Workflow:
        def look(act: Act) -> Act:
            async def looking(given: Any, turn: int, ctx: Any) -> None:
                shown.append((number, dig.notes_about()))
                await act(given, turn, ctx)

            return looking

        answers: list[str] = []

        async def ask(given: Any, turn: int, ctx: Any) -> None:
            if not answers:
                await asyncio.sleep(30 if number % 10 == 5 else number % 7)
            answers.append(given)
            goes_on = number % 10 == 0 and len(answers) < 12 and not is_told()
            await ctx.send_message("how many?", "store" if goes_on else "last")

        async def store(given: Any, turn: int, ctx: Any) -> None:
            await ctx.send_message("four", "last" if is_told() else "ask")

        p = Parts(script, ask=look(ask), store=look(store), last=look(ends))
        built = p.build("ask").add_edge(p.ask, p.store).add_edge(p.store, p.ask)
        return built.add_edge(p.ask, p.last).add_edge(p.store, p.last).build()

    async def drive(workflows: list[Workflow]) -> Any:
        questions = (one.run(f"request {number}") for number, one in enumerate(workflows))
        return await asyncio.gather(*questions)

    return Scenario("crowd", lambda script: [workflow(script, n) for n in range(REQUESTS)], drive)


class TestNotesStayApart(NotesStayApart):
    watched, crowded = WatchedTogether, staticmethod(crowded)

    @pytest.fixture(autouse=True)
    def takes_many_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each workflow has a loop of steps of its own."""
        monkeypatch.setattr(harness, "STEPS", 100_000)
