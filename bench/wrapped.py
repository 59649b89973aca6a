"""A team alone, observed, healed, and healed with a journal: what the wrappers' benches compare."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from json import dumps
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import anyio

import dig
from dig.adapters import Mode

from .measure import Table

TEXT = "Count how often each value occurs in your part, and say where you are not sure."
ROWS = [{"id": i, "name": f"row {i}", "tags": ["a", "b"], "score": i / 2} for i in range(5_000)]
ROWS_AS_TEXT = dumps(ROWS)

WAYS: dict[str, tuple[Mode | None, bool]] = {
    "bare": (None, False),
    "observe": ("observe", False),
    "heal": ("heal", False),
    "heal, journal": ("heal", True),
}

Times = Callable[[Mode | None, bool], Awaitable[list[float]]]
"""Runs a team in a mode, or bare, with a journal or without: microseconds of each measurement."""

Say = Callable[[int, Any], Any]
"""What an agent says: the number of its turn is given, and what the agent before it has said."""


def small(turn: int, before: Any) -> Any:
    """A sentence."""
    return f"{turn}: {TEXT}"


def wide(turn: int, before: Any) -> Any:
    """A table of 5,000 rows."""
    return [*ROWS]


def wide_text(turn: int, before: Any) -> Any:
    """The same as text."""
    return f"{turn}: {ROWS_AS_TEXT}"


def history(turn: int, before: Any) -> Any:
    """All that was said before, and one message more."""
    said = before if isinstance(before, list) else []
    return [*said, {"role": "ai", "content": f"{turn}: {TEXT}"}]


def history_text(turn: int, before: Any) -> Any:
    """The same as text."""
    return f"{before}\n{turn}: {TEXT}"


def speaking(say: Say) -> Callable[[int], Any]:
    """The same for agents that keep no state of their own: only the turn is given."""
    before: Any = TEXT

    def speak(turn: int) -> Any:
        nonlocal before
        before = say(turn, before if turn > 1 else TEXT)
        return before

    return speak


@contextmanager
def monitored(team: Any, mode: Mode | None, is_kept: bool) -> Iterator[Any]:
    """A team that is wrapped for as long as a block lasts, if a mode is given; and its journal."""
    with TemporaryDirectory() as folder:
        if mode is not None:
            team = dig.wrap(team, mode=mode, journal=folder if is_kept else None)
        yield team
        dig.unwrap(team)


def between(moments: Sequence[float]) -> list[float]:
    """Microseconds from each moment to the next one."""
    return [(after - before) * 1e6 for before, after in pairwise(moments)]


def compared(
    title: str, team: str, times: Times, rounds: int, note: str,
    *, messages: int = 1,
) -> Table:  # fmt: skip
    """What each way takes for a message, and adds to the bare one.

    Args:
        title: The table's.
        team: What its first column is headed.
        times: Measures a round of one way.
        rounds: How many, each way in turn.
        note: What stands below.
        messages: How many there are in what is measured at once.
    """
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, (mode, is_kept) in WAYS.items():
            taken[way] += anyio.run(times, mode, is_kept)
    figures = {way: (median(us), quantiles(us, n=100)[98]) for way, us in taken.items()}
    rows = [
        (way, *(f"{us / messages:.1f}" for us in (*both, *added)))
        for way, both in figures.items()
        for added in [[us - bare for us, bare in zip(both, figures["bare"], strict=True)]]
    ]
    return Table(title, (team, "p50", "p99", "added p50", "added p99"), rows, note)
