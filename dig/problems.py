"""What concerns which problem: the part of the state that clock-time patterns look at.

A run that is no session has one problem, the whole run. In a session every work event from
outside that is not answered yet is one, and problems may overlap: what an event concerns follows
from its sources, what an activation concerns from the events that it saw.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .history import FROM_OUTSIDE
from .lineage import Answer, RangeSet, union

if TYPE_CHECKING:
    from .history import History
    from .state import Activation, Event

BUFFERED, FLYING = 1, 2


class Problem:
    """One problem and what is going on about it.

    Attributes:
        event: The work event from outside that poses it; ``None`` for a whole run.
        number: That event's number in order of generation (-1 for a whole run).
        open: The open events that concern it.
        buffered: How many of them lie in a buffer.
        flying: How many of them are on their way.
        running: The activations in progress that concern it, in order of their start.
        last: The activation concerning it that ended last.
        submitted: The final events concerning it that were neither bounced nor accepted yet.
        is_posed: Whether work about it has come from outside.
        answered: Whether an answer to it was accepted.
    """

    __slots__ = (
        "answered", "buffered", "event", "flying", "is_posed", "last", "number", "open",
        "running", "submitted",
    )  # fmt: skip

    def __init__(self, event: str | None = None, number: int = -1) -> None:
        self.event = event
        self.number = number
        self.open: dict[str, Event] = {}
        self.buffered = 0
        self.flying = 0
        self.running: dict[str, Activation] = {}
        self.last: str | None = None
        self.submitted: dict[str, None] = {}
        self.is_posed = event is not None
        self.answered = False

    @property
    def subject(self) -> dict[str, str]:
        """How a finding names it."""
        return {} if self.event is None else {"event": self.event}


class Problems:
    """The problems of a run, kept up to date by the graph.

    Attributes:
        touched: The problems that the latest record changed something about.
    """

    def __init__(self, history: History, session: bool) -> None:
        self._history = history
        self._whole = None if session else Problem()
        self._by_source: dict[int, Problem] = {}
        self._answered: set[int] = set()  # source numbers
        self.touched: dict[Problem, None] = {}

    def pose(self, event: str, number: int) -> None:
        """A work event came from outside: in a session, a new problem."""
        problem = self._whole
        if problem is None:
            problem = self._by_source[len(self._history.source_events) - 1] = Problem(event, number)
        problem.is_posed = True
        self.touched[problem] = None

    def concerned(self, sources: RangeSet) -> tuple[Problem, ...]:
        """The problems, not yet answered, that something with these sources concerns."""
        if self._whole is not None:
            return (self._whole,)
        known = self._by_source
        return tuple(known[s] for s in sources if s in known)

    def seen_by(self, events: Iterable[Event]) -> tuple[Problem, ...]:
        """The problems that an activation concerns which sees these events."""
        return self.concerned(union(event.sources for event in events))

    def move(self, event: Event, now: int) -> None:
        """An event's place changes from `event.place` to `now` (of BUFFERED and FLYING)."""
        before = event.place
        event.place = now
        for problem in event.problems:
            problem.buffered += (now & BUFFERED) - (before & BUFFERED)
            problem.flying += (now & FLYING) // FLYING - (before & FLYING) // FLYING
            if now and not before:
                problem.open[event.id] = event
            elif before and not now:
                del problem.open[event.id]
            self.touched[problem] = None

    def submit(self, event: Event) -> None:
        """A final event was generated."""
        for problem in event.problems:
            problem.submitted[event.id] = None
            self.touched[problem] = None

    def decide(self, event: Event) -> None:
        """A final event was bounced or accepted."""
        for problem in event.problems:
            problem.submitted.pop(event.id, None)
            self.touched[problem] = None

    def started(self, activation: Activation) -> None:
        """An activation begins."""
        for problem in activation.problems:
            problem.running[activation.id] = activation
            self.touched[problem] = None

    def stopped(self, activation: Activation, has_ended: bool) -> None:
        """An activation ends, or (without an end) its agent leaves."""
        for problem in activation.problems:
            del problem.running[activation.id]
            if has_ended:
                problem.last = activation.id
            self.touched[problem] = None

    def asked(self, behind: Answer) -> RangeSet:
        """The sources that a final event answers, as far as they are not answered yet."""
        history = self._history
        outside = (e for e in sorted(behind.consumed) if history.generator[e] == FROM_OUTSIDE)
        own = (history.sources[e].ranges[0] for e in outside)  # each is its own one source
        return RangeSet.of(source for source in own if source not in self._answered)

    def settle(self, behind: Answer) -> None:
        """A final event was accepted: what stands behind it is settled, its sources answered."""
        for source in self.asked(behind):
            self._answered.add(source)
            problem = self._by_source.pop(source, None)
            if problem is not None:
                problem.answered = True
                self.touched[problem] = None
        for v in behind.activations:
            self._history.settled[v] = 1

    @property
    def answered(self) -> list[int]:
        """The numbers of the environment events that are answered, in order of generation."""
        return [self._history.source_events[s] for s in sorted(self._answered)]
