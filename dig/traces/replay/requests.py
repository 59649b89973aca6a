"""A recorded run, read request by request."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dig.errors import ReplayError
from dig.graph import records
from dig.graph.records import Emit, FindingRow, HealRow, IncidentRow, Record, Redirect, Run
from dig.monitor.approvals import DECIDED
from dig.monitor.messages import Output
from dig.traces.journal.chain import HEADER
from dig.traces.journal.reader import Line, read_lines, read_records, record_of, trace_path

from .deliveries import RecordedPolicies

UNNAMED = "unnamed_policies"
"""The key in the header of a fork of a plain trace, which may not name its delivery policies."""

DOWNGRADED, PREVENTED = "downgraded", "prevented"
"""The incidents about an intervention that was carried out only in part, or not at all, and about
a note that came before any finding."""

REHEARSED = "rehearsed"
"""The incident of older runs in which several agents were tried for a step of healing."""

NOT_COMPARED = "patterns of edition {}: findings and healing are not compared"
"""What is said of a run whose findings were made by another edition of the patterns."""


class Recorded(NamedTuple):
    """One recorded line, and its record."""

    text: bytes
    record: Record


class RecordedRequests:
    """A recorded run, read as far ahead as it is needed.

    Attributes:
        path: The trace file.
        header: The description of the run in its first line; ``None`` for a plain trace.
        behind: The record that was popped last.
        left_out: The numbers of records that are not to be made again.
    """

    def __init__(
        self, path: Path, *, payloads: bool = True, left_out: Collection[int] = ()
    ) -> None:
        """Open a trace; large payloads are read if they are needed.

        Raises:
            TraceError: The trace cannot be read.
        """
        self.path = trace_path(path)
        self.behind: Record | None = None
        self.left_out = left_out
        self._lines = read_lines(path)
        self._payloads = payloads
        first = next(self._lines)
        header = first.row.get(HEADER)
        self.header: dict[str, Any] | None = header if isinstance(header, dict) else None
        self._ahead: deque[Recorded] = deque([self._recorded(first)])
        self._sent_again: dict[str, Any] | None = None  # once it was asked for
        self._policies: RecordedPolicies | None = None  # the same

    def ahead(self, count: int = 0) -> Recorded | None:
        """The line after `count` others, if there is one."""
        while len(self._ahead) <= count:
            line = next(self._lines, None)
            if line is None:
                return None
            self._ahead.append(self._recorded(line))
        return self._ahead[count]

    def pop(self) -> Recorded | None:
        """The next line, which is then behind."""
        recorded = self.ahead()
        if recorded is not None:
            self._ahead.popleft()
            self.behind = recorded.record
        return recorded

    def rest(self) -> Iterator[Record]:
        """All remaining records, in order."""
        while (recorded := self.pop()) is not None:
            yield recorded.record

    def sent_again(self, event: str) -> Any:
        """The payload of an event that some record redirects.

        By then the monitor may have dropped it, since all recipients have used it, and only the
        host still knew it; a `redirect` itself does not contain it.
        """
        if self._sent_again is None:
            rows = read_records(self.path, payloads=False)
            sent = {record.event for record in rows if isinstance(record, Redirect)}
            self._sent_again = {
                record.event: record.payload
                for record in read_records(self.path)
                if isinstance(record, Emit) and record.event in sent
            }
        return self._sent_again.get(event)

    def check_edition(self) -> None:
        """Check that nothing was healed in the run by another edition of the patterns.

        Raises:
            ReplayError: Something was, and today it would be otherwise.
        """
        rows = read_records(self.path, payloads=False)
        run = next(rows)
        if not isinstance(run, Run) or run.patterns == records.EDITION:
            return
        if (healed := next((row.t for row in rows if _heals(row)), None)) is not None:
            raise ReplayError(
                f"{NOT_COMPARED.format(run.patterns)}, and healing has acted in this run (record "
                f"{healed}), so it can be neither driven again nor forked"
            )

    @property
    def policies(self) -> RecordedPolicies:
        """The acts of delivery policies in the run."""
        if self._policies is None:
            rows = read_records(self.path, payloads=False)
            are_named = self.header is not None and self.header.get(UNNAMED) is not True
            self._policies = RecordedPolicies(rows, are_named=are_named)
        return self._policies

    def output(self, emit: Emit) -> Output:
        """An event as it was handed to the monitor; its delivery policy does as it did."""
        policy = self.policies.of(emit, self.left_out)
        return Output(emit.payload, emit.to, emit.type, emit.final, policy, emit.traceparent)

    def _recorded(self, line: Line) -> Recorded:
        return Recorded(line.text, record_of(line, payloads=self._payloads))


def _heals(record: Record) -> bool:
    if not isinstance(record, IncidentRow):
        return isinstance(record, HealRow) and record.action != "refused"
    if record.what == records.WAITS:  # for a person to decide about healing
        return isinstance(record.detail, dict) and "finding" in record.detail
    return record.what in (PREVENTED, DECIDED, REHEARSED)


def is_about_findings(record: Record | None) -> bool:
    """Whether a record tells of a finding, of those left out, or why one was not healed."""
    if isinstance(record, IncidentRow):
        return record.what in (records.LEFT_OUT, DOWNGRADED)
    return isinstance(record, FindingRow | HealRow)
