"""The problems of a run: the open work about each problem, and since when nothing moves.

Clock-time patterns look at *problems*. A run that is no session has one problem, the whole run. In
a session each event from outside that is not answered yet poses one, and problems may overlap: an
event concerns the problems of its sources, an activation those of the events that it saw.

Problems with identical open events, running activations and submitted answers share one `Problem`
with several sources, so a conversation that has merged a thousand problems costs what one costs.
It is parted again when something concerns only some of its sources.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from itertools import compress

from dig._util.ranges import NOTHING, RangeSet, union

from .history import History
from .lineage import Provenance
from .records import DONE, STUCK, UNTIMED
from .state import ActivationState, EventState, Problem

MOST_KNOWN = 100
"""The number of sets of sources of which it is remembered which problems have them."""


class Problems:
    """The problems of a run, kept up to date by the graph.

    Attributes:
        touched: The problems that the latest record changed.
        windows: By how a problem stands: the idle windows of detectors for that, as flags.
        number_answered: The number of requests that are answered, without notices.
    """

    def __init__(self, history: History, session: bool) -> None:
        self._history = history
        self._run_problems = None if session else (Problem(),)
        # Of every problem of a session the ranges of its sources: start, end, problem; sorted.
        self._ranges: list[tuple[int, int, Problem]] = []
        # The results of `problems_of`, until the problems change.
        self._by_sources: dict[tuple[int, ...], tuple[Problem, ...]] = {}
        self._answered = bytearray()  # source number -> whether it is answered
        self.touched: dict[Problem, None] = {}
        self.windows = {DONE: 0, STUCK: 0}
        self.number_answered = 0

    def add_window(self, stands: int) -> int:
        """Add a detector's idle window; returns the flag for problems that have its alarm."""
        flag = sum(self.windows.values()) + 1  # the next power of two
        self.windows[stands] |= flag
        return flag

    def pose(self, is_work: bool) -> None:
        """Register an event from outside: in a session, work poses a new problem."""
        self._answered.append(0)
        if self._run_problems is None:
            sources = RangeSet.single(len(self._history.source_events) - 1)
            problem = Problem(sources, is_work)
            self._enter(problem)
        else:
            problem = self._run_problems[0]
            problem.is_posed |= is_work
        self.touched[problem] = None

    def problems_of(self, sources: RangeSet) -> tuple[Problem, ...]:
        """The unanswered problems with some of the sources of an event or activation."""
        if self._run_problems is not None:
            return self._run_problems
        problems = self._by_sources.get(sources.ranges)
        if problems is None:
            problems = self._part_for(sources)
            if len(self._by_sources) == MOST_KNOWN:
                self._by_sources = {}
            # Bounded, and emptied by each change of sources: events of one lineage come in a row.
            self._by_sources[sources.ranges] = problems
        return problems

    def _part_for(self, sources: RangeSet) -> tuple[Problem, ...]:
        """Find the problems by source; a problem with further sources is parted."""
        problems = self.touching(sources)
        for problem in problems:
            if problem.sources.ranges == sources.ranges:
                continue
            # From here on its sources have different states, so one object cannot stand for both.
            remainder = problem.sources.minus(sources)
            if remainder.ranges:
                self._withdraw(problem)
                other = problem.part(remainder)
                self._enter(problem)
                self._enter(other)
                self.touched[other] = None
        return tuple(problems)

    def look(self, now: int) -> int:
        """Update the touched problems' standing at the moment `now`, and return the flags."""
        flags = 0
        for problem in self.touched:
            # The condition of DL and MC is three counts, so no record costs a walk over events.
            _, buffered, flying, both = problem.places
            if flying or both or problem.is_over or problem.is_failed:
                stands = 0
            elif buffered:  # in a session, a notice poses no problem
                stands = STUCK if problem.is_posed or not problem.sources else 0
            else:
                stands = DONE if problem.is_posed and not problem.submitted else 0
            # Windows begin here: detectors read `since`, and set only an alarm meanwhile.
            if stands != problem.stands:
                problem.stands, problem.since = stands, now
            if stands:
                windows = self.windows[stands]
                # Where all windows have their alarm there is nothing to look at until it goes off.
                flags |= stands
                if not windows or problem.timed & windows != windows:
                    flags |= UNTIMED
        return flags

    def open_events(self, sources: RangeSet) -> dict[str, EventState]:
        """The open events with some of the given sources; asking parts no problem."""
        return {
            name: event
            for problem in self.touching(sources)
            for name, event in problem.open.items()
            if not event.sources.isdisjoint(sources)
        }

    def unanswered_sources(self, sources: RangeSet) -> RangeSet:
        """The unanswered sources among some; asking parts no problem."""
        if self._run_problems is not None:
            return RangeSet.of(s for s in sources if not self._answered[s])
        bounds = sources.ranges
        if len(bounds) == 2 and bounds[0] + 1 == bounds[1] <= len(self._answered):  # the usual case
            return NOTHING if self._answered[bounds[0]] else sources
        return union([problem.sources.common(sources) for problem in self.touching(sources)])

    def move(self, event: EventState, now: int) -> None:
        """Change an event's place from `event.place` to `now` (of BUFFERED and FLYING)."""
        before = event.place
        event.place = now
        if not before:  # it opens: its problems stay the same until it is closed or parted
            event.problems = self._run_problems or self.problems_of(event.sources)
        for problem in event.problems:
            places = problem.places
            places[before] -= 1
            places[now] += 1
            if not before:
                problem.open[event.id] = event
            elif not now:
                del problem.open[event.id]
            self.touched[problem] = None

    def submit(self, event: EventState) -> None:
        """Register the generation of a final event."""
        event.problems = self.problems_of(event.sources)
        for problem in event.problems:
            problem.submitted[event.id] = event
            self.touched[problem] = None

    def fail(self, sources: RangeSet | None) -> None:
        """Register a request's end without an answer; ``None``: the request is not named."""
        for problem in self._run_problems or (() if sources is None else self.problems_of(sources)):
            problem.is_failed = True
            self.touched[problem] = None

    def decide(self, event: EventState) -> None:
        """Register the bounce or the acceptance of a final event."""
        for problem in self.problems_of(event.sources):
            problem.submitted.pop(event.id, None)
            self.touched[problem] = None

    def start(self, activation: ActivationState) -> None:
        """An activation begins."""
        inputs = activation.inputs
        activation.problems = self._run_problems or self.problems_of(
            inputs[0].sources if len(inputs) == 1 else union([e.sources for e in inputs])
        )
        for problem in activation.problems:  # not touched: a window can only end later by that
            problem.running[activation.id] = activation

    def end(
        self, activation: ActivationState, now: int, *, has_error: bool = False,
        has_left: bool = False,
    ) -> None:  # fmt: skip
        """Register an activation as no longer in progress; progress may merge its problems.

        Args:
            activation: The activation.
            now: The moment.
            has_error: Whether it ended with an error.
            has_left: Whether its agent has left, so that it never ends.
        """
        # Idle windows begin anew by progress, by an error, and by a wait on purpose.
        starts_anew = activation.is_progress or has_error or activation.waits
        for problem in activation.problems:
            del problem.running[activation.id]
            self.touched[problem] = None
            if starts_anew:
                problem.since = now
            if not has_left:
                problem.last = activation.id
        # Only here can two problems come to have the same state: their last activation is this one.
        if activation.is_progress and len(activation.problems) > 1:
            self._merge(activation)

    def asked_sources(self, behind: Provenance) -> RangeSet:
        """The sources answered by a final event, as far as they are unanswered."""
        events = self._history.source_events
        own = (bisect_left(events, e) for e in sorted(behind.outside))
        return RangeSet.of(source for source in own if not self._answered[source])

    def standing(self, behind: Provenance) -> RangeSet:
        """The sources that count for a final event: unanswered, and of no failed request.

        An agent that remembers would else be told of a failed request with each later answer.
        """
        sources = self.asked_sources(behind)
        for problem in self.touching(sources):
            if problem.is_failed:
                sources = sources.minus(problem.sources)
        return sources

    def settle(self, behind: Provenance) -> None:
        """Register an accepted final event: the provenance is settled, the sources are answered."""
        sources = self.asked_sources(behind)
        for source in sources:
            self._answered[source] = 1
            self.number_answered += self._history.is_work(self._history.source_events[source])
        for problem in self.problems_of(sources):
            self._withdraw(problem)
            problem.is_over = True
            self.touched[problem] = None
        for v in behind.activations:
            self._history.settled[v] = 1

    @property
    def waiting(self) -> RangeSet:
        """The unanswered events from outside, as source numbers."""
        return RangeSet.of(n for n, is_answered in enumerate(self._answered) if not is_answered)

    @property
    def latest(self) -> list[str]:
        """The latest ended activation of each unanswered problem of a session."""
        return [problem.last for _, _, problem in self._ranges if problem.last is not None]

    def give_up(self, is_over: Callable[[int], bool], is_old: Callable[[int], bool]) -> list[int]:
        """Give up problems without activity that failed, or that can have no activity again.

        Args:
            is_over: Whether the event with this number can have no further consequences.
            is_old: Whether the event with this number is closed, and need not stay.

        Returns:
            The events from outside that were given up, by number.
        """
        events, given_up = self._history.source_events, list[int]()
        for problem in dict.fromkeys(problem for _, _, problem in self._ranges):
            # A failed request counts for no answer, so its events need not be out of reach.
            is_done = is_old if problem.is_failed else is_over
            if problem.is_quiet and all(is_done(events[source]) for source in problem.sources):
                self._withdraw(problem)
                problem.is_over = True
                for source in problem.sources:
                    self._answered[source] = 1
                    given_up.append(events[source])
        return given_up

    def renumber(self, rank: Sequence[int]) -> None:
        """Replace source numbers: `rank` maps old numbers to new ones."""
        problems = dict.fromkeys(problem for _, _, problem in self._ranges)
        # A number that is gone has the rank of the next one.
        stays = (rank[n + 1] > rank[n] for n in range(len(self._answered)))
        self._answered = bytearray(compress(self._answered, stays))
        self._ranges, self.touched = [], {}
        for problem in problems:
            problem.sources = problem.sources.renumber(rank)
            self._enter(problem)

    def _merge(self, activation: ActivationState) -> None:
        """Merge the problems of an activation that have the same state now.

        This happens only when an activation that concerned them has made progress. That starts all
        idle windows of theirs anew, so the marks of detectors need not be compared.
        """
        distinct: list[Problem] = []
        for problem in activation.problems:
            if problem.is_over:
                continue
            twin = next((other for other in distinct if other.is_like(problem)), None)
            if twin is None:
                distinct.append(problem)
                continue
            self._withdraw(problem)
            self._withdraw(twin)
            twin.sources = twin.sources.union(problem.sources)
            self._enter(twin)
            problem.is_over = True
            for member in problem.concerning():
                member.problems = tuple(p for p in member.problems if p is not problem)
        activation.problems = tuple(distinct)

    def touching(self, sources: RangeSet) -> dict[Problem, None]:
        """The unanswered problems with some of the given sources; or the whole run."""
        problems: dict[Problem, None] = dict.fromkeys(self._run_problems or ())
        ranges = self._ranges
        for start, end in sources.pairs():
            i = max(0, bisect_left(ranges, (start + 1,)) - 1)  # the range before may reach into it
            while i < len(ranges) and ranges[i][0] < end:
                if ranges[i][1] > start:
                    problems[ranges[i][2]] = None
                i += 1
        return problems

    def _enter(self, problem: Problem) -> None:
        self._by_sources = {}
        for start, end in problem.sources.pairs():
            insort(self._ranges, (start, end, problem))

    def _withdraw(self, problem: Problem) -> None:
        self._by_sources = {}
        for start, _ in problem.sources.pairs():
            del self._ranges[bisect_left(self._ranges, (start,))]
