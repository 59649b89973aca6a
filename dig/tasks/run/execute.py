"""Carries out one run: its directory and journal, its signals, its score and its result."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, Protocol, cast

import anyio

from dig.errors import JournalError
from dig.graph.records import Record
from dig.monitor.messages import Output
from dig.monitor.monitor import Monitor
from dig.monitor.sinks import FanOut, Sink
from dig.runtime.bus import Bus, Resumed
from dig.runtime.checkpoint import Checkpoint
from dig.runtime.result import RunResult
from dig.runtime.simulator import Happening, Simulation
from dig.tasks.task import Score, Task
from dig.traces.journal.exchanges import exchanges
from dig.traces.journal.journal import KEEPING, Journal, Keeping, RunDirectory

from .arrange import arrange, make_bus, make_problem, make_simulation, make_task
from .measures import Counts, measures
from .methods import Arrangement
from .team_run import SIMULATED, TeamRun
from .teams import check_virtual, models, works_in_virtual_time

INTERRUPTED = "it was interrupted"


class Attachable(Protocol):
    """An observer that is attached to the bus or the monitor of a run, such as an export."""

    def attach(self, target: Monitor | Bus) -> None:
        """Attach to a run that has not begun."""
        ...


class Disturbance:
    """Interferes with one run from outside, as injected faults do; by itself with nothing.

    Attributes:
        team: The agents by name that work instead of the given ones.
    """

    def __init__(self, arranged: Arrangement) -> None:
        """Leave the team of a run as it is."""
        self.team = arranged.team

    def about(self) -> Mapping[str, Any]:
        """Entries of the side file about it."""
        return {}

    def happenings(self, since_s: float = 0.0) -> Sequence[Happening]:
        """Changes from outside from a moment on, in virtual time, each with its time in seconds."""
        return ()

    async def run_on(self, bus: Bus, since_s: float = 0.0, now_s: float = 0.0) -> None:
        """Make the same changes on an open bus, on which it is `now_s` already."""

    def follow(self, record: Record) -> None:
        """Take note of a record, after it was written."""

    def outcome(self) -> Mapping[str, Any]:
        """Entries of the result about it, when the run is over."""
        return {}


@dataclass(frozen=True)
class Execution:
    """One run that was carried out.

    Attributes:
        result: How it ended.
        score: The score of its answer; ``None`` if the task does not score.
        directory: Its directory, with trace, side file and result.
        clock: `virtual`, or the clock's speed.
        wall_s: Seconds of real time.
        unreplayable_from: The first record that did not fit on the disk, if it went on without.
        agents_are: The way its team was made; see `dig.tasks.run.teams`.
        data_are: A description of the task's data.
        counts: The usage and the activations, added up.
        disturbed: The outcome of the disturbance.
    """

    result: RunResult
    score: Score | None
    directory: Path
    clock: str
    wall_s: float
    unreplayable_from: int | None = None
    agents_are: str = SIMULATED
    data_are: str | None = None
    counts: Counts = field(default_factory=Counts)
    disturbed: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The content of `result.json`."""
        return {
            **self.result.to_json(),
            "score": asdict(self.score) if self.score else None,
            "clock": self.clock,
            "wall_s": round(self.wall_s, 3),
            "directory": str(self.directory),
            "unreplayable_from": self.unreplayable_from,
            "agents_are": self.agents_are,
            "data_are": self.data_are,
            "measures": measures(self.result, self.score, self.clock, self.counts),
            **self.disturbed,
        }


