"""A run as signs see it, and a sign.

What is usual comes from good runs of the same sort or, without any, from the other agents of the
run itself: a team of equals is its own control group.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dig.graph.records import Emit, Join, Leave, Run
from dig.tasks.accounting import Accounting, TaskParts
from dig.tasks.ranges import Ranges, merged
from dig.traces.run import RecordedActivation, RecordedEvent, RecordedRun

from .traits import TeamHabits, Trait, traits


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The place at which a run shows something.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """Something done or left undone, which the records alone show.

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
        """The share of good runs that have a sign."""
        return self.signs.get(sign, 0) / self.runs if self.runs else 0.0


class Seen:
    """A run, with what its payloads are about and with what is usual, as far as they are known.

    Attributes:
        parts: The parts of its task; ``None``, if nothing reads its payloads.
        usual: The habits of good runs; without runs, the other agents of the run are the measure.
    """

    def __init__(
        self, run: RecordedRun, accounting: Accounting | None = None, usual: UsualTeam | None = None
    ) -> None:
        """Read nothing yet."""
        self.run = run
        self.parts = TaskParts(run, accounting) if accounting is not None else None
        self.usual = usual or UsualTeam()
        self._others: dict[str, TeamHabits] = {}
        self._used: dict[str, Ranges] = {}

    @cached_property
    def traits(self) -> list[Trait]:
        """The deeds of its agents, as answers to questions that can be asked about any agent."""
        return [*traits(self.run, self.parts)]

    @cached_property
    def habits(self) -> TeamHabits:
        """The habits of its agents, and their frequency."""
        return TeamHabits.of(self.traits)

    def unlike(self, agent: str) -> TeamHabits:
        """The measure for an agent: good runs or, without any, the other agents of the run."""
        if self.usual.runs:
            return self.usual.habits
        if agent not in self._others:
            self._others[agent] = self.habits.without(agent)
        return self._others[agent]

    @cached_property
    def ended(self) -> list[RecordedActivation]:
        """The activations that ended without an error."""
        return [one for one in self.run.activations.values() if one.end and not one.has_failed]

    @cached_property
    def sent(self) -> list[RecordedEvent]:
        """The events that agents generated."""
        return [one for one in self.run.events.values() if one.agent is not None]

    @cached_property
    def present(self) -> Mapping[str, frozenset[str]]:
        """The agents that were present when an event was generated, by event."""
        here: frozenset[str] = frozenset()
        found: dict[str, frozenset[str]] = {}
        for record in self.run.records:
            match record:
                case Run(agents=agents):
                    here = frozenset(agents)
                case Join(agent=agent):
                    here |= {agent}
                case Leave(agent=agent):
                    here -= {agent}
                case Emit(event=event):
                    found[event] = here
        return found

    def used_by(self, event: RecordedEvent) -> list[RecordedEvent]:
        """The inputs that the activation consumed which generated an event."""
        activation = self.run.activations.get(event.by or "")
        return self.run.inputs(activation) if activation is not None else []

    def about_used(self, event: RecordedEvent) -> Ranges:
        """The parts that the activation which generated an event consumed."""
        by = event.by or ""
        if by not in self._used:
            self._used[by] = self.about(self.used_by(event))
        return self._used[by]

    @cached_property
    def first_said(self) -> Mapping[str, RecordedEvent]:
        """For each event that repeats another one of its agent: the first such one."""
        firsts: dict[tuple[str | None, str, str], RecordedEvent] = {}
        found: dict[str, RecordedEvent] = {}
        for event in self.sent:
            if event.payload is not None and not event.final:
                content = json.dumps(event.payload, sort_keys=True, default=str)
                first = firsts.setdefault((event.agent, event.type, content), event)
                if first is not event:
                    found[event.id] = first
        return found

    @property
    def said_again(self) -> list[RecordedEvent]:
        """The events that repeat another one of their agent."""
        return [self.run.events[name] for name in self.first_said]

    @cached_property
    def shapes(self) -> Mapping[str, str]:
        """The shape of the payload of each event that an agent generated."""
        return {event: str(answer) for event, answer in self._answers("shape")}

    @cached_property
    def amounts(self) -> Mapping[str, float]:
        """The amount for each element that an event is about, where it tells amounts."""
        return {event: float(answer) for event, answer in self._answers("amount")}

    @cached_property
    def profiles(self) -> Mapping[str, float]:
        """The distances of an event's amounts, as shares, from those that other agents sent."""
        return {event: float(answer) for event, answer in self._answers("profile")}

    def _answers(self, what: str) -> Iterator[tuple[str, str | float]]:
        for one in self.traits:
            if one.question[0] == what and one.event is not None:
                yield one.event, one.answer

    def open_at(self, event: RecordedEvent) -> list[RecordedEvent]:
        """The work that was open when an event was generated, by what became of it later."""
        return [
            one
            for one in self.run.events.values()
            if one.is_work and one.t < event.t and not self._is_done(one, event.t)
        ]

    def _is_done(self, one: RecordedEvent, t: int) -> bool:
        end, gone = self.run.consumption(one), self.run.orphaned_t(one.id)
        return (end is not None and end.t < t) or (gone is not None and gone <= t)

    def events_of(self, sign: Sign) -> list[RecordedEvent]:
        """The work that a sign is about."""
        run = self.run
        if sign.event is not None:
            return [run.events[sign.event]]
        activation = run.activations.get(sign.activation or "")
        if activation is not None:
            outputs = [one for one in run.outputs(activation) if one.is_work or one.final]
            return outputs if sign.spoils else self.work(activation.inputs)
        record = run.records[sign.t]
        if not isinstance(record, Leave):
            return []
        return [
            one
            for one in run.events.values()
            if one.is_work
            and (run.left_with(record, one.id) or (one.t > sign.t and sign.agent in one.to))
        ]

    def held_by(self, agent: str) -> list[RecordedEvent]:
        """The work that an agent holds at the end."""
        live = self.run.graph.live.values()
        return self.work(one.id for one in live if agent in one.copies)

    def seconds(self, first_us: int, last_us: int | None = None) -> float:
        """The seconds from a moment to another one, or to the end of the run."""
        return ((self.run.last.us if last_us is None else last_us) - first_us) / 1_000_000

    def lasted(self, activation: RecordedActivation) -> float:
        """The seconds that an activation lasted, or has lasted by the end of the run."""
        return self.seconds(activation.us, activation.end.us if activation.end else None)

    def work(self, names: Iterable[str]) -> list[RecordedEvent]:
        """The events among some that are work."""
        return [event for name in names if (event := self.run.events[name]).is_work]

    def about(self, events: Iterable[RecordedEvent]) -> Ranges:
        """The parts of the task that some events are about; none, if nothing tells."""
        if self.parts is None:
            return ()
        return merged(part for event in events for part in self.parts.about(event))

    @cached_property
    def problems(self) -> list[Ranges]:
        """The parts that each problem from outside is about; none, if nothing tells."""
        posed = (self.about([one]) for one in self.run.events.values() if one.by is None)
        return [parts for parts in posed if parts]

    @cached_property
    def whole(self) -> Ranges:
        """The whole task, of a session all of its tasks; empty, if nothing tells."""
        return merged(part for parts in self.problems for part in parts)
