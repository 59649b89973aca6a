"""Delivery: what was taken on, what arrived and what was lost always add up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event, get_ident

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.graph.records import Record
from dig.tasks.run.arrange import make_simulation, make_task
from dig.tasks.run.team_run import TeamRun
from dig.traces.otel.export_queue import BATCH_BYTES, Delivery
from dig.traces.otel.follow import Follower
from dig.traces.otel.otlp import ExportReport, Otlp
from tests.helpers import Recorder

from .receiver import Received, http_receiver

PATIENCE_S = 60.0  # nothing here takes that long unless it is broken


class Receiver:
    """Takes batches; holds them up at a gate, and answers as it is told."""

    def __init__(self, *answers: bool | Exception, is_open: bool = True) -> None:
        self.batches: list[list[int]] = []
        self.answers = list(answers)
        self.began = Event()
        self.gate = Event()
        self.threads: set[int] = set()
        self.is_stopped = False
        if is_open:
            self.gate.set()

    def stop(self) -> None:
        self.is_stopped = True
        self.gate.set()

    def __call__(self, batch: Sequence[int]) -> bool:
        self.threads.add(get_ident())
        self.began.set()
        assert self.gate.wait(PATIENCE_S)
        answer = self.answers.pop(0) if self.answers else not self.is_stopped
        if isinstance(answer, Exception):
            raise answer
        if answer:
            self.batches.append(list(batch))
        return answer


def delivery(receiver: Receiver, room: int = 10, batch: int = 4) -> Delivery[int]:
    return Delivery("test", receiver, receiver.stop, room=room, batch=batch, every_s=0.001)


@given(
    st.lists(st.integers(0, 3), max_size=40),
    st.lists(st.booleans() | st.just(OSError("no")), max_size=10),
)
def test_offered_is_delivered_and_failed_and_refused(
    chunks: list[int], answers: list[bool | Exception]
) -> None:
    """Whatever the receiver answers: every item is counted once, in one of three ways."""
    receiver = Receiver(*answers)
    queue = delivery(receiver, room=5, batch=2)
    for chunk in chunks:
        for item in range(chunk):
            queue.offer(item)
    queue.close(PATIENCE_S)
    assert queue.offered == sum(chunks) == queue.delivered + queue.failed + queue.refused
    assert queue.delivered == sum(map(len, receiver.batches))
    assert queue.lost == queue.failed + queue.refused
    assert all(len(batch) <= 2 for batch in receiver.batches)


def test_a_dead_receiver_costs_the_room_and_no_more() -> None:
    """What waits is bounded; what is beyond is lost, and nobody waited for anything."""
    receiver = Receiver(is_open=False)
    queue = delivery(receiver, room=10, batch=4)
    queue.offer(0)
    assert receiver.began.wait(PATIENCE_S)
    for item in range(1, 100):
        queue.offer(item)
    assert len(queue._queue) == 10
    assert queue.refused == 89
    assert receiver.threads.isdisjoint({get_ident()})
    queue.close(0.0)
    assert queue.lost == 100
    assert receiver.is_stopped


def test_a_receiver_that_comes_back_gets_what_waited_in_order() -> None:
    receiver = Receiver(is_open=False)
    queue = delivery(receiver, room=10, batch=4)
    for item in range(10):
        queue.offer(item)
    receiver.gate.set()
    queue.close(PATIENCE_S)
    assert [item for batch in receiver.batches for item in batch] == list(range(10))
    assert queue.lost == 0


def test_a_batch_is_as_large_as_a_receiver_takes() -> None:
    """Large items go in small batches; one that is too large goes alone."""
    receiver = Receiver(is_open=False)
    half = BATCH_BYTES // 2
    queue = Delivery(
        "test", receiver, size={0: 0, 1: half, 2: 10 * half}.__getitem__, every_s=0.001
    )  # fmt: skip
    queue.offer(0)
    assert receiver.began.wait(PATIENCE_S)
    for item in (1, 1, 1, 2, 2):
        queue.offer(item)
    receiver.gate.set()
    queue.close(PATIENCE_S)
    assert receiver.batches == [[0], [1, 1], [1], [2], [2]]


def test_nothing_is_taken_after_the_end() -> None:
    queue = delivery(Receiver())
    queue.close(PATIENCE_S)
    queue.offer(1)
    assert (queue.offered, queue.refused) == (1, 1)


# --- over the wire ---


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """A run of some dozen activations."""
    sink = Recorder()
    run = TeamRun(agents=6, size=10_000, seed=604)
    make_simulation(run, make_task(run), sink).run()
    return list(sink)


@pytest.fixture
def receiver() -> Iterator[Received]:
    with http_receiver() as received:
        yield received


def exported(records: list[Record], otlp: Otlp, patience_s: float = PATIENCE_S) -> ExportReport:
    follower = Follower(otlp.writer)
    for record in records:
        follower(record)
    follower.close()
    assert follower.missed == 0
    return otlp.close(patience_s)


def test_a_slow_receiver_gets_everything(receiver: Received, records: list[Record]) -> None:
    receiver.delay_s = 0.2
    report = exported(records, Otlp(receiver.endpoint))
    assert (report.spans, report.lost) == (len(receiver.spans()), 0)


def test_a_receiver_that_is_away_gets_everything_when_it_is_back(
    receiver: Received, records: list[Record]
) -> None:
    """Unavailable for a while is tried again."""
    receiver.away = 1
    report = exported(records, Otlp(receiver.endpoint))
    assert report.spans == len(receiver.spans()) == 29
    assert (report.lost_spans, report.lost_logs) == (0, 0)


def test_what_a_dead_receiver_never_got_is_counted_exactly(records: list[Record]) -> None:
    with http_receiver() as gone:
        endpoint = gone.endpoint
    report = exported(records, Otlp(endpoint), patience_s=0.05)
    assert (report.spans, report.lost_spans) == (0, 29)
    assert (report.logs, report.lost_logs) == (0, 3)
    assert report.lost == 32
    assert not report.metrics
    assert "lost 29 spans and 3 log records" in str(report)


def test_a_receiver_that_refuses_says_why(receiver: Received, records: list[Record]) -> None:
    receiver.refuses = {"/v1/traces": 401, "/v1/logs": 401, "/v1/metrics": 401}
    report = exported(records, Otlp(receiver.endpoint))
    assert report.lost == 32
    assert "401" in str(report)


def test_a_receiver_of_spans_alone_loses_nothing(receiver: Received, records: list[Record]) -> None:
    """Jaeger takes no metrics and no logs; that is told, and is no loss."""
    receiver.refuses = {"/v1/logs": 404, "/v1/metrics": 404}
    report = exported(records, Otlp(receiver.endpoint))
    assert (report.spans, report.lost) == (29, 0)
    assert str(report).endswith("; the receiver took no log records and no metrics")


def test_the_run_is_the_same_whatever_becomes_of_its_spans() -> None:
    """With an export that loses everything, a run has the same records and the same result."""
    alone, followed = Recorder(), Recorder()
    run = TeamRun(agents=6, size=10_000, seed=604)
    results = [make_simulation(run, make_task(run), alone).run()]
    simulation = make_simulation(run, make_task(run), followed)
    with http_receiver() as gone:
        otlp = Otlp(gone.endpoint)
    follower = Follower(otlp.writer)
    follower.attach(simulation.host.monitor)
    results.append(simulation.run())
    follower.close()
    assert otlp.close(0.05).lost_spans == 29
    assert results[0] == results[1]
    assert followed == alone
