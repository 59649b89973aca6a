"""agent-framework, wrapped with `inside=True`: executors of a workflow that is an executor."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent_framework import Workflow, WorkflowExecutor

import dig
from dig.detectors import standard
from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.graph.records import Emit
from dig.runtime import Setup

from .agent_framework_asked import ask
from .agent_framework_cases import INSIDE, deep, inside
from .agent_framework_teams import Parts, around, chain, ends, half_join, send
from .agent_framework_teams import Watched as Outside
from .conformance import Unchanged
from .harness import Script, play


class Watched(Outside):
    """Wraps workflows with all that is within them."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"inside": True, **options})


class TestUnchanged(Unchanged):
    watched, scenarios, cancelled = Watched, INSIDE, INSIDE[:2]


def worked(watched: Outside) -> set[str]:
    history = watched.session.monitor.graph.history
    return {history.agent(n) for n in range(len(history.activation_ids))}


def test_the_executors_of_workflows_are_agents_named_by_the_executor_around_them() -> None:
    """The executor asks its workflow, and gets the answer, so that lineage passes through it."""
    watched = Watched()
    play(inside(deep), watched)
    watched.must_be_sound()
    assert watched.patterns == [] and watched.leaves_nothing_open()
    sent = [one for one in watched.records if isinstance(one, Emit) and one.type != "notice"]
    assert [name for one in sent for name in one.to] == [
        "start", "inner", "inner/start", "inner/inner/a", "inner/inner/b",
        "inner/inner/c", "inner/inner/__end__", "inner/inner", "inner/end", "inner/__end__",
        "inner", "end", "__end__",
    ]  # fmt: skip


def test_without_the_option_a_workflow_that_is_an_executor_is_one_agent() -> None:
    """It is off by default."""
    watched = Outside()
    play(inside(deep), watched)
    assert worked(watched) == {"start", "inner", "end", "__end__"}


def repeating(script: Script) -> Workflow:
    """Two executors that say the same to each other, twelve times."""

    def act(given: Any, number: int, ctx: Any) -> Any:
        return ctx.send_message("again") if number < 12 else ctx.yield_output("good")

    p = Parts(script, a=send("a text"), b=act)
    return p.build("a").add_edge(p.a, p.b).add_edge(p.b, p.a).build()


@pytest.mark.parametrize(("watched", "found"), [(Watched, {"LOOP", "LIVELOCK"}), (Outside, set())])
def test_a_loop_in_a_workflow_that_is_an_executor_is_found(watched: Any, found: set[str]) -> None:
    """LOOP and LIVELOCK are only seen from inside."""
    limits = Thresholds(loop_limit=5, livelock_turns=20).limits
    one = watched(setup=Setup(detectors=standard, limits=limits))
    play(inside(repeating), one)
    one.must_be_sound()
    assert {*one.patterns} == found
    rounds = [one for one in one.session.findings if one.pattern == "LIVELOCK"]
    assert all({"inner/a", "inner/b"} <= {*one.evidence["agents"]} for one in rounds)


def test_a_join_inside_that_waits_for_somebody_is_missing_from_the_answer() -> None:
    """The input of the join is open when the whole workflow answers."""
    inner, outer = Watched(), Outside()
    play(inside(half_join), inner)
    play(inside(half_join), outer)
    assert inner.patterns == ["ET"] and outer.patterns == []


def test_what_is_early_inside_goes_back_by_the_answer_of_the_whole() -> None:
    """The inner answer never goes back; the executors that said nothing in the end are asked."""
    watched = Watched("heal")
    outcome = play(inside(half_join), watched)
    watched.must_be_sound()
    assert {*watched.patterns} == {"ET"} and outcome.raised == ()
    assert outcome.per_agent()["a"] != play(inside(half_join)).per_agent()["a"]


def test_a_workflow_that_is_run_by_itself_is_asked_from_outside() -> None:
    """While the workflow around it is wrapped."""
    script = Script()
    inner = chain(script)
    watched = Watched()
    watched(around(script, inner))
    assert asyncio.run(ask(inner))
    watched.must_be_sound()
    assert watched.session.statistics().requests == 1
    assert worked(watched) == {"inner/a", "inner/b", "inner/c", "inner/__end__"}


def test_after_unwrap_nothing_inside_is_patched() -> None:
    """The inner workflow is as it was."""
    script = Script()
    inner = chain(script)
    before = {name: dict(vars(one)) for name, one in inner.executors.items()}
    runner = dict(vars(inner._runner))
    dig.unwrap(dig.wrap(around(script, inner), inside=True))
    assert {name: dict(vars(one)) for name, one in inner.executors.items()} == before
    assert vars(inner._runner) == runner


def test_two_executors_of_one_name_are_refused() -> None:
    """The message says which, and what to do."""
    script = Script()
    p = Parts(script, start=send("go"), **{"inner/a": ends})
    one = WorkflowExecutor(chain(script), id="inner")
    built = p.build("start").add_edge(p.start, one).add_edge(one, getattr(p, "inner/a")).build()
    with pytest.raises(SettingsError, match=r"two agents would be called 'inner/a'.*inside=True"):
        dig.wrap(built, inside=True)
    dig.unwrap(dig.wrap(built))


def test_one_workflow_as_two_executors_is_refused() -> None:
    """agent-framework wants an instance for each."""
    script = Script()
    p, inner = Parts(script, start=send("go")), chain(script)
    one, other = WorkflowExecutor(inner, id="one"), WorkflowExecutor(inner, id="other")
    built = p.build("start").add_edge(p.start, one).add_edge(one, other).build()
    with pytest.raises(SettingsError, match="one workflow is the work of two executors"):
        dig.wrap(built, inside=True)
