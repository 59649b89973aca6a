"""The requests and questions that the changes of a fork lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from dig.errors import ReplayError, RequestError
from dig.graph.graph import InteractionGraph
from dig.graph.records import Emit, End, Expire, Join, Leave, Record, Redirect, Start
from dig.monitor.messages import Effect, Output
from dig.monitor.monitor import Monitor
from dig.runtime.checkpoint import ExternalInput
from dig.traces.journal.reader import read_records

from .changes import AskAgain, OmitRecord, ReleaseSooner, Resend, RunChange, TellAgent
from .edits import changeable
from .rewinding import is_healed, repeatable

ASKED_AGAIN = "asked again"
"""The incident of an activation that was decided anew with a note."""

_NEAR = 2
_Request = Callable[[Monitor], list[Effect]]


@dataclass(frozen=True)
class Planned:
    """The parts of a recorded run that some changes need.

    Attributes:
        changes: The changes.
        moments: By record: the moment in microseconds of the record before it.
        sent: By id: the events that come again.
    """

    changes: Sequence[RunChange]
    moments: Mapping[int, int] = field(default_factory=dict)
    sent: Mapping[str, Emit] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, changes: Sequence[RunChange]) -> Planned:
        """Find what is needed in a recorded run, and check the changes by it.

        Raises:
            ReplayError: A change is about something that is not there.
        """
        if not changes:
            return cls(())
        moments, sent = dict[int, int](), dict[str, Emit]()
        spans, omitted = dict[str, list[int]](), set[int]()
        wanted = {name for one in changes if isinstance(one, Resend) for name in one.events}
        before: Record | None = None
        for record in read_records(path):
            if any(one.at == record.t for one in changes) and before is not None:
                moments[record.t] = before.us
            if isinstance(record, Emit) and record.event in wanted:
                sent[record.event] = record
            elif isinstance(record, Start | End):
                spans.setdefault(record.activation, []).append(record.t)
            if _can_be_omitted(record, before):
                omitted.add(record.t)
            before = record
        for one in changes:
            if isinstance(one, AskAgain):
                _check_span(one, spans.get(one.activation))
            elif isinstance(one, OmitRecord) and (one.t not in omitted or one.t < one.at):
                _refuse_to_omit(one, omitted)
            elif isinstance(one, Resend):
                _check_sent(one, sent)
        return cls(changes, moments, sent)

    @property
    def again(self) -> dict[str, str | None]:
        """The activations that are decided anew, each with its note or ``None``."""
        return {one.activation: one.note for one in self.changes if isinstance(one, AskAgain)}

    def check(self, running: set[str], graph: InteractionGraph) -> None:
        """Check the changes by the state of the run at its fork.

        Raises:
            ReplayError: A change makes no sense there.
        """
        for one in self.changes:
            if isinstance(one, AskAgain) and one.activation not in running:
                _refuse(one, f"activation {one.activation!r} is not in progress there")
            is_absent = isinstance(one, TellAgent) and one.agent not in graph.agents
            if isinstance(one, TellAgent) and is_absent and one.at <= graph.t + 1:
                _refuse(one, f"agent {one.agent!r} is not present there")
            if isinstance(one, ReleaseSooner) and one.at <= graph.t + 1:
                known = graph.knows(one.event)
                if not known or not graph.event(one.event).flight:
                    _refuse(one, f"event {one.event!r} is not on its way there")

    def inputs(self, now_us: int) -> list[ExternalInput]:
        """The requests, in the order of the changes, each at its moment or `now_us`."""
        planned = [
            ExternalInput(
                max(now_us, self.moments.get(one.at, now_us)),
                None,
                repeatable("could not be changed", {"change": one.to_json()}, request),
            )
            for one in self.changes
            for request in self._requests(one)
        ]
        return sorted(planned, key=lambda one: one.us)

    def _requests(self, change: RunChange) -> Iterator[_Request]:
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


@dataclass(frozen=True)
class ChangeableRecord:
    """One record of a run, and what a fork can change there.

    Attributes:
        record: The record.
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
        said = [getattr(record, key, None) for key in ("activation", "event", "agent", "pattern")]
        to = getattr(record, "to", None)
        names = [to] if isinstance(to, str) else list(to or ())
        words = " ".join(name for name in said if name)
        return f"{words} to {', '.join(names)}".strip() if names else words


def changeable_records(path: Path) -> Iterator[ChangeableRecord]:
    """The records of a run, each with what a fork can change there.

    Raises:
        TraceError: The trace cannot be read.
    """
    before: Record | None = None
    for record in read_records(path, payloads=False):
        changes: list[str] = []
        if isinstance(record, Start | End):
            changes.append("again")
        if isinstance(record, Emit) and not record.final:
            changes.append("resend")
        if _can_be_omitted(record, before):
            changes.append("omit")
        keys = () if is_healed(record, before) else changeable(record)
        yield ChangeableRecord(record, keys, tuple(changes))
        before = record


def _refuse_to_omit(change: OmitRecord, possible: set[int]) -> NoReturn:
    later = sorted(t for t in possible if t >= change.at)
    near = sorted(later, key=lambda t: abs(t - change.t))[:_NEAR]
    others = f"; near it that can be done with {', '.join(map(str, sorted(near)))}" if near else ""
    raise ReplayError(
        f"record {change.t} cannot be left out from record {change.at} on, only a later `leave`, "
        f"`join`, `expire`, `emit` from outside, or `redirect` by a host{others}"
    )


def _can_be_omitted(record: Record, before: Record | None) -> bool:
    if isinstance(record, Redirect):
        return not is_healed(record, before)
    if isinstance(record, Emit):
        return record.by is None
    return isinstance(record, Leave | Join | Expire)


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


def _refuse(change: Any, why: str) -> NoReturn:
    raise ReplayError(f"{change.kind} at record {change.at}: {why}")
