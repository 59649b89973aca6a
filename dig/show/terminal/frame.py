"""What a picture of a run is drawn from: a `Frame`, with its lanes, marks, events and news."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

# The marks on a time line. The first four are states, which last until the next state.
ABSENT, IDLE, HOLDS, BUSY = " ·░━"
CONSUMED, WAITED, DISCARDED, REROUTED, SENT, SUBMITTED, FAILED = "cwdr>S!"
INCIDENT, OUTSIDE, FOUND, HEALED, ACCEPTED = "ieFHA"
STATES = " ·░━"
RANKS = {mark: rank for rank, mark in enumerate(STATES + "cwdr>S!" + "ieFHA")}
"""Which mark is shown where several fall into one cell: the one of highest rank."""

MOST_MARKS = 600


@dataclass(frozen=True, slots=True)
class LogLine:
    """Something worth telling.

    Attributes:
        us: When.
        tag: In a word, what.
        text: One line.
        style: How loud it is: `bad`, `warning`, `good` or `plain`.
    """

    us: int
    tag: str
    text: str
    style: str


@dataclass(slots=True)
class Lane:
    """One agent, or the system: what it does, what it did."""

    name: str
    state: str = ABSENT
    since_us: int = 0
    holds: int = 0
    turns: int = 0
    sent: int = 0
    fails: int = 0
    has_failed: bool = False  # the latest turn
    marks: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=MOST_MARKS))

    def mark(self, us: int, mark: str) -> None:
        """Put a mark on the time line."""
        self.marks.append((us, mark))

    def become(self, us: int, state: str) -> None:
        """Enter a state, unless it is in it already."""
        if state != self.state:
            self.state, self.since_us = state, us
            self.mark(us, state)

    def copy(self) -> Lane:
        """A copy that does not change with it."""
        return Lane(
            self.name, self.state, self.since_us, self.holds, self.turns, self.sent, self.fails,
            self.has_failed, self.marks.copy(),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class InFlight:
    """An event and its way, in words."""

    event: str
    type: str
    sender: str
    to: str


@dataclass(frozen=True, slots=True)
class Frame:
    """A scene at one moment; nothing in it changes any more.

    Attributes:
        us: The moment.
        outcome: How the run ended; empty as long as it goes on.
        lanes: The agents, in order of arrival.
        system: The monitor.
        records, events, open, turns, fails, found, healed: How many there are.
        held: The events on their way, the latest first; a few of them.
        moving: How many events are on their way.
        released: The latest delivery.
        news: The latest news, in order.
    """

    us: int
    outcome: str
    lanes: tuple[Lane, ...]
    system: Lane
    records: int
    events: int
    open: int
    turns: int
    fails: int
    found: int
    healed: int
    held: tuple[InFlight, ...]
    moving: int
    released: InFlight | None
    news: tuple[LogLine, ...]
