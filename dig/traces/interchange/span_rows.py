"""Spans from files of any exporter, in the same form.

These are OTLP/JSON (one document, or a line for each request, as a collector's file exporter
writes it), spans of their own on a line each, and what the console exporter of an SDK prints.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from dig._util.frozen import frozen
from dig._util.json_text import parse
from dig.errors import RecordError, TraceError

_HOLDERS = (
    "resourceSpans", "scopeSpans", "instrumentationLibrarySpans", "spans", "data",
)  # fmt: skip
"""Keys of lists with spans inside, outermost first."""

_BASE64 = {24: 32, 12: 16}
"""The length of an id in base64, and in hexadecimal digits."""


@frozen
class SpanRow:
    """A span.

    Attributes:
        id: The ids of the trace and the span, in hexadecimal.
        parent: The same of the span above it; ``None``: there is none.
        start: Its start, in nanoseconds since 1970.
        end: Its end; ``None``: it has not ended.
        kind: Its kind in OpenTelemetry, such as `CLIENT`; empty: it is not known.
        host: The service, and the machine if it is known, whose clock it has.
        attributes: Its attributes by their whole names.
        events: Its span events, each with a name and attributes.
        status: `OK`, `ERROR` or empty.
        message: The description of its status.
    """

    id: tuple[str, str]
    parent: tuple[str, str] | None
    name: str
    start: int
    end: int | None
    kind: str
    host: tuple[str, ...]
    attributes: Mapping[str, Any]
    events: tuple[tuple[str, Mapping[str, Any]], ...]
    status: str
    message: str


def read_rows(path: Path, text: str) -> list[SpanRow]:
    """The spans of a file, in order.

    Raises:
        TraceError: The text is something else, or a span has no id or time; its number is named.
    """
    try:
        spans = [pair for value in _values(text) for pair in _spans(value, {})]
    except json.JSONDecodeError as error:
        raise TraceError(path, error.lineno, f"is no JSON: {error.msg}") from None
    except (RecordError, RecursionError, ValueError) as error:
        raise TraceError(path, None, str(error)[:200]) from None
    rows = []
    for number, (span, resource) in enumerate(spans, 1):
        try:
            rows.append(_row(span, resource))
        except (
            ValueError,
            TypeError,
            AttributeError,
            KeyError,
            OverflowError,
            RecursionError,
        ) as error:
            raise TraceError(path, None, f"span {number} cannot be read: {error}") from None
    return rows


def _values(text: str) -> Iterator[Any]:
    """The JSON values of a text, on separate lines or not."""
    text = text.lstrip("\ufeff")
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        yield from [parse(line) for line in lines] if len(lines) > 1 else [parse(text)]
        return
    except json.JSONDecodeError:
        decoder, at = json.JSONDecoder(), 0
    while at < len(text.rstrip()):
        at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n,"))
        value, at = decoder.raw_decode(text, at)
        yield value


def _spans(value: Any, resource: Any) -> Iterator[tuple[Any, Any]]:
    """The spans in a value, with the resources."""
    if isinstance(value, list):
        for part in value:
            yield from _spans(part, resource)
    elif isinstance(value, dict):
        resource = value.get("resource", resource)
        holder = next((key for key in _HOLDERS if isinstance(_get(value, key), list)), None)
        if holder is not None:
            yield from _spans(_get(value, holder), resource)
        elif _get(value, "spanId") or isinstance(value.get("context"), dict):
            yield value, resource


def _row(span: Mapping[str, Any], resource: Any) -> SpanRow:
    ids = span["context"] if isinstance(span.get("context"), dict) else span
    trace, own = _id(_get(ids, "traceId")), _id(_get(ids, "spanId"))
    if not (trace and own):
        raise ValueError("it has no trace id or no span id")
    above = _id(_get(span, "parentSpanId") or span.get("parent_id"))
    start = _ns(_get(span, "startTimeUnixNano") or _get(span, "startTime"))
    if start is None:
        raise ValueError("it has no start time")
    end = _ns(_get(span, "endTimeUnixNano") or _get(span, "endTime"))
    status = span.get("status") or {}
    code = str(_get(status, "statusCode") or status.get("code") or _get(span, "statusCode") or "")
    code = {"1": "OK", "2": "ERROR"}.get(code, code.rpartition("_")[2].upper())
    message = status.get("message") or status.get("description") or _get(span, "statusMessage")
    about = dict(_pairs((resource or {}).get("attributes") or {}))
    events = [
        (str(event.get("name")), dict(_pairs(event.get("attributes") or {})))
        for event in span.get("events") or ()
    ]
    more: dict[str, Any] = {}
    for name, event in events:  # the older conventions have words in events
        more |= event | {name: event.get("content") or event.get("message")}
    kind = str(span.get("kind") or "").upper().rpartition("_")[2].rpartition(".")[2]
    return SpanRow(
        (trace, own), (trace, above) if above else None, str(span.get("name") or ""), start, end,
        {"3": "CLIENT", "2": "SERVER"}.get(kind, kind),
        tuple(str(about[key]) for key in ("service.name", "host.name") if key in about),
        more | dict(_pairs(span.get("attributes") or {})), tuple(events),
        code if code in ("OK", "ERROR") else "", str(message or ""),
    )  # fmt: skip


def _get(row: Mapping[str, Any], key: str) -> Any:
    """The value of a key, in camel case or with underscores."""
    return row[key] if key in row else row.get(_snake(key))


@cache
def _snake(key: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in key)


def _id(value: Any) -> str:
    text = str(value or "")
    if len(text) in _BASE64 and text.endswith("="):
        return base64.b64decode(text).hex()
    text = text.lower().removeprefix("0x")
    return text if text.strip("0") else ""


def _ns(value: Any) -> int | None:
    """A moment in nanoseconds, from a number of nanoseconds or ISO 8601."""
    if isinstance(value, str) and not value.isdecimal():
        moment = datetime.fromisoformat(value)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1_000_000) * 1000
    ns = int(value or 0)
    if not 0 <= ns < 2**63:
        raise ValueError("its time is none that OpenTelemetry could have")
    return ns or None


def _pairs(attributes: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Attributes by whole name; objects inside, outside of OTLP, are further names."""
    if isinstance(attributes, list):
        yield from ((str(pair["key"]), _value(pair.get("value"))) for pair in attributes)
        return
    for key, value in attributes.items():
        yield prefix + key, value
        if isinstance(value, dict):
            yield from _pairs(value, f"{prefix}{key}.")


def _value(value: Any) -> Any:
    """A value of OTLP, an object with the type as the only key."""
    ((kind, value),) = value.items() if value else (("", None),)
    kind = kind.lower().replace("_", "")
    if kind == "intvalue":
        return int(value)
    if kind == "arrayvalue":
        return [_value(part) for part in value.get("values") or ()]
    return dict(_pairs(value.get("values") or [])) if kind == "kvlistvalue" else value


def is_spans(head: str) -> bool:
    """Whether the beginning of a file is of spans."""
    has_resources = '"resourceSpans"' in head or '"resource_spans"' in head
    has_id = '"spanId"' in head or '"span_id"' in head
    has_start = '"startTimeUnixNano"' in head or '"start_time' in head
    return head[:1] in ("{", "[") and (has_resources or (has_id and has_start))
