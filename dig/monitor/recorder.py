"""The recorder: applies, checks and writes records, and collects effects.

All parts of the monitor change the graph through `Recorder.write` alone. The sinks are given all
records of a request at its end, and its effects come after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dig.detectors.finding import Finding
from dig.detectors.policy import Policy, apply_policy
from dig.detectors.protocols import Detector
from dig.detectors.watch import SLOW_S, Timing, Watch
from dig.errors import RequestError
from dig.graph import records
from dig.graph.records import CLOSED, Record

from .messages import ComponentFailed, Effect, Over, PartsSlow, Raised
from .payloads import PayloadStore
from .relevance import Relevance
from .sanitize import Sanitizer
from .sinks import Eviction, FanOut, Sink

MOST_SLOW_S = 3.0
"""After how many seconds in slow detectors and slow writes that is told."""

_NO_MORE: Mapping[str, Any] = {}

FREE_TEXTS = ("who", "what", "why", "reason", "note")
"""The members of an incident, and of an intervention, that a part of a user's words itself."""


class Recorder:
    """The writer of one run: all records, and the effects for the host.

    Attributes:
        graph: The graph.
        watch: The graph with its detectors.
        mask: Masks secrets in what parts of the monitor say, before it becomes a row.
        payloads: The payloads of the events; those that a record uses up are dropped with it.
        relevance: Tells which turns the notes beside them are for.
        now: The moment of the call in progress, in microseconds.
        new_findings: The findings not healed yet, each with the logical time of its record.
        effects: The effects that the host has to carry out when the call returns, in order.
        is_over: Whether only the last record may follow: the run has its answer or its end, or
            it was closed because a component or a sink failed.
        can_write: Whether the trace goes on: it has no last record, and no sink has failed.
    """

    def __init__(
        self, detectors: Sequence[Detector], clock: Callable[[], float], sink: Sink | None,
        stopwatch: Timing | Callable[[], float] | None, fail_closed: bool, policy: Policy,
        sanitizer: Sanitizer,
    ) -> None:  # fmt: skip
        """Begin with an empty graph; `dig.monitor.monitor.Monitor` describes the arguments."""
        timing = stopwatch if isinstance(stopwatch, Timing) else Timing(stopwatch)
        self.watch = Watch(detectors, on_fault=self._note_failure, stopwatch=timing, obeys=True)
        self._wall = timing.wall
        self._began_s = self._wall() if self._wall else 0.0
        self._sink_s = 0.0
        self._is_told_slow = False
        self._recorded = timing.recorded
        self.graph = self.watch.graph
        self.mask = sanitizer.mask
        self.payloads = PayloadStore(self.graph)
        self.relevance = Relevance(self.graph)
        self.now = 0
        self.new_findings: list[tuple[int, Finding]] = []
        self.effects: list[Effect] = []
        self.is_over = False
        self.can_write = True
        self._clock = clock
        self._sinks = FanOut() if sink is None else FanOut(sink)
        self._sinks.reads(self.graph)
        self._fail_closed = fail_closed
        self._policy = policy
        self._is_closed = False
        self._unwritten: list[Record] = []
        self._beginning: tuple[Record, ...] = ()
        self._failures: list[tuple[str, str, Mapping[str, Any]]] = []

    def look_at_clock(self) -> None:
        """Take the time of the call, and record findings due by then.

        A clock that goes back stands still here.
        """
        now = self.now = max(self.now, round(self._clock() * 1_000_000))
        watch = self.watch
        if watch.off:
            for place, (until, component) in tuple(watch.off.items()):
                if until <= now:
                    self.incident(records.TRIED_AGAIN, {"who": component, "place": place})
        if watch.left_out and watch.is_later(now):
            self.report_left_out()
        not_before = watch.not_before
        if not_before is not None and not_before <= now:
            findings = watch.advance(now)
            self._report_failures()
            self._record_findings(findings)

    @property
    def moment(self) -> tuple[int, int]:
        """The logical time of the next record, and the present moment."""
        return self.graph.t + 1, self.now

    def write(self, record: Record) -> None:
        """Apply a record of the present `moment`, and record the findings about it.

        It is written with all records of the request, before the effects of these.
        """
        findings = self.watch.feed(record)
        if self.relevance.is_used:
            self.relevance.look(record)
        # Written at the end of the call, all in one write, and before the effects.
        self._unwritten.append(record)
        if self.graph.changed & CLOSED:
            self.payloads.drop_consumed()
        # One test for three cases that are seldom, since this is the hot path.
        if findings or self._failures or self._recorded:
            self._report_failures()
            self._record_findings(findings)

    def begin(self) -> None:
        """Write the first record, and failures at the start."""
        self._beginning = tuple(self._unwritten)
        self.take_effects()
        self._is_told_slow = False  # there was nobody to tell

    def take_effects(self) -> list[Effect]:
        """Write the records of a finished request, and take the effects.

        An exception of a sink goes to the host: without a journal no effect may happen.
        """
        self._write_all()
        effects, self.effects = self.effects, []
        return effects

    def shares(self) -> tuple[float, float]:
        """The shares of run time spent in detectors and in the sink."""
        run_s = (self._wall() - self._began_s if self._wall else 0.0) or 1.0
        return sum(tuple(self.watch.seconds.values())) / run_s, self._sink_s / run_s

    def _write_all(self) -> None:
        rows, self._unwritten = self._unwritten, []
        if not rows:
            return
        wall = self._wall
        began = wall() if wall else 0.0
        try:
            self._sinks.write(rows)
        except BaseException:  # without a journal no effect may happen
            self.can_write, self._is_closed, self.is_over = False, True, True
            self.effects.clear()
            raise
        if wall:
            took_s = wall() - began
            self._sink_s += took_s
            if took_s >= SLOW_S:
                self.watch.slow_s += took_s
            if self.watch.slow_s >= MOST_SLOW_S and not self._is_told_slow:
                self._is_told_slow = True
                self.effects.append(PartsSlow(self.watch.slow_s, *self.shares()))

    def incident(self, kind: str, detail: object) -> None:
        """Write down an incident: a fact without a change of the graph."""
        if isinstance(detail, Mapping):  # its other members are names and ids
            detail = {k: self.mask(v) if k in FREE_TEXTS else v for k, v in detail.items()}
        self.write(records.IncidentRow(*self.moment, kind, detail))
        if kind == records.FAILED and isinstance(detail, Mapping):
            failed = ComponentFailed(str(detail.get("who")), str(detail.get("what")))
            self.effects.append(failed)

    def report_component_failure(
        self, component: str, failure: str, more: Mapping[str, Any] = _NO_MORE
    ) -> None:
        """Write down the failure of a part handed in; fail-closed, end the run."""
        self.incident(records.FAILED, {"who": component, "what": failure, **more})
        if self._fail_closed and not self._is_closed:
            self._is_closed = self.is_over = True
            self.effects.append(Over("error"))

    def report_left_out(self) -> None:
        """Write down how many findings a minute had no room for, by pattern."""
        left_out = dict(self.watch.left_out)
        self.watch.left_out.clear()
        for pattern, count in left_out.items():
            self.incident(records.LEFT_OUT, {"pattern": pattern, "count": count})

    def follow(self, sink: Sink) -> None:
        """Add a sink for every record.

        Raises:
            RequestError: A request was made already.
        """
        if self.graph.t >= len(self._beginning):
            raise RequestError("a run can only be followed before its first request")
        self._sinks.add(sink)
        FanOut(sink).reads(self.graph)
        for record in self._beginning:
            sink(record)

    def evict(self, keep: int, pinned: Iterable[str]) -> None:
        """Evict closed history; detectors and sinks forget it, too.

        Args:
            keep: The number of the latest records that stay as they are.
            pinned: The events about which everything stays, and the activations whose agent does.
        """
        self._write_all()  # a sink must have all records before it forgets any
        awaited = self.watch.awaited_ids() | self.relevance.awaited_ids()
        pinned = frozenset(awaited.union(pinned))
        eviction = Eviction(self.graph.t, keep, pinned, self.graph.evict(keep, pinned))
        self.payloads.forget()
        self.watch.forget()
        try:
            self._sinks.evicted(eviction)
        except Exception as error:  # a sink that cannot forget must not stop a team
            self._failures.append(("a follower", f"raised {error!r}", _NO_MORE))
        self._report_failures()

    def _record_findings(self, findings: Iterable[Finding]) -> None:
        """Write findings down, to be healed later in the call."""
        for finding in findings:
            finding = apply_policy(self._policy, self.graph, finding)
            finding = replace(finding, evidence=self.mask(finding.evidence))
            self.new_findings.append((self.graph.t + 1, finding))
            self.effects.append(Raised(finding))
            self.write(records.FindingRow(
                *self.moment, finding.pattern, finding.stage, finding.subject,
                finding.evidence, finding.severity, finding.silenced,
            ))  # fmt: skip

    def _report_failures(self) -> None:
        while (failure := self._next_failure()) is not None:
            self.report_component_failure(*failure)

    def _next_failure(self) -> tuple[str, str, Mapping[str, Any]] | None:
        """The next failure to write down: a recorded one of a slow detector, or a new one."""
        slow = self._recorded(self.graph.t + 1, self.now) if self._recorded else None
        if slow is not None:
            return slow["who"], slow["what"], {key: slow[key] for key in ("place", "off_s")}
        return self._failures.pop(0) if self._failures else None

    def _note_failure(
        self, detector: str, failure: str, more: Mapping[str, Any] = _NO_MORE
    ) -> None:
        # It comes in the middle of a record, and is written down after it.
        self._failures.append((f"detector {detector}", failure, more))
