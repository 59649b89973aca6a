"""Live export: follows the records of a run, off the hot path.

The run itself only puts each record into a bounded queue. A thread takes them
out a few times a second, turns them into spans (`mapping`) and hands these to the SDK (`writer`).
"""

from __future__ import annotations

import atexit
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from dig._util.extras import importing_extra

with importing_extra("otel", "sending to OpenTelemetry"):
    from opentelemetry import metrics, trace
    from opentelemetry._logs import LoggerProvider, get_logger_provider
    from opentelemetry.metrics import MeterProvider

from dig._util.redaction import masking_logger
from dig.graph.records import Finish, Record
from dig.monitor.messages import Started
from dig.monitor.monitor import Monitor
from dig.monitor.sinks import Eviction

from .content import Content
from .environment import open_s_of_environment
from .ids import Origin, origin_of, segment
from .mapping import Mapping
from .writer import Observe, Tracers, Writer, span_of

if TYPE_CHECKING:
    from dig.runtime.bus import Bus

    from .otlp import ExportReport

ROOM = 65_536
"""The most records that may wait. They wait for this process only, never for a receiver."""

EVERY_S = 0.2
"""Seconds between two looks at the queue."""

AT_ONCE = 20
"""Records that are made into spans before the run's own thread gets its turn again."""

OPEN_S = 30.0
"""Seconds between two signs of a span that is still open."""

SHARE = 0.1
"""The part of its time that the thread works while there is room, so that a run that never waits
for anything keeps most of Python's lock. At some thousand records a second it keeps up."""

_log = masking_logger(__name__)


