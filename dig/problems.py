"""What concerns which problem: the part of the state that clock-time patterns look at.

A run that is no session has one problem, the whole run. In a session every event from outside
that is not answered yet is one, and problems may overlap: what an event concerns follows from its
sources, what an activation concerns from the events that it saw.

Problems that cannot be told apart, because all that is going on about one is about the other too,
are kept as one `Problem` with several sources. So a conversation that has merged a thousand
problems costs what one costs. Such a problem is parted again when something concerns only some of
its sources.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from itertools import compress
from typing import TYPE_CHECKING, Any

from .lineage import Answer
from .ranges import NOTHING, RangeSet, union

if TYPE_CHECKING:
    from .history import History
    from .state import Activation, Event

BUFFERED, FLYING = 1, 2


class Problem:
    """A problem, or several that cannot be told apart, and what is going on about it.

    Attributes:
        sources: The events from outside that pose it, as source numbers; none for a whole run.
        open: The open events that concern it.
        buffered: How many of them lie in a buffer.
        flying: How many of them are on their way.
        running: The activations in progress that concern it, in order of their start.
        last: The activation concerning it that ended last.
        submitted: The final events concerning it that were neither bounced nor accepted yet.
        is_posed: Whether work about it has come from outside.
        is_over: Whether an answer to it was accepted, or it became part of another.
        marks: What detectors remember about it, by detector; copied when it is parted. One that
            says by `is_pending` that it waits for nothing lets a session give the problem up.
    """

    __slots__ = (
        "buffered", "flying", "is_over", "is_posed", "last", "marks", "open", "running",
        "sources", "submitted",
    )  # fmt: skip

    def __init__(self, sources: RangeSet = NOTHING, is_posed: bool = False) -> None:
        self.sources = sources
        self.open: dict[str, Event] = {}
        self.buffered = 0
        self.flying = 0
        self.running: dict[str, Activation] = {}
        self.last: str | None = None
        self.submitted: dict[str, Event] = {}
        self.is_posed = is_posed
        self.is_over = False
        self.marks: dict[object, Any] = {}

    def is_like(self, other: Problem) -> bool:
        """Whether everything going on about one of the two is about the other too."""
        return (
            self.is_posed == other.is_posed
            and self.last == other.last
            and self.open.keys() == other.open.keys()
            and self.running.keys() == other.running.keys()
            and self.submitted.keys() == other.submitted.keys()
        )

    @property
    def is_quiet(self) -> bool:
        """Whether nothing goes on about it, and no detector waits for its time to pass."""
        return not self.concerning() and not any(
            getattr(mark, "is_pending", True) for mark in self.marks.values()
        )

    def concerning(self) -> list[Event | Activation]:
        """All that is going on about it."""
        return [*self.open.values(), *self.running.values(), *self.submitted.values()]

    def part(self, sources: RangeSet) -> Problem:
        """Let some of its sources go, as a problem of their own in the same state."""
        other = Problem(sources, self.is_posed)
        other.open, other.running = dict(self.open), dict(self.running)
        other.submitted, other.last = dict(self.submitted), self.last
        other.buffered, other.flying = self.buffered, self.flying
        other.marks = {detector: copy(mark) for detector, mark in self.marks.items()}
        self.sources = self.sources.minus(sources)
        for one in self.concerning():
            one.problems += (other,)
        return other


class Problems:
    """The problems of a run, kept up to date by the graph.

    Attributes:
        touched: The problems that the latest record changed something about.
    """

    def __init__(self, history: History, session: bool) -> None:
        self._history = history
        self._whole = None if session else (Problem(),)
        # Of every problem of a session the ranges of its sources: start, end, problem; sorted.
        self._ranges: list[tuple[int, int, Problem]] = []
        self._answered = bytearray()  # source number -> whether it is answered
        self.touched: dict[Problem, None] = {}

    def pose(self, is_work: bool) -> None:
        """An event came from outside: in a session, a new problem if it is work."""
        self._answered.append(0)
        if self._whole is None:
            sources = RangeSet.single(len(self._history.source_events) - 1)
            problem = Problem(sources, is_work)
            self._enter(problem)
        else:
            problem = self._whole[0]
            problem.is_posed |= is_work
        self.touched[problem] = None

    def concerned(self, sources: RangeSet) -> tuple[Problem, ...]:
        """The problems, not yet answered, that something with these sources concerns."""
        if self._whole is not None:
            return self._whole
        found = self._touching(sources)
        for problem in found:
            others = problem.sources.minus(sources)
            if others:
                self._withdraw(problem)
                other = problem.part(others)
                self._enter(problem)
                self._enter(other)
                self.touched[other] = None
        return tuple(found)

    def seen_by(self, events: Iterable[Event]) -> tuple[Problem, ...]:
        """The problems that an activation concerns which sees these events."""
        return self.concerned(union(event.sources for event in events))

    def open_events(self, sources: RangeSet) -> dict[str, Event]:
        """The open events that have some of these sources; to ask parts no problem."""
        return {
            name: event
            for problem in self._whole or self._touching(sources)
            for name, event in problem.open.items()
            if not event.sources.isdisjoint(sources)
        }

    def move(self, event: Event, now: int) -> None:
        """An event's place changes from `event.place` to `now` (of BUFFERED and FLYING)."""
        before = event.place
        event.place = now
        if not before:
            event.problems = self.concerned(event.sources)
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
        event.problems = self.concerned(event.sources)
        for problem in event.problems:
            problem.submitted[event.id] = event
            self.touched[problem] = None

    def decide(self, event: Event) -> None:
        """A final event was bounced or accepted."""
        for problem in self.concerned(event.sources):
            problem.submitted.pop(event.id, None)
            self.touched[problem] = None

    def started(self, activation: Activation) -> None:
        """An activation begins."""
        activation.problems = self.seen_by(activation.inputs)
        for problem in activation.problems:
            problem.running[activation.id] = activation
            self.touched[problem] = None

    def ended(self, activation: Activation) -> None:
        """An activation ends; with progress, what it concerned may be one problem now."""
        self.cut_off(activation)
        for problem in activation.problems:
            problem.last = activation.id
        if activation.is_progress and len(activation.problems) > 1:
            self._merge(activation)

    def cut_off(self, activation: Activation) -> None:
        """An activation is in progress no more."""
        for problem in activation.problems:
            del problem.running[activation.id]
            self.touched[problem] = None

    def asked(self, behind: Answer) -> RangeSet:
        """The sources that a final event answers, as far as they are not answered yet."""
        events = self._history.source_events
        own = (bisect_left(events, e) for e in sorted(behind.outside))
        return RangeSet.of(source for source in own if not self._answered[source])

    def settle(self, behind: Answer) -> None:
        """A final event was accepted: what stands behind it is settled, its sources answered."""
        asked = self.asked(behind)
        for source in asked:
            self._answered[source] = 1
        for problem in self.concerned(asked):
            self._withdraw(problem)
            problem.is_over = True
            self.touched[problem] = None
        for v in behind.activations:
            self._history.settled[v] = 1

    @property
    def waiting(self) -> RangeSet:
        """The events from outside that are not answered, as source numbers."""
        return RangeSet.of(n for n, done in enumerate(self._answered) if not done)

    @property
    def latest(self) -> list[str]:
        """The activations that worked last on a problem of a session, not yet answered."""
        return [problem.last for _, _, problem in self._ranges if problem.last is not None]

    def give_up(self, is_over: Callable[[int], bool]) -> list[int]:
        """Wait no more for answers to problems about which nothing goes on, or can any more.

        Args:
            is_over: Whether nothing can come any more of the event with this number.

        Returns:
            The events that are not waited for any more, by number.
        """
        events, given_up = self._history.source_events, list[int]()
        for problem in dict.fromkeys(problem for _, _, problem in self._ranges):
            if problem.is_quiet and all(is_over(events[source]) for source in problem.sources):
                self._withdraw(problem)
                problem.is_over = True
                for source in problem.sources:
                    self._answered[source] = 1
                    given_up.append(events[source])
        return given_up

    def renumber(self, rank: Sequence[int]) -> None:
        """Sources have new numbers: `rank` has them by the old ones."""
        problems = dict.fromkeys(problem for _, _, problem in self._ranges)
        stays = (rank[n + 1] > rank[n] for n in range(len(self._answered)))
        self._answered = bytearray(compress(self._answered, stays))
        self._ranges, self.touched = [], {}
        for problem in problems:
            problem.sources = problem.sources.renumbered(rank)
            self._enter(problem)

    @property
    def answered(self) -> list[int]:
        """The numbers of the environment events that are answered, in order of generation."""
        events = self._history.source_events
        return [event for event, done in zip(events, self._answered, strict=True) if done]

    def _merge(self, activation: Activation) -> None:
        """Make one of the problems that cannot be told apart any more.

        Only when an activation that concerned them has made progress: that ended what detectors
        have observed about each of them for a while, so that their marks need not be compared.
        """
        kept: list[Problem] = []
        for problem in activation.problems:
            if problem.is_over:
                continue
            twin = next((other for other in kept if other.is_like(problem)), None)
            if twin is None:
                kept.append(problem)
                continue
            self._withdraw(problem)
            self._withdraw(twin)
            twin.sources = twin.sources.union(problem.sources)
            self._enter(twin)
            problem.is_over = True
            for one in problem.concerning():
                one.problems = tuple(p for p in one.problems if p is not problem)
        activation.problems = tuple(kept)

    def _touching(self, sources: RangeSet) -> dict[Problem, None]:
        """The problems of a session, not yet answered, that have some of these sources."""
        found: dict[Problem, None] = {}
        for start, end in sources.pairs():
            i = max(0, bisect_left(self._ranges, (start + 1,)) - 1)
            while i < len(self._ranges) and self._ranges[i][0] < end:
                if self._ranges[i][1] > start:
                    found[self._ranges[i][2]] = None
                i += 1
        return found

    def _enter(self, problem: Problem) -> None:
        for start, end in problem.sources.pairs():
            insort(self._ranges, (start, end, problem))

    def _withdraw(self, problem: Problem) -> None:
        for start, _ in problem.sources.pairs():
            del self._ranges[bisect_left(self._ranges, (start,))]
