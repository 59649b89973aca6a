"""Trace and span ids from names: the same run, exported again, has the same ids.

A run is one trace, a long one several: a *segment* has its number from the logical and the wall
time alone, so that the trace of an activation is known as soon as it begins.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from dataclasses import field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b, file_digest
from os import environ
from pathlib import Path
from urllib.parse import quote

from dig._util.files import open_file, read_file, stored_path
from dig._util.frozen import frozen
from dig.errors import TraceError
from dig.traces.journal.journal import SIDE
from dig.traces.journal.reader import TRACE, trace_path
from dig.traces.journal.segments import missing, segments

REPORT_URL = "DIG_REPORT_URL"
"""The variable with the address at which reports are served; `{run}` in it is the run's id."""

_1970 = datetime(1970, 1, 1, tzinfo=UTC)

SEGMENT_RECORDS = 20_000
"""Records in a segment: some 5,000 spans, which viewers still draw in a few seconds."""

SEGMENT_US = 3_600_000_000
"""An hour: the longest that a segment lasts."""

MOST_NS = 2**63 - 1
"""The last moment that fits into the formats."""

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


@frozen
class Origin:
    """The name and beginning of an execution: the source of all ids and times.

    Attributes:
        execution: The name of the execution.
        began_ns: The moment of the run's time zero, in nanoseconds since 1970.
        report_url: The address of the run's report, for a reader of its spans; empty: not known.
        outages: The moments, in microseconds, after which the run's clock stood still, each with
            the nanoseconds that had passed in this and all earlier outages.
    """

    execution: str
    began_ns: int
    report_url: str = ""
    outages: list[tuple[int, int]] = field(default_factory=list)

    def trace_id(self, segment: int) -> int:
        """The id of a segment's trace."""
        return self._digest(f"segment {segment}", 16)

    def root(self, segment: int) -> int:
        """The id of the first span of a segment."""
        return self._digest(f"root {segment}", 8)

    def activation(self, activation: str) -> int:
        """The id of an activation's span."""
        return self._digest(f"activation {activation}", 8)

    def record(self, t: int) -> int:
        """The id of the span of a record: a finding, healing, the end."""
        return self._digest(f"record {t}", 8)

    def sign(self, span_id: int, ns: int) -> int:
        """The id of a sign at some moment of a span in progress."""
        return self._digest(f"open {span_id:x} {ns}", 8)

    def moment(self, us: int) -> int:
        """A time of the run in nanoseconds since 1970."""
        earlier = bisect_left(self.outages, (us, 0))
        passed = self.outages[earlier - 1][1] if earlier else 0
        return min(self.began_ns + 1000 * us + passed, MOST_NS)

    def stand_still(self, us: int, seconds: float) -> None:
        """Place what comes later than a moment some seconds of real time later."""
        before = self.outages[-1][1] if self.outages else 0
        self.outages.append((us, before + round(seconds * 1_000_000_000)))

    def _digest(self, place: str, size: int) -> int:
        name = f"{self.execution}\0{place}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(name, digest_size=size, person=b"dig-monitor").digest()) or 1


def origin_of(path: Path) -> Origin:
    """The execution of a trace, and the beginning.

    In a run directory the side file names both. A single trace file is identified by its content,
    and is taken to have begun when its file was last changed.

    Raises:
        TraceError: There is no such file, or the side file is none.
    """
    trace = trace_path(path)
    side = trace.parent / SIDE
    try:
        if trace.name != TRACE or not side.exists():
            files = [*segments(trace)]
            # The content names the run: a copied file has the same spans.
            digest = blake2b(digest_size=8)
            for part in files:
                with open_file(part) as file:
                    file_digest(file, lambda: digest)
            return Origin(f"trace-{digest.hexdigest()}", stored_path(files[-1]).stat().st_mtime_ns)
        about = json.loads(read_file(side))
        began = datetime.fromisoformat(about["began"]) - _1970
        execution = str(about["execution"])
        url = environ.get(REPORT_URL, "").replace("{run}", quote(execution, safe=""))
        return Origin(execution, began // timedelta(microseconds=1) * 1000, url)
    except FileNotFoundError:
        raise missing(trace) from None
    except OSError as error:
        path = Path(error.filename or trace)
        raise TraceError(path, None, f"cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise TraceError(side, None, "does not say which run it is of, and when it began") from None


def segment(t: int, us: int) -> int:
    """The segment of a span by logical and wall time of the beginning; never falls."""
    return t // SEGMENT_RECORDS + us // SEGMENT_US


def remote(traceparent: str) -> tuple[int, int] | None:
    """Trace and span id of a W3C trace context; ``None`` for another text.

    >>> remote("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01") is not None
    True
    """
    match = _TRACEPARENT.fullmatch(traceparent)
    if match is None:
        return None
    trace, span = int(match[1], 16), int(match[2], 16)
    return (trace, span) if trace and span else None
