"""Microsoft agent-framework, wrapped: used as before; what it holds, refuses, and gives back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import agent_framework as af
import pytest
from agent_framework._workflows._runner import RunnerImpl

import dig
from dig import Inject, Reroute
from dig.adapters import agent_framework as adapter
from dig.detectors import standard
from dig.errors import SettingsError
from dig.graph.records import Emit, Start
from dig.runtime.host import Setup

from . import agent_framework_teams as teams
from .agent_framework_asked import ask, ask_twice
from .harness import Scenario, Script, play
from .hostile_payloads import HOSTILE
from .test_gates import Keeper


def team(build: Any, drive: Any = ask) -> Scenario:
    return Scenario(build.__name__, build, drive)


# --- what is refused --------------------------------------------------------------------------


def test_only_workflows_are_wrapped_and_the_message_says_what_to_wrap_instead() -> None:
    with pytest.raises(SettingsError, match="Agent is no workflow; wrap the Workflow that"):
        dig.wrap(af.Agent(teams.Model(Script(), "ann", lambda texts, number: ""), name="ann"))


def test_what_a_workflow_cannot_do_is_refused_if_it_is_demanded() -> None:
    with pytest.raises(SettingsError, match="a workflow cannot redeliver; it can: annotate"):
        dig.wrap(teams.chain(Script()), require={"redeliver"})


def test_a_framework_that_is_put_together_in_another_way_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workflow = teams.chain(Script())
    monkeypatch.delattr(RunnerImpl, "run_until_convergence")
    with pytest.raises(SettingsError, match=r"in another way: RunnerImpl has no run_until"):
        adapter.plan(workflow)


def test_an_executor_with_the_name_of_the_end_is_refused() -> None:
    p = teams.Parts(Script(), __end__=teams.ends)
    with pytest.raises(SettingsError, match="an executor is called __end__"):
        dig.wrap(p.build("__end__").build())


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


def test_another_workflow_is_not_seen() -> None:
    watched = teams.Watched()
    watched(teams.chain(Script()))
    assert play(team(teams.chain)).returned is not None
    assert watched.session.statistics().requests == 0
    watched.detach()


@pytest.mark.parametrize("first", [0, 1])
def test_workflows_that_share_executors_are_unwrapped_in_any_order(first: int) -> None:
    """The one that is still wrapped is seen as before; then nothing sees anything any more."""
    one = teams.chain(Script())
    starting, *others = one.get_executors_list()
    builder = af.WorkflowBuilder(start_executor=starting, output_from="all")
    for sender, recipient in pairwise([starting, *others]):
        builder = builder.add_edge(sender, recipient)
    watched = [teams.Watched(), teams.Watched()]
    workflows = [watched[0](one), watched[1](builder.build())]
    watched[first].detach()
    asyncio.run(ask(workflows[1 - first]))
    counts = [each.session.statistics() for each in watched]
    assert (counts[1 - first].requests, counts[1 - first].turns) == (1, 4)
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

    watched = teams.Watched()
    assert play(team(teams.chain, drive), watched) == play(team(teams.chain, ask_twice))
    assert watched.session.statistics().requests == 1


# --- gates ------------------------------------------------------------------------------------


def test_a_gate_keeps_a_message_and_executors_that_are_not_concerned_go_on() -> None:
    gate = Keeper("go", after_s=5.0)
    watched = teams.Watched("heal", Setup(detectors=standard, gates=[gate]))

    def two_ways(script: Script) -> af.Workflow:
        async def both(given: Any, number: int, ctx: Any) -> None:
            await ctx.send_message("go", "b")
            await ctx.send_message("run", "c")

        p = teams.Parts(script, a=both, b=teams.ends, c=teams.ends)
        return p.build("a").add_edge(p.a, p.b).add_edge(p.a, p.c).build()

    bare, mine = play(team(two_ways)), play(team(two_ways), watched)
    assert gate.seen == ["go"] and mine.per_agent() == bare.per_agent()
    assert [who for who, what, _ in mine.log if what == "ends"] == ["a", "c", "b"]
    assert mine.elapsed >= bare.elapsed + 4
    watched.must_be_sound()


def test_what_comes_later_for_the_same_executor_waits_behind_what_is_kept() -> None:
    def twice(script: Script) -> af.Workflow:
        async def late(given: Any, number: int, ctx: Any) -> None:
            await asyncio.sleep(3)
            await ctx.send_message("second")

        p = teams.Parts(script, a=teams.send("go"), b=teams.send("first"), c=late, d=teams.ends)
        built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
        return built.add_edge(p.b, p.d).add_edge(p.c, p.d).build()

    watched = teams.Watched("heal", Setup(detectors=standard, gates=[Keeper("first", after_s=5.0)]))
    bare, mine = play(team(twice)), play(team(twice), watched)
    assert mine.per_agent()["d"] == bare.per_agent()["d"]
    assert mine.elapsed == bare.elapsed + 5
    watched.must_be_sound()


def test_a_gate_keeps_an_answer() -> None:
    gate = Keeper("to c done", after_s=5.0)
    watched = teams.Watched("heal", Setup(detectors=standard, gates=[gate]))
    bare, mine = play(team(teams.chain)), play(team(teams.chain), watched)
    assert mine.returned == bare.returned and mine.elapsed > bare.elapsed + 4
    watched.must_be_sound()


def test_a_gate_decides_about_a_message_to_a_join_that_never_has_all() -> None:
    gate = Keeper("b's", after_s=5.0)
    watched = teams.Watched("heal", Setup(detectors=standard, gates=[gate]))
    bare, mine = play(team(teams.half_join)), play(team(teams.half_join), watched)
    assert gate.seen == ["b's"] and mine.elapsed == bare.elapsed + 5
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


def test_who_waits_for_what_is_held_may_be_cancelled_at_every_await() -> None:
    for step in range(1, 60):
        setup = Setup(detectors=standard, gates=[Keeper("go", "b's", after_s=5.0)])
        watched = teams.Watched("heal", setup)
        play(team(teams.fan), watched, cancel_at=step)
        assert watched.leaves_nothing_open(), f"cancelled before step {step}"


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
    watched = teams.Watched("heal", Setup(detectors=standard, gates=[gate]))
    play(team(three), watched)
    assert seen == [["?"], ["?", "Hm", "[monitor] Mind the gap"], ["?", "Hm", "Hm"]]
    watched.must_be_sound()


def test_annotate_puts_notes_into_what_an_executor_is_given() -> None:
    gate = Keeper("to b", after_s=0.0, wishes=[lambda event: Inject(event, "Hurry")])
    watched = teams.Watched("heal", Setup(detectors=standard, gates=[gate]))
    watched.options["annotate"] = lambda data, notes: f"{data} ({', '.join(notes)})"
    outcome = play(team(teams.chain), watched)
    assert "('to b (Hurry)'" in outcome.per_agent()["b"][0][1]
    watched.must_be_sound()


def two_workers(script: Script) -> af.Workflow:
    p = teams.Parts(
        script,
        a=teams.send("go", "b"),
        b=teams.ends,
        c=teams.put_out("c did it"),
        d=teams.passes_on,
    )
    built = p.build("a").add_edge(p.a, p.b)
    return built.add_edge(p.a, p.c).add_edge(p.b, p.d).build()


def rerouted(*to: str) -> tuple[teams.Watched, Any]:
    gate = Keeper("go", after_s=1.0, wishes=[partial(_elsewhere, to)])
    watched = teams.Watched("heal", Setup(detectors=standard, gates=[gate]))
    return watched, play(team(two_workers), watched)


def _elsewhere(to: Sequence[str], event: str) -> Reroute:
    return Reroute(event, "c has time", tuple(to))


def test_a_message_goes_to_another_executor_that_can_take_it() -> None:
    watched, outcome = rerouted("c")
    assert "c did it" in str(outcome.returned) and "b" not in outcome.per_agent()
    watched.must_be_sound()


@pytest.mark.parametrize("to", [("nobody",), ("b", "c"), ("__end__",)], ids=str)
def test_where_a_message_cannot_go_a_note_goes_beside_it(to: tuple[str, ...]) -> None:
    watched, outcome = rerouted(*to)
    assert outcome.per_agent() == play(team(two_workers)).per_agent()
    assert "downgraded" in watched.incidents()
    watched.must_be_sound()


def test_equal_messages_of_which_a_join_keeps_one_leave_nothing_open() -> None:
    def late_twice(script: Script) -> af.Workflow:
        async def late(given: Any, number: int, ctx: Any) -> None:
            await asyncio.sleep(3)
            await ctx.send_message("x")
            await ctx.send_message("x")

        p = teams.Parts(script, a=teams.send("go"), b=late, c=teams.send("c's"), j=teams.ends)
        built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c])
        return built.add_fan_in_edges([p.b, p.c], p.j).build()

    watched = teams.Watched()
    assert play(team(late_twice), watched) == play(team(late_twice))
    watched.must_be_sound()
    assert watched.leaves_nothing_open()


# --- traces -----------------------------------------------------------------------------------


def test_an_answer_is_in_the_lineage_of_all_who_have_worked_for_it() -> None:
    watched = teams.Watched()
    play(team(teams.fan), watched)
    (final,) = (r for r in watched.records if isinstance(r, Emit) and r.final)
    graph = watched.session.monitor.graph
    starts = {r.activation: r.agent for r in watched.records if isinstance(r, Start)}
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
    watched = teams.Watched("heal")

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
        adapter.plan(teams.chain(Script()))
