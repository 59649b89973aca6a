"""A session around an existing team: the reports of an adapter, and the monitor's replies.

An adapter reports events from outside (`request`) and the begin and end of turns (`begin`, `Turn`),
and waits where an event is held (`is_held`, `wait_until_released`). A failure in here must never
reach the team: failures are counted, recorded and logged, and the team goes on.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal

import anyio

from dig.detectors.finding import Finding
from dig.detectors.interventions import Reroute
from dig.detectors.notes import nobody_takes
from dig.errors import SettingsError
from dig.graph.records import NEVER_RAN, Outcome
from dig.graph.turns import takes_turns
from dig.monitor import messages
from dig.monitor.sinks import Sink
from dig.runtime.observers import ask_person
from dig.runtime.result import ComponentFailure, RunResult
from dig.runtime.setup import REAL_TIME, Setup

from .agent_instances import AgentInstances
from .call_errors import RaisedErrors
from .capabilities import (
    CAPABILITIES,
    RELIEVING,
    BounceLimit,
    Fitting,
    Veto,
    check_capabilities,
    demand,
)
from .context import enclosing, inside
from .guard import NONE, Guard, in_step
from .held_events import HoldWaiter, Waker
from .payload import as_small_payload
from .relief import Relief
from .turn import Turn, recipients
from .watchdog import Watchdog

if TYPE_CHECKING:
    from dig.runtime.spending import Account

    from .budget import SessionBudget

Mode = Literal["observe", "heal"]

_ROUTINE = frozenset({messages.Delivered, messages.Started, messages.Wake})
"""The effects of every message; turns read their result from the graph."""


@dataclass(frozen=True)
class Statistics:
    """Counts of a session.

    Attributes:
        requests: Events from outside.
        turns: Turns that were begun.
        open_turns: Turns that go on.
        faults: Failures of the wrapper or the monitor, hidden from the team.
        missed: Steps that were not monitored, because monitoring had stopped.
        hanging: Steps that did not return for seconds: a detector's, for instance.
        long_turns: Activations that took longer than the activation limit.
        stopped: The reason why monitoring stopped; ``None``: monitoring goes on.
        component_failures: The failed parts that were handed in: detectors, healers, gates and
            functions of yours.
        partial: The requests that were answered at a limit of the budget.
        detector_share: The share of the time since the session began that detectors took.
        sink_share: The share that the sink took: the journal, for instance.
        unsampled: The counts of the requests outside the sample; ``None``: all are in it.
    """

    requests: int
    turns: int
    open_turns: int
    faults: int
    missed: int
    hanging: int
    long_turns: int
    stopped: str | None
    component_failures: tuple[ComponentFailure, ...] = ()
    partial: int = 0
    detector_share: float = field(default=0.0, compare=False)  # differs from moment to moment
    sink_share: float = field(default=0.0, compare=False)
    unsampled: Statistics | None = None


class Session:
    """The monitor of a wrapped team; used from any thread.

    Every method is one step, which nothing else can get between; `guard.run` joins several.

    Attributes:
        guard: Makes the steps; failures in a step do not reach the team.
        monitor: The monitor, to look at; requests to it go through the session.
        mode: `observe` changes nothing; `heal` does what the capabilities allow.
        directory: The directory of the session's trace; ``None``: none is kept.
        instances: The instances of agents; to look at, inside steps.
        holds: The held events.
        relief: The agents that another agent may relieve.
        same_work: Whether equal messages of a turn to several agents are one event.
        budget: The budget of the requests; ``None``: there is none.
        unsampled: The session of the requests outside a sample; ``None``: all are in this one.
        guards: The guards of the team's turns: of this session and the unsampled.
    """

    unsampled: Session | None = None
    guards: tuple[Guard, ...]

    def __init__(
        self, agents: Iterable[str], setup: Setup | None = None, *,
        mode: Mode = "observe",
        capabilities: Iterable[str] = CAPABILITIES, require: Iterable[str] = (),
        description: str = "this team",
        sink: Sink = lambda record: None,
        veto: Veto = lambda wish: None,
        on_note: Callable[[str, str], object] | None = None,
        on_finding: Callable[[Finding], object] | None = None,
        clock: Callable[[], float] = time.monotonic, keeps_time: bool = True,
        same_work: bool = False, strict: bool = False,
    ) -> None:  # fmt: skip
        """Begin to monitor; the first record goes to the sink at once.

        Args:
            agents: The agents' names; further agents may join later.
            setup: Detectors, healers, gates, limits and so on; it becomes a session with memory.
            mode: Whether to heal.
            capabilities: The capabilities of the team, names from `CAPABILITIES`.
            require: The capabilities that the team must have.
            description: The team in words, for error messages.
            sink: Called with every record before the effect of the record happens.
            veto: Asked about each event that healing wants to send elsewhere.
            on_note: Called with each agent that healing has made a system event for, and its note.
            on_finding: Called with each finding, after the step that raised it; on any thread.
            clock: Seconds, from any beginning.
            keeps_time: Whether a thread raises what time makes due; else call `tick`.
            same_work: Whether equal messages of a turn to several agents are one event.
            strict: Whether a wrong use of this session raises; for tests of a wrapper.

        Raises:
            SettingsError: The mode or a capability is unknown or missing, or gates are to observe.
        """
        self.mode, self.same_work = mode, same_work
        self.capabilities = check_capabilities(capabilities, "capabilities")
        setup, agents = fit_setup(setup or Setup(), mode, self.capabilities), tuple(agents)
        demand(require, self.capabilities, description)
        if setup.gates and "hold" not in self.capabilities:
            raise SettingsError(f"{description} cannot hold events, so no gate can keep one")
        self.directory: Path | None = None
        self._veto, self._on_note, self._on_finding = veto, on_note, on_finding
        self._approve = setup.approve
        self._noted: list[messages.Effect] = []  # of the step that goes on
        self._wakers: list[Waker] = []  # of the same step: they cancel agents that were relieved
        self._turns: dict[Turn, None] = {}
        self.errors, self._bounces = RaisedErrors(), BounceLimit()
        fit = Fitting(self.capabilities, self._why_not)
        self.guard = guard = Guard(
            lambda now: setup.monitor(agents, now, sink, REAL_TIME, fit), clock, strict=strict
        )
        guard.on_effects, guard.on_step_end = self._note_effects, self._end_step
        guard.session, self.guards = self, (guard,)
        self.monitor = guard.monitor
        self._tally = setup.tally(self.monitor)
        self.budget = _budget(setup, guard, self.capabilities, description)
        self.holds, self.instances = HoldWaiter(guard), AgentInstances(guard)
        self.relief = Relief(guard, self.capabilities, self.instances)
        self._watchdog = Watchdog(guard, is_used=keeps_time)
        guard.on_stop = self._watchdog.stop

    @property
    def stopped(self) -> str | None:
        """The reason why monitoring has stopped; ``None``: monitoring goes on."""
        return self.guard.stopped

    # --- reports of an adapter ---

    def request(
        self, payload: Any, to: str | Iterable[str], type: str = "problem",
        *, traceparent: str | None = None,
    ) -> str:  # fmt: skip
        """Report an event from outside.

        Args:
            payload: Plain JSON (see `as_payload`).
            to: The recipients (see `reserve_instance`).
            type: The event's type.
            traceparent: The W3C trace context of the event, if it has one.

        Returns:
            The event's id; empty, if monitoring has stopped.
        """
        # The payload is converted before the step, since that may take a millisecond.
        output = messages.Output(
            as_small_payload(payload), recipients(to), type, traceparent=traceparent
        )
        return self.guard.run(self._request, output, default="")

    def reserve_instance(self, agent: str) -> str:
        """Reserve an instance for an agent's next turn: `NAME`, or `NAME#2` during another turn.

        A message that makes a turn of its own is sent to the instance. `begin` takes the instance,
        and the turn's end gives it back; so does `release_instance`.
        """
        return self.guard.run(self.instances.reserve, agent, default=agent)

    def release_instance(self, instance: str) -> None:
        """Give back a reserved instance without a turn."""
        self.guard.run(self.instances.release, instance, default=None)

    @in_step(None)
    def withdraw(
        self, instance: str, events: Iterable[str], to: str, awaited: Collection[str] = ()
    ) -> None:
        """Take back the events in front of a reserved instance without a turn.

        Args:
            instance: The instance, which is given back.
            events: The events of the turn that the instance was reserved for.
            to: The instance that takes the events instead.
            awaited: The agents that the turn waited for, if it did.
        """
        events = tuple(events)
        self.release(*events)
        for event in events:
            self.guard.ask(self.monitor.redirect, event, (to,))
        detail = {"agent": instance, "events": [*events]}
        self.guard.incident(NEVER_RAN, detail | ({"awaited": [*awaited]} if awaited else {}))
        self.instances.empty(instance)

    def begin(
        self, agent: str, events: Iterable[str] | None = None, *, at_once: bool = False
    ) -> Turn:
        """Begin a turn of an agent.

        Args:
            agent: The agent's name, or an instance that was reserved for the turn.
            events: The events of the call: the turn consumes these, and delays all else in front
                of the agent; ``None``: the turn takes up all events.
            at_once: Whether to release those events first, since no task waits for them any more.
        """
        events = None if events is None else tuple(events)
        turn = Turn(
            self.guard, self.holds, agent, events, self._end_turn,
            same_work=self.same_work, errors=self.errors,
        )  # fmt: skip
        if at_once and events:
            self.release(*events)
        self.guard.run(self._begin, turn, default=None)
        return turn

    @in_step(None)
    def next_step(self, turn: Turn, agent: str) -> None:
        """Have a turn go on as another agent, the next step of a plan, unless it awaits answers.

        So a plan with many steps for few agents is no circle of these agents.
        """
        if turn.is_open and turn.awaited <= 0:
            before = turn.instance
            turn.go_on_as(self.instances.take(agent))
            self.instances.release(before)

    @asynccontextmanager
    async def activation(
        self, agent: str, events: Iterable[str] | None = None, *, retried: bool = False
    ) -> AsyncIterator[Turn]:
        """Make a turn of an agent last as long as the block.

        The block begins when `events` are released. If the block raises, the turn fails, and the
        exception goes on; `retried` says that the agent will be started again with these events.
        """
        events = None if events is None else tuple(events)
        await self.wait_until_released(*(events or ()))
        turn = self.begin(agent, events)
        try:
            with inside(turn):
                yield turn
        except BaseException as error:
            turn.fail(error, retried=retried)
            raise
        if turn.submitted:
            await self.wait_until_released(turn.submitted)
            turn.was_bounced(turn.submitted)
        turn.end()

    def is_held(self, event: str) -> bool:
        """Whether an event is still on the way, kept by a gate or put off by healing."""
        return self.guard.run(self.holds.is_held, event, default=False)

    async def wait_until_released(self, *events: str) -> None:
        """Wait until no event is held any more; the gates of held events decide meanwhile.

        Returns immediately if none is held. If waiting fails, the error is recorded and the event
        is released.
        """
        for event in events:
            try:
                await self.holds.wait_until_released(event)
            except Exception as error:
                self.guard.run(self._stop_waiting, event, error, default=None)

    def block_until_released(self, event: str) -> None:
        """Have the calling thread wait until an event is not held any more.

        A running event loop cannot stand still meanwhile, so there the event is released at once.
        """
        if event and self.is_held(event):
            try:
                anyio.run(self.wait_until_released, event)
            except RuntimeError:  # a loop runs in this thread
                self.release(event)

    def release(self, *events: str) -> None:
        """Release events now, because the waiting tasks were cancelled."""
        for event in events:
            self.guard.run(self.holds.release, event, default=None)

    def recipients_of(self, event: str) -> tuple[str, ...]:
        """The instances with an event in front, wherever healing has sent the event."""
        find = self.monitor.graph.find
        return self.guard.run(
            lambda: tuple(state.copies) if (state := find(event)) else (), default=()
        )

    def redirect(self, event: str, to: str | Iterable[str], again: Any = None) -> None:
        """Report new recipients of an event, chosen by the team.

        Args:
            event: The event.
            to: The recipients (see `reserve_instance`).
            again: The payload of the event, if it was consumed already.
        """
        self.guard.run(
            self.guard.ask, self.monitor.redirect, event, recipients(to), again, default=NONE
        )

    def leave_out(self, unsampled: Session, draw: Callable[[], bool]) -> None:
        """Leave a new request to another session, unless `draw` returns true."""
        self.unsampled, self._draw, self.guards = unsampled, draw, (self.guard, unsampled.guard)
        if self.budget is not None and unsampled.budget is not None:
            unsampled.budget.join_team(self.budget)

    def current_turn(self) -> Turn | None:
        """The innermost open turn of the team around the running code, in the sample or not."""
        turns = (turn for turn in enclosing() if turn.guard in self.guards and turn.is_open)
        return next(turns, None)

    def of_call(self, caller: Turn | None = None) -> Session:
        """The session of a new call: of the calling turn, or else by chance.

        Args:
            caller: The turn that calls, where threads lose the context.
        """
        if self.unsampled is None:
            return self
        if caller := caller or self.current_turn():
            session: Session = caller.guard.session
            return session
        return self if self._draw() else self.unsampled

    def tick(self) -> None:
        """Do everything due by now."""
        self.guard.tick()

    def keep_time(self) -> None:
        """Start a thread for findings of time, in a session without such a thread."""
        self._watchdog.use()

    # --- at a limit of the budget ---

    def refuses(self, *events: str, but: str = "") -> Account | None:
        """Stop the request of some events if the budget is used up.

        Args:
            *events: The events.
            but: A limit that does not matter: that of `turns`, in the midst of one.

        Returns:
            The account of the request; ``None``: a turn about the events may begin.
        """
        if self.budget is None:
            return None
        return self.guard.run(self.budget.refuse, events, but, default=None)

    @in_step(False)
    def hand_back(self, account: Account, turn: Turn | None = None) -> bool:
        """Whether a stopped request has the last turn now: once.

        Args:
            account: The account of the request.
            turn: The turn of the entry agent, which gets the note; ``None``: see `Account.note`.
        """
        is_last = account.stage == "stopped"
        if is_last:
            account.stage = "last"
        if is_last and turn is not None:
            turn.act()
            turn.notebook.texts.append(account.note)
        return is_last

    def stopped_by(self, error: BaseException, event: str) -> Account | None:
        """The account of a stopped request ended by an error; ``None``: none, or cancelled."""
        return None if self.budget is None else self.budget.stopped(event, error)

    # --- for the user ---

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings up to now, in order; as far as kept (`RunResult.findings`)."""
        return tuple(self._tally.findings)

    def statistics(self) -> Statistics:
        """Count requests, turns, failures and the time of parts of the monitor."""
        counts = self.guard.counts
        detectors, sink = self.monitor.shares()
        return Statistics(
            **{name: counts[name] for name in ("requests", "turns", "faults", "missed")},
            open_turns=len(self._turns),
            hanging=self._watchdog.hanging,
            long_turns=self._watchdog.long_turns,
            stopped=self.stopped,
            component_failures=tuple(self._tally.component_failures.values()),
            partial=0 if self.budget is None else self.budget.partial,
            detector_share=detectors,
            sink_share=sink,
            unsampled=self.unsampled.statistics() if self.unsampled else None,
        )

    def result(self) -> RunResult:
        """The state of the run, or the end."""
        return self._tally.result(self.monitor.graph, self.stopped or "it is closed")

    def abandon(self, reason: str) -> None:
        """Stop monitoring, and write nothing more either."""
        self.guard.stop(reason)
        if self.unsampled is not None:
            self.unsampled.abandon(reason)

    def close(self, reason: str = "it was closed", outcome: Outcome = "stopped") -> None:
        """End the session with the last record; the team goes on, a second call does nothing."""
        self.guard.run(self._finish, outcome, reason, default=None)
        self.guard.stop(reason)
        if self.unsampled is not None:
            self.unsampled.close(reason, outcome)

    # --- called by the guard ---

    def _note_effects(self, effects: list[messages.Effect]) -> None:
        """Take the effects of a request into account, inside the step of the request."""
        if _ROUTINE.issuperset(map(type, effects)):
            return
        noted = [effect for effect in effects if type(effect) not in _ROUTINE]
        if self.budget is not None:
            self.budget.take(noted)
        self._tally.count(noted)
        self._noted += noted
        for effect in noted:
            if isinstance(effect, messages.Healed) and effect.row.action in RELIEVING:
                self._wakers += self.relief.ask(effect.row.event or "", *effect.row.to or ())
            elif isinstance(effect, messages.Asked):
                self.holds.ask(effect)

    def _end_step(self) -> Callable[[], None]:
        """Return the follow-up of a step, to be called when the lock is released."""
        wakers, noted = self.holds.wakers() + self._wakers, self._noted
        self._noted, self._wakers = [], []
        return partial(self._follow_up, noted, wakers) if noted or wakers else self._watchdog.wake

    def _follow_up(self, noted: list[messages.Effect], wakers: list[Waker]) -> None:
        # Code of the user runs here, without the lock: it may call the team or take its time.
        for waker in wakers:
            self.guard.call(waker, default=None)  # its loop may be closed by now
        self._watchdog.wake()
        if self._on_note is not None:
            healed = [effect.row for effect in noted if isinstance(effect, messages.Healed)]
            for row in [row for row in healed if row.action == "create"]:
                for agent in map(self.instances.agent_of, row.to or ()):
                    self.guard.call(self._on_note, agent, row.note or "", default=None)
        for effect in noted:
            if isinstance(effect, messages.Raised) and self._on_finding:
                self.guard.call(self._on_finding, effect.finding, default=None)
            elif isinstance(effect, messages.Proposed) and self._approve:
                ask = partial(self._ask_person, effect)
                Thread(target=ask, name="dig approval", daemon=True).start()

    def _ask_person(self, proposed: messages.Proposed) -> None:
        """Ask a person about healing, on a separate thread; the team does not wait."""
        assert self._approve is not None
        heal, error = anyio.run(ask_person, self._approve, proposed)
        self.guard.run(self.guard.ask, self.monitor.decide, proposed.row, heal, error, default=NONE)

    # --- inside a step ---

    def _end_turn(self, turn: Turn) -> None:
        self._turns.pop(turn, None)
        self.instances.end_turn(turn.instance)

    def _finish(self, outcome: Outcome, reason: str) -> None:
        self.guard.ask(self.monitor.finish, outcome)
        self.guard.stop(reason)

    def _request(self, output: messages.Output) -> str:
        if not self._turns:
            self.errors.forget()
        self.guard.ask(self.monitor.inject, output)
        self.guard.counts["requests"] += 1
        self._watchdog.start()
        return self.monitor.graph.latest_source

    def _begin(self, turn: Turn) -> None:
        self.guard.counts["turns"] += takes_turns(turn.instance)
        turn.instance = self.instances.take(turn.instance)
        self._turns[turn] = None
        self._watchdog.start()
        turn.act()
        if self.budget is not None:
            self.budget.begin(turn)

    def _stop_waiting(self, event: str, error: Exception) -> None:
        self.holds.release(event)  # a held event would keep back whatever comes after it
        raise error

    def _why_not(self, wish: Reroute) -> str | None:
        """Return why an event cannot be sent elsewhere; ``None``: possible."""
        graph = self.monitor.graph
        event = graph.event(wish.event)
        missing = graph.uncovered_work(event.id) if event.final else [event.id]
        if missing and all(graph.event(id).sent_to for id in missing):
            reasons = [nobody_takes(graph, id) for id in missing]
            if all(reasons):
                return reasons[0]  # no rerun makes an agent appear
        if not event.final:
            relieves = wish.action in RELIEVING
            return (self.relief.why_not(wish) if relieves else None) or self._veto(wish)
        sender = graph.history.sender(event.n)
        if tuple(wish.to) != (sender,):
            return "an answer goes back to who submitted it"
        if not all(turn.bounces for turn in self._turns if turn.instance == sender):
            return "this answer cannot be taken back"
        return self._bounces.why_not(graph, event.id)


def _budget(
    setup: Setup, guard: Guard, capabilities: frozenset[str], team: str
) -> SessionBudget | None:
    if setup.policy.budget is None:
        return None
    from .budget import SessionBudget  # most teams have no budget

    return SessionBudget(setup.policy.budget, guard, capabilities, team)


def fit_setup(setup: Setup, mode: Mode, capabilities: Collection[str]) -> Setup:
    """Adapt a setup to a wrapped team; adapting twice changes nothing.

    Args:
        setup: The user's setup.
        mode: Whether to heal.
        capabilities: The capabilities of the team.

    Raises:
        SettingsError: The mode is unknown, or gates are to observe.
    """
    if mode not in ("observe", "heal"):
        raise SettingsError(f"there is no mode {mode!r}; choose observe or heal")
    if setup.gates and mode == "observe":
        raise SettingsError("a gate keeps events, so it needs mode='heal'")
    can_hold = setup.can_hold and "hold" in capabilities
    setup = replace(setup, can_hold=can_hold, session=True, memory=True, fail_closed=False)
    return replace(setup, healers=None, ladder=False) if mode == "observe" else setup
