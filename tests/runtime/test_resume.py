"""Resumption: from the records of a run that stopped anywhere, a run that goes on as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from dig.graph.chain import SealedLines
from dig.graph.records import Record
from dig.monitor.messages import Effect
from dig.monitor.monitor import Monitor
from dig.runtime.resume import Resumption, resume
from dig.runtime.simulator import Happening, Simulation
from tests.chaos import ChaosRun
from tests.traces.journals import simple_run


@dataclass
class Requests:
    """A sink that remembers the lines of each request, and what had come from outside by then.

    Attributes:
        lines: The lines of the journal.
        ends: After how many lines each request ends.
        script: How many happenings of the script had happened by then.
    """

    sealed: SealedLines
    lines: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    script: list[int] = field(default_factory=list)
    happened: int = 0

    def __call__(self, record: Record) -> None:
        self.write([record])

    def write(self, records: Sequence[Record]) -> None:
        self.lines += map(self.sealed.line, records)
        self.ends.append(len(self.lines))
        self.script.append(self.happened)

    def counting(self, happening: Callable[[Monitor], list[Effect]]) -> Any:
        """A happening that is counted."""

        def happen(monitor: Monitor) -> list[Effect]:
            self.happened += 1
            return happening(monitor)

        return happen


def plan(simulation: Simulation, run: ChaosRun, requests: Requests, since: int = 0) -> None:
    """Plan what comes from outside, from the first problem on."""
    problem: Happening = (0.0, partial(Monitor.inject, output=run.problem))
    script = [*run.script, problem]
    for at, happening in sorted(script, key=lambda item: item[0])[since:]:
        simulation.plan(at, requests.counting(happening))


def unbroken(run: ChaosRun) -> Requests:
    """The requests of a simulated run."""
    requests = Requests(SealedLines(run.setup.header()))
    simulation = Simulation(run.team, run.setup, requests)
    plan(simulation, run, requests)
    simulation.run()
    return requests


def resumed(run: ChaosRun, whole: Requests, cut: int) -> list[bytes]:
    """The lines of a run that stopped after some lines, and went on."""
    resumption = resume(whole.lines[:cut], run.setup, remembers=True)
    assert isinstance(resumption, Resumption) and resumption.lines is not None
    requests = Requests(resumption.lines)
    resumption.go_live(requests)
    simulation = Simulation.resume(resumption.checkpoint(), run.team)
    plan(simulation, run, requests, whole.script[whole.ends.index(cut)])
    simulation.run()
    return whole.lines[:cut] + requests.lines


@pytest.mark.parametrize("seed", range(1, 13))
def test_a_run_that_stopped_after_any_request_ends_as_if_it_had_not(seed: int) -> None:
    run = simple_run(seed)
    whole = unbroken(run)
    for cut in whole.ends[:-1]:
        assert resumed(run, whole, cut) == whole.lines, f"simple_run({seed}) after {cut} lines"
