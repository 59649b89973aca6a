"""What an adapter says to a session, and what comes of saying it wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from types import FrameType
from typing import Any

import pytest

import dig
from dig import Limits
from dig.adapters import Session
from dig.adapters.base import AdapterState
from dig.adapters.base import context as base_context
from dig.adapters.base import guard as base_guard
from dig.errors import DecisionError, RequestError
from dig.graph.records import Fate
from dig.monitor.sanitize import MOST_BYTES
from tests.helpers import Recorder

from .watching import Clock, Watched, setup_of


def session_of(
    *agents: str, strict: bool = True, limits: Limits | None = None, clock: Clock | None = None,
    **options: Any,
) -> Watched:  # fmt: skip
    trace, setup = Recorder(), setup_of(limits=limits or Limits())
    session = Session(
        agents, setup, sink=trace, keeps_time=False, clock=clock or Clock(), strict=strict,
        **options,
    )  # fmt: skip
    return Watched(session, trace)


def test_a_turn_consumes_what_it_was_called_with_and_leaves_the_rest() -> None:
    """What else lies in front of an agent is delayed, until a turn takes up all of it."""
    it = session_of("ann")
    first, second = (it.session.request(text, "ann") for text in ("one", "two"))
    turn = it.session.begin("ann", [second])
    assert [event.payload for event in turn.events] == ["two"]
    turn.submit("2")
    assert not turn.was_bounced(turn.submitted)
    turn = it.session.begin("ann")
    assert [event.id for event in turn.events] == [first]
    turn.submit("1")
    turn.was_bounced(turn.submitted)
    it.must_be_sound()


def test_fates_are_those_that_the_adapter_names() -> None:
    """Reroute, discard and delay; whoever is passed something finds it in front of him."""
    it = session_of("ann", "bob")
    turn = it.session.begin("ann", [it.session.request("?", "ann")])
    for text in ("pass", "drop", "keep"):
        turn.emit(text, "bob")
    turn.end()
    passed, dropped, kept = turn.outputs
    turn = it.session.begin("bob")
    turn.pass_on(passed, "ann")
    turn.discard(dropped)
    turn.decide(Fate(kept, "delay"))
    turn.end()
    assert [row["fates"] for row in it.rows("end")][1] == [
        {"event": passed, "fate": "reroute", "to": ["ann"]},
        {"event": dropped, "fate": "discard"},
        {"event": kept, "fate": "delay"},
    ]
    assert it.session.recipients_of(passed) == ("ann",)


def test_a_turn_that_failed_and_will_be_tried_again_keeps_what_it_was_given() -> None:
    """`retried`: the same events are there for the next try."""
    it = session_of("ann")
    event = it.session.request("?", "ann")
    it.session.begin("ann", [event]).fail(OSError("no line"), retried=True)
    turn = it.session.begin("ann")
    assert [given.id for given in turn.events] == [event]
    turn.submit("!")
    turn.was_bounced(turn.submitted)
    assert it.rows("end")[0]["error"] == "OSError: no line"
    it.must_be_sound()


def test_an_answer_to_several_questions_is_awaited() -> None:
    """The next activation starts when all are there, and consumes them with the continuation."""
    it = session_of("ann", "bob")
    session = it.session
    ann = session.begin("ann", [session.request("?", "ann")])
    seats = [session.reserve_instance("bob") for _ in range(2)]
    assert seats == ["bob", "bob#2"]
    asked = [ann.send("part", seat) for seat in seats]
    replies = []
    for seat, event in zip(seats, asked, strict=True):
        assert ann.activation is None
        replies.append(session.begin(seat, [event]).end("done", "ann"))
        ann.receive(replies[-1])
    assert ann.activation is not None
    assert {event.id for event in ann.events} >= {*replies}
    ann.submit("!")
    ann.was_bounced(ann.submitted)
    it.must_be_sound()


def test_what_is_no_json_is_told_by_its_type() -> None:
    """An adapter that forgets `as_payload` is forgiven."""
    it = session_of("ann")
    turn = it.session.begin("ann", [it.session.request({1, 2}, "ann")])
    turn.emit(object(), "ann")
    turn.end(usage={"tokens": {3}})
    payloads = [row["payload"] for row in it.rows("emit")]
    assert payloads == [[1, 2], {"$unserialisable": "builtins.object"}]
    assert it.rows("end")[0]["usage"] == {"tokens": [3]}


def test_what_is_too_large_for_an_event_is_told_by_its_size() -> None:
    """A request, a message and an answer of 17 MiB keep their places in the graph."""
    large = "x" * 17 * 1024 * 1024
    it = session_of("ann", "bob")
    turn = it.session.begin("ann", [it.session.request(large, "ann")])
    bob = it.session.begin("bob", [turn.send(large, "bob")])
    turn.receive(bob.end(large, "ann"))
    assert not turn.was_bounced(turn.submit(large))
    sizes = [row["payload"] for row in it.rows("emit") if row["type"] != "notice"]
    assert sizes == [{"$too_large": len(large) + 2}] * 4
    it.must_be_sound()


@pytest.mark.parametrize("strict", [True, False])
def test_a_wrong_fate_is_a_fault_of_the_adapter(strict: bool) -> None:
    """For its tests it raises; in a team at work it is counted, and the turn ends all the same."""
    it = session_of("ann", strict=strict)
    turn = it.session.begin("ann", [it.session.request("?", "ann")])
    if strict:
        with pytest.raises(DecisionError, match="'e9' is not in front of 'ann'"):
            turn.discard("e9")
    else:
        turn.discard("e9")
    turn.end()
    turn.end()
    assert it.session.statistics().faults == 1
    assert it.session.statistics().open_turns == 0


def test_an_event_that_cannot_be_made_does_not_keep_a_turn_open() -> None:
    """What is no list of names ends the activation with an error, and frees the seat."""
    it = session_of("ann", strict=False)
    turn = it.session.begin("ann", [it.session.request("?", "ann")])
    turn.emit("?", [7])  # type: ignore[list-item]
    turn.end()
    assert it.session.statistics().faults == 1
    assert it.session.statistics().open_turns == 0
    assert "recipients" in it.rows("end")[0]["error"]
    assert it.session.reserve_instance("ann") == "ann"


def test_what_is_asked_after_the_end_is_not_done() -> None:
    """After `close` nothing is written, nothing raises, and turns go through."""
    it = session_of("ann")
    turn = it.session.begin("ann", [it.session.request("?", "ann")])
    it.session.close()
    it.session.close()
    length = len(it.trace)
    turn.emit("!", "ann")
    assert turn.send("!", "ann") == ""
    assert turn.end() == ""
    assert it.session.request("?", "ann") == ""
    assert not it.session.is_held("e1")
    assert len(it.trace) == length
    with pytest.raises(RequestError):
        it.session.monitor.start("ann")


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_wrapper_is_lost_once_a_step_has_failed_or_was_never_begun(is_closed: bool) -> None:
    it = session_of("ann", strict=False)
    teller = AdapterState(it.session)
    assert teller.step(int, "1", default=0) == 1 and not teller.has_failed
    if is_closed:
        it.session.close()
    assert teller.step(int, "1" if is_closed else "one", default=0) == 0
    assert teller.has_failed and teller.only_observes


def test_whoever_waits_for_a_person_is_named_in_the_trace() -> None:
    """The incident `waits` has the activation in progress; a turn that is over waits for nobody."""
    it = session_of("ann")
    turn = it.session.begin("ann", [it.session.request("?", "ann")])
    turn.waits("May I?", "say yes")
    activation = turn.activation
    turn.was_bounced(turn.submit("!"))
    turn.waits()
    told = [row["detail"] for row in it.rows("incident") if row["what"] == "waits"]
    assert told == [{"activation": activation, "asks": "May I?", "answer": "say yes"}]
    it.must_be_sound()


def waits_of(it: Watched) -> list[Any]:
    return [row["detail"].get("asks") for row in it.rows("incident") if row["what"] == "waits"]


def test_of_two_waits_at_once_the_one_that_goes_on_is_over() -> None:
    """The trace then says what is asked still, whichever question came first."""
    it = session_of("ann")
    turn = it.session.begin("ann", [it.session.request("?", "ann")])
    with base_context.inside(turn), ExitStack() as first:
        first.enter_context(dig.waiting("A?"))
        with dig.waiting("B?"):
            first.close()
            assert waits_of(it) == ["A?", "B?", "B?"]
    turn.was_bounced(turn.submit("!"))
    assert waits_of(it) == ["A?", "B?", "B?"]
    it.must_be_sound()


def test_a_wait_of_the_framework_that_ends_leaves_a_wait_of_the_user() -> None:
    """A framework asks a person, and says when that has answered, not what else still waits."""
    it = session_of("ann")
    turn = it.session.begin("ann", [it.session.request("?", "ann")])
    turn.waits("of the framework?")
    with base_context.inside(turn), dig.waiting("of the user?"):
        turn.resumes("answered")
        assert waits_of(it) == ["of the framework?", "of the user?", "of the user?"]
    turn.was_bounced(turn.submit("!"))
    assert waits_of(it) == ["of the framework?", "of the user?", "of the user?"]
    it.must_be_sound()


@pytest.mark.parametrize(
    ("asks", "shown"),
    [
        ({"a": object()}, {"a": {"$unserialisable": "builtins.object"}}),
        ("z" * MOST_BYTES, {"$too_large": MOST_BYTES + 2}),
    ],
)
def test_any_question_of_a_waiting_turn_is_written_as_payloads_are(asks: Any, shown: Any) -> None:
    it = session_of("ann")
    turn = it.session.begin("ann", [it.session.request("?", "ann")])
    turn.waits(asks)
    turn.was_bounced(turn.submit("!"))
    assert waits_of(it) == [shown]
    it.must_be_sound()


@pytest.mark.parametrize("waits", [True, False])
def test_a_turn_that_waits_for_a_person_has_not_stalled(waits: bool) -> None:
    """STALL is raised for an activation that lasts far longer than those before it, else."""
    clock = Clock()
    it = session_of("ann", limits=Limits(stall_factor=5.0, stall_min_s=60.0), clock=clock)
    for lasts in (1.0, 1.0, 1.0, 1.0, 1.0, 80.0):
        turn = it.session.begin("ann", [it.session.request("?", "ann")])
        if waits and lasts > 1:
            turn.waits()
        clock.now += lasts
        it.session.tick()
        turn.was_bounced(turn.submit("!"))
    assert it.patterns == ([] if waits else ["STALL"])
    it.must_be_sound()


def test_turns_that_all_await_an_answer_are_a_deadlock_after_its_own_window() -> None:
    """They are open, but nobody works, so the limit of an activation is not waited for."""
    clock = Clock()
    it = session_of("ann", "bob", limits=Limits(dl_window_s=5.0), clock=clock)
    began = clock.now
    ann = it.session.begin("ann", [it.session.request("?", "ann")])
    asked = ann.send("and you?", it.session.reserve_instance("bob"))
    clock.now += 3
    bob = it.session.begin("bob", [asked])
    again = it.session.reserve_instance("ann")  # a framework calls it when her turn is over
    asked = bob.send("what do you say?", again)
    clock.now += 4.9
    it.session.tick()
    assert it.patterns == [] and it.session.statistics().open_turns == 2
    clock.now += 0.2
    it.session.tick()
    [found] = it.session.findings
    assert found.pattern == "DL" and found.ts == pytest.approx(8.0)
    assert {*found.evidence["waiting"]} == {"ann#2"}
    late = it.session.begin(again, [asked])
    bob.receive(late.end("nothing", bob.address))
    ann.receive(bob.end("nothing", ann.address))
    ann.submit("nothing")
    ann.was_bounced(ann.submitted)
    it.must_be_sound()
    assert clock.now - began < it.session.monitor.graph.run.limits.activation_limit_s


def test_an_interrupt_at_any_call_of_a_step_leaves_the_lock_free() -> None:
    """Ctrl-C comes as Python enters a function, or as a function of C returns."""
    guard, interrupted = session_of("ann").session.guard, 0

    def interrupt_at(moment: int) -> Callable[[FrameType, str, Any], None]:
        moments = count()

        def profile(frame: FrameType, event: str, function: Any) -> None:
            ours = frame.f_code.co_filename == base_guard.__file__
            if ours and event in ("call", "c_return") and next(moments) == moment:
                sys.setprofile(None)
                raise KeyboardInterrupt

        return profile

    for moment in range(40):
        sys.setprofile(interrupt_at(moment))
        try:
            guard.run(guard.now, default=0.0)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.setprofile(None)
        assert guard.lock.owner is None
        assert guard.run(lambda: True, default=False, timeout_s=0.0), f"locked by {moment}"
    assert interrupted > 5
