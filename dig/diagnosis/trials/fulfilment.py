"""Fulfilment: whether a change was carried out in a fork, by its records alone.

The fork is compared with its control: for repeat 0 the recorded run, else the unchanged fork of the
same repeat. A change that leads to the decision of the control has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dig.graph.codec import dumps, encode, to_row
from dig.graph.records import SYSTEM, Emit, End
from dig.traces.replay.changes import (
    AskAgain,
    EditRecord,
    OmitRecord,
    ReleaseSooner,
    Reseat,
    Resend,
    RunChange,
    TellAgent,
    WaitLonger,
)
from dig.traces.replay.kinds import read_interventions
from dig.traces.run import RecordedActivation, RecordedEvent, RecordedRun


@dataclass(frozen=True)
class Compared:
    """A fork with what it is compared with.

    Attributes:
        parent: The recorded run.
        fork: The fork with the change.
        control: The same without it.
    """

    parent: RecordedRun
    fork: RecordedRun
    control: RecordedRun


def is_fulfilled(
    rows: Sequence[Mapping[str, Any]], compared: Compared,
    expects: Mapping[str, Any] | None = None,
) -> bool:  # fmt: skip
    """Whether all interventions of a hypothesis were carried out, and what it expects came.

    Args:
        rows: The interventions, as plain JSON.
        compared: The fork, its parent and its control.
        expects: The acts that must happen in the fork; ``None``: nothing more.
    """
    changes = read_interventions(rows)
    done = all(_is_done(one, compared) for one in changes)
    if not done or expects is None:
        return done
    return is_expected(expects, compared.fork, min(one.at for one in changes))


def _is_done(change: RunChange, compared: Compared) -> bool:
    match change:
        case EditRecord():
            return _edited(change, compared)
        case Resend():
            return all(_sent_again(name, change.at, compared) for name in change.events)
        case TellAgent():
            return _told(change, compared.fork)
        case AskAgain():
            fork, control = compared.fork, compared.control
            new = fork.activations.get(change.activation)
            return new is not None and is_other(
                fork, new, control, control.activations.get(change.activation)
            )
        case Reseat():
            return _seated(change, compared)
        case OmitRecord():
            return _omitted(change, compared)
        case ReleaseSooner():
            event = compared.fork.events.get(change.event)
            before = compared.control.events[change.event]
            is_earlier = event is not None and _arrival(event) < _arrival(before)
            return is_earlier and event is not None and _is_consumed(event)
        case WaitLonger():
            return compared.fork.last.us > compared.control.last.us


def _edited(change: EditRecord, compared: Compared) -> bool:
    fork, control = compared.fork.records, compared.control.records
    if change.at >= len(fork) or change.at >= len(control):
        return False
    record = fork[change.at]
    span = 1 + (len(record.outputs) if isinstance(record, End) else 0)
    now = [encode(one) for one in fork[change.at : change.at + span]]
    if now == [encode(one) for one in control[change.at : change.at + span]]:
        return False
    return not isinstance(record, Emit) or _is_consumed(compared.fork.events[record.event])


def _sent_again(name: str, at: int, compared: Compared) -> bool:
    sent = compared.parent.events[name]
    return any(
        event.by is None and event.t >= at and event.payload == sent.payload
        and event.type == sent.type and _is_consumed(event)
        for event in compared.fork.events.values()
    )  # fmt: skip


def _told(change: TellAgent, fork: RecordedRun) -> bool:
    notes = {
        event.id
        for event in fork.events.values()
        if event.by == SYSTEM and event.t >= change.at and change.agent in event.to
    }
    return any(
        one.agent == change.agent and one.end is not None and not one.has_failed
        and not notes.isdisjoint(one.inputs)
        for one in fork.activations.values()
    )  # fmt: skip


def _seated(change: Reseat, compared: Compared) -> bool:
    """Whether the seat decided something else in one of its activations."""
    return next(differing(change.agent, change.at, compared), None) is not None


def differing(
    agent: str, at: int, compared: Compared
) -> Iterator[tuple[RecordedActivation, RecordedActivation | None]]:
    """The activations of an agent in a fork that decided something else than in the control.

    Args:
        agent: The agent.
        at: The first record that counts: activations that end before it do not.
        compared: The fork and its control.
    """
    new = _of_agent(compared.fork, agent, at)
    old = _of_agent(compared.control, agent, at)
    for place, one in enumerate(new):
        before = old[place] if place < len(old) else None
        if is_other(compared.fork, one, compared.control, before):
            yield one, before


def _of_agent(run: RecordedRun, agent: str, at: int) -> list[RecordedActivation]:
    found = (one for one in run.activations.values() if one.agent == agent)
    return [one for one in found if one.end is not None and one.end.t >= at]


def is_other(
    run: RecordedRun, new: RecordedActivation, other: RecordedRun, old: RecordedActivation | None
) -> bool:
    """Whether an activation ended without an error, and decided something else.

    Args:
        run: The run of the activation.
        new: The activation.
        other: The run of its counterpart.
        old: Its counterpart, if there is one.
    """
    if new.end is None or new.has_failed:
        return False
    return old is None or old.end is None or _decision(run, new) != _decision(other, old)


def _decision(run: RecordedRun, activation: RecordedActivation) -> str:
    """The decision of an activation, and which events a policy delivers; ids aside."""
    assert activation.end is not None
    fates = [
        [run.events[fate.event].type, run.events[fate.event].payload, fate.fate, [*fate.to]]
        for fate in activation.end.fates
        if fate.event in run.events
    ]
    outputs = [
        [event.payload, event.type, [*event.to], event.final, _policy(run, event)]
        for event in run.outputs(activation)
    ]
    return dumps([activation.has_failed, sorted(map(dumps, fates)), outputs])


def _policy(run: RecordedRun, event: RecordedEvent) -> str | None:
    record = run.records[event.t]
    return record.policy if isinstance(record, Emit) else None


def _omitted(change: OmitRecord, compared: Compared) -> bool:
    row = _without_number(to_row(compared.parent.records[change.t]))
    later = compared.fork.records[change.at :]
    return all(_without_number(to_row(record)) != row for record in later)


def _without_number(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "t"}


def _is_consumed(event: RecordedEvent) -> bool:
    return bool(event.consumed_by) or event.accepted_t is not None


def _arrival(event: RecordedEvent) -> float:
    return event.arrivals[0][1] if event.arrivals else float("inf")


# --- what a hypothesis expects ---


def is_expected(expects: Mapping[str, Any], fork: RecordedRun, at: int) -> bool:
    """Whether a record from `at` on is as a hypothesis expects it.

    Args:
        expects: `agent` and `does`, and perhaps `event`, `type` and `to`.
        fork: The fork.
        at: The first record that counts.
    """
    agent, does = expects.get("agent"), str(expects.get("does"))
    for activation in fork.activations.values():
        if activation.end is None or activation.end.t < at or agent not in (None, activation.agent):
            continue
        if does == "finish-turn" and not activation.has_failed:
            return True
        if any(_fits(expects, event) for event in _DONE.get(does, _nothing)(fork, activation)):
            return True
    return False


def _fits(expects: Mapping[str, Any], event: RecordedEvent) -> bool:
    return (
        expects.get("event") in (None, event.id)
        and expects.get("type") in (None, event.type)
        and {*expects.get("to", ())} <= {*event.to}
    )


def _with_fate(fate: str) -> _Events:
    return lambda run, activation: [run.events[name] for name in activation.with_fate(fate)]


def _nothing(run: RecordedRun, activation: RecordedActivation) -> list[RecordedEvent]:
    return []


_Events = Callable[[RecordedRun, RecordedActivation], list[RecordedEvent]]
_DONE: Mapping[str, _Events] = {
    "consume": _with_fate("consume"),
    "discard": _with_fate("discard"),
    "reroute": _with_fate("reroute"),
    "emit": lambda run, one: run.outputs(one),
    "submit": lambda run, one: [event for event in run.outputs(one) if event.final],
}
