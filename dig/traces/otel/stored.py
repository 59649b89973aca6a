"""A stored trace, exported: the same spans with the same ids as while the run went on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import blake2b, file_digest
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from dig._util.files import open_file, read_file
from dig.errors import TraceError
from dig.traces.journal.journal import SIDE
from dig.traces.journal.reader import TRACE, feed_records, trace_path
from dig.traces.journal.segments import missing, segments

from .content import Content
from .ids import Origin
from .items import Item, Span
from .mapping import Mapping
from .otlp_json import otlp_json
from .perfetto import perfetto

if TYPE_CHECKING:
    from .otlp import ExportReport

PATIENCE_S = 10.0
"""Seconds without a delivery after which a receiver is taken for dead."""

REPORT_URL = "DIG_REPORT_URL"
"""The variable with the address at which reports are served; `{run}` in it is the run's id."""

AT_ONCE = 1_000
_1970 = datetime(1970, 1, 1, tzinfo=UTC)


SpanFormat = Literal["otlp-json", "perfetto"]


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
            return Origin(f"trace-{digest.hexdigest()}", files[-1].stat().st_mtime_ns)
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


def items_of(path: Path, mapping: Mapping) -> Iterator[list[Item]]:
    """The exported items of a trace, record by record.

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
    """
    yield from feed_records(path, mapping.feed, payloads=mapping.needs_payloads)
    yield mapping.close()


def export_text(
    path: Path,
    kind: SpanFormat,
    *,
    content: Content | None = None,
    service_per_agent: bool = False,
) -> Iterator[str]:
    """A trace in a format for files, piece by piece.

    Args:
        path: The trace file or run directory.
        kind: The format.
        content: The limits on exported text; by default no payloads.
        service_per_agent: Whether each agent is a service of its own; by default not.

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
    """
    origin = origin_of(path)
    mapping = Mapping(origin, content)
    items = (item for of_record in items_of(path, mapping) for item in of_record)
    if kind == "perfetto":
        return perfetto(items, origin.began_ns)
    spans = (item for item in items if isinstance(item, Span) and not item.is_open)
    return otlp_json(spans, service_per_agent)


def send(
    path: Path,
    endpoint: str | None,
    *,
    content: Content | None = None,
    service_per_agent: bool = False,
    patience_s: float = PATIENCE_S,
) -> ExportReport:
    """Send a trace to an OTLP receiver; wait for a slow receiver.

    Args:
        path: The trace file or run directory.
        endpoint: The URL of the receiver; ``None``: that of the environment.
        content: The limits on exported text; by default no payloads.
        service_per_agent: Whether each agent is a service of its own.
        patience_s: Seconds without a delivery after which it gives up.

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
        SettingsError: The endpoint makes no sense.
    """
    from .otlp import Otlp

    origin = origin_of(path)
    mapping = Mapping(origin, content)
    otlp = Otlp(endpoint, service_per_agent=service_per_agent, is_stored=True)
    try:
        writer, waiting, end = otlp.writer(), list[Item](), 0
        for items in items_of(path, mapping):
            waiting += items
            if len(waiting) >= AT_ONCE:
                writer.write(waiting)
                waiting.clear()
                otlp.wait_for_room(patience_s)
        writer.write(waiting)
        end = origin.moment(mapping.now)
    finally:
        report = otlp.close(patience_s, (origin.began_ns, end))
    return report
