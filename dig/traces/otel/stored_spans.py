"""A stored trace, exported: the same spans with the same ids as while the run went on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dig.traces.journal.reader import feed_records

from .content import Content
from .ids import origin_of
from .items import Item, Span
from .mapping import Mapping
from .otlp_json import otlp_json

if TYPE_CHECKING:
    from .otlp import ExportReport

PATIENCE_S = 10.0
"""Seconds without a delivery after which a receiver is taken for dead."""

AT_ONCE = 1_000


def items_of(path: Path, content: Content | None) -> Iterator[list[Item]]:
    """The exported items of a trace, record by record.

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
    """
    mapping = Mapping(origin_of(path), content)
    yield from feed_records(path, mapping.feed, payloads=content is not None and content.payloads)
    yield mapping.close()


def export_text(
    path: Path, *, content: Content | None = None, service_per_agent: bool = False
) -> Iterator[str]:
    """A trace as OTLP/JSON, piece by piece.

    Args:
        path: The trace file or run directory.
        content: The limits on exported text; by default no payloads.
        service_per_agent: Whether each agent is a service of its own; by default not.

    Raises:
        TraceError: The trace cannot be read or breaks a rule; the line is named.
    """
    items = (item for of_record in items_of(path, content) for item in of_record)
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

    otlp = Otlp(endpoint, service_per_agent=service_per_agent, is_stored=True)
    try:
        writer, waiting = otlp.writer(), list[Item]()
        for items in items_of(path, content):
            waiting += items
            if len(waiting) >= AT_ONCE:
                writer.write(waiting)
                waiting.clear()
                otlp.wait_for_room(patience_s)
        writer.write(waiting)
    finally:
        report = otlp.close(patience_s)
    return report
