"""Ladders: a step follows where the one before has not helped, and each ladder ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dig import Budget, Create, Finding, Healer, InteractionGraph, Limits, Output
from dig.detectors import standard, standard_healers
from dig.detectors.interventions import Intervention
from dig.detectors.ladder import LadderStep, Progress, Trouble
from dig.detectors.patterns.deadlock import Deadlock
from dig.detectors.patterns.missing_termination import HealMissingTermination
from dig.detectors.policy import HEAL_ALL
from dig.monitor.messages import Effect
from dig.monitor.monitor import Monitor
from dig.monitor.policies import Delayed, Disturbed, ToAgents
from dig.runtime import Decision, EventFate, NewEvent, Plan, RunResult, Setup, View, simulate
from dig.runtime.simulator import Happening
from tests.conservation import Allowed, conservation
from tests.helpers import Recorder, Stage, rows

WINDOWS = Limits(mc_window_s=10.0, oe_window_s=5.0, dl_window_s=10.0)
HANGS_S = 400.0

Behaviour = Callable[[View], Decision]
Team = dict[str, "Behaviour | Acts"]


class Acts:
    """An agent of a script: it thinks for a second, or longer, and does as a function says."""

    def __init__(self, behaviour: Behaviour, think_s: float = 1.0) -> None:
        self.behaviour = behaviour
        self.think_s = think_s

    def plan(self, view: View) -> Plan:
        return Plan(self.think_s, self.behaviour(view))


def waits(view: View) -> Decision:
    """It keeps all, notes too."""
    return Decision(fates=[EventFate(event=e.id, fate="delay") for e in view.events])


def reads(view: View) -> Decision:
    """It reads notes, and keeps all else."""
    return Decision()


def consumes(view: View, outputs: Sequence[NewEvent] = ()) -> Decision:
    fates = [EventFate(event=e.id, fate="consume") for e in view.events]
    return Decision(fates=fates, outputs=list(outputs))


def submits(view: View) -> Decision:
    """It answers whatever it is given; notes alone it reads."""
    if all(event.sender == "system" for event in view.events):
        return consumes(view)
    return consumes(view, [NewEvent(payload=f"by {view.agent}", final=True)])


def only_problems(view: View) -> Decision:
    """It answers problems, and insists on answers that come back."""
    is_asked = any(event.type == "problem" or event.final for event in view.events)
    return submits(view) if is_asked else waits(view)


def hands_to(name: str) -> Behaviour:
    """It hands a problem to an agent; its own part is no more."""

    def act(view: View) -> Decision:
        asked = any(event.type == "problem" for event in view.events)
        return consumes(view, [NewEvent(payload="part", to=[name])]) if asked else waits(view)

    return act


def run(
    team: Mapping[str, Behaviour | Acts], *, limits: Limits = WINDOWS, limit_s: float = 300.0,
    script: Sequence[Happening] = (), **more: Any,
) -> tuple[RunResult, Recorder]:  # fmt: skip
    """A team in virtual time; all laws of a run hold, each step has its time."""
    agents = {name: one if isinstance(one, Acts) else Acts(one) for name, one in team.items()}
    sink, more = Recorder(), {"policy": HEAL_ALL, "ladder": True, **more}
    setup = Setup(
        seed=1, detectors=standard, healers=standard_healers, limits=limits, limit_s=limit_s,
        activation_timeout_s=10_000.0, **more,
    )  # fmt: skip
    result = simulate(agents, Output("problem", (next(iter(team)),), "problem"), setup=setup,
                      script=script, sink=sink)  # fmt: skip
    patience_us = round(limits.dl_window_s * 1_000_000) if setup.ladder else None
    conservation(sink, Allowed(ladder_us=patience_us, interference=True))
    return result, sink


def steps(sink: Recorder, pattern: str) -> list[tuple[str, Any]]:
    """What was done about the findings of a pattern: the action, and to whom."""
    found = {row.t for row in rows(sink, "finding") if row.pattern == pattern}
    return [(row.action, row.to) for row in rows(sink, "heal") if row.finding in found]


def test_held_work_goes_to_another_agent_when_a_note_does_not_help() -> None:
    """DL, second step: an agent that is free gets what the deaf one holds, and answers."""
    result, sink = run({"ann": hands_to("deaf"), "deaf": waits, "bob": submits})
    assert result.answer == "by bob"
    assert steps(sink, "DL") == [("create", ("ann", "deaf", "bob")), ("reassign", ("bob",))]


def test_without_ladders_the_same_note_is_all_there_is() -> None:
    """`dig`, the paper's method, says the same again, and the run ends without an answer."""
    result, sink = run({"ann": hands_to("deaf"), "deaf": waits, "bob": submits}, ladder=False)
    assert result.answer is None
    assert {action for action, _ in steps(sink, "DL")} == {"create", "refused"}


