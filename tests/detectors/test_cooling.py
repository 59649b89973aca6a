"""Cool-downs, and handlers that are named beforehand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dig.detectors import standard, standard_healers
from dig.detectors.finding import Finding
from dig.detectors.interventions import Inject, Reroute
from dig.detectors.patterns.early_termination import HealEarlyTermination
from dig.graph.records import Fate, Limits
from dig.monitor.messages import Answered, Delivered, Healed, Raised
from tests.helpers import CALM, Heals, Sees, Stage, answer, flag, of, out, rows


def healing(**settings: Any) -> Stage:
    stage: dict[str, Any] = {"detectors": standard(), "healers": standard_healers(), **settings}
    return Stage("abc", **stage)


def stubborn() -> Stage:
    """Agent a answers early, again and again, while b is at work on e2."""
    stage = healing()
    stage.give("a")
    stage.turn("a", out("b"))
    stage.start("b")
    return stage


def test_an_answer_that_comes_again_at_once_comes_back_after_longer_and_longer() -> None:
    """The first bounce is at once; each repetition waits twice as long as the one before."""
    stage = stubborn()
    stage.give("a")  # it has to be woken by something
    assert of(Delivered, stage.turn("a", answer())) != []
    for seconds in (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0):
        effects = stage.turn("a", answer())
        assert [healed.row.action for healed in of(Healed, effects)] == ["reroute"]
        assert of(Delivered, effects) == []
        assert stage.monitor.next_deadline() == stage.clock.now + seconds
        assert of(Delivered, stage.wait(seconds - 0.001)) == []
        assert [to.agent for to in of(Delivered, stage.wait(0.001))] == ["a"]


def test_an_answer_is_sent_back_however_often_it_comes_again() -> None:
    """The wait stays at its longest, and its doublings never become too large a number."""
    stage = stubborn()
    healer = HealEarlyTermination(cooldown_s=1.0)
    (raised,) = of(Raised, stage.turn("a", answer()))
    finding = raised.finding
    for _ in range(1_100):
        (bounce,) = healer.heal(stage.monitor.graph, finding)
    assert isinstance(bounce, Reroute) and bounce.in_s == 30.0


def test_lists_that_evidence_cut_are_forgotten_like_others() -> None:
    """What says that a list was cut is no event."""
    stage = stubborn()
    healer = HealEarlyTermination(cooldown_s=1.0)
    (raised,) = of(Raised, stage.turn("a", answer()))
    finding = raised.finding
    cut = replace(finding, evidence={**finding.evidence, "more": True})
    assert len(list(healer.heal(stage.monitor.graph, cut))) == 1
    healer.forget(stage.monitor.graph)
    (again,) = healer.heal(stage.monitor.graph, cut)
    assert isinstance(again, Reroute) and again.in_s == 1.0


def test_an_answer_with_other_work_missing_comes_back_at_once() -> None:
    """What is said anew has not been said before."""
    stage = stubborn()
    stage.give("a")
    stage.turn("a", answer())
    stage.turn("a", answer())
    stage.wait(1.0)
    stage.give("c")  # one more event is open now
    assert of(Delivered, stage.turn("a", answer())) != []


def test_an_answer_on_its_way_back_to_an_agent_that_leaves_is_accepted_as_it_is() -> None:
    """As if its submitter had been gone already; it must not be lost in silence."""
    stage = stubborn()
    stage.give("a")
    stage.turn("a", answer())
    stage.turn("a", answer("again"))
    [answered] = of(Answered, stage.monitor.leave("a"))
    assert answered.payload == "again"
    assert stage.monitor.is_over


def test_two_early_answers_in_turns_are_put_off_like_one() -> None:
    """What counts is that the same was said to the same agent before, not that it was said last."""
    stage = stubborn()
    stage.give("c")
    stage.give("a")
    stage.turn("a", answer())
    heal = HealEarlyTermination().heal
    lists = [{"unresolved": events, "uncovered": []} for events in (["e2"], ["e3"])]
    findings = [Finding("ET", 0, 0, {"event": "e5"}, lists[turn % 2]) for turn in range(6)]
    waits = [next(iter(heal(stage.graph, finding))) for finding in findings]
    assert [one.in_s for one in waits if isinstance(one, Reroute)] == [0, 0, 1, 1, 2, 2]


def test_deadlocks_about_different_work_have_budgets_of_their_own() -> None:
    """Each may be healed three times, and all together as often as their pattern may."""
    stage = healing(limits=Limits(dl_window_s=10.0))
    told = []
    for _ in range(5):
        stage.give("a")
        effects = stage.wait(10.0)
        told += [healed.row.action for healed in of(Healed, effects)]
        for agent in "abc":  # they read the note, and do what they held
            stage.turn(agent)
    assert told == ["create"] * 5


def test_an_answer_on_its_way_back_comes_with_whatever_comes_before() -> None:
    """What its submitter waited for may be there: it must not be without its own answer then."""
    stage = stubborn()
    stage.give("a")
    stage.turn("a", answer())
    stage.turn("a", answer("again"))
    assert [to.event for to in of(Delivered, stage.give("a"))] == ["e6", "e5"]
    assert [event.payload for event in stage.start("a").events] == ["?", "again"]
    assert stage.monitor.next_deadline() == CALM.dl_window_s


def test_an_answer_is_not_taken_while_an_earlier_one_is_on_its_way_back() -> None:
    """Its submitter may still put the two together."""
    stage = stubborn()
    stage.give("a")
    stage.turn("a", answer())
    stage.turn("a", answer())
    [busy] = stage.graph.activations
    stage.monitor.end(busy)  # b waits: nothing that is listed can move any more
    assert of(Answered, stage.turn("a", answer())) == []


def test_an_event_passed_on_in_a_loop_is_given_a_note_at_each_doubling() -> None:
    """However fast the loop is, its healing is a handful of notes."""
    stage = healing()
    stage.give("a")
    noted = []
    for turn in range(1, 41):
        agent, other = "ba"[turn % 2], "ab"[turn % 2]
        started = stage.start(agent)
        effects = stage.monitor.end(started.activation, [Fate("e1", "reroute", (other,))])
        noted += [turn for healed in of(Healed, effects) if healed.row.action == "inject"]
        stage.clock.now += 0.5
    assert noted == [4, 8, 16]


def test_a_healer_of_ones_own_can_have_a_cooldown() -> None:
    """By subject: another one is healed at once."""

    class Slow(Heals):
        cooldown_s = 5.0

    def look(graph: Any, record: Any) -> Any:
        return [flag(record, "P", about=next(subjects))] if record.kind == "emit" else []

    subjects = iter("xxyy")

    stage = Stage("ab", detectors=[Sees(look)], healers={"P": Slow(lambda g, f: [])})
    for _ in range(4):
        stage.give("a")
    reasons = [row.reason for row in rows(stage.sink, "heal")]
    assert reasons == ["it was healed less than 5 s ago"] * 2


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_delay_that_is_none_is_refused(seconds: float) -> None:
    """The healer has failed, and the event goes its way."""
    late = Heals(lambda graph, finding: [Reroute("e1", "later", ("b",), seconds)])
    sees = Sees(lambda graph, r: [flag(r, "P")] if r.kind == "emit" else [])
    stage = Stage("ab", detectors=[sees], healers={"P": late})
    assert of(Delivered, stage.give("a")) == [Delivered("a", "e1")]
    assert "no number of seconds" in rows(stage.sink, "incident")[0].detail["what"]


# -- prevention ---


def designating() -> Stage:
    return healing(healers=standard_healers(designate=True))


def test_work_with_several_recipients_gets_the_least_loaded_as_its_handler() -> None:
    """The handler and the others are told; it is written down; nobody else is bothered."""
    stage = designating()
    stage.give("a")
    stage.give("abc")
    one, two, three = (stage.start(agent).events[-1] for agent in "abc")
    assert two.notes == (
        "You are to handle this event; `a`, `c` have it too, and will leave it to you.",
    )
    assert one.notes == three.notes == ("`b` is to handle this event: leave it to `b`.",)
    details = [row.detail for row in rows(stage.sink, "incident") if row.what == "prevented"]
    assert [(d["event"], d["to"]) for d in details] == [("e2", ("b",)), ("e2", ("a", "c"))]


def test_no_handler_is_named_for_one_recipient_or_for_a_notice() -> None:
    """There is nothing to be solved twice."""
    stage = designating()
    stage.give("a")
    stage.give("bc", type="notice")
    assert rows(stage.sink, "incident") == []


def test_nobody_is_designated_unless_it_is_asked_for() -> None:
    """The preventive form is off by default."""
    stage = healing()
    stage.give("abc")
    assert stage.start("a").events[0].notes == ()


def test_a_preventer_that_fails_stops_nobody() -> None:
    """What it raises, or does beyond a note, is an incident."""

    class Wild(Heals):
        def prevent(self, graph: Any, event: str) -> Any:
            return [Inject(event, "hm"), Reroute(event, "no", ("c",))]

    class Broken(Heals):
        def prevent(self, graph: Any, event: str) -> Any:
            raise ValueError("oh")

    healers = {"P": Wild(lambda g, f: []), "Q": Broken(lambda g, f: [])}
    stage = Stage("abc", healers=healers)
    assert [to.agent for to in of(Delivered, stage.give("ab"))] == ["a", "b"]
    assert [row.what for row in rows(stage.sink, "incident")] == ["failed", "failed"]
    assert stage.start("a").events[0].notes == ()


def test_with_healing_that_always_repeats_itself_a_run_still_ends() -> None:
    """When the budget is used up the early answer is accepted, and the trace says so."""
    stage = stubborn()
    stage.give("a")
    for _ in range(40):
        effects = stage.turn("a", answer())
        if of(Answered, effects):
            break
        stage.wait(30.0)
    assert stage.monitor.is_over
    assert rows(stage.sink, "heal")[-1].reason == "the budget of 30 for this pattern is used up"


def test_what_was_said_about_an_answer_that_is_accepted_goes_with_it() -> None:
    """Nobody else is shown it any more."""
    stage = healing()
    stage.give("a")
    stage.give("b")
    assert of(Answered, stage.turn("a", answer())) == []
    [answered] = of(Answered, stage.turn("a", answer()))
    assert answered.notes[0].endswith("It is accepted as it is.")
