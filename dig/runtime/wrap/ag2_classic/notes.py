"""Notes in the form that an agent's model reads: messages of their own after what was said.

The last message of a turn carries them to where the model is asked, in another thread it may be;
there they become messages. So nothing else that looks at messages sees them: no history, no other
agent, and no code that decides by the last message whether the chat is over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

NOTE = "[monitor] {}"


class Noted(dict[str, Any]):
    """A message with notes beside it."""

    notes: tuple[str, ...] = ()


def noted(messages: Sequence[Any], notes: tuple[str, ...]) -> list[Any]:
    """Messages, the last of which carries notes."""
    *before, last = messages
    carrier = Noted(last)
    carrier.notes = notes
    return [*before, carrier]


def showing(whole: Callable[..., Any], client: Any, messages: Any, *args: Any, **more: Any) -> Any:
    """Ask a model, and show it the notes that its messages carry."""
    notes = [note for message in messages for note in getattr(message, "notes", ())]
    if notes:
        plain = [dict(one) if isinstance(one, Noted) else one for one in messages]
        # Not the system's: a note quotes what agents have said.
        shown = [{"role": "user", "content": NOTE.format(note)} for note in notes]
        messages = [*plain, *shown]
    return whole(client, messages, *args, **more)
