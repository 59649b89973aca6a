"""The bus: a team of agents in real time, on asyncio or trio.

One task group owns everything. An agent is a task with a mailbox; one more task sleeps until the
monitor's next deadline. A request to the monitor and its effects happen in one synchronous step, so
no task gets between a decision and its delivery. `Resumed` goes on with a recorded run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel

from dig.detectors.policy import Policy
from dig.detectors.spending_limits import AsBudget
from dig.errors import SettingsError, StopRunError
from dig.graph.records import FAILED, Outcome, micros
from dig.monitor.messages import Answered, Asked, Effect, Over, Proposed, Started, TakenOut, Wake
from dig.monitor.monitor import Monitor
from dig.monitor.sinks import FanOut, Sink

from .agents import Agent, AgentFunction, PlannedAgent, Team, View, as_agent
from .alerts import OnAlarm, sinks_of
from .checkpoint import Checkpoint, ExternalInput, PendingStart, RunningActivation, restore
from .group_commit import Durable, GroupCommit
from .host import Host, make_host
from .observers import (
    ActivationContext,
    AgentTask,
    Question,
    activation_context,
    as_problem,
    ask_person,
    attempt,
    settle,
)
from .result import RunResult
from .resume import Lines, resume
from .setup import MONITORED, REAL_TIME, Setup

_ANSWERED: tuple[Outcome, str] = ("submitted", "an answer was accepted")


def run(team: Team, problem: Any, **options: Any) -> RunResult:
    """Run a team on a bus, on asyncio, and wait for the end.

    Args:
        team: The agents by name; the first gets the problem.
        problem, options: The payload, and the further arguments of `Bus`, such as `setup`.
    """
    return anyio.run(Bus(team, **options).run, problem)


class Bus:
    """Runs one team, once.

    Attributes:
        monitor: The monitor, once the run is open: to look at, not to ask something of.

    Example:
        >>> async def parrot(view: View) -> Decision:
        ...     return Decision.submit(view, view.events[0].payload)
        >>> anyio.run(Bus({"polly": parrot}).run, "hello").answer
        'hello'
    """

    def __init__(
        self,
        team: Team,
        setup: Setup | None = None,
        *,
        sink: Sink | None = None,
        durable: Durable | None = None,
        on_alarm: OnAlarm | None = None,
        policy: Policy | None = None,
        budget: AsBudget | None = None,
    ) -> None:
        """Prepare the run; nothing happens before `run` or `open`.

        Args:
            team: The agents by name: objects with `async act(view)`, or async functions; one with
                a `plan` alone takes the time that this says.
            setup: Everything else about the run; by default the standard detectors and healers.
            sink: Is given every record before its effect happens; must not block for long.
            durable: The sink's data, if they are to be synced before their effect happens.
            on_alarm: The destination of errors and warnings that no policy silences: `Alerts`, or a
                function that is given an `Alarm` on a thread of its own. The run waits for neither.
            policy: The policy about findings, instead of the setup's.
            budget: The budget of requests: a `TeamBudget`, or a table such as `{"turns": 20}`.

        Raises:
            SettingsError: The team is empty, or `on_alarm` is something else.
        """
        if not team:
            raise SettingsError("a team needs at least one agent")
        self._setup = (setup or MONITORED).ruled(policy, budget)
        self._team = {name: as_agent(agent, self._setup.speed) for name, agent in team.items()}
        self._sinks = sinks_of(sink, on_alarm)
        self._contexts: list[ActivationContext] = []
        self._durable = durable
        self._result: RunResult | None = None
        self.monitor: Monitor | None = None

    @classmethod
    def resume(
        cls,
        lines: Lines,
        team: Team,
        setup: Setup | None = None,
        *,
        sink: Sink | None = None,
        durable: Durable | None = None,
        on_alarm: OnAlarm | None = None,
        resumed: Mapping[str, Any] | None = None,
    ) -> Bus:
        """Go on with a stopped run; activations in progress begin again.

        Args:
            lines: The lines of its journal; a last request that lacks records is completed.
            team: The agents by name.
            setup: The parts that the run was made with.
            sink: Is given every new record; its journal, opened with `is_new=False`, for instance.
            durable: The sink's data, as for a new run.
            on_alarm: The destination of new alarms.
            resumed: The detail of the incident `resumed`, such as `down_s`: seconds without it.

        Raises:
            DigError: As by `dig.runtime.resume.resume`, or by `Resumed`.
        """
        run = resume(lines, setup or MONITORED, completes=True, remembers=True, timing=REAL_TIME)
        moment = run.checkpoint(*sinks_of(sink, on_alarm), resumed=resumed or {})
        return Resumed(moment, team, durable=durable)

    def follow(self, sink: Sink, around: ActivationContext | None = None) -> None:
        """Add a sink, before the run is opened.

        Args:
            sink: Is given every record after those before it; what it raises ends the run.
            around: Makes a context manager that is entered while an agent acts; what that
                raises becomes an incident, and the agent acts without it.
        """
        self._sinks.append(sink)
        if around is not None:
            self._contexts.append(around)

    @property
    def result(self) -> RunResult:
        """The result of the run, after the end.

        Raises:
            SettingsError: The run has not ended yet.
        """
        if self._result is None:
            raise SettingsError("the run has not ended yet")
        return self._result

    async def run(self, problem: Any, to: Sequence[str] = ()) -> RunResult:
        """Give the team a problem and wait for the end.

        Args:
            problem: The payload, or an `Output` that says everything about the first event.
            to: Its recipients; empty: the first agent.

        Returns:
            How the run ended. Cancellation ends it with the outcome `stopped`, with a complete
            trace, and is then raised on.
        """
        async with self.open():
            self.inject(problem, to)
            await self.wait()
        return self.result

    async def wait(self) -> None:
        """Wait until the run ends by itself, or is stopped."""
        await self._over.wait()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Bus]:
        """Start the team, for as long as the block lasts; `inject` and `ask` are yours.

        A run that is no session ends by itself too. Leaving the block ends it.
        """
        self._began = anyio.current_time()
        self._over = anyio.Event()
        self._outcome: tuple[Outcome, str] | None = None
        self._failure: Exception | None = None
        self._agents: dict[str, AgentTask] = {}
        self._questions: dict[str, Question] = {}
        self._host = self._make_host()
        self._commits = GroupCommit.of(self._durable, self._carry_out, self._fail)
        self._due: float | None = None  # the deadline that the timer sleeps until
        self._due_moved = anyio.Event()
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                self._begin()
                if self._commits is not None:
                    tasks.start_soon(self._commits.run)
                tasks.start_soon(self._keep_time)
                tasks.start_soon(self._end_in_time)
                try:
                    yield self
                except Exception as error:  # raised below as it is, not as one of a group
                    self._fail(error)
                # A run that has ended by itself keeps its outcome.
                self._end("stopped", "the team was dismissed")
                tasks.cancel_scope.cancel()
        finally:
            self._result = self._host.finish(
                *(self._outcome or ("stopped", "it was cancelled from outside"))
            )
            if self._commits is not None:
                await self._commits.close()
        if self._failure is not None:
            raise self._failure

    def inject(self, problem: Any, to: Sequence[str] = ()) -> str:
        """An event comes from outside.

        Args:
            problem: Its payload, or an `Output` that says everything about it.
            to: Its recipients; empty: the first agent.

        Returns:
            Its id.

        Raises:
            RequestError: The run is over.
            SettingsError: `to` is no list of names.
        """
        graph = self._host.monitor.graph
        output = as_problem(problem, to, graph.agents)
        self._demand(lambda: self._host.monitor.inject(output))
        return graph.latest_source

    async def ask(self, problem: Any, to: Sequence[str] = ()) -> Any:
        """Give a problem to a session and wait for the answer; arguments as for `inject`.

        Raises:
            BudgetExceeded: The budget is used up, and the entry agent has handed back no answer.
            SettingsError: The run ended before the answer came; or its work is held by an agent
                that failed for good, and nothing can happen any more: the session goes on.
        """
        question, event = Question(), self.inject(problem, to)
        self._questions[event] = question
        try:
            if not self._over.is_set():
                await question.settled.wait()
        except BaseException:  # the caller has gone, so the request has not failed
            self._host.requests.abandoned.add(event)
            raise
        finally:
            self._questions.pop(event, None)
        if not question.answered:
            raise question.failure
        return question.answer

    def join(self, name: str, agent: Agent | AgentFunction | PlannedAgent) -> None:
        """An agent joins, or joins again."""

        def request() -> list[Effect]:
            effects = self._host.monitor.join(name)
            self._start_agent(name, as_agent(agent, self._setup.speed))
            return effects

        self._demand(request)

    def leave(self, name: str) -> None:
        """An agent leaves; the current activation is cancelled."""

        def request() -> list[Effect]:
            effects = self._host.monitor.leave(name)
            self._agents.pop(name).scope.cancel()
            return effects

        self._demand(request)

    def stop(self, reason: str = "it was stopped") -> None:
        """End the run with the outcome `stopped`."""
        self._end("stopped", reason)

    # --- the tasks ---

    def _make_host(self) -> Host:
        names = tuple(self._team)
        sink = FanOut.of(self._sinks)
        self.monitor = self._setup.monitor(names, self._clock, sink, stopwatch=REAL_TIME)
        return make_host(self._setup, self.monitor)

    def _begin(self) -> None:
        """Start the agents that are present."""
        for name in self._host.monitor.graph.agents:
            self._start_agent(name, self._team[name])

    def _start_agent(self, name: str, agent: Agent) -> None:
        self._agents[name] = AgentTask(name, agent)
        self._tasks.start_soon(self._work, self._agents[name])

    async def _work(self, task: AgentTask) -> None:
        with task.scope:
            while True:
                # The mailbox is emptied before the activation: later mail starts the next one.
                await task.mail.wait()
                task.mail = anyio.Event()
                if not task.scope.cancel_called:  # mail may come with the agent's leave
                    await self._activate(task)

    async def _activate(self, task: AgentTask) -> None:
        if task.name not in self._host.monitor.graph.present:  # healing took it out just now
            return
        effects = self._request(lambda: self._host.start(task.name))
        started = next((effect for effect in effects if isinstance(effect, Started)), None)
        if started is not None:
            await self._act(task, started, self._host.view(started))

    async def _act(self, task: AgentTask, started: Started, view: View) -> None:
        timeout_s = self._setup.activation_timeout_s
        value: Any = None
        error: BaseException | None = TimeoutError(f"took longer than {timeout_s:g} s")
        if self._commits is not None:
            await self._commits.barrier()
        if started.activation not in self._host.monitor.graph.running or self._over.is_set():
            return  # it left, or the run ended, before the agent was called
        acting = activation_context(self._contexts, started, self._incident)
        with anyio.move_on_after(timeout_s / self._setup.speed), acting:
            value, error = await attempt(partial(task.agent.act, view), Exception)
        ask = partial(self._host.fail_activation, started, error) if error else None
        await self._close(task, started, ask or partial(self._host.end_activation, started, value))
        if isinstance(error, StopRunError):
            self._end("stopped" if error.is_limit else "error", str(error))

    async def _close(
        self,
        task: AgentTask,
        started: Started,
        end: Callable[[], tuple[list[Effect], float | None]],
    ) -> None:
        """End an activation; start the agent again when the host says so, or when mail comes."""
        again_s: float | None = None

        def request() -> list[Effect]:
            nonlocal again_s
            effects, again_s = end()
            return effects

        if started.activation in self._host.monitor.graph.running:  # else it has left
            self._request(request)
            self._begin_host_starts()
        if again_s is not None and task.name in self._host.monitor.graph.present:
            with anyio.move_on_after(again_s / self._setup.speed):
                await task.mail.wait()
            task.mail.set()

    def _begin_host_starts(self) -> None:
        """Make the host's own requests after an activation, and start agents at its word."""
        try:
            requests = self._host.after_activation()
        except Exception as error:  # the journal failed
            self._clear_up(error, is_ours=True)
            return
        if requests is None:
            return
        effects, starts = requests
        self._take(effects)
        for name in starts:
            if name not in self._agents:
                self._start_agent(name, self._team[name])
            self._agents[name].mail.set()

    async def _end_in_time(self) -> None:
        # Trio refuses a negative time, and a busy machine may begin here after the limit.
        left_s = max(0.0, self._setup.limit_s - self._clock())
        await anyio.sleep(left_s / self._setup.speed)
        self._end("timeout", f"the time limit of {self._setup.limit_s:g} s passed")

    async def _keep_time(self) -> None:
        """Sleep until the monitor's next deadline, or an earlier new one, and tick; for ever."""
        while True:
            self._due_moved = anyio.Event()
            due = self._due = self._host.next_deadline()
            if due is None:
                await self._due_moved.wait()
                continue
            with anyio.move_on_after((due - self._clock()) / self._setup.speed):
                await self._due_moved.wait()
            if micros(due) <= micros(self._clock()):  # as the monitor compares
                self._request(self._host.tick)
                await anyio.lowlevel.checkpoint()

    async def _decide(self, question: Asked) -> None:
        """Ask a gate; release the event if the gate raises."""
        decided, raised = await attempt(partial(question.gate.decide, question.event))
        error = f"raised {raised!r}" if raised else None
        monitor = self._host.monitor
        self._request(partial(monitor.resolve, question.gate, question.event.id, decided, error))

    async def _ask_person(self, proposed: Proposed) -> None:
        """Ask a person about healing; without a person, the policy's deadline decides."""
        if self._setup.approve is not None:
            heal, error = await ask_person(self._setup.approve, proposed)
            self._request(partial(self._host.monitor.decide, proposed.row, heal, error))

    # --- one synchronous step ---

    def _request(self, request: Callable[[], list[Effect]]) -> list[Effect]:
        """Make a request to the monitor, and carry out the effects at once."""
        if self._host.monitor.is_over or self._over.is_set():
            return []
        try:
            effects = request()
        except Exception as error:  # the journal failed: no effect may happen any more
            self._clear_up(error, is_ours=True)
            return []
        self._take(effects)
        return effects

    def _demand(self, request: Callable[[], list[Effect]]) -> None:
        """Make a request for the caller, and raise its exception."""
        try:
            effects = request()
        except Exception as error:
            self._clear_up(error, is_ours=False)
            raise
        self._take(effects)

    def _clear_up(self, error: Exception, *, is_ours: bool) -> None:
        """After a request has raised: carry out earlier effects; one may end the run."""
        # What a failed request has brought about so far comes with the next call.
        effects = self._host.monitor.tick()
        is_end = self._over.is_set() or any(isinstance(effect, Over) for effect in effects)
        if not is_end and (is_ours or self._host.monitor.is_over):
            self._fail(error)
        self._take(effects)

    def _take(self, effects: list[Effect]) -> None:
        """Count the effects of a request, carry them out, and set the timer."""
        self._carry_out_durably(self._host.count_effects(effects))
        # Wake the timer for an earlier deadline only. Most deadlines move on with every record; to
        # let the timer wake up for nothing at the old moment costs less than waking it each time.
        due = self._host.next_deadline()
        if due is not None and (self._due is None or due < self._due):
            self._due_moved.set()

    def _carry_out_durably(self, effects: Sequence[Effect]) -> None:
        """Carry effects out, after a sync if the level of durability demands it."""
        if self._commits is None:
            self._carry_out(effects)
        else:
            self._commits.carry_out(effects)

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        goes_on = False  # an agent is at work or will be, and another call comes after it
        for effect in effects:
            if isinstance(effect, Started):
                goes_on = True
            elif isinstance(effect, Wake):
                if effect.agent in self._agents:  # else it has left in the same call
                    self._agents[effect.agent].mail.set()
                    goes_on = True
            elif isinstance(effect, TakenOut):
                if (task := self._agents.pop(effect.agent, None)) is not None:
                    task.scope.cancel()
            elif isinstance(effect, Asked):
                self._tasks.start_soon(self._decide, effect)
            elif isinstance(effect, Proposed):
                self._tasks.start_soon(self._ask_person, effect)
            elif isinstance(effect, Answered):
                settle(self._questions, effect)
            elif isinstance(effect, Over):
                if effect.outcome == "submitted":
                    self._end(*_ANSWERED)
                else:
                    self._end("error", "a part of the monitor failed")
        for exceeded in self._host.take_exceeded():
            if (question := self._questions.get(exceeded.request or "")) is not None:
                question.fail(exceeded)
            if not self._setup.session:
                self._end("stopped", str(exceeded))
        if not goes_on and self._host.is_stalled:
            if self._setup.session:
                self._fail_requests()
            elif self._clock() < self._setup.limit_s:  # else the time limit ends it
                self._end(*self._host.stand_still())

    def _fail_requests(self) -> None:
        """Fail the requests of a session held by agents without further attempts."""
        requests = self._host.requests
        for events, activation, error in requests.lost_work():
            for question in filter(None, map(self._questions.get, events)):
                question.fail(SettingsError(error))
            if events:
                self._request(partial(requests.fail, "error", events, activation, error))

    def _incident(self, component: str, message: str) -> None:
        detail = {"who": component, "what": message}
        self._request(lambda: self._host.monitor.incident(FAILED, detail))

    def _end(self, outcome: Outcome, reason: str) -> None:
        if self._outcome is None:
            if outcome != "error" and self._host.monitor.graph.is_over:
                outcome, reason = _ANSWERED  # the answer is on its way to the disk
            self._outcome = (outcome, reason)
            self._over.set()
            for question in self._questions.values():
                question.settled.set()

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._end("error", str(error))

    def _clock(self) -> float:
        return (anyio.current_time() - self._began) * self._setup.speed


