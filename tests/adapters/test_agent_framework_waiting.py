"""agent-framework, wrapped: a workflow that waits for a person is not healed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import agent_framework as af
import pytest

from dig.graph.records import Emit, End, Limits, Start

from .agent_framework_asked import ask, told
from .agent_framework_teams import Act, Model, Parts, Watched, ends, send
from .ends import answers as submitted
from .ends import ends as ended
from .harness import Scenario, Script, play

MODES = pytest.mark.parametrize("mode", ["observe", "heal"])


def must_be_as_bare(
    build: Callable[[Script], af.Workflow], drive: Any, mode: Any, *, answers: int = 1
) -> Watched:
    """Nothing is raised, bounced or run that is not without a monitor, however long it takes."""
    asked, watched = Scenario(build.__name__, build, drive), Watched(mode)
    bare, mine = play(asked), play(watched.ticking(asked), watched)
    assert mine == bare
    assert watched.patterns == [] and watched.healed() == [] and "waits" in watched.incidents()
    assert len(submitted(watched.records)) == answers
    watched.must_be_sound()
    assert watched.leaves_nothing_open()
    return watched


def asks(name: str) -> Act:
    async def act(given: Any, number: int, ctx: Any) -> None:
        if number == 1:
            await ctx.request_info(f"What does {name} need?", str, request_id=name)
        else:
            await ctx.send_message(given)

    return act


def join(script: Script) -> af.Workflow:
    """One branch asks a person, and the other has done its part."""
    p = Parts(script, a=send("go"), b=asks("b"), c=send("c's"), j=ends)
    built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
    return built.add_fan_in_edges([p.b, p.c], p.j).build()


def both(script: Script) -> af.Workflow:
    """Two branches ask a person."""
    p = Parts(script, a=send("go"), b=asks("b"), c=asks("c"), j=ends)
    built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
    return built.add_fan_in_edges([p.b, p.c], p.j).build()


def one_by_one(*answers: str) -> Any:
    """Ask, and answer the questions one after the other."""

    async def drive(team: af.Workflow) -> Any:
        found = [await ask(team)]
        for one in answers:
            await asyncio.sleep(800 / len(answers))  # a person takes its time
            found.append(told(await team.run(responses={one: f"{one}'s"})))
        return found

    return drive


@MODES
def test_a_join_that_waits_for_a_person_is_no_early_answer(mode: Any) -> None:
    """The branch that is done waits for the one that asks, and they join when it is resumed."""
    must_be_as_bare(join, one_by_one("b"), mode)


@MODES
def test_a_run_that_answers_one_of_two_questions_still_waits_for_the_other(mode: Any) -> None:
    """It has asked nobody itself, and its answer is none: nobody is asked again for it."""
    must_be_as_bare(both, one_by_one("b", "c"), mode)


def lost_and_asking(script: Script) -> af.Workflow:
    async def act(given: Any, number: int, ctx: Any) -> None:
        await ctx.send_message("a part", "bbo")
        await ctx.send_message("go", "b")

    p = Parts(script, a=act, b=asks("b"), c=ends)
    built = p.build("a").add_edge(p.a, p.b).add_edge(p.b, p.c)
    return built.build()


@MODES
def test_what_was_lost_before_a_question_is_not_healed_over_it(mode: Any) -> None:
    """A message to nobody, and a question to a person beside it: the person is asked once."""
    asked, watched = Scenario("lost", lost_and_asking, one_by_one("b")), Watched(mode)
    bare, mine = play(asked), play(asked, watched)
    assert [one for one in mine.log if one[0] == "b"] == [one for one in bare.log if one[0] == "b"]
    assert {"OE"} <= {*watched.patterns} <= {"OE", "ET"}


@MODES
def test_a_tool_that_has_to_be_approved_is_not_called_before(mode: Any) -> None:
    """An agent asks for approval while another branch is done and a join waits."""
    must_be_as_bare(approved, ask, mode, answers=0)


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


@MODES
@pytest.mark.parametrize("drive", [all_at_once, one_by_one(*(f"r{one}" for one in range(MANY)))])
def test_forty_approvals_are_waited_for_and_none_is_passed_over(drive: Any, mode: Any) -> None:
    """Each answer is in an activation of its own, which consumes the continuation before it."""
    watched = must_be_as_bare(many, drive, mode)
    rows = list(watched.records)
    mine = [row for row in rows if isinstance(row, Start) and row.agent == "a"]
    assert len(mine) > MANY and all(len(row.inputs) == 1 for row in mine)
    assert ended(rows) == {}


@MODES
def test_a_hang_after_an_approval_is_seen(mode: Any) -> None:
    """The activation that works on the answer does not wait, so that it can be overdue."""

    async def slow(given: Any, number: int, ctx: Any) -> None:
        if number == 1:
            await ctx.request_info("May I?", str, request_id="b")
        else:
            await asyncio.sleep(100)
            await ctx.send_message("at last")

    def build(script: Script) -> af.Workflow:
        p = Parts(script, a=slow, c=ends)
        return p.build("a").add_edge(p.a, p.c).build()

    limits = Limits(dl_window_s=5, activation_limit_s=20)
    watched, asked = Watched(mode, limits=limits), Scenario("hanging", build, one_by_one("b"))
    assert play(watched.ticking(asked), watched) == play(asked)
    assert watched.patterns == ["MC"] and watched.session.findings[0].ts > 800
    watched.must_be_sound()


def kept(script: Script) -> af.Workflow:
    """One branch asks a person, the other has an answer two steps later."""
    p = Parts(script, a=send("go"), b=asks("b"), c=send("c's"), d=ends, e=ends)
    built = p.build("a", checkpoint_storage=af.InMemoryCheckpointStorage())
    built = built.add_fan_out_edges(p.a, [p.b, p.c])
    return built.add_edge(p.c, p.d).add_edge(p.b, p.e).build()


def back_to(place: int, *, at_once: bool = False) -> Any:
    """Ask, go back to an earlier place while the question is open, and answer it."""

    async def drive(team: af.Workflow) -> Any:
        found, storage = [await ask(team)], team._runner.context._get_effective_checkpoint_storage()
        places = await storage.list_checkpoints(workflow_name="team")
        place_id = sorted(places, key=lambda it: it.timestamp)[place].checkpoint_id
        if at_once:
            return [*found, told(await team.run(checkpoint_id=place_id, responses={"b": "b's"}))]
        found.append(told(await team.run(checkpoint_id=place_id)))
        return [*found, told(await team.run(responses={"b": "b's"}))]

    return drive


@MODES
@pytest.mark.parametrize(
    "drive", [*map(back_to, range(4)), back_to(2, at_once=True), back_to(3, at_once=True)]
)
def test_a_request_that_goes_back_while_it_waits_has_one_origin(drive: Any, mode: Any) -> None:
    """What was put out before and what is put out again come to one end, and are no CLA."""
    watched = must_be_as_bare(kept, drive, mode)
    assert [row.payload for row in watched.records if isinstance(row, Emit) and not row.by] == ["?"]


def test_another_question_while_a_person_is_asked_is_of_another_origin() -> None:
    """Its answer is put out with that of the first one, which is a CLA."""

    async def ask_twice(team: af.Workflow) -> Any:
        return [await ask(team), await ask(team)]

    watched = Watched()
    play(Scenario("twice", kept, ask_twice), watched)
    assert {*watched.patterns} == {"CLA"}


def test_a_person_who_never_answers_leaves_a_turn_that_is_called_off() -> None:
    """When the workflow is unwrapped, nobody waits any more; the request has no answer."""
    watched = Watched()
    play(Scenario("left", both, ask), watched)
    assert watched.session.statistics().open_turns == 2
    watched.detach()
    assert watched.session.statistics().open_turns == 0
    assert [row.cancelled for row in watched.records if isinstance(row, End) and row.error] == [
        True, True,
    ]  # fmt: skip
