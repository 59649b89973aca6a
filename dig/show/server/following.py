"""Follow a run: rows of the growing trace in batches.

A follower is a function of the file and of the last record that was seen, and of nothing else, so
a page that lost its connection goes on exactly where it stopped, on any connection.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dig.errors import RuleError, TraceError
from dig.graph.records import FindingRow, Finish, Record
from dig.show.page.rows import Row, Rows
from dig.show.runs.summary import State, stored_state
from dig.traces.journal.reader import Line, Tail, record_of, trace_path
from dig.traces.journal.segments import segments

MOST_ROWS = 500
MOST_BYTES = 1_000_000
"""The rows, and the bytes of their lines, at which a batch is full."""


@dataclass
class Batch:
    """Some records as rows of the page; a batch is taken as a whole, or not at all.

    Attributes:
        last: The number of the last one; -1: there is none.
        rows: Their rows (see `dig.show.page.rows`).
        size: The bytes of their lines.
    """

    last: int = -1
    rows: list[Row] = field(default_factory=list)
    size: int = 0

    @property
    def is_full(self) -> bool:
        """The batch should be sent before another row is added."""
        return len(self.rows) >= MOST_ROWS or self.size >= MOST_BYTES


class TraceFollower:
    """Follows a trace.

    Attributes:
        state: The state of the run; after `in progress` no more rows come.
        problem: The reason for `broken`.
        rows: The rows of the page, and the run so far.
    """

    def __init__(self, path: Path, after: int = -1) -> None:
        """Begin.

        Args:
            path: The trace file or run directory.
            after: The last record that is known already; by default none.
        """
        self.state: State = "in progress"
        self.problem: str | None = None
        self._path = path
        self._after = after
        self._tail = Tail(path)
        self.rows = Rows()
        self._has_findings: bool | None = None

    def news(self) -> Iterator[Batch]:
        """The new rows since the last call, as far as the file has grown by now."""
        batch = Batch()
        try:
            for line in self._tail.read(is_growing=True):
                self._take(line, batch)
                if batch.is_full:
                    yield batch
                    batch = Batch()
        except TraceError as error:
            self.state, self.problem = "broken", str(error)
        if batch.rows:
            yield batch

    @property
    def age_s(self) -> float:
        """Seconds since the file was written last."""
        *_, last = segments(trace_path(self._path))
        try:
            return max(0.0, time.time() - last.stat().st_mtime)
        except OSError:  # it has just been removed
            return 0.0

    def settle(self) -> bool:
        """Check whether a run without news for a while is over without an end.

        Returns:
            Whether it is over; then `news` is due for the last time.
        """
        self.state = stored_state(self._path)
        return self.state != "in progress"

    def _take(self, line: Line, batch: Batch) -> None:
        # Known records are followed, too: verdict and explanations need the whole run.
        record = self._record(line)
        count = len(self.rows.detected)
        try:
            row = self.rows.of(record)
        except RuleError as error:
            raise TraceError(line.file, line.number, str(error)) from None
        if isinstance(record, Finish):
            self.state = "ended"
        if record.t > self._after:
            batch.last = record.t
            batch.rows.append(row)
            batch.size += len(line.text)
            if len(self.rows.detected) > count and not self._records_findings():
                batch.rows += self.rows.detected[count:]

    def _records_findings(self) -> bool:
        """The trace has rows for findings, as a journal does."""
        if self._has_findings is None:  # the whole file is read for the answer, so only on demand
            rows = (line.row for line in Tail(self._path).read(is_growing=True))
            self._has_findings = self._tail.is_journal or any(
                row.get("kind") == FindingRow.kind for row in rows
            )
        return self._has_findings

    def _record(self, line: Line) -> Record:
        try:
            return record_of(line)
        except TraceError:  # a payload that lies beside the trace is missing: all else is there
            return record_of(line, payloads=False)