class Resumed(Bus):
    """Goes on from a moment with a team in real time.

    What comes from outside comes as it was recorded. An activation in progress ends as it was
    recorded, too, if that is known: its agent was called before the moment.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        team: Team,
        *,
        durable: Durable | None = None,
    ) -> None:
        """Prepare the run; nothing happens before `open`.

        Args:
            checkpoint: The run as it stands.
            team: The agents by name.
            durable: The data of the sink of the checkpoint's monitor, if they are to be synced.

        Raises:
            SettingsError: An agent that is present is missing in the team.
            ReplayError: An agent cannot be brought back to the moment.
        """
        self._checkpoint = checkpoint
        super().__init__(restore(team, checkpoint), checkpoint.setup, durable=durable)

    def _make_host(self) -> Host:
        self._checkpoint.begin()
        # The clock shows the moment of the checkpoint, not zero.
        self._began -= self._checkpoint.us / 1_000_000 / self._setup.speed
        self._checkpoint.clock.source = self._clock
        return self._checkpoint.host

    def _begin(self) -> None:
        self._match_agents()
        # What is due now comes before all that follows from it.
        for outside in self._checkpoint.outside:
            if outside.us <= self._checkpoint.us:
                self._repeat(outside)
        for item in self._checkpoint.agenda:
            if (task := self._agents.get(item.agent)) is not None:
                self._tasks.start_soon(self._take_up, task, item)
        self._tasks.start_soon(self._repeat_outside)
        self._carry_out_durably(self._checkpoint.effects)
        self._begin_host_starts()

    def _match_agents(self) -> None:
        """Start the agents present, and end the tasks of absent agents."""
        present = self._host.monitor.graph.agents
        for name, agent in self._team.items():
            if name in present and name not in self._agents:
                self._start_agent(name, agent)
        for name in [name for name in self._agents if name not in present]:
            self._agents.pop(name).scope.cancel()

    async def _take_up(self, task: AgentTask, item: PendingStart | RunningActivation) -> None:
        """Continue an activation or a wait of the recorded run."""
        if isinstance(item, PendingStart):
            await self._sleep_until(item.until_us or 0)
            task.mail.set()
        elif item.end is None:
            await self._act(task, item.started, item.view)
        else:
            await self._sleep_until(item.end.us)
            end = partial(self._host.repeat_end, item.started, item.end, item.outputs, item.stack)
            await self._close(task, item.started, end)

    async def _repeat_outside(self) -> None:
        for outside in self._checkpoint.outside:
            if outside.us > self._checkpoint.us:
                await self._sleep_until(outside.us)
                self._repeat(outside)

    def _repeat(self, outside: ExternalInput) -> None:
        self._request(partial(outside.request, self._host.monitor))
        self._match_agents()

    async def _sleep_until(self, us: int) -> None:
        await anyio.sleep(max(0.0, us / 1_000_000 - self._clock()) / self._setup.speed)
