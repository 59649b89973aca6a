"""The settings of a run, and the counts for the result, without a host of agents."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

from dig._util.redaction import mask_secrets, masking_logger
from dig._util.text import one_line
from dig.detectors.describe import in_graph, worth
from dig.detectors.finding import Finding, is_rivals
from dig.detectors.interventions import MEANS, Budget, Fit, Means, only
from dig.detectors.patterns import NAMES, standard, standard_healers
from dig.detectors.policy import HEAL_ALL, Policy
from dig.detectors.protocols import Detector, Healer
from dig.detectors.recorded_names import recorded_name
from dig.detectors.run_so_far import RunSoFar
from dig.detectors.spending_limits import AsBudget, TeamBudget
from dig.detectors.thresholds import Thresholds
from dig.detectors.watch import Timing
from dig.graph.graph import InteractionGraph
from dig.graph.records import Finish, Limits, Record, Usual
from dig.monitor.messages import (
    Answered,
    ComponentFailed,
    Effect,
    Gate,
    Healed,
    PartsSlow,
    Proposed,
    Raised,
)
from dig.monitor.monitor import KEEP, Monitor
from dig.monitor.sinks import Sink

from .result import ComponentFailure, RunResult, remaining_work

if TYPE_CHECKING:
    from .agents import Tool

logger = masking_logger("dig")

DESCRIBED = ("fail_closed", "limit_s", "activation_timeout_s", "retries", "backoff_s")
"""The settings that the header of a trace has as they are, under their own names."""

MOST_FINDINGS = 1_000
"""The number of findings that are kept where history is evicted; the trace has them all."""

Approve = Callable[[Proposed], bool | Awaitable[bool]]
"""Asks a person whether a finding is to be healed; what is no coroutine function gets a thread."""


@dataclass(frozen=True)
class Setup:
    """The settings of a run: everything but agents, clock and problem.

    Attributes:
        run: The name of the run's configuration.
        task: The description of the run's task.
        seed: The seed of the run.
        session: Whether the run goes on with further problems after an answer.
        memory: Whether agents remember what they have seen.
        limits: The thresholds of the patterns.
        usual: The usual findings in good runs of the team, by pattern; ``None``: none were learned.
        detectors: Makes a fresh set of detectors.
        healers: Makes a fresh set of healers, by pattern; ``None``: only observe.
        gates: Asked about every agent-made event before its release.
        budget: The bounds on healing.
        ladder: Healing goes on step by step where a first step does not help.
        means: The means that healing may use.
        policy: The policy about findings.
        approve: Asks a person where the policy says so; ``None``: the policy's deadline decides.
        can_hold: Whether an event can be kept while a person decides.
        fail_closed: End the run when a detector, healer, gate or policy fails.
        redacts: Mask what looks like a secret in all that agents say (see `dig._util.redaction`).
        keep: The number of records of closed history that a session keeps for inspection
            (`dig.graph.retention`); ``None``: all. Other runs keep all.
        tools: The tools that agents may call, by name.
        limit_s: Seconds after which the run is ended; the default is that of the paper's
            case study.
        activation_timeout_s: Seconds after which an agent's activation is ended with an error.
        retries: The number of times that an agent is started again after failures in a row.
        backoff_s: Seconds before the first such start; doubled for each further one.
        speed: The factor by which the clock of a run on the bus goes faster than real time; all
            seconds here, and in the trace, are seconds on that clock.
        key: The key that the random numbers of a simulation are drawn by; ``None``: the seed.
        look_again_s: Seconds after which an agent that only waits is started again; 0: it is
            started by new events alone.
    """

    run: str = "run"
    task: Any = None
    seed: int | None = None
    session: bool = False
    memory: bool = False
    limits: Limits = field(default_factory=lambda: Thresholds().limits)
    usual: Usual | None = None
    detectors: Callable[[], Sequence[Detector]] = tuple
    healers: Callable[[], Mapping[str, Healer]] | None = None
    gates: Sequence[Gate] = ()
    budget: Budget = field(default_factory=Budget)
    ladder: bool = False
    means: Collection[Means] = MEANS
    policy: Policy = field(default_factory=Policy)
    approve: Approve | None = None
    can_hold: bool = True
    fail_closed: bool = False
    redacts: bool = True
    keep: int | None = KEEP
    tools: Mapping[str, Tool] = field(default_factory=dict)
    limit_s: float = 120.0
    activation_timeout_s: float = 60.0
    retries: int = 3
    backoff_s: float = 1.0
    speed: float = 1.0
    key: str | None = None
    look_again_s: float = 0.0

    host_type: ClassVar[Callable[[Any, Monitor], Any] | None] = None
    """Makes the host of a run; ``None``: it is `dig.runtime.host.Host`."""

    def header(self) -> dict[str, Any]:
        """The header of a journal, as plain JSON: what a replay or a fork needs of the setup."""
        healers = self.healers() if self.healers else {}
        budget = asdict(self.budget)
        if not self.ladder:
            del budget["per_problem"]  # a bound on ladders
        # Settings that were added later stand here only with another value than the default, so
        # that traces of older runs keep their bytes.
        return {
            **({} if set(MEANS) <= set(self.means) else {"means": sorted(self.means)}),
            **({} if self.policy == HEAL_ALL else {"policy": self.policy.to_json()}),
            **({} if self.can_hold or not self.policy.asks else {"can_hold": False}),
            **({} if self.redacts else {"redacts": False}),
            **({"keep": self.keep} if self.session and self.keep != KEEP else {}),
            **({} if self.key is None else {"key": self.key}),
            **({"look_again_s": self.look_again_s} if self.look_again_s else {}),
            "detectors": [_part(detector) for detector in self.detectors()],
            "healers": {pattern: _part(healer) for pattern, healer in healers.items()},
            "gates": [_part(gate) for gate in self.gates],
            "budget": budget,
            **({"ladder": True} if self.ladder else {}),
            **{name: getattr(self, name) for name in DESCRIBED},
        }

    def monitor(
        self,
        agents: Sequence[str],
        clock: Callable[[], float],
        sink: Sink | None,
        stopwatch: Timing | Callable[[], float] | None = None,
        fit: Fit | None = None,
    ) -> Monitor:
        """Make a monitor for one run of this setup.

        Args:
            agents: The names of the team.
            clock: Seconds since the run began.
            sink: Is given every record; ``None``: there is none.
            stopwatch: The clocks that time detectors, or one for all; ``None``: none are timed.
            fit: The part of an intervention that the host can carry out; ``None``: all there are.

        Raises:
            SettingsError: The policy has a rule about a pattern that no detector can raise.
        """
        detectors = self.detectors()
        self.policy.check((*NAMES, *(str(detector.pattern) for detector in detectors)))
        return Monitor(
            agents,
            clock=clock,
            run=self.run,
            task=self.task,
            seed=self.seed,
            session=self.session,
            memory=self.memory,
            limits=self.limits,
            usual=self.usual,
            detectors=detectors,
            healers=self.healers() if self.healers else None,
            gates=self.gates,
            budget=self.budget,
            ladder=self.ladder,
            fit=only(self.means, fit),
            policy=self.policy,
            can_hold=self.can_hold,
            sink=sink,
            stopwatch=stopwatch,
            fail_closed=self.fail_closed,
            redacts=self.redacts,
            keep=self.kept_records,
        )

    def ruled(self, policy: Policy | None, budget: AsBudget | None) -> Setup:
        """The setup with another policy, and a budget in the policy; ``None``: no change.

        Raises:
            SettingsError: The budget is none; the message names the mistake.
        """
        policy = policy or self.policy
        if budget is not None:
            policy = replace(policy, budget=TeamBudget.of(budget))
        return self if policy is self.policy else replace(self, policy=policy)

    @property
    def draws_by(self) -> int | str:
        """The key of the random numbers of a simulation."""
        return (self.seed or 0) if self.key is None else self.key

    @property
    def kept_records(self) -> int | None:
        """The number of kept records of closed history; ``None``: all."""
        return self.keep if self.session else None

    def is_host_made(self, record: Record) -> bool:
        """Whether the request of a record was the host's own."""
        return False

    def tally(self, monitor: Monitor, *, has_result: bool = True) -> Tally:
        """Make the counter of effects for a run that begins now, and may have a result."""
        most = None if self.kept_records is None else MOST_FINDINGS
        tally = Tally(most=most, so_far=RunSoFar(monitor.graph))
        if has_result:
            monitor.follow(tally.so_far)
        return tally


