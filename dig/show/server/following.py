"""Follow a run: rows of the growing trace in batches.

A follower is a function of the file and of the last record that was seen, and of nothing else, so
a page that lost its connection goes on exactly where it stopped, on any connection.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
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

    def news(self) -> Iterator[tuple[int, list[Row]]]:
        """The new rows since the last call, in batches, each with the number of its last record.

        A batch is taken as a whole, or not at all.
        """
        rows, size, last = list[Row](), 0, -1
        try:
            for line in self._tail.read(is_growing=True):
                # Known records are followed, too: verdict and explanations need the whole run.
                record, new = self._follow(line)
                if record.t > self._after:
                    rows += new
                    size, last = size + len(line.text), record.t
                if len(rows) >= MOST_ROWS or size >= MOST_BYTES:
                    yield last, rows
                    rows, size = [], 0
        except TraceError as error:
            self.state, self.problem = "broken", str(error)
        if rows:
            yield last, rows

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

    def _follow(self, line: Line) -> tuple[Record, list[Row]]:
        try:
            record = record_of(line)
        except TraceError:  # a payload that lies beside the trace is missing: all else is there
            record = record_of(line, payloads=False)
        count = len(self.rows.detected)
        try:
            rows = [self.rows.of(record)]
        except RuleError as error:
            raise TraceError(line.file, line.number, str(error)) from None
        if isinstance(record, Finish):
            self.state = "ended"
        detected = self.rows.detected[count:]
        if detected and record.t > self._after and not self._records_findings():
            rows += detected
        return record, rows

    def _records_findings(self) -> bool:
        """The trace has rows for findings, as a journal does."""
        if self._has_findings is None:  # the whole file is read for the answer, so only on demand
            rows = (line.row for line in Tail(self._path).read(is_growing=True))
            self._has_findings = self._tail.is_journal or any(
                row.get("kind") == FindingRow.kind for row in rows
            )
        return self._has_findings
