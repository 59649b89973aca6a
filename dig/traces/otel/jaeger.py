"""Spans as the JSON that Jaeger's page loads by upload (Search, Upload).

A parent is a reference CHILD_OF, a link FOLLOWS_FROM; times are microseconds. Jaeger shows no
attributes of links, which is why spans repeat them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dig.graph.codec import dumps

from .items import Attribute, Span
from .otlp_json import service_of

MOST_SAFE = 2**53 - 1
"""The largest whole number that JavaScript keeps exactly."""

_TYPES = {bool: "bool", int: "int64", float: "float64"}


def jaeger(spans: Iterable[Span], service_per_agent: bool = False) -> Iterator[str]:
    """The pieces of one JSON object, with a trace for each segment of the run."""
    traces: dict[int, list[str]] = {}
    processes: dict[str, str] = {}  # service -> its key
    for span in spans:
        service = service_of(span, service_per_agent)
        process = processes.setdefault(service, f"p{len(processes) + 1}")
        traces.setdefault(span.trace_id, []).append(dumps(_span(span, process)))
    known = dumps({key: {"serviceName": name, "tags": []} for name, key in processes.items()})
    yield '{"data":['
    for n, (trace_id, rows) in enumerate(traces.items()):
        yield f'{"," if n else ""}{{"traceID":"{trace_id:032x}","spans":['
        for i, row in enumerate(rows):
            yield f"{',' if i else ''}\n{row}"
        yield f'],"processes":{known},"warnings":null}}'
    yield "]}\n"


def _span(span: Span, process: str) -> dict[str, Any]:
    start = span.start_ns // 1000
    return {
        "traceID": f"{span.trace_id:032x}",
        "spanID": f"{span.span_id:016x}",
        "flags": 1,
        "operationName": span.name,
        "references": _references(span),
        "startTime": start,
        "duration": span.end_ns // 1000 - start,
        "tags": _tags(span),
        "logs": [
            {
                "timestamp": mark.ns // 1000,
                "fields": [_tag("event", mark.name)]
                + [_tag(key, value) for key, value in mark.attributes.items()],
            }
            for mark in span.marks
        ],
        "processID": process,
        "warnings": None,
    }


def _references(span: Span) -> list[dict[str, str]]:
    found: dict[tuple[str, int, int], None] = {}
    if span.parent_id is not None:
        found["CHILD_OF", span.trace_id, span.parent_id] = None
    for link in span.links:
        found["FOLLOWS_FROM", link.trace_id, link.span_id] = None
    return [
        {"refType": kind, "traceID": f"{trace:032x}", "spanID": f"{span_id:016x}"}
        for kind, trace, span_id in found
    ]


def _tags(span: Span) -> list[dict[str, Any]]:
    tags = [_tag("span.kind", "consumer" if span.triggered else "internal")]
    tags += [_tag(key, value) for key, value in span.attributes.items()]
    if span.error:
        tags += [
            _tag("error", True),
            _tag("otel.status_code", "ERROR"),
            _tag("otel.status_description", span.error),
        ]
    return tags


def _tag(key: str, value: Attribute) -> dict[str, Any]:
    shown: Any = value
    if isinstance(value, int) and abs(value) > MOST_SAFE:
        shown = str(value)
    elif not isinstance(value, str | int | float):
        shown = dumps(list(value))
    return {"key": key, "type": _TYPES.get(type(value), "string"), "value": shown}