def test_the_problem_begins_anew_when_giving_work_away_does_not_help() -> None:
    """DL, third step: one more agent gets the problem, with the names of those that did not act."""

    team = {"ann": hands_to("deaf"), "deaf": waits, "cyd": only_problems}
    result, sink = run(team)
    assert result.answer == "by cyd"
    assert [action for action, _ in steps(sink, "DL")] == ["create", "reassign", "restart"]
    about = [row.about for row in rows(sink, "heal") if row.action == "restart"]
    assert "deaf" in about[0]["without"]


def test_another_agent_is_asked_to_submit_and_then_the_problem_begins_anew() -> None:
    """MC: a note to the one that worked last, a note to another one, a restart."""

    def swallows(view: View) -> Decision:
        return consumes(view)

    result, sink = run({"ann": swallows, "bob": only_problems, "cyd": only_problems})
    done = [step for step in steps(sink, "MC") if step[0] != "refused"]
    assert done == [("create", ("ann",)), ("create", ("bob",)), ("restart", ("cyd",))]
    assert result.answer == "by cyd"


def fails(view: View) -> Decision:
    raise RuntimeError("it cannot")


def test_what_a_failed_agent_holds_goes_to_another_agent_with_the_first_note() -> None:
    """DL: an agent whose turns fail is not waited for once more."""

    def hands_out_once(view: View) -> Decision:
        asked = any(event.type == "problem" for event in view.events)
        return hands_to("bob")(view) if asked else submits(view)

    result, sink = run({"ann": hands_out_once, "bob": fails})
    assert result.answer == "by ann"
    assert steps(sink, "DL") == [("create", ("ann", "bob")), ("reassign", ("ann",))]
    assert len({row.us for row in rows(sink, "heal")}) == 1


@pytest.mark.parametrize(("troubles", "asked"), [({}, "a"), ({"a": "failed"}, "b")])
def test_an_agent_that_has_failed_is_not_the_first_to_be_asked_for_the_answer(
    troubles: dict[str, Trouble], asked: str
) -> None:
    """MC: another one is asked at once."""
    stage = Stage("ab")
    stage.give("a")
    stage.turn("a")
    finding, step = Finding("MC", 0, 0, {}, {"last": "a1"}), LadderStep(troubles=troubles)
    (note,) = HealMissingTermination().escalate(stage.graph, finding, step)
    assert isinstance(note, Create)
    assert note.to == (asked,)


def test_a_problem_that_begins_anew_is_handed_out_to_none_that_swallows_work() -> None:
    """An agent that consumed work and generated nothing is left out, beside those that waited."""

    def hands_out(view: View) -> Decision:
        if any(event.type == "problem" for event in view.events):
            outputs = [NewEvent(payload="part", to=[name]) for name in ("deaf", "dumb")]
            return consumes(view, outputs)
        return waits(view)

    _, sink = run({"ann": hands_out, "deaf": waits, "dumb": consumes, "cyd": only_problems})
    (about,) = [row.about for row in rows(sink, "heal") if row.action == "restart"]
    assert {"deaf", "dumb"} <= {*about["without"]}


