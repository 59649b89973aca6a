"""STALL: an activation lasts longer than what is known of its agent makes likely."""

from __future__ import annotations

from typing import Any

from tests.histories import arrive, deliver, emit, end, final, row, start, trace, turn
from tests.oracle import Row

from .case import activation, case, event, found, look, waits

EAGER = {"stall_factor": 2, "stall_min_s": 0.5}


def stint(ts: float, name: str, agent: str, lasts: float = 1, **keys: Any) -> list[Row]:
    """Four rows: an agent reads a notice, which is progress."""
    first = emit(ts, f"n{name}", None, "", "notice") | {"to": [agent]}
    begin = start(ts, f"v{name}", agent, f"n{name}")
    last = end(ts + lasts, f"v{name}", **{f"n{name}": "consume"}) | keys
    return [first, deliver(ts, f"n{name}", agent), begin, last]


def stints(count: int, agent: str = "a", lasts: float = 1, first: int = 0) -> list[Row]:
    """Four rows for each stint; they begin at 2 x first, and follow each other every 2 seconds."""
    numbers = range(first, first + count)
    return [one for n in numbers for one in stint(2 * n, str(n), agent, lasts)]


def task(ts: float, agent: str = "a") -> list[Row]:
    """Three rows: `agent` is given `e` and starts `v` with it."""
    first = emit(ts, "e", None) | {"to": [agent]}
    return [first, deliver(ts, "e", agent), start(ts, "v", agent, "e")]


def stalled(t: int, ts: float, limit_s: float, mended: bool = False, **keys: Any) -> Any:
    evidence: Row = {"agent": "a", "limit_s": limit_s, "inputs": ["e"]} | keys
    return found("STALL", "error", t, ts, activation("v"), mended=mended, **evidence)


