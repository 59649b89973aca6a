"""The host: the common part of all shells (views, decisions, failures, the end).

A host has no clock and no loop either; the bus and the simulator drive it.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from inspect import signature
from types import MappingProxyType
from typing import Any

from dig._util.json_values import plain
from dig._util.redaction import mask_secrets, masking_logger
from dig._util.text import counted, one_line, value_text
from dig.detectors.describe import in_graph, worth
from dig.detectors.finding import Finding, is_rivals
from dig.detectors.interventions import MEANS, Budget, Fit, Means, only
from dig.detectors.patterns import NAMES
from dig.detectors.policy import HEAL_ALL, Policy
from dig.detectors.protocols import Detector, Healer
from dig.detectors.recorded_names import recorded_name
from dig.detectors.run_so_far import RunSoFar
from dig.detectors.thresholds import Thresholds
from dig.detectors.watch import Timing
from dig.errors import DecisionError, PayloadError, RequestError, StopRunError
from dig.graph.graph import InteractionGraph
from dig.graph.records import FAILURES, SYSTEM, End, Fate, Finish, Limits, Outcome, Record, Usual
from dig.monitor.messages import (
    Answered,
    ComponentFailed,
    Effect,
    Gate,
    Healed,
    Output,
    PartsSlow,
    Pending,
    Proposed,
    Raised,
    Started,
    Wake,
)
from dig.monitor.monitor import KEEP, Monitor
from dig.monitor.sanitize import MOST_IN_ERROR
from dig.monitor.sinks import Sink

from .agent_errors import TeamRequests, describe, stack_incident, stack_of
from .agents import Tool, View, as_decision, with_note
from .result import GAVE_UP, STALLED, ComponentFailure, RunResult, remaining_work

logger = masking_logger("dig")

DESCRIBED = ("fail_closed", "limit_s", "activation_timeout_s", "retries", "backoff_s")
"""The settings that the header of a trace has as they are, under their own names."""

MOST_FINDINGS = 1_000
"""The number of findings that are kept where history is evicted; the trace has them all."""

LATE_OUTPUT, MOST_LATE = "late output", 200
"""The incident when an agent that was taken out still says something, and how much is kept."""

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

    @property
    def draws_by(self) -> int | str:
        """The key of the random numbers of a simulation."""
        return (self.seed or 0) if self.key is None else self.key

    @property
    def kept_records(self) -> int | None:
        """The number of kept records of closed history; ``None``: all."""
        return self.keep if self.session else None

    def host(self, monitor: Monitor) -> Host:
        """Make the host of a run that begins now."""
        return Host(self, monitor)

    def is_host_made(self, record: Record) -> bool:
        """Whether it is the host's own request that led to a record."""
        return False

    def tally(self, monitor: Monitor) -> Tally:
        """Make the counter of effects for a run that begins now."""
        most = None if self.kept_records is None else MOST_FINDINGS
        tally = Tally(most=most, so_far=RunSoFar(monitor.graph))
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
            verdict=self.so_far.verdict(state="it goes on"),
            graph=graph,
        )


