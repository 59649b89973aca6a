"""A session around an existing team: what a wrapper tells the monitor, and learns from it.

A wrapper says when something comes from outside (`request`), when an agent begins and ends
(`begin`, `Turn`), and waits where an event is held (`is_held`, `released`). Whatever fails in here
must never reach the team: it is counted, written down and logged, and the team goes on.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from dig.detectors.finding import Finding
from dig.detectors.interventions import Reroute
from dig.errors import SettingsError
from dig.graph.records import Outcome
from dig.monitor.messages import Output
from dig.monitor.monitor import Monitor
from dig.monitor.sinks import Sink
from dig.runtime.host import Setup
from dig.runtime.result import RunResult

from .bounces import Bounces
from .capabilities import CAPABILITIES, Fitting, Veto, demand, known
from .instances import Seats
from .payload import as_small_payload
from .running import inside
from .steps import NONE, Steps
from .turn import Turn, seats

Mode = Literal["observe", "heal"]


@dataclass(frozen=True)
class Statistics:
    """What a session has seen and missed.

    Attributes:
        requests: Events from outside.
        turns: Turns that were begun.
        open_turns: Turns that go on.
        faults: Failures of the wrapper or the monitor that the team was not told of.
        missed: Steps that were not monitored, because monitoring had stopped.
        hanging: How often a step was found not to return for seconds: a detector, for instance.
        long_turns: Activations that took longer than the activation limit.
        stopped: Why monitoring stopped, if it did.
    """

    requests: int
    turns: int
    open_turns: int
    faults: int
    missed: int
    hanging: int
    long_turns: int
    stopped: str | None


class Session(Steps):
    """Monitors one team for as long as it is wrapped; may be used from any thread.

    Every method is one step, which nothing else can get between; `step` makes one of several.

    Attributes:
        monitor: To look at; what is asked of it goes through the session.
        mode: `observe` changes nothing; `heal` does what the capabilities allow.
        capabilities: What the team can be made to do.
        directory: Where its trace is kept, if it is.
        seats: Who sits where; to look at, inside steps.
        stopped: Why it is not monitored any more; ``None``: it is.
    """

    def __init__(
        self,
        agents: Iterable[str],
        setup: Setup | None = None,
        *,
        mode: Mode = "observe",
        capabilities: Iterable[str] = CAPABILITIES,
        require: Iterable[str] = (),
        who: str = "this team",
        sink: Sink = lambda record: None,
        veto: Veto = lambda wish: None,
        on_note: Callable[[str, str], object] | None = None,
        on_finding: Callable[[Finding], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
        keeps_time: bool = True,
        strict: bool = False,
    ) -> None:
        """Begin to monitor; the first record goes to the sink at once.

        Args:
            agents: The agents' names; others may come later.
            setup: Detectors, healers, gates, limits and so on; it becomes a session with memory.
            mode: Whether to heal.
            capabilities: What the team can be made to do, names from `CAPABILITIES`.
            require: What it must be able to do.
            who: The team in words, for error messages.
            sink: Is given every record before its effect happens.
            veto: Asked about each event that healing wants to send elsewhere.
            on_note: Told of each agent that healing has made a system event for, and its note.
            on_finding: Told of each finding, after the step that raised it; on any thread.
            clock: Seconds, from any beginning.
            keeps_time: Have a thread raise what time makes due; else call `tick`.
            strict: Raise what a wrong use of this session leads to; for tests of a wrapper.

        Raises:
            SettingsError: The mode or a capability is unknown or missing, or gates are to observe.
        """
        setup = fitting(setup or Setup(), mode)
        self.mode = mode
        self.capabilities = known(capabilities, "capabilities")
        demand(require, self.capabilities, who)
        if setup.gates and "hold" not in self.capabilities:
            raise SettingsError(f"{who} cannot hold events, so no gate can keep one")
        self.directory: Path | None = None
        self._veto = veto
        self._on_note = on_note
        self._turns: dict[Turn, None] = {}
        self._bounces = Bounces()
        fit = Fitting(self.capabilities, self._refuse)

        def make(now: Callable[[], float]) -> Monitor:
            return setup.monitor(tuple(agents), now, sink, time.perf_counter, fit)

        super().__init__(
            make, clock, on_finding, setup.tally(), keeps_time=keeps_time, strict=strict
        )
        self.seats = Seats(self)

    # --- what a wrapper says ---

    def request(self, payload: Any, to: Iterable[str], type: str = "problem") -> str:
        """Something comes from outside.

        Returns:
            The event's id; empty, if monitoring has stopped.
        """
        output = Output(as_small_payload(payload), seats(to), type)
        return self.step(self._request, output, otherwise="")

    def reserve(self, agent: str) -> str:
        """The seat of an agent's next turn: its name, or `NAME#2` while that is taken.

        A message that makes a turn of its own is sent to the seat. `begin` takes it, and the
        turn's end gives it back; so does `unreserve`.
        """
        return self.step(self.seats.reserve, agent, otherwise=agent)

    def unreserve(self, seat: str) -> None:
        """Give a seat back that no turn was begun on."""
        self.step(self.seats.release, seat, otherwise=None)

    def begin(self, agent: str, events: Iterable[str] | None = None) -> Turn:
        """An agent begins to work.

        Args:
            agent: Its name, or a seat that was reserved for it.
            events: What it was called with: it consumes this, and delays whatever else lies in
                front of it; ``None``: it takes up all of it.
        """
        turn = Turn(self, agent, None if events is None else tuple(events))
        self.step(self._begin, turn, otherwise=None)
        return turn

    @asynccontextmanager
    async def activation(
        self, agent: str, events: Iterable[str] | None = None, *, retried: bool = False
    ) -> AsyncIterator[Turn]:
        """An agent works for as long as the block lasts.

        What is not held any more is shown: the block begins when `events` are released. If it
        raises, the turn fails, and that is raised on; `retried` says that the agent will be
        started again with the same events.
        """
        events = None if events is None else tuple(events)
        for event in events or ():
            await self.released(event)
        turn = self.begin(agent, events)
        try:
            with inside(turn):
                yield turn
        except BaseException as error:
            turn.fail(error, retried=retried)
            raise
        if turn.submitted:
            await self.released(turn.submitted)
            turn.came_back(turn.submitted)
        turn.end()

    def is_held(self, event: str) -> bool:
        """Whether an event is on its way still: a gate keeps it, or healing has put it off."""
        return self.step(self._holding.is_held, event, otherwise=False)

    async def released(self, event: str) -> None:
        """Wait until an event is not held any more; gates that keep it decide meanwhile.

        If it is not held, nothing is awaited. A wait that fails is none.
        """
        try:
            await self._holding.released(event)
        except Exception as error:
            self.step(self._waits_no_more, event, error, otherwise=None)

    def let_go(self, event: str) -> None:
        """Release an event now, because who waited for it was cancelled; nobody gets it back."""
        self.step(self._holding.let_go, event, otherwise=None)

    def seats_of(self, event: str) -> tuple[str, ...]:
        """In front of whom an event lies: those it was sent to, or those healing sent it to."""
        graph = self.monitor.graph
        return self.step(
            lambda: tuple(graph.event(event).copies) if graph.knows(event) else (), otherwise=()
        )

    def redirect(self, event: str, to: Iterable[str], again: Any = None) -> None:
        """The team sends an event to others; `again`: what it carries, if it was used up."""
        to = seats(to)
        self.step(self.ask, self.monitor.redirect, event, to, again, otherwise=NONE)

    # --- what a user may ask ---

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was raised up to now, in order; as far as it is kept (`RunResult.findings`)."""
        return tuple(self._tally.findings)

    def statistics(self) -> Statistics:
        """What was seen and missed up to now."""
        keeper = self._timekeeper
        return Statistics(
            **{name: self._counts[name] for name in ("requests", "turns", "faults", "missed")},
            open_turns=len(self._turns),
            hanging=keeper.hanging if keeper else 0,
            long_turns=keeper.long_turns if keeper else 0,
            stopped=self.stopped,
        )

    def result(self) -> RunResult:
        """How it stands, or how it ended."""
        return self._tally.result(self.monitor.graph, self.stopped or "it is closed")

    def abandon(self, reason: str) -> None:
        """Monitor no more, and write nothing more either."""
        self._stop(reason)

    def close(self, reason: str = "it was closed", outcome: Outcome = "stopped") -> None:
        """End the session with its last record; the team goes on, and twice does no harm."""
        self.step(self._finish, outcome, reason, otherwise=None)
        self._stop(reason)

    # --- for the parts of a session ---

    def free(self, turn: Turn) -> None:
        """A turn is over; inside a step."""
        self._turns.pop(turn, None)
        self.seats.release(turn.seat)

    def _finish(self, outcome: Outcome, reason: str) -> None:
        self.ask(self.monitor.finish, outcome)
        self._stop(reason)

    def _request(self, output: Output) -> str:
        self.ask(self.monitor.inject, output)
        self._counts["requests"] += 1
        self._keep_time()
        return self.monitor.graph.latest_source

    def _begin(self, turn: Turn) -> None:
        self._counts["turns"] += 1
        turn.seat = self.seats.take(turn.seat)
        self._turns[turn] = None
        self._keep_time()
        turn.begin()

    def _waits_no_more(self, event: str, error: Exception) -> None:
        self._holding.let_go(event)  # what stayed held would keep back whatever comes after it
        raise error

    def _say(self, seat: str, note: str) -> None:
        if self._on_note is not None:
            self.guard(self._on_note, self.seats.agent_of(seat), note, otherwise=None)

    def _keep_time(self) -> None:
        if self._timekeeper is not None:
            self._timekeeper.start()

    def _refuse(self, wish: Reroute) -> str | None:
        graph = self.monitor.graph
        event = graph.event(wish.event)
        if not event.final:
            return self._veto(wish)
        seat = graph.history.sender(event.n)
        if tuple(wish.to) != (seat,):
            return "an answer goes back to who submitted it"
        if not all(turn.bounces for turn in self._turns if turn.seat == seat):
            return "this answer cannot be taken back"
        return self._bounces.why_not(graph, event.id)


def let_go_rest(session: Session) -> None:
    """Release all that is held and that nobody waits for at this moment; inside a step.

    For a wrapper that has lost track: if nobody ever waits for it, it stays held until its gate's
    time is up, and keeps back whatever comes after it.
    """
    agents = session.monitor.graph.agents.values()
    for event in dict.fromkeys(event for one in agents for event in one.incoming):
        if not session._holding.is_awaited(event):
            session.let_go(event)


def fitting(setup: Setup, mode: Mode) -> Setup:
    """The setup of a wrapped team, of what was asked for; fitting twice changes nothing.

    Raises:
        SettingsError: The mode is unknown, or gates are to observe.
    """
    if mode not in ("observe", "heal"):
        raise SettingsError(f"there is no mode {mode!r}; choose observe or heal")
    if mode == "heal":
        return replace(setup, session=True, memory=True, fail_closed=False)
    if setup.gates:
        raise SettingsError("a gate keeps events, so it needs mode='heal'")
    return replace(setup, session=True, memory=True, fail_closed=False, healers=None)