class Follower:
    """Makes spans of a run in progress: a `Sink`, handed to a run by `attach`.

    An error in it stops the export, never the run.

    Attributes:
        fault: The error that stopped the export; empty if there was none.
    """

    def __init__(
        self,
        make_writer: Callable[[Observe], Writer],
        origin: Origin | None = None,
        *,
        content: Content | None = None,
        room: int = ROOM,
        may_wait: bool = False,
        open_s: float = OPEN_S,
    ) -> None:
        """Prepare; the thread starts with the first record.

        Args:
            make_writer: Makes the writer; its argument returns the seconds that
                each detector has taken.
            origin: The execution and its beginning; by default one with a random name
                that begins with its first record.
            content: The limits on exported text; by default no payloads.
            room: The number of records that may wait.
            may_wait: Whether the run may wait when there is no room: in virtual time it may.
            open_s: The seconds between two signs of what is still open; 0: none.
        """
        self.fault = ""
        self._open_s = 0.0 if may_wait else open_s
        self._ticked = self._drained = time.monotonic()
        self._origin = origin
        self._content = content
        self._room = room
        self._may_wait = may_wait
        self._free = 0  # room as far as the hot path is concerned: none before the first record
        self._late = self._dropped = 0
        self._queue: deque[Record] = deque()
        self._evictions: deque[Eviction] = deque()  # to be repeated before the next record
        self._mapping: Mapping | None = None
        self._monitor: Callable[[], Monitor | None] = lambda: None
        self._wake = Event()
        self._is_closing = self._is_done = False
        self._thread = Thread(target=self._work, name="dig-otel", daemon=True)
        self._writer = make_writer(self.detector_seconds)

    @property
    def missed(self) -> int:
        """The number of records not exported."""
        return self._late + self._dropped + (len(self._queue) if self._is_closing else 0)

    def attach(self, target: Monitor | Bus) -> None:
        """Follow a run from the first record on.

        Raises:
            RequestError: A request was made already.
        """
        if isinstance(target, Monitor):
            self._monitor = lambda: target
            target.follow(self)
        else:
            self._monitor = lambda: target.monitor
            target.follow(self, self.around)

    def __call__(self, record: Record) -> None:
        """Take a record: the only work on the thread of the run."""
        if len(self._queue) < self._free:
            self._queue.append(record)
        else:
            self._make_room(record)

    def evicted(self, eviction: Eviction) -> None:
        """Queue an eviction of the session, to be repeated before the next record."""
        if self._free:  # else no further record is taken, so there is none to repeat it before
            self._evictions.append(eviction)

    def detector_seconds(self) -> dict[str, float]:
        """The seconds taken by each detector of the run."""
        monitor = self._monitor()
        return dict(monitor.detector_seconds) if monitor else {}

    def around(self, started: Started) -> AbstractContextManager[object]:
        """Make the span of an activation current while the agent acts: inner spans nest below."""
        monitor, origin = self._monitor(), self._origin
        state = monitor.graph.activations.get(started.activation) if monitor else None
        if monitor is None or state is None or origin is None:
            return nullcontext()
        # The span itself does not exist yet: its ids follow from names alone.
        number = segment(monitor.graph.history.t_start[state.n], state.us_start)
        return trace.use_span(_ActingSpan(origin, number, started.activation))

    def close(self, patience_s: float = 30.0) -> None:
        """Export all waiting records after the run. A second call does nothing.

        Args:
            patience_s: Seconds after which it gives up, if the providers do not take spans.
        """
        atexit.unregister(self.close)
        self._is_closing = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(patience_s)
        if self.missed:
            _log.warning(
                "%d records of the run were not exported: %s; its trace can be exported as a whole",
                self.missed, self.fault or "they came too fast",
            )  # fmt: skip

    # --- on the run's thread ---

    def _make_room(self, record: Record) -> None:
        """Take the first record, or a record without room."""
        if self._mapping is None:
            # The run may be older than the export: its time zero, not that of the first record.
            began = time.time_ns() - 1000 * record.us
            self._origin = self._origin or Origin(f"run-{secrets.token_hex(6)}", began)
            self._mapping = Mapping(self._origin, self._content)
            self._free = self._room
            self._thread.start()
            atexit.register(self.close)
        while self._may_wait and len(self._queue) >= self._free and not self._is_done:
            self._wake.set()
            time.sleep(0.001)
        if len(self._queue) < self._free:
            self._queue.append(record)
        else:  # nor what comes later: a graph cannot be followed with gaps
            self._free = 0
            self._late += 1

    # --- on a thread of its own ---

    def _work(self) -> None:
        is_over = False
        while not is_over:
            self._wake.wait(EVERY_S)
            self._wake.clear()
            is_over = self._is_closing
            try:
                is_over = self._drain() or is_over
                self._tick()
            except Exception as error:  # an export must never be able to stop a team
                self.fault, is_over = repr(error), True
        self._free = 0
        self._is_closing = self._is_done = True

    def _tick(self) -> None:
        """Export signs of long open spans, after every `open_s` seconds."""
        now, mapping, open_s = time.monotonic(), self._mapping, self._open_s
        if mapping is None or self._is_closing or not 0 < open_s <= now - self._ticked:
            return
        self._ticked = now
        # The clock of the run may be faster than ours, so only the time since its last record is.
        passed_ns = round(1e9 * (now - self._drained))
        self._writer.write(mapping.tick(mapping.now_ns + passed_ns, open_s))

    def _drain(self) -> bool:
        """Export all waiting records; return whether the run has ended."""
        mapping, is_over = self._mapping, False
        if mapping is None:  # for the type checker: the first record makes it
            return True
        while self._queue:
            self._drained = time.monotonic()
            start = time.perf_counter()
            records = [self._queue.popleft() for _ in range(min(AT_ONCE, len(self._queue)))]
            try:
                items = []
                for record in records:
                    # Evictions, at their places, keep the mapping as short as the session.
                    while self._evictions and self._evictions[0].t < record.t:
                        mapping.evict(self._evictions.popleft())
                    items += mapping.feed(record)
                self._writer.write(items)
            except Exception:
                self._dropped += len(records)
                raise
            is_over = isinstance(records[-1], Finish)
            # The run's own thread gets its time, unless the run is over or room becomes scarce.
            if not self._is_closing and len(self._queue) < self._room // 2:
                self._wake.wait((time.perf_counter() - start) * (1 / SHARE - 1))
        if self._is_closing and not is_over:
            reason = "what came after was not exported" if self._late else "still going"
            self._writer.write(mapping.close(reason))
        return is_over


