"""A reviewer reads along; while it does, nobody else is started."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from dig import Output, Record
from dig.graph import records as kinds
from dig.lab.judge.judge import reading_of
from dig.lab.judge.reviewer import ReviewedSetup, ReviewMaterial, ReviewView
from dig.runtime import Agent, Bus, Decision, NewEvent, Plan, PlannedAgent, Setup, View, simulate
from dig.runtime.agents import Thinking
from tests.helpers import Recorder, rows, story
from tests.runtime.conftest import anyio_backend as anyio_backend  # time is virtual here, too

NAME = "reader"


@dataclass(frozen=True)
class Passes:
    """Passes a ball on to a random colleague, and submits it after so many passes."""

    passes: int = 30
    teams: list[tuple[str, ...]] = field(default_factory=list)

    def plan(self, view: View) -> Plan:
        self.teams.append(view.team)
        assert not isinstance(view, ReviewView)
        count = max(int(event.payload) for event in view.events)
        if count >= self.passes:
            return Plan(0.3, Decision.submit(view, count))
        balls = [NewEvent(payload=count + 1, to=[name]) for name in view.others]
        return Plan(0.3 + 0.1 * (count % 3), Decision.respond(view, *balls[: 1 + count % 2]))


@dataclass(frozen=True)
class Reads:
    """Takes two seconds to read, and says nothing."""

    fails: bool = False
    readings: list[ReviewMaterial] = field(default_factory=list)

    def plan(self, view: View) -> Plan:
        self.readings.append(reading_of(view))
        return Plan(2.0, "it cannot read" if self.fails else Decision.wait())


def pauses(records: Iterable[Record]) -> int:
    """How many readings there were; nobody else may have been started in one."""
    count, reading = 0, ""
    for record in records:
        if isinstance(record, kinds.Start) and record.agent == NAME:
            count, reading = count + 1, record.activation
        elif isinstance(record, kinds.Start):
            assert not reading, f"{record.agent} was started while somebody read"
        elif isinstance(record, kinds.End) and record.activation == reading:
            reading = ""
    return count


def setup(every: int = 5, seed: int = 1) -> Setup:
    return ReviewedSetup(seed=seed, reviewer=NAME, every=every)


@pytest.mark.parametrize("seed", range(10))
def test_in_virtual_time_nobody_is_started_while_it_reads(seed: int) -> None:
    sink, ball = Recorder(), Passes()
    team: dict[str, PlannedAgent] = {**dict.fromkeys("abc", ball), NAME: Reads()}
    result = simulate(team, Output(0, ("a",), "problem"), setup=setup(seed=seed), sink=sink)
    assert result.outcome == "submitted"
    assert pauses(sink) >= 3
    assert set(ball.teams) == {("a", "b", "c")}, "it was somebody's colleague"


@pytest.mark.anyio
async def test_on_the_bus_nobody_is_started_while_it_reads() -> None:
    sink, ball = Recorder(), Passes()
    team = {**{name: Thinking(ball) for name in "abc"}, NAME: Thinking(Reads())}
    result = await Bus(team, setup(), sink=sink).run(0)
    assert result.outcome == "submitted"
    assert pauses(sink) >= 3
    assert set(ball.teams) == {("a", "b", "c")}


def test_it_is_there_only_while_it_reads() -> None:
    """It comes, is started, ends and goes, and is no member of the team before or after."""
    sink = Recorder()
    team: dict[str, PlannedAgent] = {"a": Passes(4), "b": Passes(4), NAME: Reads()}
    simulate(team, Output(0, ("a",), "problem"), setup=setup(every=3), sink=sink)
    lines = [line for line in story(sink) if NAME in line]
    assert lines[:3] == [f"join {NAME}", f"start a4 of {NAME} on ", f"leave {NAME}"]
    assert rows(sink, "run")[0].agents == ("a", "b")


def test_each_reading_shows_all_before_it_once_as_new_and_no_payload() -> None:
    reader = Reads()
    team: dict[str, PlannedAgent] = {"a": Passes(9), "b": Passes(9), NAME: reader}
    simulate(team, Output(0, ("a",), "problem"), setup=setup(every=3))
    assert len(reader.readings) >= 2
    seen = 0
    for reading in reader.readings:
        assert [record.t for record in reading.log] == list(range(len(reading.log)))
        assert reading.before == seen
        seen = len(reading.log)
        emitted = [record for record in reading.log if isinstance(record, kinds.Emit)]
        assert emitted and all(record.payload is None for record in emitted)
        assert NAME not in " ".join(story(reading.log))


def test_one_that_fails_does_not_stop_the_team() -> None:
    sink = Recorder()
    team: dict[str, PlannedAgent] = {**dict.fromkeys("abc", Passes()), NAME: Reads(fails=True)}
    result = simulate(team, Output(0, ("a",), "problem"), setup=setup(), sink=sink)
    assert (result.outcome, list(result.failures)) == ("submitted", [NAME])
    assert pauses(sink) == result.failures[NAME]


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["join", "start", "end", "leave"])
async def test_a_disk_that_is_full_at_any_step_of_a_reading_ends_the_run_as_ever(kind: str) -> None:
    """The error that the journal raised, and not a group or a run that hangs."""
    ball, reader = Passes(), Thinking(Reads())

    def team() -> dict[str, Agent]:
        return {**{name: Thinking(ball) for name in "abc"}, NAME: reader}

    whole = Recorder()
    await Bus(team(), setup(), sink=whole).run(0)
    reads = [r for r in whole if getattr(r, "agent", None) == NAME]
    first = next(r for r in reads if isinstance(r, kinds.Start))
    ends = (r for r in whole if isinstance(r, kinds.End) and r.activation == first.activation)
    steps = {record.kind: record.t for record in [*reads[:2], next(ends), reads[2]]}
    assert list(steps) == ["join", "start", "end", "leave"]
    with pytest.raises(OSError, match="the disk is full"):
        await Bus(team(), setup(), sink=Recorder(fail_at=steps[kind])).run(0)


class Speaks:
    """Has something to say to `a` when it reads."""

    def plan(self, view: View) -> Plan:
        return Plan(1.0, Decision(outputs=[NewEvent(payload="go on", to=["a"])]))


def waits_first(view: View) -> Decision:
    if len(view.events) < 2:
        return Decision.wait()
    return Decision.submit(view, "done")


@dataclass(frozen=True)
class Waits:
    """Waits until it has two events."""

    def plan(self, view: View) -> Plan:
        return Plan(0.1, waits_first(view))


def test_a_team_that_is_stuck_is_read_before_it_is_given_up() -> None:
    team: dict[str, PlannedAgent] = {"a": Waits(), NAME: Speaks()}
    result = simulate(team, Output(0, ("a",), "problem"), setup=setup(every=1))
    assert (result.outcome, result.answer) == ("submitted", "done")


@pytest.mark.anyio
async def test_a_team_that_is_stuck_on_the_bus_is_read_before_it_is_given_up() -> None:
    team = {"a": Thinking(Waits()), NAME: Thinking(Speaks())}
    result = await Bus(team, setup(every=1)).run(0)
    assert (result.outcome, result.answer) == ("submitted", "done")
