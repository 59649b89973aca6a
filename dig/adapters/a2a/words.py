"""The contents of messages and tasks as plain JSON."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from a2a.types import (
    Message,
    Part,
    SendMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
)
from google.protobuf.json_format import MessageToDict

from dig.adapters.base import NOTE, as_payload

LINK = "dig.traceparent"
"""The key of a request's metadata with the trace context of the event of its call."""

IS_NOTE = "dig.note"
"""The key of a part's metadata that marks a note of the monitor."""

ENDS = {
    TaskState.TASK_STATE_COMPLETED: "answer",
    TaskState.TASK_STATE_FAILED: "failed",
    TaskState.TASK_STATE_REJECTED: "rejected",
    TaskState.TASK_STATE_CANCELED: "canceled",
    TaskState.TASK_STATE_INPUT_REQUIRED: "asks",
    TaskState.TASK_STATE_AUTH_REQUIRED: "asks",
}
"""The states after which an agent does not go on by itself."""


def words_of(parts: Iterable[Part]) -> list[Any]:
    """The contents of parts, without notes."""
    return [_content(part) for part in parts if IS_NOTE not in part.metadata]


def payload_of(message: Message) -> Any:
    """The contents of a message as the payload of an event."""
    return _whole(words_of(message.parts))


def annotated(request: SendMessageRequest, notes: Iterable[str]) -> SendMessageRequest:
    """A copy of a request with the missing notes, behind the message's own parts."""
    copy = SendMessageRequest()
    copy.CopyFrom(request)
    parts = copy.message.parts
    texts = {part.text for part in parts if IS_NOTE in part.metadata}  # a client has sent them
    for text in map(NOTE.format, notes):
        if text not in texts:
            parts.add(text=text).metadata[IS_NOTE] = True
    return copy


def new_link() -> str:
    """A trace context for the event of a call."""
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"


class AgentWords:
    """The words of an agent in a stream of events, and the end of the stream.

    Attributes:
        words: What the agent has said.
        end: How that ended: `answer`, `failed`, `rejected`, `canceled` or `asks`; empty: not yet.
        state: The latest state of the task; empty: there is no task.
        task: The id of the task.
        has_artifacts: Whether results were shown before the end.
    """

    def __init__(self) -> None:
        self.words: list[Any] = []
        self.end = self.state = self.task = ""
        self.has_artifacts = False

    def take(self, event: Any) -> bool:
        """Read an event: a message, a task, or a change of a task. Returns ``True``."""
        if isinstance(event, Message):
            self.words += words_of(event.parts)
            self.end = "answer"
        elif isinstance(event, TaskArtifactUpdateEvent):
            self.words += words_of(event.artifact.parts)
            self.has_artifacts = True
        elif isinstance(event, Task | TaskStatusUpdateEvent):
            self.task = event.id if isinstance(event, Task) else event.task_id
            artifacts = getattr(event, "artifacts", ())  # a task has them
            self.words += [word for it in artifacts for word in words_of(it.parts)]
            state = event.status.state
            self.state, self.end = TaskState.Name(state), ENDS.get(state, "")
            if self.end:
                self.words += words_of(event.status.message.parts)
        return True

    @property
    def payload(self) -> Any:
        """The words as a payload; of a task in progress, the state."""
        return {"$task": self.state} if self.state and not self.end else _whole(self.words)


def _whole(words: list[Any]) -> Any:
    return as_payload(words[0] if len(words) == 1 else words or None)


def _content(part: Part) -> Any:
    kind = part.WhichOneof("content")
    value = getattr(part, kind) if kind else None
    return MessageToDict(value) if kind == "data" else value