def test_a_problem_that_began_anew_goes_on_at_the_step_that_was_reached() -> None:
    """DL about what was handed out then: no note again, and no giving away of what waits."""
    hands = hands_to("deaf")
    _, sink = run({"ann": hands, "deaf": waits, "cyd": hands, "dan": hands})
    done = [action for action, _ in steps(sink, "DL") if action != "refused"]
    assert done[:4] == ["create", "reassign", "restart", "restart"]


def test_work_is_not_given_to_an_agent_that_hangs() -> None:
    """Even if all others have not acted: one of these may, and it cannot."""
    stage = Stage("abc")
    for agent in "abc":
        stage.give(agent)
    stage.start("c")
    step = LadderStep(patience=10_000_000, now=9_000_000)
    assert step.helper(stage.graph, ("a", "b")) == "c"
    assert replace(step, now=11_000_000).helper(stage.graph, ("a", "b")) == "a"


def question_to(agent: str) -> Happening:
    return 0.0, lambda monitor: monitor.inject(Output("question", (agent,), "problem"))


def test_in_a_session_the_steps_about_one_problem_do_not_end_with_the_answer_to_another() -> None:
    """MC about a question to bob: cyd's work on another is no progress, its answer no end."""

    def swallows(view: View) -> Decision:
        return consumes(view)

    def slowly(view: View) -> Decision:
        if any(event.type == "problem" for event in view.events):
            return consumes(view, [NewEvent(payload="part", to=["cyd"])])
        return submits(view)

    _, sink = run(
        {"bob": swallows, "cyd": Acts(slowly, 9.0), "dan": only_problems},
        session=True, script=[question_to("cyd")],
    )  # fmt: skip
    assert [action for action, _ in steps(sink, "MC")] == ["create", "create", "restart"]
    at = rows_at(sink, "MC")
    (first, second) = [row.us for row in rows(sink, "deliver") if row.to is None]
    assert at[0] < first < at[1] < second


def busy(rounds: int, then: str) -> Behaviour:
    """It sends itself messages, so that the team's turns are known; then it hands work on."""

    def act(view: View) -> Decision:
        step = max((e.payload for e in view.events if isinstance(e.payload, int)), default=0)
        if any(event.sender == "system" for event in view.events):
            return reads(view)
        if not step and not any(event.type == "problem" for event in view.events):
            return reads(view)
        to, payload = ("ann", step + 1) if step < rounds else (then, "part")
        return consumes(view, [NewEvent(payload=payload, to=[to])])

    return act


STALLS = replace(WINDOWS, stall_factor=2.0, stall_min_s=5.0, activation_limit_s=5.0)


def test_what_a_stalled_agent_holds_is_given_to_another() -> None:
    """STALL, first step: the other agent answers long before the hanging one would."""
    team: Team = {"ann": busy(11, "slow"), "slow": Acts(submits, HANGS_S), "bob": submits}
    result, sink = run(team, limits=STALLS)
    assert result.answer == "by bob" and result.seconds < HANGS_S / 2
    assert steps(sink, "STALL")[0][0] == "reassign"


def test_an_agent_that_stays_stalled_is_taken_out_and_what_it_says_late_is_written_down() -> None:
    """STALL, second step: it leaves, an incident says why, and nothing of it enters the graph."""
    team: Team = {"ann": busy(11, "slow"), "slow": Acts(submits, HANGS_S), "bob": waits}
    result, sink = run(team, limits=STALLS, limit_s=1000.0)
    told = {row.what: row.detail for row in rows(sink, "incident")}
    hung = told["replaced"]["activation"]
    assert [row.agent for row in rows(sink, "leave")] == ["slow"]
    assert told["replaced"]["why"] and told["late output"]["said"] == "by slow"
    assert hung == told["late output"]["activation"]
    assert hung not in {row.activation for row in rows(sink, "end")}
    assert result.answer is None


