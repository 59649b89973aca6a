"""A person decides about healing: on the bus, simulated, around a wrapped team, and again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

import dig
from dig import Inject
from dig.detectors import standard, standard_healers
from dig.detectors.policy import Policy, Rule
from dig.errors import SettingsError
from dig.graph.records import IncidentRow
from dig.monitor.approvals import DECIDED
from dig.monitor.messages import Proposed
from dig.runtime import Bus, Setup, View, simulate
from dig.traces.journal.reader import read_records
from dig.traces.replay.rerun import rerun
from tests.helpers import Heals, Recorder, Scripted, Sees, flag, submit, tell
from tests.traces.journals import write

ASK = Policy((Rule(action="ask", reason="it is costly", deadline_s=3.0, otherwise="leave"),))


@dataclass
class Person:
    """Decides after some seconds."""

    heal: Any = True
    after_s: float = 1.0

    async def __call__(self, proposed: Proposed) -> bool:
        await anyio.sleep(self.after_s)
        assert proposed.reason == "it is costly"
        return self.heal  # type: ignore[no-any-return]

    def plan(self, proposed: Proposed) -> tuple[float, bool]:
        return self.after_s, self.heal


def about_e2(graph: Any, record: Any) -> list[dig.Finding]:
    is_it = record.kind == "emit" and record.event == "e2"
    return [flag(record, event="e2")] if is_it else []


def setup_of(approve: Any, policy: Policy = ASK) -> Setup:
    return Setup(
        detectors=lambda: [Sees(about_e2)],
        healers=lambda: {"SEEN": Heals(lambda graph, finding: [Inject("e2", "approved")])},
        policy=policy, approve=approve,
    )  # fmt: skip


def team_of() -> dict[str, Scripted]:
    """Agent a gives b and c something to do; b answers."""
    return {"a": Scripted(tell("b"), think_s=0.1), "b": Scripted(submit())}


def notes(view: View) -> tuple[str, ...]:
    return view.events[0].notes


PEOPLE: list[tuple[Any, float, tuple[str, ...], str]] = [
    (Person(), 1.2, ("approved",), "person"),
    (Person(heal=False), 1.2, (), "person"),
    (Person(after_s=500.0), 3.2, (), "deadline"),
    (None, 3.2, (), "deadline"),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("person", "seconds", "said", "by"), PEOPLE)
async def test_on_the_bus_the_event_waits_for_the_person(
    person: Any, seconds: float, said: tuple[str, ...], by: str
) -> None:
    """But not for longer than the deadline."""
    team, sink = team_of(), Recorder()
    result = await Bus(team, setup_of(person, Policy()), sink=sink, policy=ASK).run("?")
    assert (result.outcome, result.seconds) == ("submitted", seconds)
    assert notes(team["b"].views[0]) == said
    assert [row.detail["by"] for row in decisions(sink)] == [by]


@pytest.mark.parametrize(("person", "seconds", "said", "by"), PEOPLE)
def test_in_the_simulator_a_person_has_a_plan(
    person: Any, seconds: float, said: tuple[str, ...], by: str
) -> None:
    """The run is the same as on the bus but for the time that agents take to start."""
    team, sink = team_of(), Recorder()
    result = simulate(team, "?", setup=setup_of(person), sink=sink)
    assert result.outcome == "submitted"
    assert result.seconds == pytest.approx(seconds, abs=0.2)
    assert notes(team["b"].views[0]) == said
    assert [row.detail["by"] for row in decisions(sink)] == [by]


def test_a_person_without_a_plan_cannot_be_simulated() -> None:
    """The sentence says what is missing."""
    with pytest.raises(SettingsError, match="has no `plan`; it cannot be simulated"):
        simulate(team_of(), "?", setup=setup_of(lambda proposed: True))


@pytest.mark.anyio
@pytest.mark.parametrize("person", [Person(heal="yes"), Person(heal=None)])
async def test_an_answer_that_is_none_leaves_it_to_the_deadline(person: Any) -> None:
    """The trace says what was answered instead of True or False."""
    sink = Recorder()
    result = await Bus(team_of(), setup_of(person), sink=sink).run("?")
    assert (result.outcome, result.seconds) == ("submitted", 3.2)
    failed = [row.detail for row in sink if isinstance(row, IncidentRow) and row.what == "failed"]
    assert "is neither True nor False" in failed[0]["what"]


@pytest.mark.anyio
@pytest.mark.parametrize("on_bus", [True, False])
async def test_a_function_that_exits_instead_of_an_answer_ends_no_team(on_bus: bool) -> None:
    """`sys.exit` in `approve` is a failure of that part; the deadline decides."""

    class Exits:
        async def __call__(self, proposed: Proposed) -> bool:
            raise SystemExit(3)

        def plan(self, proposed: Proposed) -> Any:
            raise SystemExit(3)

    sink, setup = Recorder(), setup_of(Exits())
    bus = Bus(team_of(), setup, sink=sink)
    result = await bus.run("?") if on_bus else simulate(team_of(), "?", setup=setup, sink=sink)
    assert result.outcome == "submitted"
    assert [one.component for one in result.component_failures] == ["approve"]
    assert [row.detail["by"] for row in decisions(sink)] == ["deadline"]


def decisions(records: Any) -> list[IncidentRow]:
    return [row for row in records if isinstance(row, IncidentRow) and row.what == DECIDED]


# --- a wrapped team ---


def asked_in(heal: bool, can_hold: bool = True) -> tuple[list[Any], list[str]]:
    """What a wrapped team does while a person hesitates until bob is done; and what is recorded."""
    log: list[Any] = []
    done = threading.Event()

    def person(proposed: Proposed) -> bool:
        assert done.wait(10), "the team waits for the person"
        return heal

    async def boss(question: str) -> str:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(team["ann"], "x")
            tasks.start_soon(team["bob"], "y")
        return "done"

    async def ann(part: str) -> str:
        log.append((part, dig.notes()))
        return part

    async def bob(part: str) -> str:
        log.append((part, dig.notes()))
        done.set()
        return part

    team: dict[str, Callable[[str], Any]] = {"boss": boss, "ann": ann, "bob": bob}
    sink = Recorder()
    setup = Setup(
        detectors=lambda: [Sees(to_ann)],
        healers=lambda: {"SEEN": Heals(lambda g, found: [Inject(found.subject["event"], "ok")])},
        can_hold=can_hold,
    )
    policy = Policy((Rule(action="ask", deadline_s=20.0),))
    dig.wrap(team, mode="heal", setup=setup, policy=policy, approve=person, sink=sink)

    async def main() -> None:
        with anyio.fail_after(15):
            assert await team["boss"]("?") == "done"

    try:
        anyio.run(main)
        assert dig.session_of(team).statistics().faults == 0
    finally:
        dig.unwrap(team)
    return log, [row.detail["by"] for row in decisions(sink)]


def to_ann(graph: Any, record: Any) -> list[dig.Finding]:
    is_it = record.kind == "emit" and record.to == ("ann",)
    return [flag(record, event=record.event)] if is_it else []


@pytest.mark.parametrize("heal", [True, False])
def test_a_wrapped_team_goes_on_while_a_person_decides(heal: bool) -> None:
    """Bob works; ann is called when there is a decision, with the note if it is a yes."""
    log, by = asked_in(heal)
    assert log == [("y", ()), ("x", ("ok",) if heal else ())]
    assert by == ["person"]


def test_where_a_team_cannot_hold_the_healing_alone_waits() -> None:
    """Ann is called at once, and the note comes too late."""
    log, _ = asked_in(heal=True, can_hold=False)
    assert log == [("x", ()), ("y", ())]


# --- again ---

RULES: dict[str, Policy] = {
    "ask": Policy((Rule(action="ask", pattern="ET", deadline_s=3.0, otherwise="heal"),)),
    "off": Policy((Rule(action="off", pattern="ET", agents=("a",), reason="for fun"),)),
    "observe": Policy((Rule(action="observe"),)),
    "severity": Policy(),
    "all": Policy(heal="all"),
    "notices": Policy(notices=("b",)),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("person", [Person(), Person(heal=False), None])
def test_a_run_with_a_policy_is_made_again_from_its_journal(
    tmp_path: Path, name: str, person: Any
) -> None:
    """The header says the policy, and the trace what the person has decided."""
    team = {
        "a": Scripted(tell("b"), submit(1), submit(2), submit(3)),
        "b": Scripted(tell("a"), think_s=9.0),
    }
    setup = Setup(
        detectors=standard, healers=standard_healers, policy=RULES[name], approve=person, seed=1
    )
    sink = Recorder()
    simulate(team, dig.Output("?", ("a", "b"), "problem"), setup=setup, sink=sink)
    path = write(tmp_path, sink, header=setup.header())
    assert rerun(path).records == len(list(read_records(path)))
    assert bool(decisions(sink)) is (name == "ask")
