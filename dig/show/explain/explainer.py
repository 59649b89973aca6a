"""Explanations of the findings in a trace, and causal paths to events.

A *path* is causal: from the problem, along consumed and generated events, to its end.
"""

from __future__ import annotations

from collections import deque
from operator import itemgetter
from pathlib import Path
from typing import Any

from dig.detectors import standard
from dig.detectors.describe import explain, finding_text
from dig.detectors.finding import Explanation, Finding, texts_in
from dig.detectors.patterns import severity_of
from dig.graph.graph import InteractionGraph
from dig.graph.history import History
from dig.graph.records import FindingRow, micros
from dig.traces.run import RecordedRun, recorded_rows

Facts = dict[str, Any]
"""An explanation as plain data."""

KEYS = ("pattern", "stage", "subject", "evidence")


class Explainer:
    """A trace with explanations of the findings.

    Attributes:
        path: The trace or run directory.
        run: The run, with the findings of the standard detectors.
        graph: The graph at the end of the trace.
    """

    def __init__(self, path: Path) -> None:
        """Read a trace file or run directory.

        Raises:
            TraceError: The trace cannot be read, or breaks a rule; the line is named.
        """
        self.path = path
        self.run = RecordedRun.read(path, detectors=standard())
        self.graph = self.run.graph

    def findings(self) -> list[Facts]:
        """The findings of the standard detectors, and recorded findings of other detectors.

        A finding goes by the record that raised it, as in `digmon check`; a finding of another
        detector by its own row.
        """
        rows, others = recorded_rows(self.run.found, self.run.findings)
        pairs = zip(self.run.found, rows, strict=True)
        facts = [_finding_facts(finding, row, self.graph) for finding, row in pairs]
        facts += [_finding_facts(row, row, self.graph) for row in others]
        return sorted(facts, key=itemgetter("record"))

    def explain(self, facts: Facts) -> Explanation:
        """Explain a finding at the end of the trace."""
        body = {key: facts[key] for key in KEYS}
        return explain(self.graph, Finding(t=facts["record"], us=micros(facts["ts"]), **body))

    def findings_about(self, id: str) -> list[Facts]:
        """The findings with an id in the subject or in the evidence."""
        return [
            facts
            for facts in self.findings()
            if id in texts_in((facts["subject"], facts["evidence"]), has_keys=True)
        ]


def _finding_facts(
    finding: Finding | FindingRow, row: FindingRow | None, graph: InteractionGraph
) -> Facts:
    """A finding as data; `row` is the row of the trace for the finding, if there is any."""
    return {
        "record": finding.t,
        "row": row.t if row else None,
        "ts": finding.ts,
        "pattern": finding.pattern,
        "severity": severity_of(finding),
        "silenced": row.silenced if row else finding.silenced,
        "stage": finding.stage,
        "subject": finding.subject,
        "evidence": finding.evidence,
        "says": finding_text(finding, graph),
    }


def path_to(h: History, event: str) -> list[str]:
    """The shortest causal path from a problem to an event, ids of events and activations in turn.

    A path that begins with an activation begins there: that activation used nothing.
    """
    e = h.event_number(event)
    used_for = {e: e}  # event -> the next event on the way to the end
    queue = deque([e])
    # Breadth first and backwards, so the first event from outside that is reached is the nearest.
    while h.generator[queue[0]] >= 0 and (inputs := h.inputs(h.generator[queue[0]])):
        e = queue.popleft()
        for source in inputs:
            if source not in used_for:
                used_for[source] = e
                queue.append(source)
    e = queue[0]
    path = [] if h.generator[e] < 0 else [h.activation_ids[h.generator[e]]]
    path.append(h.event_ids[e])
    while used_for[e] != e:
        e = used_for[e]
        path += [h.activation_ids[h.generator[e]], h.event_ids[e]]
    return path