def test_lost_work_goes_to_its_generator_then_to_another_then_up() -> None:
    """OE: whoever discards it, the next agent gets it; at the end those that asked are told."""

    def discards(view: View) -> Decision:
        lost = [e for e in view.events if e.sender != "system" and e.type != "problem"]
        fates = [EventFate(event=e.id, fate="discard") for e in lost]
        return Decision(fates=fates)

    def ann(view: View) -> Decision:
        posed = [event for event in view.events if event.type == "problem"]
        return hands_to("bob")(view) if posed else discards(view)

    _, sink = run({"ann": ann, "bob": discards, "cyd": discards})
    assert steps(sink, "OE")[:2] == [("reroute", ("ann",)), ("create", ("ann", "bob", "cyd"))]


def test_work_whose_generator_has_left_is_given_to_another_agent() -> None:
    """OE: it keeps its payload, so the other can do it."""

    def ann(view: View) -> Decision:
        return consumes(view, [NewEvent(payload="part", to=["nobody"])])

    def leave(monitor: Monitor) -> list[Effect]:
        return monitor.leave("ann")

    result, sink = run({"ann": ann, "bob": submits}, script=[(3.0, leave)])
    assert result.answer == "by bob"
    assert steps(sink, "OE") == [("redeliver", ("bob",))]


def test_a_ping_pong_is_broken_by_an_agent_outside_of_it() -> None:
    """ER: a note first; at the next doubling somebody else gets the event."""

    def passes_to(name: str) -> Behaviour:
        def act(view: View) -> Decision:
            work = [event for event in view.events if event.sender != "system"]
            fates = [EventFate(event=e.id, fate="reroute", to=[name]) for e in work]
            return Decision(fates=fates)

        return act

    result, sink = run({"ann": passes_to("bob"), "bob": passes_to("ann"), "cyd": submits})
    assert steps(sink, "ER") == [("inject", None), ("reroute", ("cyd",))]
    assert result.answer == "by cyd"


def returns_to(name: str, says: Callable[[View], Any]) -> Behaviour:
    """It answers each message of another agent, and a problem, by a message to an agent."""

    def act(view: View) -> Decision:
        is_asked = any(event.sender != "system" for event in view.events)
        return consumes(view, [NewEvent(payload=says(view), to=[name])] if is_asked else [])

    return act


@pytest.mark.parametrize(
    ("pattern", "says"), [("LOOP", lambda view: "again"), ("LIVELOCK", lambda view: view.turn)]
)
def test_a_problem_begins_anew_without_those_that_come_no_further(
    pattern: str, says: Callable[[View], Any]
) -> None:
    """Notes first; when it is said, or goes round, for long, an agent outside gets the problem."""
    limits = replace(WINDOWS, loop_limit=3, livelock_turns=10, livelock_agents=2)
    team = {"ann": returns_to("bob", says), "bob": returns_to("ann", says), "cyd": submits}
    result, sink = run(team, limits=limits)
    assert result.answer == "by cyd"
    taken = steps(sink, pattern)
    assert taken[0][0] != "restart" and ("restart", ("cyd",)) in taken


def early(view: View) -> Decision:
    """It hands out a part, and answers without it, again and again."""
    if any(event.type == "problem" for event in view.events):
        part = NewEvent(payload="part", to=["deaf"], type="part")
        return consumes(view, [part, NewEvent(payload="go", to=["ann"])])
    return consumes(view, [NewEvent(payload="early", final=True)])


def test_missing_work_is_handed_out_again_before_an_answer_without_it_is_accepted() -> None:
    """ET: another agent gets the part that nobody does; what is said beside the answer names it."""
    result, sink = run({"ann": early, "deaf": waits, "dull": waits})
    assert ("reassign", ("dull",)) in steps(sink, "ET")
    assert result.answer == "early" and "accepted as it is" in result.notes[-1]
    assert result.left.unconsumed


@pytest.mark.parametrize(
    "more",
    [{"policy": replace(HEAL_ALL, refuse=("reassign",))}, {"means": ("bounce", "create", "note")}],
    ids=["policy", "means"],
)
def test_an_answer_does_not_wait_for_work_that_no_other_agent_can_be_given(
    more: dict[str, Any],
) -> None:
    """It is accepted as soon as without ladders, be it a policy or the host that refuses."""
    team: Team = {"ann": early, "deaf": waits, "dull": waits}
    result, _ = run(team, **more)
    assert result.answer == "early"
    assert result.seconds == run(team, ladder=False, **more)[0].seconds


