"""Resume: from the records of a run that stopped anywhere, a monitor that goes on.

    resumption = resume(lines, setup)
    resumption.go_live(journal, clock=clock)  # from here on a host makes the requests
    resumption.monitor.start("ada")

The monitor is deterministic, so the state of a run is a function of its records: a fresh monitor is
driven by the recorded requests, and every record that it makes must equal the recorded one. No
agent, model or tool is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from dig._util.json_text import parse_row
from dig.errors import DamageError, RecordError, ReplayError, TraceError
from dig.graph import records
from dig.graph.chain import Chain, SealedLines
from dig.graph.codec import decode
from dig.graph.records import EDITION, Record
from dig.monitor.messages import Answered, Proposed
from dig.monitor.monitor import Monitor
from dig.monitor.sinks import FanOut, Sink

from .checkpoint import Checkpoint, Clock, PendingStart, RunningActivation
from .driver.drive import ReplayDriver
from .driver.recorded_requests import Recorded, RecordedRequests
from .driver.rewind_state import RewindState
from .host import Host, Setup


def resume(
    lines: Iterable[bytes] | Iterable[Recorded],
    setup: Setup,
    *,
    name: str = "the journal",
    sink: Sink = lambda record: None,
    completes: bool = False,
    remembers: bool = False,
) -> Resumption:
    """Drive a fresh monitor through the records of a run that stopped anywhere.

    Args:
        lines: The lines of its journal, from the first one on, each with its newline. What is no
            iterator can be read again, which delivery policies need.
        setup: The parts of the run. Name, task, seed and thresholds are those of its first record.
        name: The name of the recording, for errors.
        sink: Receives every record, the recorded ones, too.
        completes: Whether the last request may lack records at its end, as in a file that a crash
            cut: then they are made now. If not, the lines are those of whole requests.
        remembers: Whether past activations are kept, for agents with a state of their own.

    Raises:
        DamageError: A line is damaged, missing or too much; the error names it.
        DivergenceError: The monitor makes another record, which the error names: a part of the run
            cannot be repeated.
        CutOffError: The lines end within the records of a request.
        ReplayError: The run cannot be driven again; the message says why.
    """
    resumption = Resumption(
        lines, setup, name=name, sink=sink, completes=completes, remembers=remembers
    )
    resumption.feed()
    return resumption


class Resumption:
    """A monitor that is driven through the records of a run, and can go on from the last one.

    A standby makes one from the first lines, and feeds it as the journal grows.

    Attributes:
        setup: The setup of the run.
        effects: The effects that leave the process, answers and questions to persons, each with
            the number of its record; a caller that needs none of them may clear the list.
        unwritten: The records that complete the last request, which are in no line yet.
    """

    def __init__(
        self,
        lines: Iterable[bytes] | Iterable[Recorded],
        setup: Setup,
        *,
        name: str = "the journal",
        sink: Sink = lambda record: None,
        completes: bool = False,
        remembers: bool = False,
    ) -> None:
        """Begin with the first line; the further ones wait for `feed`.

        Args:
            lines: The first lines of the journal; see `resume`.
            setup: The parts of the run.
            name: The name of the recording, for errors.
            sink: Receives every record, the recorded ones, too.
            completes: Whether the last request may lack records at its end.
            remembers: Whether past activations are kept, for agents with a state of their own.

        Raises:
            TraceError: The first line cannot be read, or is damaged.
            ReplayError: The run cannot be driven again.
        """
        self._name = name
        self._chain = Chain()
        self._number = 0
        self._tape = RecordedRequests(self._read(lines), name)
        self.setup = fit_setup(self._tape, setup)
        self._driver = ReplayDriver(self._tape, self.setup, sink=sink, completes=completes)
        self._state = RewindState(self._driver, remembers=remembers)
        self.effects: list[tuple[int, Answered | Proposed]] = []
        self.unwritten: list[Record] = []

    def feed(self, lines: Iterable[bytes] | Iterable[Recorded] = ()) -> None:
        """Drive the monitor through the lines that are there, and these.

        Args:
            lines: The next lines of the journal: those of whole requests.

        Raises:
            DigError: As by `resume`; of no use any more is the monitor then.
        """
        self._tape.extend(self._read(lines))
        while self._tape.ahead() is not None:
            request = self._state.step()
            accepted = {}
            for record, line in self._driver.latest:
                if isinstance(record, records.Deliver) and record.to is None:
                    accepted[record.event] = record.t
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
                have one.
            clock: The monitor's clock from here on: seconds of supervised time, beginning with
                `now_s`, since a moment that is not in the journal did not happen. ``None``: time
                stands still until the clock has another `source`.
        """
        self._driver.go_live(*sinks)
        if self.unwritten:
            FanOut(*sinks).write(self.unwritten)
        self.unwritten = []
        if clock is not None:
            self.clock.source = clock

    def checkpoint(self) -> Checkpoint:
        """The run at its last record, for bus and simulator; call `go_live` before."""
        return self._state.moment(self.setup, self._tape)

    @property
    def host(self) -> Host:
        """The host, with the monitor."""
        return self._driver.host

    @property
    def monitor(self) -> Monitor:
        """The monitor."""
        return self._driver.host.monitor

    @property
    def clock(self) -> Clock:
        """The monitor's clock: it shows the moment of the last record until `go_live`."""
        return self._driver.clock

    @property
    def lines(self) -> SealedLines | None:
        """The lines of the journal, to go on with its chain; ``None``: it is a plain trace."""
        return self._driver.lines

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
        """The activations in progress, by id, in the order in which they began."""
        return {
            item.started.activation: item
            for item in self._state.agenda.values()
            if isinstance(item, RunningActivation)
        }

    @property
    def wakes(self) -> list[str]:
        """The agents that are to be started now, in order."""
        return [start.agent for start in self._starts if start.until_us is None]

    @property
    def again(self) -> dict[str, float]:
        """The agents that are to be started again later: the moment of each, in seconds."""
        return {
            start.agent: start.until_us / 1_000_000
            for start in self._starts
            if start.until_us is not None
        }

    @property
    def _starts(self) -> list[PendingStart]:
        return [item for item in self._state.agenda.values() if isinstance(item, PendingStart)]

    def _read(self, lines: Iterable[bytes] | Iterable[Recorded]) -> Iterator[Recorded]:
        for line in lines:
            self._number += 1
            yield line if isinstance(line, Recorded) else self._recorded(line)

    def _recorded(self, line: bytes) -> Recorded:
        if not self._chain.follows(line):
            reason = "the line is damaged, or one before it is missing: its checksum does not fit"
            raise DamageError(self._name, self._number, reason)
        try:
            row = parse_row(line)
            return Recorded.of_row(line, row, decode(row))
        except RecordError as error:
            raise TraceError(self._name, self._number, str(error)) from None


def fit_setup(tape: RecordedRequests, setup: Setup) -> Setup:
    """Give a setup the name, task, seed and thresholds of a recorded run.

    Args:
        tape: The recorded run.
        setup: The parts of the run.

    Raises:
        ReplayError: The run was made with other parts, or by another edition of the patterns.
    """
    first = tape.ahead()
    if first is None or not isinstance(first.record, records.Run):
        raise ReplayError(f"{tape.name}: the first record is not of kind `run`")
    run = first.record
    if run.patterns != EDITION:
        raise ReplayError(
            f"{tape.name}: its findings are of edition {run.patterns} of the patterns, and this "
            f"version raises those of edition {EDITION}: the run can be read, but cannot go on"
        )
    header = {k: v for k, v in (tape.header or {}).items() if k != "version"}
    if header and setup.header() != header:
        raise ReplayError(f"the run was made with {header}, not with {setup.header()}")
    return replace(
        setup, run=run.run, task=run.task, seed=run.seed, session=run.session,
        memory=run.memory, limits=run.limits, usual=run.usual,
    )  # fmt: skip
