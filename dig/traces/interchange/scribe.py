"""Writes the trace of a run recorded by another program, and notes all guesses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from dig._util.redaction import redact
from dig._util.text import cut
from dig.detectors.thresholds import MOST_SECONDS
from dig.graph import records
from dig.graph.graph import InteractionGraph
from dig.graph.records import Fate, HealRow, Limits, Record
from dig.monitor.late_work import LateWork

MOST_EXAMPLES = 5
IMPORT = "import"
NOT_LOOKED_AT, BECAUSE = "not_looked_at", "because"
_OFF: dict[str, dict[str, Any]] = {
    "MC": {"mc_window_s": MOST_SECONDS},
    "OE": {"oe_window_s": MOST_SECONDS},
    "DL": {"dl_window_s": MOST_SECONDS},
    "STALL": {"stall_factor": None},
    "LATE": {"late_window_s": None},
    "LOOP": {"loop_limit": None},
    "LIVELOCK": {"livelock_turns": None},
}
"""The limits that switch a pattern off; a window cannot be missing, so it becomes 31 years."""


class Guesses:
    """The guessed details of a source, each kind once, and the patterns not shown."""

    def __init__(self) -> None:
        self._examples: dict[str, list[str]] = {}
        self._blind: dict[str, list[str]] = {}  # the patterns, by the reason

    def leave_out(self, limits: Limits, patterns: Iterable[str], reason: str) -> Limits:
        """Switch invisible patterns of a source off; return the limits to write.

        The trace says so in an incident, and each check of it prints that.

        Args:
            limits: The limits by which the run would be judged.
            patterns: Their names. One without a limit (ER for instance) is only named: the reader
                has to write records that can never raise it.
            reason: Why the source cannot show them, as a sentence without its full stop.
        """
        self._blind.setdefault(reason, []).extend(patterns)
        off = {name: value for key in patterns for name, value in _OFF.get(key, {}).items()}
        return replace(limits, **off)

    def blind_details(self) -> list[dict[str, Any]]:
        """The details of the incidents about invisible patterns."""
        return [{NOT_LOOKED_AT: keys, BECAUSE: reason} for reason, keys in self._blind.items()]

    def note(self, guess: str, example: str = "") -> None:
        """Note a guess, and an example."""
        self._examples.setdefault(guess, []).append(example)

    def __iter__(self) -> Iterator[str]:
        for guess, examples in self._examples.items():
            named = [example for example in examples if example]
            yield guess + (f": {cut(named, most=MOST_EXAMPLES)}" if named else "")


def blind_spot(detail: Any, limits: Limits) -> str:
    """Name the patterns not looked at, by the detail of an `import` incident.

    Args:
        detail: The detail of the incident.
        limits: The limits by which the run is judged; they may switch a pattern on again.

    Returns:
        The patterns and the reason; empty: the detail is another.
    """
    if not isinstance(detail, dict) or not isinstance(detail.get(NOT_LOOKED_AT), list):
        return ""
    patterns = [str(pattern) for pattern in detail[NOT_LOOKED_AT]]
    off = [key for key in patterns if replace(limits, **_OFF.get(key, {})) == limits]
    return f"{', '.join(off)}: {detail.get(BECAUSE)}" if off else ""


class Scribe:
    """Appends records, with a graph to know the places of all events.

    Attributes:
        graph: The graph up to now.
        guesses: The things that had to be guessed.
        now: The time of the next records, in microseconds.
    """

    def __init__(self, run: records.Run, guesses: Guesses) -> None:
        self.graph = InteractionGraph()
        self.guesses = guesses
        self._records: list[Record] = []
        self.now = 0
        self._at_work, self._guests = set[str](), set[str]()
        self._late_work = LateWork(self)
        self._write(replace(run, patterns=records.EDITION))

    def at(self, us: int) -> None:
        """Set the time of the next records; a moment in the past counts as the latest."""
        self.now = max(self.now, us)
        self._late_work.look()

    def emit(self, event: str, by: str | None, to: Sequence[str], type: str, **more: Any) -> None:
        """Write a new event.

        Args:
            event: Its id.
            by: Its generator; ``None``: it comes from outside.
            to: Its recipients.
            type: Its type.
            more: Further fields of the record; by default those of `Emit`.
        """
        if "payload" in more:
            more["payload"] = redact(more["payload"])
        self._write(records.Emit(*self._stamp(), event, by, tuple(to), type, **more))

    def deliver(self, event: str, to: str | None) -> None:
        """Write the delivery of an event to an agent, or (``None``) the environment."""
        self._write(records.Deliver(*self._stamp(), event, to))

    def redirect(self, event: str, to: Sequence[str]) -> None:
        """Write the redirection of an event."""
        self._write(records.Redirect(*self._stamp(), event, tuple(to)))

    def start(self, activation: str, agent: str) -> tuple[str, ...]:
        """Write the start of an activation; return the inputs."""
        inputs = tuple(self.graph.agents[agent].buffer)
        self._write(records.Start(*self._stamp(), activation, agent, inputs))
        return inputs

    def end(
        self, activation: str, fates: Sequence[Fate], outputs: Sequence[str], error: Any = None,
        **origin: Any,
    ) -> None:  # fmt: skip
        """Write the end of an activation; the outputs must be emitted next.

        Args:
            activation: Its id.
            fates: The fates of its inputs.
            outputs: The ids of its outputs.
            error: Its error; ``None``: it had none.
            origin: Whose error it is, as `End` says it; by default its own.
        """
        end = records.End(
            *self._stamp(), activation, tuple(fates), tuple(outputs), error=redact(error), **origin
        )
        self._write(end)

    def reserve(self, agent: str) -> str:
        """Take a free name: the agent's, or an instance's if the agent is at work."""
        names = (agent if number == 1 else f"{agent}#{number}" for number in count(1))
        name = next(name for name in names if name not in self._at_work)
        self._at_work.add(name)
        if name not in self.graph.agents:
            self._guests.add(name)
            self._write(records.Join(*self._stamp(), name))
        return name

    def release(self, agent: str, *, leaves: bool = True) -> None:
        """Free a reserved name; an instance leaves."""
        self._at_work.discard(agent)
        if leaves and agent in self._guests:
            self._guests.remove(agent)
            self._write(records.Leave(*self._stamp(), agent))

    def copy(self, record: Record) -> None:
        """Write a record of another trace, as of now."""
        t, us = self._stamp()
        self._write(replace(record, t=t, us=us))

    def incident(self, what: str, detail: Any) -> None:
        """Write an incident."""
        self._write(records.IncidentRow(*self._stamp(), what, detail))

    def heal(
        self, pattern: str, subject: dict[str, str], action: str, event: str, **more: Any
    ) -> None:
        """Write a finding and an intervention.

        Args:
            pattern: The pattern of the finding.
            subject: The subject of the finding.
            action: The kind of intervention.
            event: The event of the intervention.
            more: Further fields of the intervention; by default those of `HealRow`.
        """
        finding = records.FindingRow(*self._stamp(), pattern, None, subject, {})
        self._write(finding)
        self._write(HealRow(*self._stamp(), finding.t, action, event, **more))

    def finish(self, outcome: records.Outcome | None, source: str) -> list[Record]:
        """Write the end of the run; returns the trace, with incidents about the guesses.

        Args:
            outcome: The outcome of the run; ``None``: the source does not tell its end.
            source: The name of the file that it was read from.
        """
        if outcome is not None:
            self._write(records.Finish(*self._stamp(), outcome))
        first, *later = self._records
        texts: list[Any] = [f"read from {source}", *(f"guess: {guess}" for guess in self.guesses)]
        texts += self.guesses.blind_details()
        trace = [first]
        for number, text in enumerate(texts, 1):
            trace.append(records.IncidentRow(number, first.us, IMPORT, text))
        for record in later:  # the incidents stand before them, so their numbers rise
            if isinstance(record, HealRow):
                record = replace(record, finding=record.finding + len(texts))
            trace.append(replace(record, t=record.t + len(texts)))
        return trace

    def _stamp(self) -> tuple[int, int]:
        return self.graph.t + 1, self.now

    def _write(self, record: Record) -> None:
        self.graph.apply(record)
        self._records.append(record)
        if isinstance(record, records.Start | records.Deliver | records.IncidentRow):
            self._late_work.note(self.graph.running.values())
