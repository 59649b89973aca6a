"""What `digmon why` costs: processor time and memory for runs of two sizes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dig.graph.codec import encode

from .measure import Table, claim
from .workload import Work

SIZES = {10_000: 5.0, 100_000: 60.0}
"""Events, and the bound of processor seconds for them."""
MEGABYTES = 300
"""The bound of memory, at any size."""


def write_session(path: Path, events: int, agents: int = 20) -> None:
    """Write the trace of a session of teams at work; patterns are raised and healed in it."""
    with path.open("w") as file:
        work = Work(agents=agents, sink=lambda record: print(encode(record), file=file))
        while work.events < events:
            work.step()


def cost(*arguments: str) -> tuple[float, float]:
    """Run `digmon` in a process of its own; returns processor seconds and megabytes at the peak."""
    process = subprocess.Popen([sys.executable, "-m", "dig", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"digmon {' '.join(arguments)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024  # Linux counts in kilobytes


def explaining(quick: bool = False) -> Table:
    """Processor time and memory of `why` and `check` by events of a session."""
    rows, note = [], ""
    with tempfile.TemporaryDirectory() as folder:
        for events, most_s in [*SIZES.items()][: 1 if quick else None]:
            path = Path(folder) / f"{events}.dig.jsonl"
            write_session(path, events)
            for command in ("check", "why"):
                seconds, megabytes = cost(command, str(path))
                rows.append((f"{command}, {events:,} events", f"{seconds:.1f}", f"{megabytes:.0f}"))
            note = claim(f"seconds of why at {events:,} events", seconds, most_s)
            note += f"\n{claim('megabytes', megabytes, MEGABYTES)}"
    return Table("Explaining a session of 20 agents", ("", "CPU s", "MB"), rows, note)
