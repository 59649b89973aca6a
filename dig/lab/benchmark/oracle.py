"""The oracle: names the causes of a run by comparison with the twin. No attributor has a twin.

It names the agent of the first record that differs. It names a second agent that by itself did
something else than in the twin: with the same inputs in the same turn it decided otherwise or took
another time, or a message that it sent in both was lost or late in one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dig.graph.records import Deliver, Emit, End, Expire, Leave, Record, Run, Start
from dig.traces.run import RecordedActivation, RecordedEvent, RecordedRun

from .answer_file import Answer, RootCause
from .baselines import blame
from .instances import Instance

ORACLE = "oracle"
"""The name of its row: it is no floor but a line."""

_FATES = {"discard": "discard_needed", "reroute": "pass_on", "delay": "hoard"}
# Less than a millisecond is no delay.
_LATE_US = 1_000


class _Difference(NamedTuple):
    """A deed of an agent that differs from the twin: record, agent, and the most similar kind."""

    t: int
    agent: str
    kind: str


def oracle(instance: Instance) -> Answer:
    """Name the root causes of a run by comparison with the twin.

    Raises:
        SettingsError: The instance has no labels.
    """
    run, twin = instance.records(), instance.twin()
    first = _first(run, twin)
    if first is None:
        return Answer()
    answer = blame(run, first.agent, first.kind, first.t)
    later = (act for act in _own(RecordedRun(run), RecordedRun(twin)) if act.agent != first.agent)
    second = min(later, default=None)
    if second is None:
        return answer
    further = RootCause(component=second.agent, kind=second.kind, evidence=(second.t,))
    return answer.model_copy(update={"root_causes": (*answer.root_causes, further)})


def _first(run: Sequence[Record], twin: Sequence[Record]) -> _Difference | None:
    """The first different record, and the agent behind the record."""
    pairs = zip(run, twin, strict=False)
    t = next((t for t, (a, b) in enumerate(pairs) if a != b), min(len(run), len(twin)) - 1)
    ours, theirs = run[t], twin[min(t, len(twin) - 1)]
    # The earlier one is the surprise: what was done, or what was to be done and is missing.
    makers = [_maker(run, ours), _maker(twin, theirs)]
    maker = next(filter(None, makers if ours.us <= theirs.us else reversed(makers)), None)
    return _Difference(t, maker, _difference(ours, theirs, run)) if maker else None


def _own(run: RecordedRun, twin: RecordedRun) -> Iterator[_Difference]:
    """Find decisions that differ although the agents had the same inputs, in the same team."""
    # After a departure the teams differ, and equal inputs mean no equal situation.
    parted = min((run.records[t].us for t in run.leaves.values()), default=None)
    turns = dict(_turns(twin))
    for key, activation in _turns(run):
        other = turns.get(key)
        if other is None or other.end is None or activation.end is None:
            continue
        if parted is not None and activation.end.us >= parted:
            return
        # Other inputs explain another decision: it is no deed of the agent's own.
        if _inputs(run, activation) != _inputs(twin, other):
            continue
        kind = _decided_otherwise(run, activation, twin, other)
        if kind is not None:
            yield _Difference(activation.end.t, activation.agent, kind)
            continue
        for mine, its in zip(activation.outputs, other.outputs, strict=True):
            yield from _sent_otherwise(run, run.events[mine], twin, twin.events[its])


def _turns(run: RecordedRun) -> Iterator[tuple[tuple[str, int], RecordedActivation]]:
    """The activations, each with the agent and the number of the agent's turn."""
    counts: dict[str, int] = {}
    for activation in run.activations.values():
        counts[activation.agent] = counts.get(activation.agent, 0) + 1
        yield (activation.agent, counts[activation.agent]), activation


def _inputs(run: RecordedRun, activation: RecordedActivation) -> list[str]:
    return [_content(run.events[name]) for name in activation.inputs]


def _content(event: RecordedEvent) -> str:
    return json.dumps([event.agent, event.type, event.final, event.payload], sort_keys=True)


def _decided_otherwise(
    run: RecordedRun, activation: RecordedActivation, twin: RecordedRun, other: RecordedActivation
) -> str | None:
    """The kind of fault that explains how two decisions about the same inputs differ, if they do.

    Args:
        run: The run.
        activation: Its activation.
        twin: The twin.
        other: Its activation.
    """
    assert activation.end is not None and other.end is not None
    outputs = run.outputs(activation), twin.outputs(other)
    for mine, its in zip(*outputs, strict=False):
        if (_content(mine), mine.to) != (_content(its), its.to):
            return _difference(run.records[mine.t], twin.records[its.t], run.records)
    decisions = [
        (bool(end.error), [fate.fate for fate in end.fates], len(sent))
        for end, sent in zip((activation.end, other.end), outputs, strict=True)
    ]
    if decisions[0] != decisions[1]:
        return _difference(activation.end, other.end, run.records)
    took = [end.us - a.us for a, end in ((activation, activation.end), (other, other.end))]
    return "slow" if took[0] > took[1] + _LATE_US else None


def _sent_otherwise(
    run: RecordedRun, mine: RecordedEvent, twin: RecordedRun, its: RecordedEvent
) -> Iterator[_Difference]:
    """Find a message, lost or late, but not in the twin.

    Args:
        run: The run.
        mine: Its message.
        twin: The twin.
        its: The message there.
    """
    if mine.agent is None or mine.final or not its.arrivals:
        return
    if not mine.arrivals:
        if run.is_orphaned(mine.id):
            yield _Difference(mine.t, mine.agent, "drop")
        return
    ways = [r.times[e.arrivals[0][1]] - e.us for r, e in ((run, mine), (twin, its))]
    if ways[0] > ways[1] + _LATE_US:
        yield _Difference(mine.t, mine.agent, "delay")


def _maker(run: Sequence[Record], record: Record) -> str | None:
    """The agent behind a record."""
    if isinstance(record, Start | Leave):
        return record.agent
    by = record.activation if isinstance(record, End) else None
    if isinstance(record, Emit):
        by = record.by
    if isinstance(record, Expire | Deliver):
        # A delivery or a loss is the sender's: faults of messages are injected there.
        by = next(emit.by for emit in run if isinstance(emit, Emit) and emit.event == record.event)
    return next((s.agent for s in run if isinstance(s, Start) and s.activation == by), None)


def _difference(ours: Record, theirs: Record, run: Sequence[Record]) -> str:
    """The kind of fault most similar to a first difference."""
    match ours:
        case Leave():
            return "leave"
        case Expire():
            return "drop"
        case Emit() if isinstance(theirs, Emit) and ours.to != theirs.to:
            # An address inside the team is a wrong colleague; outside, nobody.
            header = run[0]
            is_member = isinstance(header, Run) and not {*header.agents}.isdisjoint(ours.to)
            return "misaddress" if is_member else "address_nobody"
        case Emit() if isinstance(theirs, Emit) and ours.payload != theirs.payload:
            return "submit_early" if ours.final else "corrupt"
        case Emit(final=True):
            return "submit_early"
        case End(error=str(error)):
            return "stall" if "longer" in error else "crash"
        case End(fates=fates):
            usual = theirs.fates if isinstance(theirs, End) else ()
            mine = {fate.fate for fate in fates} - {fate.fate for fate in usual}
            for fate, kind in _FATES.items():
                if fate in mine:
                    return kind
            if isinstance(theirs, End) and len(ours.outputs) > len(theirs.outputs):
                return "duplicate"
            return "silent"
    return "delay" if isinstance(theirs, Deliver) else "stall"
