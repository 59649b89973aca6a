"""What a journal costs: a record at each level of durability, and reading it back.

A sync is as slow as the disk that it goes to, and one serves all that waits for it, so the figures
of `effects` and `power` say more about the disk and about how much happens at once than about
dig. A team that waits for a language model does not notice them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import anyio

from dig.detectors import standard
from dig.detectors.watch import Watch
from dig.graph.codec import encode
from dig.graph.records import Record
from dig.runtime import Bus, Setup, simulate
from dig.runtime.group_commit import Durability
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import check_trace
from dig.traces.replay.rerun import rerun
from dig.traces.verify import verify

from . import teams
from .measure import Table, compared, per_unit
from .traces import ring

SIZES = (20_000, 100_000)


def journal() -> Table:
    """Microseconds a record, written one after the other."""
    records = ring(records=20_000)

    def encoded() -> int:
        return sum(1 for record in records if encode(record))

    def plain() -> int:
        with tempfile.TemporaryDirectory() as folder:
            file = os.open(Path(folder) / "plain", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for record in records:
                os.write(file, encode(record).encode() + b"\n")
            os.close(file)
        return len(records)

    def chained() -> int:
        return _write(records)

    def synced() -> int:
        return _write(records[:500], sync=True)

    times = per_unit(
        {
            "encode alone": encoded,
            "encode, and one write(2)": plain,
            "journal: the same, with a hash chain": chained,
            "journal, synced after each record": synced,
        },
        rounds=5,
    )
    return compared("Journal, records without payload", "record", times)


def _write(records: list[Record], sync: bool = False) -> int:
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "trace", durability="power")
        for record in records:
            journal(record)
            if sync:
                journal.sync()
        journal.close()
    return len(records)


def levels() -> Table:
    """Microseconds a record on the bus, at each level of durability."""

    def at(level: Durability) -> Callable[[], int]:
        def once() -> int:
            with tempfile.TemporaryDirectory() as folder:
                journal = Journal(Path(folder) / "trace", durability=level)
                team = dict.fromkeys(teams.NAMES, teams.act)
                setup = teams._setup(True)
                bus = Bus(team, setup, sink=journal, durable=journal)
                anyio.run(bus.run, teams.PROBLEM)
                journal.close()
            return teams.RECORDS

        return once

    def none() -> int:
        teams._bus(True, lambda record: None)
        return teams.RECORDS

    times = per_unit(
        {
            "no journal": none,
            "process: written before its effect": at("process"),
            "effects: synced before an agent is called": at("effects"),
            "power: synced before a delivery, too": at("power"),
        },
        rounds=3,
    )
    note = "One message at a time is on its way: nothing shares a sync, the worst case."
    return compared("Durability on the bus, 6 agents, 2,000 messages", "record", times, note)


def looking_back() -> Table:
    """Microseconds a record to verify, replay and rerun a journal."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.dig.jsonl"
        setup = Setup(limit_s=1e6, detectors=standard)
        journal = Journal(path, header=setup.header())
        team = dict.fromkeys(teams.NAMES, teams.Passing())
        simulate(team, teams.PROBLEM, setup=setup, sink=journal, latency_s=0.0)
        journal.close()
        count = path.read_bytes().count(b"\n")
        times = per_unit(
            {
                "digmon check (read, graph, detectors)": lambda: _count(
                    count, list(check_trace(path, Watch(standard())))
                ),
                "digmon verify": lambda: verify(path).records,
                "digmon replay --rerun": lambda: rerun(path).records,
            },
            rounds=5,
        )
    table = compared(f"A journal of {count:,} records", "record", times)
    rows = [(*row, f"{1e6 / times[row[0]]:,.0f}") for row in table.rows]
    return Table(table.title, (*table.columns, "records/s"), rows)


def _count(count: int, done: object) -> int:
    return count


_PEAK = """
import sys, tracemalloc
from pathlib import Path
from dig.traces.verify import verify
from dig.traces.journal.reader import read_graph, read_records
path = Path(sys.argv[1])
tracemalloc.start()
if sys.argv[2] == "verify":
    verify(path)
elif sys.argv[2] == "graph":
    read_graph(path)
else:
    for record in read_records(path):
        pass
print(tracemalloc.get_traced_memory()[1])
"""


def memory() -> Table:
    """Megabytes of Python objects at the peak, for a short and a long journal."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for size in SIZES:
            path = Path(folder) / f"{size}.dig.jsonl"
            writer = Journal(path)
            for record in ring(records=size):
                writer(record)
            writer.close()
            paths.append(path)
        for what in ("read", "verify", "graph"):
            peaks = [_peak(path, what) for path in paths]
            rows.append((what, *(f"{peak:.2f}" for peak in peaks), f"{peaks[1] / peaks[0]:.2f}"))
    note = "The graph keeps closed history as numbers in arrays, and every id."
    columns = ("", *(f"MB at {size:,}" for size in SIZES), "ratio")
    return Table("Memory at the peak while a journal is read", columns, rows, note)


def _peak(path: Path, what: str) -> float:
    command = [sys.executable, "-c", _PEAK, str(path), what]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout) / 1e6
