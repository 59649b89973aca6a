"""Errors in recorded runs: they come out again byte for byte, and a fork does the end anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from dig.detectors import standard, standard_healers
from dig.errors import StopRunError
from dig.graph import records
from dig.graph.records import IncidentRow
from dig.monitor.messages import Output
from dig.runtime import Bus, Decision, Setup, View
from dig.runtime.simulator import Simulation
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import read_records
from dig.traces.replay.changes import AskAgain, Resend
from dig.traces.replay.rerun import rerun
from dig.traces.replay.rewind import rewind
from tests.helpers import backends

from .forks import lines

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Raises:
    """An agent that raises from a turn on; before that it waits, and takes some time for it."""

    stateless = True

    def __init__(self, think_s: float, error: Exception, turn: int = 1) -> None:
        self.think_s, self.error, self.turn = think_s, error, turn

    async def act(self, view: View) -> Decision:
        if view.turn >= self.turn:
            raise type(self.error)(*self.error.args)  # a fresh one: it keeps its way
        return Decision.wait()


def team() -> dict[str, Any]:
    return {"a": Raises(2.0, ValueError("no")), "b": Raises(3.0, ValueError("no"), turn=2)}


def simulated(path: Path, people: dict[str, Any], **settings: Any) -> Path:
    """The journal of a simulated run, whose problem has a trace context."""
    setup = Setup(**{"detectors": standard, "retries": 1, "limit_s": 50.0, **settings})
    journal = Journal(path, header=setup.header())
    simulation = Simulation(people, setup, journal)
    problem = Output("?", ("a", "b"), "problem", traceparent=PARENT)
    simulation.plan(0.0, lambda monitor: monitor.inject(problem))
    simulation.plan(9.0, lambda monitor: monitor.inject(Output("more", ("b",), "problem")))
    simulation.run()
    journal.close()
    return path


def told(path: Path) -> list[str]:
    return [row.what for row in read_records(path) if isinstance(row, IncidentRow)]


STOPS = {"a": Raises(2.0, StopRunError("the key is wrong")), "b": Raises(3.0, ValueError("no"))}


@pytest.mark.parametrize("heals", [False, True])
@pytest.mark.parametrize("limit_s", [4.0, 33.0, 500.0])
def test_a_run_with_errors_comes_out_again(tmp_path: Path, limit_s: float, heals: bool) -> None:
    """With stack traces, and at the time limit or by an error without an answer.

    The time limits are moments at which the team is at work, and at which it waits for a window.
    """
    more: dict[str, Any] = {"healers": standard_healers} if heals else {}
    path = simulated(tmp_path / "run.dig.jsonl", team(), limit_s=limit_s, **more)
    assert {"stack trace", "request_failed"} <= {*told(path)}
    assert rerun(path).records == len(lines(path))


def test_a_window_that_ends_with_the_time_limit_comes_out_again(tmp_path: Path) -> None:
    """Its finding stands before the request that failed, both at the same moment."""
    for limit_s in (30.0, 32.0, 33.0, 39.0, 40.0, 41.0, 42.0):
        path = tmp_path / f"{limit_s:g}.dig.jsonl"
        simulated(
            path,
            {"a": Raises(1.0, ValueError("no"), 99), "b": Raises(0.0, ValueError(""), 99)},
            limit_s=limit_s,
            healers=standard_healers,
        )
        assert rerun(path).records == len(lines(path))


def test_a_run_that_an_agent_stopped_comes_out_again(tmp_path: Path) -> None:
    """With the error of that agent, and what it says."""
    path = simulated(tmp_path / "run.dig.jsonl", STOPS)
    assert told(path)[-3:] == ["stack trace", "gave up", "request_failed"]
    assert rerun(path).records == len(lines(path))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("people", [team(), STOPS])
def test_a_run_with_errors_on_the_bus_comes_out_again(
    tmp_path: Path, backend: str, people: dict[str, Any]
) -> None:
    """As in virtual time."""
    setup, path = Setup(detectors=standard, retries=1, limit_s=500.0), tmp_path / "run.dig.jsonl"
    journal = Journal(path, header=setup.header())
    name, options = backends()[backend]()
    bus = Bus(people, setup, sink=journal)
    result = anyio.run(bus.run, "?", ["a", "b"], backend=name, backend_options=options)
    journal.close()
    assert result.outcome == "error"
    assert rerun(path).records == len(lines(path))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("offset", range(3))
def test_a_fork_that_changes_nothing_has_the_same_errors(tmp_path: Path, offset: int) -> None:
    """At every record: also between an activation's start, its end, and its stack trace."""
    path = simulated(tmp_path / "run.dig.jsonl", team(), limit_s=500.0)
    assert told(path).count("request_failed") == 1
    for at in range(offset, len(lines(path)), 3):
        fork = tmp_path / f"{at}.dig.jsonl"
        header = Setup(detectors=standard, retries=1, limit_s=500.0).header()
        journal = Journal(fork, header=header)
        Simulation.resume(rewind(path, at, sink=journal), team()).run()
        journal.close()
        assert fork.read_bytes() == path.read_bytes(), at


def test_a_fork_does_not_repeat_how_the_run_ended(tmp_path: Path) -> None:
    """An agent that did not fail in the fork has no stack trace there, and no request fails."""

    class Answers(Raises):
        async def act(self, view: View) -> Decision:
            return Decision.submit(view, 42)

    path = simulated(tmp_path / "run.dig.jsonl", team())
    forked: list[records.Record] = []
    people = {"a": Answers(2.0, ValueError()), "b": Answers(3.0, ValueError())}
    assert Simulation.resume(rewind(path, 1, sink=forked.append), people).run().answer == 42
    assert not [row for row in forked if isinstance(row, IncidentRow)]


def test_what_is_asked_anew_has_no_stack_trace_of_before(tmp_path: Path) -> None:
    """Only what is repeated, or has ended already, has the recorded one."""
    path = simulated(tmp_path / "run.dig.jsonl", team())
    row = next(row for row in read_records(path) if isinstance(row, IncidentRow))
    assert row.what == "stack trace"
    activation = row.detail["activation"]
    ends = [row for row in read_records(path) if isinstance(row, records.End)]
    at = next(end.t for end in ends if end.activation == activation)

    def repeated(*changes: AskAgain) -> bool:
        moment = rewind(path, at, changes=changes)
        outside = any(input_.t == row.t for input_ in moment.outside)
        return outside or any(getattr(item, "stack", "") for item in moment.agenda)

    assert repeated()
    assert not repeated(AskAgain(at, activation))


def test_a_trace_context_survives_a_rerun_and_a_fork(tmp_path: Path) -> None:
    """That of the problem, in the recorded part, in what comes again, and if it is sent again."""
    path = simulated(tmp_path / "run.dig.jsonl", team())

    def contexts(rows: Any) -> list[str | None]:
        return [row.traceparent for row in rows if isinstance(row, records.Emit)]

    assert contexts(read_records(path)) == [PARENT, None]
    assert rerun(path).records == len(lines(path))
    for at in (1, 4):
        forked: list[records.Record] = []
        Simulation.resume(rewind(path, at, sink=forked.append), team()).run()
        assert contexts(forked) == [PARENT, None]
    again: list[records.Record] = []
    change = Resend(6, ("e1",), ("b",))
    Simulation.resume(rewind(path, 6, changes=[change], sink=again.append), team()).run()
    assert contexts(again)[:2] == [PARENT, PARENT]
