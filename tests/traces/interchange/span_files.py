"""Files of spans, written by hand as exporters write them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PRODUCERS = Path(__file__).parent / "producers"
"""Small files in the form of six instrumentations, each in another encoding."""

BEGAN = 1_790_000_000_000_000_000
AGENT = {"gen_ai.operation.name": "invoke_agent"}
TOOL = {"gen_ai.operation.name": "execute_tool"}
MODEL = {"gen_ai.operation.name": "chat"}


def span(
    number: int, name: str, start: float, end: float | None, above: int | None = None,
    about: Mapping[str, Any] | None = None, *, trace: int = 1, status: Any = None,
    events: tuple[Mapping[str, Any], ...] = (), kind: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """A span of OTLP/JSON; times are in seconds since a moment."""
    row: dict[str, Any] = {
        "traceId": f"{trace:032x}", "spanId": f"{number:016x}", "name": name, "kind": kind,
        "startTimeUnixNano": str(BEGAN + round(start * 1e9)),
        "attributes": pairs(about or {}), "status": status or {},
        "events": [{"name": event["name"], "attributes": pairs(event)} for event in events],
    }  # fmt: skip
    if above is not None:
        row["parentSpanId"] = f"{above:016x}"
    if end is not None:
        row["endTimeUnixNano"] = str(BEGAN + round(end * 1e9))
    return row


def agent(
    number: int, name: str, start: float, end: float | None, above: int | None = None,
    asked: str = "", answer: str = "", **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """An agent's span, with what it was asked and what it said."""
    about = AGENT | {"gen_ai.agent.name": name} | more.pop("about", {})
    about |= {"input.value": asked} if asked else {}
    about |= {"output.value": answer} if answer else {}
    return span(number, f"invoke_agent {name}", start, end, above, about, **more)


def tool(
    number: int, name: str, start: float, end: float, above: int, arguments: Any = None,
    result: str = "", **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """The span of a tool."""
    about = TOOL | {"gen_ai.tool.name": name}
    about |= {"gen_ai.tool.call.arguments": json.dumps(arguments)} if arguments else {}
    about |= {"gen_ai.tool.call.result": result} if result else {}
    return span(number, f"execute_tool {name}", start, end, above, about, **more)


def pairs(about: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(part)} for key, part in about.items()]


def value(part: Any) -> dict[str, Any]:
    if isinstance(part, bool):
        return {"boolValue": part}
    if isinstance(part, int):
        return {"intValue": str(part)}
    if isinstance(part, list | tuple):
        return {"arrayValue": {"values": [value(item) for item in part]}}
    return {"stringValue": str(part)}


def otlp(*spans: Mapping[str, Any], service: str = "team", host: str = "one") -> dict[str, Any]:
    """A request of an exporter."""
    resource = {"attributes": pairs({"service.name": service, "host.name": host})}
    scopes = [{"scope": {"name": "by hand"}, "spans": list(spans)}]
    return {"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}


def protobuf(document: Any) -> Any:
    """OTLP as the JSON mapping of protobuf has it: ids in base64, enums by name."""
    if isinstance(document, list):
        return [protobuf(part) for part in document]
    if not isinstance(document, dict):
        return document
    changed = {key: protobuf(part) for key, part in document.items()}
    for key in ("traceId", "spanId", "parentSpanId"):
        if key in changed:
            changed[key] = base64.b64encode(bytes.fromhex(changed[key])).decode()
    if "startTimeUnixNano" in changed:
        changed["kind"] = {1: "SPAN_KIND_INTERNAL", 3: "SPAN_KIND_CLIENT"}[changed["kind"]]
    if "code" in changed:
        changed["code"] = {1: "STATUS_CODE_OK", 2: "STATUS_CODE_ERROR"}[changed["code"]]
    return changed


def console(row: Mapping[str, Any]) -> str:
    """A span as the console exporter of the Python SDK prints it, over several lines."""
    from datetime import UTC, datetime

    def moment(ns: str) -> str:
        return datetime.fromtimestamp(int(ns) / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    above, code = row.get("parentSpanId"), row["status"].get("code", 0)
    printed = {
        "name": row["name"],
        "context": {"trace_id": f"0x{row['traceId']}", "span_id": f"0x{row['spanId']}"},
        "kind": "SpanKind.INTERNAL",
        "parent_id": f"0x{above}" if above else None,
        "start_time": moment(row["startTimeUnixNano"]),
        "end_time": moment(row["endTimeUnixNano"]),
        "status": {"status_code": ("UNSET", "OK", "ERROR")[code],
                   "description": row["status"].get("message")},
        "attributes": {pair["key"]: next(iter(pair["value"].values()))
                       for pair in row["attributes"]},
        "events": [], "links": [], "resource": {"attributes": {"service.name": "team"}},
    }  # fmt: skip
    return json.dumps(printed, indent=4)


def store(path: Path, *documents: Any) -> Path:
    """Write a file: each document on a line."""
    path.write_text("".join(f"{json.dumps(document)}\n" for document in documents))
    return path
