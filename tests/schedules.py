"""`python -m tests.schedules`: does every law hold, whatever a team, a schedule and faults do?

    python -m tests.schedules --count 100000                       in the simulator
    python -m tests.schedules --count 10000 --engine shell         on the bus, asyncio and trio

Schedule number n is a function of n alone: its team, its script, thresholds, order of tasks, and
which fault points are switched on. Each run is journalled; then the independent checker, of its
file (`digmon verify`) and of its records with what healing may do (`conservation`), and, if no
detector was made to fail, the detectors over the stored trace have to agree with the run.

A schedule that breaks a law is made small (fewer faults, a shorter run, no script) and told with
the command that has it again. Exit status 0: every law held, 1: not, 130: interrupted.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import anyio

from dig import InteractionGraph, Monitor, Output, Watch
from dig.detectors import standard
from dig.errors import JournalError
from dig.graph.records import Failure
from dig.monitor.sinks import FanOut, Sink
from dig.runtime import Agent, Bus, RunResult, simulate
from dig.runtime.keyed_random import KeyedRandom
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE
from dig.traces.journal.recovery import recover
from dig.traces.verify import verify

from .chaos import ChaosRun, chaos_run
from .conservation import Account, conservation
from .fault_points import POINTS, TAKEN_BACK, Faults
from .helpers import Recorder, bodies, found_again, rows
from .laws import lateness, patience, promptness, stillness, timeliness
from .loops import ENGINES, backend
from .progress import over_processes, progress
from .retaining import KEPT, Exported, comparable, letting_go

BATCH = 25


@dataclass(frozen=True)
class Schedule:
    """One run: everything about it follows from these."""

    number: int
    engine: str
    points: frozenset[str]
    heal: bool = True
    interference: bool = True
    keep: int | None = None
    limit_s: float = 2.5

    @classmethod
    def of(cls, number: int, engine: str) -> Schedule:
        """The schedule of a number: half of them without faults, the others with some."""
        draws = KeyedRandom(number, "schedule", 0)
        points = [p for p in POINTS if draws.chance(0.4, p)] if number % 2 else []
        if engine == "shell":
            engine = draws.choice(ENGINES[1:], "engine")
        keep = draws.choice(KEPT, "keep") if draws.chance(0.2, "keeps") else None
        return cls(number, engine, frozenset(points), heal=draws.chance(0.7, "heal"), keep=keep)

    def run(self) -> ChaosRun:
        run = chaos_run(self.number, heal=self.heal, limit_s=self.limit_s)
        draws = KeyedRandom(self.number, "thresholds", 0)
        mc_s, oe_s, dl_s = (round(0.1 + draws.uniform("window", i), 3) for i in range(3))
        limits = replace(
            run.setup.limits,
            mc_window_s=mc_s,
            oe_window_s=oe_s,
            dl_window_s=dl_s,
            activation_limit_s=round(0.2 + 5 * draws.uniform("activation"), 3),
            coverage=draws.chance(0.8, "coverage"),
        )
        if run.allowed.ladder_us is not None:
            run = replace(run, allowed=replace(run.allowed, ladder_us=round(dl_s * 1_000_000)))
        session = run.setup.session or self.keep is not None
        setup = replace(run.setup, limits=limits, session=session, keep=self.keep)
        run = replace(run, setup=setup)
        return run if self.interference else replace(run, script=())

    def smaller(self) -> Iterator[Schedule]:
        """Simpler schedules that may break the same law."""
        yield from (replace(self, points=self.points - {p}) for p in sorted(self.points))
        if self.interference:
            yield replace(self, interference=False)
        if self.heal:
            yield replace(self, heal=False)
        if self.keep is not None:
            yield replace(self, keep=None)
        if self.limit_s > 0.1:
            yield replace(self, limit_s=round(self.limit_s * 0.8, 2))

    def command(self) -> str:
        """The command that has it again."""
        parts = [f"--seed {self.number} --count 1 --engine {self.engine}"]
        parts.append(f"--points {','.join(sorted(self.points)) or 'none'}")
        parts += [] if self.heal else ["--observe"]
        parts += [] if self.interference else ["--no-script"]
        parts += [] if self.keep is None else [f"--keep {self.keep}"]
        parts += [] if self.limit_s == 2.5 else [f"--limit {self.limit_s:g}"]
        return f"python -m tests.schedules {' '.join(parts)}"


def carry_out(schedule: Schedule, folder: Path) -> tuple[Recorder, Faults]:
    """One run, journalled, and judged; one that lets go of history beside one that keeps all.

    Raises:
        AssertionError: A law is broken.
    """
    run = schedule.run()
    if schedule.keep is None:
        done = _carried_out(schedule, run, folder)
        _judge(run, done, _Judged(run, done.sink, folder / TRACE))
        return done.sink, done.faults
    exported = Exported()
    with letting_go(run) as lets_go:
        done = _carried_out(schedule, lets_go.run, folder, exported)
    judged = _Judged(run, done.sink, folder / TRACE)
    _judge(run, done, judged)
    journal = (folder / TRACE).read_bytes()
    whole = _carried_out(schedule, lets_go.keeping_all, folder)
    is_same = journal == (folder / TRACE).read_bytes() and done.sink == whole.sink
    assert is_same, "what is let go of makes no difference"
    _judge(lets_go.keeping_all, whole, judged)  # its records, the same, are judged already
    if exported.has_let_go:
        same = comparable(exported.items) == comparable(Exported.of(whole.sink).items)
        assert same, "what is exported is the same, too"
    return done.sink, done.faults


@dataclass
class _CarriedOut:
    """A run whose journal is closed and recovered; a planted fault may have ended it early."""

    sink: Recorder
    faults: Faults
    result: RunResult | None


def _carried_out(schedule: Schedule, run: ChaosRun, folder: Path, *follow: Sink) -> _CarriedOut:
    faults, sink = Faults(schedule.number, schedule.points), Recorder()
    for old in os.listdir(folder):
        os.unlink(folder / old)
    result: RunResult | None = None
    with closing(Journal(folder / TRACE, write=faults.write)) as journal:
        try:
            result = _run(schedule, run, faults, FanOut(journal, sink, *follow))
        except JournalError:
            assert faults.struck["journal.write"], "only a planted fault stops the journal"
    if sink:  # else not even the first record could be written
        torn = recover(folder)
        assert torn is None or faults.struck["journal.write"]
    return _CarriedOut(sink, faults, result)


def _run(schedule: Schedule, run: ChaosRun, faults: Faults, sink: Sink) -> RunResult:
    setup, team = faults.setup(run.setup), faults.team(run.team)
    if schedule.engine == "simulator":
        return simulate(team, run.problem, setup=setup, script=run.script, sink=sink)
    bus = Bus(team, setup, sink=sink)
    bus.follow(lambda record: None, faults.around)
    with backend(schedule.engine, schedule.number) as (name, options):
        return anyio.run(_on_the_bus, bus, run, team, backend=name, backend_options=options)


class _Outside:
    """What a script asks of a monitor, asked of a bus."""

    def __init__(self, bus: Bus, team: Mapping[str, Agent]) -> None:
        self._bus, self._team = bus, team

    @property
    def graph(self) -> InteractionGraph:
        return self._monitor.graph

    @property
    def _monitor(self) -> Monitor:
        assert self._bus.monitor is not None
        return self._bus.monitor

    def leave(self, name: str) -> None:
        self._bus.leave(name)

    def join(self, name: str) -> None:
        self._bus.join(name, self._team[name])

    def redirect(self, event: str, to: tuple[str, ...]) -> None:
        self._bus._demand(lambda: self._monitor.redirect(event, to))

    def inject(self, output: Output) -> None:
        self._bus.inject(output)

    def waits(self, **what: str) -> None:
        self._bus._demand(lambda: self._monitor.waits(**what))

    def request_failed(self, how: Failure, event: str | None) -> None:
        self._bus._demand(lambda: self._monitor.request_failed(how, event=event))

    def tick(self) -> None:
        self._bus._demand(self._monitor.tick)


async def _on_the_bus(bus: Bus, run: ChaosRun, team: Mapping[str, Agent]) -> RunResult:
    """The same run in real time, with its script."""
    outside: Any = _Outside(bus, team)

    async def happen(at: float, happening: Callable[[Any], object]) -> None:
        await anyio.sleep(at)
        if not bus._host.monitor.is_over:
            happening(outside)

    async with bus.open(), anyio.create_task_group() as tasks:
        bus.inject(run.problem)
        for at, happening in run.script:
            tasks.start_soon(happen, at, happening)
        await bus.wait()
        tasks.cancel_scope.cancel()
    return bus.result


class _Judged:
    """The records of a run and their file, judged by themselves, and what they say of the run."""

    def __init__(self, run: ChaosRun, sink: Recorder, path: Path) -> None:
        """Judge the file, unless a planted fault has kept it empty."""
        self._run, self._sink = run, sink
        self.told = {(row.to, row.event) for row in rows(sink, "deliver")}
        untrue = [row.t for row in rows(sink, "finding") if TAKEN_BACK in row.evidence]
        assert not untrue, f"{untrue}: what a detector said before it failed counts"
        lateness(sink)
        if sink:
            report = verify(path)
            assert not report.problems, "; ".join(map(str, report.problems))
            assert report.records == len(sink)

    @cached_property
    def account(self) -> Account:
        """The account of a run that no fault of the journal has ended early; judges the records."""
        setup = self._run.setup
        account = conservation(self._sink, self._run.allowed)
        promptness(self._sink, setup.activation_timeout_s, setup.retries)
        return account

    @cached_property
    def findings(self) -> list[dict[str, Any]]:
        """The findings of fresh detectors."""
        return found_again(self._sink, Watch(standard()))


def _judge(run: ChaosRun, done: _CarriedOut, judged: _Judged) -> None:
    """Every law about what a run has returned, shown and kept, by what its records say."""
    sink, faults, result = done.sink, done.faults, done.result
    if result is not None:
        account = judged.account
        assert list(result.left.undelivered) == account.undelivered
        assert list(result.left.unconsumed) == account.unconsumed
        lost = account.orphaned
        assert result.left.orphaned.items() <= lost.items()
        assert run.setup.kept_records is not None or len(result.left.orphaned) == len(lost)
        assert result.records == len(sink)
        stillness(account, result.outcome, result.reason)
        timeliness(sink, result.findings)
        patience(sink, faults.kept, account)
        if not faults.struck["detector.run"]:
            assert judged.findings == bodies(result.findings)
    assert faults.shown <= judged.told, "an agent was shown what the journal does not have"


@dataclass
class Tally:
    """What was seen in some schedules."""

    schedules: int = 0
    records: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[Schedule, str]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.schedules += other.schedules
        self.records += other.records
        self.seen += other.seen
        self.failures += other.failures


def broken(schedule: Schedule, folder: Path) -> str | None:
    """Which law a schedule breaks; none is broken by a run that ends as it should."""
    try:
        carry_out(schedule, folder)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    return None


def shrink(schedule: Schedule, folder: Path) -> tuple[Schedule, str]:
    """A schedule that fails, made as small as one change after the other makes it."""
    what = broken(schedule, folder) or "it does not fail again"
    while True:
        for smaller in schedule.smaller():
            told = broken(smaller, folder)
            if told is not None:
                schedule, what = smaller, told
                break
        else:
            return schedule, what


@contextmanager
def _collected_afterwards() -> Iterator[None]:
    """Collect the garbage of a schedule once, at its end: it is small, and full of cycles."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def look(schedules: Sequence[Schedule], most: int = 5) -> Tally:
    """Carries some schedules out, until so many have failed."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="schedules-") as name:
        folder = Path(name)
        for schedule in schedules:
            tally.schedules += 1
            try:
                with _collected_afterwards():
                    sink, faults = carry_out(schedule, folder)
            except Exception:
                tally.failures.append(shrink(schedule, folder))
                if len(tally.failures) == most:
                    break
                continue
            tally.records += len(sink)
            tally.seen.update({row.kind for row in sink})
            tally.seen.update({row.pattern for row in rows(sink, "finding")})
            tally.seen.update(f"fault {point}" for point in faults.struck)
    return tally


def campaign(schedules: Sequence[Schedule], jobs: int, most: int = 5) -> tuple[Tally, bool]:
    """Carries schedules out; returns what was seen, and whether it was interrupted."""
    tally = Tally()
    parts = [schedules[i : i + BATCH] for i in range(0, len(schedules), BATCH)]
    try:
        with progress(len(schedules)) as bar:
            for part in over_processes(partial(look, most=most), parts, jobs):
                tally.add(part)
                bar.advance(bar.task_ids[0], part.schedules)
                if len(tally.failures) >= most:
                    break
    except KeyboardInterrupt:
        return tally, True
    return tally, False


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m tests.schedules", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--seed", type=int, default=0, help="number of the first schedule (0)")
    parser.add_argument("--count", type=int, default=10_000, help="how many schedules (10000)")
    parser.add_argument("--engine", choices=(*ENGINES, "shell"), default="simulator")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes")
    parser.add_argument("--failures", type=int, default=5, help="end after so many (5)")
    again = parser.add_argument_group("to have one schedule again, made small")
    again.add_argument("--points", help="fault points, with commas between; or none")
    again.add_argument("--observe", action="store_true", help="without healing")
    again.add_argument("--no-script", action="store_true", help="nobody interferes")
    again.add_argument("--keep", type=int, help="all are sessions that keep so many records")
    again.add_argument("--limit", type=float, help="seconds that the run lasts")
    options = parser.parse_args(argv)
    if options.seed < 0 or options.count < 1 or options.jobs < 1:
        parser.error("seed must not be below 0, count and jobs must be above 0")
    return options


def chosen(options: argparse.Namespace) -> Iterator[Schedule]:
    """The schedules that the arguments speak of."""
    for number in range(options.seed, options.seed + options.count):
        schedule = Schedule.of(number, options.engine)
        if options.points is not None:
            points = frozenset(options.points.split(",")) & frozenset(POINTS)
            heal = not options.observe
            schedule = replace(schedule, points=points, heal=heal, keep=options.keep)
        if options.no_script:
            schedule = replace(schedule, interference=False)
        if options.keep is not None:
            schedule = replace(schedule, keep=options.keep)
        yield replace(schedule, limit_s=options.limit) if options.limit else schedule


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(argv)
    begun = time.monotonic()
    tally, interrupted = campaign(
        list(chosen(options)), min(options.jobs, options.count), options.failures
    )
    for name, count in sorted(tally.seen.items()):
        print(f"  {name:<24}{count:8} schedules")
    for schedule, what in tally.failures:
        print(f"\nschedule {schedule.number} breaks a law: {what}\n  again: {schedule.command()}")
    seconds = time.monotonic() - begun
    verdict = f"{len(tally.failures)} BROKE A LAW" if tally.failures else "every law held"
    told = f"{tally.schedules} schedules, {tally.records} records, {seconds:.0f} s"
    print(f"\n{told}: {verdict}" + (" (interrupted)" if interrupted else ""))
    return 130 if interrupted else int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
