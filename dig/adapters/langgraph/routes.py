"""Writes of a node: to start other nodes, and into the shared state.

LangGraph has no messages: a node writes into channels, and some channels start nodes. All writes of
a node pass one function, so its edges, gotos and sends can be read, and changed, alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from operator import is_
from typing import Any
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph._internal._constants import TASKS
from langgraph.types import Command, Send

from dig._util.frozen import frozen
from dig.adapters.base import as_payload

BRANCH = "branch:to:"
"""Prefix of the channel that starts one node, before the name of the node."""

JOIN = "join:"
"""Prefix of the channel that starts a node after several others: `join:ONE+OTHER:NODE`."""

HANDS_OVER = "transfer_to_"
"""Prefix of tools that hand over to another node, as langgraph-swarm and others name them."""

Write = tuple[str, Any]


@frozen
class NodeRoute:
    """A write whose channel starts a node.

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
        """The input of the node by `Send`; ``None``: the node gets the state."""
        return self.value.arg if isinstance(self.value, Send) else None

    @property
    def is_send(self) -> bool:
        """Whether the node gets a separate input instead of the state."""
        return isinstance(self.value, Send)

    @property
    def is_join(self) -> bool:
        """Whether the node waits for several nodes."""
        return self.channel.startswith(JOIN)

    @property
    def write(self) -> Write:
        """The write."""
        return self.channel, self.value

    def to(self, node: str, key: str) -> NodeRoute:
        """Make the same route to another node with a key in the graph."""
        if isinstance(self.value, Send):
            return replace(self, node=node, value=Send(key, self.value.arg))
        return branch(node, key)


def branch(node: str, key: str) -> NodeRoute:
    """Make the route to a node with a key in the graph."""
    return NodeRoute(node, f"{BRANCH}{key}", None)


def plain(node: str) -> str:
    """The name of a node as plain text, also for a member of an enum."""
    return str.__str__(node)


def update(writes: Iterable[Write]) -> dict[str, Any]:
    """Select the values for the state, of writes that are no routes."""
    return {
        channel: value
        for channel, value in writes
        if not channel.startswith("__") or channel == "__root__"
    }


def writes_of(command: Command[Any]) -> list[Write]:
    """Convert a command to the graph above into the future writes."""
    goto = command.goto
    return [
        *command._update_as_tuples(),
        *(
            (TASKS, target) if isinstance(target, Send) else (f"{BRANCH}{target}", None)
            for target in ([goto] if isinstance(goto, str | Send) else goto)
        ),
    ]


def is_handoff(written: Mapping[str, Any]) -> bool:
    """Whether a node with these writes has only handed on the input.

    It wrote nothing; or only a message without text that calls a tool named `transfer_to_NAME`
    (as langgraph-swarm and langgraph-supervisor do) and the result of that tool.
    """
    if not written.keys() <= {"messages", "active_agent"}:
        return False
    messages = written.get("messages") or []
    messages = list(messages) if isinstance(messages, list | tuple) else [messages]
    spoken = [message for message in messages if getattr(message, "type", "") == "ai"]
    if not spoken:
        return not messages
    last, calls = spoken[-1], getattr(spoken[-1], "tool_calls", None) or []
    return not last.content and bool(calls) and all(
        str(call.get("name", "")).startswith(HANDS_OVER) for call in calls
    )  # fmt: skip


def new_in(written: Mapping[str, Any], input: Any) -> dict[str, Any]:
    """The output of a node; of an extended list of the input only the new items."""
    before = input if isinstance(input, Mapping) else getattr(input, "__dict__", {})
    output = dict(written)
    for channel, value in written.items():
        if type(value) is type(before.get(channel)) is list:
            old = without_notes(before[channel])
            if 0 < len(old) < len(value) and all(map(is_, old, value)):
                output[channel] = {"$given": len(old), "$new": value[len(old) :]}
    return output


def as_words(value: Any) -> Any:
    """Convert a state, an update or an input to plain JSON, with messages cut to words."""
    return as_payload(value, _words)


