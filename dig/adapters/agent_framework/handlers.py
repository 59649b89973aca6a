"""A run of an executor's handler: deliveries, outgoing messages, payloads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import agent_framework as af

from dig.adapters import base

END = "__end__"
"""The agent that stands for the end of a workflow."""

Takers = tuple[str, ...]


def is_join(edges: Any) -> bool:
    """Whether a group of edges waits for all sources."""
    return isinstance(edges._edge_group, af.FanInEdgeGroup)


def can_take(edges: Any, message: af.WorkflowMessage) -> Takers:
    """The executors to which edges can lead a message, conditions left aside."""
    probe = replace(message, data=[message.data]) if is_join(edges) else message
    targets = dict.fromkeys(edge.target_id for edge in edges._edge_group.edges)
    return tuple(
        target
        for target in targets
        if message.target_id in (None, "", target) and edges._can_handle(target, probe)
    )


def foreseen(edges: Any, message: af.WorkflowMessage) -> Takers | None:
    """The future takers of a message; ``None``: code of the user decides."""
    takers = can_take(edges, message)
    return None if takers and decides(edges) else takers


def decides(edges: Any) -> bool:
    """Whether a group of edges has conditions, or a selecting function."""
    group = edges._edge_group
    has_selection = getattr(edges, "_selection_func", None) is not None
    return has_selection or any(edge.has_condition for edge in group.edges)


def shown(value: Any) -> Any:
    """A message or an output as plain JSON; of an agent the words, without the conversation."""
    return base.as_payload(value, _words)


def answer(outputs: list[Any]) -> Any:
    """The yields of an executor as a payload; the pieces of a stream are joined."""
    if outputs and all(isinstance(output, af.AgentResponseUpdate) for output in outputs):
        return "".join(update.text for update in outputs)
    payloads = [shown(output) for output in outputs]
    return payloads[0] if len(payloads) == 1 else payloads


def usage_of(executor: af.AgentExecutor, response: Any) -> dict[str, Any]:
    """The usage of an agent's response, for the budget."""
    usage = getattr(response, "usage_details", None) or {}
    return {
        "model": getattr(getattr(executor.agent, "client", None), "model", None),
        "input_tokens": usage.get("input_token_count") or 0,
        "output_tokens": usage.get("output_token_count") or 0,
        "cached_tokens": usage.get("cache_read_input_token_count") or 0,
    }


def is_notice(data: Any) -> bool:
    """Whether a message is only to be kept in mind, and asks for nothing."""
    # Its type alone is looked at: a proxy may raise when it is asked of what class it is.
    return issubclass(type(data), af.AgentExecutorRequest) and not data.should_respond


def request_of(message: Any) -> str:
    """The id of the request answered by a message; empty: no response."""
    request = getattr(message, "original_request_info_event", None)
    return "" if request is None else str(request.request_id)


def is_handoff(taken: Any, sent: Any) -> bool:
    """Whether an executor, by sending `sent`, has only handed on `taken`.

    It has, if it sends the same thing, asks the next agent without a word, or hands over the
    response of an agent that said nothing.
    """
    if isinstance(sent, af.AgentExecutorRequest):
        return sent.should_respond and not sent.messages
    if isinstance(sent, af.AgentExecutorResponse):
        return not sent.agent_response.text.strip()
    return sent is taken or (type(sent) is type(taken) and bool(shown(sent) == shown(taken)))


def _words(value: Any) -> Any:
    if isinstance(value, af.AgentExecutorResponse):
        return value.agent_response
    if isinstance(value, af.AgentExecutorRequest):
        return {"messages": value.messages, "should_respond": value.should_respond}
    if isinstance(value, af.AgentResponse):
        return value.messages[0] if len(value.messages) == 1 else [*value.messages]
    if isinstance(value, af.Message):
        message: dict[str, Any] = {"role": str(value.role), "text": value.text}
        if value.author_name:
            message["name"] = value.author_name
        if calls := [part for part in value.contents if part.type == "function_call"]:
            message["calls"] = [{"name": c.name, "arguments": c.arguments} for c in calls]
        return message
    if isinstance(value, af.AgentResponseUpdate):
        return value.text
    return value


