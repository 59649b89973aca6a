"""Activations as spans: consumed inputs are links, all other fates are marks.

Many viewers drop links, so the span repeats them in arrays that are aligned with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dig._util.frozen import frozen
from dig.graph.graph import InteractionGraph
from dig.graph.history import BY_SYSTEM, FROM_OUTSIDE
from dig.graph.records import FATES, SYSTEM, Deliver, Emit, End, Start

from .content import Content, FewLabels, label
from .ids import Origin, remote
from .items import Attribute, Count, Item, Mark, Sample, Span, SpanLink
from .tree import SpanPlace, Tree

OUTSIDE = "outside"
MOST_AGENTS = 100
MOST_LISTED = 1_000
MOST_IN_MESSAGES = 32_000

_MARKS = {
    "delay": "dig.event.delayed",
    "reroute": "dig.event.rerouted",
    "discard": "dig.event.discarded",
}
_USAGE = {
    "gen_ai.usage.input_tokens": ("input_tokens", "prompt_tokens"),
    "gen_ai.usage.output_tokens": ("output_tokens", "completion_tokens"),
}


@frozen
class _Begun:
    activation: str
    agent: str
    us: int
    place: SpanPlace
    trigger: str | None
    waits: dict[str, int]  # input -> how long it lay in the buffer before, in microseconds


@frozen
class _Message:
    """The data of an event that is kept as long as an agent may be shown the event."""

    sender: str
    text: str
    context: tuple[int, int] | None


class Activations:
    """Makes the spans of activations; keeps events in flight or in buffers, and open spans."""

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
        self._seen: dict[str, frozenset[str]] = {}  # agent -> what it had in front of it last
        self._busy: dict[str, _Begun] = {}  # by agent
        self._ended: tuple[Span, dict[str, Any], list[str]] | None = None  # its outputs follow
        self._few = FewLabels(MOST_AGENTS)

    # --- the life of an event ---

    def emitted(self, record: Emit) -> Iterator[Item]:
        """Take in a new event; the last output of an activation completes its span."""
        history = self._graph.history
        sender = history.sender(len(history.event_ids) - 1) or record.by or OUTSIDE
        text = self._content.text(record.payload) if self._content.payloads else ""
        context = remote(record.traceparent) if record.traceparent else None
        self._messages[record.event] = _Message(sender, text, context)
        self._held[record.event] = record.us
        yield self._counted("generate", sender)
        if self._ended is not None and record.by not in (None, SYSTEM):
            _, outputs, said = self._ended
            outputs["dig.out.types"].append(label(record.type))
            outputs["dig.final"] = record.final
            said.append(text)
            if not self._graph.awaited:
                yield from self.complete()

    def delivered(self, record: Deliver) -> Iterator[Item]:
        """Take in a delivery of an event to a buffer, or to the environment."""
        held = self._held.pop(record.event, None)
        if held is not None:
            yield Sample("dig.event.hold", (record.us - held) / 1e6, ())
        if record.to is not None:
            self._arrived.setdefault(record.to, {})[record.event] = record.us

    def forget(self, event: str) -> None:
        """Forget an event that cannot be shown to any agent any more."""
        self._messages.pop(event, None)
        self._held.pop(event, None)

    def evicted(self) -> None:
        """Forget the events that the graph has evicted."""
        knows = self._graph.knows
        self._messages = {event: it for event, it in self._messages.items() if knows(event)}
        self._held = {event: us for event, us in self._held.items() if knows(event)}

    # --- the life of an activation ---

    def started(self, record: Start) -> None:
        """Begin a span, triggered by the first input that the agent had not seen before."""
        seen = self._seen.get(record.agent, frozenset())
        fresh = (event for event in record.inputs if event not in seen)
        trigger = next(fresh, record.inputs[0] if record.inputs else None)
        arrived = self._arrived.get(record.agent, {})
        waits = {event: record.us - arrived.get(event, record.us) for event in record.inputs}
        place = self._tree.start(record.activation, trigger, record.t, record.us)
        self._seen[record.agent] = frozenset(record.inputs)
        self._busy[record.agent] = _Begun(
            record.activation, record.agent, record.us, place, trigger, waits
        )

    def ended(self, record: End) -> Iterator[Item]:
        """End an activation; its span is complete once its outputs are there."""
        history = self._graph.history
        v = history.activation_number(record.activation)
        agent = history.agent(v)
        begun = self._busy.pop(agent)
        fates: dict[str, str] = {
            history.event_ids[edge.event]: FATES[edge.fate] for edge in history.edges(v)
        }
        arrived = self._arrived.get(agent, {})
        for event, fate in fates.items():
            yield self._counted(fate, agent)
            if fate == "consume":
                yield Sample("dig.event.wait", begun.waits[event] / 1e6, ())
            if fate != "delay":
                arrived.pop(event, None)
        error = "" if record.error is None else self._content.detail(record.error)
        yield self._lasted(begun, record.us, "agent_error" if error else "")
        self._ended = self._span(begun, record, fates, error), self._outputs(record), []
        if not record.outputs:
            yield from self.complete()

    def complete(self) -> Iterator[Item]:
        """The span of the activation that ended last, with its outputs so far."""
        if self._ended is None:
            return
        span, outputs, said = self._ended
        self._ended = None
        if any(said):
            outputs["gen_ai.output.messages"] = _messages([("assistant", text) for text in said])
        span.attributes.update(outputs)
        yield span

    def cut_off(self, agent: str, us: int, why: str) -> Iterator[Item]:
        """Close the span of an agent's activation, if there is one: it will never end.

        Args:
            agent: The agent.
            us: The time, in microseconds.
            why: The reason, for the span.
        """
        begun = self._busy.pop(agent, None)
        if begun is not None:
            yield self._lasted(begun, us, why)
            yield self._span(begun, End(0, us, begun.activation), {}, "", unfinished=why)

    def left(self, agent: str, us: int) -> Iterator[Item]:
        """Forget an agent that has left, and close its span."""
        self._arrived.pop(agent, None)
        self._seen.pop(agent, None)
        return self.cut_off(agent, us, "left")

    def all_cut_off(self, us: int, why: str) -> Iterator[Item]:
        """Close all open spans: no activation will ever end any more."""
        yield from self.complete()
        for agent in list(self._busy):
            yield from self.cut_off(agent, us, why)

    # --- spans ---

    def _span(
        self, begun: _Begun, record: End, fates: dict[str, str], error: str, unfinished: str = ""
    ) -> Span:
        consumed = [event for event, fate in fates.items() if fate == "consume"]
        attributes: dict[str, Attribute] = self._who(begun)
        attributes |= self._inputs(consumed[:MOST_LISTED])
        kinds = len(consumed), len(fates) - len(consumed)
        if omitted := sum(max(0, number - MOST_LISTED) for number in kinds):
            attributes["dig.in.omitted"] = omitted
        attributes |= _usage(record.usage)
        if error:
            attributes["error.type"] = "agent_error"
        if unfinished:
            attributes["dig.unfinished"] = unfinished
        if self._content.payloads and consumed:
            said = [(m.sender, m.text) for m in map(self._messages.get, consumed) if m]
            attributes["gen_ai.input.messages"] = _messages(said[:MOST_LISTED])
        place, agent = begun.place, label(begun.agent)
        return Span(
            name=f"invoke_agent {agent}",
            trace_id=place.trace_id,
            span_id=place.span_id,
            parent_id=place.parent_id,
            start_ns=self._origin.moment(begun.us),
            end_ns=self._origin.moment(record.us),
            agent=begun.agent,
            attributes=attributes,
            marks=list(self._marks(record, fates, bool(error)))[:MOST_LISTED],
            links=[self._link(event, begun) for event in consumed[:MOST_LISTED]],
            triggered=begun.trigger is not None,
            error=error,
        )

    def _who(self, begun: _Begun) -> dict[str, Attribute]:
        agent, execution = label(begun.agent), label(self._origin.execution)
        attributes: dict[str, Attribute] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            "gen_ai.agent.id": agent,
            "gen_ai.conversation.id": execution,
            "session.id": execution,
            "messaging.system": "dig",
            "messaging.operation.type": "process",
            "messaging.operation.name": "process",
            "messaging.destination.name": agent,
            "messaging.message.conversation_id": execution,
            "messaging.batch.message_count": len(begun.waits),
            "dig.activation.id": label(begun.activation),
            "dig.depth": begun.place.steps,
        }
        if begun.trigger is not None:
            attributes["messaging.message.id"] = label(begun.trigger)
        return attributes

    def _inputs(self, consumed: list[str]) -> dict[str, Attribute]:
        return {
            "dig.in.event_ids": [label(event) for event in consumed],
            "dig.in.edges": ["consume"] * len(consumed),
            "dig.in.producers": [label(self._producer(event)) for event in consumed],
        }

    def _outputs(self, record: End) -> dict[str, Any]:
        shown = [label(event) for event in record.outputs[:MOST_LISTED]]
        return {"dig.out.event_ids": shown, "dig.out.types": []}

    def _producer(self, event: str) -> str:
        history = self._graph.history
        generator = history.generator[self._graph.event(event).n]
        names = {FROM_OUTSIDE: OUTSIDE, BY_SYSTEM: SYSTEM}
        return names.get(generator) or history.activation_ids[generator]

    def _link(self, event: str, begun: _Begun) -> SpanLink:
        about: dict[str, Attribute] = {
            "dig.event.id": label(event),
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
            about: dict[str, Attribute] = {"dig.event.id": label(event)}
            if fate == "reroute":
                about["dig.target"] = [label(agent) for agent in to[event][:MOST_LISTED]]
            if has_failed:
                about["dig.reason"] = "the activation failed"
            yield Mark(_MARKS[fate], ns, about)

    # --- measurements ---

    def _counted(self, edge: str, agent: str) -> Count:
        return Count("dig.events", (("dig.edge", edge), ("gen_ai.agent.name", self._few(agent))))

    def _lasted(self, begun: _Begun, us: int, error: str) -> Sample:
        agent = ("gen_ai.agent.name", self._few(begun.agent))
        about = (agent, ("error.type", error)) if error else (agent,)
        return Sample("gen_ai.invoke_agent.duration", (us - begun.us) / 1e6, about)


def _usage(usage: Any) -> dict[str, Attribute]:
    if not isinstance(usage, dict):
        return {}
    found: dict[str, Attribute] = {}
    for name, keys in _USAGE.items():
        tokens = next((usage[key] for key in keys if type(usage.get(key)) is int), -1)
        if 0 <= tokens < 2**63:
            found[name] = tokens
    if isinstance(usage.get("model"), str):
        found["gen_ai.request.model"] = label(usage["model"])
    return found


def _messages(said: list[tuple[str, str]]) -> str:
    """Messages as the conventions for content have them; those beyond the limit are left out."""
    rows, room = [], MOST_IN_MESSAGES
    for role, text in said:
        room -= len(text)
        if text and room >= 0:
            rows.append({"role": role, "parts": [{"type": "text", "content": text}]})
    return json.dumps(rows, ensure_ascii=False)
