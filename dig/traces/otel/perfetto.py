"""Spans as Chrome trace events, for ui.perfetto.dev and chrome://tracing.

Every agent is a track with its activations as slices; an arrow leads from the activation that
generated an event to the one that consumed it. The monitor has a track for findings and healing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dig.graph.codec import dumps

from .content import label
from .items import Span

_PID = 1
_MONITOR = 0


def perfetto(spans: Iterable[Span], began_ns: int) -> Iterator[str]:
    """The pieces of one JSON object; times are microseconds since the run began."""
    return iter(list(_events(spans, began_ns)))


def _events(spans: Iterable[Span], began_ns: int) -> Iterator[str]:
    tracks: dict[str, int] = {}
    ends: dict[int, tuple[float, int]] = {}  # span -> where an arrow from it begins
    arrows = 0
    yield '{"displayTimeUnit":"ms","traceEvents":['
    yield "\n" + dumps(_name("process_name", _MONITOR, "dig-monitor"))
    yield ",\n" + dumps(_name("thread_name", _MONITOR, "monitor"))
    for span in spans:
        start, end = (span.start_ns - began_ns) / 1000, (span.end_ns - began_ns) / 1000
        track = _MONITOR
        if span.agent is not None:
            if span.agent not in tracks:
                tracks[span.agent] = len(tracks) + 1
                name = _name("thread_name", tracks[span.agent], label(span.agent))
                yield ",\n" + dumps(name)
            track = tracks[span.agent]
        yield ",\n" + dumps(_slice(span, track, start, end))
        # An arrow must lie inside the slices that it joins.
        ends[span.span_id] = max(start, end - 1), track
        for link in span.links:
            source = ends.get(link.span_id)
            if source is not None and span.agent is not None:
                arrows += 1
                yield ",\n" + dumps(_arrow("s", arrows, *source))
                yield ",\n" + dumps(_arrow("f", arrows, start, track) | {"bp": "e"})
    yield "\n]}\n"


def _slice(span: Span, track: int, start: float, end: float) -> dict[str, Any]:
    marks = [{"name": mark.name, **mark.attributes} for mark in span.marks]
    arguments = {**span.attributes, **({"events": marks} if marks else {})}
    if span.error:
        arguments["error"] = span.error
    event = {"name": span.name, "cat": "dig", "pid": _PID, "tid": track, "ts": start}
    if span.agent is None:
        return {**event, "ph": "i", "s": "t", "args": arguments}
    return {**event, "ph": "X", "dur": end - start, "args": arguments}


def _arrow(phase: str, number: int, ts: float, track: int) -> dict[str, Any]:
    return {
        "name": "event", "cat": "dig", "ph": phase, "id": number, "pid": _PID, "tid": track,
        "ts": ts,
    }  # fmt: skip


def _name(what: str, track: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": _PID, "tid": track, "args": {"name": name}}
