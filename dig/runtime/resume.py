"""Resumption: from the records of a stopped run, a monitor for its continuation.

    resumption = resume(lines, setup)
    resumption.go_live(journal, clock=clock)  # from here on a host makes the requests
    resumption.monitor.start("ada")

The monitor is deterministic, so the state of a run is a function of its records: a fresh monitor is
driven by the recorded requests, and every record that it makes must equal the recorded one. No
agent, model or tool is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from dig import errors
from dig._util.json_text import parse_row
from dig.detectors.watch import Timing
from dig.graph.chain import Chain
from dig.graph.codec import decode
from dig.graph.records import Deliver, Emit, Record
from dig.monitor.messages import Answered, Effect, Proposed
from dig.monitor.monitor import Monitor
from dig.monitor.sinks import FanOut, Sink

from .checkpoint import Checkpoint, ExternalInput, PendingStart, RunningActivation
from .driver.drive import ReplayDriver, Request
from .driver.recorded_requests import Recorded, RecordedRequests
from .driver.rewind_state import RewindState
from .setup import Setup

Lines = Iterable[bytes] | Iterable[Recorded]
"""The lines of a journal, or those of any trace with their records."""

RESUMED = "resumed"
"""The incident when a run goes on after its process had ended."""


def resume(lines: Lines, setup: Setup, **options: Any) -> Resumption:
    """Drive a fresh monitor through the records of a run, wherever the run stopped.

    Args:
        lines: All lines of its journal, each with its newline.
        setup: The parts of the run. Name, task, seed and thresholds are those of its first record,
            the number of kept records that of its header.
        **options: As for `Resumption`.

    Raises:
        DamageError: A line is damaged, missing or too much; the error names it.
        UnresumableError: A record cannot be made again; the error names it. A part of the run reads
            a clock, for instance.
        CutOffError: The lines end within the records of a request.
        ReplayError: The run cannot be driven again; the message says why.
    """
    resumption = Resumption(lines, setup, **options)
    resumption.feed()
    return resumption


class Resumption:
    """A monitor driven through the records of a run, ready to go on from the last record.

    A standby makes one from the first lines, and feeds it as the journal grows.

    Attributes:
        setup: The setup of the run.
        host: The host.
        monitor: Its monitor.
        clock: The monitor's clock: it shows the moment of the last record until `go_live`.
        lines: The lines of the journal, to go on with its chain; ``None``: it is a plain trace.
        effects: The effects that leave the process, answers and questions to persons, each with
            the number of its record; a caller that needs none of them may clear the list.
        unwritten: The records that complete the last request, which are in no line yet.
    """

    def __init__(
        self,
        lines: Lines,
        setup: Setup,
        *,
        name: str = "the journal",
        sink: Sink = lambda record: None,
        completes: bool = False,
        remembers: bool = False,
        timing: Timing | None = None,
        is_served: bool = False,
    ) -> None:
        """Begin with the first line; the further lines wait for `feed`.

        Args:
            lines: The first lines of the journal, each with its newline. What is no iterator can be
                read again, which takes up delivery policies.
            setup: The parts of the run.
            name: The name of the recording, for errors.
            sink: Receives every record, the recorded ones, too.
            completes: Whether the last request may lack records at its end, as in a file that a
                crash cut: then they are made now. If not, the lines are those of whole requests.
            remembers: Whether past activations are kept, for agents with a state of their own.
            timing: The clocks that time detectors after `go_live`; ``None``, and so for a session
                that others are to resume: none are timed.
            is_served: As for the host.

        Raises:
            TraceError: The first line cannot be read, or is damaged.
            ReplayError: The run cannot be driven again.
        """
        self._reader = LineReader(name)
        again: Callable[[], Iterator[Record]] | None = None
        if iter(lines) is not lines:
            again = partial(_records_of, name, lines)
        self._tape = RecordedRequests(self._reader.read(lines), name, again=again)
        self.setup = self._tape.fit(setup)
        self._driver = ReplayDriver(
            self._tape, self.setup, sink=sink, completes=completes, timing=timing,
            is_served=is_served,
        )  # fmt: skip
        self.host, self.monitor = self._driver.host, self._driver.host.monitor
        self.clock, self.lines = self._driver.clock, self._driver.lines
        self._state = RewindState(self._driver, remembers=remembers)
        self._delayed: list[str] = []  # events with a delivery policy
        self.effects: list[tuple[int, Answered | Proposed]] = []
        self.unwritten: list[Record] = []

    def feed(self, lines: Lines = ()) -> None:
        """Drive the monitor through the remaining lines, and some more.

        Args:
            lines: The next lines of the journal: those of whole requests.

        Raises:
            DigError: As by `resume`; the monitor is of no use any more then.
        """
        if lines != ():
            self._tape.extend(self._reader.read(lines))
        while (recorded := self._tape.ahead()) is not None:
            try:
                request = self._state.step()
            except errors.CutOffError:
                raise
            except errors.ReplayError as error:
                t = error.record if isinstance(error, errors.DivergenceError) else recorded.record.t
                raise errors.UnresumableError(t, str(error)) from error
            accepted = {}
            for record, line in self._driver.latest:
                if isinstance(record, Deliver) and record.to is None:
                    accepted[record.event] = record.t
                elif isinstance(record, Emit) and record.policy is not None:
                    self._delayed.append(record.event)
                if not line:
                    self.unwritten.append(record)
            for effect in request.effects:
                if isinstance(effect, Answered):
                    self.effects.append((accepted[effect.event], effect))
                elif isinstance(effect, Proposed):
                    self.effects.append((effect.row, effect))

    def go_live(self, *sinks: Sink, clock: Callable[[], float] | None = None) -> None:
        """Let a host make the requests from here on.

        Args:
            *sinks: Receive every new record; those of a request at once, by their `write`, if they
                have one. A journal's `go_on` is told the lines and the number of records so far.
            clock: The monitor's clock from here on: seconds of supervised time, beginning with
                `now_s`, since a moment that is not in the journal did not happen. ``None``: time
                stands still until the clock has another `source`.
        """
        for sink in sinks:
            if (go_on := getattr(sink, "go_on", None)) is not None:
                if self.lines is None:
                    raise errors.ReplayError("a plain trace cannot go on as a journal")
                go_on(self.lines, self.t + 1 - len(self.unwritten))
        self._driver.go_live(*sinks)
        if self.unwritten:
            FanOut(*sinks).write(self.unwritten)
        self.unwritten = []
        if clock is not None:
            self.clock.source = clock

    def checkpoint(self, *sinks: Sink, resumed: Mapping[str, Any] | None = None) -> Checkpoint:
        """The run at the last record, for a bus or simulator; the host calls `begin` to go live.

        Open questions to persons are asked again. A delivery policy is code, which is not recorded,
        so an event that one still keeps is released.

        Args:
            *sinks: Receive every new record.
            resumed: The detail of an incident `resumed`; ``None``: none is written.
        """
        requests: list[Request] = []
        if resumed is not None:
            requests.append(lambda monitor: monitor.incident(RESUMED, resumed))
        requests += [partial(_release, event=event) for event in self._delayed]
        now = [ExternalInput(self._driver.us, None, request) for request in requests]
        moment = self._state.moment(self.setup, self._tape, now)
        moment.effects += self.monitor.proposals
        moment.begin = partial(self.go_live, *sinks)
        return moment

    @property
    def t(self) -> int:
        """The number of the last record."""
        return self.monitor.graph.t

    @property
    def now_s(self) -> float:
        """The moment of the last record, in seconds on the monitor's clock."""
        return self._driver.us / 1_000_000

    @property
    def running(self) -> dict[str, RunningActivation]:
        """The activations in progress, by id, in the order of their starts."""
        return {
            item.started.activation: item
            for item in self._state.agenda.values()
            if isinstance(item, RunningActivation)
        }

    @property
    def wakes(self) -> list[str]:
        """The agents to start now, in order."""
        return [start.agent for start in self._starts if start.until_us is None]

    @property
    def again(self) -> dict[str, float]:
        """The agents to start again later: the moment of each, in seconds."""
        return {
            start.agent: start.until_us / 1_000_000
            for start in self._starts
            if start.until_us is not None
        }

    @property
    def _starts(self) -> list[PendingStart]:
        return [item for item in self._state.agenda.values() if isinstance(item, PendingStart)]


