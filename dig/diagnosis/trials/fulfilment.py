"""Fulfilment: whether a change was carried out in a fork, by its records alone.

The fork is compared with its control: for repeat 0 the recorded run, else the unchanged fork of the
same repeat. A change that leads to the decision of the control has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dig._util.json_values import dumps
from dig.graph.codec import encode, to_row
from dig.graph.records import SYSTEM, Emit, End
from dig.traces.replay import changes as kinds
from dig.traces.replay.kinds import read_interventions
from dig.traces.run import RecordedActivation, RecordedEvent, RecordedRun


@dataclass(frozen=True)
class ForkComparison:
    """A fork beside two runs to compare with.

    Attributes:
        parent: The recorded run.
        fork: The fork with the change.
        control: The same without it.
    """

    parent: RecordedRun
    fork: RecordedRun
    control: RecordedRun


def is_fulfilled(
    rows: Sequence[Mapping[str, Any]], comparison: ForkComparison,
    expects: Mapping[str, Any] | None = None,
) -> bool:  # fmt: skip
    """Whether all interventions of a hypothesis were carried out, and the expected acts came.

    Args:
        rows: The interventions, as plain JSON.
        comparison: The fork, its parent and its control.
        expects: The acts that must happen in the fork; ``None``: nothing more.
    """
    changes = read_interventions(rows)
    if not all(_is_carried_out(change, comparison) for change in changes):
        return False
    first = min(change.at for change in changes)
    return expects is None or is_expected(expects, comparison.fork, first)


def _is_carried_out(change: kinds.RunChange, comparison: ForkComparison) -> bool:
    parent, fork, control = comparison.parent, comparison.fork, comparison.control
    match change:
        case kinds.EditRecord(at=at):
            return _is_edited(at, fork, control)
        case kinds.Resend(events=events, at=at):
            return all(_is_sent_again(parent.events[name], at, fork) for name in events)
        case kinds.TellAgent(agent=agent, at=at):
            # Read by an activation that ended well: a note before an agent that fails does nothing.
            notes = {
                event.id
                for event in fork.events.values()
                if event.by == SYSTEM and event.t >= at and agent in event.to
            }
            return any(
                act.agent == agent and act.end is not None and not act.has_failed
                and not notes.isdisjoint(act.inputs)
                for act in fork.activations.values()
            )  # fmt: skip
        case kinds.AskAgain(activation=name):
            new = fork.activations.get(name)
            return new is not None and is_other(fork, new, control, control.activations.get(name))
        case kinds.Reseat(agent=agent, at=at):
            return next(differing_decisions(agent, at, comparison), None) is not None
        case kinds.OmitRecord(t=t, at=at):
            # Later records have other numbers, so the same act is looked for without them.
            row = {**to_row(parent.records[t]), "t": 0}
            return all({**to_row(record), "t": 0} != row for record in fork.records[at:])
        case kinds.ReleaseSooner(event=name):
            event, before = fork.events.get(name), control.events[name]
            is_earlier = event is not None and _arrival(event) < _arrival(before)
            return is_earlier and event is not None and _is_consumed(event)
        case kinds.WaitLonger():
            return fork.last.us > control.last.us


def _is_edited(at: int, fork: RecordedRun, control: RecordedRun) -> bool:
    if at >= len(fork.records) or at >= len(control.records):
        return False
    record = fork.records[at]
    # The outputs of an activation are the records right after its end.
    span = 1 + (len(record.outputs) if isinstance(record, End) else 0)
    new, old = ([*map(encode, run.records[at : at + span])] for run in (fork, control))
    if new == old:
        return False
    return not isinstance(record, Emit) or _is_consumed(fork.events[record.event])


def _is_sent_again(sent: RecordedEvent, at: int, fork: RecordedRun) -> bool:
    return any(
        event.by is None and event.t >= at and event.payload == sent.payload
        and event.type == sent.type and _is_consumed(event)
        for event in fork.events.values()
    )  # fmt: skip


def differing_decisions(
    agent: str, at: int, comparison: ForkComparison
) -> Iterator[tuple[RecordedActivation, RecordedActivation | None]]:
    """Find the activations of an agent in a fork with another decision than in the control.

    Args:
        agent: The agent.
        at: The first record that counts: activations that end before it do not.
        comparison: The fork and its control.

    Yields:
        The activation in the fork, and its counterpart in the control, if there is one.
    """
    new, old = (
        [
            act
            for act in run.activations.values()
            if act.agent == agent and act.end is not None and act.end.t >= at
        ]
        for run in (comparison.fork, comparison.control)
    )
    for place, act in enumerate(new):
        before = old[place] if place < len(old) else None
        if is_other(comparison.fork, act, comparison.control, before):
            yield act, before


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
    """The decision of an activation, and the delivery policies of events; ids aside."""
    assert activation.end is not None
    fates = [
        [run.events[fate.event].type, run.events[fate.event].payload, fate.fate, [*fate.to]]
        for fate in activation.end.fates
        if fate.event in run.events
    ]
    outputs = [
        [event.payload, event.type, [*event.to], event.final,
         getattr(run.records[event.t], "policy", None)]
        for event in run.outputs(activation)
    ]  # fmt: skip
    return dumps([activation.has_failed, sorted(map(dumps, fates)), outputs])


def _is_consumed(event: RecordedEvent) -> bool:
    return bool(event.consumed_by) or event.accepted_t is not None


def _arrival(event: RecordedEvent) -> float:
    return event.arrivals[0][1] if event.arrivals else float("inf")


# --- what a hypothesis expects ---


def is_expected(expects: Mapping[str, Any], fork: RecordedRun, at: int) -> bool:
    """Whether a record from `at` on is as expected by a hypothesis.

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
        events = _ACTS[does](fork, activation) if does in _ACTS else []
        if any(_matches(expects, event) for event in events):
            return True
    return False


def _matches(expects: Mapping[str, Any], event: RecordedEvent) -> bool:
    return (
        expects.get("event") in (None, event.id)
        and expects.get("type") in (None, event.type)
        and {*expects.get("to", ())} <= {*event.to}
    )


_Events = Callable[[RecordedRun, RecordedActivation], list[RecordedEvent]]


def _with_fate(fate: str) -> _Events:
    return lambda run, activation: [run.events[name] for name in activation.with_fate(fate)]


_ACTS: Mapping[str, _Events] = {
    "consume": _with_fate("consume"),
    "discard": _with_fate("discard"),
    "reroute": _with_fate("reroute"),
    "emit": lambda run, act: run.outputs(act),
    "submit": lambda run, act: [event for event in run.outputs(act) if event.final],
}
