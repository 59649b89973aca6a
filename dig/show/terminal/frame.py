"""The data of a live picture: a `Frame` with lanes, marks, events and news."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace


class TimeMark:
    """The marks on a time line: states, each until the next state, and events."""

    STATES, DEEDS, EVENTS = " ·░━", "cwdr>S!", "ieFHA"
    ABSENT, IDLE, HOLDS, BUSY = tuple(STATES)
    CONSUMED, WAITED, DISCARDED, REROUTED, SENT, SUBMITTED, FAILED = tuple(DEEDS)
    INCIDENT, OUTSIDE, FOUND, HEALED, ACCEPTED = tuple(EVENTS)


_ALL_MARKS = TimeMark.STATES + TimeMark.DEEDS + TimeMark.EVENTS
RANKS = {mark: rank for rank, mark in enumerate(_ALL_MARKS)}
"""The rank of each mark; of several in one cell, that of the highest rank is shown."""

MOST_MARKS = 600


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of news.

    Attributes:
        us: The time, in microseconds.
        tag: Its kind, in a word.
        text: One line.
        style: Its colour: `bad`, `warning`, `notice`, `silenced`, `good` or `plain`.
    """

    us: int
    tag: str
    text: str
    style: str


@dataclass(slots=True)
class Lane:
    """The state and the counts of an agent, or of the system."""

    name: str
    state: str = TimeMark.ABSENT
    since_us: int = 0
    holds: int = 0
    turns: int = 0
    sent: int = 0
    fails: int = 0
    has_failed: bool = False  # the latest turn
    # The latest marks suffice: a time line shows at most so many cells.
    marks: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=MOST_MARKS))

    def mark(self, us: int, mark: str) -> None:
        """Put a mark on the time line."""
        self.marks.append((us, mark))

    def become(self, us: int, state: str) -> None:
        """Enter a state, unless it is the present state."""
        if state != self.state:
            self.state, self.since_us = state, us
            self.mark(us, state)

    def copy(self) -> Lane:
        """An independent copy."""
        return replace(self, marks=self.marks.copy())


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture of a moment, as immutable data.

    Attributes:
        us: The moment.
        outcome: The outcome of the run; empty as long as it goes on.
        lanes: The agents, in order of arrival.
        system: The monitor.
        counts: How many records, events, turns, findings and healings there are, in words.
        cost: The tokens and the money that agents have used, in words; empty: they told of none.
        caption: The latest moment that matters, for a reader who knows no graph; empty: none yet.
        failed: The parts of the monitor that failed, in words; empty: none did.
        held: The events on their way, in words, the latest first; a few of them.
        moving: The number of events on their way.
        released: The latest delivery, in words.
        news: The latest news, in order.
    """

    us: int
    outcome: str
    lanes: tuple[Lane, ...]
    system: Lane
    counts: str
    cost: str
    caption: str
    failed: str
    held: tuple[str, ...]
    moving: int
    released: str
    news: tuple[LogLine, ...]