Edges = Any
"""A group of edges, as the framework's own `EdgeRunner`."""


@dataclass(eq=False)
class ExecutorDelivery:
    """A message in front of an executor, not taken up yet.

    Attributes:
        executor: The executor.
        message: The framework's message.
        events: The message's events in the graph; several, if a join has waited for several.
        is_held: Whether one of them was held when it arrived.
    """

    executor: str
    message: Any
    events: tuple[str, ...]
    is_held: bool = False


@dataclass(eq=False)
class OutgoingMessage:
    """A message sent by an executor.

    Attributes:
        work: The handler that has sent it.
        message: The framework's message.
        payload: The contents of the message.
        type: The type of its events.
        takers: The executors that each group of edges gives it to; ``None``: not decided yet.
        event: The event that stands for it where it is decided later; empty: there is none.
    """

    work: HandlerRun = field(repr=False)
    message: Any
    payload: Any
    type: str
    takers: dict[Edges, Takers | None]
    event: str = ""

    @property
    def is_decided(self) -> bool:
        """Whether all edges have decided."""
        return None not in self.takers.values()

    @property
    def is_undeliverable(self) -> bool:
        """Whether there are edges, but no executor behind can take the message."""
        return bool(self.takers) and not any(self.takers.values()) and self.is_decided

    @property
    def routes(self) -> list[tuple[Edges, str]]:
        """The ways of the message, as far as decided."""
        takers = self.takers.items()
        return [(edges, executor) for edges, names in takers for executor in names or ()]


MessageRoute = tuple[OutgoingMessage, Edges, str]
"""A way that a message goes: the message, the edges, the executor."""


@dataclass(eq=False)
class HandlerRun:
    """A handler at work, and afterwards, until the edges have decided.

    Attributes:
        delivery: The delivery that the handler was given.
        turn: Its turn.
        sent: The messages that it has sent up to now, of the framework.
        outgoing: The same, once it has returned.
        output: The output of the handler, if that is for the outside; ``None``: nothing.
    """

    delivery: ExecutorDelivery
    turn: base.Turn
    sent: list[Any] = field(default_factory=list)
    outgoing: list[OutgoingMessage] = field(default_factory=list)
    output: Any = None

    @property
    def executor(self) -> str:
        """The executor of the handler."""
        return self.delivery.executor

    @property
    def is_last(self) -> bool:
        """Whether no executor goes on with the work."""
        messages = [message for message in self.outgoing if message.type != "notice"]
        return all(message.is_decided and not message.routes for message in messages)


@dataclass(eq=False)
class OutgoingEvent:
    """An event about to be generated: payload, type and ways.

    Equal messages that one handler sends one after the other can be declared to be one event.
    """

    payload: Any
    type: str
    routes: list[MessageRoute]

    @property
    def recipients(self) -> tuple[str, ...]:
        """The executors at the ends of the ways."""
        return tuple(dict.fromkeys(executor for _, _, executor in self.routes))


def events_of(messages: list[OutgoingMessage], *, same_work: bool) -> list[OutgoingEvent]:
    """The events of a handler's messages: an event for each way of a message.

    Args:
        messages: The messages.
        same_work: Whether equal messages are one event. Branches get an event each all the same:
            that all of them work on it is by design.
    """
    events: list[OutgoingEvent] = []
    for message in messages:
        for edges, executor in message.routes:
            equal = [
                event
                for event in events
                if same_work
                and base.is_whole(message.payload)
                and (event.type, event.payload) == (message.type, message.payload)
                and all(other is not message for other, _, _ in event.routes)
            ]
            same = [event for event in equal if executor in event.recipients] or equal
            if not same:
                same = [OutgoingEvent(message.payload, message.type, [])]
                events += same
            same[0].routes.append((message, edges, executor))
    return events