def execute(
    run: TeamRun,
    runs: Path,
    speed: float | None = None,
    follow: Sink = lambda record: None,
    export: Callable[[Path], Attachable] | None = None,
    keeping: Keeping = KEEPING,
    task: Task | None = None,
    made: Callable[[Path], None] = lambda path: None,
    disturb: Callable[[Arrangement], Disturbance] = Disturbance,
) -> Execution:
    """Carry out a run. Ctrl-C ends it cleanly, with a complete trace and a result.

    Args:
        run: The configuration.
        runs: Where its directory is made.
        speed: The speed of the bus's clock; ``None``: virtual time.
        follow: Takes every record after it was written, to show it for instance.
        export: Makes an observer, from the run's directory.
        keeping: Settings of the journal.
        task: The run's task; ``None``: it is made here.
        made: Takes the run's directory before the run begins.
        disturb: Makes a disturbance of the arranged run; by default one that does nothing.

    Raises:
        JournalError: The directory cannot be made, or a file in it cannot be written.
        SettingsError: There is no such task or team, or the team cannot work in virtual time.
    """
    task = task or make_task(run)
    arranged = arrange(run, task, speed or 1.0)
    if speed is None:
        check_virtual(arranged.team)
    disturbance = disturb(arranged)
    arranged = replace(arranged, team=disturbance.team)
    clock = "virtual" if speed is None else f"real time x {speed:g}"
    about = {**run.about(), **disturbance.about(), "data_are": task.data, "clock": clock}
    header = arranged.setup.described()
    directory = RunDirectory(runs, about, header=header, keeping=keeping)
    began, counts = time.monotonic(), Counts()
    with closing(directory.journal) as journal:
        sink = FanOut(journal, counts, disturbance.follow, follow)
        made(directory.path)
        exporter = export(directory.path) if export else None
        if speed is None:
            simulation = make_simulation(run, task, sink, journal, arranged)
            result = _in_virtual_time(simulation, exporter, disturbance.happenings())
        else:
            bus = make_bus(run, task, sink, speed, journal, arranged)
            if exporter is not None:
                exporter.attach(bus)
            problem, asked = make_problem(run, task), models(arranged.team)
            with exchanges(asked, directory.path, disk_full=keeping.disk_full):
                result = anyio.run(_in_real_time, bus, problem, asked, disturbance.run_on)
    execution = Execution(
        result, task.score(result.answer), directory.path, clock, time.monotonic() - began,
        journal.unreplayable_from, run.agents_are, task.data, counts, disturbance.outcome(),
    )  # fmt: skip
    _write(execution, directory)
    return execution


def _write(execution: Execution, directory: RunDirectory) -> None:
    try:
        directory.write_result(execution.to_json())
    except JournalError:
        if execution.unreplayable_from is None:  # else it was asked to do without
            raise


async def _in_real_time(
    bus: Bus,
    problem: Output | None,
    asked: Sequence[AbstractAsyncContextManager[object]] = (),
    interfere: Callable[[Bus], Coroutine[Any, Any, None]] | None = None,
) -> RunResult:
    """Carry a run out in real time; the caller keeps the exchanges with models."""

    async def stop_on_signal() -> None:
        if current_thread() is not main_thread():  # which alone is told about signals
            return
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                bus.stop(INTERRUPTED)

    async with AsyncExitStack() as open_models, bus.open(), anyio.create_task_group() as tasks:
        for model in asked:
            await open_models.enter_async_context(model)
        tasks.start_soon(stop_on_signal)
        if interfere is not None:
            tasks.start_soon(interfere, bus)
        if problem is not None:
            bus.inject(problem)
        await bus.wait()
        tasks.cancel_scope.cancel()
    return bus.result


def _in_virtual_time(
    simulation: Simulation,
    exporter: Attachable | None = None,
    happenings: Sequence[Happening] = (),
) -> RunResult:
    for at_s, happening in happenings:
        simulation.plan(at_s, happening)
    if exporter is not None:
        exporter.attach(simulation.host.monitor)

    def stop(number: int, frame: FrameType | None) -> None:
        simulation.stop(INTERRUPTED)

    with _handling(stop):
        return simulation.run()


def resume(moment: Checkpoint, disturbance: Disturbance, journal: Journal) -> RunResult:
    """Go on from a checkpoint: in virtual time if all agents of the team have a `plan`.

    Args:
        moment: The checkpoint.
        disturbance: What interferes, with the team. What it did in the recorded run comes from
            there; the rest comes from it.
        journal: Takes the records.
    """
    team, since_s = disturbance.team, moment.unrecorded_us / 1_000_000
    if works_in_virtual_time(team):
        simulation = Simulation.resume(moment, cast("Any", team), durable=journal)
        return _in_virtual_time(simulation, None, disturbance.happenings(since_s))
    resumed = Resumed(moment, cast("Any", team), durable=journal)
    interfere = partial(disturbance.run_on, since_s=since_s, now_s=moment.us / 1_000_000)
    return anyio.run(_in_real_time, resumed, None, models(team), interfere)


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle SIGINT and SIGTERM for as long as a block lasts; only the main thread can."""
    if current_thread() is not main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