class _ActingSpan(trace.NonRecordingSpan):
    """The span of an activation in progress, with ids made at first use."""

    def __init__(self, origin: Origin, number: int, activation: str) -> None:
        self._parts = origin, number, activation
        self._acting: trace.SpanContext | None = None

    def get_span_context(self) -> trace.SpanContext:
        if self._acting is None:
            origin, number, activation = self._parts
            ids = origin.trace_id(number), origin.activation(activation)
            self._acting = span_of(*ids).get_span_context()
        return self._acting

    def __repr__(self) -> str:
        return f"_ActingSpan({self.get_span_context()!r})"


def instrument(
    target: Monitor | Bus,
    *,
    tracer_provider: Tracers | None = None,
    meter_provider: MeterProvider | None = None,
    logger_provider: LoggerProvider | None = None,
    origin: Origin | None = None,
    content: Content | None = None,
    open_s: float = OPEN_S,
) -> Follower:
    """Export a run in progress to OpenTelemetry.

    Call it before the run is opened (a bus) or asked anything (a monitor). On a bus, what an
    agent traces itself while it acts nests below its activation.

    Args:
        target: The bus or the monitor.
        tracer_provider: The provider for spans, or a function from an agent's name (``None``: the
            monitor) to the provider for its spans; by default the process's own.
        meter_provider: The provider for measurements; by default the process's own.
        logger_provider: The provider for log records; by default the process's own.
        origin: The execution and its beginning, from which ids and times follow; by default, one
            with a random name.
        content: The limits on exported text; by default no payloads.
        open_s: The seconds between two signs of what is still open; 0: none.

    Returns:
        The follower; `close` it when the run is over, before the providers are shut down.

    Raises:
        SettingsError: The provider gives spans no ids of their own.
        RequestError: The run has begun already.

    Example:
        >>> follower = instrument(bus, tracer_provider=provider)
        >>> anyio.run(bus.run, "hello")
        >>> follower.close()
    """

    def make_writer(detector_seconds: Observe) -> Writer:
        return Writer(
            tracer_provider or trace.get_tracer_provider(),
            meter_provider or metrics.get_meter_provider(),
            logger_provider or get_logger_provider(),
            {"dig.detector.time": detector_seconds},
        )

    follower = Follower(make_writer, origin, content=content, open_s=open_s)
    follower.attach(target)
    return follower


Exporting = Callable[[Path | None], Follower]
"""Makes what follows the run with this directory; without one, its ids are drawn by chance."""


@contextmanager
def sending(
    endpoint: str | None,
    say: Callable[[ExportReport], object],
    *,
    content: Content | None = None,
    service_per_agent: bool = False,
    may_wait: bool = False,
    open_s: float | None = None,
) -> Iterator[Exporting]:
    """Send the runs in a block to a receiver.

    Args:
        endpoint: The address that spans are sent to; ``None``: as the environment says.
        say: Is told at the end what became of it.
        content: The texts that leave the process.
        service_per_agent: Whether each agent is a service of its own.
        may_wait: Whether a run may wait for its spans to be made: in virtual time it may.
        open_s: The seconds between two signs of what is still open; 0: none; ``None``: as the
            environment says, else `OPEN_S`.

    Raises:
        SettingsError: The endpoint or a variable makes no sense.
    """
    from .otlp import Otlp

    open_s = open_s_of_environment(OPEN_S) if open_s is None else open_s
    otlp = Otlp(endpoint, service_per_agent=service_per_agent)
    followers: list[Follower] = []

    def follow(directory: Path | None) -> Follower:
        origin = None if directory is None else origin_of(directory)
        follower = Follower(
            otlp.writer, origin, content=content, may_wait=may_wait, open_s=open_s
        )  # fmt: skip
        followers.append(follower)
        return follower

    try:
        yield follow
    finally:
        for follower in followers:
            follower.close()
        report = otlp.close()
        if followers:
            say(report)


def current_traceparent() -> str | None:
    """The current span as W3C trace context, to send along with an event.

    Example:
        >>> bus.inject(Output("hello", ("ada",), traceparent=current_traceparent()))
    """
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