def test_a_late_event_is_delivered_again() -> None:
    """LATE: the trace calls it so."""
    assert [row.action for row in rows(_late()[1], "heal")] == ["redeliver"]


def _late() -> tuple[RunResult, Recorder]:
    lost = Disturbed(Delayed(ToAgents(("bob",)), after_s=500.0))

    def ann(view: View) -> Decision:
        return consumes(view, [NewEvent(payload="part", to=["bob"], policy=lost)])

    return run({"ann": ann, "bob": submits}, limits=replace(WINDOWS, late_window_s=5.0))


# --- ladders end, and can be refused ------------------------------------------------------------


class Gives(Healer):
    """Heals at once, and has nothing to do in a further step."""

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        yield Create("Go on.", tuple(graph.agents))

    def escalate(
        self, graph: InteractionGraph, finding: Finding, step: LadderStep
    ) -> Iterator[Intervention]:
        return self.heal(graph, finding) if step.number == 1 else iter(())

    def progress(self, graph: InteractionGraph, finding: Finding, step: LadderStep) -> Progress:
        return "none"


def test_a_step_that_has_nothing_to_do_is_told() -> None:
    """The next step is due some time after it, so a replay has to know when it was."""
    stage = Stage(
        "ab", limits=WINDOWS, detectors=[Deadlock()], healers={"DL": Gives()}, ladder=True
    )
    stage.give("a")
    for _ in range(20):
        stage.wait(WINDOWS.dl_window_s)
    told = [(row.action, row.reason) for row in rows(stage.sink, "heal")]
    assert told[:2] == [("create", None), ("refused", "there is nothing that this step could do")]


@pytest.mark.parametrize(
    ("budget", "taken"),
    [
        (Budget(), ["create", "reassign", "restart"]),
        (Budget(per_subject=2), ["create", "reassign"]),
        (Budget(per_problem=1), ["create", "reassign", "create"]),
        (Budget(per_problem=0), ["create", "create", "create"]),
    ],
)
def test_every_ladder_ends_within_its_budget(budget: Budget, taken: list[str]) -> None:
    """Agents that ignore everything get as many steps as there may be; then notes alone."""
    result, sink = run({"ann": hands_to("bob"), "bob": waits, "cyd": waits}, budget=budget)
    done = [action for action, _ in steps(sink, "DL") if action != "refused"]
    assert done[: len(taken)] == taken
    assert {*done[len(taken) :]} <= {"create"}
    reasons = {row.reason for row in rows(sink, "heal")}
    assert f"all {budget.per_subject} steps about this were taken" in reasons
    assert result.outcome == "stopped"


def rows_at(sink: Recorder, pattern: str) -> list[int]:
    """The moments of the steps about a pattern."""
    found = {row.t for row in rows(sink, "finding") if row.pattern == pattern}
    healed = [row for row in rows(sink, "heal") if row.finding in found]
    return [row.us for row in healed if row.action != "refused"]


def test_a_policy_refuses_single_steps() -> None:
    """The refusal is written down, and the ladder goes on to the next step."""
    policy = replace(HEAL_ALL, refuse=("reassign",))
    result, sink = run({"ann": hands_to("deaf"), "deaf": waits, "bob": submits}, policy=policy)
    reasons = [row.reason for row in rows(sink, "heal") if row.action == "refused"]
    assert reasons[0] == "the policy refuses the step 'reassign'"
    assert "restart" in {row.action for row in rows(sink, "heal")}
    assert result.answer == "by bob"


def test_what_means_of_healing_do_not_allow_is_refused() -> None:
    """Without redirects no work is given away, and no agent is taken out."""
    team: Team = {"ann": busy(11, "slow"), "slow": Acts(submits, HANGS_S), "bob": waits}
    _, sink = run(team, limits=STALLS, limit_s=1000.0, means=("bounce", "create", "note"))
    assert {row.action for row in rows(sink, "heal")} <= {"inject", "create", "refused"}
    assert not rows(sink, "leave")


