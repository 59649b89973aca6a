"""LATE: an event is on its way for too long."""

from __future__ import annotations

from typing import Any

from tests.histories import deliver, emit, final, row, trace, turn

from .case import case, event, found, look, waits

LATE = {"late_window_s": 3}


def late(t: int, ts: float, *to: str, name: str = "e", mended: bool = False) -> Any:
    return found("LATE", "error", t, ts, event(name), to=list(to), mended=mended)


LATES = [
    case(
        "late: on its way for a window",
        trace(emit(1, "e", None, "ba"), look(9), look(90), limits=LATE),
        late(1, 4, "a", "b"),
    ),
    case("late: off without a window", trace(emit(1, "e", None, "a"), look(90))),
    case(
        "late: a policy keeps it on purpose",
        trace(emit(1, "e", None, "a") | {"policy": "batch"}, look(90), limits=LATE),
    ),
    case(
        "late: a fault is no purpose, and null names no policy",
        trace(
            emit(1, "e", None, "a") | {"policy": "fault"},
            emit(1, "e1", None, "a") | {"policy": None},
            look(90),
            limits=LATE,
        ),
        late(2, 4, "a"),
        late(2, 4, "a", name="e1"),
    ),
    case(
        "late: a copy in a buffer is enough",
        trace(emit(1, "e", None, "ab"), deliver(2, "e", "b"), look(90), limits=LATE),
    ),
    case(
        "late: a delivery at its moment comes after it",
        trace(
            emit(1, "e", None, "a"),
            deliver(4, "e", "a"),
            turn(5, "v", "a", e="consume"),
            limits=LATE,
        ),
        late(1, 4, "a", mended=True),
    ),
    case(
        "late: who it is on its way to may change within the interval",
        trace(
            emit(1, "e", None, "a"),
            row(2, "redirect", event="e", to=["c", "b"]),
            look(90),
            limits=LATE,
        ),
        late(2, 4, "b", "c"),
    ),
    case(
        "late: a time in a buffer begins a new interval, which is raised again",
        trace(
            emit(1, "e", None, "a"),
            deliver(5, "e", "a"),
            turn(5, "v", "a", e=("b",)),
            look(90),
            limits=LATE,
        ),
        late(1, 4, "a"),
        late(4, 8, "b"),
    ),
    case(
        "late: a loss of no length begins a new interval",
        trace(
            emit(1, "e", None, "a"),
            row(2, "expire", event="e"),
            row(2, "redirect", event="e", to=["a"]),
            look(90),
            limits=LATE,
        ),
        late(3, 5, "a"),
    ),
    case(
        "late: silent once the host waits on purpose",
        trace(
            emit(1, "e", None, "a"),
            waits(2, event="e"),
            deliver(3, "e", "a"),
            turn(3, "v", "a", e=("b",)),
            look(90),
            limits=LATE,
        ),
    ),
    case(
        "late: notices, notes and answers are no work",
        trace(
            emit(1, "n", None, "a", "notice"),
            emit(1, "s", "system", "a"),
            turn(1, "v", "b", "f"),
            final(1, "f", "v"),
            row(2, "redirect", event="f", to=["a"]),
            look(90),
            limits=LATE,
        ),
    ),
    case(
        "late: what was consumed elsewhere is not late",
        trace(
            emit(1, "e", None, "ab"),
            deliver(1, "e", "a"),
            turn(1, "v", "a", e="consume"),
            look(90),
            limits=LATE,
        ),
    ),
    case(
        "late: instances keep their full names",
        trace(emit(1, "e", None) | {"to": ["a#2", "a"]}, look(9), agents=["a", "a#2"], limits=LATE),
        late(1, 4, "a", "a#2"),
    ),
    case(
        "late: no longer looked at once the answer is accepted",
        trace(
            emit(1, "e", None, "a"),
            turn(2, "v", "b", "f"),
            final(2, "f", "v"),
            deliver(2, "f", None),
            look(90),
            limits=LATE | {"coverage": False},
        ),
        found("ET", "error", 4, 2, event("f"), unresolved=["e"], uncovered=[]),
    ),
    case(
        "late: in a session it is looked at until the end",
        trace(
            emit(1, "e", None, "a"),
            turn(2, "v", "b", "f"),
            final(2, "f", "v"),
            deliver(2, "f", None),
            look(90),
            limits=LATE | {"coverage": False},
            session=True,
        ),
        late(5, 4, "a"),
    ),
]
