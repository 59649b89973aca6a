"""The host: the common part of all shells (views, decisions, failures, the end).

A host has no clock and no loop either; the bus and the simulator drive it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from dig._util.json_values import plain
from dig._util.redaction import mask_secrets
from dig._util.text import counted, one_line, value_text
from dig.errors import BudgetExceeded, DecisionError, PayloadError, RequestError, StopRunError
from dig.graph.records import FAILURES, STOPPED_FROM_OUTSIDE, SYSTEM, End, Fate, Outcome
from dig.monitor.messages import Effect, Output, Pending, Started, Wake
from dig.monitor.monitor import Monitor
from dig.monitor.sanitize import MOST_IN_ERROR

from .agent_errors import TeamRequests, describe, stack_incident, stack_of
from .agents import View, as_decision, with_note
from .host_budget import HostBudget
from .result import GAVE_UP, STALLED, RunResult
from .setup import Setup

LATE_OUTPUT, MOST_LATE = "late output", 200
"""The incident when an agent that was taken out still says something, and how much is kept."""


def make_host(setup: Setup, monitor: Monitor, *, is_served: bool = False) -> Host:
    """Make the host of a run that begins now."""
    host: Host | None = (special := type(setup).host_type) and special(setup, monitor)
    return host or Host(setup, monitor, is_served=is_served)


class Host:
    """One run: turns activations into views, and return values of agents into requests.

    Attributes:
        monitor: The run's monitor.
        notes: By agent: a note that it sees beside its first input in each activation.
        requests: The requests to the team.
        budget: The budget of the run; ``None``: there is none.
    """

    def __init__(self, setup: Setup, monitor: Monitor, *, is_served: bool = False) -> None:
        """Begin, before the first activation.

        Args:
            setup: The setup of the run.
            monitor: Its monitor.
            is_served: Whether the agents are in other processes, so that no view needs a copy of
                its own, and nobody is here to ask for a result.
        """
        self.monitor, self._is_served = monitor, is_served
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
        self._tally = setup.tally(monitor, has_result=not is_served)
        budget = setup.policy.budget
        self.budget = None if budget is None else HostBudget(budget, monitor)
        self._exceeded: BudgetExceeded | None = None

    def count_effects(self, effects: list[Effect]) -> list[Effect]:
        """Count effects of the monitor for the result, and return them."""
        self._tally.count(effects)
        if self.budget is not None:
            self.budget.note_answers(effects)
        return effects

    def next_deadline(self) -> float | None:
        """When to `tick` next: at the monitor's next deadline, or at a limit of the budget."""
        due = self.monitor.next_deadline()
        alarm = None if self.budget is None else self.budget.spending.next_alarm()
        return due if alarm is None else alarm if due is None else min(due, alarm)

    def tick(self) -> list[Effect]:
        """Do everything due by now."""
        effects = self.monitor.tick()
        return effects if self.budget is None else effects + self.budget.look_at_clock()

    def start(self, agent: str) -> list[Effect]:
        """Start an activation of an agent with new events, if the budget lasts."""
        return self.monitor.start(agent) if self.budget is None else self.budget.start(agent)

    def after_activation(self) -> tuple[list[Effect], Sequence[str]] | None:
        """Make the host's own requests: effects, and agents to start at once; most have none."""
        return None if self.budget is None else (self.budget.after_activation(), ())

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
        if self._is_served:
            return tuple(started.events)
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
        is_halted = outcome == "stopped" and reason != STALLED and not self._ended_by
        if is_halted and not self._setup.session:  # else the trace looks as if the team were stuck
            self.count_effects(self.monitor.incident(STOPPED_FROM_OUTSIDE, {"reason": reason}))
        self.count_effects(self.monitor.finish(outcome, answer, cut_off or None))
        return replace(self._tally.result(self.monitor.graph, reason), exceeded=self._exceeded)

    def take_exceeded(self) -> list[BudgetExceeded]:
        """Take the exceptions for the callers of requests just failed at a limit."""
        if self.budget is None:
            return []
        exceeded, self.budget.exceeded = self.budget.exceeded, []
        self._exceeded = next(reversed(exceeded), self._exceeded)
        return exceeded


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
