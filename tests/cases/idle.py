"""MC and DL: what begins an idle window anew, what holds it back, and what ends the looking."""

from __future__ import annotations

from typing import Any

from tests.histories import arrive, deliver, emit, end, row, start, trace, turn
from tests.oracle import Row

from .case import activation, case, event, failed_request, found, look, waits
from .stall import EAGER, stints, task

SHORT = {"dl_window_s": 2}
LIMITED = {"activation_limit_s": 4}


def stuck(*parts: Row | list[Row], **keys: Any) -> list[Row]:
    """`e` lies with `a` from second 0 on, in rows 1 and 2."""
    limits = SHORT | keys.pop("limits", {})
    return trace(arrive(0, "e", None, "a"), *parts, limits=limits, **keys)


def deadlock(t: int, ts: float, severity: str = "error", /, **keys: Any) -> Any:
    subject = keys.pop("subject", {})
    return found("DL", severity, t, ts, subject, **({"waiting": {"a": ["e"]}} | keys))


def error(t: int, ts: float, v: str, agent: str = "b") -> Any:
    return found("FAIL", "notice", t, ts, activation(v), stage="turn", agent=agent, error="boom")


def fails(ts: float, v: str, agent: str = "b") -> list[Row]:
    begin, last = turn(ts, v, agent)
    return [begin, last | {"error": "boom"}]


def gave_up(t: int, ts: float, subject: Row, how: str) -> Any:
    evidence: Row = {"how": how, "activation": None, "error": None}
    return found("FAIL", "error", t, ts, subject, stage="request", **evidence)