class Host:
    """One run: turns activations into views, and return values of agents into requests.

    Attributes:
        monitor: The run's monitor.
        notes: By agent: a note that it sees beside its first input in each activation.
        requests: The requests to the team.
    """

    def __init__(self, setup: Setup, monitor: Monitor) -> None:
        """Begin, before the first activation."""
        self.monitor = monitor
        self.notes: Mapping[str, str] = {}
        self.requests = TeamRequests(monitor)
        self._setup = setup
        self._tools = MappingProxyType(dict(setup.tools))
        self._turns: Counter[str] = Counter()
        self._usage: dict[str, dict[str, Any]] = {}  # of activations that have not ended
        self._failures: Counter[str] = Counter()  # in a row, by agent
        self._ended_by: str | None = None  # the activation whose error ends the run
        self._views: dict[str, dict[str, Pending]] = {}  # each agent's latest, by event
        self._looking: set[str] = set()  # agents that wait, and look again
        self._tally = setup.tally(monitor)

    def count_effects(self, effects: list[Effect]) -> list[Effect]:
        """Count effects of the monitor for the result, and return them."""
        self._tally.count(effects)
        return effects

    def start(self, agent: str) -> list[Effect]:
        """Start an activation of an agent, if it has new events."""
        return self.monitor.start(agent)

    def after_activation(self) -> tuple[list[Effect], Sequence[str]] | None:
        """Make the host's own requests: effects, and agents to start at once; most have none."""
        return None

    def next_turn(self, agent: str) -> int:
        """The number of an agent's next activation, counted from 1."""
        return self._turns[agent] + 1

    def view(self, started: Started) -> View:
        """The view of an activation, for its agent."""
        self._turns[started.agent] += 1
        self._looking.discard(started.agent)
        usage = self._usage[started.activation] = {}
        view = View(
            agent=started.agent,
            team=tuple(self.monitor.graph.present),
            turn=self._turns[started.agent],
            time_s=self.monitor.now,
            events=self._shown_to(started),
            tools=self._tools,
            usage=usage,
            activation=started.activation,
        )
        return with_note(view, note) if (note := self.notes.get(started.agent)) else view

    def _shown_to(self, started: Started) -> tuple[Pending, ...]:
        """An agent's view of its inputs; a payload that the agent was shown is not copied again."""
        present = self.monitor.graph.present
        # Forget agents that have left: a session may have any number of them.
        if len(self._views) > len(present):
            self._views = {name: events for name, events in self._views.items() if name in present}
        before = self._views.get(started.agent, {})
        shown = self._views[started.agent] = {
            event.id: _copy_event(event, before.get(event.id)) for event in started.events
        }
        return tuple(shown.values())

    def end_activation(self, started: Started, value: object) -> tuple[list[Effect], float | None]:
        """An agent has returned something; nonsense fails the activation and loses nothing.

        Returns:
            The effects, and the seconds after which the agent is to be started again.
        """
        try:
            decision = as_decision(value)
            fates, outputs = decision.parts()
            fates = (*fates, *_delay(started.kept))
        except Exception as error:  # whatever an agent returns must not end the team
            return self.fail_activation(started, error)
        usage = self._used(started.activation) if decision.usage is None else decision.usage
        try:
            ended = self.monitor.end(started.activation, fates, outputs, usage=usage)
        except (DecisionError, PayloadError) as error:
            return self.fail_activation(started, error)
        except RequestError as error:
            return self._report_if_taken_out(started, value, error)
        self._usage.pop(started.activation, None)
        self._reset_failures(started.agent)
        return ended, self._looks_again_s(started, outputs, ended)

    def _looks_again_s(
        self, started: Started, outputs: Sequence[Output], ended: list[Effect]
    ) -> float | None:
        """Seconds until an agent that only waits is started again; ``None``: never."""
        if not self._setup.look_again_s or outputs:
            return None
        state = self.monitor.graph.agents.get(started.agent)
        inputs = {event.id for event in started.events if event.sender != SYSTEM}
        if state is None or not state.buffer or not inputs <= state.buffer.keys():
            return None
        if any(isinstance(effect, Wake) and effect.agent == started.agent for effect in ended):
            return None
        self._looking.add(started.agent)
        return self._setup.look_again_s

    def fail_activation(
        self, started: Started, error: BaseException
    ) -> tuple[list[Effect], float | None]:
        """Fail an activation after an exception or a timeout: the inputs stay with the agent.

        Returns:
            The effects, and the seconds after which the agent is to be started again.
        """
        text = describe(error, MOST_IN_ERROR)
        wait = self._count_failure(started, text, is_last=isinstance(error, StopRunError))
        # Notes too, also those that it was not shown: it read nothing.
        running = self.monitor.graph.running.get(started.activation)
        fates = _delay([event.id for event in running.inputs] if running else ())
        usage = self._used(started.activation)
        try:
            ended = self.monitor.end(
                started.activation, fates, usage=usage, error=text, retry=wait is not None
            )
        except RequestError as refused:
            return self._report_if_taken_out(started, text, refused)
        self._usage.pop(started.activation, None)
        ended += self._stack_incident(started, stack_of(error))
        if isinstance(error, StopRunError):
            self._ended_by = started.activation
            detail = {"who": started.agent, "what": str(error)}
            ended += self.monitor.incident(GAVE_UP, detail)
        return ended, wait

    def _report_if_taken_out(
        self, started: Started, value: object, refused: RequestError
    ) -> tuple[list[Effect], float | None]:
        """Report the output of an agent that healing takes out at this very moment."""
        if self.monitor.is_over or started.agent in self.monitor.graph.present:
            raise refused
        return self.report_late_output(started, value), None

    def report_late_output(self, started: Started, value: object) -> list[Effect]:
        """Report the late output of an agent that healing has taken out, cut to `MOST_LATE`."""
        self._usage.pop(started.activation, None)
        text = str(value)
        with suppress(DecisionError):
            text = "; ".join(value_text(output.payload) for output in as_decision(value).outputs)
        detail = {
            "agent": started.agent,
            "activation": started.activation,
            "said": one_line(text, MOST_LATE),
        }
        return self.monitor.incident(LATE_OUTPUT, detail)

    def repeat_end(
        self, started: Started, end: End, outputs: Sequence[Output], stack: str = ""
    ) -> tuple[list[Effect], float | None]:
        """End an activation as recorded, without calling the agent.

        Args:
            started: The activation.
            end: Its recorded end.
            outputs: The events that it generates.
            stack: The recorded stack trace of its error, if that is to be written down again.

        Returns:
            The effects, and the seconds after which the agent is to be started again.
        """
        wait = None
        if end.error is None:
            self._reset_failures(started.agent)
        else:
            wait = self._count_failure(started, end.error)
        ended = self.monitor.end(
            started.activation, end.fates, outputs,
            usage=end.usage, error=end.error, because=end.because, cancelled=end.cancelled,
            retry=wait is not None,
        )  # fmt: skip
        ended += self._stack_incident(started, stack)
        if end.error is None:
            wait = self._looks_again_s(started, outputs, ended)
        return ended, wait

    def _stack_incident(self, started: Started, stack: str) -> list[Effect]:
        return self.monitor.incident(*stack_incident(started.activation, stack)) if stack else []

    def _used(self, activation: str) -> dict[str, Any] | None:
        """The usage of an activation so far; usage outside JSON counts as none."""
        usage = self._usage.get(activation)
        try:
            return plain(usage) if usage else None
        except PayloadError:
            return None

    def _reset_failures(self, agent: str) -> None:
        """Reset the failure count of an agent after a success."""
        self._failures.pop(agent, None)
        self.requests.lost.pop(agent, None)

    def _count_failure(self, started: Started, error: str, is_last: bool = False) -> float | None:
        """Count a failure; returns the seconds until the next attempt, ``None`` for no attempt."""
        agent = started.agent
        self._tally.failures[agent] += 1
        self._tally.errors[agent] = mask_secrets(error)
        self._failures[agent] += 1
        if is_last or self._failures[agent] > self._setup.retries:
            self.requests.lost.pop(agent, None)  # the latest comes last
            times = counted(self._failures[agent], "time")
            reason = f"{agent} failed {times} in a row, at last: {error}"
            self.requests.lost[agent] = started.activation, reason
            return None
        wait: float = self._setup.backoff_s * 2 ** (self._failures[agent] - 1)
        return wait

    @property
    def is_stalled(self) -> bool:
        """Whether nothing can ever happen any more, except from outside."""
        monitor = self.monitor
        if monitor.is_over or self._looking or self._ended_by:  # the end, or a look, is on its way
            return False
        if not monitor.graph.history.event_ids or (self._setup.session and not self.requests.lost):
            return False  # something may come
        return monitor.is_quiet and monitor.next_deadline() is None

    def stand_still(self) -> tuple[Outcome, str]:
        """The outcome and the reason of a run in which nothing can happen any more.

        It is an error if an agent holds work that failed for good: nobody else can go on. Else the
        team stands still by itself.
        """
        work = next(self.requests.lost_work(), None)
        if work is None:
            return "stopped", STALLED
        _, self._ended_by, error = work
        return "error", f"{STALLED}: {error}"

    def finish(self, outcome: Outcome, reason: str) -> RunResult:
        """End the run and make the result; requests without an answer fail."""
        answer = None if self._setup.session else self._tally.answer
        failure = "limit" if outcome == "stopped" and self._ended_by else outcome
        if failure in FAILURES:
            requests = self.requests
            self.count_effects(requests.fail(failure, requests.open(), self._ended_by, reason))
        cut_off = {name: used for name in self._usage if (used := self._used(name))}
        self.count_effects(self.monitor.finish(outcome, answer, cut_off or None))
        return self._tally.result(self.monitor.graph, reason)


def _delay(events: Iterable[str]) -> tuple[Fate, ...]:
    return tuple(Fate(event, "delay") for event in events)


def _copy_event(event: Pending, before: Pending | None = None) -> Pending:
    """Copy an event with its payload, so that no agent can change the views of others.

    Args:
        event: The event.
        before: As the agent was shown it already, with a payload that is its own.
    """
    payload = plain(event.payload) if before is None else before.payload
    about = tuple(replace(about, work=plain(about.work)) for about in event.about)
    return Pending(event.id, event.type, event.sender, payload, event.notes, event.final, about)
