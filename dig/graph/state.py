"""The state of a graph: objects for what can still change; `dig.graph.history` has the rest.

Clock-time patterns look at *problems*. A run that is no session has one problem, the whole run. In
a session each event from outside that is not answered yet poses one, and problems may overlap: an
event concerns the problems of its sources, an activation those of the events that it saw.

Problems with identical open events, running activations and submitted answers share one `Problem`
with several sources, so a conversation that has merged a thousand problems costs what one costs.
It is parted again when something concerns only some of its sources.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from itertools import compress
from types import MappingProxyType
from typing import Any

from dig._util.ranges import NOTHING, RangeSet, union

from .history import ACCEPTED, BOUNCED, CONSUMED, EVICTED, FINAL, NOTICE_TYPE, History
from .lineage import Provenance, roots_of, sources_of
from .records import DONE, STUCK, SYSTEM, Finish, Run

BUFFERED, FLYING = 1, 2


class EventState:
    """An event that can still change.

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
        reroutes: The agents that rerouted it, in order, while it was not consumed.
        discarded_by: The agents that discarded it; sent_to: where it was sent last, if known.
        place: BUFFERED and FLYING, if it is open; roots: its roots; sources: its sources.
        problems: The problems it concerns, while it is open or submitted.
    """

    __slots__ = (
        "by", "cause", "consumed", "copies", "discarded_by", "final", "flight", "id", "n", "place",
        "problems", "reroutes", "roots", "sent_to", "sources", "type", "us_lost", "work",
    )  # fmt: skip

    roots: RangeSet
    sources: RangeSet
    us_lost: int

    def __init__(self, history: History, name: str, n: int, by: str | None) -> None:
        flags = history.flags[n]
        self.id = name
        self.n = n
        self.by = by
        self.type = history.type_names[history.type_of[n]]
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
        self.problems: tuple[Problem, ...] = ()


class ClosedEvent(EventState):
    """A closed event that is named again; a walk finds its lineage when that is asked for."""

    __slots__ = ("_history",)

    def __init__(self, history: History, name: str, n: int, by: str | None) -> None:
        super().__init__(history, name, n, by)
        self._history = history

    def __getattr__(self, name: str) -> Any:
        if name == "roots":
            self.roots = roots_of(self._history, self.n)
            return self.roots
        if name == "sources":
            self.sources = sources_of(self._history, self.n)
            return self.sources
        raise AttributeError(name)


class ActivationState:
    """An activation in progress, or the latest one that ended.

    Attributes:
        id: Its id; n: its number in order of start; agent: its agent.
        inputs: The events that it sees.
        consumed: The inputs that the activation consumed, system events left out, once it ended.
        is_progress: Whether the activation ended with an output, or with a fate other than `delay`.
        us_start: When it began, in microseconds.
        problems: The problems that it concerns.
    """

    __slots__ = ("agent", "consumed", "id", "inputs", "is_progress", "n", "problems", "us_start")

    def __init__(self, name: str, agent: str, inputs: tuple[EventState, ...], us: int) -> None:
        self.id = name
        self.agent = agent
        self.inputs = inputs
        self.consumed: list[EventState] = []
        self.is_progress = False
        self.us_start = us
        self.n = -1
        self.problems: tuple[Problem, ...] = ()


class AgentState:
    """A present agent.

    Attributes:
        name: Its name.
        buffer: The events in front of it, in order of delivery.
        lineages: The inputs that have roots, by ranges of these and of sources, as generated.
        incoming: The events that are on their way to it.
        activation: Its activation in progress.
    """

    __slots__ = ("activation", "buffer", "incoming", "lineages", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.buffer: dict[str, EventState] = {}
        self.lineages: dict[tuple[tuple[int, ...], ...], dict[str, EventState]] = {}
        self.incoming: dict[str, EventState] = {}
        self.activation: ActivationState | None = None

    def put(self, event: EventState) -> None:
        """Put an event into the buffer."""
        self.buffer[event.id] = event
        self.file(event)

    def file(self, event: EventState) -> None:
        """Note by what roots and sources an event is found in the buffer, if it has roots."""
        if not event.roots.ranges:
            return
        lineage = event.roots.ranges, event.sources.ranges
        alike = self.lineages.setdefault(lineage, {})
        is_next = not alike or alike[next(reversed(alike))].n < event.n
        alike[event.id] = event
        if not is_next:
            in_order = sorted(alike.values(), key=by_number)
            self.lineages[lineage] = {one.id: one for one in in_order}

    def take(self, event: EventState) -> None:
        """Take an event out of the buffer."""
        del self.buffer[event.id]
        if event.roots.ranges:
            lineage = event.roots.ranges, event.sources.ranges
            alike = self.lineages[lineage]
            del alike[event.id]
            if not alike:
                del self.lineages[lineage]


def by_number(event: EventState) -> int:
    """The key that sorts events in order of generation."""
    return event.n


class Problem:
    """A problem, or several that share all of their state.

    Attributes:
        sources: The events from outside that pose it, as source numbers; none for a whole run.
        open: The open events that concern it.
        buffered: The number of them that lie in a buffer; flying: of those that are on their way.
        running: The activations in progress that concern it, in order of their start.
        last: The activation concerning it that ended last.
        submitted: The final events concerning it that were neither bounced nor accepted yet.
        is_posed: Whether work about it has come from outside.
        is_over: Whether an answer to it was accepted, or it became part of another.
        stands: DONE or STUCK of `dig.graph.records`, or 0, as it stood after the latest record.
        marks: The state of detectors about it, by detector, copied when the problem is parted. It
            has `is_pending`, whether the detector waits: until then a session keeps the problem.
    """

    __slots__ = (
        "buffered", "flying", "is_over", "is_posed", "last", "marks", "open", "running", "sources",
        "stands", "submitted",
    )  # fmt: skip

    def __init__(self, sources: RangeSet = NOTHING, is_posed: bool = False) -> None:
        self.sources = sources
        self.open: dict[str, EventState] = {}
        self.buffered = 0
        self.flying = 0
        self.running: dict[str, ActivationState] = {}
        self.last: str | None = None
        self.submitted: dict[str, EventState] = {}
        self.is_posed = is_posed
        self.is_over = False
        self.stands = 0
        self.marks: dict[object, Any] = {}

    def is_like(self, other: Problem) -> bool:
        """Whether the same open events, activations and answers concern both problems."""
        return (
            self.is_posed == other.is_posed
            and self.last == other.last
            and self.open.keys() == other.open.keys()
            and self.running.keys() == other.running.keys()
            and self.submitted.keys() == other.submitted.keys()
        )

    @property
    def is_quiet(self) -> bool:
        """Whether nothing open, running or submitted concerns it, and no detector waits."""
        return not self.concerning() and not any(mark.is_pending for mark in self.marks.values())

    def concerning(self) -> list[EventState | ActivationState]:
        """The open events, running activations and submitted answers that concern it."""
        return [*self.open.values(), *self.running.values(), *self.submitted.values()]

    def part(self, sources: RangeSet) -> Problem:
        """Move some of its sources to a new problem in the same state, and return that one."""
        other = Problem(sources, self.is_posed)
        other.open, other.running = dict(self.open), dict(self.running)
        other.submitted, other.last = dict(self.submitted), self.last
        other.buffered, other.flying, other.stands = self.buffered, self.flying, self.stands
        other.marks = {detector: copy(mark) for detector, mark in self.marks.items()}
        self.sources = self.sources.minus(sources)
        for one in self.concerning():
            one.problems += (other,)
        return other


class Problems:
    """The problems of a run, kept up to date by the graph.

    Attributes:
        touched: The problems that the latest record changed.
    """

    def __init__(self, history: History, session: bool) -> None:
        self._history = history
        self._whole = None if session else (Problem(),)
        # Of every problem of a session the ranges of its sources: start, end, problem; sorted.
        self._ranges: list[tuple[int, int, Problem]] = []
        self._answered = bytearray()  # source number -> whether it is answered
        self.touched: dict[Problem, None] = {}

    def pose(self, is_work: bool) -> None:
        """Register an event from outside: in a session, it poses a new problem if it is work."""
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
        found = self.touching(sources)
        for problem in found:
            if problem.sources.ranges == sources.ranges:
                continue
            others = problem.sources.minus(sources)
            if others.ranges:
                self._withdraw(problem)
                other = problem.part(others)
                self._enter(problem)
                self._enter(other)
                self.touched[other] = None
        return tuple(found)

    def look(self) -> int:
        """The flags of how the problems that a record touched stand after it and stood before."""
        flags = 0
        for problem in self.touched:
            flags |= problem.stands
            if problem.buffered:
                problem.stands = 0 if problem.flying or problem.is_over else STUCK
            else:
                is_going_on = problem.open or problem.submitted or problem.is_over
                problem.stands = 0 if is_going_on else DONE
            flags |= problem.stands
        return flags

    def open_events(self, sources: RangeSet) -> dict[str, EventState]:
        """The open events that have some of these sources; to ask parts no problem."""
        return {
            name: event
            for problem in self.touching(sources)
            for name, event in problem.open.items()
            if not event.sources.isdisjoint(sources)
        }

    def unanswered(self, sources: RangeSet) -> RangeSet:
        """The sources among some that are not answered yet; asking parts no problem."""
        if self._whole is not None:
            return RangeSet.of(s for s in sources if not self._answered[s])
        bounds = sources.ranges
        if len(bounds) == 2 and bounds[0] + 1 == bounds[1] <= len(self._answered):  # the usual case
            return NOTHING if self._answered[bounds[0]] else sources
        return union([problem.sources.common(sources) for problem in self.touching(sources)])

    def move(self, event: EventState, now: int) -> None:
        """Change an event's place from `event.place` to `now` (of BUFFERED and FLYING)."""
        before = event.place
        event.place = now
        if not before:
            event.problems = self.concerned(event.sources)
        buffered = (now & BUFFERED) - (before & BUFFERED)
        flying = (now - before - buffered) // FLYING
        for problem in event.problems:
            problem.buffered += buffered
            problem.flying += flying
            if not before:
                problem.open[event.id] = event
            elif not now:
                del problem.open[event.id]
            self.touched[problem] = None

    def submit(self, event: EventState) -> None:
        """Register a final event that was generated."""
        event.problems = self.concerned(event.sources)
        for problem in event.problems:
            problem.submitted[event.id] = event
            self.touched[problem] = None

    def decide(self, event: EventState) -> None:
        """Register that a final event was bounced or accepted."""
        for problem in self.concerned(event.sources):
            problem.submitted.pop(event.id, None)
            self.touched[problem] = None

    def started(self, activation: ActivationState) -> None:
        """An activation begins."""
        activation.problems = self.concerned(union([e.sources for e in activation.inputs]))
        for problem in activation.problems:
            problem.running[activation.id] = activation
            self.touched[problem] = None

    def ended(self, activation: ActivationState) -> None:
        """Register the end of an activation; progress may merge the problems it concerned."""
        self.cut_off(activation)
        for problem in activation.problems:
            problem.last = activation.id
        if activation.is_progress and len(activation.problems) > 1:
            self._merge(activation)

    def cut_off(self, activation: ActivationState) -> None:
        """Register that an activation is no longer in progress."""
        for problem in activation.problems:
            del problem.running[activation.id]
            self.touched[problem] = None

    def asked(self, behind: Provenance) -> RangeSet:
        """The sources that a final event answers, as far as they are not answered yet."""
        events = self._history.source_events
        own = (bisect_left(events, e) for e in sorted(behind.outside))
        return RangeSet.of(source for source in own if not self._answered[source])

    def settle(self, behind: Provenance) -> None:
        """Register an accepted final event: its provenance is settled, its sources are answered."""
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
        """Stop waiting for answers to problems that are quiet and can never have activity again.

        Args:
            is_over: Whether the event with this number can have no further consequences.

        Returns:
            The events from outside that were given up, by number.
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
        """Give sources their new numbers: `rank` maps old numbers to new ones."""
        problems = dict.fromkeys(problem for _, _, problem in self._ranges)
        stays = (rank[n + 1] > rank[n] for n in range(len(self._answered)))
        self._answered = bytearray(compress(self._answered, stays))
        self._ranges, self.touched = [], {}
        for problem in problems:
            problem.sources = problem.sources.renumbered(rank)
            self._enter(problem)

    def _merge(self, activation: ActivationState) -> None:
        """Merge the problems of an activation that share all of their state now.

        This happens only when an activation that concerned them has made progress. That starts all
        idle windows of theirs anew, so the marks of detectors need not be compared.
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

    def touching(self, sources: RangeSet) -> dict[Problem, None]:
        """The problems, not yet answered, that have some of these sources; or the whole run."""
        found: dict[Problem, None] = dict.fromkeys(self._whole or ())
        ranges = self._ranges
        for start, end in sources.pairs():
            i = max(0, bisect_left(ranges, (start + 1,)) - 1)
            while i < len(ranges) and ranges[i][0] < end:
                if ranges[i][1] > start:
                    found[ranges[i][2]] = None
                i += 1
        return found

    def _enter(self, problem: Problem) -> None:
        for start, end in problem.sources.pairs():
            insort(self._ranges, (start, end, problem))

    def _withdraw(self, problem: Problem) -> None:
        for start, _ in problem.sources.pairs():
            del self._ranges[bisect_left(self._ranges, (start,))]