class LineReader:
    """Reads the lines of a journal, and checks the chain."""

    def __init__(self, name: str) -> None:
        """Begin before the first line.

        Args:
            name: The name of the journal, for errors.
        """
        self._name = name
        self._chain = Chain()
        self._number = 0

    def read(self, lines: Lines) -> Iterator[Recorded]:
        """Yield the next lines with the records; lines already read are passed on.

        Raises:
            DamageError: A line is damaged, missing or too much.
            TraceError: A line holds no record.
        """
        for line in lines:
            self._number += 1
            yield line if isinstance(line, Recorded) else self._read(line)

    def _read(self, line: bytes) -> Recorded:
        if not self._chain.follows(line):
            reason = "the line is damaged, or one before it is missing: its checksum does not fit"
            raise errors.DamageError(self._name, self._number, reason)
        try:
            row = parse_row(line)
            return Recorded.of_row(line, row, decode(row))
        except errors.RecordError as error:
            raise errors.TraceError(self._name, self._number, str(error)) from None


def _release(monitor: Monitor, event: str) -> list[Effect]:
    with suppress(errors.RequestError):
        return monitor.release(event)
    return []  # it has arrived, or was called back


def _records_of(name: str, lines: Lines) -> Iterator[Record]:
    return (recorded.record for recorded in LineReader(name).read(lines))
