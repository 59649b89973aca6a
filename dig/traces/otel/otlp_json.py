"""Spans as OTLP/JSON: for a collector's file receiver, or to post by `curl`.

Ids are hexadecimal, as the OTLP specification has them, where protobuf's own JSON has base64.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import environ
from typing import Any

from dig._util.json_values import dumps
from dig._version import __version__

from .content import label
from .items import NAME, Attribute, Attributes, Span

_INTERNAL = 1
_ERROR = 2
_KNOWS_REMOTE, _IS_REMOTE = 0x100, 0x200


def otlp_json(spans: Iterable[Span], service_per_agent: bool = False) -> Iterator[str]:
    """The pieces of a JSON object on a line, an `ExportTraceServiceRequest`."""
    # Spans of a service stand together, so all are kept as text until the end.
    services: dict[str, list[str]] = {}
    for span in spans:
        services.setdefault(service_of(span, service_per_agent), []).append(dumps(_span(span)))
    scope = dumps({"name": NAME, "version": __version__})
    yield '{"resourceSpans":['
    for n, (service, rows) in enumerate(services.items()):
        resource = dumps({"attributes": _pairs({"service.name": service})})
        yield f'{"," if n else ""}{{"resource":{resource},"scopeSpans":[{{"scope":{scope},"spans":['
        for i, row in enumerate(rows):
            yield f"{',' if i else ''}{row}"
        yield "]}]}"
    yield "]}\n"


def service_of(span: Span, per_agent: bool) -> str:
    """The service of a span."""
    if per_agent and span.agent is not None:
        return label(span.agent)
    return environ.get("OTEL_SERVICE_NAME") or NAME


def _span(span: Span) -> dict[str, Any]:
    row: dict[str, Any] = {
        "traceId": f"{span.trace_id:032x}",
        "spanId": f"{span.span_id:016x}",
        "flags": _KNOWS_REMOTE,
        "name": span.name,
        "kind": _INTERNAL,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _pairs(span.attributes),
        "events": [
            {"timeUnixNano": str(m.ns), "name": m.name, "attributes": _pairs(m.attributes)}
            for m in span.marks
        ],
        "links": [
            {
                "traceId": f"{link.trace_id:032x}",
                "spanId": f"{link.span_id:016x}",
                "flags": _KNOWS_REMOTE | (_IS_REMOTE if link.remote else 0),
                "attributes": _pairs(link.attributes),
            }
            for link in span.links
        ],
        "status": {"code": _ERROR, "message": span.error} if span.error else {},
    }
    if span.parent_id is not None:
        row["parentSpanId"] = f"{span.parent_id:016x}"
    return row


def _pairs(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Attribute) -> dict[str, Any]:
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}  # 64 bits are more than JSON numbers are sure to keep
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"arrayValue": {"values": [_value(part) for part in value]}}
