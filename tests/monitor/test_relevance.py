"""Notes belong to requests: what is said about one is shown in no turn that works for another."""

from __future__ import annotations

from dig import Limits, Output
from dig.detectors.patterns.deadlock import Deadlock, HealDeadlock
from dig.detectors.patterns.repeated_message import HealRepeatedMessage, RepeatedMessage
from dig.graph import records as kinds
from dig.graph.records import TOOL_CALL
from tests.helpers import Stage

WINDOW = Limits(dl_window_s=5.0)


def stuck(*, answered: bool = False) -> Stage:
    """A session in which the first request waits in front of `a` for so long that all are told."""
    stage = Stage(
        "abc", session=True, limits=WINDOW, detectors=[Deadlock()], healers={"DL": HealDeadlock()}
    )
    stage.give("a", "first")
    stage.turn("a", fate="delay")
    stage.wait(6)
    assert "heal create e2" in stage.told()
    if answered:
        stage.turn("a", Output("done", final=True))
    return stage


def shown(stage: Stage, agent: str) -> tuple[list[str], tuple[str, ...]]:
    """The notes that an agent is shown in its next turn, and those that are kept for later."""
    started = stage.start(agent)
    notes = [event.id for event in started.events if event.sender == "system"]
    fates = [
        *(kinds.Fate(event.id, "consume") for event in started.events),
        *(kinds.Fate(event, "delay") for event in started.kept),
    ]
    stage.monitor.end(started.activation, fates)
    return notes, started.kept


def test_a_turn_for_another_request_is_not_shown_a_note() -> None:
    """While one request is stuck, the turn for a second one hears nothing of it."""
    stage = stuck()
    stage.give("b", "second")
    assert shown(stage, "b") == ([], ("e2",))


def test_a_turn_for_no_request_is_shown_a_note() -> None:
    """An agent that has nothing else in front of it is shown the note."""
    assert shown(stuck(), "b") == (["e2"], ())


def test_a_turn_for_the_same_request_is_shown_a_note() -> None:
    """The agent that holds the stuck request is shown the note beside it."""
    stage = stuck()
    assert shown(stage, "a") == (["e2"], ())


def test_a_note_that_was_kept_is_shown_later() -> None:
    """After the turn for another request the note lies there still, for a turn of its own."""
    stage = stuck()
    stage.give("b", "second")
    shown(stage, "b")
    assert shown(stage, "b") == (["e2"], ())


def test_a_note_about_an_answered_request_is_shown_to_nobody() -> None:
    """What was said about a request that has its answer is read by nobody any more."""
    stage = stuck(answered=True)
    stage.give("b", "second")
    assert shown(stage, "b") == ([], ())
    assert shown(stage, "c") == ([], ())


def test_a_note_about_a_mended_finding_is_shown_to_nobody() -> None:
    """The deadlock is over as soon as an agent has moved its work: the others are told nothing."""
    stage = stuck()
    stage.turn("a", Output("part", ("c",)))
    assert shown(stage, "b") == ([], ())


def test_a_note_about_a_tool_call_is_read_by_the_agent_that_calls() -> None:
    """A tool reads no notes: the note stands beside the continuation of the agent's turn."""
    stage = Stage(
        ["a", "tool:stock"], session=True, limits=Limits(loop_limit=2),
        detectors=[RepeatedMessage()], healers={"LOOP": HealRepeatedMessage()},
    )  # fmt: skip
    call = Output({"item": "melon"}, ("tool:stock",), TOOL_CALL)
    onward = Output(None, ("a",), "notice")
    stage.give("a")
    for _ in range(3):  # the first call has other inputs
        stage.turn("a", call, onward)
        stage.turn("tool:stock", Output("4", ("a",), "tool_result"))
    continued = [event for event in stage.start("a").events if event.type == "notice"]
    assert [len(event.notes) for event in continued] == [1]
