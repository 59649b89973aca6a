"""Short histories, written by hand: rows of a trace without their numbers, and whole traces.

Agents are letters. `trace` makes a history of parts such as `arrive`, `turn` and single rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .oracle import Row

FAR = 1000  # a window that no trace here lives to see
QUIET = {"mc_window_s": FAR, "oe_window_s": FAR, "dl_window_s": FAR}


def row(ts: float, kind: str, /, **keys: Any) -> Row:
    return {"ts": ts, "kind": kind, **keys}


def emit(ts: float, event: str, by: str | None, to: str = "", sort: str = "problem") -> Row:
    """An event for the agents whose letters `to` has."""
    return row(ts, "emit", event=event, by=by, to=list(to), type=sort, final=False)


def final(ts: float, event: str, by: str) -> Row:
    return emit(ts, event, by, sort="solution") | {"final": True}


def deliver(ts: float, event: str, to: str | None) -> Row:
    return row(ts, "deliver", event=event, to=to)


def arrive(ts: float, event: str, by: str | None, to: str, sort: str = "problem") -> list[Row]:
    """An event that is generated and delivered at once."""
    return [emit(ts, event, by, to, sort), *(deliver(ts, event, agent) for agent in to)]


def start(ts: float, activation: str, agent: str, inputs: str = "") -> Row:
    return row(ts, "start", activation=activation, agent=agent, inputs=inputs.split())


def end(ts: float, activation: str, outputs: str = "", /, **fates: Any) -> Row:
    """An end; a fate that is a tuple is a reroute to the agents in it."""
    named: list[Row] = [
        {"event": event, "fate": "reroute", "to": list(fate)}
        if isinstance(fate, tuple)
        else {"event": event, "fate": fate}
        for event, fate in fates.items()
    ]
    return row(ts, "end", activation=activation, fates=named, outputs=outputs.split())


def turn(ts: float, activation: str, agent: str, outputs: str = "", /, **fates: Any) -> list[Row]:
    """An activation of no length whose inputs are the events named with a fate."""
    begin = start(ts, activation, agent, " ".join(fates))
    return [begin, end(ts, activation, outputs, **fates)]


def trace(*parts: Row | list[Row], agents: Iterable[str] = "abc", **keys: Any) -> list[Row]:
    """A whole trace: the `run` row, then the parts, numbered."""
    limits = QUIET | keys.pop("limits", {})
    first = row(0, "run", version=1, run="r", agents=list(agents), limits=limits, **keys)
    rows = [first]
    for part in parts:
        rows += part if isinstance(part, list) else [part]
    return [{"t": t, **one} for t, one in enumerate(rows)]
