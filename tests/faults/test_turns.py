"""Single activations of a target: what it is shown, and what counts as its decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from dig.faults.inject.fault import Fault
from dig.faults.inject.fault_catalogue import KINDS
from dig.faults.inject.faulty_team import FaultyTeam
from dig.faults.inject.injector import OnMessage
from dig.faults.inject.payload_changes import payloads_of
from dig.graph.records import SYSTEM, Join, Leave
from dig.monitor.messages import Pending
from dig.runtime.agents import Decision, NewEvent, Plan, View
from dig.tasks.simulated.message_reading import Numbers
from dig.tasks.simulated.parts import Job, Partial

from .plays import STEADY, on_bus, simulated

TEAM = ("ann", "bob", "cyd")
COUNTING = payloads_of(Numbers().task)


@dataclass
class Scripted:
    """Decides as it is told, and remembers what it was shown."""

    decide: Callable[[View], Decision]
    shown: list[View] = field(default_factory=list)

    def plan(self, view: View) -> Plan:
        self.shown.append(view)
        return Plan(1.0, self.decide(view))


def around(words: str, agent: Scripted, seed: int = 1) -> Any:
    """The agent `ann`, with a fault around it."""
    team = dict.fromkeys(TEAM, agent)
    fault = Fault.parse(f"{words} target=ann")
    return FaultyTeam(team, [fault], seed=seed, payloads=COUNTING).team["ann"]


def see(*events: Pending, turn: int = 1) -> View:
    return View("ann", TEAM, turn, 0.0, events)


def work(name: str, payload: Any = None, type_: str = "message", **more: Any) -> Pending:
    return Pending(name, type_, "bob", payload, **more)


def use(view: View) -> Decision:
    """Uses everything that it is shown."""
    return Decision.respond(view, NewEvent(payload=[e.id for e in view.events], to=["bob"]))


def fates(plan: Plan) -> dict[str, str]:
    assert isinstance(plan.decision, Decision)
    return {fate.event: fate.fate for fate in plan.decision.fates}


def outputs(plan: Plan) -> list[NewEvent]:
    assert isinstance(plan.decision, Decision)
    return plan.decision.outputs


def test_work_that_is_thrown_away_is_not_used() -> None:
    """The agent is not shown it; if there is nothing else, what it decides does not count."""
    ann = Scripted(use)
    plan = around("discard_needed", ann).plan(see(work("e1"), work("e2")))
    assert [[event.id for event in view.events] for view in ann.shown] == [["e2"]]
    assert (fates(plan), outputs(plan)[0].payload) == ({"e2": "consume", "e1": "discard"}, ["e2"])
    alone = around("discard_needed", ann).plan(see(work("e1")))
    assert (fates(alone), outputs(alone)) == ({"e1": "discard"}, [])


def test_words_of_the_system_that_are_ignored_are_not_shown() -> None:
    """Neither notes nor events; where there is nothing else, nothing is decided."""
    ann = Scripted(use)
    note = Pending("s1", "system", SYSTEM, "submit")
    around("ignore_notes", ann).plan(see(work("e1", notes=("look",)), note))
    assert [(e.id, e.notes) for view in ann.shown for e in view.events] == [("e1", ())]
    alone = around("ignore_notes", ann).plan(see(note))
    assert alone.decision == Decision()


@pytest.mark.parametrize("kind", [n for n, k in KINDS.items() if issubclass(k.injector, OnMessage)])
def test_an_answer_is_no_message(kind: str) -> None:
    """It stays as it is, and alone; only its content can be damaged."""
    ann = Scripted(lambda view: Decision.submit(view, 7))
    told = {"corrupt": ["\ufffd" * 8]}
    plan = around(kind, ann).plan(see(work("e1")))
    assert [(o.payload, o.final, o.policy) for o in outputs(plan)] == [
        (payload, True, None) for payload in told.get(kind, [7])
    ]


@pytest.mark.parametrize("seed", range(20))
def test_a_message_that_goes_astray_goes_to_none_of_whom_it_was_meant_for(seed: int) -> None:
    """Nor back to its sender; if there is nobody else, it stays as it is."""

    def tell(view: View) -> Decision:
        return Decision.respond(view, NewEvent(to=["bob"]), NewEvent(to=["bob", "cyd"]))

    plan = around("misaddress", Scripted(tell), seed).plan(see(work("e1")))
    assert [output.to for output in outputs(plan)] == [["cyd"], ["bob", "cyd"]]


def test_what_is_stale_is_the_first_of_its_type() -> None:
    """Of all turns, also of those before the window."""

    def count(view: View) -> Decision:
        number = NewEvent(payload=view.turn, to=["bob"], type="number")
        letter = NewEvent(payload="abc"[view.turn - 1], to=["bob"], type="letter")
        return Decision.respond(view, *([number, letter] if view.turn > 1 else [number]))

    ann = around("replay_stale", Scripted(count))
    plans = [ann.plan(see(work("e1"), turn=turn)) for turn in (1, 2, 3)]
    assert [[o.payload for o in outputs(plan)] for plan in plans] == [[1], [1, "b"], [1, "b"]]


def test_what_is_in_two_solutions_is_counted_twice_where_they_are_merged() -> None:
    """All other events keep the fate and the place that they were given."""
    job = Job(Numbers().task, (0, 10), (0, 30), 10, "ann")
    payloads = [Partial({"1": 10}, (part,), job).payload() for part in ((0, 10), (0, 10), (10, 20))]
    lying = [work(f"e{i}", payload, "solution") for i, payload in enumerate(payloads)]
    ann = Scripted(lambda view: Decision.respond(view, NewEvent(payload="x", to=["cyd"])))
    plan = around("merge_across_lineages", ann).plan(see(work("m"), *lying))
    assert fates(plan) == {"m": "consume", "e0": "consume", "e1": "consume", "e2": "consume"}
    other, merged = outputs(plan)
    assert (other.payload, merged.to) == ("x", ["ann"])
    assert merged.payload["counts"] == {"1": 30} and merged.payload["covers"] == [[0, 20]]


@pytest.mark.parametrize("engine", ["simulator", "asyncio", "trio"])
def test_agents_come_and_go_in_their_order_and_once(engine: str) -> None:
    """Whoever has left cannot leave; who is named first in the list is not waited for."""
    faults = [
        Fault.parse("leave target=agent-2 start=6 end=9"),
        Fault.parse("leave target=agent-3 start=2 end=7"),
        Fault.parse("leave target=agent-3 start=4 end=8"),
    ]
    kept = simulated(STEADY, faults) if engine == "simulator" else on_bus(STEADY, faults, engine)
    moves = [(r.kind, r.agent, r.ts) for r in kept.records if isinstance(r, Leave | Join)]
    assert moves == [
        ("leave", "agent-3", 2), ("leave", "agent-2", 6), ("join", "agent-3", 7),
        ("join", "agent-2", 9),
    ]  # fmt: skip
    assert [touch.fault for touch in kept.acts] == [1, 0]
