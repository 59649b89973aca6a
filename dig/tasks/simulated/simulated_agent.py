"""General agents in virtual time, without a language model.

All agents of a team are alike: none has a role, and none remembers anything. A decision follows
from the events in front of the agent, the notes on them, and the seed:

- a problem is cut up for itself and its colleagues or, if it is short, read;
- raw data is read and counted, and the counts are reported to the agent that collects them;
- solutions are kept until they cover everything that was asked for, and then submitted;
- a returned answer counts as a solution again.

Agents err by habit (`profile`), and heed notes by their content: a note names what is
missing, what is there twice, or which agent is waited for. An agent that is only woken looks again
at what it holds, and may err again.

An agent that delays an event is not activated again for it, unless it took on some work or more
events come. So a turn without bad habits always takes on some work, if there is any, and delays
only solutions that wait for others to come.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dig.detectors.notes import PREFIX
from dig.graph.records import NOTICE, FateName
from dig.monitor.messages import About, Pending
from dig.runtime.agents import Decision, EventFate, NewEvent, Plan, View
from dig.runtime.keyed_random import KeyedRandom, repeat_key
from dig.tasks.number_ranges import Range, missing

from .message_reading import Numbers, Reading
from .parts import Job, Partial, RawData, disjoint, join, parts_in
from .profile import Profile


@dataclass(frozen=True, slots=True)
class SimulatedAgent:
    """A general agent: a pure function from (key, view) to a plan.

    Attributes:
        key: The key of the run's random numbers; agents of one team have the same.
        profile: Its habits.
        reading: The reader of the data of its task.
        nature: The key of what lasts in all of its turns; ``None``: `key`. A repeat keeps it.
    """

    key: int | str
    profile: Profile = field(default_factory=Profile)
    reading: Reading = field(default_factory=Numbers)
    nature: int | str | None = None

    def reseeded(self, repeat: int) -> SimulatedAgent:
        """The same agent, with the random numbers of a repeat."""
        nature = self.key if self.nature is None else self.nature
        return replace(self, key=repeat_key(self.key, (repeat,)), nature=nature)

    def plan(self, view: View) -> Plan:
        """Decide about all events."""
        draws = KeyedRandom(self.key, view.agent, view.turn)
        think_s = draws.lognormal(self.profile.think_s, self.profile.think_spread, "think")
        if draws.chance(self.profile.fail, "fail"):
            return Plan(think_s, "the agent's answer could not be read")
        turn = _Turn(view, self, draws)
        decision = turn.decide()
        return Plan(think_s + self.reading.seconds(self.profile, turn.elements_read), decision)


@dataclass(frozen=True, slots=True)
class OneProblemAtATime:
    """A simulated agent with a single problem in each activation.

    So what it generates goes back to one problem alone. What lies in front of it about the others
    is left for later, unless there is nothing to do about the first.

    Attributes:
        agent: The agent, which is shown what is about one problem, or about none.
    """

    agent: SimulatedAgent

    def reseeded(self, repeat: int) -> OneProblemAtATime:
        """The same agent, with the random numbers of a repeat."""
        return OneProblemAtATime(self.agent.reseeded(repeat))

    def plan(self, view: View) -> Plan:
        """Decide about the first problem with something to do."""
        problems = {event.id: self._problem(event) for event in view.events}
        plan = None
        for problem in dict.fromkeys(problems.values()):
            # Events about no problem come along with the first problem.
            if problem is None and len({*problems.values()}) > 1:
                continue
            shown = [event for event in view.events if problems[event.id] in (problem, None)]
            plan = self.agent.plan(replace(view, events=tuple(shown)))
            decision = plan.decision
            if (
                isinstance(decision, str)
                or decision.outputs
                or any(fate.fate != "delay" for fate in decision.fates)
            ):
                return plan
        return plan or self.agent.plan(view)

    def _problem(self, event: Pending) -> Range | None:
        """The range of an event's problem, if the payload says so."""
        payload = event.payload if isinstance(event.payload, Mapping) else {}
        job = Job.read(
            {**payload, "part": payload.get("whole", payload.get("part"))}, self.agent.reading
        )
        return job.whole if job else None


