"""A failing trace made small: what it does not need to fail is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dig.errors import DigError
from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph

from .oracle import Row


def shrink(rows: list[Row], fails: Callable[[list[Row]], bool]) -> list[Row]:
    """The smallest trace that can be had by leaving records and agents out.

    Args:
        rows: A valid trace that fails.
        fails: Whether a valid trace still does.

    Returns:
        A valid trace that fails, from which nothing more can be left out.
    """
    while True:
        smaller = next((c for c in _smaller(rows) if c and fails(c)), None)
        if smaller is None:
            return rows
        rows = smaller


def _smaller(rows: list[Row]) -> Iterator[list[Row]]:
    """Smaller valid traces, those first that leave out most."""
    size = len(rows) // 2
    while size:
        for first in range(len(rows) - size, 0, -size):
            yield mended([*rows[:first], *rows[first + size :]])
        size //= 2
    names = rows[0]["agents"]
    for name in names:
        yield mended([{**rows[0], "agents": [n for n in names if n != name]}, *rows[1:]])


def mended(rows: list[Row]) -> list[Row]:
    """What of some rows of a trace is a trace again: the rest is renumbered, or left out."""
    graph = InteractionGraph()
    emitted = {row["event"] for row in rows if row["kind"] == "emit"}
    for end in [row for row in rows if row["kind"] == "end"][-1:]:
        emitted.update(end["outputs"])  # the last ones may be owed
    numbers: dict[int, int] = {}
    kept: list[Row] = []
    for row in rows:
        new = _mended(row, graph, emitted, numbers) | {"t": len(kept)}
        try:
            graph.apply(decode(new))
        except DigError:
            continue
        except Exception:  # a graph that breaks is a failure to keep, and nothing comes after it
            return [*kept, new]
        numbers[row["t"]] = new["t"]
        kept.append(new)
    return kept


def _mended(row: Row, graph: InteractionGraph, emitted: set[str], numbers: dict[int, int]) -> Row:
    """A row as it has to be after what is there now."""
    if row["kind"] == "start" and row["agent"] in graph.agents:
        return row | {"inputs": list(graph.agents[row["agent"]].buffer)}
    if row["kind"] == "end" and row["activation"] in graph.activations:
        seen = {event.id for event in graph.activations[row["activation"]].inputs}
        fates = [fate for fate in row["fates"] if fate["event"] in seen]
        return row | {"fates": fates, "outputs": [e for e in row["outputs"] if e in emitted]}
    if row["kind"] == "heal":
        return row | {"finding": numbers.get(row["finding"], -1)}
    return row
