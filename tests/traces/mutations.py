"""Journals that are changed on purpose, with the number of the first record that is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .journals import reseal, rows_of

Rows = list[dict[str, Any]]

MADE = ("deliver", "heal", "finding")
"""What the monitor makes of requests; the rest of a record may be a request itself."""


def damage(rng: random.Random, path: Path) -> int:
    """Flip a bit of a line, but not its last newline: a tail is torn, not damaged; its record."""
    data = bytearray(path.read_bytes())
    at = rng.randrange(len(data) - 1)
    data[at] ^= 1 << rng.randrange(8)
    record = path.read_bytes()[:at].count(b"\n")
    path.write_bytes(data)
    return record


def forge(rng: random.Random, path: Path) -> int:
    """Change a record that the monitor made, with a chain that fits; the first one that differs."""
    rows = rows_of(path)
    made = [t for t, row in enumerate(rows) if row["kind"] in MADE]
    change = rng.choice([_drop, _double, _swap, _edit, _edit, _edit])
    record = change(rng, rows, rng.choice(made))
    reseal(path, [{**row, "t": t} for t, row in enumerate(rows)])
    return record


def _drop(rng: random.Random, rows: Rows, t: int) -> int:
    del rows[t]
    return t


def _double(rng: random.Random, rows: Rows, t: int) -> int:
    rows.insert(t + 1, rows[t])
    return t + 1


def _swap(rng: random.Random, rows: Rows, t: int) -> int:
    other = next((u for u in range(t + 1, len(rows)) if rows[u]["kind"] in MADE), t)
    apart = {"t": 0, "ts": 0}  # number and moment stay where they are
    if other == t or {**rows[t], **apart} == {**rows[other], **apart}:
        return _edit(rng, rows, t)
    rows[t], rows[other] = (
        {**rows[other], "ts": rows[t]["ts"]},
        {**rows[t], "ts": rows[other]["ts"]},
    )
    return t


def _edit(rng: random.Random, rows: Rows, t: int) -> int:
    edits: dict[str, dict[str, Callable[[Any], Any]]] = {
        "deliver": {
            "event": lambda event: f"{event}0",
            "to": lambda to: "nobody" if to else "a",
        },
        "finding": {
            "pattern": lambda pattern: f"{pattern}?",
            "evidence": lambda evidence: {**evidence, "more": 1},
        },
        "heal": {
            "action": lambda action: "inject" if action == "create" else "create",
            "finding": lambda finding: finding + 1,
        },
    }
    key, change = rng.choice(list(edits[rows[t]["kind"]].items()))
    rows[t] = {**rows[t], key: change(rows[t][key])}
    return t
