"""Delivery: a bounded queue and an exporting thread, with exact counts.

The SDK's batch processor drops what it has no room for without counting it, drops what an
exporter failed to send without telling, and reports success when a flush timed out. Here
the offered, delivered and lost items always add up.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Sequence
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

from opentelemetry.context import Context, attach, set_value
from opentelemetry.sdk._logs import LogRecordProcessor, ReadableLogRecord
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

_T = TypeVar("_T")

ROOM = 32_768
"""The most items that wait for a receiver that is dead or too slow."""

BATCH = 512
BATCH_BYTES = 2_000_000
"""A batch stays below the 4 MB that a gRPC server takes by default."""

STOPS_IN_S = 0.5
"""Seconds that an exporter has to stop what it is trying."""

EVERY_S = 0.5
"""Seconds that a batch waits to become larger."""


class Delivery(Generic[_T]):
    """Exports items in order, on an own thread; `offer` never blocks.

    Attributes:
        offered: The number of items that were offered.
        delivered: The number of them that the exporter confirmed.
        failed: The number that the exporter could not send.
        refused: The number for which there was no room.
    """

    def __init__(
        self,
        name: str,
        export: Callable[[Sequence[_T]], bool],
        stop: Callable[[], None] = lambda: None,
        *,
        size: Callable[[_T], int] = lambda item: 0,
        room: int = ROOM,
        batch: int = BATCH,
        every_s: float = EVERY_S,
    ) -> None:
        """Start the thread.

        Args:
            name: The kind of items, for the thread's name.
            export: Sends a batch, and returns whether it arrived.
            stop: Makes an `export` in progress give up.
            size: The approximate size of an item in bytes; by default 0.
            room: The number of items that may wait.
            batch: The most items in one batch.
            every_s: Seconds between two looks at the queue.
        """
        self.offered = self.delivered = self.failed = self.refused = 0
        self._export = export
        self._stop = stop
        self._size = size
        self._room = room
        self._batch = batch
        self._every_s = every_s
        self._queue: deque[_T] = deque()
        self._is_closing = self._has_given_up = self._is_done = False
        self._changed = Condition()
        self._thread = Thread(target=self._work, name=f"dig-{name}", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """The number of items not delivered; until `close`, waiting items are counted, too."""
        return self.offered - self.delivered

    def offer(self, item: _T) -> None:
        """Queue an item for export; without room, the item is lost and counted."""
        self.offered += 1
        if len(self._queue) < self._room and not self._is_closing:
            self._queue.append(item)
        else:
            self.refused += 1

    def wait_for_room(self, patience_s: float) -> None:
        """Wait until half of the room is free; give up after `patience_s` without a delivery."""
        self._wait(lambda: self._is_done or len(self._queue) <= self._room // 2, patience_s)

    def close(self, patience_s: float) -> None:
        """Deliver all waiting items; give up after `patience_s` seconds without a delivery."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._has_given_up = not self._wait(lambda: self._is_done, patience_s)
        self._stop()
        self._wait(lambda: self._is_done, STOPS_IN_S)

    def _wait(self, is_over: Callable[[], bool], patience_s: float) -> bool:
        """Wait for a condition as long as there is progress; return the condition."""
        before = -1

        def is_settled() -> bool:
            return is_over() or self.delivered > before

        with self._changed:
            while not is_over() and self.delivered > before:
                before = self.delivered
                self._changed.wait_for(is_settled, patience_s)
            return is_over()

    # --- the thread ---

    def _work(self) -> None:
        attach(set_value("suppress_instrumentation", True))  # its requests are no part of a trace
        while not self._has_given_up:
            with self._changed:
                if not self._is_closing and len(self._queue) < self._batch:
                    self._changed.wait(self._every_s)
            if self._is_closing and not self._queue:
                break
            before = self.delivered + self.failed
            most = len(self._queue)  # what comes meanwhile waits to become a batch
            while self.delivered + self.failed - before < most and not self._has_given_up:
                self._send(self._next())
        with self._changed:
            self._is_done = True
            self._changed.notify_all()

    def _next(self) -> list[_T]:
        batch, size = [self._queue.popleft()], 0
        while self._queue and len(batch) < self._batch:
            size += self._size(batch[-1])
            if size + self._size(self._queue[0]) > BATCH_BYTES:
                break
            batch.append(self._queue.popleft())
        return batch

    def _send(self, batch: list[_T]) -> None:
        try:
            arrived = self._export(batch)
        except Exception:  # an exporter must never be able to stop the others
            arrived = False
        with self._changed:
            if arrived:
                self.delivered += len(batch)
            else:
                self.failed += len(batch)
            self._changed.notify_all()


class SpanQueue(SpanProcessor):
    """Hands ended spans to a delivery."""

    def __init__(self, delivery: Delivery[ReadableSpan]) -> None:
        """Begin to take spans."""
        self._delivery = delivery

    def on_end(self, span: ReadableSpan) -> None:
        """Take a span, if sampled."""
        context = span.get_span_context()
        if context is not None and context.trace_flags.sampled:
            self._delivery.offer(span)


class LogQueue(LogRecordProcessor):
    """Hands log records to a delivery."""

    def __init__(self, delivery: Delivery[Any]) -> None:
        """Begin to take log records."""
        self._delivery = delivery

    def on_emit(self, log_record: Any) -> None:
        """Take a log record."""
        body, scope = copy.copy(log_record.log_record), log_record.instrumentation_scope
        body.context = Context()  # its ids are in fields of their own
        resource = log_record.resource or Resource.create({})
        self._delivery.offer(ReadableLogRecord(body, resource, scope))

    def shutdown(self) -> None:
        """Do nothing: the owner of the delivery closes it."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Do nothing, and return no success: the owner of the delivery closes it."""
        return False


def size_of(span: ReadableSpan) -> int:
    """The approximate size of an exported span in bytes."""
    attributes = span.attributes or {}
    size = 400 + 120 * (len(span.links) + len(span.events)) + 40 * len(attributes)
    for value in attributes.values():
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, Sequence):
            size += sum(len(part) + 6 for part in value if isinstance(part, str))
    return size
