"""A recorded run, read request by request."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from functools import cached_property
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
    """A recorded line, and the record in the line."""

    text: bytes
    record: Record


class RecordedRequests:
    """A recorded run, read ahead as far as needed.

    Attributes:
        path: The trace file.
        header: The description of the run in its first line; ``None`` for a plain trace.
        behind: The record that was popped last.
        omitted: The numbers of records that are not to be made again.
    """

    def __init__(self, path: Path, *, payloads: bool = True, omitted: Collection[int] = ()) -> None:
        """Open a trace; large payloads are read if needed.

        Raises:
            TraceError: The trace cannot be read.
        """
        self.path = trace_path(path)
        self.behind: Record | None = None
        self.omitted = omitted
        self._lines = read_lines(path)
        self._payloads = payloads
        first = next(self._lines)
        header = first.row.get(HEADER)
        self.header: dict[str, Any] | None = header if isinstance(header, dict) else None
        self._ahead: deque[Recorded] = deque([self._read(first)])

    def ahead(self, count: int = 0) -> Recorded | None:
        """The line `count` lines ahead; ``None`` after the end."""
        while len(self._ahead) <= count:
            line = next(self._lines, None)
            if line is None:
                return None
            self._ahead.append(self._read(line))
        return self._ahead[count]

    def pop(self) -> Recorded | None:
        """Take the next line."""
        recorded = self.ahead()
        if recorded is not None:
            self._ahead.popleft()
            self.behind = recorded.record
        return recorded

    def later(self) -> Iterator[Record]:
        """All remaining records, in order."""
        while (recorded := self.pop()) is not None:
            yield recorded.record

    @cached_property
    def redirected(self) -> dict[str, Any]:
        """The payloads of all redirected events, by id.

        By then the monitor may have dropped a payload, since all recipients have used it, and only
        the host still knew it; a `redirect` itself does not contain it.
        """
        rows = read_records(self.path, payloads=False)
        events = {record.event for record in rows if isinstance(record, Redirect)}
        return {
            record.event: record.payload
            for record in read_records(self.path)
            if isinstance(record, Emit) and record.event in events
        }

    def check_edition(self) -> None:
        """Refuse a run in which another edition of the patterns has healed.

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

    @cached_property
    def policies(self) -> RecordedPolicies:
        """The acts of delivery policies in the run."""
        # To know whether an event was kept takes the records after it, so they are read apart.
        rows = read_records(self.path, payloads=False)
        are_named = self.header is not None and self.header.get(UNNAMED) is not True
        return RecordedPolicies(rows, are_named=are_named)

    def output(self, emit: Emit) -> Output:
        """An event for the monitor, with the recorded acts of the delivery policy."""
        policy = self.policies.of(emit, self.omitted)
        return Output(emit.payload, emit.to, emit.type, emit.final, policy, emit.traceparent)

    def _read(self, line: Line) -> Recorded:
        return Recorded(line.text, record_of(line, payloads=self._payloads))


def _heals(record: Record) -> bool:
    if not isinstance(record, IncidentRow):
        return isinstance(record, HealRow) and record.action != "refused"
    if record.what == records.WAITS:  # for a person to decide about healing
        return isinstance(record.detail, dict) and "finding" in record.detail
    return record.what in (PREVENTED, DECIDED, REHEARSED)


def is_about_findings(record: Record | None) -> bool:
    """Whether a record is about a finding, omitted findings, or a reduced healing."""
    if isinstance(record, IncidentRow):
        return record.what in (records.LEFT_OUT, DOWNGRADED)
    return isinstance(record, FindingRow | HealRow)