def _part(part: object) -> dict[str, Any]:
    """Describe a plug-in: the name, and the numbers and texts of the constructor."""
    described: dict[str, Any] = {"class": recorded_name(part)}
    kind = type(part)
    if kind.__init__ is object.__init__ and kind.__new__ is object.__new__:
        return described  # made with nothing; `signature` compiles a text to say so
    for name in signature(kind).parameters:
        value = getattr(part, f"_{name}", getattr(part, name, None))
        if isinstance(value, bool | int | float | str):
            described[name] = value
    return described


REAL_TIME = Timing(time.perf_counter, time.thread_time)
"""The clocks for the detectors of a run in real time."""

MONITORED = Setup(detectors=standard, healers=standard_healers)
"""The setup of a bus that is given none."""


@dataclass
class Tally:
    """Counts the effects of a run, for the result; logs failures of plug-ins.

    Attributes:
        most: The number of findings that are kept, the latest; ``None``: all.
        findings: The latest findings.
        earlier: The number of findings before them, by pattern.
        worth: The number of findings of the detectors of each worth; what a judge or
            another rival says is not weighed.
        heals: The number of interventions, by action.
        failures: The number of activations that failed, by agent.
        errors: The latest error of each agent that failed.
        component_failures: The parts that were handed in and failed, by name.
        answer: The accepted answer.
        notes: The notes of the system beside it.
        so_far: Follows the records, for the verdict on the run.
    """

    most: int | None = None
    findings: deque[Finding] = field(default_factory=deque)
    earlier: Counter[str] = field(default_factory=Counter)
    worth: Counter[str] = field(default_factory=Counter)
    heals: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    errors: dict[str, str] = field(default_factory=dict)
    component_failures: dict[str, ComponentFailure] = field(default_factory=dict)
    answer: Any = None
    notes: tuple[str, ...] = ()
    so_far: RunSoFar = field(default_factory=RunSoFar)

    def count(self, effects: Iterable[Effect]) -> None:
        """Take some effects into account."""
        for effect in effects:
            if isinstance(effect, Raised):
                self.findings.append(effect.finding)
                if not is_rivals(effect.finding.pattern):
                    self.worth[worth(effect.finding)] += 1
                if self.most is not None and len(self.findings) > self.most:
                    self.earlier[self.findings.popleft().pattern] += 1
            elif isinstance(effect, Healed):
                self.heals[effect.row.action] += 1
            elif isinstance(effect, ComponentFailed):
                self._note_failure(effect)
            elif isinstance(effect, PartsSlow):
                logger.warning(
                    "dig: the team has waited %.1f s for slow detectors or a slow sink; detectors "
                    "take %.0f%% of its time, the sink %.0f%%",
                    effect.slow_s, 100 * effect.detectors, 100 * effect.sink,
                )  # fmt: skip
            elif isinstance(effect, Answered):
                self.answer, self.notes = effect.payload, effect.notes

    def _note_failure(self, failed: ComponentFailed) -> None:
        """Count the failure of a part; log the first three, and then each doubling."""
        name, message = (one_line(text) for text in (failed.component, failed.what))
        before = self.component_failures.get(name)
        times = 1 if before is None else before.times + 1
        failure = self.component_failures[name] = ComponentFailure(name, times, message)
        if times <= 3 or times & (times - 1) == 0:
            logger.warning("dig: %s", failure)

    def result(self, graph: InteractionGraph, reason: str) -> RunResult:
        """The result of a run with this graph."""
        from dig.detectors.five_answers import five_answers  # only a run that has ended needs it

        finish = graph.finished or Finish(graph.t, graph.now, "error")
        return RunResult(
            outcome=finish.outcome,
            reason=mask_secrets(reason),
            answer=self.answer,
            seconds=graph.now / 1_000_000,
            records=graph.t + 1,
            events=graph.event_count,
            activations=graph.activation_count,
            failures=dict(self.failures),
            findings=tuple(in_graph(graph, finding) for finding in self.findings),
            heals=dict(self.heals),
            left=remaining_work(graph),
            errors=dict(self.errors),
            notes=self.notes,
            earlier=dict(self.earlier),
            component_failures=tuple(self.component_failures.values()),
            worth=dict(self.worth),
            verdict=five_answers(self.so_far),
            partial=bool(self.so_far.partial),
            graph=graph,
            so_far=self.so_far,
        )
