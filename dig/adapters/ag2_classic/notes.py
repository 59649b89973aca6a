"""Notes in the form that an agent's model reads: messages of their own after what was said.

The list of messages that an agent replies to carries the notes to where its model is asked, in
another thread it may be; there they become messages. So nothing else that looks at messages sees
them: no history, no other agent, and no code that asks the last message whether the chat is over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

NOTE = "[monitor] {}"

Read = Callable[[], tuple[str, ...]]
"""Gives the notes of a turn, oldest first, as of now."""


class Told(list[Any]):
    """Messages with notes beside them, which stay there when a system message is put before."""

    def __init__(self, messages: Sequence[Any], read: Read) -> None:
        """Take the messages as they are."""
        super().__init__(messages)
        self.read = read

    def __radd__(self, before: list[Any]) -> Told:
        return Told([*before, *self], self.read)


def showing(whole: Callable[..., Any], client: Any, messages: Any, *args: Any, **more: Any) -> Any:
    """Ask a model, and show it the notes that stand beside its messages."""
    if isinstance(messages, Told):
        # Not the system's: a note quotes what agents have said.
        notes = [{"role": "user", "content": NOTE.format(note)} for note in messages.read()]
        messages = [*messages, *notes]
    return whole(client, messages, *args, **more)
