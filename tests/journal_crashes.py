"""What a crash leaves of a run: parts of `tests.journal_campaign`."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from unittest.mock import patch

from dig import Record
from dig.graph import records
from dig.runtime import Plan, View
from dig.runtime.group_commit import Durability
from dig.runtime.simulator import Simulation
from dig.tasks.run.arrange import make_simulation, make_task
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE, read_records
from dig.traces.journal.recovery import recover
from dig.traces.journal.segments import segments as files_of
from dig.traces.replay.rerun import rerun
from dig.traces.verify import verify

LONG = TeamRun(agents=8, size=5_000, seed=3, profile=Profile(chunk_length=50, pieces_per_agent=20))
SHORT = TeamRun(agents=3, size=2_000, seed=1)
KILLS = 1_000


class Stop(Exception):
    """The power is cut."""


def run(spec: TeamRun, journal: Journal, sink: Callable[[Record], None]) -> Simulation:
    """A run in virtual time that is journalled."""
    task = make_task(spec)

    def both(record: Record) -> None:
        journal(record)
        sink(record)

    return make_simulation(spec, task, both, journal)


def whole(spec: TeamRun, folder: Path) -> bytes:
    """The whole journal of a run."""
    (folder / TRACE).unlink(missing_ok=True)
    journal = Journal(folder / TRACE)
    run(spec, journal, lambda record: None).run()
    journal.close()
    data = (folder / TRACE).read_bytes()
    (folder / TRACE).unlink()
    return data


def empty(folder: Path) -> None:
    """Delete the files in a folder."""
    for file in folder.iterdir():
        file.unlink()


def kills(rng: random.Random, count: int, folder: Path) -> Counter[str]:
    """No record that was acknowledged is lost, whenever the process dies."""
    return _kills(rng, count, folder, None)


def segments(rng: random.Random, count: int, folder: Path) -> Counter[str]:
    """Nor is it at the beginning, in the middle or at the end of any of several files."""
    return _kills(rng, count, folder, 2_000)


def _kills(rng: random.Random, count: int, folder: Path, segment_bytes: int | None) -> Counter[str]:
    reference, seen = whole(LONG, folder), Counter[str]()
    total = min(KILLS, reference.count(b"\n"))
    places = [(n, how) for n in range(1, total + 1) for how in ("before", "during", "after")]
    for number, how in rng.sample(places, min(count, len(places)) or len(places)):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _die_at(folder / TRACE, number, how, writer, segment_bytes)
        os.close(writer)
        with open(reader, "rb") as pipe:
            acknowledged = len(pipe.read())
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL
        assert acknowledged == number - 1, "a record is acknowledged when its write is over"
        aside = recover(folder)
        assert (aside is not None) == (how == "during" and number > 1)
        files = list(files_of(folder / TRACE))
        kept = b"".join(file.read_bytes() for file in files)
        assert kept.count(b"\n") == number - (how != "after") or (number == 1 and how == "during")
        assert reference.startswith(kept)
        if number > 1:
            assert [p.what for p in verify(folder / TRACE).problems] == []
            assert sum(1 for _ in read_records(folder)) == kept.count(b"\n")
        seen[how] += 1
        if len(files) > 1:
            seen["of them with a file just begun"] += not files[-1].stat().st_size
        seen["most files"] = max(seen["most files"], len(files))
        empty(folder)
    return seen


def _die_at(path: Path, number: int, how: str, acknowledge: int, segment_bytes: int | None) -> None:
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

    journal = Journal(path, write=write, segment_bytes=segment_bytes)

    def say(record: Record) -> None:
        os.write(acknowledge, b".")

    run(LONG, journal, say).run()
    os._exit(1)


class _Disk:
    """What a disk has of a folder when its power fails: what was synced, and maybe more."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._synced: dict[str, int] = {}  # bytes of a file
        self._names: set[str] = set()

    def sync(self, path: Path, how: object = None) -> None:
        if path.is_dir():
            self._names |= {file.name for file in path.iterdir()}
        else:
            self._synced[path.name] = path.stat().st_size

    def fail(self, rng: random.Random) -> None:
        for file in self._folder.iterdir():
            data = file.read_bytes()
            safe = self._synced.get(file.name, 0)
            kept = rng.randrange(safe, len(data) + 1)
            lost = bytes(len(data) - kept) if rng.random() < 0.3 else b""
            if file.name in self._names or rng.random() < 0.5:
                file.write_bytes(data[:kept] + lost)
            else:
                file.unlink()


def power(rng: random.Random, count: int, folder: Path) -> Counter[str]:
    """What took effect at a level is on the disk when the power is cut."""
    seen = Counter[str]()
    total = whole(SHORT, folder).count(b"\n")
    for level in ("effects", "power"):
        for _ in range(count or 1_000):
            disk, size = _Disk(folder), rng.choice([None, 1, 3_000])
            with patch("dig.traces.journal.journal.sync_file", disk.sync):
                effects = _until_the_cut(folder / TRACE, level, rng.randrange(2, total + 1), size)
            disk.fail(rng)
            kept = 0
            if effects:
                recover(folder, salvage=True)
                kept = sum(1 for _ in read_records(folder))
            assert not effects or max(effects) < kept, f"{level}: an effect without its record"
            seen[level] += 1
            seen[f"{level}: effects"] += len(effects)
            empty(folder)
    return seen


def _until_the_cut(
    path: Path, level: Durability, dies_at: int, segment_bytes: int | None
) -> list[int]:
    """The records that took effect before the power was cut, at a write."""
    written = 0

    def write(file: int, data: memoryview) -> int:
        nonlocal written
        written += 1
        if written == dies_at:
            raise Stop
        return os.write(file, data)

    journal = Journal(path, durability=level, segment_bytes=segment_bytes, write=write)
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

    simulation = run(SHORT, journal, note)
    for name, agent in simulation._team.items():

        class Noting:
            def plan(self, view: View, inner: object = agent) -> Plan:
                effects.append(latest[view.agent])
                plan: Plan = inner.plan(view)  # type: ignore[attr-defined]  # it is a policy
                return plan

        simulation._team[name] = Noting()
    with suppress(Stop), closing(journal):
        simulation.run()
    return effects


def timed(rng: random.Random, count: int, folder: Path) -> Counter[str]:
    """A real run that is killed leaves a sound journal with all that was seen in it."""
    seen = Counter[str]()
    for _ in range(count or 200):
        level, size = rng.choice(["process", "effects", "power"]), rng.choice(["0", "1KiB"])
        command = [sys.executable, "-m", "dig", "run", "count-frequency", "--quiet"]
        options = ["--speed", "20", "--seed", str(rng.randrange(1000)), "--durability", level]
        process = subprocess.Popen(
            [*command, *options, "--segment-size", size, "--runs", str(folder)],
            stdout=subprocess.DEVNULL,
        )
        while not list(folder.glob(f"*/{TRACE}")) and process.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 1.5))
        (path,) = folder.glob(f"*/{TRACE}")
        acknowledged = b"".join(file.read_bytes() for file in files_of(path))
        process.kill()
        process.wait()
        recover(path)
        kept = b"".join(file.read_bytes() for file in files_of(path))
        assert kept.startswith(acknowledged[: acknowledged.rfind(b"\n") + 1])
        if kept:
            assert verify(path).problems == []
            rerun(path)
        seen[level] += 1
        seen.update(records=kept.count(b"\n"), files=len(list(files_of(path))))
        shutil.rmtree(path.parent)
    return seen
