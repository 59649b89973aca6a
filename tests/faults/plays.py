"""Runs to inject faults into, and how they are carried out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import anyio

from dig.faults.inject.fault import Fault
from dig.faults.inject.fault_catalogue import KINDS
from dig.faults.inject.faulty_team import FaultyTeam
from dig.faults.inject.injector import Act
from dig.graph.records import FindingRow, Limits, Record
from dig.lab.run_pair import Played, play
from dig.monitor.messages import Output
from dig.runtime.bus import Bus
from dig.runtime.simulator import Simulation
from dig.tasks.run.arrange import arrange, make_bus, make_problem, make_task
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile
from tests.helpers import backends

LIMITS = Limits(mc_window_s=10, oe_window_s=5, dl_window_s=10)
STEADY = TeamRun(
    agents=4, size=5000, method="mas", profile=Profile.perfect(), limits=LIMITS, seed=1
)
"""A team that stumbles over nothing by itself."""

AROUND = [name for name, kind in KINDS.items() if not kind.not_around]


@cache
def twin(run_seed: int, **more: Any) -> Played:
    return play(replace(STEADY, seed=run_seed, **more))


def nulls_of(kind: str) -> dict[str, Any]:
    """The parameters of a kind each of which can take all effect away, with the value that does."""
    return {name: p.null for name, p in KINDS[kind].parameters.items() if p.null is not None}


def raised(played: Played) -> list[str]:
    """The patterns that were raised, in order."""
    return [record.pattern for record in played.records if isinstance(record, FindingRow)]


@dataclass
class Kept:
    """What a run has left: its records, and what the faults did."""

    records: list[Record]
    acts: list[Act]


def simulated(run: TeamRun, faults: list[Fault]) -> Kept:
    """A run in virtual time, where everybody starts at once, as on the bus."""
    task = make_task(run)
    arranged = arrange(run, task)
    injected = FaultyTeam.of_arrangement(arranged, faults)
    records: list[Record] = []
    simulation = Simulation(injected.team, arranged.setup, records.append, latency_s=0.0)
    simulation.plan(0.0, lambda monitor: monitor.inject(make_problem(run, task)))
    for at_s, happening in injected.happenings():
        simulation.plan(at_s, happening)
    simulation.run()
    return Kept(records, injected.acts)


def on_bus(run: TeamRun, faults: list[Fault], backend: str) -> Kept:
    """The same run on the bus, on a loop in virtual time."""
    task = make_task(run)
    arranged = arrange(run, task)
    injected = FaultyTeam.of_arrangement(arranged, faults)
    records: list[Record] = []
    bus = make_bus(run, task, records.append, 1.0, None, replace(arranged, team=injected.team))
    name, options = backends()[backend]()
    problem = make_problem(run, task)
    anyio.run(_carried_out, bus, problem, injected, backend=name, backend_options=options)
    return Kept(records, injected.acts)


async def _carried_out(bus: Bus, problem: Output, injected: FaultyTeam) -> None:
    async with bus.open(), anyio.create_task_group() as tasks:
        tasks.start_soon(injected.run_on, bus)
        bus.inject(problem)
        await bus.wait()
        tasks.cancel_scope.cancel()