def test_a_step_has_time_to_help_that_is_learned_from_the_team() -> None:
    """A team of slow turns gets twice as long as nine of ten of them between two steps."""
    slow: Team = {"ann": Acts(busy(11, "deaf"), 30.0), "deaf": waits, "bob": Acts(waits, 1.0)}
    _, sink = run(slow, limit_s=1000.0)
    first, second = rows_at(sink, "DL")[:2]
    assert second - first >= 60_000_000


def gives_parts(view: View) -> Decision:
    """It gives parts to the three others, and answers when three solutions are there."""
    if any(event.type == "problem" for event in view.events):
        names = [name for name in view.others if name != "dan"]
        return consumes(view, [NewEvent(payload="part", to=[n], type="part") for n in names])
    is_done = sum(event.type == "solution" for event in view.events) >= 3
    return consumes(view, [NewEvent(payload="whole", final=True)]) if is_done else reads(view)


def solves(kind: str) -> Behaviour:
    """It returns each part under a type, and does nothing else but read notes."""

    def act(view: View) -> Decision:
        parts = [event for event in view.events if event.type == "part"]
        fates = [EventFate(event=event.id, fate="consume") for event in parts]
        outputs = [NewEvent(payload="done", to=["ann"], type=kind) for _ in parts]
        return Decision(fates=fates, outputs=outputs)

    return act


def test_the_part_behind_what_is_unlike_the_others_goes_to_another_agent() -> None:
    """DL, first step: not the message, and not to the agent that spoilt it."""
    good = solves("solution")
    team = {"ann": gives_parts, "bob": good, "cyd": good, "odd": solves("riddle"), "dan": good}
    result, sink = run(team)
    assert result.answer == "whole"
    ((action, to),) = [step for step in steps(sink, "DL") if step[0] != "create"]
    assert action == "reassign" and to != ("odd",)
    (row,) = [row for row in rows(sink, "heal") if row.action == "reassign"]
    assert [one.type for one in rows(sink, "emit") if one.event == row.event] == ["part"]
    assert row.about["without"] == ["odd"] and "unlike" not in row.note


def test_where_the_giver_makes_nothing_of_what_comes_back_another_one_begins_anew() -> None:
    """MC, first step: no note to an agent that has swallowed three solutions."""

    def swallows(view: View) -> Decision:
        if any(event.type == "problem" for event in view.events):
            return gives_parts(view)
        return consumes(view)

    def does_all(view: View) -> Decision:
        return submits(view) if any(e.type == "problem" for e in view.events) else good(view)

    good = solves("solution")
    result, sink = run({"ann": swallows, **dict.fromkeys(("bob", "cyd", "odd"), does_all)})
    assert result.answer in ("by bob", "by cyd", "by odd")
    assert [action for action, _ in steps(sink, "MC")] == ["restart"]
    (about,) = [row.about for row in rows(sink, "heal") if row.action == "restart"]
    assert "ann" in about["without"]


def test_an_answer_to_an_attempt_of_its_own_does_not_wait_for_what_was_left_behind() -> None:
    """ET: the part that the first attempt lost is missing, and the second needs it no more."""
    team = {"ann": hands_to("deaf"), "deaf": waits, "cyd": only_problems}
    result, sink = run(team)
    assert result.answer == "by cyd"
    assert "left behind" in result.notes[-1]
    assert [action for action, _ in steps(sink, "ET")] == ["inject"]


def test_a_step_after_which_an_agent_only_talks_to_itself_has_a_last_date() -> None:
    """MC: what it says to itself is work, but no effect of the note; so another one is asked."""

    def talks(view: View) -> Decision:
        is_problem = any(event.type == "problem" for event in view.events)
        return consumes(view, [] if is_problem else [NewEvent(payload=view.turn, to=[view.agent])])

    def answers_notes(view: View) -> Decision:
        return consumes(view, [NewEvent(payload=f"by {view.agent}", final=True)])

    result, sink = run({"ann": talks, "bob": answers_notes})
    assert result.answer == "by bob"
    assert steps(sink, "MC") == [("create", ("ann",)), ("create", ("bob",))]
    first, second = [row.ts for row in rows(sink, "heal") if row.action == "create"]
    assert second - first == 30.0


