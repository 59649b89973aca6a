"""The rules by which a simulated judge reads a log: what each sees, and what none does."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import getsource
from typing import Any

import pytest

from dig import Output
from dig.detectors.patterns import NAMES
from dig.graph.records import ASIDE, Finish, Record
from dig.lab.judge import log_reader, simulated
from dig.lab.judge.log_reader import LogReader
from dig.lab.judge.reviewer import ReviewLog, ReviewMaterial, ReviewView
from dig.lab.judge.simulated import SimulatedJudge
from dig.monitor.messages import Effect
from dig.monitor.monitor import Monitor
from dig.runtime import Decision, EventFate, NewEvent, PlannedAgent, Setup, View, simulate
from dig.tasks.run.arrange import make_simulation, make_task
from dig.tasks.run.judging import Judging
from dig.tasks.run.team_run import TeamRun
from tests.helpers import Move, Scripted, drop, read, submit, tell, wait


def pass_on(to: str) -> Move:
    """Reroute everything."""
    return lambda view: Decision(
        fates=[EventFate(event=e.id, fate="reroute", to=[to]) for e in view.events]
    )


def halves(view: View) -> Decision:
    """Consume everything; one event to `b`, one to itself."""
    return Decision.respond(view, *(NewEvent(payload="!", to=[name]) for name in "ba"))


Script = Sequence[tuple[float, Callable[[Monitor], list[Effect]]]]


def log(script: Script = (), **moves: Sequence[Move]) -> list[Record]:
    """What a judge is shown of a scripted team without detectors."""
    shown = ReviewLog("judge")
    team: dict[str, PlannedAgent] = {name: Scripted(*some) for name, some in moves.items()}
    simulate(
        team, Output("?", ("a",), "problem"), setup=Setup(limit_s=50.0), sink=shown, script=script,
        latency_s=0.0,
    )  # fmt: skip
    return list(shown.read(0).log)


def seen(records: list[Record], at_s: float = 0.0) -> list[tuple[str, tuple[str, ...], Any]]:
    """What the rules say about a log that is read at some time."""
    return [
        (one.pattern, one.events, one.agents) for one in LogReader(records, us(at_s)).suspicions
    ]


def us(seconds: float) -> int:
    return round(seconds * 1e6)


def test_an_answer_while_an_event_is_unread_is_an_early_termination() -> None:
    """The event that lies in front of another agent is named after the answer."""
    records = log(a=[halves, submit()], b=[wait])
    assert seen(records) == [("ET", ("e4", "e2"), ("a",))]


@pytest.mark.parametrize("move", [read, drop])
def test_an_event_that_was_consumed_or_discarded_makes_no_answer_early(move: Move) -> None:
    """The other agent has decided about its half before the answer comes."""
    later: Script = [(1.0, lambda monitor: monitor.inject(Output("!", ("a",))))]
    records = log(later, a=[halves, wait, submit()], b=[move])
    assert records[-2].kind == "emit"
    assert "ET" not in {pattern for pattern, *_ in seen(records)}


@pytest.mark.parametrize(
    ("moves", "lost"),
    [
        ({"a": [tell("z")]}, "e2"),
        ({"a": [drop]}, "e1"),
        ({"a": [pass_on("z")]}, "e1"),
    ],
)
def test_what_no_agent_has_any_more_is_an_orphan(moves: dict[str, Any], lost: str) -> None:
    """Sent to a name that is not there, discarded, or passed on to such a name."""
    (found,) = [one for one in seen(log(**moves)) if one[0] == "OE"]
    assert found[1] == (lost,)


def test_an_event_that_another_agent_has_is_no_orphan() -> None:
    """One of two recipients throws it away."""
    records = log(a=[tell("bc")], b=[drop], c=[wait])
    assert "OE" not in {pattern for pattern, *_ in seen(records)}


def test_an_event_that_one_of_two_passes_on_to_nobody_is_no_orphan() -> None:
    """The other still has it."""
    records = log(a=[tell("bc")], b=[pass_on("z")], c=[wait])
    assert "OE" not in {pattern for pattern, *_ in seen(records)}


def test_an_event_that_was_consumed_may_go_round() -> None:
    """A copy that is passed on after another was consumed harms nobody."""
    records = log(a=[tell("bc")], b=[pass_on("d")] * 4, c=[read], d=[pass_on("b")] * 4)
    assert seen(records) == []


def test_an_agent_that_is_given_the_same_event_again_does_not_repeat_the_work_of_another() -> None:
    """Two agents make RSP, not two activations."""
    again: Script = [(5.0, lambda monitor: monitor.redirect("e1", ["a"], "?"))]
    records = log(again, a=[read, read])
    assert [record.kind for record in records].count("end") == 2
    assert seen(records) == []


@pytest.mark.parametrize(
    ("moves", "event", "to"),
    [
        ({"a": [tell("c")], "b": [], "c": [drop]}, "e2", "a"),
        ({"b": [], "a": [tell("z")]}, "e2", "a"),
        ({"a": [drop], "b": []}, "e1", "b"),
        ({"b": [], "a": [tell("a"), drop]}, "e2", "b"),
    ],
)
def test_a_lost_event_goes_to_its_maker_unless_it_was_the_one_that_discarded_it(
    moves: Any, event: str, to: str
) -> None:
    """Without a maker that is there and wants it, it goes to another agent."""
    reading = ReviewMaterial(tuple(log(**moves)))
    perfect = SimulatedJudge(1, Judging(recall=1.0, precision=1.0))
    plan = perfect.plan(ReviewView("judge", (*moves, "judge"), 1, 0.0, (), reading=reading))
    assert isinstance(plan.decision, Decision)
    (report,) = [r for o in plan.decision.outputs for r in o.payload["reports"]]
    assert (report["pattern"], report["action"]["do"]) == ("OE", "reroute")
    assert (report["action"]["event"], report["action"]["to"]) == (event, [to])


def test_an_event_that_goes_round_is_passed_on_too_often() -> None:
    """At the fourth time, once; three times are no failure."""
    assert seen(log(a=[pass_on("b")] * 2, b=[pass_on("a")])) == []
    records = log(a=[pass_on("b")] * 4, b=[pass_on("a")] * 4)
    assert seen(records) == [("ER", ("e1",), ("b",))]


def test_an_event_that_two_agents_consume_is_work_done_twice() -> None:
    """Both are named; an agent that consumes what another has passed on does nothing twice."""
    assert seen(log(a=[tell("bc")], b=[read], c=[read])) == [("RSP", ("e2",), ("b", "c"))]
    assert seen(log(a=[pass_on("b")], b=[read])) == []


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ({"a": [wait]}, ("DL", ("e1",), ("a",))),
        ({"a": [read]}, ("MC", (), ("a",))),
    ],
)
def test_ten_seconds_without_a_record_are_a_silence(moves: Any, expected: Any) -> None:
    """With unread work a deadlock, else a missing termination; not a moment before."""
    records = log(**moves)
    last = records[-1].us / 1e6
    assert seen(records, last + 9.9) == []
    assert seen(records, last + 10.0) == [expected]


def test_there_is_no_silence_while_an_agent_works_or_after_the_answer() -> None:
    """A long thought and a finished run are none."""
    assert seen(log(a=[submit()]), 100.0) == []
    records = log(a=[submit()])
    assert records[-3].kind == "end"
    assert seen(records[:-3], 100.0) == []


def test_a_silence_in_the_middle_of_a_log_is_seen_too() -> None:
    """A second problem came after half a minute."""
    more: Script = [(30.0, lambda monitor: monitor.inject(Output("?", ("b",), "problem")))]
    records = log(more, a=[read], b=[submit()])
    assert [pattern for pattern, *_ in seen(records)] == ["MC"]


def test_the_rules_are_not_those_of_the_detectors() -> None:
    """The judge's modules import nothing that detects; and over many runs they see other things."""
    for module in (log_reader, simulated):
        for node in ast.walk(ast.parse(getsource(module))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dig.detectors"):
                allowed = {"NAMES"} if node.module == "dig.detectors.patterns" else {
                    "MOST_CHARACTERS", "MOST_REPORTS",
                }  # fmt: skip
                assert {name.name for name in node.names} <= allowed
    ours, theirs = Counter[str](), Counter[str]()
    for seed in range(1, 21):
        run = TeamRun(seed=seed, size=1000, method="mas")
        records: list[Record] = []
        result = make_simulation(run, make_task(run), records.append).run()
        kept = [r for r in records if not isinstance(r, (*ASIDE, Finish))]
        kept = [replace(r, t=t) for t, r in enumerate(kept)]
        ours.update(one.pattern for one in LogReader(kept, us(result.seconds)).suspicions)
        theirs.update(f.pattern for f in result.findings)
    assert ours.keys() <= set(NAMES)
    assert {"ET", "DL", "OE"} <= ours.keys() & theirs.keys()
    assert ours != theirs
