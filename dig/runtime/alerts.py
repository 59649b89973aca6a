"""Alerts: alarms go to a log, a webhook, a command or a function of yours, and block no team.

An alarm is a finding that is an error or a warning, and that no policy silences. The team's thread
only puts it into a bounded queue. Each destination has a queue and a thread of its own, which lives
as long as there is something to send, so a destination that hangs holds up nothing else. More than
`per_minute` alarms in a minute, or more than the queue holds, are not sent but counted; the log and
the next alert say how many. When the process ends, it waits a few seconds for what is queued.

Secrets are masked as in traces.
"""

from __future__ import annotations

import atexit
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Condition, Thread
from typing import Any, TypeAlias

from dig._util.redaction import masking_logger, redact
from dig._util.text import counted, one_line
from dig.detectors.describe import finding_text
from dig.detectors.finding import Finding
from dig.detectors.run_so_far import RunSoFar
from dig.detectors.settings_file import read_table
from dig.detectors.spending_limits import limit_text
from dig.errors import SettingsError
from dig.graph.graph import InteractionGraph
from dig.graph.records import BUDGET, FindingRow, IncidentRow, Record, Run
from dig.monitor.sinks import Sink

from .destinations import Alarm, CallAlerts, CommandAlerts, Destination, LogAlerts, destination

logger = masking_logger("dig")

VARIABLE = "DIG_ALERT"
TABLE = "alerts"

PER_MINUTE = 10
MOST_QUEUED = 100
FLUSH_S = 3.0
"""Seconds for which the end of the process waits for alarms that are not sent yet."""

MINUTE_S = 60.0

IGNORED = (
    "dig: %s: alerts to %s are ignored, since no option names this file; to send them, give "
    "--config %s, or name them with --alert or DIG_ALERT"
)

_Taker: TypeAlias = "Destination | Callable[[Alarm], object]"

OnAlarm: TypeAlias = "Alerts | _Taker | Sequence[_Taker]"
"""The type of `on_alarm`; functions get an `Alarm`, on a thread of their own."""


@dataclass(frozen=True)
class AlertCounts:
    """The numbers of sent, failed and dropped alarms of one destination.

    Attributes:
        destination: Its name.
        sent: The number of alarms that were sent.
        failed: The number of alarms for which the destination raised an error.
        dropped: The number of alarms not sent: too many in a minute, or in the queue, or at the
            end.
        waiting: The number of alarms that are queued or being sent.
    """

    destination: str
    sent: int = 0
    failed: int = 0
    dropped: int = 0
    waiting: int = 0

    def __str__(self) -> str:
        counts = {"failed": self.failed, "not sent": self.dropped, "not ended": self.waiting}
        more = "".join(f", {number:,} {label}" for label, number in counts.items() if number)
        return f"{self.destination}: {self.sent:,} sent{more}"


