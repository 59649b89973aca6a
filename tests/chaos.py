"""Teams that do anything that is allowed, and some things that are not.

Every choice is a draw from `dig.runtime.keyed_random`, so that a seed always gives the same run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import anyio

from dig import (
    Budget,
    Create,
    Hold,
    Inject,
    InteractionGraph,
    Limits,
    Monitor,
    Output,
    Pending,
    Reroute,
)
from dig.detectors import standard, standard_healers
from dig.detectors.interventions import Intervention
from dig.detectors.policy import HEAL_ALL
from dig.errors import RequestError
from dig.monitor.messages import DeliveryPolicy, Effect
from dig.monitor.policies import Delayed, Disturbed, Expiring, ToAgents
from dig.runtime import Decision, EventFate, NewEvent, Plan, Setup, View
from dig.runtime.keyed_random import KeyedRandom
from dig.runtime.simulator import Happening

from .conservation import Allowed
from .delivery_policies import Broadcast, Escalating, LeastLoaded

NAMES = "abcde"
BUDGET = (3, 2, 1, 1)  # so little that runs come to its end
ANSWERS = ("answer", "answer", "answer", "go", " ", '{"name": "add", "arguments": {}}')
LADDER = (30, 9, 3, 5)  # so much that ladders come to their end


@dataclass(frozen=True)
class Chaos:
    """An agent that draws what it does; a stubborn one mostly waits, some for very long."""

    seed: int
    policies: bool = False
    stubborn: bool = False

    @cached_property
    def habit(self) -> str:
        """What all agents of the run like to do."""
        habits = ("nothing", "pass on", "repeat", "repeat")
        return KeyedRandom(self.seed, "habit", 0).choice(habits, "habit")

    def plan(self, view: View) -> Plan:
        draws = KeyedRandom(self.seed, view.agent, view.turn)
        think_s = round(draws.uniform("think"), 3)
        if self.stubborn and draws.chance(0.6, "stubborn"):
            waits = [EventFate(event=e.id, fate="delay") for e in view.events]
            return Plan(2.5 if draws.chance(0.3, "hangs") else think_s, Decision(fates=waits))
        if draws.chance(0.05, "fail"):
            return Plan(think_s, "it had a bad day")
        if draws.chance(0.02, "nonsense"):
            return Plan(think_s, Decision(fates=[EventFate(event="nothing", fate="consume")]))
        fates = [f for i, e in enumerate(view.events) if (f := self._fate(draws, view, e, i))]
        return Plan(think_s, Decision(fates=fates, outputs=self._outputs(draws, view)))

    async def act(self, view: View) -> Decision:
        plan = self.plan(view)
        await anyio.sleep(plan.think_s)
        if isinstance(plan.decision, str):
            raise RuntimeError(plan.decision)
        return plan.decision

    def _fate(self, draws: KeyedRandom, view: View, event: Pending, i: int) -> EventFate | None:
        luck = draws.uniform("fate", i)
        if luck < (0.25 if self.habit == "pass on" else 0.65):
            return EventFate(event=event.id, fate="consume")
        if luck < 0.75:
            to = [draws.choice((*view.team, "nobody"), "reroute to", i)]
            return EventFate(event=event.id, fate="reroute", to=to)
        return EventFate(event=event.id, fate="discard") if luck < 0.8 else None

    def _outputs(self, draws: KeyedRandom, view: View) -> list[NewEvent]:
        if draws.chance(0.12, "submit"):
            return [NewEvent(payload=draws.choice(ANSWERS, "answer"), final=True)]
        return [self._output(draws, view, i) for i in range(int(draws.uniform("outputs") * 2.6))]

    def _output(self, draws: KeyedRandom, view: View, i: int) -> NewEvent:
        to = [n for k, n in enumerate(view.team) if draws.chance(0.4, f"to {k}", i)]
        kind = draws.choice(("message", "message", "problem", "notice"), "type", i)
        if self.policies and draws.chance(0.4, "policy", i):
            policy = _policy(draws, tuple(to), i)
            return NewEvent(payload={"policy": True}, type=kind, policy=policy)
        if self.habit == "repeat":
            return NewEvent(payload="again", to=[*view.team])
        return NewEvent(payload=i, to=to, type=kind)


def _policy(draws: KeyedRandom, to: tuple[str, ...], i: int) -> DeliveryPolicy:
    """A delivery policy, sometimes one made of others, sometimes a disturbance."""
    after_s = 0.01 + draws.uniform("after", i)
    if draws.chance(0.5, "at once", i):
        after_s /= 1_000_000
    plain: list[DeliveryPolicy] = [ToAgents(to), Broadcast(), LeastLoaded()]
    policy = draws.choice(plain, "plain", i)
    if draws.chance(0.5, "delayed", i):
        policy = Delayed(policy, after_s)
    if draws.chance(0.3, "escalating", i):
        policy = Escalating(policy, Broadcast(), after_s)
    if draws.chance(0.3, "expiring", i):
        policy = Expiring(policy, after_s)
    return Disturbed(policy) if draws.chance(0.5, "disturbance", i) else policy


@dataclass
class ChaosGate:
    """A gate that draws what it keeps, for how long, and what it decides."""

    seed: int
    team: Sequence[str]
    name: str = "chaos"

    def hold(self, graph: InteractionGraph, event: Pending) -> Hold | None:
        draws = self._draws(event)
        if draws.chance(0.03, "fails"):
            raise RuntimeError("the gate is broken")
        if not draws.chance(0.35, "holds"):
            return None
        late = (Reroute(event.id, "too late", (self.team[0],)),)
        return Hold(0.01 + draws.uniform("deadline"), late if draws.chance(0.3, "late") else ())

    def plan(self, event: Pending) -> tuple[float, Sequence[Intervention]]:
        draws = self._draws(event)
        to = draws.choice(list(self.team), "to")
        decided: Sequence[Intervention] = draws.choice(
            [
                (),
                (Inject(event.id, "looked at"),),
                (Reroute(event.id, "better there", (to,)),),
                (Reroute(event.id, "not at all", ()),),
                (Create("something was looked at", (to,)),),
            ],
            "decides",
        )
        return draws.uniform("seconds") * 1.2, decided

    async def decide(self, event: Pending) -> Sequence[Intervention]:
        seconds, decided = self.plan(event)
        await anyio.sleep(seconds)
        return decided

    def _draws(self, event: Pending) -> KeyedRandom:
        return KeyedRandom(self.seed, event.id, 0)


@dataclass(frozen=True)
class ChaosRun:
    """Everything about one run that a seed decides."""

    seed: int
    heal: bool
    agents: str
    setup: Setup
    script: tuple[Happening, ...]
    problem: Output
    allowed: Allowed

    @property
    def team(self) -> dict[str, Chaos]:
        """The agents; they use delivery policies if the script interferes anyway."""
        stubborn = self.setup.activation_timeout_s > 1
        chaos = Chaos(self.seed, self.allowed.interference, stubborn)
        return dict.fromkeys(self.agents, chaos)


def chaos_run(seed: int, *, heal: bool, limit_s: float = 2.5) -> ChaosRun:
    """The run of a seed: some have a script, gates and policies, some are plain teams."""
    draws = KeyedRandom(seed, "run", 0)
    agents = NAMES[: 1 + int(draws.uniform("agents") * 5)]
    interference = draws.chance(0.6, "interference")
    ladder = draws.chance(0.5, "ladder")
    stubborn = ladder and draws.chance(0.4, "stubborn")
    budget = LADDER if ladder else BUDGET
    gates = [ChaosGate(seed, agents)] if interference and draws.chance(0.6, "gates") else []
    setup = Setup(
        seed=seed,
        session=draws.chance(0.2, "session"),
        memory=draws.chance(0.3, "memory"),
        limits=Limits(
            0.6, 0.4, 0.5, activation_limit_s=draws.choice((0.35, 5.0), "activation limit"),
            reroute_limit=draws.choice((1, 2), "reroute limit"),
            stall_factor=0.6, stall_min_s=0.3, late_window_s=0.3,
            loop_limit=2, livelock_turns=2, livelock_agents=2,
        ),
        detectors=standard,
        healers=standard_healers if heal else None,
        policy=HEAL_ALL,
        gates=gates,
        budget=Budget(*budget),
        ladder=ladder and heal,
        limit_s=limit_s * 3 if stubborn else limit_s,
        activation_timeout_s=2.6 if stubborn else 0.95,
        retries=1,
        backoff_s=0.3,
    )  # fmt: skip
    script = _script(draws, agents) if interference else ()
    to = tuple(n for k, n in enumerate(agents) if draws.chance(0.5, "to", k)) or agents[:1]
    problem = Output("go", tuple(to), "problem")
    dl_us = 500_000 if ladder else None
    allowed = Allowed(budget, dl_us, interference, _is_delayed)
    return ChaosRun(seed, heal, agents, setup, script, problem, allowed)


def _is_delayed(payload: Any) -> bool:
    return isinstance(payload, dict) and "policy" in payload


def _script(draws: KeyedRandom, agents: str) -> tuple[Happening, ...]:
    """Agents come and go, events are redirected, further problems come; the host gives up, too."""
    happenings = []
    for i in range(int(draws.uniform("script") * 5)):
        name = draws.choice(list(agents), "who", i)
        luck = draws.uniform("what", i)
        at = round(draws.uniform("at", i) * 2, 2)

        def happen(monitor: Monitor, name: str = name, luck: float = luck) -> list[Effect]:
            return _interfere(monitor, name, luck)

        happenings.append((at, happen))
    return tuple(happenings)


def _interfere(monitor: Monitor, name: str, luck: float) -> list[Effect]:
    try:
        if luck < 0.3:
            return monitor.leave(name)
        if luck < 0.6:
            return monitor.join(name)
        if luck < 0.63:
            running = [*monitor.graph.running]
            return monitor.waits(activation=running[0]) if running else []
        if luck < 0.66:
            asked = [e.id for e in monitor.graph.live.values() if e.by is None]
            return monitor.request_failed("limit", event=asked[0] if asked else None)
        if luck < 0.8:
            count = monitor.graph.event_count
            return monitor.redirect(f"e{1 + int(luck * 1000) % max(1, count)}", (name,))
        return monitor.inject(Output("more", (name,), "problem"))
    except RequestError:
        return []  # it cannot be done now: fine, as long as nothing has happened
