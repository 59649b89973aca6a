"""Microsoft agent-framework, wrapped: what is found, healed, and waited for."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import agent_framework as af
import pytest

import dig
from dig.adapters import Attached, Session, WrapPlan
from dig.adapters.agent_framework import CAN, _agents
from dig.adapters.agent_framework.handlers import is_handoff
from dig.adapters.agent_framework.team import WorkflowTeam
from dig.adapters.agent_framework.workflow import WorkflowPatches
from dig.detectors import standard, standard_healers
from dig.detectors.policy import HEAL_ALL
from dig.graph.records import Emit, End, IncidentRow, Limits, Start
from dig.runtime.setup import Setup

from . import framework_watch
from .agent_framework_teams import (
    SCENARIOS,
    Act,
    Model,
    Parts,
    Watched,
    agents,
    ask,
    ask_twice,
    asking_both,
    asks,
    ends,
    half_join,
    joined,
    kept_of,
    passes_on,
    put_out,
    raises,
    send,
    team,
    told,
)
from .conformance import REQUESTS, Failing, Shown
from .harness import Scenario, Script, play

MODES = pytest.mark.parametrize("mode", ["observe", "heal"])


async def outputs(team: af.Workflow) -> Any:
    return (await team.run("?")).get_outputs()


async def pieces(team: af.Workflow) -> Any:
    return [event.data async for event in team.run("?", stream=True) if event.type == "output"]


def asked(build: Any, drive: Any = outputs) -> Scenario:
    return team(build, drive)


def is_told() -> bool:
    return bool(dig.notes())


# --- early answers ----------------------------------------------------------------------------


def silent_branch(script: Script) -> af.Workflow:
    """A join waits for somebody who says nothing, until he is told."""

    def hesitant(given: Any, number: int, ctx: Any) -> Any:
        return ctx.send_message("c's") if is_told() else None

    return joined(script, send("b's"), hesitant)


@pytest.mark.parametrize("drive", [outputs, pieces])
def test_et_who_said_nothing_is_asked_again_while_a_join_waits_for_him(drive: Any) -> None:
    assert play(asked(silent_branch, drive)).returned == "[]"
    watched = Watched("heal")
    outcome = play(asked(silent_branch, drive), watched)
    assert outcome.returned == repr(["""["b's", "c's"] done"""])
    assert outcome.per_agent()["b"] == play(asked(silent_branch, drive)).per_agent()["b"]
    assert watched.patterns == ["ET"] and watched.healed() == ["reroute"]
    watched.must_be_sound()


def half_an_answer(script: Script) -> af.Workflow:
    """One part of the work goes to nobody, since there is no edge to him."""

    async def act(given: Any, number: int, ctx: Any) -> None:
        await ctx.send_message("a part", "bob" if is_told() else "bbo")
        await ctx.yield_output("all" if is_told() else "half")

    return Parts(script, ann=act, bob=ends).line()


def test_et_an_answer_without_a_part_that_was_lost_is_taken_back() -> None:
    assert play(asked(half_an_answer)).returned == "['half']"
    watched = Watched("heal")
    assert play(asked(half_an_answer), watched).returned == "['all', 'a part done']"
    assert {*watched.patterns} == {"ET"} and watched.healed()[0] == "reroute"
    watched.must_be_sound()


def test_et_what_was_streamed_stays_and_the_stream_goes_on() -> None:
    watched = Watched("heal")
    assert play(asked(half_an_answer, pieces), watched).returned == "['half', 'all', 'a part done']"


def never(script: Script, most: int = 100) -> af.Workflow:
    return Parts(script, ann=send("a part", "bbo"), bob=ends).line(max_iterations=most)


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


def short(script: Script) -> af.Workflow:
    async def act(given: Any, number: int, ctx: Any) -> None:
        if is_told():
            await ctx.send_message("a part", "bob")
        else:
            await ctx.send_message("a part", "bbo")
            await ctx.yield_output("half")

    return Parts(script, ann=act, bob=passes_on, cyd=ends).line(max_iterations=3)


@pytest.mark.parametrize("drive", [outputs, pieces])
def test_et_if_the_iterations_end_after_an_answer_went_back_it_stands(drive: Any) -> None:
    """Healing makes no run raise that would have had an answer."""

    watched = Watched("heal")
    assert play(asked(short, drive), watched).returned == "['half']"
    assert watched.incidents() == ["bounce failed", "never ran"]
    watched.must_be_sound()


# --- handing on, waiting, doing twice, losing -------------------------------------------------


def ping_pong(script: Script) -> af.Workflow:
    """Two agents who leave everything to each other, until they are told."""

    def act(texts: list[str], number: int) -> str:
        return "I do it" if any(text.startswith("[monitor]") for text in texts) else " "

    team = agents(script, ann=act, bob=act)
    built = af.WorkflowBuilder(start_executor=team["ann"], max_iterations=12)
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


def stuck_branch(script: Script) -> af.Workflow:
    """A join waits for a branch that hangs, and gives up after a while by itself."""

    async def hangs(given: Any, number: int, ctx: Any) -> None:
        await asyncio.sleep(40)
        await ctx.send_message("nothing")

    def closes(given: Any, number: int, ctx: Any) -> Any:
        return ctx.yield_output("without c" if is_told() else f"{given}")

    return joined(script, send("b's"), hangs, closes)


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

    def build(script: Script) -> af.Workflow:
        return joined(script, send("b's"), hangs, closes)

    async def drive(team: af.Workflow) -> Any:
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


def twice(script: Script) -> af.Workflow:
    """The same part is given to two, and who puts it together hears of that."""

    def counts(given: Any, number: int, ctx: Any) -> Any:
        return ctx.yield_output("once" if is_told() else len(given))

    p = Parts(script, a=send("Count", "b", "c"), b=send("three"), c=send("three"), j=counts)
    built = p.build("a").add_edge(p.a, p.b).add_edge(p.a, p.c)
    return built.add_fan_in_edges([p.b, p.c], p.j).build()


def same_again(script: Script) -> af.Workflow:
    """The same thing is sent to one executor twice."""
    return Parts(script, a=send("Count", "b", "b"), b=put_out("three")).line()


def test_rsp_the_same_thing_sent_twice_to_one_can_be_declared_to_be_the_same_work() -> None:
    for same, found in ((False, []), (True, ["RSP"])):
        watched = Watched(same_work=same)
        assert play(asked(same_again), watched).returned == "['three', 'three']"
        assert watched.patterns == found
        watched.must_be_sound()


def test_branches_by_design_are_no_finding() -> None:
    def by_design(script: Script) -> af.Workflow:
        return joined(script, send("three"), send("three"))

    watched = Watched(same_work=True)
    play(asked(by_design), watched)
    assert watched.patterns == []


def test_oe_a_message_that_nobody_can_take_is_found_while_the_others_work() -> None:
    def lost(script: Script) -> af.Workflow:
        async def both(given: Any, number: int, ctx: Any) -> None:
            await ctx.send_message(17)
            await ctx.send_message("go")

        async def long(given: Any, number: int, ctx: Any) -> None:
            await asyncio.sleep(20)
            await ctx.yield_output("done")

        return Parts(script, a=both, b=long).line()

    watched = Watched()
    assert play(watched.ticking(asked(lost)), watched).returned == "['done']"
    assert watched.patterns == ["OE", "ET"]
    assert watched.session.findings[0].evidence == {"cause": "no_recipient"}
    watched.must_be_sound()


def test_cla_what_a_join_has_kept_from_the_request_before_meets_the_next_one() -> None:
    """The framework keeps it for the next run, without a word."""

    async def ask_twice(team: af.Workflow) -> Any:
        return [await outputs(team), await outputs(team)]

    watched = Watched()
    play(asked(half_join, ask_twice), watched)
    assert watched.patterns == ["ET", "CLA", "ET"]
    watched.must_be_sound()


def test_executors_are_named_as_the_workflow_names_them() -> None:
    watched = Watched()
    play(asked(silent_branch), watched)
    assert watched.session.monitor.graph.run.agents == ("a", "b", "c", "j", "__end__")


class OneSession:
    """Many workflows under one session: a workflow refuses a second run while one lasts."""

    @staticmethod
    def plan(workflows: list[af.Workflow]) -> WrapPlan:
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


class WatchedTogether(framework_watch.Watched):
    adapter = OneSession


def crowded(shown: Shown) -> Scenario:
    """`ask` and `store` talk until they are told, for some requests; for some `ask` hangs."""

    def workflow(script: Script, number: int) -> af.Workflow:
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

    async def drive(workflows: list[af.Workflow]) -> Any:
        questions = (one.run(f"request {number}") for number, one in enumerate(workflows))
        return await asyncio.gather(*questions)

    return Scenario("crowd", lambda script: [workflow(script, n) for n in range(REQUESTS)], drive)


# --- whose an error is, and what ends without an answer ---


def one_of(name: str) -> Scenario:
    return next(one for one in SCENARIOS if one.name == name)


def raising_edge(script: Script) -> af.Workflow:
    p = Parts(script, a=send("go"), b=ends)
    return p.build("a").add_edge(p.a, p.b, condition=raises).build()


async def late(given: Any, number: int, ctx: Any) -> None:
    await asyncio.sleep(1)
    raise ValueError("no")


def late_branch(script: Script) -> af.Workflow:
    return joined(script, send("b's"), late)


FAILING = [
    Failing(one_of("failing-ask"), {"b": "ValueError: no", "__end__": "by b"}, ("error", "b"), "d"),
    # The edges of an executor are its own; nobody behind them runs.
    Failing(team(raising_edge), {"a": "ValueError: no", "__end__": "by a"}, ("error", "a"), "b"),
    # A join that waits when the run fails has no turn: the end takes what it was given.
    Failing(team(late_branch), {"c": "ValueError: no", "__end__": "by c"}, ("error", "c"), "j"),
    # The framework gives up (`WorkflowConvergenceException`), which is nobody's error.
    Failing(one_of("endless-ask"), {"__end__": "called off"}, ("limit", None)),
]


# --- persons ---


def join(script: Script) -> af.Workflow:
    """One branch asks a person, and the other has done its part."""
    return joined(script, asks("b"), send("c's"))


def one_by_one(*answers: str) -> Any:
    """Ask, and answer the questions one after the other."""

    async def drive(team: af.Workflow) -> Any:
        found = [await ask(team)]
        for one in answers:
            await asyncio.sleep(800 / len(answers))  # a person takes its time
            found.append(told(await team.run(responses={one: f"{one}'s"})))
        return found

    return drive


def lost_and_asking(script: Script) -> af.Workflow:
    async def act(given: Any, number: int, ctx: Any) -> None:
        await ctx.send_message("a part", "bbo")
        await ctx.send_message("go", "b")

    return Parts(script, a=act, b=asks("b"), c=ends).line()


@MODES
def test_what_was_lost_before_a_question_is_not_healed_over_it(mode: Any) -> None:
    """A message to nobody, and a question to a person beside it: the person is asked once."""
    asked, watched = Scenario("lost", lost_and_asking, one_by_one("b")), Watched(mode)
    bare, mine = play(asked), play(asked, watched)
    assert [one for one in mine.log if one[0] == "b"] == [one for one in bare.log if one[0] == "b"]
    assert {"OE"} <= {*watched.patterns} <= {"OE", "ET"}


def approved(script: Script) -> af.Workflow:
    """Ann's model wants to call a tool that somebody has to approve; a join waits for her."""

    class Calling(Model):
        def _inner_get_response(self, **more: Any) -> Any:
            async def respond() -> af.ChatResponse[Any]:
                async with script.turn("ann"):
                    call = af.Content.from_function_call("call-1", "pay", arguments={"amount": 3})
                    asked = af.Content.from_function_approval_request("ask-1", call)
                    return af.ChatResponse(messages=[af.Message("assistant", [asked])])

            return respond()

    ann = af.Agent(Calling(script, "ann", lambda texts, number: ""), name="ann")
    p = Parts(script, a=send("go"), c=send("c's"), j=ends)
    built = af.WorkflowBuilder(start_executor=p.a).add_fan_out_edges(p.a, [ann, p.c])
    return built.add_fan_in_edges([ann, p.c], p.j).build()