def spoken(payload: Any) -> Any:
    """The text of a request or an answer that is one message and nothing else; else the payload."""
    # VOID reads texts: an answer without words is none, whatever it is wrapped in.
    messages = payload.get("messages") if isinstance(payload, dict) and len(payload) == 1 else None
    match messages.get("$new") if isinstance(messages, dict) else messages:
        case [{"content": str(text), **more}] if "tool_calls" not in more:
            return text
        case [[str(), str(text)]]:
            return text
    return payload


def _words(value: Any) -> Any:
    if isinstance(value, BaseMessage):
        extras = {key: getattr(value, key, None) for key in ("name", "tool_calls")}
        words = {key: without_ids(extra) for key, extra in extras.items() if extra}
        return {"role": value.type, "content": without_ids(value.content), **words}
    if isinstance(value, Command):
        parts = {"resume": _answers(value), "update": value.update, "goto": value.goto or None}
        return {key: part for key, part in parts.items() if part is not None}
    if type(value) is not dict:
        return value
    if value.get("__type") == "tool_call_with_context":
        return value["tool_call"]  # beside the state, which the tool may need
    is_message = value.keys() >= _MESSAGE or value.get("type") == "tool_call"
    return without_ids(value) if is_message else value


_MESSAGE = frozenset({"role", "content"})
_IDS = frozenset({"id", "tool_call_id", "tool_use_id", "call_id"})
"""Keys of ids that a framework or a model makes anew for each call; they are no words."""


_QUESTION = re.compile("[0-9a-f]{32}")
"""LangGraph's id of an interrupt."""


def without_ids(part: Any) -> Any:
    """Remove the ids of calls from a part of a message, or from a list of parts."""
    if isinstance(part, list):
        return [without_ids(item) for item in part]
    if isinstance(part, dict) and not _IDS.isdisjoint(part):
        return {key: value for key, value in part.items() if key not in _IDS}
    return part


def _answers(command: Command[Any], questions: Sequence[str] | None = None) -> Any:
    """The answers in a resuming command, without the ids of the questions."""
    resume = command.resume
    if not (isinstance(resume, dict) and resume and all(map(_QUESTION.fullmatch, resume))):
        return resume
    ids = resume if questions is None else questions
    answers = [resume[id] for id in ids if id in resume]
    return answers[0] if len(answers) == 1 else answers or None


def answer_to(questions: Sequence[str], input: Any) -> Any:
    """The answer to questions, by id, in the input of a graph; ``None``: there is none."""
    answers = _answers(input, questions) if isinstance(input, Command) else None
    return None if answers is None else as_words(Command(resume=answers))


Annotate = Callable[[Any, tuple[str, ...]], Any]
"""Puts notes into the input of a node: `(state, notes) -> state`, a copy; ``None``: cannot."""

PREFIX = "dig-note-"
"""Prefix of the ids of messages with notes."""


def as_messages(state: Any, notes: Sequence[str]) -> Any:
    """Copy a state with the notes at the end of `messages`; ``None``: the state has no messages.

    A note is a message of a user called `monitor`. It is not the system's: a note quotes agents,
    and many models refuse a system message that is not the first.
    """
    more = [HumanMessage(note, name="monitor", id=f"{PREFIX}{uuid4()}") for note in notes]
    if isinstance(state, Mapping) and isinstance(state.get("messages"), list):
        return {**state, "messages": [*state["messages"], *more]}
    if isinstance(state, list) and all(isinstance(message, BaseMessage) for message in state):
        return [*state, *more]
    messages = getattr(state, "messages", None)
    if isinstance(messages, list):
        if hasattr(type(state), "model_copy"):
            return state.model_copy(update={"messages": [*messages, *more]})
        if is_dataclass(state) and not isinstance(state, type):
            return replace(state, messages=[*messages, *more])
    return None


def without_notes(value: Any) -> Any:
    """Remove notes from a write, since a node may return all messages of its input."""
    items = value if isinstance(value, list) else ()
    messages = [item for item in items if isinstance(item, BaseMessage)]
    notes = {id(message) for message in messages if str(message.id).startswith(PREFIX)}
    return [item for item in items if id(item) not in notes] if notes else value
