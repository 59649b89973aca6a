"""One run of an executor's handler: what it was given, and what it has sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dig.adapters import Turn

from .routes import Takers

Edges = Any
"""A group of edges, as the framework's own `EdgeRunner`."""


@dataclass(eq=False)
class Mail:
    """A message that edges have given to an executor, which has not taken it up yet.

    Attributes:
        executor: The executor.
        message: The framework's message.
        events: What that is in the graph; several, if a join has waited for several.
        is_held: Whether one of them was held when it arrived.
    """

    executor: str
    message: Any
    events: tuple[str, ...]
    is_held: bool = False


@dataclass(eq=False)
class Letter:
    """A message that an executor has sent.

    Attributes:
        message: The framework's message.
        payload: What it says.
        type: The type of its events.
        takers: To whom each group of edges gives it; ``None``: that is not decided yet.
        event: The event that stands for it where it is decided later; empty: there is none.
    """

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
    def is_lost(self) -> bool:
        """Whether there are edges, and none of them leads to anybody who can take it."""
        return bool(self.takers) and not any(self.takers.values()) and self.is_decided

    @property
    def legs(self) -> list[tuple[Edges, str]]:
        """The ways that it goes, as far as that is decided."""
        takers = self.takers.items()
        return [(edges, executor) for edges, some in takers for executor in some or ()]


Leg = tuple[Letter, Edges, str]
"""A way that a letter goes: over which edges, to whom."""


@dataclass(eq=False)
class Work:
    """A handler at work, and afterwards, until its edges have decided.

    Attributes:
        mail: What it was given.
        turn: Its turn.
        sent: The messages that it has sent up to now, of the framework.
        letters: The same, once it has returned.
        said: What it has put out, if that is for the outside; ``None``: nothing.
    """

    mail: Mail
    turn: Turn
    sent: list[Any] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    said: Any = None

    @property
    def executor(self) -> str:
        """Whose handler it is."""
        return self.mail.executor

    @property
    def is_last(self) -> bool:
        """Whether nobody in the team goes on with what it has done."""
        asked = [one for one in self.letters if one.type != "notice"]
        return all(one.is_decided and not one.legs for one in asked)


@dataclass(eq=False)
class Parcel:
    """An event that is about to be generated: what it says, and the ways that it goes.

    Equal messages that one handler sends one after the other are one event.
    """

    payload: Any
    type: str
    legs: list[Leg]

    @property
    def seats(self) -> tuple[str, ...]:
        """Whom it is sent to."""
        return tuple(dict.fromkeys(executor for _, _, executor in self.legs))


def parcels(letters: list[Letter]) -> list[Parcel]:
    """What a handler sends. Branches get an event each: that all work on it is by design."""
    found: list[Parcel] = []
    for letter in letters:
        for edges, executor in letter.legs:
            parcel = _same(found, letter, executor)
            if parcel is None:
                parcel = Parcel(letter.payload, letter.type, [])
                found.append(parcel)
            parcel.legs.append((letter, edges, executor))
    return found


def _same(found: list[Parcel], letter: Letter, executor: str) -> Parcel | None:
    """The event of an equal message that was sent before, if possible to the same executor."""
    same = [
        parcel
        for parcel in found
        if parcel.type == letter.type
        and parcel.payload == letter.payload
        and all(one is not letter for one, _, _ in parcel.legs)
    ]
    return next((one for one in same if executor in one.seats), next(iter(same), None))
