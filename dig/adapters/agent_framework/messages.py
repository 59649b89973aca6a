"""One run of an executor's handler: what it was given, and what it has sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from agent_framework import (
    AgentExecutorRequest,
    AgentExecutorResponse,
    AgentResponse,
    AgentResponseUpdate,
    FanInEdgeGroup,
    Message,
    WorkflowMessage,
)

from dig.adapters.base import Turn, as_payload, is_whole

END = "__end__"
"""The agent that stands for the end of a workflow."""

Takers = tuple[str, ...]


def is_join(edges: Any) -> bool:
    """Whether a group of edges waits for all its sources."""
    return isinstance(edges._edge_group, FanInEdgeGroup)


def can_take(edges: Any, message: WorkflowMessage) -> Takers:
    """The executors that a group of edges can lead a message to, whatever its conditions say."""
    probe = replace(message, data=[message.data]) if is_join(edges) else message
    targets = dict.fromkeys(edge.target_id for edge in edges._edge_group.edges)
    return tuple(
        target
        for target in targets
        if message.target_id in (None, "", target) and edges._can_handle(target, probe)
    )


def foreseen(edges: Any, message: WorkflowMessage) -> Takers | None:
    """The executors that edges will give a message to; ``None``: code of the user decides that."""
    takers = can_take(edges, message)
    return None if takers and decides(edges) else takers


def decides(edges: Any) -> bool:
    """Whether a group of edges has conditions, or a function that selects."""
    group = edges._edge_group
    has_selection = getattr(edges, "_selection_func", None) is not None
    return has_selection or any(edge.has_condition for edge in group.edges)


def chosen(edges: Any, message: WorkflowMessage, selected: Iterable[str]) -> Takers:
    """The executors that edges give a message to, once their function has selected."""
    takers = can_take(edges, message)
    return tuple(target for target in dict.fromkeys(selected) if target in takers)


def shown(value: Any) -> Any:
    """A message or an output as plain JSON; of an agent what it said, not all it has read."""
    return as_payload(value, _words)


def answer(outputs: list[Any]) -> Any:
    """The yields of an executor, as one payload; the pieces of a stream are joined."""
    if outputs and all(isinstance(one, AgentResponseUpdate) for one in outputs):
        return "".join(one.text for one in outputs)
    told = [shown(one) for one in outputs]
    return told[0] if len(told) == 1 else told


def is_notice(data: Any) -> bool:
    """Whether a message is only to be kept in mind, and asks for nothing."""
    # Its type alone is looked at: a proxy may raise when it is asked of what class it is.
    return issubclass(type(data), AgentExecutorRequest) and not data.should_respond


def request_of(message: Any) -> str:
    """The id of the request that a message is the response to; empty: it is no response."""
    asked = getattr(message, "original_request_info_event", None)
    return "" if asked is None else str(asked.request_id)


def is_handoff(given: Any, sent: Any) -> bool:
    """Whether an executor that sends this on has only handed on what it was given.

    It has, if it sends the same thing, asks the next agent without a word, or hands over the
    response of an agent that said nothing.
    """
    if isinstance(sent, AgentExecutorRequest):
        return sent.should_respond and not sent.messages
    if isinstance(sent, AgentExecutorResponse):
        return not sent.agent_response.text.strip()
    return sent is given or (type(sent) is type(given) and bool(shown(sent) == shown(given)))


def _words(value: Any) -> Any:
    if isinstance(value, AgentExecutorResponse):
        return value.agent_response
    if isinstance(value, AgentExecutorRequest):
        return {"messages": value.messages, "should_respond": value.should_respond}
    if isinstance(value, AgentResponse):
        return value.messages[0] if len(value.messages) == 1 else [*value.messages]
    if isinstance(value, Message):
        return _message(value)
    if isinstance(value, AgentResponseUpdate):
        return value.text
    return value


def _message(message: Message) -> dict[str, Any]:
    said: dict[str, Any] = {"role": str(message.role), "text": message.text}
    if message.author_name:
        said["name"] = message.author_name
    calls = [one for one in message.contents if one.type == "function_call"]
    if calls:
        said["calls"] = [{"name": c.name, "arguments": c.arguments} for c in calls]
    return said


Edges = Any
"""A group of edges, as the framework's own `EdgeRunner`."""


@dataclass(eq=False)
class ExecutorDelivery:
    """A message that edges have given to an executor, which has not taken it up yet.

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
    """A message that an executor has sent.

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
        """Whether all edges have decided about it."""
        return None not in self.takers.values()

    @property
    def is_undeliverable(self) -> bool:
        """Whether there are edges, and none of them leads to an executor that can take it."""
        return bool(self.takers) and not any(self.takers.values()) and self.is_decided

    @property
    def routes(self) -> list[tuple[Edges, str]]:
        """The ways that it goes, as far as that is decided."""
        takers = self.takers.items()
        return [(edges, executor) for edges, some in takers for executor in some or ()]


MessageRoute = tuple[OutgoingMessage, Edges, str]
"""A way that a message goes: the message, the edges, the executor."""


@dataclass(eq=False)
class HandlerRun:
    """A handler at work, and afterwards, until its edges have decided.

    Attributes:
        delivery: The delivery that the handler was given.
        turn: Its turn.
        sent: The messages that it has sent up to now, of the framework.
        outgoing: The same, once it has returned.
        said: The output of the handler, if that is for the outside; ``None``: nothing.
    """

    delivery: ExecutorDelivery
    turn: Turn
    sent: list[Any] = field(default_factory=list)
    outgoing: list[OutgoingMessage] = field(default_factory=list)
    said: Any = None

    @property
    def executor(self) -> str:
        """The executor of the handler."""
        return self.delivery.executor

    @property
    def is_last(self) -> bool:
        """Whether no executor goes on with what it has done."""
        asked = [one for one in self.outgoing if one.type != "notice"]
        return all(one.is_decided and not one.routes for one in asked)


@dataclass(eq=False)
class OutgoingEvent:
    """An event that is about to be generated: what it says, and the ways that it goes.

    Equal messages that one handler sends one after the other can be declared to be one event.
    """

    payload: Any
    type: str
    routes: list[MessageRoute]

    @property
    def recipients(self) -> tuple[str, ...]:
        """The executors that it is sent to."""
        return tuple(dict.fromkeys(executor for _, _, executor in self.routes))


def events_of(messages: list[OutgoingMessage], *, same_work: bool) -> list[OutgoingEvent]:
    """The events that a handler sends: one for each way that a message goes.

    Args:
        messages: The messages.
        same_work: Whether equal messages are one event. Branches get an event each all the same:
            that all of them work on it is by design.
    """
    found: list[OutgoingEvent] = []
    for message in messages:
        for edges, executor in message.routes:
            event = _same(found, message, executor) if same_work else None
            if event is None:
                event = OutgoingEvent(message.payload, message.type, [])
                found.append(event)
            event.routes.append((message, edges, executor))
    return found


def _same(
    found: list[OutgoingEvent], message: OutgoingMessage, executor: str
) -> OutgoingEvent | None:
    """The event of an equal message that was sent before, if possible to the same executor."""
    same = [
        event
        for event in found
        if is_whole(message.payload)
        and event.type == message.type
        and event.payload == message.payload
        and all(one is not message for one, _, _ in event.routes)
    ]
    return next((one for one in same if executor in one.recipients), next(iter(same), None))
