"""General agents that run in virtual time, without a language model.

All agents of a team are alike: none has a role, and none remembers anything. A decision follows
from the events in front of the agent, the notes on them, and the seed:

- a problem is cut up for itself and its colleagues or, if it is short, read;
- raw data is read and counted, and the counts are reported to the agent that collects them;
- solutions are kept until they cover everything that was asked for, and then submitted;
- a returned answer counts as a solution again, and what it lacks is counted once more.

An agent that delays an event is not activated again for it, unless it took on some work or more
events come. So a turn without bad habits always takes on some work, if there is any, and delays
only solutions that wait for others to come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dig.graph.records import SYSTEM, FateName
from dig.monitor.messages import Pending
from dig.runtime.agents import Decision, EventFate, NewEvent, Plan, View
from dig.runtime.keyed_random import KeyedRandom, repeated

from .parts import Job, Partial, RawData, disjoint, join, missing
from .profile import Profile
from .reading import Numbers, Reading


@dataclass(frozen=True, slots=True)
class SimulatedAgent:
    """A general agent: a pure function from (seed, view) to a plan.

    Attributes:
        seed: The run's seed; agents of one team have the same.
        profile: Its habits.
        reading: How it reads the data of its task.
    """

    seed: int | str
    profile: Profile = field(default_factory=Profile)
    reading: Reading = field(default_factory=Numbers)

    def reseeded(self, repeat: int) -> SimulatedAgent:
        """The same agent, with the random numbers of a repeat."""
        return replace(self, seed=repeated(self.seed, (repeat,)))

    def plan(self, view: View) -> Plan:
        """Decide about everything in front of it."""
        draws = KeyedRandom(self.seed, view.agent, view.turn)
        think_s = draws.lognormal(self.profile.think_s, self.profile.think_spread, "think")
        if draws.chance(self.profile.fail, "fail"):
            return Plan(think_s, "the agent's answer could not be read")
        turn = _Turn(view, self.profile, self.reading, draws)
        decision = turn.decide()
        return Plan(think_s + self.reading.seconds(self.profile, turn.elements_read), decision)


_READERS: dict[str, Callable[[Any, Reading], Job | RawData | Partial | None]] = {
    "problem": Job.read,
    "raw_data": RawData.read,
    "solution": Partial.read,
}


class _Turn:
    """One activation: takes the events one kind after the other, and collects the decision."""

    def __init__(self, view: View, profile: Profile, reading: Reading, draws: KeyedRandom) -> None:
        self.elements_read = 0
        self._view, self._profile, self._reading, self._draws = view, profile, reading, draws
        self._fates: dict[str, EventFate] = {}
        self._outputs: list[NewEvent] = []
        self._jobs: dict[str, Job] = {}
        self._raws: dict[str, RawData] = {}
        self._partials: dict[str, Partial] = {}  # of which this agent puts the whole together
        self._copies: dict[str, Partial] = {}  # that all agents were sent
        self._returned = [event for event in view.events if event.final]
        told = self._returned or [event for event in view.events if event.sender == SYSTEM]
        noted = any(event.notes for event in view.events)
        complies = draws.chance(profile.compliance, "comply")
        self._heeds_notes = noted and complies
        self._is_urged = bool(told) and complies

    def decide(self) -> Decision:
        """The whole turn."""
        for event in self._view.events:
            self._sort(event)
        if (self._jobs or self._raws or self._partials) and self._has_habit("wait"):
            return Decision.wait()
        self._drop_work()
        counted = self._count()
        if not self._submit(counted):
            self._report(counted)
            self._take_on()
            self._collect(counted)
        return Decision(fates=list(self._fates.values()), outputs=self._outputs)

    # --- what lies in front of it ---

    def _sort(self, event: Pending) -> None:
        """Put an event to its kind; work that is damaged is discarded, for all to see."""
        reader = _READERS.get(event.type)
        read = reader(event.payload, self._reading) if reader else None
        if isinstance(read, Job):
            self._jobs[event.id] = read
        elif isinstance(read, RawData):
            self._raws[event.id] = read
        elif isinstance(read, Partial):
            self._sort_partial(event, read)
        else:
            self._settle("discard" if reader else "consume", [event.id])

    def _sort_partial(self, event: Pending, partial: Partial) -> None:
        if event.final or self._collects(partial.job):
            self._partials[event.id] = partial
        elif partial.is_for_all:
            self._copies[event.id] = partial  # the agent that collects has one, too
        else:
            self._settle("reroute", [event.id], [self._collector(partial.job)])

    def _collector(self, job: Job) -> str:
        """The agent that puts the counts together: this one, if the wanted one is not present."""
        wanted = job.report_to
        return wanted if wanted in self._view.team else self._view.agent

    def _collects(self, job: Job) -> bool:
        return self._collector(job) == self._view.agent

    def _own(self, counted: list[Partial]) -> list[Partial]:
        return [partial for partial in counted if self._collects(partial.job)]

    # --- habits ---

    def _has_habit(self, name: str, index: int = 0, times: float = 1.0) -> bool:
        if self._is_urged:
            return False
        return self._draws.chance(getattr(self._profile, name) * times, name, index)

    def _drop_work(self) -> None:
        """Bad habits about single events of work: to discard them, and to pass them on."""
        others = self._view.others
        solutions = {**self._partials, **self._copies}
        for i, event in enumerate(self._view.events):
            if event.final or event.id in self._fates or (event.notes and self._heeds_notes):
                continue
            # Solutions that are kept are seen again and again, which must not count each time.
            times = 1 / len(solutions) if event.id in solutions else 1.0
            if self._has_habit("discard", i, times) or self._is_thrown_away(event.id, i):
                self._settle("discard", [event.id])
            elif others and self._has_habit("pass_on", i, times):
                self._settle("reroute", [event.id], [self._draws.choice(others, "pass on to", i)])
            else:
                continue
            for kind in (self._jobs, self._raws, self._partials, self._copies):
                kind.pop(event.id, None)

    def _is_thrown_away(self, event: str, index: int) -> bool:
        """Whether a solution adds nothing to the others, and the agent will not have it."""
        partial = self._partials.get(event)
        if partial is None or not self._has_habit("discard_double", index):
            return False  # without comparing, which takes long with thousands of solutions
        others = [other for name, other in self._partials.items() if name != event]
        return not partial.adds_to(r for other in others for r in other.covers)

    # --- what it does ---

    def _count(self) -> list[Partial]:
        """Count all raw data in front of it."""
        counted = []
        for i, (event, raw) in enumerate(self._raws.items()):
            self._settle("consume", [event])
            self.elements_read += len(raw.data)
            counts = self._reading.count(raw.data, self._profile, self._draws, i)
            counted.append(Partial(counts, (raw.job.part,), raw.job))
        return counted

    def _submit(self, counted: list[Partial]) -> bool:
        """Submit if everything is covered, or as a habit; says whether it did.

        A final event must be the only output, so what is to be done for others has to wait.
        """
        mine = self._own(counted)
        known = disjoint([*self._partials.values(), *mine, *self._copies.values()])
        if not known or len(mine) < len(counted):
            return False
        answer = join(known, replace(known[0].job, report_to=self._view.agent))
        stubborn = bool(self._returned) and not self._is_urged
        may = answer.is_complete or stubborn
        if not (may or self._has_habit("submit_early", times=answer.share)):
            return False
        if answer.is_complete:  # so what is left of the work is of no use any more
            self._settle("consume", self._jobs)
        self._settle("consume", [*self._partials, *self._copies])
        payload = answer.payload()
        self._outputs = [NewEvent(payload=payload, type="solution", final=True)]
        return True

    def _report(self, counted: list[Partial]) -> None:
        """Send the counts to the agent that collects them, a solution a chunk.

        One solution for all chunks would be of no use if it overlapped another a little.
        """
        for partial in counted:
            name = self._collector(partial.job)
            solution = replace(partial, job=replace(partial.job, report_to=name))
            is_for_all = self._has_habit("broadcast", len(self._outputs))
            to = self._view.team if is_for_all else (name,)
            self._emit("solution", solution.payload(is_for_all=is_for_all), to)

    def _take_on(self) -> None:
        """Read short parts, as many as it can keep in mind, and cut up the longer ones."""
        reads = 0
        for event, job in self._jobs.items():
            is_short = job.length <= self._most(job)
            if is_short and reads == self._profile.reads_at_once:
                continue
            reads += is_short
            self._settle("consume", [event])
            here = replace(job, report_to=self._collector(job))
            try:
                if is_short:
                    self._read(here)
                else:
                    self._hand_out(self._cut(here))
            except ValueError:  # there is no such part: the event is damaged
                self._settle("discard", [event])

    def _read(self, job: Job) -> None:
        data = self._view.tools["raw_data"](list(job.part))
        self._emit("raw_data", job.payload(data=data), (self._view.agent,))

    def _collect(self, counted: list[Partial]) -> None:
        """Keep the solutions that have come, see to what is missing, or leave it to another."""
        if not self._partials:
            return
        known = disjoint(list(self._partials.values()))
        returned = [event.id for event in self._returned if event.id in self._partials]
        job = replace(known[0].job, report_to=self._view.agent)
        others = self._view.others
        if len(known) > 1 and others and self._has_habit("hand_over"):
            to = self._draws.choice(others, "hand over to")
            self._merge(known, replace(job, report_to=to))
        elif returned or (len(known) > 1 and self._has_habit("merge")):
            self._merge(known, job)
        if self._is_urged and self._draws.chance(self._profile.recompute, "recompute"):
            self._recount([*known, *self._own(counted)])

    def _recount(self, known: list[Partial]) -> None:
        """Have counted again what is neither known nor about to be counted by this agent."""
        covers = [r for partial in known for r in partial.covers]
        covers += [job.part for job in self._jobs.values() if self._collects(job)]
        job = replace(known[0].job, report_to=self._view.agent)
        gaps = missing(job.whole, covers)
        self._hand_out([part for gap in gaps for part in self._cut(job.at(gap))])

    # --- how it does it ---

    def _merge(self, known: list[Partial], job: Job) -> None:
        """Put solutions into one, and with them those that add nothing to it."""
        one = join(known, job)
        used = [name for name, it in self._partials.items() if not it.adds_to(one.covers)]
        self._settle("consume", used)
        self._emit("solution", one.payload(), (job.report_to or self._view.agent,))

    def _most(self, job: Job) -> int:
        return min(self._reading.most(self._profile), job.most)

    def _cut(self, job: Job) -> list[Job]:
        """Cut a part up; the whole problem into as many pieces for each colleague."""
        size = len(self._view.team)
        pieces = -(-job.length // self._most(job))
        if job.part == job.whole:
            pieces = -(-pieces // size) * size
        pieces = min(pieces, max(2, size * self._profile.pieces_per_agent), job.length)
        return [job.at(part) for part in self._view.tools["split"](list(job.part), pieces)]

    def _hand_out(self, jobs: Sequence[Job]) -> None:
        """Deal subproblems out: the first to itself, the others to all colleagues in turn."""
        me, others = self._view.agent, self._view.others
        turned = int(self._draws.uniform("deal", len(self._outputs)) * max(1, len(others)))
        ring = (me, *others[turned:], *others[:turned])
        for i, job in enumerate(jobs):
            to: tuple[str, ...] = (ring[i % len(ring)],)
            if to != (me,) and self._has_habit("duplicate", len(self._outputs)):
                to = (*to, me)
            self._emit("problem", job.payload(), to)

    def _emit(self, kind: str, payload: dict[str, object], to: Sequence[str]) -> None:
        """Generate an event, to a name that no agent has if the habit `misaddress` shows."""
        if kind != "raw_data" and self._has_habit("misaddress", len(self._outputs)):
            to = [f"{name}-assistant" for name in to]
        self._outputs.append(NewEvent(payload=payload, to=list(to), type=kind))

    def _settle(self, fate: FateName, events: Iterable[str], to: Sequence[str] = ()) -> None:
        for event in events:
            self._fates[event] = EventFate(event=event, fate=fate, to=list(to))
