"""Doubles that tests share: a clock, a sink, a stage for a monitor, agents that follow a script."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from dig import Fate, Finding, Hold, InteractionGraph, Limits, Monitor, Output, Pending, Record
from dig.detectors.interventions import Intervention
from dig.detectors.patterns.deadlock import Deadlock, HealDeadlock
from dig.detectors.patterns.early_termination import EarlyTermination, HealEarlyTermination
from dig.detectors.policy import HEAL_ALL
from dig.detectors.protocols import Detector, Healer
from dig.detectors.watch import Watch
from dig.graph import records as kinds
from dig.monitor.messages import Effect, Started
from dig.runtime import Decision, EventFate, NewEvent, Plan, View

CALM = Limits(dl_window_s=1000.0)  # no window that a short test lives to see


class Clock:
    """A clock that only a test moves."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Recorder(list[Record]):
    """A sink that remembers; it fails instead of taking record number `fail_at`."""

    def __init__(self, fail_at: int | None = None, error: BaseException | None = None) -> None:
        super().__init__()
        self.fail_at = fail_at
        self.error = error or OSError("the disk is full")

    def __call__(self, record: Record) -> None:
        if len(self) == self.fail_at:
            raise self.error
        self.append(record)


def story(records: Iterable[Record]) -> list[str]:
    """Records as short lines that a test can name."""
    return [_line(record) for record in records]


def _line(record: Record) -> str:
    match record:
        case kinds.Emit():
            by = "world" if record.by is None else record.by
            return f"emit {record.event} by {by} to {'+'.join(record.to) or 'nobody'}"
        case kinds.Deliver():
            return f"deliver {record.event} to {record.to or 'world'}"
        case kinds.Start():
            return f"start {record.activation} of {record.agent} on {'+'.join(record.inputs)}"
        case kinds.End():
            return f"end {record.activation}"
        case kinds.Redirect():
            return f"redirect {record.event} to {'+'.join(record.to) or 'nobody'}"
        case kinds.FindingRow():
            return f"finding {record.pattern}"
        case kinds.HealRow():
            return f"heal {record.action} {record.event}" if record.event else "heal refused"
        case kinds.IncidentRow():
            return f"incident {record.what}"
        case kinds.Join() | kinds.Leave():
            return f"{record.kind} {record.agent}"
        case kinds.Expire():
            return f"expire {record.event}"
        case kinds.Finish():
            return f"finish {record.outcome}"
        case _:
            return record.kind


class Stage:
    """A monitor with a manual clock and a recording sink, and shorthands for its requests."""

    def __init__(self, agents: Iterable[str] = "ab", **settings: Any) -> None:
        self.clock = Clock()
        self.sink: Recorder = settings.pop("sink", Recorder())
        settings.setdefault("limits", CALM)
        settings.setdefault("policy", HEAL_ALL)
        self.monitor = Monitor(agents, clock=self.clock, sink=self.sink, **settings)

    @property
    def graph(self) -> InteractionGraph:
        return self.monitor.graph

    def told(self) -> list[str]:
        """What has happened since the first record."""
        return story(self.sink[1:])

    def give(self, to: str = "a", payload: Any = "?", **more: Any) -> list[Effect]:
        return self.monitor.inject(Output(payload, tuple(to), more.pop("type", "problem"), **more))

    def start(self, agent: str) -> Started:
        found = [e for e in self.monitor.start(agent) if isinstance(e, Started)]
        return found[0]

    def turn(self, agent: str, *outputs: Output, fate: Any = "consume") -> list[Effect]:
        """An agent is activated, gives all its inputs one fate, and generates `outputs`."""
        started = self.start(agent)
        return self.finish(started, *outputs, fate=fate)

    def finish(self, started: Started, *outputs: Output, fate: Any = "consume") -> list[Effect]:
        fates = [Fate(event.id, fate) for event in started.events if fate != "delay"]
        return self.monitor.end(started.activation, fates, outputs)

    def wait(self, seconds: float) -> list[Effect]:
        """Time passes, and the monitor is told."""
        self.clock.now += seconds
        return self.monitor.tick()


def out(to: str = "", payload: Any = "!", **more: Any) -> Output:
    """An output to some agents with names of one letter."""
    return Output(payload, tuple(to), **more)


def answer(payload: Any = 42) -> Output:
    return Output(payload, (), "solution", final=True)


def serve(stage: Stage, count: int) -> None:
    """So many requests that are answered at once."""
    for _ in range(count):
        stage.give()
        stage.turn("a", answer())


def rows(records: Iterable[Record], kind: str) -> list[Any]:
    """The records of one kind."""
    return [record for record in records if record.kind == kind]


def of(kind: type[Any], effects: Iterable[Effect]) -> list[Any]:
    """The effects of one type."""
    return [effect for effect in effects if isinstance(effect, kind)]


