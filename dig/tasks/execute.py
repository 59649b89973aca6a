"""Carries out one run: its directory and journal, its signals, its score and its result."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import anyio

from dig.ledger import Sink
from dig.records import Record
from dig.runtime.bus import Bus
from dig.runtime.result import RunResult
from dig.traces.journal import RunDirectory

from .count_frequency import CountFrequency, Score
from .runs import CountFrequencyRun

INTERRUPTED = "it was interrupted"


@dataclass(frozen=True)
class Execution:
    """One run that was carried out.

    Attributes:
        result: How it ended.
        score: How good its answer is.
        directory: What it left: trace, side file and result.
        clock: `virtual`, or how fast the clock went.
        wall_s: How many seconds of real time it took.
    """

    result: RunResult
    score: Score
    directory: Path
    clock: str
    wall_s: float

    def to_json(self) -> dict[str, Any]:
        """What `result.json` has."""
        return {
            **self.result.to_json(),
            "score": asdict(self.score),
            "clock": self.clock,
            "wall_s": round(self.wall_s, 3),
            "directory": str(self.directory),
        }


def execute(
    run: CountFrequencyRun,
    runs: Path,
    *,
    speed: float | None = None,
    follow: Sink = lambda record: None,
) -> Execution:
    """Carry out a run. Ctrl-C ends it cleanly, with a complete trace and a result.

    Args:
        run: The configuration.
        runs: Where its directory is made.
        speed: How fast the clock of the bus goes; ``None``: in virtual time.
        follow: Is given every record after it was written, to show it for instance.

    Raises:
        JournalError: The directory cannot be made, or a file in it not be written.
        SettingsError: The task makes no sense.
    """
    task = run.task()
    clock = "virtual" if speed is None else f"real time x {speed:g}"
    directory = RunDirectory(runs, {**run.about(), "clock": clock})
    began = time.monotonic()
    with closing(directory.journal) as journal:

        def sink(record: Record) -> None:
            journal(record)
            follow(record)

        if speed is None:
            result = _in_virtual_time(run, task, sink)
        else:
            result = anyio.run(_in_real_time, run.bus(task, sink, speed), task, run.names[0])
    wall_s = time.monotonic() - began
    execution = Execution(result, task.score(result.answer), directory.path, clock, wall_s)
    directory.write_result(execution.to_json())
    return execution


async def _in_real_time(bus: Bus, task: CountFrequency, first: str) -> RunResult:
    async def stop_on_signal() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                bus.stop(INTERRUPTED)

    async with bus.open(), anyio.create_task_group() as tasks:
        tasks.start_soon(stop_on_signal)
        bus.inject(task.problem(first))
        await bus.wait()
        tasks.cancel_scope.cancel()
    return bus.result


def _in_virtual_time(run: CountFrequencyRun, task: CountFrequency, sink: Sink) -> RunResult:
    simulation = run.simulation(task, sink)

    def stop(number: int, frame: FrameType | None) -> None:
        simulation.stop(INTERRUPTED)

    with _handling(stop):
        return simulation.run()


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle SIGINT and SIGTERM for as long as a block lasts."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
