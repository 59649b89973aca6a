"""A recorded run in a file, read request by request."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dig.runtime.driver.recorded_requests import Recorded, RecordedRequests
from dig.traces.journal.reader import read_lines, read_records, record_of, trace_path


def read_requests(
    path: Path, *, payloads: bool = True, omitted: Collection[int] = ()
) -> RecordedRequests:
    """Open a trace, to drive a monitor by its records.

    Args:
        path: The trace file or run directory.
        payloads: Whether to read large payloads that lie beside the trace.
        omitted: The numbers of records that are not to be made again.

    Raises:
        TraceError: The trace cannot be read.
    """
    lines = RecordedLines(path, payloads=payloads)
    again = partial(read_records, path, payloads=payloads)
    return RecordedRequests(lines, str(trace_path(path)), again=again, omitted=omitted)


@dataclass(frozen=True)
class RecordedLines:
    """The lines of a trace with the records; each iteration reads the file.

    Attributes:
        path: The trace file or run directory.
        payloads: Whether to read large payloads that lie beside the trace.
    """

    path: Path
    payloads: bool = True

    def __iter__(self) -> Iterator[Recorded]:
        """Read the trace.

        Raises:
            TraceError: The trace cannot be read.
        """
        for line in read_lines(self.path):
            yield Recorded.of_row(line.text, line.row, record_of(line, payloads=self.payloads))
