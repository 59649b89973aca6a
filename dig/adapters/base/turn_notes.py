"""Notes of the monitor for one turn, and which of them were read."""

from __future__ import annotations

from collections.abc import Iterable

from dig.graph.records import SYSTEM
from dig.monitor.messages import About, Pending


class TurnNotes:
    """The notes for a turn, oldest first.

    Attributes:
        texts: What they say.
        about: The same as data; a note of a gate has none.
        for_others: Whether they are for who comes next, since the agent itself acts on none.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.texts: list[str] = []
        self.about: list[About] = []
        self.for_others = False
        self._read = 0

    def take(self, event: Pending) -> None:
        """Add the notes that stand beside an event, or that an event of the system is."""
        if event.sender == SYSTEM:
            self.texts.append(str(event.payload))
        self.texts.extend(event.notes)
        self.about.extend(event.about)

    def read(self) -> tuple[str, ...]:
        """All notes, which count as read from now on."""
        self._read = len(self.texts)
        return tuple(self.texts)

    @property
    def unread(self) -> tuple[str, ...]:
        """The notes that nobody has read."""
        return tuple(self.texts[0 if self.for_others else self._read :])

    def inherit(self, notes: Iterable[TurnNotes]) -> None:
        """Add what other turns have left unread, each text once."""
        for other in notes:
            self.texts.extend(text for text in other.unread if text not in self.texts)
            self.about.extend(about for about in other.about if about not in self.about)
