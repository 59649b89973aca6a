"""How many bytecodes the interpreter runs for a message: exact, on a busy machine too.

They are no time: what is done inside C counts as one. But two states of the code can be compared
to the last instruction, so a test holds these figures (`tests/test_bytecodes.py`).
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Protocol

import anyio

from dig.adapters import Mode
from dig.detectors import standard, standard_healers
from dig.monitor.monitor import Monitor

from . import wrap, wrap_langgraph
from .measure import Table
from .peers import ELEVEN, LIMITS, PAPER, _ring, messages

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


def grown(events: int, agents: int, units: int = 2_000) -> int:
    """The bytecodes of a message after so many events, round a ring of so many agents."""
    clock, names = count(), [f"agent-{n}" for n in range(agents)]
    monitor = Monitor(
        names, clock=lambda: next(clock) / 1000, limits=LIMITS, detectors=standard(),
        healers=standard_healers(),
    )  # fmt: skip
    turns = _ring(monitor, names)
    _pass_on(turns, events)
    return total(_run(lambda number: _pass_on(turns, number), units), units)


def _pass_on(turns: Iterator[None], number: int) -> None:
    for _ in islice(turns, number):
        pass


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
    for events, agents in () if quick else ((1_000, 20), (1_000_000, 20), (1_000_000, 1_000)):
        name = f"message, thirteen patterns, after {events:,} events, {agents:,} agents"
        rows.append((name, f"{grown(events, agents):,}"))
    where = by_function(counted(messages(is_kept=True), units), units)[:40]
    rows += [(f"  {name}", f"{number:,.0f}") for name, number in where]
    return Table(f"Bytecodes, Python {sys.version.split()[0]}", ("", "bytecodes"), rows)
