"""Records as rows of the page: the keys of the trace, with explanations.

A row has the keys of its record in a trace file. Texts are cut, findings and healing are explained:

- `payload`, `answer`, `error` and `detail` are text; `chars` of an `emit` is the length of its
  whole payload;
- a `finding` has `severity`, `silenced` (why a policy makes no alarm of it), `title` (its pattern
  in words), `plain` (what it means to a reader who knows no graph), `says` (the finding as text),
  `why` and `paths` (its explanation), `ids` (what it names), and `like`, which is equal for
  repeats;
- a `heal` has `says` and `plain`;
- an `incident` has `says`; an outage also has a `mark`, its label; if a part of the monitor failed,
  `failed` is the name of that part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any

from dig._util.json_values import encoder
from dig._util.text import one_line
from dig.detectors import describe, standard
from dig.detectors.describe import recorded_finding
from dig.detectors.finding import Finding, FindingKind, texts_in
from dig.graph import records, words
from dig.graph.codec import to_row
from dig.show.follower import RunFollower

MOST_TEXT = 4_000
MOST_IDS = 400
MOST_USAGE = 1_000
LONG = ("payload", "error", "why", "says")  # whose texts are cut where there is much

Row = dict[str, Any]
_readable = encoder(readable=True)
dumps = encoder()
"""A row as JSON."""


class Rows:
    """Turns the records of a run, in order, into rows.

    Attributes:
        follower: The run so far, for its verdict and its standstills.
        detected: The findings of the standard detectors, as rows; for a trace that records none.
        has_findings: Whether the trace records findings.
    """

    def __init__(self, most: int = MOST_TEXT, *, has_all: bool = False) -> None:
        """Begin a run.

        Args:
            most: The number of characters after which a payload is cut; 0 leaves payloads out.
            has_all: Whether the trace has all its findings, as a journal does: nothing is detected.
        """
        self._most = most
        self.follower = RunFollower([] if has_all else standard())
        self.detected: list[Row] = []
        self.has_findings = self._had_owner = False
        self._raising_t = 0

    def of(self, record: records.Record) -> Row:
        """The row of the next record.

        Raises:
            RuleError: The record contradicts those before it.
        """
        for finding in self.follower.follow(record):
            if not self.has_findings:
                row = {"t": finding.t, "ts": finding.ts, **self._finding(finding)}
                self.detected.append({**row, "found": True})
        row = to_row(record)
        if not isinstance(record, records.FindingRow | records.HealRow):
            self._raising_t = record.t  # people know a finding by the record that raised it
        match record:
            case records.Emit():
                payload = row.pop("payload", None)
                if payload is not None and self._most:
                    text = _text(payload)
                    row["payload"], row["chars"] = text[: self._most], len(text)
            case records.Start() if not self.follower.so_far.starts_turn:
                row["part"] = True  # of a turn that began before
            case records.End() | records.Finish():
                self._shorten_end(row)
            case records.FindingRow():
                self.has_findings = True
                row = {"t": record.t, "ts": record.ts, "record": self._raising_t,
                       **self._finding(recorded_finding(record))}  # fmt: skip
            case records.HealRow():
                row["says"] = words.healing_text(record)
                row["plain"] = words.action_text(record, len(self.follower.so_far.agents))
                row["note"] = None if record.note is None else str(record.note)[:MOST_TEXT]
            case records.IncidentRow():
                shown = record if self._most else words.without_contents(record)
                row["says"] = words.incident_text(shown)
                row["detail"] = None
                if mark := self._outage_mark(record):
                    row["mark"] = mark
                part = words.failed_component(record)
                if part is not None:
                    row["failed"] = part
        return row

    def _outage_mark(self, record: records.IncidentRow) -> str:
        """The label of an interruption, such as a change of the owner; else empty."""
        if record.what not in words.OUTAGES:
            return ""
        is_first, self._had_owner = not self._had_owner, True
        if record.what == "owner" and is_first:
            return ""
        return f"{words.OUTAGES[record.what]} after {words.outage_s(record):.1f} s"

    def _finding(self, finding: Finding) -> Row:
        # A recorded finding is explained by its evidence and by the graph at its row, which has
        # not changed since the record that raised the finding.
        graph = self.follower.graph
        explanation = describe.explain_safely(graph, finding)
        ids = dict.fromkeys(texts_in((finding.subject, finding.evidence), has_keys=True))
        present = (id for id in ids if graph.history.is_taken(id) or id in graph.agents)
        kind = FindingKind.of(graph, finding)
        like = f"{describe.pattern_label(finding)}: {', '.join(kind.agents)}"
        return {
            "kind": "finding",
            "pattern": one_line(finding.pattern, 40),
            "stage": None if finding.stage is None else one_line(finding.stage, 40),
            "severity": finding.severity,
            "silenced": None if finding.silenced is None else one_line(finding.silenced),
            "like": one_line(like, 400),
            "agents": [one_line(agent) for agent in kind.agents[:1]],
            "title": describe.pattern_title(finding.pattern),
            "plain": describe.plain_text(finding, graph.run.limits, self.follower.so_far.agents),
            "says": describe.finding_text(finding, graph),
            "why": one_line(explanation.text, 1_000),
            "paths": [{"nodes": list(path.nodes), "says": path.text} for path in explanation.paths],
            "ids": list(islice(present, MOST_IDS)),
        }

    def _shorten_end(self, row: Row) -> None:
        answer, error = row.pop("answer", None), row.pop("error", None)
        if answer is not None and self._most:
            row["answer"] = _text(answer)[: self._most]
        if error is not None:  # it may quote what agents said, so it goes with the payloads
            row["error"] = _text(error)[:MOST_TEXT] if self._most else "(left out)"
        if "usage" in row and len(_text(row["usage"])) > MOST_USAGE:
            del row["usage"]


def pack(row: Row) -> Row | str:
    """Pack a row without a long text as JSON, to save memory until all rows are there."""
    return row if any(row.get(key) for key in LONG) else dumps(row)


def shorten(rows: Iterable[Row | str], budget: int) -> tuple[int, int]:
    """Cut payloads and errors to at most so many characters in all.

    Returns:
        The number of characters after which they are cut now, and the number of all characters.
    """
    # Packed rows have no long texts.
    texts = [(row, key) for row in rows if not isinstance(row, str) for key in LONG if row.get(key)]
    lengths = Counter(len(row[key]) for row, key in texts)
    most = MOST_TEXT
    while sum(min(length, most) * n for length, n in lengths.items()) > budget and most > 1:
        most = most * 3 // 4
    for row, key in texts:
        row[key] = row[key][:most]
    return most, sum(min(length, most) * n for length, n in lengths.items())


def _text(value: object) -> str:
    """A value from a trace as text: strings unchanged, all else as JSON."""
    return value if isinstance(value, str) else _readable(value)
