"""Spans as Chrome trace events, for ui.perfetto.dev and chrome://tracing.

The run is a track, healing another, and each agent one, with its activations as slices. An arrow
leads from the slice that generated an event to the one that consumed it. Findings overlap, so they
are asynchronous slices: the viewer stacks them. Counters show open events and the buffers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dig._util.json_values import dumps
from dig._util.text import name

from .items import Item, Level, Span

_PID = 1
_RUN, _HEALING = 1, 2
_SHORTEST = 0.001
"""Microseconds: a slice without length would hold no end of an arrow."""

_COUNTERS = {
    "dig.open_events": "open events",
    "dig.open_activations": "agents at work",
    "dig.buffered_events": "buffer",
}


def perfetto(items: Iterable[Item], began_ns: int) -> Iterator[str]:
    """The pieces of a JSON object; times are microseconds since the run began."""
    events = list(_Tracks(began_ns).events(items))
    yield '{"displayTimeUnit":"ms","traceEvents":['
    for n, event in enumerate(events):
        yield f"{',' if n else ''}\n{dumps(event)}"
    yield "\n]}\n"


class _Tracks:
    """Gives spans a track, and arrows two ends."""

    def __init__(self, began_ns: int) -> None:
        self._began_ns = began_ns
        self._agents: dict[str, int] = {}
        self._slices: dict[int, tuple[float, float, int]] = {}  # span -> begin, end, track

    def events(self, items: Iterable[Item]) -> Iterator[dict[str, Any]]:
        """The trace events of a run."""
        yield _metadata("process_name", _RUN, "dig-monitor")
        yield from _track(_RUN, "run")
        yield from _track(_HEALING, "healing")
        linked: list[Span] = []
        for item in items:
            if isinstance(item, Level):
                agents = "".join(f" of {agent}" for _, agent in item.attributes)
                yield {
                    "name": _COUNTERS[item.metric] + agents, "ph": "C", "pid": _PID,
                    "ts": self._time(item.ns), "args": {"events": item.value},
                }  # fmt: skip
            elif isinstance(item, Span) and not item.is_open:
                yield from self._span(item)
                if item.agent is not None:
                    linked.append(item)
        arrows = 0
        for span in linked:
            for link in span.links:
                if link.span_id in self._slices:
                    arrows += 1
                    yield from self._arrow(arrows, link.span_id, span.span_id)

    def _span(self, span: Span) -> Iterator[dict[str, Any]]:
        start, end = self._time(span.start_ns), self._time(span.end_ns)
        about = {"name": span.name, "cat": "dig", "pid": _PID, "ts": start}
        if span.attributes["openinference.span.kind"] == "EVALUATOR":
            about |= {"cat": "finding", "id": f"{span.span_id:x}", "tid": _RUN}
            yield {**about, "ph": "b", "args": _arguments(span)}
            yield {**about, "ph": "e", "ts": end}
            return
        if span.agent is None:
            track = _RUN if span.parent_id is None else _HEALING
        else:
            # Numbers of tracks begin after those of the run and of healing.
            track = self._agents.get(span.agent, 0)
            if not track:
                track = self._agents[span.agent] = _HEALING + 1 + len(self._agents)
                yield from _track(track, name(span.agent))
        end = max(end, start + _SHORTEST)
        self._slices[span.span_id] = start, end, track
        yield {**about, "ph": "X", "tid": track, "dur": end - start, "args": _arguments(span)}

    def _arrow(self, number: int, source: int, target: int) -> Iterator[dict[str, Any]]:
        """An arrow from the end of a slice, or from the latest possible moment, to a begin."""
        begin, end, track = self._slices[source]
        until, _, to = self._slices[target]
        since = max(begin, min(end - _SHORTEST, until))
        about = {"name": "event", "cat": "dig", "id": number, "pid": _PID}
        yield {**about, "ph": "s", "tid": track, "ts": since}
        yield {**about, "ph": "f", "bp": "e", "tid": to, "ts": until}

    def _time(self, ns: int) -> float:
        return (ns - self._began_ns) / 1000


def _arguments(span: Span) -> dict[str, Any]:
    marks = [{"name": mark.name, **mark.attributes} for mark in span.marks]
    arguments: dict[str, Any] = {**span.attributes, **({"events": marks} if marks else {})}
    return {**arguments, "error": span.error} if span.error else arguments


def _track(track: int, name: str) -> Iterator[dict[str, Any]]:
    yield _metadata("thread_name", track, name)
    yield {**_metadata("thread_sort_index", track, ""), "args": {"sort_index": track}}


def _metadata(key: str, track: int, name: str) -> dict[str, Any]:
    return {"name": key, "ph": "M", "pid": _PID, "tid": track, "args": {"name": name}}
