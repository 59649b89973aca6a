"""Which findings of a trace were mended later in it, and which errors stay unhealed."""

from __future__ import annotations

from typing import Any

from .oracle import Row, State
from .oracle_findings import Found, ordered, sources_of


def mended(rows: list[Row]) -> list[bool]:
    """For each finding of a trace, in their order, whether it was mended later in the file."""
    states = State.each(rows)
    return mended_of(rows, states, ordered(states))


def mended_of(rows: list[Row], states: list[State], found: list[Found]) -> list[bool]:
    """The same for a trace whose states after each row and whose findings are there already."""
    return [_is_mended(rows, states, found, one) for one in found]


def unhealed(rows: list[Row]) -> list[dict[str, Any]]:
    """The errors that were not mended and that no policy silenced."""
    left = []
    told = [row for row in rows if row["kind"] == "finding"]
    states = State.each(rows)
    found = ordered(states)
    for one, done in zip(found, mended_of(rows, states, found), strict=True):
        same = [row for row in told if _tells_of(row, one)][:1]
        told = [row for row in told if row not in same]
        silenced = any(row.get("silenced") for row in same)
        if one.severity == "error" and not (done or silenced):
            left.append(one.as_json())
    return left


def _tells_of(row: Row, one: Found) -> bool:
    keys = ("pattern", "stage", "subject", "evidence")
    return all(row[key] == one.as_json()[key] for key in keys)


def _is_mended(rows: list[Row], states: list[State], found: list[Found], one: Found) -> bool:
    last = states[-1]
    later = [row for row in rows if row["t"] > one.t]
    about = set(_about(states, one))

    def answers(final: str) -> bool:
        return not last.session or bool(_aims(states, final) & about)

    taken = [row["event"] for row in later if row["kind"] == "deliver" and row["to"] is None]
    accepted = [e for e in taken if answers(e)]
    if one.pattern in ("ET", "VOID"):
        errors = [f for f in found if (f.pattern, f.severity) == (one.pattern, "error")]
        bad = {f.subject["event"] for f in errors}
        return any(e not in bad for e in accepted)
    if (one.pattern, one.stage) == ("FAIL", "request"):
        event = one.subject.get("event")
        return any(not last.session or event in _then(states, e).asked(e) for e in taken)
    if one.pattern in ("OE", "LATE", "ER"):
        return one.subject["event"] in last.consumed
    if one.pattern == "MC":
        made = [row["event"] for row in later if row["kind"] == "emit" and row["final"]]
        return any(answers(e) for e in made)
    if one.pattern == "DL":
        ended = [row["activation"] for row in later if row["kind"] == "end"]
        ended = [v for v in ended if not last.session or last.concerns(v) & about]
        return any(_moves(last, v) for v in ended)
    if one.pattern == "STALL":
        inputs = one.evidence["inputs"]
        end = last.ends.get(one.subject["activation"])
        well = end is not None and not end.get("error")
        return well or (bool(inputs) and all(e in last.consumed for e in inputs))
    return one.pattern in ("LOOP", "LIVELOCK") and bool(accepted)


def _about(states: list[State], one: Found) -> list[str]:
    """The environment events that a finding is about, as it is mended: an answer has aims."""
    event = one.subject.get("event")
    if one.pattern in ("ET", "VOID") and event is not None and states[-1].session:
        return sorted(_aims(states, event))
    return sources_of(states[-1], one)


def _then(states: list[State], event: str) -> State:
    """The state in which an event had just been generated."""
    return states[states[-1].emits[event]["t"]]


def _aims(states: list[State], final: str) -> set[str]:
    """The unanswered environment events that a final event was an answer to, when it was made."""
    then = _then(states, final)
    return then.asked(final) - then.answered


def _moves(last: State, activation: str) -> bool:
    """Whether an ended activation had an output or did something with a work event."""
    fates = last.fates(activation).items()
    moved = any(fate != "delay" and last.is_work(e) for e, fate in fates)
    return moved or bool(last.outputs(activation))
