"""A trace to explain, and the causal paths that lead to events and activations in it.

A *path* is causal: from the problem, along consumed and generated events, to the thing itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dig.detectors import standard
from dig.detectors.describe import explain, finding_text
from dig.detectors.finding import Explanation, Finding
from dig.detectors.patterns import severity_of
from dig.graph.history import History
from dig.graph.records import FindingRow
from dig.traces.run import RecordedRun

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
        self.raised = self.run.findings or self.run.found

    def why(self, one: Finding | FindingRow) -> Explanation:
        """The explanation of a finding, by the standard detector that raises it, if one does."""
        known = next((found for found in self.run.found if are_alike(found, one)), None)
        return explain(self.graph, known or as_finding(one))

    def about(self, name: str) -> list[Explained]:
        """The findings that name something, as subject or as evidence."""
        return [said(one) for one in self.raised if name in ids_in((one.subject, one.evidence))]


def said(finding: Finding | FindingRow) -> Explained:
    """A finding as data."""
    body = {key: getattr(finding, key) for key in KEYS}
    return {
        "record": finding.t,
        "ts": finding.ts,
        **body,
        "severity": severity_of(finding),
        "silenced": finding.silenced,
        "says": finding_text(finding),
    }


def are_alike(a: Finding | FindingRow, b: Finding | FindingRow, keys: Sequence[str] = KEYS) -> bool:
    """Whether two findings say the same.

    Args:
        a: A finding.
        b: Another one, at any time.
        keys: The attributes to compare; by default all but the time.
    """
    return all(getattr(a, key) == getattr(b, key) for key in keys)


def as_finding(one: Finding | FindingRow) -> Finding:
    """A recorded finding as if it had just been found."""
    body = {key: getattr(one, key) for key in KEYS}
    return Finding(t=one.t, us=one.us, severity=severity_of(one), silenced=one.silenced, **body)


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
