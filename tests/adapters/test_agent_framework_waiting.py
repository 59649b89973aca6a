"""agent-framework, wrapped: a workflow that waits for a person is not healed meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip(
    "agent_framework", reason="agent-framework is not installed: pip install .[dev,agent-framework]"
)

from agent_framework import (
    Agent,
    ChatResponse,
    Content,
    Message,
    Workflow,
    WorkflowBuilder,
)

from .agent_framework_asked import ask, told
from .agent_framework_teams import Act, Model, Parts, Watched, ends, send
from .harness import Scenario, Script, play

MODES = pytest.mark.parametrize("mode", ["observe", "heal"])


def must_be_as_bare(build: Callable[[Script], Workflow], drive: Any, mode: Any) -> Watched:
    """Nothing is raised, bounced or run that is not without a monitor."""
    asked, watched = Scenario(build.__name__, build, drive), Watched(mode)
    bare, mine = play(asked), play(asked, watched)
    assert mine == bare
    assert watched.patterns == [] and watched.healed() == []
    assert watched.leaves_nothing_open()
    watched.must_be_sound()
    return watched


def asks(name: str) -> Act:
    async def act(given: Any, number: int, ctx: Any) -> None:
        if number == 1:
            await ctx.request_info(f"What does {name} need?", str, request_id=name)
        else:
            await ctx.send_message(given)

    return act


def join(script: Script) -> Workflow:
    """One branch asks a person, and the other has done its part."""
    p = Parts(script, a=send("go"), b=asks("b"), c=send("c's"), j=ends)
    built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
    return built.add_fan_in_edges([p.b, p.c], p.j).build()


def both(script: Script) -> Workflow:
    """Two branches ask a person."""
    p = Parts(script, a=send("go"), b=asks("b"), c=asks("c"), j=ends)
    built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
    return built.add_fan_in_edges([p.b, p.c], p.j).build()


def one_by_one(*answers: str) -> Any:
    """Ask, and answer the questions one after the other."""

    async def drive(team: Workflow) -> Any:
        found = [await ask(team)]
        for one in answers:
            found.append(told(await team.run(responses={one: f"{one}'s"})))
        return found

    return drive


@MODES
def test_a_join_that_waits_for_a_person_is_no_early_answer(mode: Any) -> None:
    """The branch that is done waits with the answer that asks, and joins when it is resumed."""
    must_be_as_bare(join, one_by_one("b"), mode)


@MODES
def test_a_run_that_answers_one_of_two_questions_still_waits_for_the_other(mode: Any) -> None:
    """It has asked nobody itself, and its answer is none: nobody is asked again for it."""
    must_be_as_bare(both, one_by_one("b", "c"), mode)


def lost_and_asking(script: Script) -> Workflow:
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
    assert mine == bare
    assert watched.patterns == [] and "reroute" not in watched.healed()


@MODES
def test_a_tool_that_has_to_be_approved_is_not_called_before(mode: Any) -> None:
    """An agent asks for approval while another branch is done and a join waits."""
    must_be_as_bare(approved, ask, mode)


def approved(script: Script) -> Workflow:
    """Ann's model wants to call a tool that somebody has to approve; a join waits for her."""

    class Calling(Model):
        def _inner_get_response(self, **more: Any) -> Any:
            async def respond() -> ChatResponse[Any]:
                async with script.turn("ann"):
                    call = Content.from_function_call("call-1", "pay", arguments={"amount": 3})
                    asked = Content.from_function_approval_request("ask-1", call)
                    return ChatResponse(messages=[Message("assistant", [asked])])

            return respond()

    ann = Agent(Calling(script, "ann", lambda texts, number: ""), name="ann")
    p = Parts(script, a=send("go"), c=send("c's"), j=ends)
    built = WorkflowBuilder(start_executor=p.a).add_fan_out_edges(p.a, [ann, p.c])
    return built.add_fan_in_edges([ann, p.c], p.j).build()
