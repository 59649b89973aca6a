"""The exported items as plain data: spans, log records, and measurements.

Every format is written from these alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dig._util.frozen import frozen

Attribute = str | bool | int | float | Sequence[str]
Attributes = dict[str, Attribute]
Severity = Literal["INFO", "WARN", "ERROR"]

NAME = "dig-monitor"
"""The instrumentation scope, and the service unless something else is asked for."""


@frozen
class SpanLink:
    """A reference to a span, possibly of another trace."""

    trace_id: int
    span_id: int
    attributes: Attributes
    remote: bool = False


@frozen
class Mark:
    """An event at a moment of a span."""

    name: str
    ns: int
    attributes: Attributes


@frozen
class Span:
    """A span. The span of a run comes twice: at the beginning, and with the end.

    Attributes:
        parent_id: The span above it, of the same trace; ``None`` for a root.
        start_ns: When it began, in nanoseconds since 1970.
        agent: The agent whose work it is; ``None``: the monitor.
        marks: The events within it.
        links: The spans to which it refers.
        error: Its error; empty if there was none.
        is_open: Whether the span only begins: the same span follows when it has ended.
    """

    name: str
    trace_id: int
    span_id: int
    parent_id: int | None
    start_ns: int
    end_ns: int
    agent: str | None
    attributes: Attributes
    marks: Sequence[Mark] = ()
    links: Sequence[SpanLink] = ()
    error: str = ""
    is_open: bool = False


@frozen
class LogItem:
    """A log record about a span."""

    name: str
    ns: int
    severity: Severity
    body: str
    attributes: Attributes
    trace_id: int
    span_id: int


@frozen
class Count:
    """An increment of a counter by 1."""

    metric: str
    attributes: tuple[tuple[str, str], ...]


@frozen
class Sample:
    """A duration, in seconds."""

    metric: str
    seconds: float
    attributes: tuple[tuple[str, str], ...]


@frozen
class Level:
    """The value of a gauge from now on."""

    metric: str
    value: float
    attributes: tuple[tuple[str, str], ...] = ()


Item = Span | LogItem | Count | Sample | Level