_READERS: dict[str, Callable[[Any, Reading], Job | RawData | Partial | None]] = {
    "problem": Job.read,
    "raw_data": RawData.read,
    "solution": Partial.read,
}


Heeds = Callable[[str], bool]
"""Whether an agent heeds a note, from a text that tells the note from others."""


class Heeded:
    """The heeded notes of a view, by pattern."""

    def __init__(self, view: View, heeds: Heeds) -> None:
        """Choose among the notes in a view."""
        self._view = view
        self._notes: dict[str, list[tuple[Pending, About]]] = {}
        for event in view.events:
            for about in event.about:
                pattern = about.pattern.removeprefix(PREFIX)
                if heeds(f"heed {pattern} {event.id}"):
                    self._notes.setdefault(pattern, []).append((event, about))

    def on(self, pattern: str) -> Iterator[tuple[Pending, About]]:
        """The notes about findings of a pattern, each with the event beside the note."""
        yield from self._notes.get(pattern, ())

    @property
    def excluded(self) -> set[str]:
        """The agents to do without: others do the work."""
        notes = (about for notes in self._notes.values() for _, about in notes)
        return {agent for about in notes for agent in about.without} - {self._view.agent}

    def warns(self, pattern: str, events: Collection[str]) -> bool:
        """Whether a note about a finding of a pattern stands beside, or names, an event."""
        return any(
            beside.id in events or not set(about.events).isdisjoint(events)
            for beside, about in self.on(pattern)
        )

    def is_beside(self, pattern: str, event: str) -> bool:
        """Whether a note about a finding of a pattern stands beside an event."""
        return any(beside.id == event for beside, _ in self.on(pattern))

    def naming_mine(self, pattern: str) -> Iterator[About]:
        """The notes that name work in front of the agent."""
        mine = {event.id for event in self._view.events}
        for beside, about in self.on(pattern):
            if mine.intersection(about.events) - {beside.id}:
                yield about

    def lost_work(self) -> Iterator[object]:
        """The payloads of lost work that separate notes ask this agent to do again.

        An agent that a note names is meant; if none of those is there, the first of the team.
        """
        for beside, about in self.on("OE"):
            named = [agent for agent in about.agents if agent in self._view.team]
            is_meant = self._view.agent in (named or self._view.team[:1])
            if beside.id not in about.events and is_meant:
                yield from (about.work[event] for event in about.lost)


