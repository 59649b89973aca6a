"""agent-framework, wrapped: whose an error is, and what ends without an answer."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import Workflow

from .agent_framework_asked import SCENARIOS, ask
from .agent_framework_teams import Parts, Watched, send
from .agent_framework_teams import ends as done
from .ends import answers, ends, failed, ran
from .harness import Scenario, Script, play


def test_an_error_is_no_answer() -> None:
    """Who raised has the error, the end of the workflow passes it on, and the request failed."""
    scenario = next(one for one in SCENARIOS if one.name == "failing-ask")
    watched = Watched()
    play(scenario, watched)
    assert ends(watched.records)["b"] == "raised"
    assert ends(watched.records)["__end__"] == "passes on"
    assert failed(watched.records) == [("error", "b")] and answers(watched.records) == []
    assert "d" not in ran(watched.records)


def bad_condition(data: Any) -> bool:
    raise ValueError("no")


def test_a_condition_that_raises_is_an_error_of_the_executor_before_it() -> None:
    """Its edges are the executor's own; nobody behind them runs."""

    def build(script: Script) -> Workflow:
        p = Parts(script, a=send("go"), b=done)
        return p.build("a").add_edge(p.a, p.b, condition=bad_condition).build()

    watched = Watched()
    play(Scenario("failing", build, ask), watched)
    assert ends(watched.records) == {"a": "raised", "__end__": "passes on"}
    assert failed(watched.records) == [("error", "a")] and answers(watched.records) == []
    assert "b" not in ran(watched.records)
    watched.must_be_sound()


def test_the_limit_of_iterations_is_no_answer_and_nobodys_error() -> None:
    """The framework gives up (`WorkflowConvergenceException`): the end was called off."""
    scenario = next(one for one in SCENARIOS if one.name == "endless-ask")
    watched = Watched()
    play(scenario, watched)
    assert ends(watched.records) == {"__end__": "called off"}
    assert failed(watched.records) == [("limit", None)] and answers(watched.records) == []
    watched.must_be_sound()


def test_what_never_ran_is_no_activation() -> None:
    """A join that waits when the run fails has no turn: the end takes what it was given."""

    async def fails(given: Any, number: int, ctx: Any) -> None:
        await asyncio.sleep(1)
        raise ValueError("no")

    def build(script: Script) -> Workflow:
        p = Parts(script, a=send("go"), b=send("b's"), c=fails, j=done)
        built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
        return built.add_fan_in_edges([p.b, p.c], p.j).build()

    watched = Watched()
    play(Scenario("failing", build, ask), watched)
    assert "j" not in ran(watched.records)
    watched.must_be_sound()
    assert watched.leaves_nothing_open()
