"""The bus: a team of agents in real time, on asyncio or trio.

One task group owns everything. An agent is a task with a mailbox that wakes it; one more task
sleeps until the monitor's next deadline and is woken when that moves. A request to the monitor
and all that follows from it for mailboxes happen in one synchronous step, so no other task can
get between a decision and its delivery.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.abc

from dig.errors import SettingsError
from dig.findings import Intervention
from dig.ledger import Sink
from dig.messages import Answered, Asked, Effect, Output, Over, Started, Wake
from dig.records import Outcome

from .agents import Agent, AgentFunction, as_agent
from .host import Host, Setup
from .result import RunResult

_STOPPED: tuple[Outcome, str] = ("stopped", "it was cancelled from outside")


class Bus:
    """Runs one team once.

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
        sink: Sink = lambda record: None,
    ) -> None:
        """Set the stage; nothing happens before `run` or `open`.

        Args:
            team: The agents by name: objects with `async act(view)`, or async functions.
            setup: Everything else about the run.
            sink: Is given every record before its effect happens; must not block for long.

        Raises:
            SettingsError: The team is empty.
        """
        if not team:
            raise SettingsError("a team needs at least one agent")
        self._team = {name: as_agent(agent) for name, agent in team.items()}
        self._setup = setup or Setup()
        self._sink = sink
        self._result: RunResult | None = None

    @property
    def result(self) -> RunResult:
        """How the run ended, once it has.

        Raises:
            SettingsError: It has not ended yet.
        """
        if self._result is None:
            raise SettingsError("the run has not ended yet")
        return self._result

    async def run(self, problem: Any, to: Sequence[str] = ()) -> RunResult:
        """Give the team one problem and wait for the end.

        Args:
            problem: The payload, or an `Output` that says everything about the first event.
            to: Who gets it; the first agent, if nobody is named.

        Returns:
            How the run ended. Cancellation ends it with the outcome `stopped`, with a complete
            trace, and is then raised on.
        """
        async with self.open():
            self.inject(problem, to)
            await self._over.wait()
        return self.result

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Bus]:
        """Start the team, for as long as the block lasts; `inject` and `ask` are yours.

        A run that is no session ends by itself too. Leaving the block ends it.
        """
        self._began = anyio.current_time()
        self._over = anyio.Event()
        self._moved = anyio.Event()
        self._outcome: tuple[Outcome, str] | None = None
        self._failure: Exception | None = None
        self._mail: dict[str, anyio.Event] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._questions: dict[str, _Question] = {}
        monitor = self._setup.monitor(
            tuple(self._team), self._clock, self._sink, stopwatch=time.perf_counter
        )
        self._host = Host(self._setup, monitor)
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                for name in self._team:
                    self._hire(name)
                tasks.start_soon(self._keep_time)
                tasks.start_soon(self._end_in_time)
                try:
                    yield self
                except Exception as error:  # raised below as it is, not as one of a group
                    self._fail(error)
                self._end("stopped", "the team was dismissed")
                tasks.cancel_scope.cancel()
        finally:
            self._result = self._host.finish(*(self._outcome or _STOPPED))
        if self._failure is not None:
            raise self._failure

    def inject(self, problem: Any, to: Sequence[str] = ()) -> str:
        """An event comes from outside; returns its id."""
        if not isinstance(problem, Output):
            problem = Output(problem, tuple(to) or tuple(self._team)[:1], "problem")
        events = self._host.monitor.graph.history.event_ids
        number = len(events)
        self._carry_out(self._host.inject(problem))
        self._moved.set()
        return events[number]

    async def ask(self, problem: Any, to: Sequence[str] = ()) -> Any:
        """Give a problem to a session and wait for the answer to it.

        Raises:
            SettingsError: The run ended before the answer came.
        """
        question = _Question()
        self._questions[self.inject(problem, to)] = question
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._give_up, question)
            await question.settled.wait()
            tasks.cancel_scope.cancel()
        if not question.answered:
            raise SettingsError("the run ended before the answer came")
        return question.answer

    def join(self, name: str, agent: Agent | AgentFunction) -> None:
        """An agent comes, or comes back."""
        effects = self._host.monitor.join(name)
        self._team[name] = as_agent(agent)
        self._hire(name)
        self._carry_out(self._host.heed(effects))

    def leave(self, name: str) -> None:
        """An agent goes; what it is doing is cancelled."""
        effects = self._host.monitor.leave(name)
        self._scopes[name].cancel()
        self._carry_out(self._host.heed(effects))

    def stop(self, reason: str = "it was stopped") -> None:
        """End the run with the outcome `stopped`."""
        self._end("stopped", reason)

    # --- the tasks ---

    def _hire(self, name: str) -> None:
        self._mail[name] = anyio.Event()
        self._scopes[name] = anyio.CancelScope()
        self._tasks.start_soon(self._work, name)

    async def _work(self, name: str) -> None:
        """The life of one agent: wait for mail, act, again."""
        with self._scopes[name]:
            while True:
                await self._mail[name].wait()
                self._mail[name] = anyio.Event()
                if not self._host.monitor.is_over:
                    await self._activate(name)

    async def _activate(self, name: str) -> None:
        started = self._start(name)
        if started is None:
            return
        view = self._host.view(started)
        ask: Callable[[Started, Any], tuple[list[Effect], float | None]] = self._host.decided
        timeout_s = self._setup.activation_timeout_s
        value: Any = f"took longer than {timeout_s:g} s"
        try:
            with anyio.move_on_after(timeout_s) as scope:
                value = await self._team[name].act(view)
        except Exception as error:  # whatever an agent does must not end the team
            ask, value = self._host.failed, repr(error)
        if scope.cancelled_caught:
            ask = self._host.failed
        again_s: float | None = None

        def end() -> list[Effect]:
            nonlocal again_s
            effects, again_s = ask(started, value)
            return effects

        self._request(end)
        if again_s is not None:
            await anyio.sleep(again_s)
            self._mail[name].set()

    def _start(self, name: str) -> Started | None:
        effects = self._request(lambda: self._host.heed(self._host.monitor.start(name)))
        return next((effect for effect in effects if isinstance(effect, Started)), None)

    async def _keep_time(self) -> None:
        """Tick at the monitor's next deadline; sleep until then, or until it moves."""
        while True:
            self._moved = anyio.Event()
            due = self._host.monitor.next_deadline()
            if due is None:
                await self._moved.wait()
                continue
            with anyio.move_on_after(due - self._clock()):
                await self._moved.wait()
            if due <= self._clock():
                self._request(lambda: self._host.heed(self._host.monitor.tick()))
                await anyio.lowlevel.checkpoint()

    async def _end_in_time(self) -> None:
        await anyio.sleep(self._setup.limit_s)
        self._end("timeout", f"the time limit of {self._setup.limit_s:g} s passed")

    async def _decide(self, asked: Asked) -> None:
        """Run a gate; one that raises lets the event go."""
        decided: tuple[Intervention, ...] = ()
        error: str | None = None
        try:
            decided = tuple(await asked.gate.decide(asked.event))
        except Exception as raised:  # a gate must not end the team
            error = f"raised {raised!r}"
        resolve = partial(self._host.monitor.resolve, asked.gate, asked.event.id, decided, error)
        self._request(lambda: self._host.heed(resolve()))

    async def _give_up(self, question: _Question) -> None:
        await self._over.wait()
        question.settled.set()

    # --- one synchronous step ---

    def _request(self, request: Callable[[], list[Effect]]) -> list[Effect]:
        """Ask something of the monitor and do at once what follows from it."""
        if self._host.monitor.is_over or self._over.is_set():
            return []
        before = self._host.monitor.next_deadline()
        try:
            effects = request()
        except Exception as error:  # the journal failed: no effect may happen any more
            self._fail(error)
            return []
        self._carry_out(effects)
        if self._host.monitor.next_deadline() != before:
            self._moved.set()
        return effects

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Wake):
                self._mail[effect.agent].set()
            elif isinstance(effect, Asked):
                self._tasks.start_soon(self._decide, effect)
            elif isinstance(effect, Answered):
                self._settle(effect)
            elif isinstance(effect, Over):
                if effect.outcome == "submitted":
                    self._end("submitted", "an answer was accepted")
                else:
                    self._end("error", "a part of the monitor failed")
        if self._host.is_stalled:
            self._end("stopped", "nothing could happen any more")

    def _settle(self, answered: Answered) -> None:
        for event in answered.problems:
            question = self._questions.pop(event, None)
            if question is not None:
                question.answered = True
                question.answer = answered.payload
                question.settled.set()

    def _end(self, outcome: Outcome, reason: str) -> None:
        if self._outcome is None:
            self._outcome = (outcome, reason)
            self._over.set()

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._end("error", str(error))

    def _clock(self) -> float:
        return anyio.current_time() - self._began


class _Question:
    """Somebody waits for the answer to a problem."""

    def __init__(self) -> None:
        self.settled = anyio.Event()
        self.answered = False
        self.answer: Any = None