class _Outlet:
    """One destination with a queue, a rate limit and, while there is work, a thread."""

    def __init__(
        self, destination: Destination, per_minute: int, most: int, clock: Callable[[], float]
    ) -> None:
        self._destination = destination
        self._per_minute, self._most, self._clock = per_minute, most, clock
        self._recent: deque[float] = deque(maxlen=per_minute)  # when the latest were queued
        self._queue: deque[Alarm] = deque()
        self._changed = Condition()
        self._thread: Thread | None = None
        self._sending = 0
        self._missed = 0  # since the latest that was queued
        self.sent = self.failed = self.dropped = 0

    def put(self, alarm: Alarm) -> None:
        """Queue an alarm, or count it as dropped; never waits for the destination."""
        with self._changed:
            reason = self._why_not()
            if reason is None:
                self._recent.append(self._clock())
                self._queue.append(replace(alarm, missed=self._missed))
                self._missed = 0
                self._begin()
                return
            self.dropped += 1
            self._missed += 1
            is_first = self._missed == 1
        # Outside the lock: a handler of the log may block, or raise an alarm itself.
        if is_first:
            logger.warning("dig: alerts to %s: %s", self._destination.name, reason)

    def _why_not(self) -> str | None:
        recent = self._recent
        if len(recent) == self._per_minute and self._clock() < recent[0] + MINUTE_S:
            reason = f"more than {counted(self._per_minute, 'alarm')} in a minute"
        elif len(self._queue) >= self._most:
            reason = f"{counted(self._most, 'alarm')} are waiting to be sent"
        else:
            return None
        return f"{reason}; further ones are not sent but counted, and the next alert says how many"

    def _begin(self) -> None:
        if self._thread is not None:
            return
        self._thread = Thread(target=self._work, name="dig alerts", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the process is ending
            self._thread = None
            self._drop_queued()
        else:
            _working.add(self)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._sending = 0
                if not self._queue:
                    self._thread = None
                    # Under the lock, so that `put` either sees this thread at work or starts
                    # another.
                    _working.discard(self)
                    self._changed.notify_all()
                    return
                alarm = self._queue.popleft()
                self._sending = 1
                if isinstance(self._destination, CommandAlerts):
                    self._destination.uncancel()  # here, so that no `cancel` of this alarm is lost
            try:
                self._destination.send(_mask_alarm(alarm))
            except BaseException as error:  # a user's code, on a thread of ours
                self._report(error)
            else:
                self.sent += 1

    def _report(self, error: BaseException) -> None:
        """Count a failure; log the first three, and then each doubling."""
        self.failed += 1
        if self.failed <= 3 or self.failed & (self.failed - 1) == 0:
            message = one_line(redact(repr(error), self._destination.secrets))
            logger.warning("dig: an alert to %s failed: %s", self._destination.name, message)

    def _drop_queued(self) -> None:
        self.dropped += len(self._queue)
        self._queue.clear()

    def flush(self, until: float) -> AlertCounts:
        """Wait until all is sent, or until a moment on the monotonic clock; then drop the queue."""
        with self._changed:
            is_done = self._changed.wait_for(
                lambda: self._thread is None, max(0.0, until - time.monotonic())
            )
            if not is_done:
                self._drop_queued()
            counts = self.counts()
        if not is_done:
            self._destination.cancel()
        if counts.failed or counts.dropped or counts.waiting:
            logger.warning("dig: alerts to %s", counts)
        return counts

    def counts(self) -> AlertCounts:
        """The fates of the alarms up to now."""
        waiting = len(self._queue) + self._sending
        return AlertCounts(self._destination.name, self.sent, self.failed, self.dropped, waiting)


_working: set[_Outlet] = set()


@atexit.register
def _flush_all() -> None:
    """Send the alarms queued at the end of the process, for at most `FLUSH_S`."""
    until = time.monotonic() + FLUSH_S
    for outlet in list(_working):
        outlet.flush(until)


def _mask_alarm(alarm: Alarm) -> Alarm:
    finding = alarm.finding
    masked = replace(finding, subject=redact(finding.subject), evidence=redact(finding.evidence))
    headline = redact(alarm.headline)
    return replace(alarm, run=redact(alarm.run), finding=masked, headline=headline)


class Alerts:
    """Sends the alarms of runs to destinations.

    Example:
        >>> alerts = Alerts(LogAlerts(), WebhookAlerts("https://hooks.slack.com/services/T/B/X"))
        >>> [str(counts) for counts in alerts.counts()]
        ['log: 0 sent', 'webhook hooks.slack.com: 0 sent']
    """

    def __init__(
        self,
        *destinations: Destination | Callable[[Alarm], object],
        per_minute: int = PER_MINUTE,
        most_queued: int = MOST_QUEUED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with nothing sent.

        Args:
            *destinations: Destinations, or functions that take an `Alarm`.
            per_minute: The number of alarms that each destination is sent in any minute, at most.
            most_queued: The number of alarms that may wait to be sent to each destination.
            clock: Seconds, from any beginning, for the rate.

        Raises:
            SettingsError: A number is less than 1, or a destination is none.
        """
        for name, number in {"per_minute": per_minute, "most_queued": most_queued}.items():
            if type(number) is not int or number < 1:
                raise SettingsError(
                    f"{name} of alerts must be a whole number of at least 1, got {number!r:.40}"
                )
        self._outlets = [
            _Outlet(CallAlerts.of(target), per_minute, most_queued, clock)
            for target in destinations
        ]

    @classmethod
    def of(cls, on_alarm: Any) -> Alerts | None:
        """Read `on_alarm`: `Alerts`, a destination, a function, or several.

        Raises:
            SettingsError: The object is something else.
        """
        if on_alarm is None or isinstance(on_alarm, Alerts):
            return on_alarm
        return cls(*on_alarm) if isinstance(on_alarm, list | tuple) else cls(on_alarm)

    @classmethod
    def load(
        cls,
        texts: Iterable[str] = (),
        config: Path | None = None,
        environment: Mapping[str, str] = os.environ,
        *,
        is_named: bool = True,
    ) -> Alerts | None:
        """Read alerts from the command line, the environment or a file; the first source wins.

        Args:
            texts: Destinations as `destination` reads them, from a command line.
            config: A TOML file; in its table `[alerts]`, `to` is a list of destinations, and
                `per_minute` may limit them.
            environment: Variables; `DIG_ALERT` may be a destination.
            is_named: Whether the user has named the file. Of one that only lies in the working
                directory, which may be somebody else's, `log` alone is taken: no command is run
                and nothing is sent. A warning says what is ignored.

        Returns:
            The alerts; ``None``, if none are set.

        Raises:
            SettingsError: One is wrong; the message says where.
        """
        texts = list(texts)
        source, table = read_table(config, TABLE)
        unknown = table.keys() - {"to", "per_minute"}
        if unknown:
            raise SettingsError(
                f"{source}: there is no setting {min(unknown)!r:.40}; there are to and per_minute"
            )
        named = table.get("to", [])
        if not isinstance(named, list) or not all(isinstance(text, str) for text in named):
            raise SettingsError(f'{source}: `to` must be a list, such as ["log", "command:notify"]')
        if not is_named and VARIABLE not in environment and not texts:
            ignored = {text.partition(":")[0].strip() for text in named} - {LogAlerts.name}
            if ignored:
                logger.warning(IGNORED, source, one_line(", ".join(sorted(ignored))), config)
            named = [text for text in named if text.strip() == LogAlerts.name]
        if VARIABLE in environment:
            source, named = f"environment variable {VARIABLE}", [environment[VARIABLE]]
        if texts:
            source, named = "--alert", texts
        try:
            destinations = [destination(text, environment) for text in named]
            per_minute = table.get("per_minute", PER_MINUTE)
            return cls(*destinations, per_minute=per_minute) if destinations else None
        except SettingsError as error:
            raise SettingsError(f"{source}: {error}") from None

    def sink(self) -> Sink:
        """A sink for the records of one run: sends alarms, never raises or waits."""
        return _AlarmSink(self._outlets)

    def flush(self, wait_s: float = FLUSH_S) -> tuple[AlertCounts, ...]:
        """Wait until the queues are empty, drop the remaining alarms, and return all counts.

        Args:
            wait_s: For how many seconds, at most; the calling thread is blocked for as long.
        """
        until = time.monotonic() + wait_s
        return tuple(outlet.flush(until) for outlet in self._outlets)

    def counts(self) -> tuple[AlertCounts, ...]:
        """The fates of the alarms up to now, for each destination."""
        return tuple(outlet.counts() for outlet in self._outlets)


def sinks_of(sink: Sink | None, on_alarm: Any) -> list[Sink]:
    """The sinks of a run: for records and for alarms, as far as wanted.

    Raises:
        SettingsError: `on_alarm` is no destination.
    """
    alerts = Alerts.of(on_alarm)
    sinks = [sink, None if alerts is None else alerts.sink()]
    return [sink for sink in sinks if sink is not None]


class _AlarmSink:
    """Puts the alarms of one run into the queues; our own errors end no run."""

    def __init__(self, outlets: Sequence[_Outlet]) -> None:
        self._outlets = outlets
        self._run = ""
        self._so_far = RunSoFar()

    def reads(self, graph: InteractionGraph) -> None:
        """Take the graph of the run, for headlines."""
        self._so_far = RunSoFar(graph)
        if graph.t >= 0:  # the run goes on, and its first record does not come again
            self._so_far.run, self._run = graph.run, graph.run.run

    def __call__(self, record: Record) -> None:
        """Send an alarm for a record of a finding."""
        self._so_far.write((record,))
        if isinstance(record, FindingRow):
            finding = Finding(
                record.pattern, record.t, record.us, record.subject, record.evidence, record.stage,
                record.severity or "warning", record.silenced,
            )  # fmt: skip
            if finding.is_alarm:
                self._put(finding, self._headline(finding))
        elif isinstance(record, IncidentRow) and record.what == BUDGET:
            detail: Any = record.detail
            if detail.get("stage") == "warning":
                about = {"event": detail["event"]}
                finding = Finding(BUDGET, record.t, record.us, about, detail, None, "warning")
                self._put(finding, f"budget: {limit_text(detail)}")
        elif isinstance(record, Run):
            self._run = record.run

    def _headline(self, finding: Finding) -> str:
        """The end of a failed request, or the ring of agents; empty: the finding says all."""
        graph, failure = self._so_far.graph, self._so_far.headline
        # The five answers may be about another request, and ask the question of a person.
        if failure is not None and failure.t == finding.t:
            verdict = "Failed" if failure.stage == "request" else "Incomplete answer"
            return f"{verdict}: {failure.says}"
        is_ring = finding.pattern == "LIVELOCK" and graph is not None
        return finding_text(finding, graph) if is_ring else ""

    def _put(self, finding: Finding, headline: str) -> None:
        for outlet in self._outlets:
            outlet.put(Alarm(self._run, finding, headline=headline))
