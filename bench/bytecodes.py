"""How many bytecodes the interpreter runs for a message: exact, on a busy machine too.

They are no time: what is done inside C counts as one. But two states of the code can be compared
to the last instruction, so a test holds these figures (`tests/test_bytecodes.py`).
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any, Protocol

import anyio

from dig.adapters import Mode
from dig.detectors import standard, standard_healers
from dig.graph.records import Limits
from dig.monitor.monitor import Monitor
from dig.traces.journal.journal import Journal

from . import wrap, wrap_langgraph
from .measure import Table
from .peers import NAMES, _ring

PAPER = frozenset(("ET", "MC", "OE", "DL", "ER", "CLA", "RSP"))
LATER = frozenset(("FAIL", "VOID"))
"""The patterns of the paper, and those that came after the first eleven."""

ELEVEN = frozenset(detector.pattern for detector in standard()) - LATER

LIMITS = Limits(stall_factor=5, late_window_s=10, loop_limit=5, livelock_turns=25)
"""As the commands, the bus and wrapped sessions have them: every pattern is active."""

Counts = Counter[CodeType]


class Times(Protocol):
    """Runs a team in a mode, or bare, for so many turns."""

    async def __call__(self, mode: Mode | None, is_kept: bool, turns: int, /) -> Any: ...


def counted(work: Callable[[int], None], units: int = 100) -> Counts:
    """The bytecodes of so many units of some work, by the function that they are of.

    What the work does once, however much of it there is, is no part of them.
    """
    work(units)  # what is imported and remembered once
    counts = _run(work, 2 * units)
    counts.subtract(_run(work, units))
    return counts


def _run(work: Callable[[int], None], units: int) -> Counts:
    counts: Counts = Counter()

    def count_opcode(frame: FrameType, event: str, arg: object) -> Any:
        if event == "opcode":
            counts[frame.f_code] += 1
        return count_opcode

    def enter(frame: FrameType, event: str, arg: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return count_opcode

    before = sys.gettrace()
    gc.disable()  # others may have callbacks there
    sys.settrace(enter)
    try:
        work(units)
    finally:
        sys.settrace(before)
        gc.enable()
    return counts


def messages(patterns: frozenset[str] | None = None, *, is_kept: bool) -> Callable[[int], None]:
    """Messages round a ring of twenty agents, each held, looked at and released.

    Args:
        patterns: The patterns looked for; ``None``: all.
        is_kept: Whether a journal is written.
    """

    def work(units: int) -> None:
        clock = count()
        detectors = [d for d in standard() if patterns is None or d.pattern in patterns]
        with TemporaryDirectory() as folder:
            journal = Journal(Path(folder) / "trace", clock=lambda: 0.0) if is_kept else None
            monitor = Monitor(
                NAMES, clock=lambda: next(clock) / 1000, limits=LIMITS, detectors=detectors,
                healers=standard_healers(), sink=journal,
            )  # fmt: skip
            for _ in zip(range(units), _ring(monitor), strict=False):
                pass
            if journal is not None:
                journal.close()

    return work


def turns(times: Times, mode: Mode | None) -> Callable[[int], None]:
    """Turns of a team that is wrapped in a mode, or bare (`times` of `bench.wrap` and the like)."""

    def work(units: int) -> None:
        anyio.run(times, mode, False, units)

    return work


def total(counts: Counts, units: int = 100) -> int:
    """The bytecodes of a unit."""
    return round(counts.total() / units)


def by_function(counts: Counts, units: int = 100) -> list[tuple[str, float]]:
    """The functions, by the bytecodes that they run for a unit."""
    names: Counter[str] = Counter()
    for code, number in counts.items():
        path = "/".join(Path(code.co_filename).parts[-3:])
        names[f"{path} {code.co_qualname}"] += number
    return [(name, number / units) for name, number in names.most_common()]


MESSAGES = {
    "message, thirteen patterns, journal": messages(is_kept=True),
    "message, the first eleven, journal": messages(ELEVEN, is_kept=True),
    "message, thirteen patterns": messages(is_kept=False),
    "message, the paper's seven": messages(PAPER, is_kept=False),
    "message, no detector": messages(frozenset(), is_kept=False),
}


def bytecodes(quick: bool = False) -> Table:
    """The bytecodes of a message, of a call and of a node's turn, and where those of it go."""
    kinds = {
        **MESSAGES,
        "call of a plain function, bare": turns(wrap.times, None),
        "call of a plain function, healed": turns(wrap.times, "heal"),
        "node of LangGraph, bare": turns(wrap_langgraph.times, None),
        "node of LangGraph, healed": turns(wrap_langgraph.times, "heal"),
    }
    rows, units = [], 20 if quick else 100
    for name, work in kinds.items():
        try:
            rows.append((name, f"{total(counted(work, units), units):,}"))
        except ImportError:
            rows.append((name, "not installed"))
    where = by_function(counted(messages(is_kept=True), units), units)[:40]
    rows += [(f"  {name}", f"{number:,.0f}") for name, number in where]
    return Table(f"Bytecodes, Python {sys.version.split()[0]}", ("", "bytecodes"), rows)
