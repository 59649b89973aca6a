"""Writes of a node that start other nodes, and its writes into the shared state.

LangGraph has no messages: a node writes into channels, and some channels start nodes. All of a
node's writes pass one function, so this is where its edges, gotos and sends can be read, and
changed, alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from operator import is_
from typing import Any
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph._internal._constants import TASKS
from langgraph.types import Command, Send

from dig.adapters.base import as_payload

BRANCH = "branch:to:"
"""The channel that starts one node is called so, and then like the node."""

JOIN = "join:"
"""The channel that starts a node after several is called `join:ONE+OTHER:NODE`."""

HANDS_OVER = "transfer_to_"
"""Tools that hand over to another node are called so, as langgraph-swarm and others make them."""

Write = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class NodeRoute:
    """One write that starts a node.

    Attributes:
        node: The node.
        channel: The channel that is written.
        value: The value that is written.
    """

    node: str
    channel: str
    value: Any

    @property
    def packet(self) -> Any:
        """The input of the node instead of the state, by `Send`; else ``None``."""
        return self.value.arg if isinstance(self.value, Send) else None

    @property
    def is_send(self) -> bool:
        """Whether the node is given something of its own instead of the state."""
        return isinstance(self.value, Send)

    @property
    def is_join(self) -> bool:
        """Whether the node waits for others besides."""
        return self.channel.startswith(JOIN)

    @property
    def write(self) -> Write:
        """The write."""
        return self.channel, self.value

    def to(self, node: str, key: str) -> NodeRoute:
        """The same to another node, which has this key in the graph."""
        if isinstance(self.value, Send):
            return replace(self, node=node, value=Send(key, self.value.arg))
        return branch(node, key)


def branch(node: str, key: str) -> NodeRoute:
    """The route to a node, which has this key in the graph."""
    return NodeRoute(node, f"{BRANCH}{key}", None)


def plain(node: str) -> str:
    """The name of a node as plain text: graphs may name their nodes by members of an enum."""
    return str.__str__(node)


def route_of(write: Write) -> NodeRoute | None:
    """A write as a route, if it starts a node."""
    channel, value = write
    if channel == TASKS:
        return NodeRoute(plain(value.node), channel, value) if isinstance(value, Send) else None
    if channel.startswith(BRANCH):
        return NodeRoute(channel.removeprefix(BRANCH), channel, value)
    if channel.startswith(JOIN):
        return NodeRoute(channel.rpartition(":")[2], channel, value)
    return None


def update(writes: Iterable[Write]) -> dict[str, Any]:
    """The writes of a node into the state."""
    return {
        channel: value
        for channel, value in writes
        if channel == "__root__" or not (channel.startswith("__") or route_of((channel, value)))
    }


def writes_of(command: Command[Any]) -> list[Write]:
    """A command to the graph above, as the writes that will come of it."""
    goto = command.goto
    targets: Sequence[Any] = [goto] if isinstance(goto, str | Send) else list(goto)
    routes = [
        (TASKS, one) if isinstance(one, Send) else (f"{BRANCH}{one}", None) for one in targets
    ]
    return [*command._update_as_tuples(), *routes]


def is_handoff(written: Mapping[str, Any]) -> bool:
    """Whether a node that wrote this has only handed on what it was given.

    It wrote nothing; or only a message without text that calls a tool named `transfer_to_NAME`
    (as those of langgraph-swarm and langgraph-supervisor are) and what that tool says.
    """
    if not written.keys() <= {"messages", "active_agent"}:
        return False
    messages = written.get("messages") or []
    spoken = [one for one in _listed(messages) if getattr(one, "type", "") == "ai"]
    if not spoken:
        return not _listed(messages)
    last, calls = spoken[-1], getattr(spoken[-1], "tool_calls", None) or []
    return not last.content and bool(calls) and all(
        str(call.get("name", "")).startswith(HANDS_OVER) for call in calls
    )  # fmt: skip


def _listed(messages: Any) -> list[Any]:
    return list(messages) if isinstance(messages, list | tuple) else [messages]


def new_in(written: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """The output of a node; of a list that it was given and has added to, what is new in it."""
    before = given if isinstance(given, Mapping) else getattr(given, "__dict__", {})
    return {
        channel: _new(value, without_notes(before.get(channel)))
        for channel, value in written.items()
    }


def _new(value: Any, before: Any) -> Any:
    if not (type(value) is type(before) is list) or value is before or not before:
        return value
    count = len(before)
    if count >= len(value) or not all(map(is_, before, value)):
        return value
    return {"$given": count, "$new": value[count:]}


def shown(value: Any) -> Any:
    """A state, an update or an input as plain JSON, with messages cut down to what was said."""
    return as_payload(value, _words)


def _words(value: Any) -> Any:
    if isinstance(value, BaseMessage):
        return _message(value)
    if isinstance(value, Command):
        told = {"resume": _answers(value), "update": value.update, "goto": value.goto or None}
        return {key: one for key, one in told.items() if one is not None}
    if type(value) is dict and value.get("__type") == "tool_call_with_context":
        return value["tool_call"]  # beside it stands all that the node may need of the state
    is_said = type(value) is dict and (value.keys() >= _MESSAGE or value.get("type") == "tool_call")
    return without_ids(value) if is_said else value


_MESSAGE = frozenset({"role", "content"})
_IDS = frozenset({"id", "tool_call_id", "tool_use_id", "call_id"})
"""Keys of ids that a framework or a model makes for each call anew; they are no words."""


_QUESTION = re.compile("[0-9a-f]{32}")
"""The id that LangGraph gives an interrupt."""


def without_ids(said: Any) -> Any:
    """A part of a message, or a list of parts, without the ids of the call that it comes of."""
    if isinstance(said, list):
        return [without_ids(part) for part in said]
    if isinstance(said, dict) and not _IDS.isdisjoint(said):
        return {key: part for key, part in said.items() if key not in _IDS}
    return said


def _message(message: BaseMessage) -> dict[str, Any]:
    said: dict[str, Any] = {"role": message.type, "content": without_ids(message.content)}
    for key in ("name", "tool_calls"):
        if found := getattr(message, key, None):
            said[key] = without_ids(found)
    return said


def _answers(command: Command[Any], questions: Sequence[str] | None = None) -> Any:
    """The answers that a command resumes with, without the ids of the questions."""
    said = command.resume
    if not (isinstance(said, dict) and said and all(map(_QUESTION.fullmatch, said))):
        return said
    answers = [said[one] for one in (said if questions is None else questions) if one in said]
    return answers[0] if len(answers) == 1 else answers or None


def answer_to(questions: Sequence[str], given: Any) -> Any:
    """What a graph is called with as the answer to some questions, by id; ``None``: it is none."""
    said = _answers(given, questions) if isinstance(given, Command) else None
    return None if said is None else shown(Command(resume=said))


Annotate = Callable[[Any, tuple[str, ...]], Any]
"""Puts notes into what a node is given: `(state, notes) -> state`, a copy; ``None``: cannot."""

PREFIX = "dig-note-"
"""Ids of messages that carry notes begin so."""


def as_messages(state: Any, notes: Sequence[str]) -> Any:
    """A copy of a state whose `messages` end with the notes; ``None``, if it has no messages.

    A note is a message of a user called `monitor`. It is not the system's: it quotes what agents
    have said, and many models refuse a system message that is not the first.
    """
    more = [HumanMessage(note, name="monitor", id=f"{PREFIX}{uuid4()}") for note in notes]
    if isinstance(state, Mapping) and isinstance(state.get("messages"), list):
        return {**state, "messages": [*state["messages"], *more]}
    if isinstance(state, list) and all(isinstance(one, BaseMessage) for one in state):
        return [*state, *more]
    messages = getattr(state, "messages", None)
    if isinstance(messages, list):
        if hasattr(type(state), "model_copy"):
            return state.model_copy(update={"messages": [*messages, *more]})
        if is_dataclass(state) and not isinstance(state, type):
            return replace(state, messages=[*messages, *more])
    return None


def without_notes(value: Any) -> Any:
    """A write without the notes in it: a node that returns all of its messages returns them too."""
    if isinstance(value, list) and any(map(_is_note, value)):
        return [one for one in value if not _is_note(one)]
    return value


def _is_note(value: Any) -> bool:
    return isinstance(value, BaseMessage) and str(value.id).startswith(PREFIX)
