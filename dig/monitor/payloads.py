"""What the events that are still on their way carry: payloads and notes, per recipient.

The graph knows only structure; what an agent is shown comes from here. An event's mail is
dropped as soon as nobody can be shown it any more, so memory follows the work that is open.
"""

from __future__ import annotations

from typing import Any

from dig._util.json_values import plain
from dig.graph.graph import InteractionGraph
from dig.graph.state import EventState

from .messages import Output, Pending


class _Mail:
    __slots__ = ("final", "notes", "payload", "sender", "type")

    def __init__(self, sender: str | None, output: Output) -> None:
        self.sender = sender
        self.type = output.type
        self.final = output.final
        self.payload = output.payload
        self.notes: list[tuple[str, tuple[str, ...] | None]] = []


class Postbox:
    """Payloads and notes of the events that somebody may still be shown."""

    def __init__(self, graph: InteractionGraph) -> None:
        """Begin empty, beside a graph that tells what is used up."""
        self._graph = graph
        self._mail: dict[str, _Mail] = {}

    def __contains__(self, event: str) -> bool:
        return event in self._mail

    def put(self, event: str, sender: str | None, output: Output) -> None:
        """Keep what a new event carries."""
        self._mail[event] = _Mail(sender, output)

    def renew(self, event: str, payload: Any) -> None:
        """Keep again what an event carries that was used up, and is to be shown to somebody."""
        history = self._graph.history
        if event not in self._mail and self._graph.knows(event):
            n = self._graph.event(event).n
            name = history.type_names[history.type_of[n]]
            self.put(event, history.sender(n), Output(payload, type=name))

    def sender(self, event: str) -> str | None:
        """The agent that generated an event, ``None`` or ``"system"``."""
        return self._mail[event].sender

    def add_note(self, event: str, note: str, to: tuple[str, ...] | None) -> None:
        """Put a note beside an event's payload, for all or for some recipients."""
        self._mail[event].notes.append((note, to))

    def pending(self, event: str, agent: str | None = None) -> Pending:
        """An event as an agent is shown it; without an agent, as a gate is shown it.

        A gate gets a payload of its own: what it does to it changes nothing.
        """
        mail = self._mail[event]
        notes = tuple(note for note, to in mail.notes if to is None or agent is None or agent in to)
        payload = mail.payload if agent is not None else plain(mail.payload)
        return Pending(event, mail.type, mail.sender, payload, notes, mail.final)

    def let_go(self) -> None:
        """Drop the mail of events that the graph knows no more."""
        self._mail = {event: it for event, it in self._mail.items() if self._graph.knows(event)}

    def tidy(self) -> None:
        """Drop the mail of events that the latest record used up."""
        for event in self._graph.touched:
            if not event.copies and not event.flight and self._is_used_up(event):
                self._mail.pop(event.id, None)

    def _is_used_up(self, event: EventState) -> bool:
        if event.final:
            graph = self._graph
            return event.consumed or graph.is_accepted(event.id) or graph.is_bounced(event.id)
        return event.consumed or not event.work
