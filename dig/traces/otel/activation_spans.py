"""Activations as spans: consumed inputs are links, all other fates are marks.

Many viewers drop links, so the span repeats them in arrays that are aligned with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from dig._util.frozen import frozen
from dig.graph.graph import InteractionGraph
from dig.graph.history import BY_SYSTEM, FROM_OUTSIDE
from dig.graph.records import FATES, SYSTEM, TOOL, Deliver, Emit, End, Start, base_name
from dig.graph.words import WORKS, deed

from . import conventions
from .content import OTHER, Content, FewLabels, label
from .ids import Origin, remote
from .items import Attributes, Count, Item, Level, Mark, Sample, Span, SpanLink
from .tree import SpanPlace, Tree

OUTSIDE = "outside"
MOST_AGENTS = 100
MOST_LISTED = 1_000
MOST_IN_MESSAGES = 32_000

_USAGE = {
    conventions.INPUT_TOKENS: ("input_tokens", "prompt_tokens"),
    conventions.OUTPUT_TOKENS: ("output_tokens", "completion_tokens"),
}


@frozen
class _Begun:
    activation: str
    agent: str
    us: int
    place: SpanPlace
    trigger: str | None
    waits: dict[str, int]  # input -> how long it lay in the buffer before, in microseconds


@dataclass(slots=True)
class _Ended:
    """An ended activation, until the outputs are emitted."""

    span: Span
    fates: dict[str, str]
    outputs: tuple[str, ...]
    types: list[str]
    recipients: list[str]  # of each output, as JSON
    texts: list[tuple[str, str]]
    final: bool = False


@frozen
class _Message:
    """The data of an event, kept as long as an agent may be shown the event."""

    sender: str
    text: str
    context: tuple[int, int] | None


class Activations:
    """Makes the spans of activations; keeps events in flight or in buffers, and open spans.

    Attributes:
        few: Names the agents in metrics.
    """

    def __init__(
        self, origin: Origin, graph: InteractionGraph, tree: Tree, content: Content
    ) -> None:
        """Begin without activations.

        Args:
            origin: The execution, from which ids and times follow.
            graph: The graph of the run, which already has each record that is fed here.
            tree: The places of spans.
            content: Masks and cuts text.
        """
        self._origin = origin
        self._graph = graph
        self._tree = tree
        self._content = content
        self._messages: dict[str, _Message] = {}
        self._held: dict[str, int] = {}  # event -> when it was emitted, until its first delivery
        self._arrived: dict[str, dict[str, int]] = {}  # agent -> event -> when, in microseconds
        self._latest: dict[str, frozenset[str]] = {}  # agent -> its inputs last time
        self._busy: dict[str, _Begun] = {}  # by agent
        self._ended: _Ended | None = None
        self.few = FewLabels(MOST_AGENTS)

    # --- the life of an event ---

    def emit(self, record: Emit) -> Iterator[Item]:
        """Take in a new event; the last output of an activation completes the span."""
        history = self._graph.history
        sender = history.sender(len(history.event_ids) - 1) or record.by or OUTSIDE
        text = self._content.text(record.payload) if self._content.payloads else ""
        context = remote(record.traceparent) if record.traceparent else None
        # Cut and masked at once: whole payloads would fill the memory.
        self._messages[record.event] = _Message(sender, text, context)
        self._held[record.event] = record.us
        yield self._count("generate", sender)
        if self._ended is not None and record.by not in (None, SYSTEM):
            self._ended.types.append(label(record.type))
            recipients = [label(agent) for agent in record.to[:MOST_LISTED]]
            self._ended.recipients.append(json.dumps(recipients, ensure_ascii=False))
            self._ended.texts.append(("assistant", text))
            self._ended.final = record.final
            if not self._graph.awaited:
                yield from self.complete()

    def deliver(self, record: Deliver) -> Iterator[Item]:
        """Take in a delivery of an event to a buffer, or to the environment."""
        held = self._held.pop(record.event, None)
        if held is not None:
            yield Sample("dig.event.hold", (record.us - held) / 1e6, ())
        if record.to is not None:
            self._arrived.setdefault(record.to, {})[record.event] = record.us
            yield from self._buffer(record.to)

    def text_of(self, event: str) -> str:
        """The exportable payload of an event, if not forgotten."""
        message = self._messages.get(event)
        return message.text if message else ""

    def forget(self, event: str) -> None:
        """Forget an event; no agent can be shown the event any more."""
        self._messages.pop(event, None)
        self._held.pop(event, None)

    def forget_evicted(self) -> None:
        """Forget the events evicted by the graph."""
        knows = self._graph.knows
        self._messages = {event: it for event, it in self._messages.items() if knows(event)}
        self._held = {event: us for event, us in self._held.items() if knows(event)}

    # --- the life of an activation ---

    def start(self, record: Start) -> Iterator[Item]:
        """Begin a span, triggered by the first input new to the agent."""
        before = self._latest.get(record.agent, frozenset())
        # An input that was shown before and delayed has triggered an earlier activation.
        fresh = (event for event in record.inputs if event not in before)
        trigger = next(fresh, record.inputs[0] if record.inputs else None)
        arrived = self._arrived.get(record.agent, {})
        waits = {event: record.us - arrived.get(event, record.us) for event in record.inputs}
        place = self._tree.start(record.activation, trigger, record.t, record.us)
        self._latest[record.agent] = frozenset(record.inputs)
        self._busy[record.agent] = _Begun(
            record.activation, record.agent, record.us, place, trigger, waits
        )
        yield self._at_work()

    def end(self, record: End) -> Iterator[Item]:
        """End an activation; the span is complete with the last output."""
        history = self._graph.history
        v = history.activation_number(record.activation)
        agent = history.agent(v)
        begun = self._busy.pop(agent)
        fates: dict[str, str] = {
            history.event_ids[edge.event]: FATES[edge.fate] for edge in history.edges(v)
        }
        arrived = self._arrived.get(agent, {})
        for event, fate in fates.items():
            yield self._count(fate, agent)
            if fate == "consume":
                yield Sample("dig.event.wait", begun.waits[event] / 1e6, ())
            if fate != "delay":
                arrived.pop(event, None)
        yield from self._buffer(agent)
        yield self._at_work()
        error = "" if record.error is None else self._content.detail(record.error)
        yield self._duration(begun, record.us, error_type(error) if error else "")
        # The records of the outputs come next; the span waits for their types and texts.
        span = self._span(begun, record, fates, error)
        self._ended = _Ended(span, fates, record.outputs, [], [], [])
        if not record.outputs:
            yield from self.complete()

    def complete(self) -> Iterator[Item]:
        """The span of the latest ended activation, with all outputs so far."""
        ended, self._ended = self._ended, None
        if ended is None:
            return
        span, outputs = ended.span, ended.outputs
        act = deed(ended.fates.values(), len(outputs), final=ended.final, failed=bool(span.error))
        attributes: Attributes = {
            **span.attributes,
            "dig.action": act,
            conventions.OUT_EVENTS: [label(event) for event in outputs[:MOST_LISTED]],
            conventions.OUT_TYPES: ended.types,
            conventions.OUT_TO: ended.recipients,
            **({conventions.FINAL: ended.final} if outputs else {}),
            **_text_attributes("output", ended.texts),
        }
        yield replace(span, attributes=attributes)

    def cut_off(self, agent: str, us: int, reason: str) -> Iterator[Item]:
        """Close the span of an agent's activation, if any: no end will come.

        Args:
            agent: The agent.
            us: The time, in microseconds.
            reason: The reason, for the span.
        """
        begun = self._busy.pop(agent, None)
        if begun is not None:
            yield self._at_work()
            yield self._duration(begun, us, reason)
            yield self._span(begun, End(0, us, begun.activation), {}, "", unfinished=reason)

    def leave(self, agent: str, us: int) -> Iterator[Item]:
        """Forget an absent agent, and close the open span."""
        self._latest.pop(agent, None)
        if self._arrived.pop(agent, None):
            yield from self._buffer(agent)
        yield from self.cut_off(agent, us, "left")

    def open_spans(self) -> list[Span]:
        """The spans of activations in progress, without ends."""
        return [self._begun_span(begun, self._common(begun)) for begun in self._busy.values()]

    def cut_off_all(self, us: int, reason: str) -> Iterator[Item]:
        """Close all open spans: no activation will ever end any more."""
        yield from self.complete()
        for agent in list(self._busy):
            yield from self.cut_off(agent, us, reason)

    # --- spans ---

    def _span(
        self, begun: _Begun, record: End, fates: dict[str, str], error: str, unfinished: str = ""
    ) -> Span:
        consumed = [event for event, fate in fates.items() if fate == "consume"]
        listed = consumed[:MOST_LISTED]
        history = self._graph.history
        sources = [history.generator[self._graph.event(event).n] for event in listed]
        outer = {FROM_OUTSIDE: OUTSIDE, BY_SYSTEM: SYSTEM}
        producers = [outer.get(v) or history.activation_ids[v] for v in sources]
        attributes = self._common(begun) | {
            conventions.IN_EVENTS: [label(event) for event in listed],
            "dig.in.edges": ["consume"] * len(listed),
            conventions.IN_PRODUCERS: [label(producer) for producer in producers],
            "dig.action": WORKS,
        }
        kinds = len(consumed), len(fates) - len(consumed)
        if omitted := sum(max(0, number - MOST_LISTED) for number in kinds):
            attributes["dig.in.omitted"] = omitted
        attributes |= _usage(record.usage)
        if error:
            attributes[conventions.ERROR_TYPE] = error_type(error)
        if record.because is not None:
            attributes[conventions.BECAUSE] = label(record.because)
        if record.cancelled:
            attributes[conventions.CANCELLED] = True
        if unfinished:
            attributes["dig.unfinished"] = unfinished
        if self._content.payloads:
            texts = [(m.sender, m.text) for m in map(self._messages.get, consumed) if m]
            attributes |= _text_attributes("input", texts[:MOST_LISTED])
        return replace(
            self._begun_span(begun, attributes),
            end_ns=self._origin.moment(record.us),
            marks=list(self._marks(record, fates, bool(error)))[:MOST_LISTED],
            links=[self._link(event, begun) for event in listed],
            error=error,
        )

    def _begun_span(self, begun: _Begun, attributes: Attributes) -> Span:
        place, start = begun.place, self._origin.moment(begun.us)
        return Span(
            _operation(begun.agent)[0], place.trace_id, place.span_id, place.parent_id, start,
            start, begun.agent, attributes,
        )  # fmt: skip

    def _common(self, begun: _Begun) -> Attributes:
        execution = label(self._origin.execution)
        attributes: Attributes = _operation(begun.agent)[1] | {
            conventions.CONVERSATION: execution,
            conventions.SESSION: execution,
            conventions.ACTIVATION: label(begun.activation),
            "dig.depth": begun.place.steps,
        }
        if begun.trigger is not None:
            attributes[conventions.TRIGGER] = label(begun.trigger)
        return attributes

    def _link(self, event: str, begun: _Begun) -> SpanLink:
        about: Attributes = {
            conventions.EVENT: label(event),
            "dig.edge": "consume",
            "dig.event.wait_ms": begun.waits[event] / 1000,
        }
        message = self._messages.get(event)
        if message is not None and message.context is not None:
            return SpanLink(*message.context, about, remote=True)
        place = self._tree.producer(event, begun.place.segment)
        return SpanLink(place.trace_id, place.span_id, about)

    def _marks(self, record: End, fates: dict[str, str], has_failed: bool) -> Iterator[Mark]:
        to = {fate.event: fate.to for fate in record.fates}
        ns = self._origin.moment(record.us)
        for event, fate in fates.items():
            if fate == "consume":
                continue
            about: Attributes = {conventions.EVENT: label(event)}
            if fate == "reroute":
                about[conventions.TARGET] = [label(agent) for agent in to[event][:MOST_LISTED]]
            if has_failed:
                about["dig.reason"] = "the activation failed"
            yield Mark(conventions.MARKS[fate], ns, about)

    # --- measurements ---

    def _buffer(self, agent: str) -> Iterator[Item]:
        about = self.few(agent)
        if about != OTHER:
            buffered = len(self._arrived.get(agent, ()))
            yield Level("dig.buffered_events", buffered, ((conventions.AGENT_NAME, about),))

    def _at_work(self) -> Item:
        return Level("dig.open_activations", len(self._busy))

    def _count(self, edge: str, agent: str) -> Count:
        about = (("dig.edge", edge), (conventions.AGENT_NAME, self.few(agent)))
        return Count("dig.events", about)

    def _duration(self, begun: _Begun, us: int, error: str) -> Sample:
        operation = _operation(begun.agent)[1][conventions.OPERATION]
        key = conventions.AGENT_NAME if operation == "invoke_agent" else conventions.TOOL_NAME
        about = [(key, self.few(base_name(begun.agent))), (conventions.OPERATION, str(operation))]
        about += [(conventions.ERROR_TYPE, error)] if error else []
        return Sample(f"gen_ai.{operation}.duration", (us - begun.us) / 1e6, tuple(about))


def _operation(agent: str) -> tuple[str, Attributes]:
    """The name and the first attributes of the span of an agent, or of a tool shown as an agent."""
    base = base_name(agent)
    before, _, tool = base.rpartition("/")[2].partition(TOOL)
    kind, operation, key, name = "AGENT", "invoke_agent", conventions.AGENT_NAME, label(base)
    if tool and not before:
        kind, operation, key, name = "TOOL", "execute_tool", conventions.TOOL_NAME, label(tool)
    about: Attributes = {conventions.KIND: kind, conventions.OPERATION: operation, key: name}
    return f"{operation} {name}", about | {conventions.AGENT: label(agent)}


def error_type(error: str) -> str:
    """The type at the beginning of an error (`ValueError: ..`); else `_OTHER`."""
    kind = error.partition(": ")[0]
    return label(kind) if kind.replace(".", "").isidentifier() else "_OTHER"


def _usage(usage: Any) -> Attributes:
    if not isinstance(usage, dict):
        return {}
    attributes: Attributes = {}
    for key, spellings in _USAGE.items():
        # Frameworks differ in their names for the same figure; the first one counts.
        tokens = next((usage[name] for name in spellings if type(usage.get(name)) is int), -1)
        if 0 <= tokens < 2**63:
            attributes[key] = tokens
    if isinstance(usage.get("model"), str):
        attributes["gen_ai.request.model"] = label(usage["model"])
    return attributes


def _text_attributes(direction: str, texts: list[tuple[str, str]]) -> Attributes:
    """Texts by role, in the attributes of both conventions for viewers.

    Args:
        direction: `input` or `output`.
        texts: Each with a role; texts beyond the limit are left out.
    """
    rows, room = [], MOST_IN_MESSAGES
    for role, text in texts:
        room -= len(text)
        if text and room >= 0:
            rows.append((role, text))
    if not rows:
        return {}
    messages = [{"role": r, "parts": [{"type": "text", "content": text}]} for r, text in rows]
    is_output = direction == "output"
    lines = [text if is_output else f"{label(role)}: {text}" for role, text in rows]
    return {
        f"gen_ai.{direction}.messages": json.dumps(messages, ensure_ascii=False),
        f"{direction}.value": "\n".join(lines),
    }
