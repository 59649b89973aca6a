"""The changeable objects of a graph; closed ones are in `dig.graph.history`."""

from __future__ import annotations

from copy import copy
from operator import attrgetter
from typing import Any

from dig._util.ranges import NOTHING, RangeSet

from .history import CONSUMED, FINAL, NOTICE_TYPE, History
from .lineage import roots_of, sources_of
from .records import SYSTEM

BUFFERED, FLYING = 1, 2
"""The places of open work: in front of an agent, on its way to one, or both."""


class EventState:
    """An event with changes to come.

    Attributes:
        id: Its id.
        n: Its number in order of generation.
        by: Its generator: an activation, ``None`` (from outside) or ``"system"``.
        type: Its type, as it was emitted; final: whether it carries a submitted answer.
        work: Whether the event is work: no system event, no final event, no notice.
        copies: The agents in whose buffer it lies.
        flight: The agents to which it is on its way, each with a number that changes when the
            event is sent there again.
        consumed: Whether a delivery edge of it has the fate `consume`.
        cause: Why it is orphaned, if it is.
        us_lost: The time since which it is orphaned, in microseconds; set with the cause.
        us_sent: The time since which it is FLYING alone; set with the place.
        reroutes: The agents that rerouted it, in order, while it was not consumed.
        discarded_by: The agents that discarded it; sent_to: where it was sent last, if known.
        place: BUFFERED and FLYING, if it is open; roots: its roots; sources: its sources.
        is_kept: Whether a delivery policy or the host keeps it on its way on purpose.
        problems: The problems it concerns, while it is open or submitted.
    """

    __slots__ = (
        "by", "cause", "consumed", "copies", "discarded_by", "final", "flight", "id", "is_kept",
        "n", "place", "problems", "reroutes", "roots", "sent_to", "sources", "type", "us_lost",
        "us_sent", "work",
    )  # fmt: skip

    roots: RangeSet
    sources: RangeSet
    us_lost: int
    us_sent: int

    def __init__(self, name: str, n: int, by: str | None, type: str, flags: int) -> None:
        self.id = name
        self.n = n
        self.by = by
        self.type = type
        self.final = flags & FINAL > 0
        self.work = by != SYSTEM and not flags & (FINAL | NOTICE_TYPE)
        self.consumed = flags & CONSUMED > 0
        self.copies: dict[str, None] = {}
        self.flight: dict[str, int] = {}
        self.cause: str | None = None
        self.reroutes: list[str] = []
        self.discarded_by: dict[str, None] = {}
        self.sent_to: tuple[str, ...] = ()
        self.place = 0
        self.is_kept = False
        self.problems: tuple[Problem, ...] = ()


class ClosedEvent(EventState):
    """A closed event, named again; a walk computes the lineage on demand."""

    __slots__ = ("_history",)

    def __init__(self, history: History, name: str, n: int, by: str | None) -> None:
        super().__init__(name, n, by, history.types.names[history.type_of[n]], history.flags[n])
        self._history = history

    # Called only for a slot that is not set yet: most closed events are never asked for these.
    def __getattr__(self, name: str) -> Any:
        if name == "roots":
            self.roots = roots_of(self._history, self.n)
            return self.roots
        if name == "sources":
            self.sources = sources_of(self._history, self.n)
            return self.sources
        raise AttributeError(name)


class ActivationState:
    """An activation in progress, or the latest ended activation.

    Attributes:
        id: Its id; n: its number in order of start; agent: its agent.
        inputs: The events that it sees; by_id: the same by id.
        consumed: The inputs that the activation consumed, system events left out, once it ended.
        is_progress: Whether the activation ended with an output, or with a fate other than `delay`.
        us_start: When it began, in microseconds.
        waits: Whether it waits on purpose, for a person for instance.
        problems: The problems that it concerns.
    """

    __slots__ = (
        "agent", "by_id", "consumed", "id", "inputs", "is_progress", "n", "problems", "us_start",
        "waits",
    )  # fmt: skip

    def __init__(self, name: str, agent: str, by_id: dict[str, EventState], us: int) -> None:
        self.id = name
        self.agent = agent
        self.inputs = tuple(by_id.values())
        self.by_id = by_id
        self.consumed: list[EventState] = []
        self.is_progress = False
        self.waits = False
        self.us_start = us
        self.n = -1
        self.problems: tuple[Problem, ...] = ()