class _Turn:
    """One activation: takes the events kind by kind, and collects the decision."""

    def __init__(self, view: View, agent: SimulatedAgent, draws: KeyedRandom) -> None:
        self.elements_read = 0
        self._view, self._profile, self._reading = view, agent.profile, agent.reading
        self._draws = draws
        nature = agent.key if agent.nature is None else agent.nature
        self._lasting = KeyedRandom(nature, view.agent, 0)  # the same in all of its turns
        self._common = KeyedRandom(nature, "", 0)  # the same for all agents
        self._heeded = Heeded(view, self._heeds)
        self._without = self._heeded.excluded
        self._others = [name for name in view.others if name not in self._without]
        self._fates: dict[str, EventFate] = {}
        self._outputs: list[NewEvent] = []
        self._jobs: dict[str, Job] = {}
        self._raws: dict[str, RawData] = {}
        self._partials: dict[str, Partial] = {}  # of which this agent puts the whole together
        self._copies: dict[str, Partial] = {}  # that all agents were sent
        self._returned = {event.id for event in view.events if event.final}

    def decide(self) -> Decision:
        """The whole turn."""
        for event in self._view.events:
            self._sort(event)
        is_called = any(self._heeded.naming_mine("DL"))
        if self._has_work and not is_called and self._has_habit("wait"):
            return Decision.wait()
        self._drop_work()
        counted = self._count()
        # A final event is the only output of its activation, so everything else waits.
        if not self._submit(counted):
            self._report(counted)
            self._take_on()
            self._do_again()
            for problem_range in dict.fromkeys(
                partial.job.whole for partial in self._partials.values()
            ):
                self._collect(problem_range, counted)
        return Decision(fates=list(self._fates.values()), outputs=self._outputs)

    # --- what lies in front of it ---

    @property
    def _has_work(self) -> bool:
        return bool(self._jobs or self._raws or self._partials)

    def _sort(self, event: Pending) -> None:
        """Put an event to its kind; damaged work is discarded, for all to see."""
        if event.type == NOTICE:
            self._sort_announced(event)
            return
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

    def _sort_announced(self, event: Pending) -> None:
        """Leave a result that was announced and not submitted, unless a note asks for an answer."""
        read = Partial.read(event.payload, self._reading)
        if read is None:
            self._settle("consume", [event.id])
        elif any(self._heeded.on("MC")):
            self._partials[event.id] = read

    def _sort_partial(self, event: Pending, partial: Partial) -> None:
        if event.final or self._collects(partial.job):
            self._partials[event.id] = partial
        elif partial.is_for_all:
            self._copies[event.id] = partial  # the agent that collects has one, too
        else:
            self._settle("reroute", [event.id], [self._collector(partial.job)])

    def _collector(self, job: Job) -> str:
        """The agent that puts the counts together: this one, if the wanted one is not present, or
        a note says to do without it."""
        target = job.report_to
        is_here = target in self._view.team and target not in self._without
        return target if is_here and target else self._view.agent

    def _collects(self, job: Job) -> bool:
        return self._collector(job) == self._view.agent

    def _own(self, problem_range: Range, counted: Iterable[Partial]) -> list[Partial]:
        return [
            partial
            for partial in counted
            if partial.job.whole == problem_range and self._collects(partial.job)
        ]

    # --- habits ---

    def _has_habit(self, name: str, index: int = 0, times: float = 1.0) -> bool:
        return self._draws.chance(getattr(self._profile, name) * times, name, index)

    def _is_lasting(self, name: str, about: object) -> bool:
        """Whether a habit shows about an object; if so, then in all turns of the agent."""
        return self._lasting.chance(getattr(self._profile, name), f"{name} {about}")

    def _heeds(self, note: str) -> bool:
        return self._lasting.chance(self._profile.compliance, note)

    def _drop_work(self) -> None:
        """Discard and pass on single events, by bad habits."""
        colleagues = self._view.others
        solutions = {**self._partials, **self._copies}
        for i, event in enumerate(self._view.events):
            if event.id in self._returned or event.id in self._fates or event.type == NOTICE:
                continue
            # Solutions that are kept are seen again and again, which must not count each time.
            times = 1 / len(solutions) if event.id in solutions else 1.0
            if self._is_discarded(event.id, i, times):
                self._settle("discard", [event.id])
            elif colleagues and self._is_passed_on(event.id, i, times):
                self._settle(
                    "reroute", [event.id], [self._draws.choice(colleagues, "pass on to", i)]
                )
            else:
                continue
            for kind in (self._jobs, self._raws, self._partials, self._copies):
                kind.pop(event.id, None)

    def _is_discarded(self, event: str, index: int, times: float) -> bool:
        if self._heeded.is_beside("OE", event):
            return False
        return self._has_habit("discard", index, times) or self._is_thrown_away(event, index)

    def _is_passed_on(self, event: str, index: int, times: float) -> bool:
        if self._heeded.is_beside("ER", event):
            return False
        job = self._jobs.get(event)
        if job and job.part != job.whole:
            purpose = f"unwanted {job.part}"  # which all agents agree about
            if self._common.chance(self._profile.unwanted, purpose):
                return self._has_habit("shirk", index)
        return self._has_habit("pass_on", index, times)

    def _is_thrown_away(self, event: str, index: int) -> bool:
        """Whether a solution adds nothing to the others, and the agent discards such solutions."""
        partial = self._partials.get(event)
        if partial is None or not self._has_habit("discard_double", index):
            return False  # without comparing, which takes long with thousands of solutions
        solutions = [other for name, other in self._partials.items() if name != event]
        return not partial.adds_to(r for other in solutions for r in other.covers)

    # --- what it does ---

    def _count(self) -> list[Partial]:
        counted = []
        for i, (event, raw) in enumerate(self._raws.items()):
            self._settle("consume", [event])
            self.elements_read += len(raw.data)
            counts = self._reading.count(raw.data, self._profile, self._draws, i)
            is_repeated = self._heeded.warns("RSP", [event])
            counted.append(Partial(counts, (raw.job.part,), raw.job, is_repeated=is_repeated))
        return counted

    def _submit(self, counted: list[Partial]) -> bool:
        """Submit or announce a complete answer, or an early answer by habit; whether it did.

        A final event must be the only output, so what is to be done for others has to wait.
        """
        events = {**self._partials, **self._copies}
        for problem_range in dict.fromkeys(
            partial.job.whole for partial in (*events.values(), *counted)
        ):
            mine = self._own(problem_range, counted)
            used = self._used(
                problem_range, events | {f"mine {i}": partial for i, partial in enumerate(mine)}
            )
            partials = [*used.values()]
            if not partials or len(mine) < len(counted):
                continue
            answer = join(
                partials, replace(partials[0].job, whole=problem_range, report_to=self._view.agent)
            )
            if answer.is_complete or self._is_submitted_early(answer):
                inputs = {**_of(problem_range, events), **used}
                self._settle("consume", [event for event in inputs if event in events])
                self._finish(answer)
                return True
        return False

    def _is_submitted_early(self, answer: Partial) -> bool:
        """Whether the agent takes a part for the whole.

        It never forgets work that lies in front of itself, or that a note has named.
        """
        if any(self._heeded.on("MC")):
            return True
        mine = [job.part for job in self._jobs.values()]
        gaps = missing(answer.job.whole, [*answer.covers, *mine])
        knows_better = not gaps or any(missing(r, answer.covers) for r in answer.awaited)
        knows_better |= any(e in self._partials for e, _ in self._told_early())
        if knows_better or not self._is_lasting("submit_early", answer.job.whole):
            return False
        enough, draw = self._profile.enough, self._lasting.uniform("enough")
        return answer.share >= enough + draw * (1 - enough)

    def _told_early(self) -> list[tuple[str, About]]:
        """The returned answers, each with the note about missing work."""
        return [(event.id, about) for event, about in self._heeded.on("ET") if event.final]

    def _finish(self, answer: Partial) -> None:
        """Submit an answer; or, by habit, announce the answer to all and forget to submit."""
        problem_range = answer.job.whole
        if answer.is_complete:  # so what is left of the work is of no use any more
            self._settle(
                "consume", [e for e, job in self._jobs.items() if job.whole == problem_range]
            )
        payload = answer.payload()
        if answer.is_complete and not any(self._heeded.on("MC")) and self._has_habit("announce"):
            self._outputs = [NewEvent(payload=payload, type=NOTICE, to=list(self._view.team))]
        else:
            self._outputs = [NewEvent(payload=payload, type="solution", final=True)]

    def _used(self, problem_range: Range, solutions: Mapping[str, Partial]) -> dict[str, Partial]:
        """The solutions to merge for a problem: each part once, unless the agent errs.

        By habit it counts twice what two agents have solved alike, and mixes what does not belong
        together: parts of two ways to cut the problem, or parts of another problem.
        """
        chosen = {id(partial) for partial in disjoint([*_of(problem_range, solutions).values()])}
        used = {event: solution for event, solution in solutions.items() if id(solution) in chosen}
        errs = bool(used) and (self._profile.count_twice or self._profile.mix)
        if len(used) == len(solutions) or not errs:
            return used
        wrong = [event for event in solutions if event not in used]
        return used | {
            e: solutions[e] for e in wrong if self._errs_about(e, problem_range, solutions)
        }

    def _errs_about(
        self, event: str, problem_range: Range, solutions: Mapping[str, Partial]
    ) -> bool:
        solution = solutions[event]
        alike = {e: other for e, other in solutions.items() if other.overlaps(solution)}
        is_twice = solution.job.whole == problem_range and any(
            other is not solution and other.covers == solution.covers for other in alike.values()
        )
        habit, pattern = ("count_twice", "RSP") if is_twice else ("mix", "CLA")
        is_warned = is_twice and any(other.is_repeated for other in alike.values())
        if is_warned or event in self._returned or self._heeded.warns(pattern, alike):
            return False
        return self._is_lasting(habit, solution.covers)

    def _report(self, counted: list[Partial]) -> None:
        """Send each chunk's counts to the collecting agent.

        One solution for all chunks would be of no use if it overlapped another a little.
        """
        for partial in counted:
            name = self._collector(partial.job)
            solution = replace(partial, job=replace(partial.job, report_to=name))
            is_for_all = self._has_habit("broadcast", len(self._outputs))
            to = self._view.team if is_for_all else (name,)
            self._emit("solution", solution.payload(is_for_all=is_for_all), to)
        colleagues = self._view.others
        if counted and colleagues and self._has_habit("chat"):
            parts = [list(partial.job.part) for partial in counted]
            job = replace(counted[0].job, report_to=self._collector(counted[0].job))
            to = (self._draws.choice(colleagues, "chat with"),)
            self._emit(NOTICE, {**job.payload(), "counted": parts}, to)

    def _take_on(self) -> None:
        """Read short parts, up to the limit at once, and cut up longer parts."""
        reads = 0
        for event, job in self._jobs.items():
            is_short = job.length <= self._most(job)
            if is_short and reads == self._profile.reads_at_once:
                continue
            reads += is_short
            self._settle("consume", [event])
            own_job = replace(job, report_to=self._collector(job))
            try:
                if is_short:
                    self._read(own_job)
                else:
                    self._hand_out(self._cut(own_job))
            except ValueError:  # there is no such part: the event is damaged
                self._settle("discard", [event])

    def _read(self, job: Job) -> None:
        data = self._view.tools["raw_data"](list(job.part))
        self._emit("raw_data", job.payload(data=data), (self._view.agent,))

    def _do_again(self) -> None:
        """Hand out lost work again, where a note asks for it."""
        for payload in self._heeded.lost_work():
            fields = payload if isinstance(payload, Mapping) else {}
            job = Job.read(
                {**fields, "part": fields.get("whole", fields.get("part"))}, self._reading
            )
            if job is not None:
                again = [job.at(part) for part in parts_in(payload)]
                self._hand_out([part for job in again for part in self._cut(job)])

    def _collect(self, problem_range: Range, counted: list[Partial]) -> None:
        """Keep the present solutions, see to missing work, or hand the collection over."""
        used = self._used(problem_range, self._partials)
        partials = [*used.values()]
        if not partials:
            return
        job = replace(partials[0].job, whole=problem_range, report_to=self._view.agent)
        colleagues = self._view.others
        notes = [*self._heeded.naming_mine("DL")]
        notes += [about for event, about in self._told_early() if event in used]
        if notes:
            self._see_to_missing(
                join(partials, job), notes, self._own(problem_range, counted), used
            )
        elif len(partials) > 1 and colleagues and self._has_habit("hand_over"):
            to = self._draws.choice(colleagues, "hand over to")
            self._merge(join(partials, job), used, to)
        elif self._returned.intersection(used) or (len(partials) > 1 and self._has_habit("merge")):
            self._merge(join(partials, job), used)

    def _see_to_missing(
        self, merged: Partial, notes: Sequence[About], counted: Sequence[Partial],
        used: Mapping[str, Partial],
    ) -> None:  # fmt: skip
        """Wait for the missing work that notes name as open, and hand the rest out again.

        Args:
            merged: The agent's own partials, put together.
            notes: The work that the notes are about.
            counted: The partial that the agent has counted in this turn, and that is still on its
                way to itself.
            used: The solutions that it has.
        """
        mine = [job.part for job in self._jobs.values() if self._collects(job)]
        present = [*merged.covers, *mine, *(r for partial in counted for r in partial.covers)]
        named = [r for about in notes for r in _open_parts(about)]
        gaps = missing(merged.job.whole, [*present, *named])
        awaited = missing(merged.job.whole, present)
        if awaited:
            self._merge(replace(merged, awaited=awaited), used)
            self._hand_out([part for gap in gaps for part in self._cut(merged.job.at(gap))])

    # --- how it does it ---

    def _merge(self, merged: Partial, used: Mapping[str, Partial], to: str | None = None) -> None:
        """Merge solutions into one, with all redundant ones."""
        own = _of(merged.job.whole, self._partials)
        redundant = [event for event, it in own.items() if not it.adds_to(merged.covers)]
        self._settle("consume", [*used, *redundant])
        name = to or self._view.agent
        merged = replace(merged, job=replace(merged.job, report_to=name))
        self._emit("solution", merged.payload(), (name,))

    def _most(self, job: Job) -> int:
        return min(self._reading.most(self._profile), job.most)

    def _cut(self, job: Job) -> list[Job]:
        """Cut a part up; the whole problem into as many pieces for each colleague."""
        size = len(self._view.team)
        pieces = -(-job.length // self._most(job))
        if job.part == job.whole:
            # As many pieces for each member, so that nobody waits for one who has more.
            pieces = -(-pieces // size) * size
        pieces = min(pieces, max(2, size * self._profile.pieces_per_agent), job.length)
        return [job.at(part) for part in self._view.tools["split"](list(job.part), pieces)]

    def _hand_out(self, jobs: Sequence[Job]) -> None:
        """Deal subproblems out: the first to itself, the others to all colleagues in turn."""
        me, colleagues = self._view.agent, self._others
        # Begin anywhere in the ring, else the first colleague gets most of the work.
        turned = int(self._draws.uniform("deal", len(self._outputs)) * max(1, len(colleagues)))
        ring = (me, *colleagues[turned:], *colleagues[:turned])
        for i, job in enumerate(jobs):
            to: tuple[str, ...] = (ring[i % len(ring)],)
            if to != (me,) and self._has_habit("duplicate", len(self._outputs)):
                to = (*to, me)
            self._emit("problem", job.payload(), to)

    def _emit(self, kind: str, payload: dict[str, object], to: Sequence[str]) -> None:
        """Generate an event; by the habit `misaddress` for a name of no agent."""
        if kind != "raw_data" and self._has_habit("misaddress", len(self._outputs)):
            to = [f"{name}-assistant" for name in to]
        self._outputs.append(NewEvent(payload=payload, to=list(to), type=kind))

    def _settle(self, fate: FateName, events: Iterable[str], to: Sequence[str] = ()) -> None:
        for event in events:
            self._fates[event] = EventFate(event=event, fate=fate, to=list(to))


def _of(problem_range: Range, solutions: Mapping[str, Partial]) -> dict[str, Partial]:
    return {
        event: solution
        for event, solution in solutions.items()
        if solution.job.whole == problem_range
    }


def _open_parts(about: About) -> list[Range]:
    """The parts of a note's work that is still open."""
    lost_events = set(about.lost)
    return [
        r for event, work in about.work.items() if event not in lost_events for r in parts_in(work)
    ]
