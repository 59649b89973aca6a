"""A long look at what a run leaves: `python -m tests.journal_campaign [NAME ...] [--count N]`.

Each part states one promise, is driven by a seed, and ends with what it counted; the default
suite runs each with a small count. `--count 0`: the whole of it, as below.

    kills       kill -9 before, during and after each write of a run of 1,000 records
    segments    the same for a run whose journal goes on in many files
    power       1,000 power cuts at each level: what was synced survives, and nothing else
    timed       200 times, kill -9 a real `digmon run` at some moment
    cuts        cut a journal at every byte
    flips       100,000 random bits, each flipped
    files       1,000 times, damage to one of many files
    replays     1,000 random runs: the graph of every prefix, the findings, and the bytes again
    mutations   500 changed journals: each stops at the record that is wrong
    forks       every record of 100 random runs: nothing changed, the same run
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dig import InteractionGraph
from dig.errors import DivergenceError, TraceError
from dig.traces.journal.reader import TRACE, read_records
from dig.traces.journal.recovery import recover
from dig.traces.journal.segments import segment_path
from dig.traces.journal.segments import segments as segments_of
from dig.traces.replay.rerun import replay, rerun
from dig.traces.verify import verify
from tests.traces.forks import forked, lines, turns_before
from tests.traces.journals import journalled, live_states, simple_run, state
from tests.traces.mutations import damage, forge
from tests.traces.parted import SPOILS, parted

from .journal_crashes import SHORT, kills, power, segments, timed, whole


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


def files(rng: random.Random, count: int, folder: Path) -> Counter[str]:
    """A file that is lost, cut, swapped, doubled or changed is told, and what is before it kept."""
    data, seen = whole(SHORT, folder), Counter[str]()
    for number in range(count or 1_000):
        path = parted(data, folder / str(number), rng.randrange(1, 4_000))
        paths, spoil = list(segments_of(path)), rng.choice(SPOILS)
        at, line = spoil(paths, rng.randrange(1, len(paths) - 1))
        name = segment_path(path, at + 1).name
        problem = verify(path).problems[0]
        if line is None:
            assert problem.what.startswith(f"{name} is missing")
        else:
            assert (problem.file, problem.line) == (name, line), spoil.__name__
        with suppress(TraceError):
            for _ in read_records(path):
                pass
            raise AssertionError(f"{spoil.__name__} was overlooked by the reader")
        with suppress(TraceError):  # there is nothing left of a trace whose first line is gone
            recover(path, salvage=True)
            assert data.startswith(b"".join(file.read_bytes() for file in segments_of(path)))
            assert verify(path).problems == []
        shutil.rmtree(path.parent)
        seen[spoil.__name__] += 1
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


PARTS = (kills, segments, power, timed, cuts, flips, files, replays, mutations, forks)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A long look at what a run leaves.")
    names = [part.__name__ for part in PARTS]
    parser.add_argument("names", nargs="*", choices=[*names, []], help="all of them by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=0, help="how many of each; 0: all")
    options = parser.parse_args(argv)
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