IDLES = [
    case(
        "idle: an end with an error begins a window anew, one that only waits does not",
        stuck(turn(0.5, "u", "b"), fails(1, "v"), look(9)),
        error(6, 1, "v"),
        deadlock(6, 3),
    ),
    case(
        "idle: a deadlock that was raised before is raised again after an error",
        stuck(fails(5, "v"), look(9)),
        deadlock(2, 2),
        error(4, 5, "v"),
        deadlock(4, 7),
    ),
    case(
        "idle: in a session an error begins the windows that it concerns",
        stuck(
            arrive(0, "k", None, "b"),
            [start(1, "v", "b", "k"), end(1, "v") | {"error": "boom"}],
            look(9),
            session=True,
        ),
        error(6, 1, "v"),
        deadlock(6, 2, subject=event("e")),
        found("DL", "error", 6, 3, event("k"), waiting={"b": ["k"]}),
    ),
    case(
        "idle: an activation that has only lasted too long makes it a warning",
        stuck(start(0, "v", "b"), look(9), limits={"activation_limit_s": 4}),
        deadlock(3, 4, "warning"),
    ),
    case(
        "idle: beside one that stalled it is an error",
        trace(stints(5), task(10), look(90), limits=EAGER | {"dl_window_s": 3}),
        found("STALL", "error", 23, 12, activation("v"), agent="a", limit_s=2, inputs=["e"]),
        deadlock(23, 15),
    ),
    case(
        "idle: in a session what concerns another problem makes it no warning",
        stuck(
            arrive(0, "k", None, "b"),
            start(0, "v", "b", "k"),
            look(9),
            session=True,
            limits={"activation_limit_s": 1},
        ),
        deadlock(5, 2, subject=event("e")),
        found("DL", "warning", 5, 2, event("k"), waiting={"b": ["k"]}),
    ),
    case(
        "idle: an activation that waits on purpose holds it back however long",
        stuck(start(0, "v", "b"), waits(1, activation="v"), look(90), limits=LIMITED),
    ),
    case(
        "idle: its end begins the window anew",
        stuck(start(0, "v", "b"), waits(1, activation="v"), end(5, "v"), look(9)),
        deadlock(5, 7),
    ),
    case(
        "idle: the end of one that did not wait makes it possible at once",
        stuck(start(0, "v", "b"), end(5, "v"), look(9)),
        deadlock(4, 5),
    ),
    case(
        "idle: so does its agent's leaving",
        stuck(start(0, "v", "b"), waits(1, activation="v"), row(5, "leave", agent="b"), look(9)),
        deadlock(5, 7),
    ),
    case(
        "idle: the leaving of one that did not wait makes it possible at once",
        stuck(start(0, "v", "b"), row(5, "leave", agent="b"), look(9)),
        deadlock(4, 5),
    ),
    case(
        "idle: one that stalled and then waits holds it back again",
        trace(
            stints(5),
            task(10),
            waits(13, activation="v"),
            look(90),
            limits=EAGER | {"dl_window_s": 3},
        ),
        found("STALL", "error", 23, 12, activation("v"), agent="a", limit_s=2, inputs=["e"]),
    ),
    case(
        "idle: in a session it holds back what it concerns",
        stuck(
            arrive(0, "k", None, "b"),
            start(0, "v", "b", "k"),
            waits(1, activation="v"),
            look(9),
            end(10, "v"),
            look(20),
            session=True,
            limits={"activation_limit_s": 1},
        ),
        deadlock(6, 2, subject=event("e")),
        found("DL", "error", 8, 12, event("k"), waiting={"b": ["k"]}),
    ),
    case(
        "idle: waiting that is said in another form is not looked at",
        stuck(
            start(0, "v", "b"),
            waits(1, activation="v", event="e"),
            waits(1, activation="u"),
            waits(1, activation=["v"]),
            waits(1),
            row(1, "incident", what="waits", detail="v"),
            look(9),
            limits={"activation_limit_s": 4},
        ),
        deadlock(8, 4, "warning"),
    ),
    case(
        "idle: null is as absent, and other keys do not matter",
        stuck(
            start(0, "v", "b"),
            waits(1, activation="v", event=None, why="approval"),
            look(9),
            limits={"activation_limit_s": 4},
        ),
    ),
    case(
        "idle: waiting is over with the activation, and said too early it is not said",
        stuck(waits(0, activation="v"), start(0, "v", "b"), look(9), limits=LIMITED),
        deadlock(4, 4, "warning"),
    ),
    case(
        "idle: in a run nothing is looked at once a request has failed",
        stuck(failed_request(1, how="error"), arrive(1, "k", None, "b"), look(9)),
        gave_up(3, 1, {}, "error"),
    ),
    case(
        "idle: a deadlock of that moment comes before it",
        stuck(failed_request(2, how="limit"), look(9)),
        deadlock(2, 2),
        gave_up(3, 2, {}, "limit"),
    ),
    case(
        "idle: in a session the problem that it names, and no other one",
        stuck(
            arrive(0, "k", None, "b"),
            failed_request(1, how="error"),
            failed_request(1, how="timeout", event="e"),
            look(9),
            session=True,
        ),
        gave_up(5, 1, {}, "error"),
        gave_up(6, 1, event("e"), "timeout"),
        found("DL", "error", 6, 2, event("k"), waiting={"b": ["k"]}),
    ),
    case(
        "idle: in a session of two problems that are one by now, the one that it names",
        trace(
            [*arrive(0, "e1", None, "a"), *arrive(0, "e2", None, "a")],
            [*turn(0, "v", "a", "x", e1="consume", e2="consume"), emit(0, "x", "v", "b")],
            deliver(0, "x", "b"),
            failed_request(1, how="error", event="e1"),
            look(9),
            session=True,
            limits=SHORT,
        ),
        gave_up(9, 1, event("e1"), "error"),
        found("DL", "error", 9, 2, event("e2"), waiting={"b": ["x"]}),
    ),
    case(
        "idle: in a session one that failed, and became one with another later",
        trace(
            [*arrive(0, "e1", None, "a"), *arrive(0, "e2", None, "a")],
            failed_request(1, how="error", event="e1"),
            [*turn(1, "v", "a", "x", e1="consume", e2="consume"), emit(1, "x", "v", "b")],
            deliver(1, "x", "b"),
            look(9),
            session=True,
            limits=SHORT,
        ),
        gave_up(5, 1, event("e1"), "error"),
        found("DL", "error", 9, 3, event("e2"), waiting={"b": ["x"]}),
    ),
    case(
        "idle: the time of activations that waited is no measure",
        trace(
            stints(4),
            [start(8, "w", "a"), waits(8, activation="w"), end(9, "w", "n")],
            row(9, "emit", event="n", by="w", to=[], type="notice", final=False),
            task(10),
            look(90),
            limits=EAGER,
        ),
    ),
]
