"""What every shell around the monitor does alike: views, decisions, failures, the end.

A host has no clock and no loop either; the bus and the simulator drive it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from inspect import signature
from types import MappingProxyType
from typing import Any

from dig._util.json_values import plain
from dig.detectors.interventions import MEANS, Budget, Fit, Means, only
from dig.detectors.protocols import Detector, Healer
from dig.detectors.recorded_names import recorded_name
from dig.errors import DecisionError, PayloadError
from dig.graph.records import End, Fate, Limits, Outcome
from dig.monitor.messages import Effect, Gate, Output, Started
from dig.monitor.monitor import Monitor
from dig.monitor.sinks import Sink
from dig.monitor.sweeping import KEEP

from .agents import Tool, View, as_decision, shown
from .result import MOST_FINDINGS, RunResult, Tally
from .reviewer import Log, Reviewer


@dataclass(frozen=True)
class Setup:
    """Everything about a run that is no agent, no clock and no problem.

    Attributes:
        run: The name of the run's configuration.
        task: What the run is about.
        seed: What it was seeded with.
        session: Whether it goes on with further problems after an answer.
        memory: Whether agents remember what they have seen.
        limits: The thresholds of the patterns.
        detectors: Makes a fresh set of detectors.
        healers: Makes a fresh set of healers, by pattern; ``None``: only observe.
        gates: Asked about every agent-made event before its release.
        budget: How much healing there may be.
        means: Which means healing may use.
        reviewer: A member of the team that reads along while all others wait, if there is one.
        fail_closed: End the run when a detector, healer, gate or policy fails.
        redacts: Mask what looks like a secret in all that agents say (see `dig._util.redaction`).
        keep: How many records of closed history a session keeps for inspection
            (`dig.graph.retention`); ``None``: all. Other runs keep all, and so do those with a
            reviewer, who reads all.
        tools: What agents may call, by name.
        limit_s: Seconds after which the run is ended; the default is that of the paper's
            case study.
        activation_timeout_s: Seconds after which an agent's activation is ended with an error.
        retries: How often an agent is started again after failures in a row.
        backoff_s: Seconds before the first such start; doubled for each further one.
        speed: How many times faster than real time the clock of a run on the bus goes; all
            seconds here, and in the trace, are seconds on that clock.
    """

    run: str = "run"
    task: Any = None
    seed: int | None = None
    session: bool = False
    memory: bool = False
    limits: Limits = field(default_factory=Limits)
    detectors: Callable[[], Sequence[Detector]] = tuple
    healers: Callable[[], Mapping[str, Healer]] | None = None
    gates: Sequence[Gate] = ()
    budget: Budget = field(default_factory=Budget)
    means: Collection[Means] = MEANS
    reviewer: Reviewer | None = None
    fail_closed: bool = False
    redacts: bool = True
    keep: int | None = KEEP
    tools: Mapping[str, Tool] = field(default_factory=dict)
    limit_s: float = 120.0
    activation_timeout_s: float = 60.0
    retries: int = 3
    backoff_s: float = 1.0
    speed: float = 1.0

    def described(self) -> dict[str, Any]:
        """What a replay or a fork has to know about it, as plain JSON."""
        healers = self.healers() if self.healers else {}
        restricted = {} if set(MEANS) <= set(self.means) else {"means": sorted(self.means)}
        return {
            **restricted,
            **({} if self.redacts else {"redacts": False}),
            "detectors": [_part(detector) for detector in self.detectors()],
            "healers": {pattern: _part(healer) for pattern, healer in healers.items()},
            "gates": [_part(gate) for gate in self.gates],
            "budget": asdict(self.budget),
            "fail_closed": self.fail_closed,
            "limit_s": self.limit_s,
            "activation_timeout_s": self.activation_timeout_s,
            "retries": self.retries,
            "backoff_s": self.backoff_s,
        }

    def monitor(
        self,
        agents: Sequence[str],
        clock: Callable[[], float],
        sink: Sink,
        stopwatch: Callable[[], float] | None = None,
        fit: Fit | None = None,
    ) -> Monitor:
        """A monitor for one run of this setup; its reviewer comes later."""
        reader = self.reviewer.name if self.reviewer else None
        return Monitor(
            [agent for agent in agents if agent != reader],
            clock=clock,
            run=self.run,
            task=self.task,
            seed=self.seed,
            session=self.session,
            memory=self.memory,
            limits=self.limits,
            detectors=self.detectors(),
            healers=self.healers() if self.healers else None,
            gates=self.gates,
            budget=self.budget,
            fit=only(self.means, fit),
            sink=sink,
            stopwatch=stopwatch,
            fail_closed=self.fail_closed,
            redacts=self.redacts,
            keep=self.kept,
        )

    @property
    def kept(self) -> int | None:
        """How many records of closed history such a run keeps; ``None``: all."""
        return self.keep if self.session and self.reviewer is None else None

    def tally(self) -> Tally:
        """What counts the effects of such a run."""
        return Tally(most=None if self.kept is None else MOST_FINDINGS)


def _part(part: object) -> dict[str, Any]:
    """A part that was handed in: its name, and the numbers and texts that it was made with."""
    described: dict[str, Any] = {"class": recorded_name(part)}
    for name in signature(type(part)).parameters:
        value = getattr(part, f"_{name}", getattr(part, name, None))
        if isinstance(value, bool | int | float | str):
            described[name] = value
    return described


class Host:
    """One run: turns activations into views, and what agents return into requests.

    Attributes:
        monitor: The run's monitor.
    """

    def __init__(self, setup: Setup, monitor: Monitor) -> None:
        """Begin, with nobody activated yet."""
        self.monitor = monitor
        self._setup = setup
        self._tools = MappingProxyType(dict(setup.tools))
        self._turns: Counter[str] = Counter()
        self._usage: dict[str, dict[str, Any]] = {}  # of activations that have not ended
        self._failures: Counter[str] = Counter()  # in a row, by agent
        self._tally = setup.tally()
        self._log: Log | None = None
        if setup.reviewer is not None:
            self._log = Log(setup.reviewer.name)
            monitor.follow(self._log)

    def heed(self, effects: list[Effect]) -> list[Effect]:
        """Count what effects tell, on their way to the shell."""
        self._tally.count(effects)
        return effects

    def inject(self, problem: Output) -> list[Effect]:
        """A problem, or another event, comes from outside."""
        return self.heed(self.monitor.inject(problem))

    def next_turn(self, agent: str) -> int:
        """The number of an agent's next activation, counted from 1."""
        return self._turns[agent] + 1

    def view(self, started: Started) -> View:
        """What the agent of an activation sees."""
        self._turns[started.agent] += 1
        reads = self._log is not None and self._log.reader == started.agent
        usage = self._usage[started.activation] = {}
        return View(
            agent=started.agent,
            team=tuple(self.monitor.graph.agents),
            turn=self._turns[started.agent],
            time_s=self.monitor.now,
            events=tuple(shown(event) for event in started.events),
            tools=self._tools,
            reading=self._log.read(self.monitor.graph.now) if self._log and reads else None,
            usage=usage,
        )

    def decided(self, started: Started, value: object) -> tuple[list[Effect], float | None]:
        """An agent has returned something; nonsense fails the activation and loses nothing.

        Returns:
            The effects, and the seconds after which the agent is to be started again.
        """
        try:
            decision = as_decision(value)
            fates, outputs = decision.parts()
        except Exception as error:  # whatever an agent returns must not end the team
            return self.failed(started, str(error))
        usage = self._used(started.activation) if decision.usage is None else decision.usage
        try:
            ended = self.monitor.end(started.activation, fates, outputs, usage=usage)
        except (DecisionError, PayloadError) as error:
            return self.failed(started, str(error))
        self._usage.pop(started.activation, None)
        self._failures.pop(started.agent, None)
        return self.heed(ended), None

    def failed(self, started: Started, error: str) -> tuple[list[Effect], float | None]:
        """An agent has raised, or taken too long: its inputs stay with it.

        Returns:
            The effects, and the seconds after which the agent is to be started again.
        """
        wait = self._count_failure(started.agent, error)
        kept = [Fate(event.id, "delay") for event in started.events]  # notes too: it read nothing
        usage = self._used(started.activation)
        ended = self.monitor.end(
            started.activation, kept, usage=usage, error=error, retry=wait is not None
        )
        self._usage.pop(started.activation, None)
        return self.heed(ended), wait

    def repeat(
        self, started: Started, end: End, outputs: Sequence[Output]
    ) -> tuple[list[Effect], float | None]:
        """An activation ends as it was recorded, without its agent.

        Returns:
            The effects, and the seconds after which the agent is to be started again.
        """
        wait = None
        if end.error is None:
            self._failures.pop(started.agent, None)
        else:
            wait = self._count_failure(started.agent, str(end.error))
        ended = self.monitor.end(
            started.activation, end.fates, outputs,
            usage=end.usage, error=end.error, retry=wait is not None,
        )  # fmt: skip
        return self.heed(ended), wait

    def _used(self, activation: str) -> dict[str, Any] | None:
        """What an activation has used so far; an agent that wrote down no JSON wrote nothing."""
        try:
            return plain(self._usage.get(activation)) or None
        except PayloadError:
            return None

    def _count_failure(self, agent: str, error: str) -> float | None:
        """One more failure; says after how many seconds to start again, if at all."""
        self._tally.failures[agent] += 1
        self._tally.errors[agent] = error
        self._failures[agent] += 1
        if self._failures[agent] > self._setup.retries:
            return None
        wait: float = self._setup.backoff_s * 2 ** (self._failures[agent] - 1)
        return wait

    @property
    def is_stalled(self) -> bool:
        """Whether nothing can ever happen any more, unless it comes from outside."""
        monitor = self.monitor
        if monitor.is_over:  # the end is on its way
            return False
        if self._setup.session or not monitor.graph.history.event_ids:  # nothing has come yet
            return False
        reviewer = self._setup.reviewer
        if reviewer is not None and reviewer.next_step(monitor.graph):  # it may speak
            return False
        return monitor.is_quiet and monitor.next_deadline() is None

    def finish(self, outcome: Outcome, reason: str) -> RunResult:
        """End the run and give its account."""
        answer = None if self._setup.session else self._tally.answer
        cut_off = {name: used for name in self._usage if (used := self._used(name))}
        self.heed(self.monitor.finish(outcome, answer, cut_off or None))
        return self._tally.result(self.monitor.graph, reason)
