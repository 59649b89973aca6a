"""Payloads of the events still on their way, and notes per recipient.

The graph knows only structure; what an agent is shown comes from here. An event's payload is
dropped as soon as no agent can be shown it any more, so memory follows the work that is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from dig._util.json_values import plain
from dig._util.ranges import NOTHING, RangeSet
from dig.graph.graph import InteractionGraph

from .messages import About, Output, Pending
from .relevance import Scope

_T = TypeVar("_T")


_Beside = tuple[_T, tuple[str, ...] | None, Scope | None]
"""What stands beside a payload, the recipients that are shown it, and the turns that it is for."""


class _Notes:
    __slots__ = ("about", "scope", "texts")

    def __init__(self, scope: Scope | None = None) -> None:
        self.scope = scope
        self.texts: list[_Beside[str]] = []
        self.about: list[_Beside[About]] = []


class PayloadStore:
    """Payloads and notes of the events an agent or a gate may still be shown.

    Attributes:
        keeps_problems: Whether problems, and parts of them, keep their payloads when they are used
            up, to be sent again.
    """

    def __init__(self, graph: InteractionGraph) -> None:
        """Begin empty, beside the graph."""
        self._graph = graph
        # The sender of each event, and the output that carries its payload.
        self._carried: dict[str, tuple[str | None, Output]] = {}
        self._notes: dict[str, _Notes] = {}  # of the few events that have any
        self.keeps_problems = False

    def __contains__(self, event: str) -> bool:
        return event in self._carried

    def put(
        self, event: str, sender: str | None, output: Output, about: About | None = None,
        scope: Scope | None = None,
    ) -> None:  # fmt: skip
        """Keep the payload of a new event.

        Args:
            event: Its id.
            sender: The agent that generated it, ``None`` or ``"system"``.
            output: The output that carries the payload.
            about: Of a system event: what it is about, as data.
            scope: Of a system event: the turns that it is for; ``None``: all.
        """
        self._carried[event] = sender, output
        if about is not None or scope is not None:
            notes = self._notes[event] = _Notes(scope)
            notes.about += [] if about is None else [(about, None, None)]

    def restore(self, event: str, payload: Any) -> None:
        """Keep the payload of a used-up event again, to be shown to an agent."""
        graph = self._graph
        if event not in self._carried and graph.knows(event):
            history, n = graph.history, graph.event(event).n
            name = history.types.names[history.type_of[n]]
            self.put(event, history.sender(n), Output(payload, type=name))

    def sender(self, event: str) -> str | None:
        """The sender of an event: an agent, ``None`` or ``"system"``."""
        return self._carried[event][0]

    def payload(self, event: str) -> Any:
        """The payload of an event, to look at; ``None``, if it is used up or unknown."""
        carried = self._carried.get(event)
        return None if carried is None else carried[1].payload

    def add_note(
        self, event: str, note: str, to: tuple[str, ...] | None, about: About | None = None,
        scope: Scope | None = None,
    ) -> None:  # fmt: skip
        """Put a note beside an event's payload.

        Args:
            event: Its id.
            note: The words; empty: there are none.
            to: The recipients that are shown the note; ``None``: all.
            about: The subject of the note, as data.
            scope: The turns that it is for; ``None``: all.
        """
        if event not in self._carried:
            raise KeyError(event)
        notes = self._notes.setdefault(event, _Notes())
        if note:
            notes.texts.append((note, to, scope))
        if about is not None:
            notes.about.append((about, to, scope))

    def pending(
        self, event: str, agent: str | None = None, concerned: RangeSet = NOTHING
    ) -> Pending:
        """An event as shown to an agent; without an agent, as shown to a gate.

        A gate gets a payload of its own, so it can change nothing by changing that.

        Args:
            event: Its id.
            agent: The agent.
            concerned: The sources of the events in front of the agent.
        """
        (sender, it), notes = self._carried[event], self._notes.get(event)
        payload = it.payload if agent is not None else plain(it.payload)
        if notes is None:
            return Pending(event, it.type, sender, payload, (), it.final)
        texts = self._shown_to(agent, concerned, notes.texts)
        about = self._shown_to(agent, concerned, notes.about)
        return Pending(event, it.type, sender, payload, texts, it.final, about)

    def scope(self, event: str) -> Scope | None:
        """The scope of a system event; ``None``: all turns, or another event."""
        notes = self._notes.get(event)
        return None if notes is None else notes.scope

    def _shown_to(
        self, agent: str | None, concerned: RangeSet, beside: Sequence[_Beside[_T]]
    ) -> tuple[_T, ...]:
        """An agent's share of the notes beside an event; a gate is shown all."""
        return tuple(
            item
            for item, to, scope in beside
            if agent is None
            or (
                (to is None or agent in to)
                and (scope is None or scope.when_shown(self._graph, concerned) == "now")
            )
        )

    def drop_consumed(self) -> None:
        """Drop the payloads of events closed by the latest record."""
        graph = self._graph
        for event in graph.touched:
            if event.id in graph.live or event.id not in self._carried:
                continue
            is_problem = event.by is None and event.work
            if self.keeps_problems and (is_problem or graph.history.is_part(event.n)):
                continue
            self._drop(event.id)

    def forget(self) -> None:
        """Drop the payloads of evicted events."""
        for event in [name for name in self._carried if not self._graph.knows(name)]:
            self._drop(event)

    def _drop(self, event: str) -> None:
        del self._carried[event]
        self._notes.pop(event, None)
