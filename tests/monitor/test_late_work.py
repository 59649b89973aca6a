"""Work after the end of its request: told once for each activation, and only if it lasts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dig import Output
from dig.detectors.five_answers import five_answers
from dig.detectors.run_so_far import RunSoFar
from dig.detectors.tallies import LateTurns
from dig.show.gate.checked import check_run
from tests.helpers import Recorder, Stage, answer, out, rows, story
from tests.traces.journals import write


def late(records: Recorder) -> list[dict[str, Any]]:
    """The details of the incidents about late work."""
    return [row.detail for row in rows(records, "incident") if row.what == "work_after_answer"]


def answered(**settings: Any) -> tuple[Stage, str]:
    """A session: `b` is still at work when `a` answers; with the activation of `b`."""
    stage = Stage("abc", session=True, **settings)
    stage.give("a")
    stage.turn("a", out("b"), out("a"))
    started = stage.start("b")
    stage.turn("a", answer())
    return stage, started.activation


def test_who_works_on_is_told_a_second_after_the_answer() -> None:
    """Once, with the request, the activation and the agent; nothing is found, nothing healed."""
    stage, activation = answered()
    stage.wait(0.9)
    assert late(stage.sink) == []
    assert stage.monitor.next_deadline() == 1.0
    stage.wait(0.1)
    assert late(stage.sink) == [{"event": "e1", "activation": activation, "agent": "b"}]
    stage.give("c")
    stage.turn("c", answer())  # the end of another request says nothing anew
    stage.wait(60)
    assert len(late(stage.sink)) == 1
    assert rows(stage.sink, "finding") == []


def test_who_ends_in_time_is_not_told() -> None:
    """A framework takes a moment to clean up."""
    stage, activation = answered()
    stage.monitor.end(activation, error="cancelled", cancelled=True)
    stage.wait(60)
    assert late(stage.sink) == []


def test_who_begins_after_the_answer_is_told_if_it_lasts() -> None:
    """The second has to pass from its own start."""
    stage = Stage("ab", session=True)
    stage.give("a")
    stage.turn("a", out("b"), out("a"))
    stage.turn("a", answer())
    stage.wait(30)
    started = stage.start("b")
    stage.wait(0.5)
    assert late(stage.sink) == []
    stage.wait(0.5)
    assert late(stage.sink) == [{"event": "e1", "activation": started.activation, "agent": "b"}]


def test_who_goes_on_after_a_failed_request_is_told() -> None:
    """The host has said that there will be no answer."""
    stage = Stage("ab", session=True)
    stage.give("a")
    started = stage.start("a")
    stage.monitor.request_failed("timeout", event="e1")
    stage.wait(1)
    assert [row["activation"] for row in late(stage.sink)] == [started.activation]


def test_who_also_works_for_an_open_request_is_not_told() -> None:
    """Somebody still waits for that."""
    stage = Stage("ab", session=True)
    stage.give("a")
    stage.give("b")
    stage.turn("a", out("b"), out("a"))
    stage.start("b")
    stage.turn("a", answer())
    stage.wait(60)
    assert late(stage.sink) == []


def test_what_is_done_about_notices_is_plumbing() -> None:
    """A log that nobody waits for is no work."""
    stage = Stage("ab", session=True)
    stage.give("a")
    stage.turn("a", Output("!", ("b",), "notice"), out("a"))
    stage.start("b")
    stage.turn("a", answer())
    stage.wait(60)
    assert late(stage.sink) == []


def test_who_waits_for_a_person_does_no_work() -> None:
    """It costs nothing."""
    stage, activation = answered()
    stage.monitor.waits(activation=activation)
    stage.wait(60)
    assert late(stage.sink) == []


def test_of_a_run_those_are_told_who_are_still_there_at_its_end() -> None:
    """The host has called them off when the answer came, and they have not stopped."""
    stage = Stage("ab")
    stage.give("ab")
    stage.start("b")
    stage.turn("a", answer())
    stage.clock.now += 5
    stage.monitor.finish("submitted")
    assert story(stage.sink)[-2:] == ["incident work_after_answer", "finish submitted"]


def test_the_verdict_and_the_check_list_them_with_their_usage(tmp_path: Path) -> None:
    """The usage comes with the end of the activation."""
    sink = Recorder()
    stage, activation = answered(sink=sink)
    stage.wait(2)
    stage.monitor.end(activation, usage={"input_tokens": 900, "output_tokens": 30})
    stage.monitor.finish("stopped")
    so_far, turns = RunSoFar(), LateTurns()
    for record in sink:
        so_far(record)
        turns.look(record)
    says = (
        f"`b` still worked at 2.0 s, after its request was over ({activation}; "
        "input_tokens: 900; output_tokens: 30)."
    )
    assert turns.texts() == [says]
    assert five_answers(so_far).ended.endswith(f" {says}")
    assert check_run(write(tmp_path, sink), []).remarks == [says]
