"""The bus: a team of agents in real time, on asyncio or trio.

One task group owns everything. An agent is a task with a mailbox that wakes it; one more task
sleeps until the monitor's next deadline and is woken when that moves. A request to the monitor
and all that follows from it for mailboxes happen in one synchronous step, so no other task can
get between a decision and its delivery.

`dig.runtime.resumed_bus` is a bus that goes on with a recorded run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
import anyio.lowlevel

from dig.detectors.policy import Policy
from dig.errors import SettingsError, StopRunError
from dig.graph.records import FAILED, Outcome, micros
from dig.monitor.messages import (
    Answered,
    Asked,
    Effect,
    Output,
    Over,
    Proposed,
    Started,
    TakenOut,
    Wake,
)
from dig.monitor.monitor import Monitor
from dig.monitor.sinks import FanOut, Sink

from .agents import Agent, AgentFunction, View, as_agent
from .alerts import Alerts, OnAlarm
from .group_commit import Durable, GroupCommit
from .host import REAL_TIME, Host, Setup
from .observers import (
    ActivationContext,
    AgentTask,
    Question,
    activation_context,
    ask_person,
    attempt,
    settle,
)
from .result import RunResult

if TYPE_CHECKING:
    from .resume import Lines

_ANSWERED: tuple[Outcome, str] = ("submitted", "an answer was accepted")


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
        team: Mapping[str, Agent | AgentFunction],
        setup: Setup | None = None,
        *,
        sink: Sink | None = None,
        durable: Durable | None = None,
        on_alarm: OnAlarm | None = None,
        policy: Policy | None = None,
    ) -> None:
        """Prepare the run; nothing happens before `run` or `open`.

        Args:
            team: The agents by name: objects with `async act(view)`, or async functions.
            setup: Everything else about the run.
            sink: Is given every record before its effect happens; must not block for long.
            durable: The sink's data, if they are to be synced before their effect happens.
            on_alarm: The destination of errors and warnings that no policy silences: `Alerts`, or a
                function that is given an `Alarm` on a thread of its own. The run waits for neither.
            policy: The policy about findings, instead of the setup's.

        Raises:
            SettingsError: The team is empty, or `on_alarm` is something else.
        """
        if not team:
            raise SettingsError("a team needs at least one agent")
        self._team = {name: as_agent(agent) for name, agent in team.items()}
        self._setup = setup or Setup()
        if policy is not None:
            self._setup = replace(self._setup, policy=policy)
        self._sinks = [] if sink is None else [sink]
        alerts = Alerts.of(on_alarm)
        if alerts is not None:
            self._sinks.append(alerts.sink())
        self._contexts: list[ActivationContext] = []
        self._durable = durable
        self._result: RunResult | None = None
        self.monitor: Monitor | None = None

    @classmethod
    def resume(
        cls,
        lines: Lines,
        team: Mapping[str, Agent | AgentFunction],
        setup: Setup | None = None,
        **options: Any,
    ) -> Bus:
        """Go on with a run that stopped anywhere, such as one whose process was killed.

        Args:
            lines: The lines of the run's journal.
            team: The agents by name. Those that keep a state of their own need `restore`.
            setup: The parts that the run was made with.
            **options: As for `dig.runtime.resumed_bus.resume_bus`.
        """
        from .resumed_bus import resume_bus  # which imports this module

        return resume_bus(lines, team, setup, **options)

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
        self._commits: GroupCommit | None = None
        if self._durable is not None and self._durable.durability != "process":
            self._commits = GroupCommit(self._durable, self._carry_out, self._fail)
        self._due: float | None = None  # the deadline that the timer sleeps until
        self._due_moved = anyio.Event()
        self._has_read = anyio.Event()  # the reviewer; replaced each time
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
        if not isinstance(problem, Output):
            if isinstance(to, str):
                raise SettingsError(f"`to` is a list of agents' names, such as [{to!r}]")
            problem = Output(problem, tuple(to) or tuple(graph.agents)[:1], "problem")
        self._demand(lambda: self._host.monitor.inject(problem))
        return graph.latest_source

    async def ask(self, problem: Any, to: Sequence[str] = ()) -> Any:
        """Give a problem to a session and wait for the answer; arguments as for `inject`.

        Raises:
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
            raise SettingsError(question.failure)
        return question.answer

    def join(self, name: str, agent: Agent | AgentFunction) -> None:
        """An agent joins, or joins again."""

        def request() -> list[Effect]:
            effects = self._host.monitor.join(name)
            self._start_agent(name, as_agent(agent))
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
        return Host(self._setup, self.monitor)

    def _begin(self) -> None:
        """Start the agents that are present; a reviewer joins later."""
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
        reviewer, monitor = self._setup.reviewer, self._host.monitor
        if reviewer is not None and task.name != reviewer.name:
            while reviewer.is_reading(monitor.graph):
                await self._has_read.wait()
        if task.name not in monitor.graph.present:  # healing took it out in this very moment
            return
        effects = self._request(lambda: monitor.start(task.name))
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
        acting: AbstractContextManager[None] = nullcontext()
        if self._contexts:
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
            self._review()
        if again_s is not None:
            with anyio.move_on_after(again_s / self._setup.speed):
                await task.mail.wait()
            task.mail.set()

    def _review(self) -> None:
        """After the end of an activation: have the reviewer join, start or leave, if due."""
        reviewer, monitor = self._setup.reviewer, self._host.monitor
        if reviewer is None or monitor.is_over:
            return
        # A journal that fails has ended the run already, and the bus tells of it.
        with suppress(Exception):
            step = reviewer.next_step(monitor.graph)
            if step == "come":
                self.join(reviewer.name, self._team[reviewer.name])
            if step in ("come", "start"):
                self._agents[reviewer.name].mail.set()
            elif step == "go":
                self.leave(reviewer.name)
                self._has_read.set()
                self._has_read = anyio.Event()

    async def _end_in_time(self) -> None:
        # Trio refuses a negative time, and a busy machine may begin here after the limit.
        left_s = max(0.0, self._setup.limit_s - self._clock())
        await anyio.sleep(left_s / self._setup.speed)
        self._end("timeout", f"the time limit of {self._setup.limit_s:g} s passed")

    async def _keep_time(self) -> None:
        """Sleep until the monitor's next deadline, or an earlier new one, and tick; for ever."""
        while True:
            self._due_moved = anyio.Event()
            due = self._due = self._host.monitor.next_deadline()
            if due is None:
                await self._due_moved.wait()
                continue
            with anyio.move_on_after((due - self._clock()) / self._setup.speed):
                await self._due_moved.wait()
            if micros(due) <= micros(self._clock()):  # as the monitor compares
                self._request(self._host.monitor.tick)
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
        due = self._host.monitor.next_deadline()
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
                question.failure = error
                question.settled.set()
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