class AgentState:
    """A present agent.

    Attributes:
        name: Its name.
        buffer: The events in front of it, in order of delivery.
        lone: The only input that has roots, if there is one.
        lineages: Of several, the inputs by ranges of roots and of sources, as generated.
        incoming: The events that are on their way to it.
        activation: Its activation in progress.
    """

    __slots__ = ("activation", "buffer", "incoming", "lineages", "lone", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.buffer: dict[str, EventState] = {}
        self.lone: EventState | None = None
        self.lineages: dict[tuple[tuple[int, ...], ...], dict[str, EventState]] = {}
        self.incoming: dict[str, EventState] = {}
        self.activation: ActivationState | None = None

    def put(self, event: EventState) -> None:
        """Put an event into the buffer."""
        self.buffer[event.id] = event
        if event.roots.ranges:
            self.file(event)

    def file(self, event: EventState) -> None:
        """File an event of the buffer with roots under these and its sources."""
        if not self.lineages:  # it is compared with others only, and most are alone
            lone, self.lone = self.lone, event if self.lone is None else None
            if lone is None:
                return
            self.lineages[lone.roots.ranges, lone.sources.ranges] = {lone.id: lone}
        lineage = event.roots.ranges, event.sources.ranges
        alike = self.lineages.setdefault(lineage, {})
        # An event may be delivered after a younger one: then the order is made again.
        is_next = not alike or alike[next(reversed(alike))].n < event.n
        alike[event.id] = event
        if not is_next:
            in_order = sorted(alike.values(), key=by_number)
            self.lineages[lineage] = {event.id: event for event in in_order}

    def take(self, event: EventState) -> None:
        """Take an event out of the buffer."""
        del self.buffer[event.id]
        if event is self.lone:
            self.lone = None
        elif event.roots.ranges:
            lineage = event.roots.ranges, event.sources.ranges
            alike = self.lineages[lineage]
            del alike[event.id]
            if not alike:
                del self.lineages[lineage]


by_number = attrgetter("n")
"""The number of an event, the sort key for the order of generation."""


class Problem:
    """A problem, or several problems with the same state.

    Attributes:
        sources: The events from outside that pose it, as source numbers; none for a whole run.
        open: The open events that concern it.
        places: The number of them in each place (BUFFERED, FLYING, both); the first is no number.
        running: The activations in progress that concern it, in order of their start.
        last: The activation concerning it that ended last.
        submitted: The final events concerning it that were neither bounced nor accepted yet.
        is_posed: Whether work about it has come from outside.
        is_over: Whether an answer to it was accepted, or it became part of another.
        is_failed: Whether the host has said that a request about it ended without an answer.
        stands: DONE or STUCK of `dig.graph.records`, or 0, as it stood after the latest record.
        since: The moment since which it stands so, and no activation about it has made progress,
            failed, or waited on purpose to its end.
        timed: The idle windows that have an alarm about it, as flags (`Problems.windows`).
        marks: The state of detectors about it, by detector, copied when the problem is parted. A
            session keeps the problem for as long as one of them `is_waiting`.
    """

    __slots__ = (
        "is_failed", "is_over", "is_posed", "last", "marks", "open", "places", "running",
        "since", "sources", "stands", "submitted", "timed",
    )  # fmt: skip

    def __init__(self, sources: RangeSet = NOTHING, is_posed: bool = False) -> None:
        self.sources = sources
        self.open: dict[str, EventState] = {}
        self.places = [0, 0, 0, 0]
        self.running: dict[str, ActivationState] = {}
        self.last: str | None = None
        self.submitted: dict[str, EventState] = {}
        self.is_posed = is_posed
        self.is_over = False
        self.is_failed = False
        self.stands = 0
        self.since = 0
        self.timed = 0
        self.marks: dict[Any, Any] = {}

    def is_like(self, other: Problem) -> bool:
        """Whether the same open events, activations and answers concern both problems."""
        return (
            self.is_posed == other.is_posed
            and self.is_failed == other.is_failed
            and self.last == other.last
            and self.open.keys() == other.open.keys()
            and self.running.keys() == other.running.keys()
            and self.submitted.keys() == other.submitted.keys()
        )

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is open, running or submitted, and no detector waits."""
        return not self.concerning() and not any(
            detector.is_waiting(self) for detector in self.marks
        )

    def concerning(self) -> list[EventState | ActivationState]:
        """The open events, running activations and submitted answers about the problem."""
        return [*self.open.values(), *self.running.values(), *self.submitted.values()]

    def part(self, sources: RangeSet) -> Problem:
        """Move some sources to a new problem in the same state, and return the new problem."""
        other = Problem(sources, self.is_posed)
        other.open, other.running = dict(self.open), dict(self.running)
        other.submitted, other.last = dict(self.submitted), self.last
        other.is_failed = self.is_failed
        other.places = [*self.places]
        other.stands, other.since = self.stands, self.since
        other.marks = {detector: copy(mark) for detector, mark in self.marks.items()}
        self.sources = self.sources.minus(sources)
        for member in self.concerning():
            member.problems += (other,)
        return other
