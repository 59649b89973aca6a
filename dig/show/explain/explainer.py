"""A trace to explain, and the causal paths that lead to events and activations in it.

A *path* is causal: from the problem, along consumed and generated events, to the thing itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dig.detectors import standard
from dig.detectors.describe import explain, finding_text
from dig.detectors.finding import Explanation, Finding
from dig.detectors.patterns import severity_of
from dig.graph.history import History
from dig.graph.records import FindingRow, micros
from dig.traces.run import RecordedRun, recorded_rows

Explained = dict[str, Any]
"""The explanation of one thing, as plain data."""

KEYS = ("pattern", "stage", "subject", "evidence")


class Explainer:
    """A trace that was read, and the explanations of its findings.

    Attributes:
        path: The trace or run directory.
        run: The run, with the findings of the standard detectors.
        graph: The graph at the end of the trace.
        raised: The recorded findings or, if there are none, those of the standard detectors.
    """

    def __init__(self, path: Path) -> None:
        """Read a trace file or run directory.

        Raises:
            TraceError: The trace cannot be read, or breaks a rule; the line is named.
        """
        self.path = path
        self.run = RecordedRun.read(path, detectors=standard())
        self.graph = self.run.graph

    def findings(self) -> Iterator[Explained]:
        """The findings of the standard detectors, and what other detectors recorded in the trace.

        A finding goes by the record that raised it, as in `digmon check`; one of another detector
        by its own row.
        """
        rows, others = recorded_rows(self.run.found, self.run.findings)
        found = [said(one, one.t, row) for one, row in zip(self.run.found, rows, strict=True)]
        yield from sorted([*found, *(said(row, row.t, row) for row in others)], key=_record)

    def why(self, one: Explained) -> Explanation:
        """The explanation of a finding, by the standard detector that raises it, if one does."""
        for finding in self.run.found:
            if all(getattr(finding, key) == one[key] for key in KEYS):
                return explain(self.graph, finding)
        body = {key: one[key] for key in KEYS}
        return explain(self.graph, Finding(t=one["record"], us=micros(one["ts"]), **body))

    def about(self, name: str) -> list[Explained]:
        """The findings that name something, as subject or as evidence."""
        return [one for one in self.findings() if name in ids_in((one["subject"], one["evidence"]))]


def as_finding(one: Finding | FindingRow) -> Finding:
    """A recorded finding as if it had just been found."""
    body = {key: getattr(one, key) for key in KEYS}
    return Finding(t=one.t, us=one.us, severity=severity_of(one), silenced=one.silenced, **body)


def _record(one: Explained) -> int:
    record: int = one["record"]
    return record


def said(finding: Finding | FindingRow, record: int, row: FindingRow | None) -> Explained:
    """A finding as data.

    Args:
        finding: The finding.
        record: The record that it goes by.
        row: The row of the trace that it was recorded as; ``None``: it was not.
    """
    return {
        "record": record,
        "row": row.t if row else None,
        "ts": finding.ts,
        "pattern": finding.pattern,
        "severity": severity_of(finding),
        "silenced": row.silenced if row else finding.silenced,
        "stage": finding.stage,
        "subject": finding.subject,
        "evidence": finding.evidence,
        "says": finding_text(finding),
    }


# --- paths ---


def path_to(h: History, event: str) -> list[str]:
    """The shortest causal path from a problem to an event, ids of events and activations in turn.

    One that begins with an activation begins there: that activation used nothing.
    """
    e = h.event_number(event)
    came = {e: e}  # event -> the event that it was used for
    queue = deque([e])
    while h.generator[queue[0]] >= 0 and (inputs := h.inputs(h.generator[queue[0]])):
        e = queue.popleft()
        for before in inputs:
            if before not in came:
                came[before] = e
                queue.append(before)
    e = queue[0]
    path = [] if h.generator[e] < 0 else [h.activation_ids[h.generator[e]]]
    path.append(h.event_ids[e])
    while came[e] != e:
        e = came[e]
        path += [h.activation_ids[h.generator[e]], h.event_ids[e]]
    return path


def ids_in(value: Any) -> list[str]:
    """Every text in some evidence, once each: ids among them."""
    found: dict[str, None] = {}
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            found[one] = None
        elif isinstance(one, Mapping):
            stack += reversed([*one.keys(), *one.values()])
        elif isinstance(one, list | tuple):
            stack += reversed(one)
    return list(found)
