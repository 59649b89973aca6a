"""LIVELOCK and ER: agents hand on to each other, an answer or the event itself."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle, islice
from typing import Any

from tests.histories import arrive, deliver, emit, end, row, start, trace, turn
from tests.oracle import Row

from .case import activation, case, event, found

# -- LIVELOCK ---

ROUND = {"livelock_turns": 4, "livelock_agents": 2}


def passed(*agents: str) -> list[Row]:
    """`e` for the first agent, in rows 1 and 2, then four rows for each turn.

    The agent of turn n consumes what the one before said and says `xn` to the one after, at
    second n, in activation `vn`. So turn n ends in row 4n, and the last one's word gets nowhere.
    """
    rows = [emit(0, "e", None) | {"to": [agents[0]]}, deliver(0, "e", agents[0])]
    before = "e"
    for n, (agent, after) in enumerate(zip(agents, [*agents[1:], "nobody"], strict=True), 1):
        rows += turn(n, f"v{n}", agent, f"x{n}", **{before: "consume"})
        rows += [emit(n, f"x{n}", f"v{n}") | {"to": [after]}, deliver(n, f"x{n}", after)]
        before = f"x{n}"
    return rows[:-1]


def around(agents: Iterable[str], turns: int) -> list[Row]:
    return passed(*islice(cycle(agents), turns))


def livelock(n: int, turns: int, agents: str = "a b", /, **keys: Any) -> Any:
    severity = keys.pop("severity", "notice")
    evidence: Row = {"agents": agents.split(), "turns": turns, "origin": "v1"} | keys
    return found("LIVELOCK", severity, 4 * n, n, activation(f"v{n}"), **evidence)


def branched(*last: Row) -> list[Row]:
    """After three turns of `a`, `b` and `a` the third hands two words to `b`, in row 13 and 14.

    The rows given follow at second 4.
    """
    return [
        *passed("a", "b", "a")[:-2],
        end(3, "v3", "y1 y2", x2="consume"),
        emit(3, "y1", "v3", "b"),
        emit(3, "y2", "v3", "b"),
        *last,
    ]


LIVELOCKS = [
    case(
        "livelock: at the limit and at doublings, a warning from four times, an error from 16 on",
        trace(around("ab", 65), limits=ROUND),
        livelock(4, 4),
        livelock(8, 8),
        livelock(16, 16, severity="warning"),
        livelock(32, 32, severity="warning"),
        livelock(64, 64, severity="error"),
    ),
    case("livelock: off without a limit", trace(around("ab", 18))),
    case(
        "livelock: three agents may take part unless told otherwise",
        trace(around("abc", 5), limits={"livelock_turns": 4}),
        livelock(4, 4, "a b c"),
    ),
    case("livelock: three are too many for two", trace(around("abc", 18), limits=ROUND)),
    case("livelock: one alone goes round with nobody", trace(around("a", 18), limits=ROUND)),
    case(
        "livelock: the stretch is counted back from the newest, the origin is that of the chain",
        trace(passed(*"cabab"), limits=ROUND),
        livelock(5, 4),
    ),
    case(
        "livelock: an outsider ends the stretch",
        trace(passed(*"abacbab"), limits=ROUND),
    ),
    case(
        "livelock: instances count as their agent",
        trace(passed("a#2", "b", "a", "b#3"), agents=["a", "a#2", "b", "b#3"], limits=ROUND),
        livelock(4, 4),
    ),
    case(
        "livelock: an end without output hands nothing on, one that answers does",
        trace(
            passed("a", "b", "a")[:-1],
            emit(3, "x3", "v3", "bc"),
            deliver(3, "x3", "b"),
            deliver(3, "x3", "c"),
            turn(4, "v4", "b", x3="consume"),
            turn(5, "v5", "c", "f", x3="consume"),
            emit(5, "f", "v5") | {"final": True},
            limits={"livelock_turns": 4},
        ),
        found(
            "LIVELOCK",
            "notice",
            19,
            5,
            activation("v5"),
            agents=["a", "b", "c"],
            turns=4,
            origin="v1",
        ),
    ),
    case(
        "livelock: once for the same origin, agents and turns",
        trace(
            branched(
                *[deliver(4, "y1", "b"), *turn(4, "v4", "b", "z1", y1="consume")],
                *[emit(4, "z1", "v4"), deliver(4, "y2", "b")],
                *[*turn(4, "v5", "b", "z2", y2="consume"), emit(4, "z2", "v5")],
            ),
            limits=ROUND,
        ),
        found(
            "LIVELOCK", "notice", 17, 4, activation("v4"), agents=["a", "b"], turns=4, origin="v1"
        ),
    ),
    case(
        "livelock: what another agent said is the trigger, though the agent itself spoke later",
        trace(
            passed("a", "b", "a")[:-2],
            end(3, "v3", "x3", x2="consume"),
            emit(3, "x3", "v3", "b"),
            turn(3, "w", "b", "k"),
            emit(3, "k", "w", "b", "notice"),
            deliver(3, "x3", "b"),
            deliver(3, "k", "b"),
            turn(4, "v4", "b", "x4", x3="consume", k="consume"),
            emit(4, "x4", "v4"),
            limits=ROUND,
        ),
        found(
            "LIVELOCK", "notice", 20, 4, activation("v4"), agents=["a", "b"], turns=4, origin="v1"
        ),
    ),
    case(
        "livelock: of two others the one that spoke last is the trigger",
        trace(
            passed("a", "b", "a")[:-2],
            end(3, "v3", "x3", x2="consume"),
            emit(3, "x3", "v3", "b"),
            turn(3, "w", "c", "k"),
            emit(3, "k", "w", "b", "notice"),
            deliver(3, "k", "b"),
            deliver(3, "x3", "b"),
            turn(4, "v4", "b", "x4", k="consume", x3="consume"),
            emit(4, "x4", "v4"),
            limits=ROUND,
        ),
    ),
    case(
        "livelock: what an agent hands to itself goes on with the chain",
        trace(passed("a", "b", "b", "a"), limits=ROUND),
        livelock(4, 4),
    ),
    case(
        "livelock: what was only seen is no trigger",
        trace(
            passed("a", "b", "a"),
            emit(4, "e9", None, "b"),
            deliver(4, "e9", "b"),
            row(4, "redirect", event="x3", to=["b"]),
            deliver(4, "x3", "b"),
            turn(4, "v4", "b", "x4", e9="consume", x3="delay"),
            emit(4, "x4", "v4"),
            limits=ROUND,
        ),
    ),
]

# -- ER ---


def tossed(agents: str) -> list[Row]:
    """`e` for the first agent, in rows 1 and 2, then three rows for each that reroutes it.

    The n-th reroutes it at second n, in row 3n + 1.
    """
    rows = arrive(0, "e", None, agents[0])
    for n, (agent, after) in enumerate(zip(agents, [*agents[1:], "z"], strict=True), 1):
        rows += [*turn(n, f"v{n}", agent, e=(after,)), deliver(n, "e", after)]
    return rows[:-1]


def storm(n: int, path: str, severity: str, *, mended: bool = False, **keys: Any) -> Any:
    evidence: Row = {"path": list(path)} | keys
    return found("ER", severity, 3 * n + 1, n, event("e"), mended=mended, **evidence)


REROUTES = [
    case(
        "er: beyond the limit, then whenever the number has doubled",
        trace(tossed("ab" * 9), limits={"reroute_limit": 1}),
        storm(2, "ab", "notice"),
        storm(4, "abab", "warning"),
        storm(8, "ab" * 4, "error"),
        storm(16, "ab" * 8, "error"),
    ),
    case(
        "er: a chain without a return is a notice however long it is",
        trace(tossed("abcdefghi"), agents="abcdefghi", limits={"reroute_limit": 1}),
        storm(2, "ab", "notice"),
        storm(4, "abcd", "notice"),
        storm(8, "abcdefgh", "notice"),
    ),
    case(
        "er: with a limit of three an error from sixteen on, mended by use",
        trace(
            tossed("abab" * 4),
            row(17, "redirect", event="e", to=["a"]),
            deliver(17, "e", "a"),
            turn(17, "w", "a", e="consume"),
        ),
        storm(4, "abab", "warning", mended=True),
        storm(8, "abab" * 2, "warning", mended=True),
        storm(16, "abab" * 4, "error", mended=True),
    ),
    case(
        "er: instances count as their agent, and are told by their names",
        trace(
            emit(0, "e", None, "a"),
            deliver(0, "e", "a"),
            [start(1, "v1", "a", "e")],
            row(
                1,
                "end",
                activation="v1",
                fates=[{"event": "e", "fate": "reroute", "to": ["a#2"]}],
                outputs=[],
            ),
            deliver(1, "e", "a#2"),
            turn(2, "v2", "a#2", e=("b",)),
            agents=["a", "a#2", "b"],
            limits={"reroute_limit": 1},
        ),
        found("ER", "warning", 7, 2, event("e"), path=["a", "a#2"]),
    ),
    case(
        "er: a path is told up to its hundredth agent",
        trace(tossed("ab" * 52), limits={"reroute_limit": 25}),
        storm(26, "ab" * 13, "warning"),
        storm(52, "ab" * 26, "warning"),
        storm(104, "ab" * 50, "error", more=True),
    ),
]
