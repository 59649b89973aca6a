"""The analysis of a run: facts about each agent, for signs.

What is usual comes from good runs of the same sort or, without any, from the other agents of the
run itself: a team of equals is its own control group.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from math import inf

from dig.detectors.siblings import Deviation, find_deviations
from dig.graph.records import Leave, Run
from dig.tasks.accounting import Accounting, TaskParts
from dig.tasks.number_ranges import Ranges, merge
from dig.traces.run import RecordedActivation, RecordedEvent, RecordedRun

from .payload_facts import PayloadFacts
from .traits import Norm, Question, TeamHabits, Traits, join_types, list_traits

SLOW = 1.3
"""A slow activation takes so many times the longest of good runs."""
SLOW_ALONE = 6.0
"""Without good runs: so many times the median."""
LEAST_S = 0.5
"""The seconds of a slow activation, at least: of shorter ones the length is chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """The place of a sign in a run.

    Attributes:
        agent: The agent that did it, or left it undone.
        t: The record that shows it.
        says: A sentence about it.
        activation: The activation in which it happened, if it is one.
        event: The event that it is about, if it is about one.
        part: The part of the sign's weight that it has: less, where it says less.
    """

    agent: str
    t: int
    says: str
    activation: str | None = None
    event: str | None = None
    part: float = 1.0

    @classmethod
    def at_end(
        cls, activation: RecordedActivation, says: str, event: str | None = None, part: float = 1.0
    ) -> Occurrence:
        """Make an occurrence at the end of an activation or, without an end, at the start."""
        t = activation.t if activation.end is None else activation.end.t
        agent, name = activation.agent, activation.id
        return cls(agent=agent, t=t, says=says, activation=name, event=event, part=part)

    @classmethod
    def at_event(
        cls, event: RecordedEvent, says: str, part: float = 1.0, t: int | None = None
    ) -> Occurrence:
        """Make an occurrence where an agent generated an event, or at the record `t`."""
        assert event.agent is not None
        t, agent = event.t if t is None else t, event.agent
        return cls(agent=agent, t=t, says=says, activation=event.by, event=event.id, part=part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """Something done or left undone, by the records alone.

    Attributes:
        name: Its row in the table of signs.
        mechanism: The mechanism of the failure, in a word; ``None``: it only differs from what
            peers do.
        weight: The weight of the sign, from 0 to 1.
        may_follow: Whether the sign may be the doing of another agent.
        spoils: Whether harm is done by what was made, once it is used; else by what is missing.
        t: The record that shows it.
        says: A sentence about it.
        activation: The activation in which it happened, if it is one.
        event: The event that it is about, if it is about one.
    """

    name: str
    mechanism: str | None
    weight: float
    may_follow: bool
    spoils: bool
    agent: str
    t: int
    says: str
    activation: str | None = None
    event: str | None = None


@dataclass(frozen=True)
class UsualTeam:
    """The habits of good runs of the same sort.

    Attributes:
        runs: The number of runs.
        habits: The habits of their agents, and their frequency.
        signs: In how many of the runs each sign is.
    """

    runs: int = 0
    habits: TeamHabits = field(default_factory=TeamHabits)
    signs: Mapping[str, int] = field(default_factory=dict)

    def share(self, sign: str) -> float:
        """Return the share of good runs with a sign."""
        return self.signs.get(sign, 0) / self.runs if self.runs else 0.0


class RunAnalysis:
    """A run, the parts of the task in payloads, and the norm for each agent.

    Attributes:
        parts: The parts of its task; ``None``, if nothing reads its payloads.
        usual: The habits of good runs; without runs, the other agents of the run are the norm.
        payloads: The facts about its payloads.
    """

    def __init__(
        self, run: RecordedRun, accounting: Accounting | None = None, usual: UsualTeam | None = None
    ) -> None:
        """Start with an unread run."""
        self.run = run
        self.parts = TaskParts(run, accounting) if accounting is not None else None
        self.usual = usual or UsualTeam()
        self.payloads = PayloadFacts()
        # A norm and a walk over inputs are asked for once a sign and event, hence the caches.
        self._norms: dict[str, Norm] = {}
        self._consumed_parts: dict[str, Ranges] = {}

    @cached_property
    def traits(self) -> Traits:
        """Deeds of the agents, as answers to questions about any agent."""
        return Traits(list_traits(self.run, self.parts, self.payloads))

    @cached_property
    def habits(self) -> TeamHabits:
        """Habits of the agents, with frequencies."""
        return TeamHabits.of(self.traits)

    @cached_property
    def deviations(self) -> list[tuple[Deviation, RecordedActivation, str]]:
        """Deviations from the work of siblings, each with the activation and the part."""
        graph, events = self.run.graph, self.run.events
        names, ids = graph.history.activation_ids, graph.history.event_ids
        signs = find_deviations(graph, lambda name: self.payloads.shape(events[name]), settled=True)
        return [
            (sign, self.run.activations[names[sign.activation]], ids[sign.part]) for sign in signs
        ]

    def norm_for(self, agent: str) -> Norm:
        """Return the norm for an agent: good runs or, without any, the other agents of the run."""
        if agent not in self._norms:
            has_usual, habits = bool(self.usual.runs), self.usual.habits
            self._norms[agent] = (
                Norm(habits) if has_usual else Norm(self.habits, self.habits.own.get(agent))
            )
        return self._norms[agent]

    @cached_property
    def lengthy(self) -> frozenset[str]:
        """The activations longer than usual for the same inputs."""
        activations = self.run.activations.values()
        return frozenset(act.id for act in activations if self._is_lengthy(act))

    def _is_lengthy(self, act: RecordedActivation) -> bool:
        norm, seconds = self.norm_for(act.agent), self.duration_s(act)
        if seconds < LEAST_S:
            return False
        if act.end and not act.has_failed:
            inputs = (event.type for event in self.run.inputs(act) if not event.final)
            questions: list[Question] = [("seconds", join_types(inputs))]
        else:  # it has consumed nothing, so its inputs do not say with what to compare it
            questions = norm.questions("seconds")
        if self.usual.runs:
            return seconds > SLOW * max(map(norm.maximum, questions), default=0.0) > 0
        return seconds > SLOW_ALONE * max(map(norm.median, questions), default=0.0) > 0

    @cached_property
    def ended(self) -> list[RecordedActivation]:
        """The activations with an end and without an error."""
        return [act for act in self.run.activations.values() if act.end and not act.has_failed]

    @cached_property
    def refusals(self) -> Mapping[str, set[str]]:
        """The agents behind discarded outputs, by the activation of the outputs."""
        refusals = defaultdict[str, set[str]](set)
        for act in self.ended:
            for event in map(self.run.events.__getitem__, act.with_fate("discard")):
                if event.agent not in (None, act.agent) and not event.consumed_by:
                    refusals[event.by or ""].add(act.agent)
        return refusals

    @cached_property
    def sent(self) -> list[RecordedEvent]:
        """Events generated by agents."""
        return [event for event in self.run.events.values() if event.agent is not None]

    @cached_property
    def _presence(self) -> list[tuple[int, frozenset[str]]]:
        """The agents of the team after each change of it, with the record of the change."""
        first = self.run.records[0]
        team = frozenset(first.agents if isinstance(first, Run) else ())
        presence = [(0, team)]
        for record in self.run.membership:
            team = team - {record.agent} if isinstance(record, Leave) else team | {record.agent}
            presence.append((record.t, team))
        return presence

    def present_at(self, t: int) -> frozenset[str]:
        """Return the agents present at a record."""
        return self._presence[bisect_right(self._presence, t, key=lambda each: each[0]) - 1][1]

    def inputs_behind(self, event: RecordedEvent) -> list[RecordedEvent]:
        """Return the inputs consumed by the activation behind an event."""
        activation = self.run.activations.get(event.by or "")
        return self.run.inputs(activation) if activation is not None else []

    def parts_behind(self, event: RecordedEvent) -> Ranges:
        """Return the parts of the task consumed by the activation behind an event."""
        by = event.by or ""
        if by not in self._consumed_parts:
            self._consumed_parts[by] = self.about(self.inputs_behind(event))
        return self._consumed_parts[by]

    @cached_property
    def originals(self) -> Mapping[str, RecordedEvent]:
        """First event of the same agent and content, for each repeated event."""
        firsts: dict[tuple[str | None, int], RecordedEvent] = {}
        originals: dict[str, RecordedEvent] = {}
        for event in self.sent:
            content = self.payloads.content(event)
            if content is not None and not event.final:
                first = firsts.setdefault((event.agent, content), event)
                if first is not event:
                    originals[event.id] = first
        return originals

    @property
    def repeats(self) -> Iterator[tuple[RecordedEvent, RecordedEvent]]:
        """Repeated events of an agent, each with the first event of the same content."""
        return ((self.run.events[name], first) for name, first in self.originals.items())

    @cached_property
    def shapes(self) -> Mapping[str, str]:
        """Shapes of payloads, by event of an agent."""
        return {event: str(answer) for event, answer in self._answers("shape")}

    @cached_property
    def amounts(self) -> Mapping[str, float]:
        """The amount for each element of an event's parts, by event."""
        return {event: float(answer) for event, answer in self._answers("amount")}

    @cached_property
    def profiles(self) -> Mapping[str, float]:
        """Distances of amounts, as shares, from the amounts of other agents, by event."""
        return {event: float(answer) for event, answer in self._answers("profile")}

    def _answers(self, respect: str) -> Iterator[tuple[str, str | float]]:
        for trait in self.traits.about(respect.__eq__):
            if trait.event is not None:
                yield trait.event, trait.answer

    @cached_property
    def open_at_answers(self) -> Mapping[str, list[str]]:
        """The work still open at each final event, by the later fate of the work."""
        # One walk in the order of records: a session may have as many answers as problems.
        run, open_now, open_at = self.run, dict[str, None](), dict[str, list[str]]()
        closing: list[tuple[float, str]] = []
        for event in run.events.values():
            while closing and closing[0][0] <= event.t:
                del open_now[heappop(closing)[1]]
            if event.final:
                open_at[event.id] = [*open_now]
            elif event.is_work:
                end, orphaned = run.consumption(event), run.orphaned_t(event.id)
                ends = (inf if end is None else end.t + 1, inf if orphaned is None else orphaned)
                open_now[event.id] = None
                heappush(closing, (min(ends), event.id))
        return open_at

    def events_of(self, sign: Sign) -> list[RecordedEvent]:
        """Return the work concerned by a sign."""
        run = self.run
        if sign.event is not None:
            return [run.events[sign.event]]
        activation = run.activations.get(sign.activation or "")
        if activation is not None:
            outputs = [event for event in run.outputs(activation) if event.is_work or event.final]
            return outputs if sign.spoils else self.work(activation.inputs)
        record = run.records[sign.t]
        if not isinstance(record, Leave):
            return []
        return [
            event
            for event in run.events.values()
            if event.is_work
            and (run.left_with(record, event.id) or (event.t > sign.t and sign.agent in event.to))
        ]

    @cached_property
    def held(self) -> Mapping[str, list[RecordedEvent]]:
        """The work held at the end of the run, by agent."""
        held = defaultdict[str, list[RecordedEvent]](list)
        for live in self.run.graph.live.values():
            for agent in live.copies:
                held[agent] += self.work([live.id])
        return held

    def seconds(self, first_us: int, last_us: int | None = None) -> float:
        """Return the seconds from a moment to another, or to the end of the run."""
        return ((self.run.last.us if last_us is None else last_us) - first_us) / 1_000_000

    def duration_s(self, activation: RecordedActivation) -> float:
        """Return the seconds of an activation; without an end, up to the end of the run."""
        return self.seconds(activation.us, activation.end.us if activation.end else None)

    def work(self, names: Iterable[str]) -> list[RecordedEvent]:
        """Filter events: only work."""
        return [event for name in names if (event := self.run.events[name]).is_work]

    def about(self, events: Iterable[RecordedEvent]) -> Ranges:
        """Return the parts of the task in events; empty if nothing tells."""
        if self.parts is None:
            return ()
        return merge(part for event in events for part in self.parts.about(event))

    @cached_property
    def problems(self) -> list[Ranges]:
        """The parts of each problem from outside; empty if nothing tells."""
        posed = (self.about([event]) for event in self.run.events.values() if event.by is None)
        return [parts for parts in posed if parts]

    @cached_property
    def task_parts(self) -> Ranges:
        """The whole task, or all tasks of a session; empty if nothing tells."""
        return merge(part for parts in self.problems for part in parts)
