"""Teams at work, to measure a monitor with: agents that never run out of problems.

The agents stand in teams of five. A team works on one problem at a time: who gets it splits it;
a part may be split again, is solved, put off, passed on or (seldom) dropped; solutions go back to
who asked, and are merged when all are there. So the frontier is steady however long the run is,
and now and then a pattern is raised and healed. All choices follow from the seed.

In a session a merged answer is submitted, and the next problem comes from outside. In one long
run it becomes the team's next problem, and nothing is ever submitted.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from time import thread_time_ns
from typing import Any, TypeVar

from dig.detectors import standard, standard_healers
from dig.detectors.watch import Watch
from dig.graph.records import Fate, Limits, Record
from dig.monitor.messages import Answered, Effect, Output, Pending, Raised, Started, Wake
from dig.monitor.monitor import Monitor

TEAM = 5
TEXT = "Count how often each value occurs in your part, and say where you are not sure."
PATIENCE_S = 100.0  # then a team answers with what it has

# How often an agent does what with an event.
SPLIT_AGAIN, PUT_OFF, WAIT, PASS_ON, STRAY, DROP = 0.25, 0.05, 0.002, 0.03, 0.003, 0.002
TELL_ANOTHER, EARLY = 0.02, 0.01

IDLE = tuple(f"idle-{i}" for i in range(50))

T = TypeVar("T")
Decision = tuple[list[Fate], list[Output]]


@dataclass
class Work:
    """A monitor, and agents that keep it busy.

    With `watch`, the monitor has no detectors: what is timed is a `Watch` that is fed the records
    of each request. `open` events lie in front of further agents who never do anything.

    Attributes:
        times: CPU nanoseconds of each request, by its kind; what holds an event also as `hold`.
        findings: How often each pattern was raised.
    """

    agents: int = 20
    session: bool = True
    watch: Watch | None = None
    seed: int = 1
    open: int = 0
    limits: Limits | None = None
    sink: Callable[[Record], None] = lambda record: None
    now: float = 0.0
    times: dict[str, array[int]] = field(default_factory=dict)
    findings: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.names = tuple(f"agent-{i}" for i in range(self.agents))
        self.teams = max(1, self.agents // TEAM)
        self.random = Random(self.seed)
        self._clock = thread_time_ns
        self.problem = [0] * self.teams  # each team's, by number; 0: it has none
        self.since = [0.0] * self.teams
        self.lead = [self.names[team * TEAM] for team in range(self.teams)]  # who merges it
        self.ready: list[str] = []
        self.busy: list[Started] = []
        self._numbers = 0
        self._turn = 0
        self._records: list[Record] = []
        bare = self.watch is not None
        self.monitor = Monitor(
            (*self.names, *IDLE) if self.open else self.names,
            clock=lambda: self.now,
            session=self.session,
            detectors=() if bare else standard(),
            healers={} if bare else standard_healers(),
            limits=self.limits,
            sink=self._records.append if bare else self.sink,
        )
        if self.open:
            self._leave_open(self.open)
        if not self.session:
            first = {"team": 0, "problem": 0, "asked": [], "text": TEXT}
            self.ask("inject", self.monitor.inject, Output(first, self.names[:1], "problem"))

    @property
    def events(self) -> int:
        """How many events there are."""
        return self.monitor.graph.event_count

    @property
    def nodes(self) -> int:
        """How many events and activations there are."""
        return self.events + len(self.monitor.graph.history.activation_ids)

    def grow(self, nodes: int) -> None:
        """Work until there are so many events and activations, without taking times."""
        self._clock = _stopped
        while self.nodes < nodes:
            self.step()
        self._clock = thread_time_ns
        self.times = {}

    # --- one request after the other ---

    def step(self) -> None:
        """Somebody starts or ends, or a problem is posed; if nobody can, time passes."""
        self.now += 0.1 / self.teams
        team = self._turn = (self._turn + 1) % self.teams
        if self.session and not self.problem[team]:
            output = Output(self._problem(team), (self._member(team),), "problem")
            self.ask("inject", self.monitor.inject, output)
        elif self.problem[team] and self.now - self.since[team] > PATIENCE_S:
            self._press(team)
        elif self.ready and (not self.busy or self.random.random() < 0.5):
            self.ask("start", self.monitor.start, self._one_of(self.ready))
        elif self.busy:
            current = self._one_of(self.busy)
            self.ask("end", self.monitor.end, current.activation, *self._decide(current))
        else:
            self.now += 1.0
            self.ask("tick", self.monitor.tick)

    def ask(self, kind: str, request: Callable[..., list[Effect]], *what: Any) -> None:
        """Make a request, time it, and note what comes of it."""
        events = self.events
        start = self._clock()
        effects = request(*what)
        ns = self._clock() - start
        if self.watch is not None:
            ns = self._watched(self.watch)
        self._time(kind, ns)
        if self.events > events:
            self._time("hold", ns)
        for effect in effects:
            match effect:
                case Wake(agent) if agent not in IDLE:
                    self.ready.append(agent)
                case Started():
                    self.busy.append(effect)
                case Raised(finding):
                    self.findings[finding.pattern] += 1
                case Answered(_, payload):
                    self.problem[payload["team"]] = 0

    def _watched(self, watch: Watch) -> int:
        found = []
        start = self._clock()
        for record in self._records:
            found += watch.feed(record)
        ns = self._clock() - start
        self._records.clear()
        self.findings.update(finding.pattern for finding in found)
        return ns

    def _time(self, kind: str, ns: int) -> None:
        times = self.times.get(kind)
        if times is None:
            times = self.times[kind] = array("q")
        times.append(ns)

    def _leave_open(self, count: int) -> None:
        """Split a problem into parts for agents who never do anything."""
        part = {"team": 0, "problem": 0, "asked": [], "text": TEXT}
        self.ask("inject", self.monitor.inject, Output(part, IDLE[:1], "problem"))
        effects = self.monitor.start(IDLE[0])
        current = next(effect for effect in effects if isinstance(effect, Started))
        parts = [Output(part, (IDLE[i % len(IDLE)],), "problem") for i in range(count)]
        fates = [Fate(current.events[0].id, "consume")]
        self.ask("end", self.monitor.end, current.activation, fates, parts)

    def _press(self, team: int) -> None:
        """A team does not come to an end: have it answer with what its lead has."""
        lead = self.lead[team]
        if all(current.agent != lead for current in self.busy):
            self.ready = [agent for agent in self.ready if agent != lead]
            self.ask("start", self.monitor.start, lead)
        current = next(current for current in self.busy if current.agent == lead)
        self.busy.remove(current)
        fates = [Fate(event.id, "consume") for event in current.events]
        self.since[team] = self.now
        self.ask(
            "end",
            self.monitor.end,
            current.activation,
            fates,
            [self._answer(team, 0, [[lead, 0, 1]])],
        )

    def _one_of(self, things: list[T]) -> T:
        """Take one out of a list, at random."""
        i = self.random.randrange(len(things))
        things[i], things[-1] = things[-1], things[i]
        return things.pop()

    # --- what agents decide ---

    def _decide(self, current: Started) -> Decision:
        agent = current.agent
        groups: dict[int, list[Pending]] = {}
        single: list[Pending] = []
        for event in current.events:
            asked = event.payload["asked"] if event.sender != "system" else []
            if event.type == "solution" and asked[-1][0] == agent and not self._is_old(event):
                groups.setdefault(asked[-1][1], []).append(event)
            elif event.sender != "system":
                single.append(event)
        merged = self._merge(groups.values())
        if merged is not None:
            return merged
        fates: list[Fate] = []
        outputs: list[Output] = []
        for event in single:
            self._work(agent, event, len(current.events) > 1, fates, outputs)
        return fates, outputs

    def _merge(self, groups: Iterable[list[Pending]]) -> Decision | None:
        """Merge the first group of solutions that is complete, if one is."""
        for events in groups:
            asked = events[0].payload["asked"]
            have = sum(event.payload["have"] for event in events)
            if have >= asked[-1][2] or (len(asked) == 1 and self._now_and_then(EARLY)):
                fates = [Fate(event.id, "consume") for event in events]
                if len(asked) > 1:
                    return fates, [self._solution(events[0], asked[:-1])]
                return fates, [self._answer(events[0].payload["team"], have, asked)]
        return None

    def _work(
        self, agent: str, event: Pending, more: bool, fates: list[Fate], outputs: list[Output]
    ) -> None:
        """What an agent does with one event that is no solution for it."""
        payload, draw = event.payload, self.random.random()
        if event.type != "problem" or self._is_old(event):
            fates.append(Fate(event.id, "consume"))
        elif payload["asked"] and draw < DROP:
            fates.append(Fate(event.id, "discard"))
        elif draw < WAIT + DROP or (more and draw < PUT_OFF):
            pass  # it is delayed
        elif payload["asked"] and draw < PUT_OFF + PASS_ON:
            teams = [payload["team"], (payload["team"] + 1) % self.teams]
            team = teams[draw < PUT_OFF + STRAY]
            fates.append(Fate(event.id, "reroute", (self._member(team, agent),)))
        else:
            fates.append(Fate(event.id, "consume"))
            depth = len(payload["asked"])
            if depth == 0 or (depth == 1 and self.random.random() < SPLIT_AGAIN):
                outputs += self._split(agent, event)
            else:
                outputs.append(self._solution(event, payload["asked"]))

    def _split(self, agent: str, event: Pending) -> list[Output]:
        payload = event.payload
        team = payload["team"]
        if payload["problem"] == 0:  # all of one long run: a problem for every team
            return [
                Output(self._problem(t), (self._member(t, agent),), "problem")
                for t in range(self.teams)
            ]
        if not payload["asked"]:
            self.lead[team] = agent
        self._numbers += 1
        need = self.random.randint(2, 4)
        asked = [*payload["asked"], [agent, self._numbers, need]]
        part = {**payload, "asked": asked}
        return [Output(part, (self._member(team, agent),), "problem") for _ in range(need)]

    def _solution(self, event: Pending, asked: list[Any]) -> Output:
        payload = {**event.payload, "asked": asked, "have": 1}
        to = [asked[-1][0]]
        if self._now_and_then(TELL_ANOTHER):
            to.append(self._member(payload["team"], asked[-1][0]))
        return Output(payload, tuple(to), "solution")

    def _answer(self, team: int, have: int, asked: list[Any]) -> Output:
        if not self.session:
            return Output(self._problem(team), (self._member(team),), "problem")
        payload = {"team": team, "problem": self.problem[team], "asked": asked, "have": have}
        return Output(payload, type="solution", final=True)

    def _problem(self, team: int) -> dict[str, Any]:
        self._numbers += 1
        self.problem[team] = self._numbers
        self.since[team] = self.now
        return {"team": team, "problem": self._numbers, "asked": [], "text": TEXT}

    def _member(self, team: int, but: str | None = None) -> str:
        names = self.names[team * TEAM :][:TEAM]
        name = self.random.choice(names)
        return name if name != but else names[(names.index(name) + 1) % len(names)]

    def _is_old(self, event: Pending) -> bool:
        return bool(event.payload["problem"] != self.problem[event.payload["team"]])

    def _now_and_then(self, chance: float) -> bool:
        return self.random.random() < chance


def _stopped() -> int:
    return 0
