"""The numbers of docs/lab/faults-verification.md, measured once more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from .history import Event, History, Ranges, Turn, both, size, tidy

Key = tuple[str, str, str]
"""Type, name and state."""
Number = tuple[str, float]
"""Measure and value."""


def shown(*histories: History) -> dict[int, int]:
    """The elements that raw data in some traces show, if they are whole numbers."""
    known: dict[int, int] = {}
    for history in histories:
        for event in history.events.values():
            data = event.payload.get("data") if isinstance(event.payload, dict) else None
            if event.type != "raw_data" or not isinstance(data, list) or len(event.about) != 1:
                continue
            if all(type(one) is int for one in data):
                known.update(zip(range(*event.about[0]), data, strict=False))
    return known


def bounds(*histories: History) -> list[int]:
    """Where parts begin and end."""
    found: set[int] = set()
    for history in histories:
        for event in history.events.values():
            found.update(x for one in event.about for x in one)
    return sorted(found)


def numbers(
    h: History, rmse: float | None, cuts: list[int], data: dict[int, int]
) -> dict[Key, Number]:
    """All numbers of a run."""
    found: dict[Key, Number] = {}
    for event in h.events.values():
        if event.others:
            continue
        for state, measure, value in _event(h, event, data):
            found["event", event.id, state] = measure, round(float(value), 6)
    for turn in h.turns.values():
        for state, measure, value in _turn(h, turn):
            found["activation", turn.id, state] = measure, round(float(value), 6)
    for agent in h.agents:
        found["agent", agent, "gone"] = "agent gone", float(agent in h.left)
        found["agent", agent, "starved"] = (
            "agent starved",
            float(not h.answer and _starved(h, agent)),
        )
    for low, high in pairwise(cuts):
        name, solved = f"{low}-{high}", solutions(h, [[low, high]])
        missing = [gone(h, event) is not None for event in solutions(h, [[low, high]])]
        if h.answer:
            missing = [not has(h.answer.about, [[low, high]])]
        found["part", name, "missing"] = "part missing", float(all(missing))
        if solved:
            found["part", name, "late"] = "part late", round(h.us[solved[0].t] / 1e6, 6)
    which = "-".join(map(str, h.problem or []))
    late = h.outcome == "timeout" and not (h.problem and h.answer)
    found["outcome", which, "timeout"] = "outcome timeout", float(late)
    nothing = h.answer is None and h.outcome != "timeout"
    found["outcome", which, "missing"] = "outcome missing", float(nothing)
    lacking = _lacking(h, h.answer.about) if h.answer else 0.0
    found["outcome", which, "incomplete"] = "outcome incomplete", round(lacking, 6)
    if h.answer and rmse is not None:
        found["outcome", which, "wrong"] = "outcome wrong", round(rmse, 6)
    times = Counter(row["pattern"] for row in h.findings)
    for pattern in ("ET", "MC", "OE", "DL"):
        found["finding", pattern, "raised"] = f"raised {pattern}", float(times[pattern])
    return found


def has(ranges: Ranges, part: Ranges) -> bool:
    return both(ranges, part) == size(part)


def outside(ranges: Ranges, others: Ranges) -> int:
    return size(ranges) - both(ranges, others)


def _lacking(h: History, ranges: Ranges) -> float:
    return outside(h.whole, ranges) / size(h.whole) if h.whole else 0.0


def solutions(h: History, part: Ranges) -> list[Event]:
    return [e for e in h.events.values() if e.type == "solution" and has(e.about, part)]


def gone(h: History, event: Event) -> int | None:
    """Since which record a solution is gone; record 0 is never one."""
    if event.consumer:
        return last_of(h, h.turns[event.consumer])
    return event.lost if event.is_lost else None


def last_of(h: History, turn: Turn) -> int:
    """The record with the last output of an activation that has ended."""
    return max([turn.stop or 0, *(h.events[one].t for one in turn.outputs)])


def unread(event: Event) -> bool:
    return event.consumer is None and not event.is_lost


def kept(h: History, agent: str) -> list[Event]:
    """The unread solutions that an agent was given and is to be told."""
    return [
        e
        for e in h.events.values()
        if e.type == "solution" and e.work and unread(e) and e.tell == agent
        if agent in [to for to, _ in e.arrivals]
    ]


def _starved(h: History, agent: str) -> bool:
    held = tidy(one for event in kept(h, agent) for one in event.about)
    return bool(held) and outside(h.whole, held) > 0


def _event(h: History, e: Event, data: dict[int, int]) -> Iterator[tuple[str, str, float]]:
    if e.final:
        yield "premature", "event premature", _lacking(h, e.about)
    if e.work:
        yield "lost", f"event lost {e.type}", e.lost is not None
        yield "unread", f"event unread {e.type}", unread(e)
        yield "rerouted", f"event rerouted {e.type}", len(e.reroutes)
        came = e.arrivals[0][1] if e.arrivals else None if e.is_lost else h.end
        yield "delayed", "event delayed", 0 if came is None else (h.us[came] - h.us[e.t]) / 1e6
        if e.consumer and e.arrivals:
            waited = h.us[h.turns[e.consumer].stop or 0] - h.us[e.arrivals[0][1]]
            yield "overdue", f"event overdue {e.type}", waited / 1e6
    if e.sender is None or not (e.work or e.final):
        return
    used = tidy(r for one in h.turns[e.by].having("consume") for r in h.events[one].about)
    strange = bool(used) and (not e.about or outside(e.about, used) > 0)
    yield "altered", f"event altered {e.type}", strange
    off = _off(e, data)
    if off is not None:
        kind = "answer" if e.final else "one" if len(e.about) == 1 else "several"
        yield "miscounted", f"event miscounted {kind}", off
    if e.work:
        yield "late", f"event late {e.type}", h.us[e.t] / 1e6
        yield "shared", f"event shared {e.type}", len(e.to)
        yield "duplicated", f"event duplicated {e.type}", _twice(h, e)
        if e.type == "solution":
            merged = [h.events[one] for one in h.turns[e.by].having("consume")]
            told = [e.tell, *(m.tell for m in merged if m.type == "solution" and not m.others)]
            yield "misdirected", "event misdirected solution", bool({*told} - {None, *e.to})


def _twice(h: History, e: Event) -> bool:
    behind = h.behind(e.id)
    for other in h.events.values():
        alike = other.t < e.t and other.type == e.type and other.work
        if alike and other.id not in behind and both(other.about, e.about):
            return True
    return False


def _off(e: Event, data: dict[int, int]) -> float | None:
    counts = e.payload.get("counts") if isinstance(e.payload, dict) else None
    if not e.about or not isinstance(counts, dict):
        return None
    if not all(type(count) in (int, float) for count in counts.values()):
        return None
    asked = [i for low, high in e.about for i in range(low, high)]
    if not all(i in data for i in asked):
        return float(abs(sum(counts.values()) - len(asked)) / len(asked))
    true = Counter(str(data[i]) for i in asked)
    keys = true.keys() | counts.keys()
    return float(sum(abs(true[key] - counts.get(key, 0)) for key in keys) / len(asked))


def _turn(h: History, turn: Turn) -> Iterator[tuple[str, str, float]]:
    stop = h.end if turn.stop is None else turn.stop
    yield "slow", "activation slow", (h.us[stop] - h.us[turn.t]) / 1e6
    if turn.stop is None:
        return
    yield "failed", "activation failed", turn.error is not None
    yield "rerouting", "activation rerouting", len(turn.having("reroute"))
    yield "discarding", "activation discarding", len(turn.having("discard"))
    work = [h.events[one] for one in turn.inputs if h.events[one].work]
    if work and turn.error is None:
        held = tidy(r for event in work for r in event.about)
        before = "some" if outside(h.whole, held) else "all"
        if any(event.type != "solution" for event in work):
            before = "work"
        idle = not turn.outputs and not set(turn.fates.values()) - {"delay"}
        yield "idle", f"activation idle {before}", idle
    made = [h.events[one] for one in turn.outputs]
    used = tidy(r for one in turn.having("consume") for r in h.events[one].about)
    left = outside(used, tidy(r for event in made for r in event.about))
    yield "losing", "activation losing", left / size(used) if used else 0
    yield (
        "hasty",
        "activation hasty",
        max([_lacking(h, e.about) for e in made if e.final], default=0),
    )
