"""A page of rules: from a visible sign to the kind of fault.

Written from the public catalogue of kinds alone, and shipped so that everybody sees how far reading
the surface of a trace goes. They follow no causes and know no other runs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from dig.graph.records import Deliver, Emit, End, Expire, Leave, Record
from dig.traces.run import RecordedActivation, RecordedEvent, RecordedRun

ORDER = (
    "submit_early", "leave", "drop", "address_nobody", "stall", "crash", "discard_needed",
    "corrupt", "silent", "never_submit", "pass_on", "split_twice", "work_on_others_part",
    "duplicate", "replay_stale", "misaddress", "delay", "slow", "hoard", "merge_across_lineages",
)  # fmt: skip
"""The kinds, from the one whose signs are plainest to the one whose signs are faintest."""

LATE_S, LONG = 3.0, 4.0
"""Seconds after which a delivery is late; times the median after which an activation is slow."""

Found = tuple[str, str, int]
"""An agent, the kind of its fault, and the record that shows it."""


def rules(records: Sequence[Record]) -> Found | None:
    """The agent with the most of the plainest signs, and the first record with such a sign."""
    run = RecordedRun(records)
    against = accusations(run)
    for kind in ORDER:
        signs = sorted((t, agent) for agent, sort, t in against if sort == kind)
        if signs:
            times = Counter(agent for _, agent in signs)
            # Of equals `max` takes the first, and signs are sorted by time.
            t, agent = max(signs, key=lambda sign: times[sign[1]])
            return agent, kind, t
    # Without any sign, the agent that worked last is as good a guess as any.
    last = [activation for activation in run.activations.values() if activation.end is not None]
    return (last[-1].agent, "slow", last[-1].t) if last else None


def accusations(run: RecordedRun) -> list[Found]:
    """List the signs of a run: agent, kind and record of each."""
    return [*_of_records(run), *_of_activations(run), *_of_messages(run)]


def _of_records(run: RecordedRun) -> Iterator[Found]:
    for record in run.records:
        match record:
            case Leave(agent=agent):
                yield agent, "leave", record.t
            case Expire(event=name) if run.events[name].agent:
                yield str(run.events[name].agent), "drop", record.t
            case Emit(event=name, final=False, to=to) if run.events[name].agent:
                if not {*to} & {*run.agents}:
                    yield str(run.events[name].agent), "address_nobody", record.t
            case Deliver(event=name, to=str()):
                event = run.events[name]
                if event.agent and record.us - event.us > LATE_S * 1_000_000:
                    yield event.agent, "delay", record.t


def _of_activations(run: RecordedRun) -> Iterator[Found]:
    took = [
        activation.end.us - activation.us
        for activation in run.activations.values()
        if activation.end
    ]
    usual = median(took) if took else 0
    for activation in run.activations.values():
        lasted = (activation.end.us if activation.end else run.last.us) - activation.us
        if activation.end is None:
            if lasted > LONG * usual:
                yield activation.agent, "stall", activation.t
        elif activation.end.error is not None:
            kind = "stall" if "took longer" in activation.end.error else "crash"
            yield activation.agent, kind, activation.t
        else:
            yield from _of_decision(run, activation, activation.end)
            if lasted > LONG * usual:
                yield activation.agent, "slow", activation.t


def _of_decision(run: RecordedRun, activation: RecordedActivation, end: End) -> Iterator[Found]:
    for name in activation.with_fate("discard"):
        sender = run.events[name].agent
        is_damaged = sender and not isinstance(run.events[name].payload, Mapping)
        yield (str(sender), "corrupt", run.events[name].t) if is_damaged else (
            activation.agent, "discard_needed", end.t
        )  # fmt: skip
    used = [run.events[name] for name in activation.with_fate("consume")]
    if used and not end.outputs:
        is_last = all(event.type == "solution" for event in used)
        yield activation.agent, "never_submit" if is_last else "silent", end.t
    if len(activation.with_fate("reroute")) > 1:
        yield activation.agent, "pass_on", end.t
    is_idle = not (used or end.outputs) and {*activation.fates.values()} <= {"delay"}
    if is_idle and any(run.events[name].type != "solution" for name in activation.inputs):
        yield activation.agent, "hoard", end.t


def _of_messages(run: RecordedRun) -> Iterator[Found]:
    sent: dict[tuple[str, str, str], RecordedEvent] = {}
    for event in run.events.values():
        if event.agent is None:
            continue
        if event.final and _lacks(event.payload):
            yield event.agent, "submit_early", event.t
        if not event.final and event.type == "problem" and event.agent in event.to[1:]:
            yield event.agent, "work_on_others_part", event.t
        message = event.agent, event.type, json.dumps(event.payload, sort_keys=True)
        before = sent.setdefault(message, event)
        if before is not event:
            # The same words from the same activation: sent twice, or dealt to two agents.
            kind = "duplicate" if before.to == event.to else "split_twice"
            yield event.agent, kind if before.by == event.by else "replay_stale", event.t
        recipient = event.payload.get("report_to") if isinstance(event.payload, Mapping) else None
        if event.type == "solution" and not event.final and recipient not in (None, *event.to):
            yield event.agent, "misaddress", event.t
        if event.type == "solution" and _is_off(event.payload):
            yield event.agent, "corrupt", event.t


def _lacks(payload: object) -> bool:
    """Whether an answer covers less than the problem."""
    if not isinstance(payload, Mapping):
        return True
    covers, problem = payload.get("covers"), payload.get("whole")
    if not isinstance(covers, list) or not isinstance(problem, list):
        return True
    return bool(sum(stop - start for start, stop in covers) < problem[1] - problem[0])


def _is_off(payload: object) -> bool:
    """Whether the sum of the counts is far from the number of covered elements."""
    if not isinstance(payload, Mapping):
        return True
    counts, covers = payload.get("counts"), payload.get("covers")
    if not isinstance(counts, Mapping) or not isinstance(covers, list):
        return True
    elements = sum(stop - start for start, stop in covers)
    # Wide bounds: agents miscount a little without any fault.
    return not 0.5 * elements <= sum(counts.values()) <= 1.2 * elements