MANY = 40


def many(script: Script) -> af.Workflow:
    """One executor asks forty persons at once, and goes on when all have answered."""

    async def act(given: Any, number: int, ctx: Any) -> None:
        if number == 1:
            for one in range(MANY):
                await ctx.request_info(f"May I, {one}?", str, request_id=f"r{one}")
        elif number == MANY + 1:
            await ctx.send_message("all of them")

    p = Parts(script, a=act, b=send("b's"), c=ends)
    return p.build("a").add_edge(p.a, p.c).build()


async def all_at_once(team: af.Workflow) -> Any:
    first = await ask(team)
    await asyncio.sleep(800)
    return [first, told(await team.run(responses={f"r{one}": "yes" for one in range(MANY)}))]


@pytest.mark.parametrize("drive", [all_at_once, one_by_one(*(f"r{one}" for one in range(MANY)))])
def test_each_of_forty_approvals_is_in_an_activation_of_its_own(drive: Any) -> None:
    """It consumes the continuation before it."""
    watched = Watched()
    play(team(many, drive), watched)
    mine = [row for row in watched.rows(Start) if row.agent == "a"]
    assert len(mine) > MANY and all(len(row.inputs) == 1 for row in mine)
    assert watched.ends() == {}


def slow(script: Script) -> af.Workflow:
    """What is done with the answer of a person takes long."""

    async def act(given: Any, number: int, ctx: Any) -> None:
        if number == 1:
            await ctx.request_info("May I?", str, request_id="b")
        else:
            await asyncio.sleep(100)
            await ctx.send_message("at last")

    return Parts(script, a=act, c=ends).line()


