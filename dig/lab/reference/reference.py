"""The JSON of the published reference implementation of DIG (schema `dig.graph.v2`).

It holds nodes, each with its own timestamps, rather than a log; `reconstruction` puts them into an
order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from dig._util.json_text import parse
from dig._util.json_values import dumps, plain
from dig.errors import PayloadError, RecordError, TraceError
from dig.graph.records import FateName, Record
from dig.traces.interchange.imports import Format, read_text
from dig.traces.interchange.scribe import Guesses

from .reconstruction import reconstruct
from .reference_nodes import Diversion, Remark, SourceActivation, SourceEvent, SourceGraph

SCHEMA = "dig.graph.v2"
FATE_OF: dict[str, FateName | None] = {
    "consume": "consume", "wait": "delay", "discard": "discard", "reroute": "reroute",
    "pending": None,
}  # fmt: skip
_T = TypeVar("_T")
_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}


def read_reference(path: Path) -> tuple[list[Record], Guesses]:
    """The records of a stored graph, and the guesses.

    Raises:
        TraceError: The text is no such graph, or contradicts itself; the place in it is named.
    """
    text = read_text(path)
    try:
        source = _graph(parse(text.lstrip("\ufeff"), "the file", finite=False))
        guesses = Guesses()
        return reconstruct(source, path.stem, path.name, guesses), guesses
    except json.JSONDecodeError as error:
        raise TraceError(path, error.lineno, f"is no JSON: {error.msg}") from None
    except (RecordError, PayloadError) as error:
        raise TraceError(path, None, str(error)) from None


def _is_reference(path: Path, head: str) -> bool:
    # Cheap tests first: files of all formats are tried here, long traces among them.
    keys = ('"activations"', '"events"', SCHEMA)
    if not head.startswith("{") or not any(key in head for key in keys):
        return False
    if SCHEMA not in (text := read_text(path)):
        return False
    try:
        body = parse(text.lstrip("\ufeff"), finite=False)
    except (ValueError, RecordError):
        return False
    return isinstance(body, dict) and body.get("schema") == SCHEMA


FORMAT = Format(read_reference, _is_reference)


def _graph(body: Any) -> SourceGraph:
    if not isinstance(body, dict) or body.get("schema") != SCHEMA:
        raise RecordError(f"`schema` must be {SCHEMA!r}")
    events = _want(body, "events", dict, "the graph")
    activations = _want(body, "activations", dict, "the graph")
    created = body.get("created_at")
    return SourceGraph(
        created if isinstance(created, int | float) else None,
        {name: _event(name, body) for name, body in events.items()},
        {name: _activation(name, body) for name, body in activations.items()},
    )


def _want(body: Any, key: str, kind: type[_T], place: str) -> _T:
    value = body.get(key) if isinstance(body, dict) else None
    if not isinstance(value, kind):
        raise RecordError(f"`{key}` of {place} is missing, or is not {_KINDS[kind]}")
    return value


def _number(body: Mapping[str, Any], key: str, place: str) -> float | None:
    value = body.get(key)
    if value is None:
        return None
    # `not <` instead of `>=` refuses NaN too; bool is an int in Python.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        raise RecordError(f"`{key}` of {place} is no time")
    return float(value)


def _event(name: str, body: Any) -> SourceEvent:
    place = f"event {name[:40]!r}"
    metadata = body.get("metadata") if isinstance(body, dict) else None
    event = SourceEvent(
        id=name,
        by=_name(body, "source_activation_id", place),
        label=str(_want(body, "label", str, place)),
        payload=plain(body.get("payload"), f"payload of {place}"),
        recipients=list(_want(body, "recipients", dict, place)),
        note=_text(metadata, "message"),
        intervention=_text(metadata, "intervention_type"),
    )
    for stamp in _want(body, "timestamps", list, place):
        _stamp(event, stamp, place)
    return event


def _stamp(event: SourceEvent, stamp: Any, place: str) -> None:
    at = _number(stamp, "at", place) if isinstance(stamp, dict) else None
    if at is None:
        raise RecordError(f"a timestamp of {place} has no time `at`")
    label = stamp.get("label")
    if label == "generated" and event.at is None:
        event.at = at
    elif label == "delivered":
        event.delivered.setdefault(_want(stamp, "to", str, f"a delivery of {place}"), []).append(at)
    elif label == "modified":
        change = _want(stamp, "metadata", dict, f"a change of {place}")
        if change.get("change") == "reroute":
            before = _labels(change.get("previous_recipient_reactions"), place)
            after = _labels(change.get("recipients"), place)
            event.diversions.append(Diversion(at, stamp.get("activation_id"), before, after))
        elif change.get("change") == "annotate":
            pattern = str(change.get("intervention_type") or "intervention")
            event.remarks.append(Remark(at, pattern, str(change.get("message") or "")))


def _labels(value: Any, place: str) -> dict[str, str]:
    """The reactions in a snapshot, by recipient."""
    if not isinstance(value, dict):
        raise RecordError(f"a reroute of {place} does not say its recipients")
    return {
        recipient: _want(body, "label", str, f"a recipient of {place}")
        for recipient, body in value.items()
    }


def _activation(name: str, body: Any) -> SourceActivation:
    place = f"activation {name[:40]!r}"
    inputs = [
        _want(event, "id", str, f"an input of {place}")
        for event in _want(body, "inputs", list, place)
    ]
    metadata = body.get("metadata")
    marks = metadata.get("dig") if isinstance(metadata, dict) else None
    marks = marks if isinstance(marks, dict) else {}
    reactions = _labels(body.get("input_reactions") or {}, place)
    unknown = [label for label in reactions.values() if label not in FATE_OF]
    if unknown:
        raise RecordError(
            f"{place} has the reaction {unknown[0][:40]!r}; known: {', '.join(FATE_OF)}"
        )
    failed = marks.get("failed")
    # What it does not name it consumed; a failed one declares nothing.
    fates = {event: FATE_OF[reactions.get(event, "pending" if failed else "consume")]
             for event in inputs}  # fmt: skip
    return SourceActivation(
        id=name,
        agent=_want(body, "agent_id", str, place),
        fates=fates,
        began=_number(body, "started_at", place),
        ended=_number(body, "ended_at", place),
        error=_failure(failed, place) if failed else None,
        submits=bool(marks.get("submitting")),
        intervention=_text(marks, "intervention"),
    )


def _failure(failed: Any, place: str) -> str:
    """The error text of a failed activation."""
    return failed if type(failed) is str else dumps(plain(failed, f"failure of {place}"))


def _name(body: Any, key: str, place: str) -> str | None:
    value = body.get(key) if isinstance(body, dict) else None
    if value is not None and not isinstance(value, str):
        raise RecordError(f"`{key}` of {place} is no id")
    return value


def _text(body: Any, key: str) -> str | None:
    value = body.get(key) if isinstance(body, dict) else None
    return value if isinstance(value, str) else None