STALLS = [
    case(
        "stall: twice the own five durations",
        trace(stints(5), task(10), look(20), limits=EAGER),
        stalled(23, 12, 2),
    ),
    case(
        "stall: never before stall_min_s",
        trace(stints(5), task(10), look(20), limits=EAGER | {"stall_min_s": 5}),
        stalled(23, 15, 5),
    ),
    case(
        "stall: four own durations are no measure",
        trace(stints(4), task(10), look(90), limits=EAGER),
    ),
    case(
        "stall: off without stall_factor",
        trace(stints(5), task(10), look(90), limits={"stall_min_s": 0.5}),
    ),
    case(
        "stall: ten of all agents are a measure, never below the limit of activations",
        trace(stints(10, "b"), task(30), look(60), limits=EAGER | {"activation_limit_s": 7}),
        stalled(43, 37, 7),
    ),
    case(
        "stall: nine of all agents are none",
        trace(stints(9, "b"), task(30), look(90), limits=EAGER),
    ),
    case(
        "stall: the own five go before those of all",
        trace(stints(6, "b", 1.5), stints(5, "a", 1, 6), task(30), look(60), limits=EAGER),
        stalled(47, 32, 2),
    ),
    case(
        "stall: of five the fifth in length, by nearest rank",
        trace(
            *[stint(20 * n, str(n), "a", lasts) for n, lasts in enumerate([3, 1, 5, 2, 4])],
            task(100),
            look(190),
            limits=EAGER,
        ),
        stalled(23, 110, 10),
    ),
    case(
        "stall: of ten the ninth in length, by nearest rank",
        trace(
            *[stint(20 * n, str(n), "b", n + 1) for n in range(10)],
            task(200),
            look(290),
            limits=EAGER | {"activation_limit_s": 7},
        ),
        stalled(43, 218, 18),
    ),
    case(
        "stall: only the latest 99 durations count",
        trace(stints(12, "a", 1.5), stints(99, "a", 1, 12), task(300), look(390), limits=EAGER),
        stalled(447, 302, 2),
    ),
    case(
        "stall: ends with an error or without progress are no measure",
        trace(
            stints(4),
            stint(8, "4", "a", error="out of memory"),
            [start(9, "v5", "a"), end(10, "v5")],
            task(20),
            look(90),
            limits=EAGER,
        ),
        found(
            "FAIL",
            "notice",
            20,
            9,
            activation("v4"),
            stage="turn",
            agent="a",
            error="out of memory",
        ),
    ),
    case(
        "stall: instances count as their agent, and the evidence names the instance",
        trace(
            stints(3, "a"),
            stints(2, "a#2", 1, 3),
            task(10, "a#2"),
            look(20),
            agents=["a", "a#2"],
            limits=EAGER,
        ),
        stalled(23, 12, 2, agent="a#2"),
    ),
    case(
        "stall: an instance that leaves takes no other one with it",
        trace(
            [*stints(5), *task(10), row(11, "leave", agent="a#2"), look(20)],
            agents=["a", "a#2"],
            limits=EAGER,
        ),
        stalled(24, 12, 2),
    ),
    case(
        "stall: a limit that grows puts it off",
        trace(
            [*stints(5), *stint(9, "5", "a", 2.5)[:3], *task(10, "a#2")],
            [stint(9, "5", "a", 2.5)[3], look(20)],
            agents=["a", "a#2"],
            limits=EAGER,
        ),
        found(
            "STALL", "error", 26, 11, activation("v5"), agent="a", limit_s=2, inputs=[], mended=True
        ),
        stalled(27, 15, 5, agent="a#2"),
    ),
    case(
        "stall: of one moment in the order of the starts, whatever limits changed when",
        trace(
            [*stints(5), *stints(5, "b", 1.8, 5), *stint(19.9, "10", "a", 2)[:3]],
            [*task(21, "a#2"), *arrive(21.2, "k", None, "b"), start(21.2, "w", "b", "k")],
            [stint(19.9, "10", "a", 2)[3], look(30)],
            agents=["a", "a#2", "b"],
            limits=EAGER | {"stall_factor": 1},
        ),
        found(
            "STALL",
            "error",
            43,
            20.9,
            activation("v10"),
            agent="a",
            limit_s=1,
            inputs=[],
            mended=True,
        ),
        stalled(50, 23, 2, agent="a#2"),
        found("STALL", "error", 50, 23, activation("w"), agent="b", limit_s=1.8, inputs=["k"]),
    ),
    case(
        "stall: a new duration can make it hold at once",
        trace(
            stints(4),
            task(10, "a#2"),
            stint(11, "4", "a", 3),
            look(90),
            agents=["a", "a#2"],
            limits=EAGER | {"stall_factor": 1},
        ),
        stalled(23, 14, 3, agent="a#2"),
    ),
    case(
        "stall: an end at its moment comes after it",
        trace(stints(5), task(10), end(12, "v", e="consume"), limits=EAGER),
        stalled(23, 12, 2, mended=True),
    ),
    case(
        "stall: an end a microsecond before is in time",
        trace(stints(5), task(10), end(11.999999, "v", e="consume"), limits=EAGER),
    ),
    case(
        "stall: silent once the host waits on purpose",
        trace(stints(5), task(10), waits(11, activation="v"), look(90), limits=EAGER),
    ),
    case(
        "stall: waiting for another activation, or for an event, changes nothing",
        trace(
            stints(5),
            task(10),
            waits(11, activation="v1"),
            waits(11, event="e"),
            look(90),
            limits=EAGER,
        ),
        stalled(25, 12, 2),
    ),
    case(
        "stall: waiting that begins at its moment comes after it",
        trace(stints(5), task(10), waits(12, activation="v"), limits=EAGER),
        stalled(23, 12, 2),
    ),
    case(
        "stall: once for an activation, and what it saw but work is left out",
        trace(
            stints(5),
            emit(10, "k", None, "a", "notice"),
            emit(10, "e2", None, "a"),
            emit(10, "e1", None, "a"),
            emit(10, "s", "system", "a", "system"),
            deliver(10, "k", "a"),
            deliver(10, "e1", "a"),
            deliver(10, "s", "a"),
            deliver(10, "e2", "a"),
            start(10, "v", "a", "k e1 s e2"),
            look(20),
            look(30),
            limits=EAGER,
        ),
        stalled(29, 12, 2, inputs=["e2", "e1"]),
    ),
    case(
        "stall: half a microsecond goes to the even one",
        trace(
            *[stint(n, str(n), "a", 0.000005) for n in range(5)],
            task(10),
            look(20),
            limits={"stall_factor": 0.5, "stall_min_s": 0.000001},
        ),
        stalled(23, 10.000002, 0.000002),
    ),
    case(
        "stall: no longer looked at once the answer is accepted",
        trace(
            stints(5),
            task(10),
            turn(11, "w", "b", "f"),
            final(11, "f", "w"),
            deliver(11, "f", None),
            look(90),
            limits=EAGER | {"coverage": False},
        ),
        found("ET", "error", 26, 11, event("f"), unresolved=["e"], uncovered=[]),
    ),
    case(
        "stall: it ends what holds MC back, which waits for a window from then on",
        trace(
            stints(5),
            arrive(10, "e", None, "ab"),
            turn(10, "w", "b", e="consume"),
            start(10, "v", "a", "e"),
            look(90),
            limits=EAGER | {"mc_window_s": 3},
        ),
        stalled(26, 12, 2, mended=True),
        found("MC", "error", 26, 15, {}, last="w"),
    ),
    case(
        "stall: it begins an idle interval anew that no activation holds back",
        trace(
            stints(5),
            task(10),
            look(90),
            limits=EAGER | {"dl_window_s": 3, "activation_limit_s": 1},
        ),
        stalled(23, 12, 2),
        found("DL", "error", 23, 15, {}, waiting={"a": ["e"]}),
    ),
    case(
        "stall: it comes before a deadlock of the same moment, which is put off",
        trace(
            stints(5),
            task(10),
            look(90),
            limits=EAGER | {"dl_window_s": 2, "activation_limit_s": 1},
        ),
        stalled(23, 12, 2),
        found("DL", "error", 23, 14, {}, waiting={"a": ["e"]}),
    ),
    case(
        "stall: a deadlock before it is raised again after it",
        trace(
            stints(5),
            task(10),
            look(90),
            limits=EAGER | {"dl_window_s": 1.5, "activation_limit_s": 1},
        ),
        found("DL", "warning", 23, 11.5, {}, waiting={"a": ["e"]}),
        stalled(23, 12, 2),
        found("DL", "error", 23, 13.5, {}, waiting={"a": ["e"]}),
    ),
    case(
        "stall: in a session it concerns the problems of what was seen only",
        trace(
            stints(5),
            arrive(10, "e1", None, "b"),
            task(10),
            look(90),
            session=True,
            limits=EAGER | {"dl_window_s": 4},
        ),
        stalled(25, 12, 2),
        found("DL", "error", 25, 14, event("e1"), waiting={"b": ["e1"]}),
        found("DL", "error", 25, 16, event("e"), waiting={"a": ["e"]}),
    ),
    case(
        "stall: another activation still holds the deadlock back",
        trace(
            stints(5),
            task(10),
            turn(10, "u", "b"),
            start(10, "w", "b"),
            look(40),
            end(50, "w"),
            look(90),
            limits=EAGER | {"dl_window_s": 3},
        ),
        stalled(26, 12, 2),
        found("DL", "error", 28, 50, {}, waiting={"a": ["e"]}),
    ),
]
