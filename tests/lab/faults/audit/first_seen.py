"""When a state is first seen, and whose it is."""

from __future__ import annotations

from typing import Any

from .counterparts import Counterparts
from .history import Event
from .numbers import gone, last_of, solutions

ON_EMIT = {
    "delayed", "altered", "miscounted", "shared", "duplicated", "misdirected", "premature",
}  # fmt: skip


def piece(name: str) -> list[list[int]]:
    low, high = name.split("-")
    return [[int(low), int(high)]]


def first_seen(pair: Counterparts, type_: str, name: str, state: str) -> int:
    """The record at which a thing is first seen in a state."""
    find = {"event": _event, "activation": _turn, "agent": _agent, "part": _part}.get(type_)
    if find:
        return find(pair, name, state)
    if type_ == "finding":
        return int(name)
    answer = pair.trace.answer
    return answer.t if answer and state in ("incomplete", "wrong") else pair.trace.end


def _event(pair: Counterparts, name: str, state: str) -> int:
    event = pair.trace.events[name]
    other = pair.twin.events.get(pair.of.get(name, ""))
    if state in ON_EMIT:
        return event.t
    if state == "lost":
        return event.lost or 0
    if state == "late" and other:
        return pair.trace.first_at(pair.twin.us[other.t])
    if state == "rerouted":
        return event.reroutes[len(other.reroutes) if other else 0]
    arrived = event.arrivals[0][1] if event.arrivals else event.t
    if other and other.consumer and other.arrivals:
        waited = pair.twin.us[pair.twin.turns[other.consumer].stop or 0]
        waited -= pair.twin.us[other.arrivals[0][1]]
        return max(arrived, pair.trace.first_at(pair.trace.us[arrived] + waited))
    for turn in pair.trace.turns.values():
        if turn.stop is not None and name in turn.inputs:
            return turn.stop
    return arrived


def _turn(pair: Counterparts, name: str, state: str) -> int:
    turn = pair.trace.turns[name]
    other = pair.twin.turns.get(pair.of.get(name, ""))
    if state == "slow":
        if not other or other.stop is None:
            return turn.t
        lasted = pair.twin.us[other.stop] - pair.twin.us[other.t]
        return max(turn.t, pair.trace.first_at(pair.trace.us[turn.t] + lasted))
    if state in ("losing", "hasty"):
        return last_of(pair.trace, turn)
    return pair.trace.end if turn.stop is None else turn.stop


def _agent(pair: Counterparts, name: str, state: str) -> int:
    if state == "gone":
        return pair.trace.left[name]
    stops = [u.stop for u in pair.trace.turns.values() if u.agent == name and u.stop is not None]
    starts = [pair.twin.us[u.t] for u in pair.twin.turns.values() if u.agent == name]
    return max([*stops[-1:], *map(pair.trace.first_at, starts[-1:])], default=0)


def _part(pair: Counterparts, name: str, state: str) -> int:
    usual = solutions(pair.twin, piece(name))
    due = pair.trace.first_at(pair.twin.us[usual[0].t]) if usual else pair.trace.end
    if state == "late":
        return due
    ends = [gone(pair.trace, event) for event in solutions(pair.trace, piece(name))]
    answer = pair.trace.answer
    if answer and None in ends:
        return answer.t
    since = max([due, *(end for end in ends if end is not None)])
    return min(since, answer.t) if answer else since


def component(pair: Counterparts, type_: str, name: str, state: str, t: int) -> str:
    """Whose a thing is that is in a state since a record."""
    if type_ == "agent":
        return name
    if type_ == "activation":
        return str(pair.trace.turns[name].agent)
    if type_ != "event":
        return "task" if type_ == "part" else "outcome"
    event, row = pair.trace.events[name], pair.trace.rows[t]
    return str(_whose(pair, event, row, state) or "task")


def _whose(pair: Counterparts, event: Event, row: dict[str, Any], state: str) -> Any:
    if state in ("unread", "overdue"):
        holders = [to for to, came in event.arrivals if came <= row["t"]]
        if event.tell in holders:
            return event.tell
        return holders[-1] if holders else event.sender
    if state in ("lost", "rerouted") and row["kind"] == "end":
        return pair.trace.turns[row["activation"]].agent
    if state == "lost" and row["kind"] == "leave":
        return row["agent"]
    return event.sender
