"""A team alone, observed, healed, and healed with a journal: what the wrappers' benches compare."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from statistics import median, quantiles

import anyio

from dig.adapters import Mode

from .measure import Table

TEXT = "Count how often each value occurs in your part, and say where you are not sure."
WAYS: dict[str, tuple[Mode | None, bool]] = {
    "bare": (None, False),
    "observe": ("observe", False),
    "heal": ("heal", False),
    "heal, journal": ("heal", True),
}

Times = Callable[[Mode | None, bool], Awaitable[list[float]]]
"""Runs a team in a mode, or bare, with a journal or without: microseconds of each measurement."""


def compared(
    title: str, team: str, times: Times, rounds: int, note: str,
    *, messages: int = 1, digits: int = 0,
) -> Table:  # fmt: skip
    """What each way takes for a message, and adds to the bare one.

    Args:
        title: The table's.
        team: What its first column is headed.
        times: Measures a round of one way.
        rounds: How many, each way in turn.
        note: What stands below.
        messages: How many there are in what is measured at once.
        digits: After the point.
    """
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, (mode, is_kept) in WAYS.items():
            taken[way] += anyio.run(times, mode, is_kept)
    figures = {way: (median(us), quantiles(us, n=100)[98]) for way, us in taken.items()}
    rows = [
        (way, *(f"{us / messages:.{digits}f}" for us in (*both, *added)))
        for way, both in figures.items()
        for added in [[us - bare for us, bare in zip(both, figures["bare"], strict=True)]]
    ]
    return Table(title, (team, "p50", "p99", "added p50", "added p99"), rows, note)
