"""Carries out one run: directory, journal, signals, score and result."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, Protocol

import anyio

from dig._util.text import safe_text
from dig.detectors.answers import FiveAnswers
from dig.detectors.five_answers import HEALING, five_answers
from dig.detectors.run_so_far import RunSoFar
from dig.errors import JournalError, RealTimeError
from dig.graph.graph import InteractionGraph
from dig.monitor.messages import Output
from dig.monitor.monitor import Monitor
from dig.monitor.sinks import FanOut, Sink
from dig.runtime.bus import Bus, Resumed
from dig.runtime.checkpoint import Checkpoint
from dig.runtime.result import RunResult
from dig.runtime.simulator import Simulation
from dig.tasks.task import Score, Task
from dig.traces.journal.exchanges import exchanges
from dig.traces.journal.journal import KEEPING, Journal, Keeping, RunDirectory
from dig.traces.journal.reader import read_records
from dig.traces.usage import cost_text

from .arrange import Disturbance, arrange, make_bus, make_problem, make_simulation, make_task
from .measures import Counts, measures, with_mistakes
from .methods import Arrangement
from .team_run import SIMULATED, TeamRun
from .teams import in_virtual_time, models

INTERRUPTED = "it was interrupted"


class Attachable(Protocol):
    """An observer attached to the bus or the monitor of a run, such as an export."""

    def attach(self, target: Monitor | Bus) -> None:
        """Attach to a run before its start."""
        ...


@dataclass(frozen=True)
class Execution:
    """A finished run with its directory and measures.

    Attributes:
        score: The score of the answer; ``None`` if the task does not score.
        directory: The run's directory, with trace, side file and result.
        clock: `virtual`, or the clock's speed.
        wall_s: Seconds of real time.
        unreplayable_from: The first record that could not be kept, if the run went on without.
        agents_are: The way the team was made; see `dig.tasks.run.teams`.
        data_are: A description of the task's data.
        counts: The usage and the activations, added up.
        disturbed: The outcome of the disturbance.
        json_modes: By model, how its answers were asked for, unless by a strict schema.
        method: The method against failures.
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
    json_modes: Mapping[str, str] = field(default_factory=dict)
    method: str = ""

    @cached_property
    def verdict(self) -> FiveAnswers:
        """The five answers about the run, with the answer's score and the cost."""
        so_far = self.result.so_far
        if so_far is None:
            return self.result.verdict
        # A request's records are written when its graph is complete, so a loss that is healed in
        # the same request is not to be seen any more.
        if so_far.heals and self.unreplayable_from is None:
            graph = InteractionGraph()
            so_far = RunSoFar(graph)
            for record in read_records(self.directory):
                graph.apply(record)
                so_far(record)
        score: dict[str, Any] = {}
        if self.score is not None:
            says = self.score.says or f"Its score is: {self.score}."
            score = {**asdict(self.score), "says": says}
        return five_answers(
            so_far, score=score, place=safe_text(self.directory),
            spent=cost_text(self.counts.sums), injections=self.disturbed.get("injections") or (),
            can_try=self.agents_are == SIMULATED, can_heal=self.method in HEALING,
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The content of `result.json`."""
        return {
            **self.result.to_json(),
            "verdict": asdict(self.verdict),
            "score": asdict(self.score) if self.score else None,
            "clock": self.clock,
            "wall_s": round(self.wall_s, 3),
            "directory": str(self.directory),
            "unreplayable_from": self.unreplayable_from,
            "agents_are": self.agents_are,
            "data_are": self.data_are,
            "measures": measures(self.result, self.score, self.clock, self.counts),
            **({"json_modes": dict(self.json_modes)} if self.json_modes else {}),
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
    on_directory: Callable[[Path], None] = lambda path: None,
    disturb: Callable[[Arrangement], Disturbance] = Disturbance,
    tell: Callable[[str], None] = lambda line: None,
) -> Execution:
    """Carry out a run. Ctrl-C ends the run cleanly, with a complete trace and a result.

    Args:
        run: The configuration.
        runs: The folder for the run's directory.
        speed: The speed of the bus's clock; ``None``: virtual time.
        follow: Takes every record after it was written, to show it for instance.
        export: Makes an observer, from the run's directory.
        keeping: Settings of the journal.
        task: The run's task; ``None``: the task is made here.
        on_directory: Takes the run's directory before the run begins.
        disturb: Makes a disturbance of the arranged run; by default one that does nothing.
        tell: Takes a line at once when a request to a language model fails; the same line once.

    Raises:
        JournalError: The directory cannot be made, or a file in it cannot be written.
        SettingsError: There is no such task or team, or the team cannot work in virtual time.
            Nothing is left then.
    """
    task = task or make_task(run)
    arrangement = arrange(run, task, speed or 1.0)
    if speed is None:
        arrangement = replace(arrangement, team=in_virtual_time(arrangement.team))
    asked_models, disturbance = models(arrangement.team), disturb(arrangement)
    tell_new = cache(tell)  # a server that fails often says the same again and again
    for model in asked_models:
        model.tell = tell_new
    arrangement = replace(arrangement, team=disturbance.team)
    clock = "virtual" if speed is None else f"real time x {speed:g}"
    about = {**run.about(), **disturbance.about(), "data_are": task.data, "clock": clock}
    directory = RunDirectory(runs, about, header=arrangement.setup.header(), keeping=keeping)
    start, counts = time.monotonic(), Counts()
    # Only the run shows that an agent awaits something real; such a run has never been.
    with remove_on_error(directory.path, RealTimeError), closing(directory.journal) as journal:
        # The journal comes first: others see only what is written.
        sink = FanOut(journal, counts, disturbance.follow, follow)
        on_directory(directory.path)
        exporter = export(directory.path) if export else None
        if speed is None:
            simulation = make_simulation(run, task, sink, journal, arrangement, disturbance)
            result = _in_virtual_time(simulation, exporter)
        else:
            bus = make_bus(run, task, sink, speed, journal, arrangement)
            if exporter is not None:
                exporter.attach(bus)
            problem = make_problem(run, task)
            with exchanges(asked_models, directory.path, disk_full=keeping.disk_full):
                result = anyio.run(_in_real_time, bus, problem, asked_models, disturbance.run_on)
    score = counts.check_evidence(task.score(result.answer))
    score = with_mistakes(score, getattr(task, "mistakes", None), directory.path)
    execution = Execution(
        result, score, directory.path, clock,
        time.monotonic() - start,
        journal.unreplayable_from, run.agents_are, task.data, counts, disturbance.outcome(),
        {m.settings.model: m.json_mode for m in asked_models if m.json_mode != "strict"},
        run.method,
    )  # fmt: skip
    try:
        directory.write_result(execution.to_json())
    except JournalError:
        if execution.unreplayable_from is None:  # else the run was to do without
            raise
    return execution


@contextmanager
def remove_on_error(
    directory: Path, on: type[BaseException] | tuple[type[BaseException], ...]
) -> Iterator[None]:
    """Remove a run's directory, if the block raises an error of some types."""
    try:
        yield
    except on:
        shutil.rmtree(directory, ignore_errors=True)
        raise


async def _in_real_time(
    bus: Bus,
    problem: Output | None,
    asked_models: Sequence[AbstractAsyncContextManager[object]] = (),
    interfere: Callable[[Bus], Coroutine[Any, Any, None]] | None = None,
) -> RunResult:
    """Carry a run out in real time; the caller keeps the exchanges with models."""

    async def stop_on_signal() -> None:
        if current_thread() is not main_thread():  # signals go to the main thread alone
            return
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                bus.stop(INTERRUPTED)

    async with AsyncExitStack() as open_models, bus.open(), anyio.create_task_group() as tasks:
        for model in asked_models:
            await open_models.enter_async_context(model)
        tasks.start_soon(stop_on_signal)
        if interfere is not None:
            tasks.start_soon(interfere, bus)
        if problem is not None:
            bus.inject(problem)
        await bus.wait()
        tasks.cancel_scope.cancel()
    return bus.result


def _in_virtual_time(simulation: Simulation, exporter: Attachable | None = None) -> RunResult:
    if exporter is not None:
        exporter.attach(simulation.host.monitor)

    def stop(number: int, frame: FrameType | None) -> None:
        simulation.stop(INTERRUPTED)

    with _handling(stop):
        return simulation.run()


def resume(
    moment: Checkpoint,
    disturbance: Disturbance,
    journal: Journal,
    *,
    is_virtual: bool,
    problems: Sequence[tuple[float, Output]] = (),
) -> RunResult:
    """Go on from a checkpoint.

    Args:
        moment: The checkpoint.
        disturbance: The disturbance of the team. Recorded acts are repeated from the record;
            later ones come from the disturbance.
        journal: The journal of the run that goes on.
        is_virtual: Whether the run goes on in virtual time.
        problems: The problems that are still to be posed, each with its second; in real time one.

    Raises:
        ReplayError: An agent cannot be brought back to the moment.
        SettingsError: The team lacks an agent, or one cannot work in virtual time.
    """
    team, since_s = disturbance.team, moment.unrecorded_us / 1_000_000
    if is_virtual:
        simulation = Simulation.resume(moment, team, durable=journal)
        for at_s, problem in problems:
            simulation.plan(at_s, partial(Monitor.inject, output=problem))
        for at_s, happening in disturbance.happenings(since_s):
            simulation.plan(at_s, happening)
        return _in_virtual_time(simulation)
    resumed = Resumed(moment, team, durable=journal)
    interfere = partial(disturbance.run_on, since_s=since_s, now_s=moment.us / 1_000_000)
    first = problems[0][1] if problems else None
    return anyio.run(_in_real_time, resumed, first, models(team), interfere)


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
