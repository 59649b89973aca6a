"""`python -m tests.soak`: days of a team that never ends, in virtual time, and what they cost.

    python -m tests.soak --days 7 --seed 1

Requests overlap, agents wait, fail, lose things and pass them on, guests come and go. The run is
journalled in segments, and somebody may follow it (`--follow otel`). Once an hour of virtual time
memory is measured; after the warm-up it has to be level. At the end every event that ever was is
accounted for, and `digmon verify` agrees.
Exit status 0: so it was, 1: not, 2: wrong arguments, 130: interrupted.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import linear_regression, mean
from typing import NamedTuple

from bench.apart import resident
from dig import Budget, Monitor
from dig.detectors import standard, standard_healers
from dig.monitor.messages import Effect
from dig.monitor.sinks import FanOut
from dig.runtime import RunResult, Setup
from dig.runtime.keyed_random import KeyedRandom
from dig.runtime.simulator import Simulation
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE
from dig.traces.verify import VerificationReport, verify

from .soak_account import Account
from .soak_follow import FOLLOWERS, Followed, following
from .soak_team import GUESTS, request, team

HOUR_S = 3600
DAY_S = 24 * HOUR_S
MOST_A_DAY = 1_000_000
"""Bytes by which memory may grow in a day: a thousandth of what the records of a day take."""


@dataclass(frozen=True)
class Soak:
    """A run: everything about it follows from these.

    Attributes:
        days: Of virtual time.
        seed: Decides everything.
        every_s: Seconds between two requests, on average.
        keep: Records of closed history that stay; ``None``: all, to see what that costs.
        segment_bytes: How large a file of the journal becomes.
        traces: Whether every allocation is watched, which takes thrice as long.
        follow: Who follows it besides, of `FOLLOWERS`.
    """

    days: float = 7.0
    seed: int = 1
    every_s: float = 60.0
    keep: int | None = 1_000
    segment_bytes: int = 8 * 1024 * 1024
    traces: bool = True
    follow: str | None = None

    @property
    def setup(self) -> Setup:
        return Setup(
            "soak", seed=self.seed, session=True, keep=self.keep, detectors=standard,
            healers=standard_healers, budget=Budget(), limit_s=self.days * DAY_S,
        )  # fmt: skip


class Sample(NamedTuple):
    """Memory at one moment, after everything that is not used any more was collected."""

    hour: int
    records: int
    traced: int  # bytes that Python has allocated
    resident: int  # bytes of the process
    objects: int  # that the garbage collector looks at
    rows: int  # events and activations that the graph has
    live: int  # events that have not ended


@dataclass
class Soaked:
    """What came of a run."""

    soak: Soak
    result: RunResult
    account: Account
    report: VerificationReport
    samples: list[Sample] = field(default_factory=list)
    seconds: float = 0.0
    journal_bytes: int = 0
    followed: Followed = field(default_factory=Followed)

    @property
    def steady(self) -> list[Sample]:
        """The samples after the warm-up: the first quarter, but no more than a day."""
        return self.samples[min(24, len(self.samples) // 4) :]

    def slope(self, what: str) -> float:
        """How much something grows in a day, by the straight line that fits best."""
        hours = [sample.hour for sample in self.steady]
        values: list[int] = [getattr(sample, what) for sample in self.steady]
        return linear_regression(hours, values).slope * 24

    def faults(self) -> Iterator[str]:
        """What is not as it should be."""
        for what in ("traced", "resident"):
            if self.slope(what) > MOST_A_DAY:
                yield f"{what} bytes grow by {self.slope(what) / 1e6:.2f} MB a day"
        if not self.account.is_complete:
            yield f"events were forgotten: {self.account.forgotten[:10]}"
        if self.account.open_work != set(self.result.left.unconsumed):
            yield "what is open in the graph is not what is open in the account"
        if self.result.events != self.account.emitted:
            yield "the result counts other events than there were"
        yield from (f"digmon verify: {problem}" for problem in self.report.problems[:5])
        if self.report.records != self.result.records:
            yield "the journal has not all records"
        if self.followed.fault:
            yield f"who followed has failed: {self.followed.fault}"


def soaked(soak: Soak, folder: Path, tell: bool = False) -> Soaked:
    """Carry a run out, journalled into a folder; `tell` of every virtual day on standard error."""
    account, samples, began = Account(), list[Sample](), time.monotonic()
    journal = Journal(folder / TRACE, segment_bytes=soak.segment_bytes)
    with closing(journal), following(soak.follow) as followed:
        simulation = Simulation(team(soak.seed), soak.setup, FanOut(journal, account))
        followed.attach(simulation.host.monitor)
        _Requests(simulation, soak)
        _Visits(simulation, soak)
        _Measure(simulation, account, samples, began if tell else None)
        if soak.traces:
            tracemalloc.start()
        try:
            result = simulation.run()
        finally:
            tracemalloc.stop()
    files = sum(path.stat().st_size for path in folder.iterdir())
    report = verify(folder / TRACE)
    took = time.monotonic() - began
    return Soaked(soak, result, account, report, samples, took, files, followed)


class _Again:
    """Something that happens in a simulation again and again."""

    def __init__(self, simulation: Simulation, soak: Soak) -> None:
        self._simulation, self._soak = simulation, soak
        self._count, self._at_s = 0, 0.0
        self._plan(0.0)

    def _plan(self, in_s: float) -> None:
        self._at_s += in_s
        self._simulation.plan(self._at_s, self._happen)

    def _happen(self, monitor: Monitor) -> list[Effect]:
        self._count += 1
        draws = KeyedRandom(self._soak.seed, type(self).__name__, self._count)
        effects = self.do(monitor, draws)
        self._plan(self.pause_s(draws))
        return effects

    def do(self, monitor: Monitor, draws: KeyedRandom) -> list[Effect]:
        raise NotImplementedError

    def pause_s(self, draws: KeyedRandom) -> float:
        raise NotImplementedError


class _Requests(_Again):
    """What comes from outside."""

    def do(self, monitor: Monitor, draws: KeyedRandom) -> list[Effect]:
        return monitor.inject(request(draws))

    def pause_s(self, draws: KeyedRandom) -> float:
        return 2 * self._soak.every_s * draws.uniform("pause")


class _Visits(_Again):
    """Guests come and go, with whatever they have in front of them."""

    def do(self, monitor: Monitor, draws: KeyedRandom) -> list[Effect]:
        guest = draws.choice(GUESTS, "who")
        return monitor.leave(guest) if guest in monitor.graph.agents else monitor.join(guest)

    def pause_s(self, draws: KeyedRandom) -> float:
        return 10 * self._soak.every_s * (0.5 + draws.uniform("pause"))


class _Measure:
    """Measures memory at every full hour."""

    def __init__(
        self,
        simulation: Simulation,
        account: Account,
        samples: list[Sample],
        told_since: float | None,
    ) -> None:
        self._simulation, self._account, self._samples = simulation, account, samples
        self._told_since = told_since
        simulation.plan(HOUR_S, self._happen)

    def _happen(self, monitor: Monitor) -> list[Effect]:
        gc.collect()
        graph, hour = monitor.graph, len(self._samples) + 1
        self._samples.append(
            Sample(
                hour, graph.t, tracemalloc.get_traced_memory()[0], resident(),
                _objects(), graph.history.rows, len(self._account.live),
            )
        )  # fmt: skip
        if self._told_since is not None and hour % 24 == 0:
            took = time.monotonic() - self._told_since
            print(f"day {hour // 24}: {graph.t} records, {took:.0f} s", file=sys.stderr, flush=True)
        self._simulation.plan((hour + 1) * HOUR_S, self._happen)
        return []


def _objects() -> int:
    """How many objects the garbage collector looks at.

    `gc.get_objects` would hand out tuples that other threads have not finished, who then fail.
    """
    gc.freeze()
    try:
        return gc.get_freeze_count()
    finally:
        gc.unfreeze()


def table(done: Soaked) -> Iterator[str]:
    """What was measured, in Markdown: means of every sixth of the time after the warm-up."""
    yield "| hours | records | traced MB | resident MB | objects | rows of history | live events |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    steady = done.steady
    size = max(1, len(steady) // 6)
    for part in (steady[i : i + size] for i in range(0, len(steady), size)):
        columns = zip(*part, strict=True)
        hours, records, *means = (list(column) for column in columns)
        traced, held, objects, rows, live = map(mean, means)
        yield (
            f"| {hours[0]} to {hours[-1]} | {records[-1]:,} | {traced / 1e6:.2f} "
            f"| {held / 1e6:.1f} | {objects:,.0f} | {rows:,.0f} | {live:,.0f} |"
        )


def told(done: Soaked) -> Iterator[str]:
    """What came of a run, in lines."""
    result, account = done.result, done.account
    ended = ", ".join(f"{count:,} {how}" for how, count in account.ended.most_common())
    findings = ", ".join(f"{count:,} {pattern}" for pattern, count in result.raised().items())
    yield from table(done)
    yield ""
    yield f"{result.records:,} records in {done.seconds:.0f} s; findings: {findings}"
    yield f"{account.emitted:,} events: {ended}; {len(account.live):,} have not ended"
    yield f"{len(done.report.files):,} files of the journal, {done.journal_bytes / 1e6:,.0f} MB"
    if done.soak.follow:
        made = "spans" if done.soak.follow == "otel" else "characters"
        yield f"followed by {done.soak.follow}: {done.followed.made:,} {made}"
    for what, unit in (("traced", 1e6), ("resident", 1e6)):
        yield f"{what}: {done.slope(what) / unit:+.3f} MB a day (at most {MOST_A_DAY / unit:g})"
    for what in ("objects", "rows"):
        yield f"{what}: {done.slope(what):+.0f} a day"
    faults = [*done.faults()]
    yield from (f"WRONG: {fault}" for fault in faults)
    yield "not as it should be" if faults else "memory is level, and every event is accounted for"


def arguments(argv: Sequence[str] | None) -> tuple[Soak, Path | None]:
    parser = argparse.ArgumentParser("python -m tests.soak", description=__doc__.split("\n")[0])
    parser.add_argument("--days", type=float, default=7.0, help="of virtual time (7)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between requests (60)")
    parser.add_argument("--keep", type=int, default=1_000, help="records of history kept (1000)")
    parser.add_argument("--keep-all", action="store_true", help="let go of nothing")
    parser.add_argument("--segment", type=int, default=8, help="MiB a file of the journal (8)")
    parser.add_argument("--fast", action="store_true", help="do not watch every allocation")
    parser.add_argument("--follow", choices=FOLLOWERS, help="who follows it besides, all along")
    parser.add_argument("--out", type=Path, help="keep the journal here")
    options = parser.parse_args(argv)
    if options.days < 0.5 or options.every <= 0 or options.keep < 0 or options.segment < 1:
        parser.error("at least half a day, and no number below 0")
    soak = Soak(options.days, options.seed, options.every, options.keep, options.segment * 2**20)
    soak = replace(soak, traces=not options.fast, follow=options.follow)
    return replace(soak, keep=None) if options.keep_all else soak, options.out


def main(argv: Sequence[str] | None = None) -> int:
    soak, out = arguments(argv)
    folder = out or Path(tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        done = soaked(soak, folder, tell=True)
    except KeyboardInterrupt:
        return 130
    finally:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(told(done)))
    return int(any(done.faults()))


if __name__ == "__main__":
    sys.exit(main())
