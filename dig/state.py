"""What can still change in a graph, as objects: events, activations, agents.

Closed history is numbers in arrays (`dig.history`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .history import CONSUMED, FINAL, History
from .lineage import roots_of, sources_of

if TYPE_CHECKING:
    from .problems import Problem
    from .ranges import RangeSet


class Event:
    """An event that can still change.

    Attributes:
        id: Its id.
        n: Its number in order of generation.
        by: Who generated it: an activation, ``None`` (from outside) or ``"system"``.
        type: Its type, as it was emitted.
        final: Whether it carries a submitted answer.
        work: Whether it is work: no system event, no final event, no notice.
        copies: The agents in whose buffer it lies.
        flight: The agents to whom it is on its way, and for each a number that is another one when
            it is sent there again.
        consumed: Whether a delivery edge of it has the fate `consume`.
        cause: Why it is orphaned, if it is.
        us_lost: Since when, in microseconds; set with the cause.
        reroutes: The agents that rerouted it, in order, while it was not consumed.
        discarded_by: The agents that discarded it.
        place: BUFFERED and FLYING, if it is open.
        roots: Its roots; sources: its sources.
        problems: The problems it concerns, while it is open or submitted.
    """

    __slots__ = (
        "_history", "by", "cause", "consumed", "copies", "discarded_by", "final", "flight", "id",
        "n", "place", "problems", "reroutes", "roots", "sources", "type", "us_lost", "work",
    )  # fmt: skip

    roots: RangeSet
    sources: RangeSet
    us_lost: int

    def __init__(
        self, history: History, name: str, n: int, lineage: tuple[RangeSet, RangeSet] | None = None
    ) -> None:
        flags = history.flags[n]
        self.id = name
        self.n = n
        self.by = history.by(n)
        self.type = history.type_names[history.type_of[n]]
        self.final = bool(flags & FINAL)
        self.work = history.is_work(n)
        self.consumed = bool(flags & CONSUMED)
        self.copies: dict[str, None] = {}
        self.flight: dict[str, int] = {}
        self.cause: str | None = None
        self.reroutes: list[str] = []
        self.discarded_by: dict[str, None] = {}
        self.place = 0
        if lineage is not None:
            self.roots, self.sources = lineage
        else:
            self._history = history
        self.problems: tuple[Problem, ...] = ()

    def __getattr__(self, name: str) -> Any:
        # A closed event is asked for its lineage only seldom, and it takes a walk to find it.
        if name == "roots":
            self.roots = roots_of(self._history, self.n)
            return self.roots
        if name == "sources":
            self.sources = sources_of(self._history, self.n)
            return self.sources
        raise AttributeError(name)


class Activation:
    """An activation in progress, or the latest one that ended.

    Attributes:
        id: Its id; n: its number in order of start; agent: whose it is.
        inputs: The events that it sees.
        consumed: Those that it consumed, system events left out, once it ended.
        is_progress: Whether it ended with an output, or with a fate other than `delay`.
        us_start: When it began, in microseconds.
        problems: The problems that it concerns.
    """

    __slots__ = ("agent", "consumed", "id", "inputs", "is_progress", "n", "problems", "us_start")

    def __init__(self, name: str, agent: str, inputs: tuple[Event, ...], us_start: int) -> None:
        self.id = name
        self.agent = agent
        self.inputs = inputs
        self.consumed: list[Event] = []
        self.is_progress = False
        self.us_start = us_start
        self.n = -1
        self.problems: tuple[Problem, ...] = ()


class Agent:
    """A present agent.

    Attributes:
        name: Its name.
        buffer: The events in front of it, in order of delivery.
        lineages: Those of them that have roots, by their roots.
        incoming: The events that are on their way to it.
        activation: What it is doing.
    """

    __slots__ = ("activation", "buffer", "incoming", "lineages", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.buffer: dict[str, Event] = {}
        self.lineages: dict[RangeSet, dict[str, Event]] = {}
        self.incoming: dict[str, Event] = {}
        self.activation: Activation | None = None

    def put(self, event: Event) -> None:
        """Put an event into the buffer."""
        self.buffer[event.id] = event
        self.file(event)

    def file(self, event: Event) -> None:
        """Note by what roots an event is found in the buffer, if it has any."""
        if event.roots:
            self.lineages.setdefault(event.roots, {})[event.id] = event

    def take(self, event: Event) -> None:
        """Take an event out of the buffer."""
        del self.buffer[event.id]
        if event.roots:
            alike = self.lineages[event.roots]
            del alike[event.id]
            if not alike:
                del self.lineages[event.roots]


def by_number(event: Event) -> int:
    """The key that sorts events in order of generation."""
    return event.n
