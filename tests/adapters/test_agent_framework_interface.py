"""Microsoft agent-framework, wrapped: used as before; what it holds, tells, and gives back."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import pairwise
from typing import Any

import agent_framework as af
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dig
from dig import Inject, Reroute
from dig.adapters import agent_framework as adapter
from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.graph.records import Emit, Start

from . import agent_framework_teams as teams
from .agent_framework_teams import (
    Parts,
    Watched,
    around,
    ask,
    ask_twice,
    chain,
    deep,
    ends,
    half_join,
    inside,
    joined,
    send,
    team,
)
from .framework_gates import Keeper, behind
from .harness import Scenario, Script, play
from .hostile_payloads import HOSTILE

# --- what is given back -----------------------------------------------------------------------


def parts_of(workflow: af.Workflow) -> list[Any]:
    """All objects that a wrapper could have changed."""
    runner = workflow._runner
    return [workflow, runner, runner.context, *runner._edge_runners, *workflow.executors.values()]


@pytest.mark.parametrize("build", [teams.fan, teams.talking], ids=["executors", "agents"])
def test_unwrapping_gives_a_workflow_back_as_it_was(build: Any) -> None:
    workflow = build(Script())
    before = [{**vars(one)} for one in parts_of(workflow)]
    assert dig.wrap(workflow) is workflow
    assert dig.wrap(workflow) is workflow  # twice does no harm
    assert [vars(one) for one in parts_of(workflow)] != before
    assert dig.unwrap(workflow) is workflow
    assert [vars(one) for one in parts_of(workflow)] == before


@pytest.mark.parametrize("first", [0, 1])
def test_workflows_that_share_executors_are_unwrapped_in_any_order(first: int) -> None:
    """The one that is still wrapped is seen as before; then nothing sees anything any more."""
    one = chain(Script())
    starting, *others = one.get_executors_list()
    builder = af.WorkflowBuilder(start_executor=starting, output_from="all")
    for sender, recipient in pairwise([starting, *others]):
        builder = builder.add_edge(sender, recipient)
    watched = [Watched(), Watched()]
    workflows = [watched[0](one), watched[1](builder.build())]
    watched[first].detach()
    asyncio.run(ask(workflows[1 - first]))
    counts = [each.session.statistics() for each in watched]
    assert (counts[1 - first].requests, counts[1 - first].turns) == (1, 3)
    assert counts[first].requests == 0
    watched[1 - first].detach()
    for workflow in workflows:
        asyncio.run(ask(workflow))
    assert [each.session.statistics() for each in watched] == counts


def test_a_workflow_may_be_wrapped_and_unwrapped_between_two_runs() -> None:
    async def drive(workflow: af.Workflow) -> Any:
        first = await ask(workflow)
        watched.detach()
        second = await ask(workflow)
        return [first, second]

    watched = Watched()
    assert play(team(chain, drive), watched) == play(team(chain, ask_twice))
    assert watched.session.statistics().requests == 1


# --- gates ------------------------------------------------------------------------------------


def test_what_comes_later_for_the_same_executor_waits_behind_what_is_kept() -> None:
    def twice(script: Script) -> af.Workflow:
        async def late(given: Any, number: int, ctx: Any) -> None:
            await asyncio.sleep(3)
            await ctx.send_message("second")

        p = Parts(script, a=send("go"), b=send("first"), c=late, d=ends)
        built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
        return built.add_edge(p.b, p.d).add_edge(p.c, p.d).build()

    watched = Watched("heal", behind(Keeper("first", after_s=5.0))())
    bare, mine = play(team(twice)), play(team(twice), watched)
    assert mine.per_agent()["d"] == bare.per_agent()["d"]
    assert mine.elapsed == bare.elapsed + 5
    watched.must_be_sound()


def test_a_gate_decides_about_a_message_to_a_join_that_never_has_all() -> None:
    gate = Keeper("b's", after_s=5.0)
    watched = Watched("heal", behind(gate)())
    bare, mine = play(team(half_join)), play(team(half_join), watched)
    assert gate.seen == ["b's"] and mine.elapsed == bare.elapsed + 5
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


# --- notes, and other ways --------------------------------------------------------------------


def test_an_agent_is_shown_notes_after_its_messages_and_hands_on_its_conversation_without() -> None:
    seen: list[list[str]] = []

    def act(texts: list[str], number: int) -> str:
        seen.append(texts)
        return "Hm"

    def three(script: Script) -> af.Workflow:
        made = teams.agents(script, ann=act, bob=act, cyd=act)
        return af.WorkflowBuilder(start_executor=made["ann"]).add_chain([*made.values()]).build()

    said = {"role": "assistant", "text": "Hm", "name": "ann"}
    gate = Keeper(said, after_s=0.0, wishes=[lambda event: Inject(event, "Mind the gap")])
    watched = Watched("heal", behind(gate)())
    play(team(three), watched)
    assert seen == [["?"], ["?", "Hm", "[monitor] Mind the gap"], ["?", "Hm", "Hm"]]
    watched.must_be_sound()


def test_annotate_puts_notes_into_what_an_executor_is_given() -> None:
    gate = Keeper("to b", after_s=0.0, wishes=[lambda event: Inject(event, "Hurry")])
    watched = Watched("heal", behind(gate)())
    watched.options["annotate"] = lambda data, notes: f"{data} ({', '.join(notes)})"
    outcome = play(team(chain), watched)
    assert "('to b (Hurry)'" in outcome.per_agent()["b"][0][1]
    watched.must_be_sound()


def rerouted(*to: str) -> tuple[Watched, Any]:
    gate = Keeper("go", wishes=[partial(Reroute, note="c has time", to=to)])
    watched = Watched("heal", behind(gate)())
    return watched, play(team(teams.two_workers), watched)


def test_a_message_goes_to_another_executor_that_can_take_it() -> None:
    watched, outcome = rerouted("c")
    assert "c did it" in str(outcome.returned) and "b" not in outcome.per_agent()
    watched.must_be_sound()


@pytest.mark.parametrize("to", [("nobody",), ("b", "c"), ("__end__",)], ids=str)
def test_where_a_message_cannot_go_a_note_goes_beside_it(to: tuple[str, ...]) -> None:
    watched, outcome = rerouted(*to)
    assert outcome.per_agent() == play(team(teams.two_workers)).per_agent()
    assert "downgraded" in watched.incidents()
    watched.must_be_sound()


def test_equal_messages_of_which_a_join_keeps_one_leave_nothing_open() -> None:
    def late_twice(script: Script) -> af.Workflow:
        async def late(given: Any, number: int, ctx: Any) -> None:
            await asyncio.sleep(3)
            await ctx.send_message("x")
            await ctx.send_message("x")

        return joined(script, late, send("c's"))

    watched = Watched()
    watched.must_change_nothing(team(late_twice))
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


# --- traces -----------------------------------------------------------------------------------


def test_an_answer_is_in_the_lineage_of_all_who_have_worked_for_it() -> None:
    watched = Watched()
    play(team(teams.fan), watched)
    (final,) = (row for row in watched.rows(Emit) if row.final)
    graph = watched.session.monitor.graph
    starts = {row.activation: row.agent for row in watched.rows(Start)}
    behind = {starts[name] for name in graph.ancestors(str(final.by))}
    assert behind == {"a", "b", "c", "d", "j"}


# --- what is passed on ------------------------------------------------------------------------


class Anything(af.Executor):  # type: ignore[misc]
    """Answers with what it is given, or sends something else on."""

    def __init__(self, id: str, *sent: Any) -> None:
        super().__init__(id)
        self._sent = sent

    @af.handler  # type: ignore[untyped-decorator]
    async def work(self, data: object, ctx: af.WorkflowContext[object, object]) -> None:
        """Something comes."""
        for said in self._sent:
            await ctx.send_message(said)
        if not self._sent:
            await ctx.yield_output(data)


@pytest.mark.parametrize(
    "name", sorted(HOSTILE.keys() - {"very deep"})
)  # agent-framework copies it
def test_whatever_an_executor_sends_it_arrives_and_is_told_of(name: str) -> None:
    """The wrapper loses track of nothing, so that the team is healed still."""
    said = HOSTILE[name]
    ann, bob = Anything("ann", [said], {"odd": said}), Anything("bob")
    flow = af.WorkflowBuilder(start_executor=ann, name="team").add_edge(ann, bob).build()
    watched = Watched("heal")

    async def run() -> list[Any]:
        outputs: list[Any] = (await watched(flow).run("?")).get_outputs()
        return outputs

    first, second = asyncio.run(run())
    assert first[0] is said and second["odd"] is said
    assert watched.leaves_nothing_open()


def test_an_agent_that_takes_no_messages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those before 1.23: a note would have no way to it."""

    async def run(self: Any, ctx: Any) -> None: ...

    monkeypatch.setattr(af.AgentExecutor, "_run_agent", run)
    with pytest.raises(SettingsError, match="in another way: run takes no messages"):
        adapter.plan(chain(Script()))


