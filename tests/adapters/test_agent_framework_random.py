"""Microsoft agent-framework, wrapped: workflows that nobody has thought of, by hypothesis."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from agent_framework import Workflow, WorkflowBuilder
from hypothesis import given
from hypothesis import strategies as st

from dig import Inject, Reroute
from dig.detectors import standard
from dig.runtime.host import Setup

from .agent_framework_asked import ask, stream
from .agent_framework_teams import Parts, Watched
from .harness import Scenario, Script, play
from .test_gates import Keeper

NAMES = ("a", "b", "c", "d", "e")
TEXTS = ("x", "y", "xy")

names = st.sampled_from(NAMES)
moves = st.one_of(
    st.tuples(st.just("send"), st.sampled_from([*TEXTS, 17]), st.none() | names),
    st.tuples(st.just("send"), st.sampled_from(TEXTS), st.none()),
    st.tuples(st.just("pass on")),
    st.tuples(st.just("put out"), st.sampled_from(TEXTS)),
)
turns = st.lists(moves, max_size=3)
# If two fail in one step, the framework raises whichever error comes first in a set of tasks.
plans = st.fixed_dictionaries(
    {
        name: st.lists(turns | st.just([("fail",)]) if name == "e" else turns, max_size=3)
        for name in NAMES
    }
)
edges = st.lists(
    st.tuples(names, names, st.none() | st.sampled_from("xy")),
    max_size=6, unique_by=lambda edge: edge[:2],
)  # fmt: skip
joins = st.lists(st.sampled_from(NAMES[:4]), min_size=2, max_size=3, unique=True)
# What a gate wishes for an event.
notes = st.just(lambda event: Inject(event, "Mind the gap"))
detours = names.map(lambda name: lambda event: Reroute(event, "Over there", (name,)))
wishes = st.lists(notes | detours, max_size=1)


def team(plan: Any, single: Any, joined: list[str], drive: Any) -> Scenario:
    """A team whose executors do one planned thing after the other, then they only listen."""

    def act(name: str) -> Any:
        async def acts(given: Any, number: int, ctx: Any) -> None:
            todo = plan[name][number - 1] if number <= len(plan[name]) else []
            for what, *how in todo:
                if what == "fail":
                    raise ValueError(f"{name} failed")
                if what == "send":
                    await ctx.send_message(*how)
                elif what == "pass on":
                    await ctx.send_message(given)
                else:
                    await ctx.yield_output(*how)

        return acts

    def build(script: Script) -> Workflow:
        parts = Parts(script, **{name: act(name) for name in NAMES})
        return _connected(parts, single, joined).build()

    return Scenario("random", build, drive)


def _connected(parts: Parts, single: Any, joined: list[str]) -> WorkflowBuilder:
    built = parts.build("a", max_iterations=6)
    taken = {(source, "e") for source in joined}
    for source, target, text in single:
        if (source, target) not in taken:
            condition = None if text is None else lambda said, text=text: text in str(said)
            built.add_edge(getattr(parts, source), getattr(parts, target), condition=condition)
            taken.add((source, target))
    for source, target in pairwise(NAMES):  # so that all can be reached
        if (source, target) not in taken:
            built.add_edge(getattr(parts, source), getattr(parts, target))
    return built.add_fan_in_edges([getattr(parts, name) for name in joined], parts.e)


@given(plans, edges, joins, st.sampled_from([ask, stream]), st.integers(0, 99), st.integers(1, 90))
def test_any_workflow_runs_as_before_and_its_trace_is_sound(
    plan: Any, single: Any, joined: list[str], drive: Any, seed: int, step: int
) -> None:
    asked = team(plan, single, joined, drive)
    watched = Watched()
    bare, mine = play(asked, seed=seed), play(asked, watched, seed=seed)
    assert mine == bare and mine.steps == bare.steps
    watched.must_be_sound()
    watched = Watched()
    bare = play(asked, seed=seed, cancel_at=step)
    assert play(asked, watched, seed=seed, cancel_at=step) == bare
    watched.must_be_sound()
    watched = Watched("heal")
    play(asked, watched, seed=seed)
    watched.must_be_sound()


@given(plans, edges, joins, st.none() | st.integers(1, 90), wishes, st.sampled_from([0, 0.5, 30]))
def test_gates_that_keep_messages_and_send_them_elsewhere_leave_nothing_open(
    plan: Any, single: Any, joined: list[str], step: int | None, wishes: Any, after_s: float
) -> None:
    gate = Keeper("x", "xy", after_s=after_s, wishes=wishes)
    watched = Watched("heal", Setup(detectors=standard, gates=[gate]))
    play(team(plan, single, joined, ask), watched, cancel_at=step)
    watched.detach()
    assert watched.leaves_nothing_open()
    watched.must_be_sound()
