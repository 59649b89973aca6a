"""A long look at what a run leaves: `python -m tests.journal_campaign [NAME ...] [--count N]`.

Each part states one promise, is driven by a seed, and ends with what it counted; the default
suite runs each with a small count. `--count 0`: the whole of it, as below.

    kills       kill -9 before, during and after each write of a run of 1,000 records
    power       1,000 power cuts at each level: what was synced survives, and nothing else
    timed       200 times, kill -9 a real `digmon run` at some moment
    cuts        cut a journal at every byte
    flips       100,000 random bits, each flipped
    replays     1,000 random runs: the graph of every prefix, the findings, and the bytes again
    mutations   500 changed journals: each stops at the record that is wrong
    forks       every record of 100 random runs: nothing changed, the same run
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dig import InteractionGraph, Record, records
from dig.errors import DivergenceError, TraceError
from dig.runtime import Plan, View
from dig.runtime.commit import Durability
from dig.runtime.simulation import Simulation
from dig.tasks.profile import Profile
from dig.tasks.runs import TeamRun
from dig.traces.journal import Journal
from dig.traces.reader import TRACE, read_records
from dig.traces.recovery import recover
from dig.traces.replay.rerun import replay, rerun
from dig.traces.verify import verify

from .traces.forks import forked, lines, turns_before
from .traces.journals import journalled, live_states, simple_run, state
from .traces.mutations import damage, forge

LONG = TeamRun(agents=8, size=5_000, seed=3, profile=Profile(chunk_length=50, pieces_per_agent=20))
SHORT = TeamRun(agents=3, size=2_000, seed=1)
KILLS = 1_000


class Stop(Exception):
    """The power is cut."""


def run(spec: TeamRun, journal: Journal, sink: Callable[[Record], None]) -> Simulation:
    """A run in virtual time that is journalled."""
    task = spec.make_task()

    def both(record: Record) -> None:
        journal(record)
        sink(record)

    return spec.simulation(task, both, journal)


def whole(spec: TeamRun, folder: Path) -> bytes:
    """The whole journal of a run."""
    (folder / TRACE).unlink(missing_ok=True)
    journal = Journal(folder / TRACE)
    run(spec, journal, lambda record: None).run()
    journal.close()
    data = (folder / TRACE).read_bytes()
    (folder / TRACE).unlink()
    return data


# --- crashes --------------------------------------------------------------------------------


def kills(rng: random.Random, count: int, folder: Path) -> Counter[str]:
    """No record that was acknowledged is lost, whenever the process dies."""
    reference, seen = whole(LONG, folder), Counter[str]()
    total = min(KILLS, reference.count(b"\n"))
    places = [(n, how) for n in range(1, total + 1) for how in ("before", "during", "after")]
    for number, how in rng.sample(places, min(count, len(places)) or len(places)):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _die_at(folder / TRACE, number, how, writer)
        os.close(writer)
        with open(reader, "rb") as pipe:
            acknowledged = len(pipe.read())
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL
        assert acknowledged == number - 1, "a record is acknowledged when its write is over"
        aside = recover(folder)
        assert (aside is not None) == (how == "during" and number > 1)
        kept = (folder / TRACE).read_bytes()
        assert kept.count(b"\n") == number - (how != "after") or (number == 1 and how == "during")
        assert reference.startswith(kept)
        if number > 1:
            assert [p.what for p in verify(folder / TRACE).problems] == []
        for file in folder.glob(f"{TRACE}*"):
            file.unlink()
        seen[how] += 1
    return seen


def _die_at(path: Path, number: int, how: str, acknowledge: int) -> None:
    """Run until a write, and die there (in a child process)."""
    done = 0

    def write(file: int, data: memoryview) -> int:
        nonlocal done
        done += 1
        if done == number:
            if how != "before":
                os.write(file, data if how == "after" else data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return os.write(file, data)

    journal = Journal(path, write=write)

    def say(record: Record) -> None:
        os.write(acknowledge, b".")

    run(LONG, journal, say).run()
    os._exit(1)


class _Disk(Journal):
    """A journal on a disk whose power fails: `safe` bytes were synced."""

    def __init__(self, path: Path, level: Durability, dies_at: int) -> None:
        self.safe = 0
        self.lines = 0
        self.dies_at = dies_at
        super().__init__(path, durability=level, write=self._count)

    def _count(self, file: int, data: memoryview) -> int:
        self.lines += 1
        if self.lines == self.dies_at:
            raise Stop
        return os.write(file, data)

    def sync(self) -> None:
        self.safe = self.path.stat().st_size


def power(rng: random.Random, count: int, folder: Path) -> Counter[str]:
    """What took effect at a level is on the disk when the power is cut."""
    seen = Counter[str]()
    total = whole(SHORT, folder).count(b"\n")
    for level in ("effects", "power"):
        for _ in range(count or 1_000):
            disk = _Disk(folder / TRACE, level, rng.randrange(2, total + 1))
            effects = _until_the_cut(disk, level)
            disk.close()
            left = disk.safe + rng.randrange(disk.path.stat().st_size - disk.safe + 1)
            os.truncate(disk.path, left)
            kept = disk.path.read_bytes().count(b"\n")
            assert not effects or max(effects) < kept, f"{level}: an effect without its record"
            seen[level] += 1
            seen[f"{level}: effects"] += len(effects)
            disk.path.unlink()
    return seen


def _until_the_cut(disk: _Disk, level: Durability) -> list[int]:
    """The records that took effect before the power was cut."""
    effects: list[int] = []
    latest: dict[str, int] = {}
    delivered: dict[str, int] = {}

    def note(record: Record) -> None:
        if isinstance(record, records.Start):
            latest[record.agent] = record.t
            if record.agent in delivered:  # which woke it, unless it was at work
                effects.append(delivered.pop(record.agent))
        elif isinstance(record, records.Deliver) and record.to and level == "power":
            delivered.setdefault(record.to, record.t)

    simulation = run(SHORT, disk, note)
    for name, agent in simulation._team.items():

        class Noting:
            def plan(self, view: View, inner: object = agent) -> Plan:
                effects.append(latest[view.agent])
                plan: Plan = inner.plan(view)  # type: ignore[attr-defined]  # it is a policy
                return plan

        simulation._team[name] = Noting()
    with suppress(Stop):
        simulation.run()
    return effects


def timed(rng: random.Random, count: int, folder: Path) -> Counter[str]:
    """A real run that is killed leaves a sound journal with all that was seen in it."""
    seen = Counter[str]()
    for _ in range(count or 200):
        level = rng.choice(["process", "effects", "power"])
        command = [sys.executable, "-m", "dig", "run", "count-frequency", "--quiet"]
        options = ["--speed", "20", "--seed", str(rng.randrange(1000)), "--durability", level]
        process = subprocess.Popen(
            [*command, *options, "--runs", str(folder)], stdout=subprocess.DEVNULL
        )
        while not list(folder.glob(f"*/{TRACE}")) and process.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 1.5))
        (path,) = folder.glob(f"*/{TRACE}")
        acknowledged = path.read_bytes()
        process.kill()
        process.wait()
        recover(path)
        kept = path.read_bytes()
        assert kept.startswith(acknowledged[: acknowledged.rfind(b"\n") + 1])
        if kept:
            assert verify(path).problems == []
            rerun(path)
        seen[level] += 1
        seen["records"] += kept.count(b"\n")
        subprocess.run(["rm", "-r", str(path.parent)], check=True)
    return seen


def cuts(rng: random.Random, count: int, folder: Path) -> Counter[str]:
    """The longest valid prefix is read, and the rest is set aside."""
    data, path = whole(SHORT, folder), folder / TRACE
    ends = [0] + [i + 1 for i, byte in enumerate(data) if byte == 10]
    places = range(ends[1], len(data))
    seen = Counter[str]()
    for cut in rng.sample(places, min(count, len(places)) or len(places)):
        path.write_bytes(data[:cut])
        complete = sum(end <= cut for end in ends) - 1
        assert sum(1 for _ in read_records(path)) == complete
        aside = recover(path)
        assert path.read_bytes() == data[: ends[complete]]
        if aside is not None:
            assert aside.files[0].read_bytes() == data[ends[complete] : cut]
            aside.files[0].unlink()
        seen["cuts"] += 1
    return seen


def flips(rng: random.Random, count: int, folder: Path) -> Counter[str]:
    """No flipped bit is overlooked, by the checker or by the reader."""
    data, path = whole(SHORT, folder), folder / TRACE
    total, seen = data.count(b"\n"), Counter[str]()
    for _ in range(count or 100_000):
        broken = bytearray(data)
        at = rng.randrange(len(data))
        broken[at] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        problems = verify(path).problems
        assert problems, f"byte {at} was overlooked by the checker"
        assert problems[0].line == data[:at].count(b"\n") + 1
        try:
            read = sum(1 for _ in read_records(path))
        except TraceError:
            read = -1
        assert read < total, f"byte {at} was overlooked by the reader"
        seen["told"] += 1
    return seen


# --- again ----------------------------------------------------------------------------------


def replays(rng: random.Random, count: int, folder: Path) -> Counter[str]:
    """From the trace alone comes what was there live."""
    seen = Counter[str]()
    for seed in range(count or 1_000):
        path, states = live_states(seed, folder)
        graph = InteractionGraph()
        for record in read_records(path):
            graph.apply(record)
            assert not record.t or state(graph) == states[record.t - 1]
        assert replay(path).is_same
        path.unlink()
        path = journalled(simple_run(seed, heal=seed % 3 > 0), folder)
        again = rerun(path)
        assert again.is_finished and again.records == path.read_bytes().count(b"\n")
        path.unlink()
        seen.update(runs=1, prefixes=graph.t + 1, records=again.records)
    return seen


def mutations(rng: random.Random, count: int, folder: Path) -> Counter[str]:
    """A changed journal stops at the record that was changed."""
    seen = Counter[str]()
    for number in range(count or 500):
        path = journalled(simple_run(number % 60), folder)
        change = damage if number % 2 else forge
        record = change(rng, path)
        assert _stops_at(path) == record
        path.unlink()
        seen[change.__name__] += 1
    return seen


def _stops_at(path: Path) -> int:
    """The record at which a journal that is run again stops."""
    try:
        return rerun(path).records - 1
    except DivergenceError as error:
        return error.record
    except TraceError as error:
        return (error.line or 0) - 1


def forks(rng: random.Random, count: int, folder: Path) -> Counter[str]:
    """A fork that changes nothing is the same run, and calls nobody again."""
    seen = Counter[str]()
    for seed in range(count or 100):
        spec = simple_run(seed, heal=seed % 2 == 0)
        path = journalled(spec, folder)
        parent = path.read_bytes()
        for at in range(len(lines(path))):
            fork, calls = forked(path, at, spec)
            assert fork.read_bytes() == parent
            assert not set(calls) & turns_before(path, at)
            seen["forks"] += 1
        assert path.read_bytes() == parent
        path.unlink()
        seen["runs"] += 1
    return seen


PARTS = (kills, power, timed, cuts, flips, replays, mutations, forks)


def main() -> None:
    parser = argparse.ArgumentParser(description="A long look at what a run leaves.")
    names = [part.__name__ for part in PARTS]
    parser.add_argument("names", nargs="*", choices=[*names, []], help="all of them by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=0, help="how many of each; 0: all")
    options = parser.parse_args()
    for part in PARTS:
        if options.names and part.__name__ not in options.names:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            rng = random.Random(f"{part.__name__} {options.seed}")
            seen = part(rng, options.count, Path(folder))
        counts = ", ".join(f"{name} {number:,}" for name, number in seen.items())
        print(f"{part.__name__}: {counts} ({time.monotonic() - began:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
