"""Following a run: rows of its trace in batches, as the file grows.

A follower is a function of the file and of the last record that was seen, and of nothing else, so
a page that lost its connection goes on exactly where it stopped, whoever answers it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dig.errors import RuleError, TraceError
from dig.graph.records import FindingRow, Finish, Record
from dig.show.page.rows import Row, Rows
from dig.show.runs.summary import State, standing
from dig.traces.journal.reader import Line, Tail, record_of

MOST_ROWS = 500
MOST_BYTES = 1_000_000
"""A batch is full with so many rows, or when their lines have so many bytes."""


@dataclass
class Batch:
    """Some records, as a page is told of them; it is taken as a whole, or not at all.

    Attributes:
        last: The number of the last one; -1: there is none.
        rows: What the page is shown of them (see `dig.show.page.rows`).
        size: How many bytes their lines have.
    """

    last: int = -1
    rows: list[Row] = field(default_factory=list)
    size: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it should be sent before more is put into it."""
        return len(self.rows) >= MOST_ROWS or self.size >= MOST_BYTES


class TraceFollower:
    """Follows one trace.

    Attributes:
        state: How it is with the run; after `in progress` nothing more comes.
        problem: Why it is broken.
    """

    def __init__(self, path: Path, after: int = -1) -> None:
        """Begin.

        Args:
            path: The trace file or run directory.
            after: The last record that is known already.
        """
        self.state: State = "in progress"
        self.problem: str | None = None
        self._path = path
        self._after = after
        self._tail = Tail(path)
        self._made = Rows()
        self._is_telling: bool | None = None

    def news(self) -> Iterator[Batch]:
        """What has come since the last time, as far as the file has grown by now."""
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

    def settle(self) -> bool:
        """Look whether a run that gave no news for a while is over, though it has no end.

        Returns:
            Whether it is; then a last look at the news is due.
        """
        self.state = standing(self._path)
        return self.state != "in progress"

    def _take(self, line: Line, batch: Batch) -> None:
        record = self._record(line)
        known = len(self._made.found)
        try:
            row = self._made.of(record)
        except RuleError as error:
            raise TraceError(line.file, line.number, str(error)) from None
        if isinstance(record, Finish):
            self.state = "ended"
        if record.t > self._after:
            batch.last = record.t
            batch.rows.append(row)
            batch.size += len(line.text)
            if len(self._made.found) > known and not self._tells_of_findings():
                batch.rows += self._made.found[known:]

    def _tells_of_findings(self) -> bool:
        """Whether the trace has rows for what was raised, as a journal does; asked if need be."""
        if self._is_telling is None:
            rows = (line.row for line in Tail(self._path).read(is_growing=True))
            self._is_telling = self._tail.is_journal or any(
                row.get("kind") == FindingRow.kind for row in rows
            )
        return self._is_telling

    def _record(self, line: Line) -> Record:
        try:
            return record_of(line)
        except TraceError:  # a payload that lies beside the trace is missing: all else is there
            return record_of(line, payloads=False)