def bodies(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    return [finding.row() for finding in findings]


def found_again(records: Iterable[Record], watch: Watch) -> list[dict[str, Any]]:
    """What detectors find in the records of a run afterwards."""
    return bodies([finding for record in records for finding in watch.feed(record)])


def two_detectors() -> list[Detector]:
    """ET and DL, whatever other patterns there are."""
    return [EarlyTermination(), Deadlock()]


def two_healers() -> dict[str, Healer]:
    return {"ET": HealEarlyTermination(), "DL": HealDeadlock()}


# --- what is handed to a monitor ------------------------------------------------------------


class Sees(Detector):
    """A detector made of a function of (graph, record)."""

    def __init__(
        self, look: Callable[[InteractionGraph, Record], Any], pattern: str = "SEEN"
    ) -> None:
        self.pattern = pattern
        self.looks = 0
        self._look = look

    def detect(self, graph: InteractionGraph, record: Record) -> Any:
        self.looks += 1
        return self._look(graph, record)


def flag(record: Record, pattern: str = "SEEN", **subject: Any) -> Finding:
    return Finding(pattern, record.t, record.us, subject, {})


def on_emit(graph: InteractionGraph, record: Record) -> list[Finding]:
    """Something is found about every event."""
    return [flag(record, event=record.event)] if isinstance(record, kinds.Emit) else []


class Heals(Healer):
    """A healer made of a function of (graph, finding)."""

    def __init__(self, heal: Callable[[InteractionGraph, Finding], Any]) -> None:
        self._heal = heal

    def heal(self, graph: InteractionGraph, finding: Finding) -> Any:
        return self._heal(graph, finding)


@dataclass
class Keeper:
    """A gate that keeps the events with some ids, and decides after some seconds."""

    events: Sequence[str] = ()
    seconds: float = 10.0
    otherwise: tuple[Intervention, ...] = ()
    decides: tuple[Intervention, ...] = ()
    after_s: float = 1.0
    name: str = "keeper"
    asked: list[Pending] = field(default_factory=list)

    def hold(self, graph: InteractionGraph, event: Pending) -> Hold | None:
        self.asked.append(event)
        return Hold(self.seconds, self.otherwise) if event.id in self.events else None

    async def decide(self, event: Pending) -> Sequence[Intervention]:
        await anyio.sleep(self.after_s)
        return self.decides

    def plan(self, event: Pending) -> tuple[float, Sequence[Intervention]]:
        return self.after_s, self.decides


# --- agents ---------------------------------------------------------------------------------

Move = Callable[[View], Decision]


class Scripted:
    """Does one thing after the other, each after `think_s`; then it only waits.

    A move is a function of the view, or an exception that the agent raises.
    """

    def __init__(self, *moves: Move | Exception, think_s: float = 0.1) -> None:
        self.moves = moves
        self.think_s = think_s
        self.views: list[View] = []

    def plan(self, view: View) -> Plan:
        move = self._next(view)
        if isinstance(move, Exception):
            return Plan(self.think_s, repr(move))
        return Plan(self.think_s, move(view))

    async def act(self, view: View) -> Decision:
        move = self._next(view)
        await anyio.sleep(self.think_s)
        if isinstance(move, Exception):
            raise move
        return move(view)

    def _next(self, view: View) -> Move | Exception:
        self.views.append(view)
        turn = len(self.views)
        return self.moves[turn - 1] if turn <= len(self.moves) else wait


def wait(view: View) -> Decision:
    return Decision.wait()


def submit(payload: Any = 42) -> Move:
    return lambda view: Decision.submit(view, payload)


def tell(to: str, payload: Any = "!", **more: Any) -> Move:
    """Consume everything and say one thing to some agents with names of one letter."""
    return lambda view: Decision.respond(view, NewEvent(payload=payload, to=list(to), **more))


def drop(view: View) -> Decision:
    return Decision.discard(view.events)


def read(view: View) -> Decision:
    """Consume everything, say nothing."""
    return Decision(fates=[EventFate(event=e.id, fate="consume") for e in view.events])


# --- virtual time on asyncio ----------------------------------------------------------------


class _Jumping(selectors.DefaultSelector):
    """Where a loop would sleep, its time jumps instead."""

    loop: VirtualLoop
    patience_s = 0.0  # for how long threads, which have no virtual time, are waited for

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout is None:
            ready = super().select(self.patience_s)
        if not ready:
            if timeout is None:
                raise RuntimeError("deadlock: nothing can ever happen on this loop")
            self.loop.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while everybody waits, and then at once.

    It begins at an odd time, so that sums of times are as inexact as they are in life.
    """

    def __init__(self) -> None:
        selector = _Jumping()
        selector.loop = self
        self.now = 12_345.678
        super().__init__(selector)

    def time(self) -> float:
        return self.now


def backends() -> Mapping[str, Callable[[], tuple[str, dict[str, Any]]]]:
    """Makes each backend of anyio, in virtual time."""
    from trio.testing import MockClock

    return {
        "asyncio": lambda: ("asyncio", {"loop_factory": VirtualLoop}),
        "trio": lambda: ("trio", {"clock": MockClock(autojump_threshold=0)}),
    }
