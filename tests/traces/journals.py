"""Short journals to read, break and mend, and what to break them with."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dig import Fate, InteractionGraph, Monitor, Record
from dig._util.json_values import dumps
from dig.graph.chain import Chain
from dig.graph.records import EDITION, Deliver, Emit, End, Finish, Run, Start
from dig.monitor.messages import Effect
from dig.runtime import simulate
from dig.runtime.simulator import Simulation
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE
from tests.chaos import ChaosRun, chaos_run
from tests.conservation import Allowed

LARGE = "x" * 70_000


def story(payload: Any = "why?") -> list[Record]:
    """A whole run: a problem, one activation, an answer."""
    return [
        Run(0, 0, "r", ("ada",), patterns=EDITION),
        Emit(1, 0, "e1", None, ("ada",), "problem", False, payload),
        Deliver(2, 0, "e1", "ada"),
        Start(3, 1_000, "a1", "ada", ("e1",)),
        End(4, 2_500, "a1", (Fate("e1", "consume"),), ("e2",)),
        Emit(5, 2_500, "e2", "a1", (), "solution", True, payload),
        Deliver(6, 2_500, "e2", None),
        Finish(7, 2_500, "submitted", payload),
    ]


def write(folder: Path, records: Iterable[Record] | None = None, **settings: Any) -> Path:
    """A journal of some records; its path."""
    path = folder / TRACE
    journal = Journal(path, **settings)
    for record in story() if records is None else records:
        journal(record)
    journal.close()
    return path


class Disk:
    """What writes for a journal: it counts, and fails when it is told to."""

    def __init__(self, fails: Callable[[int], OSError | None], short: bool = False) -> None:
        self.count = 0
        self.fails = fails
        self.short = short

    def __call__(self, file: int, data: memoryview) -> int:
        self.count += 1
        error = self.fails(self.count)
        if error is not None:
            os.write(file, data[: len(data) // 2])  # as much as there is room for
            raise error
        return os.write(file, data[:7] if self.short else data)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a journal, without its chain."""
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    for row in rows:
        row.pop("chain", None)
    return rows


def reseal(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Write rows with a chain that fits, as if the journal had been written like that."""
    chain = Chain()
    path.write_bytes(b"".join(chain.seal(dumps(row).encode()) for row in rows))
    return path


def simple_run(seed: int, *, heal: bool = True) -> ChaosRun:
    """A random run of which everything is recorded: agents come and go, but nothing is code."""
    run = chaos_run(seed, heal=heal)
    script = tuple((at, _written_down(happening)) for at, happening in run.script)
    return replace(run, setup=replace(run.setup, gates=()), script=script, allowed=Allowed())


def _written_down(happening: Callable[[Monitor], list[Effect]]) -> Callable[[Monitor], Any]:
    """What is asked in vain leaves no record, and nobody can ask it again: so it is told."""

    def happen(monitor: Monitor) -> list[Effect]:
        before = monitor.graph.t
        effects = happening(monitor)
        return effects if monitor.graph.t > before else monitor.incident("asked in vain", None)

    return happen


def journalled(run: ChaosRun, folder: Path) -> Path:
    """The journal of a simulated run."""
    journal = Journal(folder / f"{run.seed}.dig.jsonl", header=run.setup.header())
    simulate(run.team, run.problem, setup=run.setup, script=run.script, sink=journal)
    journal.close()
    return journal.path


def state(graph: InteractionGraph) -> str:
    """Everything that a graph knows, as text."""
    h = graph.history
    events = [graph.event(name) for name in h.event_ids]
    return json.dumps(
        [
            graph.t,
            graph.now,
            graph.is_over,
            graph.awaited,
            {a.name: [list(a.buffer), list(a.incoming)] for a in graph.agents.values()},
            [[v.id, v.agent, v.us_start] for v in graph.activations.values()],
            [[e.id, list(e.copies), list(e.flight), e.consumed, e.cause] for e in events],
            [e.id for e in graph.open_events()],
            graph.orphans(),
            list(h.event_ids),
            list(h.activation_ids),
        ]
    )


def live_states(seed: int, folder: Path) -> tuple[Path, list[str]]:
    """A journal, and the state of the live graph at each of its records."""
    run = simple_run(seed) if seed % 2 else chaos_run(seed, heal=True)
    journal = Journal(folder / f"{seed}.dig.jsonl", header=run.setup.header())
    simulation = Simulation(run.team, run.setup, journal)
    graph, states = simulation.host.monitor.graph, list[str]()
    apply = graph.apply

    def applied(record: Record) -> None:
        apply(record)
        states.append(state(graph))

    graph.apply = applied  # type: ignore[method-assign]
    for at, happening in run.script:
        simulation.plan(at, happening)
    simulation.plan(0.0, lambda monitor: monitor.inject(run.problem))
    simulation.run()
    journal.close()
    return journal.path, states
