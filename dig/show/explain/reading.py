"""A trace, read once for the sake of one thing in it, and the paths that lead to it.

A *path* is causal: from the problem, over what was used to make what, to the thing itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dig.detectors import standard
from dig.detectors.describe import explain, finding_text
from dig.detectors.finding import Explanation, Finding
from dig.detectors.watch import Watch
from dig.errors import RuleError
from dig.graph.history import History
from dig.graph.records import (
    Deliver,
    Emit,
    End,
    Expire,
    FindingRow,
    HealRow,
    IncidentRow,
    Join,
    Leave,
    Record,
    Redirect,
    Start,
    micros,
)
from dig.traces.journal.reader import read_records, trace_path
from dig.traces.journal.segments import fault

Explained = dict[str, Any]
"""What is said of one thing."""


class Reading:
    """A trace, read once: its graph, what was raised, and the records that name one thing.

    Attributes:
        path: The trace or run directory.
        graph: The graph at the end of the trace.
        mentions: The records that have to do with the thing that was asked for.
        recorded, heals, incidents: The rows of these kinds.
        found: What the standard detectors find in the trace.
        agents: All agents that ever took part.
    """

    def __init__(self, path: Path, name: str | None) -> None:
        """Read a trace.

        Args:
            path: The trace file or run directory.
            name: The thing that is asked for, if one is.

        Raises:
            TraceError: The trace cannot be read, or breaks a rule; the line is named.
        """
        self.path = path
        self.mentions: list[Record] = []
        self.agents: dict[str, None] = {}
        self.recorded: list[FindingRow] = []
        self.heals: list[HealRow] = []
        self.incidents: list[IncidentRow] = []
        self.found: list[Finding] = []
        watch = Watch(standard())
        self.graph = watch.graph
        for number, record in enumerate(read_records(path, payloads=False), 1):
            try:
                self.found += watch.feed(record)
            except RuleError as error:
                raise fault(trace_path(path), number, str(error)) from None
            self._keep(record, name)
        self.agents = dict.fromkeys((*self.graph.run.agents, *self.agents))

    def _keep(self, record: Record, name: str | None) -> None:
        if isinstance(record, FindingRow):
            self.recorded.append(record)
        elif isinstance(record, HealRow):
            self.heals.append(record)
        elif isinstance(record, IncidentRow):
            self.incidents.append(record)
        elif isinstance(record, Join):
            self.agents[record.agent] = None
        if name is not None and self._has_to_do(record, name):
            self.mentions.append(record)

    def _has_to_do(self, record: Record, name: str) -> bool:
        match record:
            case Emit():
                return name in (record.event, record.by)
            case Deliver() | Redirect():
                return name == record.event or name == record.to
            case Expire() | HealRow():
                return name == record.event
            case Start():
                return name in (record.activation, record.agent) or name in record.inputs
            case End():
                ended = self.graph.ended
                seen = ended is not None and any(event.id == name for event in ended.inputs)
                return name == record.activation or seen or bool(ended and ended.agent == name)
            case Join():
                return name == record.agent
            case Leave():
                is_lost = any(event.id == name for event in self.graph.touched)
                return name == record.agent or is_lost
            case FindingRow() | IncidentRow():
                body = record.subject if isinstance(record, FindingRow) else record.detail
                return isinstance(body, Mapping) and name in body.values()
            case _:
                return False

    def findings(self) -> Iterator[Explained]:
        """What was raised: as it was recorded, or, if nothing was, as it is found now."""
        if self.recorded:
            for row in self.recorded:
                yield said(row, row.t)
        else:
            for finding in self.found:
                yield said(finding, finding.t)

    def why(self, one: Explained) -> Explanation:
        """The explanation of something that was raised, by whoever found it."""
        keys = ("pattern", "stage", "subject", "evidence")
        for finding in self.found:
            if all(getattr(finding, key) == one[key] for key in keys):
                return explain(self.graph, finding)
        body = {key: one[key] for key in keys}
        return explain(self.graph, Finding(t=one["record"], us=micros(one["ts"]), **body))

    def about(self, name: str) -> list[Explained]:
        """The findings that name something, as subject or as evidence."""
        return [one for one in self.findings() if name in ids_in((one["subject"], one["evidence"]))]


def said(finding: Finding | FindingRow, record: int) -> Explained:
    """A finding, as it is said of whatever it concerns; `record` is the number it goes by."""
    return {
        "record": record,
        "ts": finding.ts,
        "pattern": finding.pattern,
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
    n = h.event(event)
    if n is None:
        return []
    came: dict[int, int] = {n: n}  # event -> the event that it was used for
    queue = deque([n])
    while queue:
        e = queue.popleft()
        v = h.generator[e]
        inputs = h.inputs(v) if v >= 0 else []
        if not inputs:
            return _forward(h, e, came)
        for before in inputs:
            if before not in came:
                came[before] = e
                queue.append(before)
    return [event]


def _forward(h: History, e: int, came: Mapping[int, int]) -> list[str]:
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