class GraphState:
    """The state of a graph, and the questions that it answers.

    Only `dig.graph.rewrites`, `dig.graph.retention` and `dig.graph.coverage` change it.

    Attributes:
        t: Logical time, the latest record's; -1 before the first.
        now: Wall time of the latest record in microseconds since the run began.
        run: The first record.
        history: Everything that has happened, as arrays.
        problems: The problems of the run.
        touched: The events whose place the latest record may have changed.
        changed: The kind of the latest record and what it changed, as flags of `dig.graph.records`.
        ended: The activation that the latest record ended, if it ended one.
        finished: The last record of the run, once it is there.
        is_over: Whether a final event was accepted, and the run is no session.
        awaited: The outputs of the latest end that are still to be emitted, the next one last.
        findings: Logical time of every record of kind `finding`, in order.
        latest_provenance: The provenance of the final event that was looked at last.
        present: The present agents by name.
        running: The activations in progress by id.
        live: The events that are not closed, by id.
        open: The events that are open work.
        seen_last: The inputs of the activation that ended last, by id.
        lineage: The roots and sources that the outputs of the latest end inherit.
        emitter: The activation that ended last, whose outputs are awaited.
        emitter_number: Its number.
    """

    run: Run

    def __init__(self) -> None:
        self.t = -1
        self.now = 0
        self.history = History()
        self.problems = Problems(self.history, session=False)  # until the run says what it is
        self.touched: list[EventState] = []
        self.changed = 0
        self.ended: ActivationState | None = None
        self.finished: Finish | None = None
        self.is_over = False
        self.awaited: list[str] = []
        self.findings = array("q")
        self.latest_provenance: Provenance | None = None
        self.emitter = ""
        self.emitter_number = -1
        self.seen_last: dict[str, EventState] = {}
        self.lineage: tuple[RangeSet, RangeSet] = (NOTHING, NOTHING)
        self.present: dict[str, AgentState] = {}
        self.running: dict[str, ActivationState] = {}
        self.live: dict[str, EventState] = {}
        self.open: dict[str, EventState] = {}

    def event(self, name: str) -> EventState:
        """An event by its id; a closed one is put together from history.

        Raises:
            KeyError: No event has this id.
        """
        event = self.live.get(name) or self.seen_last.get(name)
        if event is None:
            n = self.history.event_number(name)
            event = ClosedEvent(self.history, name, n, self.history.by(n))
        return event

    def sources_of(self, n: int) -> RangeSet:
        """The sources of the event with this number, as source numbers."""
        live = self.live.get(self.history.event_ids[n])
        return live.sources if live is not None else sources_of(self.history, n)

    @property
    def agents(self) -> Mapping[str, AgentState]:
        """The present agents by name, in the order in which they came."""
        return MappingProxyType(self.present)

    @property
    def activations(self) -> Mapping[str, ActivationState]:
        """The activations in progress by id, in order of their start."""
        return MappingProxyType(self.running)

    @property
    def latest_source(self) -> str:
        """The event that came from outside last."""
        return self.history.event_ids[self.history.source_events[-1]]

    @property
    def event_count(self) -> int:
        """The number of events of the run, evicted ones included."""
        return self.history.gone_events + len(self.history.event_ids)

    @property
    def activation_count(self) -> int:
        """The number of activations of the run, evicted ones included."""
        return self.history.gone_activations + len(self.history.activation_ids)

    @property
    def has_evicted(self) -> bool:
        """Whether some part of the history was evicted."""
        h = self.history
        return bool(h.gone_events or h.gone_activations or h.cut)

    def open_events(self) -> list[EventState]:
        """R(t): work that no agent consumed and some agent can still reach, as generated."""
        return sorted(self.open.values(), key=by_number)

    def orphans(self) -> dict[str, str]:
        """Work that no agent consumed and none can reach, with its cause, as generated."""
        lost = [e for e in self.live.values() if e.cause is not None]
        return {e.id: e.cause or "" for e in sorted(lost, key=by_number)}

    def flying(self) -> list[EventState]:
        """The events of any kind that are on their way to an agent, as generated."""
        return sorted((e for e in self.live.values() if e.flight), key=by_number)

    def knows(self, event: str) -> bool:
        """Whether there is an event with this id that was not evicted."""
        n = self.history.event(event)
        return n is not None and not self.history.flags[n] & EVICTED

    def is_open(self, n: int) -> bool:
        """Whether the event with this number is open."""
        return self.history.event_ids[n] in self.open

    def is_accepted(self, event: str) -> bool:
        """Whether an event is a final one that was accepted."""
        return bool(self.history.flags[self.history.event_number(event)] & ACCEPTED)

    def is_bounced(self, event: str) -> bool:
        """Whether an event is a final one that was delivered to an agent."""
        return bool(self.history.flags[self.history.event_number(event)] & BOUNCED)
