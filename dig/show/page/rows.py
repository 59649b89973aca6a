"""Records as rows of the page: the keys of the trace, with explanations.

A row has the keys of its record in a trace file. Texts are cut, findings and healing are told:

- `payload`, `answer`, `error` and `detail` are text; `chars` of an `emit` is the length of its
  whole payload;
- a `finding` has `severity`, `silenced` (why a policy makes no alarm of it), `title` (its pattern
  in words), `plain` (what it means to a reader who knows no graph), `says`, `why`, `paths`, `ids`
  (whom it names) for its evidence, and `like`, which is equal for repeats;
- a `heal` has `plain`, and both it and an `incident` have `says`; an incident of a part of the
  monitor that failed has its name as `failed`.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable
from itertools import islice
from typing import Any

from dig._util.json_values import encoder
from dig._util.text import one_line
from dig.detectors import standard
from dig.detectors.describe import (
    explain_safely,
    finding_text,
    pattern_label,
    pattern_title,
    plain_text,
)
from dig.detectors.finding import Explanation, Finding
from dig.detectors.run_so_far import RunSoFar
from dig.detectors.watch import Watch
from dig.graph.codec import to_row
from dig.graph.records import Emit, End, FindingRow, Finish, HealRow, IncidentRow, Record
from dig.graph.words import action_text, failed_component, healing_text, incident_text
from dig.show.explain.explainer import KEYS, as_finding, ids_in
from dig.show.gate.baseline import FindingKind
from dig.show.standstill import Progress, Standstill
from dig.traces.usage import Costs

MOST_TEXT = 4_000
MOST_IDS = 400
MOST_USAGE = 1_000
LONG = ("payload", "error", "why", "says")  # whose texts are cut where there is much

Row = dict[str, Any]
_readable = encoder(readable=True)
dumps = encoder()
"""A row as JSON."""


class Rows:
    """Turns the records of one run, in order, into rows.

    Attributes:
        found: The findings of the standard detectors, as rows; for a trace that records none.
        has_findings: Whether the trace records findings.
        so_far, costs: The run and its costs, for its verdict.
    """

    def __init__(self, most: int = MOST_TEXT, *, has_all: bool = False) -> None:
        """Begin a run.

        Args:
            most: The number of characters after which a payload is cut; 0 leaves payloads out.
            has_all: Whether the trace has all its findings, as a journal does: nothing is detected.
        """
        self._most = most
        self._watch = Watch([] if has_all else standard())
        self._raised: dict[str, deque[Explanation]] = {}
        self.found: list[Row] = []
        self.has_findings = False
        self.so_far, self.costs = RunSoFar(self._watch.graph), Costs()
        self._progress = Progress()

    def of(self, record: Record) -> Row:
        """The row of the next record.

        Raises:
            RuleError: The record contradicts those before it.
        """
        self._find(record)
        row = to_row(record)
        match record:
            case Emit():
                self._payload(row)
            case End() | Finish():
                self._outcome(row)
            case FindingRow():
                self.has_findings = True
                row = {"t": record.t, "ts": record.ts, **self._recorded(record)}
            case HealRow():
                row["says"] = healing_text(record)
                row["plain"] = action_text(record, len(self.so_far.agents))
                row["note"] = None if record.note is None else str(record.note)[:MOST_TEXT]
            case IncidentRow():
                row["says"] = incident_text(record)
                row["detail"] = None
                failed = failed_component(record)
                if failed is not None:
                    row["failed"] = failed
        return row

    @property
    def now_us(self) -> int:
        """The time of the last record on the run's clock."""
        return self._watch.graph.now

    @property
    def standstill(self) -> Standstill | None:
        """The standstill that the team is in after the last record."""
        return self._progress.standstill(self._watch.graph)

    def _find(self, record: Record) -> None:
        found = self._watch.feed(record)
        self._progress.follow(record, self._watch.graph)
        self.so_far(record, found)
        self.costs(record)
        for finding in found:
            why = self._why(finding)
            if not self.has_findings:
                row = {"t": finding.t, "ts": finding.ts, **self._finding(finding, why)}
                self.found.append({**row, "found": True})
            self._raised.setdefault(_told(finding), deque()).append(why)

    def _why(self, finding: Finding) -> Explanation:
        return explain_safely(self._watch.graph, finding)

    def _recorded(self, record: FindingRow) -> Row:
        """A finding of the trace, explained by the detector that raises it, if that is known."""
        finding, same = as_finding(record), self._raised.get(_told(record))
        why = same.popleft() if same else self._why(finding)
        return self._finding(finding, why)

    def _finding(self, finding: Finding, why: Explanation) -> Row:
        graph = self._watch.graph
        named = dict.fromkeys(ids_in((finding.subject, finding.evidence)))
        known = (one for one in named if graph.history.is_taken(one) or one in graph.agents)
        kind = FindingKind.of(graph, finding)
        like = f"{pattern_label(finding)}: {', '.join(kind.agents)}; {', '.join(kind.types)}"
        return {
            "kind": "finding",
            "pattern": one_line(finding.pattern, 40),
            "stage": None if finding.stage is None else one_line(finding.stage, 40),
            "severity": finding.severity,
            "silenced": None if finding.silenced is None else one_line(finding.silenced),
            "like": one_line(like, 400),
            "title": pattern_title(finding.pattern),
            "plain": plain_text(finding, graph.run.limits, self.so_far.agents),
            "says": finding_text(finding),
            "why": one_line(why.text, 1_000),
            "paths": [{"nodes": list(path.nodes), "says": path.text} for path in why.paths],
            "ids": list(islice(known, MOST_IDS)),
        }

    def _payload(self, row: Row) -> None:
        payload = row.pop("payload", None)
        if payload is not None and self._most:
            text = _text(payload)
            row["payload"], row["chars"] = text[: self._most], len(text)

    def _outcome(self, row: Row) -> None:
        answer, error = row.pop("answer", None), row.pop("error", None)
        if answer is not None and self._most:
            row["answer"] = _text(answer)[: self._most]
        if error is not None:  # it may quote what was said
            row["error"] = _text(error)[:MOST_TEXT] if self._most else "(left out)"
        if "usage" in row and len(_text(row["usage"])) > MOST_USAGE:
            del row["usage"]


def _told(finding: Finding | FindingRow) -> str:
    """All that a finding says, as text: the same for one that was found and for its record."""
    return json.dumps([getattr(finding, key) for key in KEYS], sort_keys=True)


def packed(row: Row) -> Row | str:
    """A row as it is kept until all are there: without a long text as JSON, which is smaller."""
    return row if any(row.get(key) for key in LONG) else dumps(row)


def shortened(rows: Iterable[Row | str], budget: int) -> int:
    """Cut payloads and errors further, so that all together have at most so many characters.

    Returns:
        The number of characters after which they are cut now.
    """
    texts = [(row, key) for row in rows if not isinstance(row, str) for key in LONG if row.get(key)]
    lengths = Counter(len(row[key]) for row, key in texts)
    most = MOST_TEXT
    while sum(min(length, most) * n for length, n in lengths.items()) > budget and most > 1:
        most = most * 3 // 4
    for row, key in texts:
        row[key] = row[key][:most]
    return most


def _text(value: object) -> str:
    """A value from a trace as text: a string as it is, all else as JSON."""
    return value if isinstance(value, str) else _readable(value)