def test_who_spoils_work_of_two_hand_outs_is_taken_out_and_who_waits_is_not() -> None:
    """Two signs are independent: other agents have agreed each time. `dan` only waits."""

    def gives_each(view: View) -> Decision:
        posed = [event for event in view.events if event.type in ("problem", "question")][:1]
        if posed:
            fates = [EventFate(event=posed[0].id, fate="consume")]
            parts = [NewEvent(payload="part", to=[n], type="part") for n in ("bob", "cyd", "odd")]
            talk = NewEvent(payload="wait", to=["dan"], type="reminder")
            return Decision(fates=fates, outputs=[*parts, talk])
        return reads(view)

    good = solves("solution")
    team = {"ann": gives_each, "bob": good, "cyd": good, "odd": solves("riddle"), "dan": waits}
    _, sink = run({**team, "eve": good}, script=[question_to("ann")])
    taken_out = [row for row in rows(sink, "heal") if row.action == "replace"]
    assert [row.to for row in taken_out] == [("odd",)]
    assert taken_out[0].reason == "2 times its work was unlike the others'"


def test_one_sign_is_not_enough_to_take_an_agent_out() -> None:
    good = solves("solution")
    team = {"ann": gives_parts, "bob": good, "cyd": good, "odd": solves("riddle"), "dan": good}
    _, sink = run(team)
    assert not [row for row in rows(sink, "heal") if row.action == "replace"]


def mixes(view: View, enough: int = 3) -> Decision:
    """It asks two agents for parts of each problem, and answers all with what came first."""
    problems = [event for event in view.events if event.type in ("problem", "question")]
    if problems:
        (problem, *_) = problems
        fates = [EventFate(event=problem.id, fate="consume")]
        parts = [NewEvent(payload=problem.type, to=[name]) for name in ("bob", "cyd")]
        return Decision(fates=fates, outputs=parts)
    got = [event for event in view.events if event.sender in view.others or event.final]
    is_enough = len(got) >= enough or any(event.final for event in got)
    return submits(view) if is_enough else reads(view)


def replies(view: View) -> Decision:
    parts = [event for event in view.events if event.sender == "ann"]
    outputs = [NewEvent(payload=event.payload, to=["ann"]) for event in parts]
    return consumes(view, outputs) if parts else reads(view)


def test_an_answer_to_two_problems_goes_back_with_the_missing_parts_and_with_the_note() -> None:
    """One of the two problems lacks a part: ET names that part, CLA what was put together."""
    _, sink = run(
        {"ann": mixes, "bob": replies, "cyd": Acts(replies, 9.0)},
        session=True, script=[(0.1, question_to("ann")[1])],
    )  # fmt: skip
    early = next(row for row in rows(sink, "finding") if row.pattern == "ET")
    missing = {*early.evidence["unresolved"], *early.evidence["uncovered"]}
    assert missing
    answer = early.subject["event"]
    back = [row for row in rows(sink, "deliver") if row.event == answer and row.to == "ann"]
    assert back
    notes = [row.note for row in rows(sink, "heal") if row.event == answer]
    assert any("work is missing" in note for note in notes)
    assert any("no origin in common" in note for note in notes)


def test_an_answer_that_mixes_problems_goes_back_once_with_the_note() -> None:
    """Nothing is missing, so there is no ET; the second answer is accepted."""
    _, sink = run(
        {"ann": lambda view: mixes(view, 4), "bob": replies, "cyd": replies},
        session=True, script=[(0.1, question_to("ann")[1])],
    )  # fmt: skip
    assert not [row for row in rows(sink, "finding") if row.pattern == "ET"]
    (back,) = [row for row in rows(sink, "heal") if row.action == "reroute"]
    assert back.to == ("ann",) and "no origin in common" in back.note
    assert [row.event for row in rows(sink, "deliver") if row.to is None] != [back.event]
