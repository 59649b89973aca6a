"""Deviations: things in a state caused by the fault, by a statistical test.

A thing is in a state if its number is larger than its counterpart's in the twin, and so rare in
fault-free runs that at most `LEVEL` of them reach it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby

from dig.diagnosis.causes import OUTCOME, TASK, Node
from dig.graph.records import End, Leave
from dig.tasks.accounting import TaskParts
from dig.tasks.number_ranges import named_range, range_name
from dig.traces.run import RecordedEvent

from .baseline import Baseline
from .matching import Matching
from .measurements import DIGITS, Measured, elements, measure_parts
from .onsets import ONSETS

RARE, UNUSUAL = 0.01, 0.05
"""Levels: for times and amounts, of which a run has hundreds; and for what is or is not."""

NUMBERS = frozenset({"slow", "late", "delayed", "overdue", "miscounted"})
"""States by a time or an amount; each thing has some of it, and the test asks for `RARE`."""

NEEDS_TWIN = frozenset({"late"})
"""States that make no sense without a counterpart."""


def deviations(
    runs: Matching, baseline: Baseline, rmse: float | None, rmse_of_twin: float | None
) -> list[Node]:
    """Find all deviations from the twin, in order of onset.

    Args:
        runs: The faulted run and its twin, matched.
        baseline: Fault-free runs of the same configuration.
        rmse: The error of the faulted run's answer, if it is known.
        rmse_of_twin: The same of the twin.
    """
    cuts = runs.faulted_parts.cuts | runs.twin_parts.cuts
    truth = {**elements(runs.faulted_parts), **elements(runs.twin_parts)}
    usual = {
        (row.type, row.name, row.state): row.value
        for row in measure_parts(runs.twin_parts, rmse_of_twin, cuts, truth)
    }
    nodes: list[Node] = []
    for row in measure_parts(runs.faulted_parts, rmse, cuts, truth):
        same = _counterpart(runs, row)
        twin = None if same is None else usual.get((row.type, same, row.state))
        # Without a counterpart there is no time at which it was due.
        if twin is None and row.state in NEEDS_TWIN:
            continue
        # Most numbers end here, before the baseline is searched.
        if not row.value > (twin or 0):
            continue
        rarity = baseline.rarity(row.measure, row.value)
        if rarity <= level(row.state):
            nodes += _nodes(runs, row, same, twin, rarity)
    return sorted(_whole_parts(nodes), key=lambda node: (node.onset_t, node.id))


def level(state: str) -> float:
    """The largest share of fault-free runs that may reach the same number, for a state."""
    return RARE if state in NUMBERS else UNUSUAL


def _counterpart(matching: Matching, row: Measured) -> str | None:
    if row.type == "event":
        return matching.event(row.name)
    return matching.activation(row.name) if row.type == "activation" else row.name


def _nodes(
    runs: Matching, row: Measured, same: str | None, twin: float | None, rarity: float
) -> Iterator[Node]:
    """Make the node of a measurement; of a pattern, a node for each finding."""
    for name in _new_findings(runs, row.name) if row.type == "finding" else [row.name]:
        t = ONSETS[row.type, row.state](runs, name, same)
        yield Node(
            type=row.type,
            name=name,
            component=_component(runs.faulted_parts, row, name, t),
            state=row.state,
            onset_t=t,
            onset_s=runs.faulted.records[t].ts,
            test=row.measure,
            value=row.value,
            twin=twin,
            baseline=round(rarity, DIGITS),
        )


def _new_findings(runs: Matching, pattern: str) -> list[str]:
    """The findings of a pattern without a counterpart in the twin."""
    usual = [dict(finding.subject) for finding in runs.twin.findings if finding.pattern == pattern]
    return [
        str(finding.t)
        for finding in runs.faulted.findings
        if finding.pattern == pattern
        # Events may have other ids in the twin, so the subject is translated first.
        and (not usual or _in_twin(runs, finding.subject) not in usual)
    ]


def _in_twin(matching: Matching, subject: Mapping[str, str]) -> dict[str, str | None]:
    return {key: matching.event(name) if key == "event" else name for key, name in subject.items()}


def _component(parts: TaskParts, row: Measured, name: str, t: int) -> str:
    """The component of a deviation: an agent, `task` or `outcome`."""
    run = parts.run
    if row.type == "agent":
        return name
    if row.type == "activation":
        return run.activations[name].agent
    if row.type == "event":
        return _holder(parts, run.events[name], row.state, t) or TASK
    return TASK if row.type == "part" else OUTCOME


def _holder(parts: TaskParts, event: RecordedEvent, state: str, t: int) -> str | None:
    """The agent that has an event, lost or rerouted the event; else the sender.

    If several agents have it, the one that collects the solutions is named.
    """
    if state in ("unread", "overdue"):
        held = [to for to, came in event.arrivals if came <= t]
        recipient = parts.report_to(event)
        return recipient if recipient in held else held[-1] if held else event.agent
    record = parts.run.records[t]
    if state in ("lost", "rerouted") and isinstance(record, End):
        return parts.run.activations[record.activation].agent
    if state == "lost" and isinstance(record, Leave):
        return record.agent
    return event.agent


def _whole_parts(nodes: list[Node]) -> Iterator[Node]:
    """The nodes, with neighbouring parts in the same state joined to a single node."""
    yield from (node for node in nodes if node.type != "part")
    parts = [node for node in nodes if node.type == "part"]
    parts.sort(key=lambda node: (node.state, node.onset_t, named_range(node.name)))
    for _, alike in groupby(parts, key=lambda node: (node.state, node.onset_t, node.value)):
        run: list[Node] = []
        for node in alike:
            # Only neighbours without a gap are one part.
            if run and named_range(run[-1].name)[1] != named_range(node.name)[0]:
                yield _join(run)
                run = []
            run.append(node)
        yield _join(run)


def _join(run: list[Node]) -> Node:
    first, last = named_range(run[0].name), named_range(run[-1].name)
    return replace(run[0], name=range_name((first[0], last[1])))