# --- inside ---


class Inside(Watched):
    """Wraps workflows with all that is within them."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"inside": True, **options})


def test_the_executors_of_workflows_are_agents_named_by_the_executor_around_them() -> None:
    """The executor asks its workflow, and gets the answer, so that lineage passes through it."""
    watched = Inside()
    play(inside(deep), watched)
    assert watched.patterns == []
    watched.must_be_over()
    sent = [row for row in watched.rows(Emit) if row.type != "notice"]
    assert [name for one in sent for name in one.to] == [
        "start", "inner", "inner/start", "inner/inner/a", "inner/inner/b",
        "inner/inner/c", "inner/inner/__end__", "inner/inner", "inner/end", "inner/__end__",
        "inner", "end", "__end__",
    ]  # fmt: skip


def test_without_the_option_a_workflow_that_is_an_executor_is_one_agent() -> None:
    """It is off by default."""
    watched = Watched()
    play(inside(deep), watched)
    assert {*watched.ran()} == {"start", "inner", "end", "__end__"}


def repeating(script: Script) -> af.Workflow:
    """Two executors that say the same to each other, twelve times."""

    def act(given: Any, number: int, ctx: Any) -> Any:
        return ctx.send_message("again") if number < 12 else ctx.yield_output("good")

    p = Parts(script, a=send("a text"), b=act)
    return p.build("a").add_edge(p.a, p.b).add_edge(p.b, p.a).build()


@pytest.mark.parametrize(("watched", "found"), [(Inside, {"LOOP", "LIVELOCK"}), (Watched, set())])
def test_a_loop_in_a_workflow_that_is_an_executor_is_found(watched: Any, found: set[str]) -> None:
    """LOOP and LIVELOCK are only seen from inside."""
    one = watched(limits=Thresholds(loop_limit=5, livelock_turns=20).limits)
    play(inside(repeating), one)
    one.must_be_sound()
    assert {*one.patterns} == found
    rounds = [one for one in one.session.findings if one.pattern == "LIVELOCK"]
    assert all({"inner/a", "inner/b"} <= {*one.evidence["agents"]} for one in rounds)


def test_a_join_inside_that_waits_for_somebody_is_missing_from_the_answer() -> None:
    """The input of the join is open when the whole workflow answers."""
    inner, outer = Inside(), Watched()
    play(inside(half_join), inner)
    play(inside(half_join), outer)
    assert inner.patterns == ["ET"] and outer.patterns == []


def test_what_is_early_inside_goes_back_by_the_answer_of_the_whole() -> None:
    """The inner answer never goes back; the executors that said nothing in the end are asked."""
    watched = Inside("heal")
    outcome = play(inside(half_join), watched)
    watched.must_be_sound()
    assert {*watched.patterns} == {"ET"} and outcome.raised == ()
    assert outcome.per_agent()["a"] != play(inside(half_join)).per_agent()["a"]


def test_a_workflow_that_is_run_by_itself_is_asked_from_outside() -> None:
    """While the workflow around it is wrapped."""
    script = Script()
    inner = chain(script)
    watched = Inside()
    watched(around(script, inner))
    assert asyncio.run(ask(inner))
    watched.must_be_sound()
    assert watched.session.statistics().requests == 1
    assert {*watched.ran()} == {"inner/a", "inner/b", "inner/c", "inner/__end__"}


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
    one = af.WorkflowExecutor(chain(script), id="inner")
    built = p.build("start").add_edge(p.start, one).add_edge(one, getattr(p, "inner/a")).build()
    with pytest.raises(SettingsError, match=r"two agents are called 'inner/a'.*inside=True"):
        dig.wrap(built, inside=True)
    dig.unwrap(dig.wrap(built))


def test_one_workflow_as_two_executors_is_refused() -> None:
    """agent-framework wants an instance for each."""
    script = Script()
    p, inner = Parts(script, start=send("go")), chain(script)
    one, other = af.WorkflowExecutor(inner, id="one"), af.WorkflowExecutor(inner, id="other")
    built = p.build("start").add_edge(p.start, one).add_edge(one, other).build()
    with pytest.raises(SettingsError, match="one workflow is the work of two executors"):
        dig.wrap(built, inside=True)


# --- workflows that nobody has thought of ---

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


def planned(plan: Any, single: Any, meets: list[str], drive: Any) -> Scenario:
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

    def build(script: Script) -> af.Workflow:
        parts = Parts(script, **{name: act(name) for name in NAMES})
        return _connected(parts, single, meets).build()

    return Scenario("random", build, drive)


def _connected(parts: Parts, single: Any, meets: list[str]) -> af.WorkflowBuilder:
    built = parts.build("a", max_iterations=6)
    taken = {(source, "e") for source in meets}
    for source, target, text in single:
        if (source, target) not in taken:
            condition = None if text is None else lambda said, text=text: text in str(said)
            built.add_edge(getattr(parts, source), getattr(parts, target), condition=condition)
            taken.add((source, target))
    for source, target in pairwise(NAMES):  # so that all can be reached
        if (source, target) not in taken:
            built.add_edge(getattr(parts, source), getattr(parts, target))
    return built.add_fan_in_edges([getattr(parts, name) for name in meets], parts.e)


@given(
    plans,
    edges,
    joins,
    st.sampled_from([ask, teams.stream]),
    st.integers(0, 99),
    st.integers(1, 90),
)
def test_any_workflow_runs_as_before_and_its_trace_is_sound(
    plan: Any, single: Any, meets: list[str], drive: Any, seed: int, step: int
) -> None:
    asked = planned(plan, single, meets, drive)
    watched = Watched()
    watched.must_change_nothing(asked, seed=seed)
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
    plan: Any, single: Any, meets: list[str], step: int | None, wishes: Any, after_s: float
) -> None:
    gate = Keeper("x", "xy", after_s=after_s, wishes=wishes)
    watched = Watched("heal", behind(gate)())
    play(planned(plan, single, meets, ask), watched, cancel_at=step)
    watched.detach()
    watched.must_be_over()
