"""All changes of a fork, checked against the recorded run, and their requests."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from dig.errors import ReplayError, RequestError, TraceError
from dig.graph import records
from dig.graph.graph import InteractionGraph
from dig.graph.records import Emit, Record
from dig.monitor.messages import Effect, Output
from dig.monitor.monitor import Monitor
from dig.runtime.checkpoint import ExternalInput
from dig.runtime.driver.drive import Request
from dig.runtime.driver.edits import RecordEdit, changeable, is_healed
from dig.runtime.driver.rewind_state import repeatable
from dig.traces.journal.reader import read_records, trace_path

from .changes import AskAgain, EditRecord, OmitRecord, ReleaseSooner, Resend, RunChange, TellAgent

ASKED_AGAIN = "asked again"
"""The incident of an activation that was decided anew with a note."""

_NEAR = 2


@dataclass(frozen=True)
class ChangeableRecord:
    """A record of a run, and the changes a fork can make there.

    Attributes:
        keys: The keys that an edit can change.
        changes: The kinds of changes that are about this record; `tell`, `seat`, `wait` are about
            none, and can be made from any record on.
    """

    record: Record
    keys: tuple[str, ...]
    changes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        record = self.record
        return {
            "t": record.t, "ts": record.ts, "kind": record.kind, "about": self.about,
            "edit": list(self.keys), "changes": list(self.changes),
        }  # fmt: skip

    @property
    def about(self) -> str:
        """The agent, activation or event of the record, in a few words."""
        record = self.record
        parts = [getattr(record, key, None) for key in ("activation", "event", "agent", "pattern")]
        to = getattr(record, "to", None)
        names = [to] if isinstance(to, str) else list(to or ())
        words = " ".join(name for name in parts if name)
        return f"{words} to {', '.join(names)}".strip() if names else words


def changeable_records(path: Path, *, payloads: bool = False) -> Iterator[ChangeableRecord]:
    """The records of a run, each with the changes a fork can make there.

    Args:
        path: The journal or its run directory.
        payloads: Whether to read large payloads that lie beside the trace; by default not.

    Raises:
        TraceError: The trace cannot be read.
    """
    before: Record | None = None
    for record in read_records(path, payloads=payloads):
        follows_healing = is_healed(record, before)
        changes: list[str] = []
        can_be_omitted = isinstance(record, records.Leave | records.Join | records.Expire)
        match record:
            case records.Start() | records.End():
                changes.append("again")
            case Emit():
                changes += [] if record.final else ["resend"]
                can_be_omitted = record.by is None
            case records.Redirect():
                can_be_omitted = not follows_healing
            case _:
                pass
        changes += ["omit"] if can_be_omitted else []
        # What follows from healing comes again by itself, so it is changed where it was decided.
        keys = () if follows_healing else changeable(record)
        yield ChangeableRecord(record, keys, tuple(changes))
        before = record


@dataclass(frozen=True)
class Planned:
    """The changes of a fork, and the parts of the recorded run they need.

    Attributes:
        edit: The edit of the record at which the fork begins; ``None``: that stays as it is.
        moments: By record: the moment in microseconds of the record before it.
        sent: By id: the events that come again.
    """

    changes: Sequence[RunChange]
    edit: RecordEdit | None = None
    moments: Mapping[int, int] = field(default_factory=dict)
    sent: Mapping[str, Emit] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, at: int, changes: Sequence[RunChange]) -> Planned:
        """Check changes against a recorded run, and read the parts needed.

        Args:
            path: The journal or its run directory.
            at: The record at which the fork begins.
            changes: The changes.

        Raises:
            ReplayError: A change cannot be made, or is about something that is not there.
            TraceError: The trace cannot be read, or has no record `at`.
        """
        edit_row, further = _edit_of(at, changes)
        edit: RecordEdit | None = None
        moments, sent = dict[int, int](), dict[str, Emit]()
        spans, omitted = dict[str, list[int]](), set[int]()
        resent = {
            name for change in further if isinstance(change, Resend) for name in change.events
        }
        last: Record | None = None
        # Payloads beside the trace may be megabytes, and only events that come again need them.
        for row in changeable_records(path, payloads=bool(resent)):
            record, before, last = row.record, last, row.record
            if record.t == at and edit_row is not None:
                edit = _edit_record(path, record, before, edit_row)
            if record.t == at and not further:
                break  # nothing after the fork matters to an edit
            if before is not None and any(change.at == record.t for change in further):
                moments[record.t] = before.us
            if isinstance(record, Emit) and record.event in resent:
                sent[record.event] = record
            elif isinstance(record, records.Start | records.End):
                spans.setdefault(record.activation, []).append(record.t)
            if "omit" in row.changes:
                omitted.add(record.t)
        _check_place(path, at, last, is_edited=edit_row is not None)
        for change in further:
            if isinstance(change, AskAgain):
                _check_span(change, spans.get(change.activation))
            elif isinstance(change, OmitRecord) and (
                change.t not in omitted or change.t < change.at
            ):
                _refuse_to_omit(change, omitted)
            elif isinstance(change, Resend):
                _check_sent(change, sent)
        return cls(further, edit, moments, sent)

    @property
    def decided_anew(self) -> dict[str, str | None]:
        """The activations decided anew, each with a note or ``None``."""
        return {
            change.activation: change.note
            for change in self.changes
            if isinstance(change, AskAgain)
        }

    @property
    def omitted(self) -> set[int]:
        """The records not to be made again."""
        return {change.t for change in self.changes if isinstance(change, OmitRecord)}

    def check(self, running: set[str], graph: InteractionGraph) -> None:
        """Check the changes by the state of the run at its fork.

        Raises:
            ReplayError: A change makes no sense there.
        """
        for change in self.changes:
            is_now = change.at <= graph.t + 1
            match change:
                case AskAgain(activation=name) if name not in running:
                    _refuse(change, f"activation {name!r} is not in progress there")
                case TellAgent(agent=name) if is_now and name not in graph.agents:
                    _refuse(change, f"agent {name!r} is not present there")
                case ReleaseSooner(event=name) if is_now and not (
                    graph.knows(name) and graph.event(name).flight
                ):
                    _refuse(change, f"event {name!r} is not on its way there")
                case _:
                    pass

    def inputs(self, now_us: int) -> list[ExternalInput]:
        """The requests by time, in the order of the changes; the earliest at `now_us`."""
        planned = [
            ExternalInput(
                max(now_us, self.moments.get(change.at, now_us)),
                None,
                repeatable("could not be changed", {"change": change.to_json()}, request),
            )
            for change in self.changes
            for request in self._requests(change)
        ]
        # The sort is stable: requests of one moment keep the order of the changes.
        return sorted(planned, key=lambda external: external.us)

    def _requests(self, change: RunChange) -> Iterator[Request]:
        match change:
            case AskAgain(note=str(note)):
                detail = {"activation": change.activation, "note": note}
                yield lambda monitor: monitor.incident(ASKED_AGAIN, detail)
            case TellAgent():
                yield lambda monitor: monitor.tell(change.note, (change.agent,))
            case ReleaseSooner():
                yield lambda monitor: monitor.release(change.event)
            case Resend():
                for name in change.events:
                    yield partial(_send_again, self.sent[name], change.to)
            case _:
                pass


def _send_again(emit: Emit, to: tuple[str, ...] | None, monitor: Monitor) -> list[Effect]:
    present = tuple(agent for agent in to or emit.to if agent in monitor.graph.agents)
    if not present:
        raise RequestError(f"none of the recipients of event {emit.event!r} is present")
    return monitor.inject(Output(emit.payload, present, emit.type, traceparent=emit.traceparent))


# --- checks ---


def _edit_of(
    at: int, changes: Sequence[RunChange]
) -> tuple[Mapping[str, Any] | None, list[RunChange]]:
    """The new values in record `at`, and all other changes."""
    edits = [change for change in changes if isinstance(change, EditRecord)]
    rows: list[RunChange] = [row for row in changes if not isinstance(row, EditRecord)]
    if len(edits) > 1:
        raise ReplayError("one record can be edited in a fork, not several")
    early = min((change.at for change in changes), default=at)
    if early < at:
        raise ReplayError(f"a change is from record {early} on, before the fork at {at}")
    if edits and edits[0].at != at:
        raise ReplayError(
            f"record {edits[0].at} cannot be edited in a fork at {at}: what comes between may be "
            "different; fork at that record"
        )
    return edits[0].edit if edits else None, rows


def _edit_record(
    path: Path, record: Record, before: Record | None, values: Mapping[str, Any]
) -> RecordEdit:
    try:
        if is_healed(record, before):
            raise ReplayError(
                f"record {record.t} follows from healing; change record {record.t - 1} before it"
            )
        return RecordEdit(record, values)
    except ReplayError as error:
        near = _near(path, record.t, values.keys()) if values else []
        hint = f"; near it that can be changed in {', '.join(near)}" if near else ""
        raise ReplayError(f"{error}{hint}") from None


def _near(path: Path, at: int, keys: Collection[str]) -> list[str]:
    """The records next to record `at` in which the same keys can be changed."""
    before: list[str] = []
    after: list[str] = []
    for row in changeable_records(path):
        record = row.record
        if record.t != at and row.keys and {*keys} <= {*row.keys}:
            (before if record.t < at else after).append(f"{record.t} (`{record.kind}`)")
        if len(after) == _NEAR:
            break
    return [*before[-_NEAR:], *after]


def _check_place(path: Path, at: int, last: Record | None, *, is_edited: bool) -> None:
    """Check for a record `at`, or for a run cut off just before."""
    t = -1 if last is None else last.t
    is_next = at == t + 1 and not isinstance(last, records.Finish) and not is_edited
    if not (0 <= at <= t or (is_next and last is not None)):
        raise TraceError(trace_path(path), None, f"there is no record {at}; the last is {t}")


def _refuse_to_omit(change: OmitRecord, possible: set[int]) -> NoReturn:
    later = sorted(t for t in possible if t >= change.at)
    near = sorted(later, key=lambda t: abs(t - change.t))[:_NEAR]
    hint = f"; near it that can be done with {', '.join(map(str, sorted(near)))}" if near else ""
    raise ReplayError(
        f"record {change.t} cannot be left out from record {change.at} on, only a later `leave`, "
        f"`join`, `expire`, `emit` from outside, or `redirect` by a host{hint}"
    )


def _check_span(change: AskAgain, span: list[int] | None) -> None:
    if span is None:
        _refuse(change, f"there is no activation {change.activation!r}")
    start, *end = span
    if change.at < start or (end and change.at > end[0]):
        last = f" to {end[0]}" if end else " on"
        _refuse(change, f"it can be decided anew from record {start}{last}")


def _check_sent(change: Resend, sent: Mapping[str, Emit]) -> None:
    for name in change.events:
        emit = sent.get(name)
        if emit is None or emit.t >= change.at:
            _refuse(change, f"there is no event {name!r} before it")
        if emit.final:
            _refuse(change, f"event {name!r} is an answer, which cannot come from outside")


def _refuse(change: RunChange, reason: str) -> NoReturn:
    raise ReplayError(f"{change.kind} at record {change.at}: {reason}")