def test_the_question_to_a_person_is_in_the_trace() -> None:
    watched = Watched()
    play(team(slow, ask), watched)
    (wait,) = [row.detail for row in watched.rows(IncidentRow) if row.what == "waits"]
    assert wait["asks"] == "May I?" and "responses=" in wait["answer"]


def test_several_questions_are_in_the_trace_until_each_is_answered() -> None:
    watched = Watched()
    play(team(many, all_at_once), watched)
    first = next(row.detail for row in watched.rows(IncidentRow) if row.what == "waits")
    assert first["asks"][:2] == ["May I, 0?", "May I, 1?"]


def kept(script: Script) -> af.Workflow:
    """One branch asks a person, the other has an answer two steps later."""
    p = Parts(script, a=send("go"), b=asks("b"), c=send("c's"), d=ends, e=ends)
    built = p.build("a", checkpoint_storage=af.InMemoryCheckpointStorage())
    built = built.add_fan_out_edges(p.a, [p.b, p.c])
    return built.add_edge(p.c, p.d).add_edge(p.b, p.e).build()


def back_to(place: int, *, at_once: bool = False) -> Any:
    """Ask, go back to an earlier place while the question is open, and answer it."""

    async def drive(team: af.Workflow) -> Any:
        found, responses = [await ask(team)], {"b": "b's"}
        place_id = (await kept_of(team))[place].checkpoint_id
        if at_once:
            return [*found, told(await team.run(checkpoint_id=place_id, responses=responses))]
        found.append(told(await team.run(checkpoint_id=place_id)))
        return [*found, told(await team.run(responses=responses))]

    return drive


BACK = [*map(back_to, range(4)), back_to(2, at_once=True), back_to(3, at_once=True)]


@pytest.mark.parametrize("drive", BACK)
def test_a_request_that_goes_back_while_it_waits_has_one_origin(drive: Any) -> None:
    """What was put out before and what is put out again come to one end, and are no CLA."""
    watched = Watched()
    watched.must_change_nothing(team(kept, drive), ticks=True)
    assert [row.payload for row in watched.rows(Emit) if not row.by] == ["?"]


def test_another_question_while_a_person_is_asked_is_of_another_origin() -> None:
    """Its answer is put out with that of the first one, which is a CLA."""
    watched = Watched()
    play(team(kept, ask_twice), watched)
    assert {*watched.patterns} == {"CLA"}


def test_a_person_who_never_answers_leaves_a_turn_that_is_called_off() -> None:
    """When the workflow is unwrapped, nobody waits any more; the request has no answer."""
    watched = Watched()
    play(team(asking_both), watched)
    assert watched.session.statistics().open_turns == 2
    watched.detach()
    assert watched.session.statistics().open_turns == 0
    assert [row.cancelled for row in watched.rows(End) if row.error] == [True, True]
