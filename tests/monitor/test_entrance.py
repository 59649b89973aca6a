"""What the monitor lets in: of bounded size, without secrets, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from dig import Fate, Monitor, Output, Record
from dig.errors import DecisionError, PayloadError, RequestError
from dig.graph.records import Emit, End, Finish, IncidentRow
from dig.monitor.messages import Started
from dig.monitor.sanitize import MOST_BYTES, MOST_IN_ERROR
from tests.helpers import Stage, out, rows

KEY = "sk-proj-0123456789abcdef"


class Run:
    """A run of one agent, and what is written of it."""

    def __init__(self, **settings: Any) -> None:
        self.records: list[Record] = []
        self.monitor = Monitor(["ada"], clock=lambda: 0.0, sink=self.records.append, **settings)

    def begin(self, payload: Any = "?") -> Started:
        """Bring an event in and start its agent; what it is shown."""
        self.monitor.inject(Output(payload, ("ada",)))
        (started,) = [e for e in self.monitor.start("ada") if isinstance(e, Started)]
        return started


# --- size ---


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("payload", "fits"),
    [
        ("x" * (MOST_BYTES - 2), True),
        ("x" * (MOST_BYTES - 1), False),
        ("\x00" * (MOST_BYTES // 6), True),
        ("\x00" * (MOST_BYTES // 6 + 1), False),
        ("\U0001f600" * (MOST_BYTES // 12 + 1), False),
        ({"a": ["x" * (MOST_BYTES - 10)]}, True),
        ({"a": ["x" * (MOST_BYTES - 9)]}, False),
        ([1] * (MOST_BYTES // 2), False),
        ([{}] * (MOST_BYTES // 3 + 1), False),
    ],
)
def test_an_event_has_at_most_16_mib_as_it_stands_in_a_trace(payload: Any, fits: bool) -> None:
    """To the byte; the error says how large it is and what to do, and nothing has happened."""
    run = Run(redacts=False)
    if fits:
        run.monitor.inject(Output(payload, ("ada",)))
        assert isinstance(run.records[-2], Emit)
        return
    before = list(run.records)
    with pytest.raises(PayloadError, match=r"at most 16,777,216 go into an event; keep it else"):
        run.monitor.inject(Output(payload, ("ada",)))
    assert run.records == before
    assert run.begin().events[0].id == "e1", "what is refused uses no id up"


def test_an_activation_that_says_too_much_goes_on() -> None:
    """Its host decides what becomes of it; the bus ends it with an error."""
    run = Run()
    started = run.begin()
    for more in ({"outputs": [Output("x" * MOST_BYTES, ("ada",))]}, {"usage": ["x" * MOST_BYTES]}):
        with pytest.raises(PayloadError, match="bytes as JSON"):
            run.monitor.end(started.activation, **more)
    run.monitor.end(started.activation, [Fate("e1", "consume")])
    assert isinstance(run.records[-1], End)


def test_an_error_that_quotes_a_book_is_cut() -> None:
    """It would be refused otherwise, and the failure with it."""
    run = Run()
    run.monitor.end(run.begin().activation, error="x" * 100_000)
    (end,) = [r for r in run.records if isinstance(r, End)]
    assert end.error == "x" * (MOST_IN_ERROR - 1) + "…"


# --- secrets ---


def test_secrets_are_masked_before_anything_is_written_or_shown() -> None:
    """In payloads, errors, incidents, answers: agents see what is journalled."""
    run = Run()
    shown = run.begin({"text": f"use {KEY}", "api_key": "abc"})
    assert shown.events[0].payload == {"text": "use ***", "api_key": "***"}
    run.monitor.incident("x", [KEY])
    run.monitor.end(
        shown.activation, outputs=[Output(KEY, final=True)], usage={"by": KEY}, error=f"no {KEY}"
    )
    run.monitor.finish("submitted", {"said": KEY}, {"by": KEY})
    assert KEY not in str(run.records)
    kinds = {type(r) for r in run.records if "***" in str(r)}
    assert kinds == {Emit, End, IncidentRow, Finish}


def test_masking_can_be_switched_off() -> None:
    """A team may have to hand keys on; then its traces hold them."""
    run = Run(redacts=False)
    assert run.begin(KEY).events[0].payload == KEY


def test_what_is_written_down_drives_the_run_again() -> None:
    """What was masked is let in as it is."""
    first, second = Run(), Run()
    payload = first.begin([KEY, {"password": "abc", KEY: f"token: {KEY}"}]).events[0].payload
    second.begin(payload)
    assert second.records == first.records


def test_whose_an_error_is_stands_in_the_trace() -> None:
    """An activation passes on the error of another's, or was called off; nonsense is refused."""
    stage = Stage("abc")
    first, second, third = map(stage.start, "abc")
    stage.monitor.end(first.activation, error="broken")
    for nonsense in ({"because": second.activation}, {"because": "nobody"}, {"cancelled": True}):
        error = None if "cancelled" in nonsense else "passed on"
        with pytest.raises(DecisionError):
            stage.monitor.end(second.activation, error=error, **nonsense)
    stage.monitor.end(second.activation, error="passed on", because=first.activation)
    stage.monitor.end(third.activation, error="called off", cancelled=True)
    ends = rows(stage.sink, "end")
    assert [(end.because, end.cancelled) for end in ends] == [
        (None, False), (first.activation, False), (None, True),
    ]  # fmt: skip


def test_a_host_reports_what_waits_and_what_has_failed() -> None:
    """Both become incidents that detectors read; names of what there is not are refused."""
    stage = Stage("ab")
    stage.give("a")
    activation = stage.start("a").activation
    stage.monitor.waits(activation=activation)
    stage.monitor.waits(event="e1")
    stage.monitor.end(activation, [Fate("e1", "consume")], [out("b")])
    stage.monitor.request_failed("error", event="e1", activation=activation, error=f"with {KEY}")
    stage.monitor.request_failed("limit", event="gone", activation="gone")
    details = [row.detail for row in rows(stage.sink, "incident")]
    assert details[:2] == [{"activation": activation}, {"event": "e1"}]
    failed = {"how": "error", "event": "e1", "activation": activation, "error": "with ***"}
    assert details[2:] == [failed, {"how": "limit"}]
    with pytest.raises(RequestError):
        stage.monitor.waits(activation=activation)  # it has ended
    with pytest.raises(RequestError):
        stage.monitor.waits()
    with pytest.raises(RequestError):
        stage.monitor.request_failed("limit", event="e2")  # an agent's
    with pytest.raises(RequestError):
        stage.monitor.request_failed("badly")  # type: ignore[arg-type]
