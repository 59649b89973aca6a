"""Points at which a seed makes things fail: in everything that is handed to a monitor.

    journal.write   the write of a record fails, or is cut short
    detector.run    a detector raises, or returns what is no finding
    healer.run      a healer raises, or returns what is no intervention
    deliver         a delivery policy raises, or says what is no step
    agent.act       an agent raises, returns nonsense, or is cancelled from within
    export          what is entered around an activation raises, on entering or on leaving

Whether a point fails is a function of (seed, point, how often it was passed), so that a schedule
fails the same way again.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from dig import InteractionGraph, Pending, Record
from dig.detectors import standard, standard_healers
from dig.detectors.finding import Finding
from dig.detectors.protocols import Detector, Healer
from dig.graph.records import micros
from dig.monitor.messages import DeliveryPolicy, Situation, Started
from dig.runtime import Decision, NewEvent, Plan, Setup, View
from dig.runtime.keyed_random import KeyedRandom

from .chaos import Chaos
from .laws import Kept

POINTS = ("journal.write", "detector.run", "healer.run", "deliver", "agent.act", "export")
TAKEN_BACK = "said by a detector that fails"
NONSENSE: tuple[Any, ...] = (None, 7, "no", [None], [...], {"fates": 3}, b"\xff")


class Fault(RuntimeError):
    """A planted failure."""


@dataclass
class Faults:
    """Which points fail in one schedule, and what was made to fail."""

    seed: int
    points: frozenset[str] = frozenset()
    passed: Counter[str] = field(default_factory=Counter)
    struck: Counter[str] = field(default_factory=Counter)
    shown: set[tuple[str, str]] = field(default_factory=set)  # agent, event
    kept: dict[str, Kept] = field(default_factory=dict)  # by gates

    def strikes(self, point: str, chance: float) -> bool:
        """Whether a point fails this time."""
        if point not in self.points:
            return False
        self.passed[point] += 1
        if KeyedRandom(self.seed, point, self.passed[point]).uniform("fault") >= chance:
            return False
        self.struck[point] += 1
        return True

    def choice(self, point: str, options: tuple[Any, ...]) -> Any:
        return KeyedRandom(self.seed, point, self.passed[point]).choice(options, "what")

    def returned(self, point: str, chance: float, value: Callable[[], Any]) -> Any:
        """What a part returns: its value or, where it fails, nonsense, or it raises."""
        if not self.strikes(point, chance):
            return value()
        if self.choice(point, (True, False)):
            raise Fault(point)
        return self.choice(point, NONSENSE)

    def write(self, file: int, data: memoryview) -> int:
        """Write for a journal."""
        if self.strikes("journal.write", 0.02):
            if self.choice("journal.write", (True, False, False)):
                raise OSError(errno.EIO, "a fault")
            return os.write(file, data[: max(1, len(data) // 2)])
        return os.write(file, data)

    @contextmanager
    def around(self, started: Started) -> Any:
        """Stands for an export that makes its trace context current."""
        if self.strikes("export", 0.1):
            raise Fault("export, on entering")
        yield
        if self.strikes("export", 0.1):
            raise Fault("export, on leaving")

    def setup(self, setup: Setup) -> Setup:
        """A setup whose detectors and healers fail now and then, and whose gates are watched."""
        detectors = self._detectors if "detector.run" in self.points else setup.detectors
        healers = self._healers if setup.healers and "healer.run" in self.points else setup.healers
        gates = [_Gate(gate, self) for gate in setup.gates]
        return replace(setup, detectors=detectors, healers=healers, gates=gates)

    def team(self, team: Mapping[str, Chaos]) -> dict[str, Any]:
        """A team whose agents and policies fail now and then."""
        return {name: _Agent(agent, self) for name, agent in team.items()}

    def _detectors(self) -> list[Detector]:
        return [_Detector(inner, self) for inner in standard()]

    def _healers(self) -> dict[str, Healer]:
        """The standard healers themselves, since what a healer can do is told by its class."""
        healers = standard_healers()
        for healer in healers.values():
            for heal in ("heal", "escalate"):
                setattr(healer, heal, partial(self._heals, getattr(healer, heal)))
        return healers

    def _heals(self, heal: Callable[..., Any], *args: Any) -> Any:
        return self.returned("healer.run", 0.2, partial(heal, *args))


class _Wrapped:
    def __init__(self, inner: Any, faults: Faults) -> None:
        self.inner, self.faults = inner, faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class _Detector(_Wrapped, Detector):
    def __init__(self, inner: Detector, faults: Faults) -> None:
        super().__init__(inner, faults)
        self.pattern, self.kinds = inner.pattern, inner.kinds

    @property
    def due(self) -> int | None:  # type: ignore[override]
        due: int | None = self.inner.due
        return due

    def settle_due(self) -> None:
        self.inner.settle_due()

    def _half(self, look: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
        """What a detector says before it fails, which must not count, marked as such."""
        for finding in look():
            yield replace(finding, evidence={**finding.evidence, TAKEN_BACK: True})
        raise Fault("detector.run, afterwards")

    def _look(self, chance: float, look: Callable[[], Iterable[Finding]]) -> Any:
        if self.faults.strikes("detector.run", chance / 2):
            return self._half(look)
        return self.faults.returned("detector.run", chance / 2, look)

    def detect(self, graph: InteractionGraph, record: Record) -> Any:
        return self._look(0.02, lambda: self.inner.detect(graph, record))

    def expire(self, graph: InteractionGraph, us: int) -> Any:
        return self._look(0.2, lambda: self.inner.expire(graph, us))

    def on_finding(self, graph: InteractionGraph, finding: Finding) -> None:
        self.inner.on_finding(graph, finding)

    def awaited(self) -> Any:
        return self.inner.awaited()

    def forget(self, graph: InteractionGraph) -> None:
        self.inner.forget(graph)


class _Gate(_Wrapped):
    """A gate that notes what it keeps."""

    def hold(self, graph: InteractionGraph, event: Pending) -> Any:
        hold = self.inner.hold(graph, event)
        if hold is not None:
            now, decides_s = graph.now, self.inner.plan(event)[0]
            # What a policy delays, and an answer that is put off, are looked at later than now.
            is_now = event.payload != {"policy": True} and not event.final
            deadline = now + max(1, micros(hold.seconds))
            self.faults.kept[event.id] = Kept(deadline, now + micros(decides_s), is_now)
        return hold


@dataclass(frozen=True)
class _Policy:
    """A delivery policy that fails at some of its steps."""

    inner: DeliveryPolicy
    faults: Faults = field(compare=False, repr=False)

    def step(self, now: Situation) -> Any:
        return self.faults.returned("deliver", 0.2, lambda: self._step(now))

    def _step(self, now: Situation) -> Any:
        step = self.inner.step(now)
        return replace_then(step, lambda then: _Policy(then, self.faults))


def replace_then(step: Any, wrap: Callable[[DeliveryPolicy], DeliveryPolicy]) -> Any:
    """A step whose policy left over is wrapped, too."""
    if step.then is None:
        return step
    kept = {name: getattr(step, name) for name in ("to", "arrives", "in_s", "expires")}
    return type(step)(**kept, then=wrap(step.then), also=step.also)


@dataclass
class _Agent:
    """A chaos agent that fails in more ways."""

    inner: Chaos
    faults: Faults

    def plan(self, view: View) -> Plan:
        self.faults.shown.update((view.agent, event.id) for event in view.events)
        plan = self.inner.plan(view)
        value = self.faults.returned("agent.act", 0.05, lambda: self._with_policies(plan.decision))
        return plan if value is plan.decision else Plan(plan.think_s, value)

    async def act(self, view: View) -> Any:
        self.faults.shown.update((view.agent, event.id) for event in view.events)
        decision = await self.inner.act(view)
        return self.faults.returned("agent.act", 0.05, lambda: self._with_policies(decision))

    def _with_policies(self, decision: Any) -> Any:
        if "deliver" not in self.faults.points or not isinstance(decision, Decision):
            return decision
        return decision.model_copy(update={"outputs": [self._own(o) for o in decision.outputs]})

    def _own(self, output: NewEvent) -> NewEvent:
        if output.policy is None:
            return output
        return output.model_copy(update={"policy": _Policy(output.policy, self.faults)})
