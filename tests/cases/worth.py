"""What findings are worth: severities, what is usual, what was mended, bounded evidence, order."""

from __future__ import annotations

from typing import Any

from tests.histories import arrive, deliver, emit, end, final, row, start, trace, turn
from tests.oracle import Row

from .case import activation as run_of
from .case import case, event, found, look
from .stall import EAGER, stints

# -- severity ---


def et(t: int, ts: float, severity: str, /, name: str = "f", **keys: Any) -> Any:
    evidence: Row = {"unresolved": [], "uncovered": []}
    return found("ET", severity, t, ts, event(name), **(evidence | keys))


def stray(*last: Row, **keys: Any) -> list[Row]:
    """`a` answers `e`, in row 8, while what `b` made of it, `x`, is on its way to `c`."""
    return trace(
        arrive(0, "e", None, "ab"),
        [*turn(1, "w", "b", "x", e="consume"), emit(1, "x", "w", "c")],
        [*answer(2, "v", "a", "f", "e")],
        *last,
        **keys,
    )


def answer(ts: float, v: str, agent: str, name: str, used: str) -> list[Row]:
    """Three rows: an agent submits `name`."""
    begin, finish = turn(ts, v, agent, name, **dict.fromkeys(used.split(), "consume"))
    return [begin, finish, final(ts, name, v)]


def repeated(t: int, ts: float) -> Any:
    """RSP by `v`, of what `w` did."""
    shared = [{"event": "e", "activations": ["w"]}]
    return found("RSP", "notice", t, ts, run_of("v"), shared=shared)


SEVERITIES = [
    case(
        "et: open work that the answer does not need is a warning, mended when it is accepted",
        stray(deliver(3, "f", None)),
        repeated(8, 2),
        et(9, 2, "warning", unresolved=["x"], mended=True),
    ),
    case(
        "et: without coverage every early answer is an error",
        stray(deliver(3, "f", None), limits={"coverage": False}),
        repeated(8, 2),
        et(9, 2, "error", unresolved=["x"]),
    ),
    case(
        "et: an answer by an activation that used nothing is an error",
        trace(
            arrive(0, "e", None, "ab"),
            [*turn(1, "w", "b", "x", e="consume"), emit(1, "x", "w", "c")],
            [start(2, "v", "b"), end(2, "v", "f"), final(2, "f", "v")],
        ),
        et(9, 2, "error", unresolved=["x"]),
    ),
    case(
        "et: a needed event that is open is an error",
        trace(
            arrive(0, "e", None, "a"),
            arrive(0, "e1", None, "b"),
            answer(1, "v", "a", "f", "e"),
            deliver(2, "f", None),
        ),
        et(7, 1, "error", unresolved=["e1"]),
    ),
    case(
        "et: a needed event that is lost is an error, mended by a later answer",
        trace(
            arrive(0, "e", None, "a"),
            [*turn(0, "u", "a", "p q", e="consume")],
            [emit(0, "p", "u", "a"), emit(0, "q", "u"), deliver(0, "p", "a")],
            answer(1, "v", "a", "f", "p"),
            row(2, "redirect", event="f", to=["a"]),
            row(2, "redirect", event="q", to=["a"]),
            [deliver(2, "f", "a"), deliver(2, "q", "a")],
            [start(3, "w", "a", "f q"), end(3, "w", "g", f="consume", q="consume")],
            final(3, "g", "w"),
            deliver(4, "g", None),
        ),
        et(10, 1, "error", uncovered=["q"], mended=True),
    ),
    case(
        "et: what a stranger to the answer used up is needed all the same",
        trace(
            arrive(0, "e", None, "a"),
            [*turn(0, "u", "a", "p q", e="consume")],
            [emit(0, "p", "u", "a"), emit(0, "q", "u", "b"), deliver(0, "p", "a")],
            deliver(0, "q", "b"),
            [*turn(0, "w", "b", "x", q="consume"), emit(0, "x", "w", "c")],
            answer(1, "v", "a", "f", "p"),
        ),
        et(14, 1, "error", unresolved=["x"], uncovered=["q"]),
    ),
    case(
        "cla: within one problem a notice at delivery, a warning at consumption",
        trace(
            arrive(0, "e", None, "ab"),
            [*turn(0, "v", "a", "x1 x2", e="consume"), emit(0, "x1", "v", "c"), emit(0, "x2", "v")],
            [*turn(0, "w", "b", "y1 y2", e="consume"), emit(0, "y1", "w", "c"), emit(0, "y2", "w")],
            [deliver(1, "x1", "c"), deliver(2, "y1", "c")],
            turn(3, "u", "c", x1="consume", y1="consume"),
        ),
        found(
            "CLA",
            "notice",
            13,
            2,
            {"event": "y1", "agent": "c"},
            stage="delivery",
            conflicts=["x1"],
        ),
        found("CLA", "warning", 15, 3, run_of("u"), stage="consumption", conflicts=[["x1", "y1"]]),
    ),
    case(
        "et: in a session, lost work on an answered problem does not count",
        trace(
            arrive(0, "e1", None, "a"),
            [*turn(1, "v0", "a", "x k", e1="consume"), emit(1, "x", "v0", "b", "notice")],
            [emit(1, "k", "v0", "a", "notice"), deliver(1, "x", "b"), deliver(1, "k", "a")],
            [*turn(2, "v1", "a", "f1", k="consume"), final(2, "f1", "v1"), deliver(2, "f1", None)],
            [*turn(3, "v2", "b", "y1 y2", x="consume"), emit(3, "y1", "v2"), emit(3, "y2", "v2")],
            arrive(4, "e2", None, "b"),
            [*turn(5, "v3", "b", "f2", e2="consume"), final(5, "f2", "v3")],
            session=True,
            memory=True,
        ),
    ),
    case(
        "cla: between two problems a warning at delivery",
        trace(
            arrive(0, "e1", None, "a"),
            arrive(0, "e2", None, "b"),
            [*turn(0, "v", "a", "x", e1="consume"), emit(0, "x", "v", "c")],
            [*turn(0, "w", "b", "y", e2="consume"), emit(0, "y", "w", "c")],
            [deliver(1, "x", "c"), deliver(2, "y", "c")],
        ),
        found(
            "CLA", "warning", 12, 2, {"event": "y", "agent": "c"}, stage="delivery", conflicts=["x"]
        ),
    ),
    case(
        "cla: a problem in common makes it a notice",
        trace(
            arrive(0, "e1", None, "ab"),
            arrive(0, "e2", None, "b"),
            [*turn(0, "v", "a", "x", e1="consume"), emit(0, "x", "v", "c")],
            turn(0, "w", "b", "y1 y2 y3", e1="consume", e2="consume"),
            [emit(0, "y1", "w", "c"), emit(0, "y2", "w"), emit(0, "y3", "w")],
            [deliver(1, "x", "c"), deliver(2, "y1", "c")],
        ),
        found(
            "CLA",
            "notice",
            15,
            2,
            {"event": "y1", "agent": "c"},
            stage="delivery",
            conflicts=["x"],
        ),
    ),
    case(
        "cla: who has no problem has no other one",
        trace(
            arrive(0, "e1", None, "a"),
            [*turn(0, "u", "b", "k"), emit(0, "k", "u", "b"), deliver(0, "k", "b")],
            [*turn(0, "v", "a", "x", e1="consume"), emit(0, "x", "v", "c")],
            [*turn(0, "w", "b", "y", k="consume"), emit(0, "y", "w", "c")],
            [deliver(1, "x", "c"), deliver(2, "y", "c")],
        ),
        found(
            "CLA", "notice", 14, 2, {"event": "y", "agent": "c"}, stage="delivery", conflicts=["x"]
        ),
    ),
]


# -- usual ---


def lost(name: str, t: int, severity: str = "error", **keys: Any) -> Any:
    """An OE of an event lost at second 0, whose window is over at second 1."""
    return found("OE", severity, t, 1, event(name), cause="no_recipient", **keys)


def losses(count: int, runs: int, *counts: int, pattern: str = "OE", **keys: Any) -> list[Row]:
    """Events `e1`, `e2` and so on, of which each is lost at once, in a run that knows the usual."""
    usual = {"runs": runs, "counts": {pattern: list(counts)}}
    events = [emit(0, f"e{n}", None) for n in range(1, count + 1)]
    return trace(*events, look(9), limits={"oe_window_s": 1}, usual=usual, **keys)


USUALS = [
    case(
        "usual: the j-th finding is measured by the j-th count",
        losses(3, 39, 20, 2, 1),
        lost("e1", 3, "notice"),
        lost("e2", 3, "notice"),
        lost("e3", 3),
    ),
    case("usual: a share of a twentieth is not more than that", losses(1, 19), lost("e1", 1)),
    case(
        "usual: beyond its list a count is zero",
        losses(2, 19, 19),
        lost("e1", 2, "notice"),
        lost("e2", 2),
    ),
    case("usual: with fewer than nineteen runs nothing is", losses(1, 18, 18), lost("e1", 1)),
    case(
        "usual: with nineteen runs one of them is enough", losses(1, 19, 1), lost("e1", 1, "notice")
    ),
    case(
        "usual: another pattern's counts do not matter",
        losses(1, 39, 39, pattern="DL"),
        lost("e1", 1),
    ),
    case(
        "usual: in a session each problem is counted by itself",
        losses(2, 39, 39, session=True),
        lost("e1", 2, "notice"),
        lost("e2", 2, "notice"),
    ),
    case(
        "usual: in a session what goes back to the same problems is counted together",
        trace(
            [*arrive(0, "p", None, "a"), *arrive(0, "q", None, "b")],
            [*turn(0, "v", "a", "x y", p="consume"), emit(0, "x", "v"), emit(0, "y", "v", "c")],
            [
                *turn(0, "w", "b", "z k", q="consume"),
                emit(0, "z", "w", "c"),
                emit(0, "k", "w", "c", "notice"),
            ],
            [deliver(0, "y", "c"), deliver(0, "z", "c")],
            turn(0, "u", "c", "m1 m2 m3", y="consume", z="consume"),
            [emit(0, "m1", "u"), emit(0, "m2", "u", "c", "notice")],
            emit(0, "m3", "u", "c", "notice"),
            look(9),
            session=True,
            limits={"oe_window_s": 1},
            usual={
                "runs": 39,
                "counts": {"OE": [39], "CLA delivery": [39], "CLA consumption": [39], "CLA": [39]},
            },
        ),
        found(
            "CLA", "notice", 14, 0, {"event": "z", "agent": "c"}, stage="delivery", conflicts=["y"]
        ),
        found("CLA", "notice", 16, 0, run_of("u"), stage="consumption", conflicts=[["y", "z"]]),
        lost("x", 19, "notice"),
        lost("m1", 19, "notice"),
    ),
    case(
        "usual: early answers are counted by the types of what they leave behind",
        trace(
            arrive(0, "e", None, "a"),
            [*turn(0, "v", "a", "y x n", e="consume"), emit(0, "y", "v", "b", "solution")],
            [emit(0, "x", "v", "b"), emit(0, "n", "v", "b")],
            answer(1, "w", "c", "f", ""),
            limits={"coverage": False},
            usual={"runs": 39, "counts": {"ET problem,solution": [39], "ET": [39]}},
        ),
        et(10, 1, "notice", unresolved=["y", "x", "n"]),
    ),
    case(
        "usual: a late early answer of other types is not",
        stray(usual={"runs": 39, "counts": {"ET": [39], "ET message": [39]}}),
        repeated(8, 2),
        et(9, 2, "warning", unresolved=["x"]),
    ),
    case(
        "usual: the stages of a pattern are counted by themselves",
        trace(
            [start(0, "u", "a"), end(0, "u") | {"error": "x"}],
            usual={"runs": 39, "counts": {"FAIL": [39], "FAIL answer": [39]}},
        ),
        found("FAIL", "notice", 2, 0, run_of("u"), stage="turn", agent="a", error="x"),
    ),
    case(
        "usual: in a session what has no problem is counted together",
        trace(
            [*turn(0, "v", "a", "x y"), emit(0, "x", "v"), emit(0, "y", "v")],
            look(9),
            session=True,
            limits={"oe_window_s": 1},
            usual={"runs": 39, "counts": {"OE": [39]}},
        ),
        lost("x", 4, "notice"),
        lost("y", 4),
    ),
    case(
        "usual: a usual early answer is no error that another could leave behind",
        stray(
            deliver(3, "f", None),
            limits={"coverage": False},
            usual={"runs": 39, "counts": {"ET problem": [39]}},
        ),
        repeated(8, 2),
        et(9, 2, "notice", unresolved=["x"], mended=True),
    ),
]


# -- mended ---


def deadlock(*last: Row | list[Row], **keys: Any) -> list[Row]:
    """`e` lies with `a` from second 0 on; DL is raised at second 2, in row 2 or 4 of a session."""
    return trace(arrive(0, "e", None, "a"), *last, limits={"dl_window_s": 2}, **keys)


def stuck(mended: bool, t: int = 2, about: Row | None = None) -> Any:
    return found("DL", "error", t, 2, about or {}, waiting={"a": ["e"]}, mended=mended)


MENDED = [
    case(
        "mended: an orphan that was consumed later",
        trace(
            emit(0, "e", None),
            row(2, "redirect", event="e", to=["a"]),
            deliver(2, "e", "a"),
            turn(3, "v", "a", e="consume"),
            limits={"oe_window_s": 1},
        ),
        lost("e", 1, mended=True),
    ),
    case(
        "mended: an orphan that was only found again is not",
        trace(
            emit(0, "e", None),
            row(2, "redirect", event="e", to=["a"]),
            deliver(2, "e", "a"),
            limits={"oe_window_s": 1},
        ),
        lost("e", 1),
    ),
    case(
        "mended: a deadlock in which somebody used work",
        deadlock(turn(3, "v", "a", e="consume")),
        stuck(True),
    ),
    case(
        "mended: a deadlock in which somebody spoke",
        deadlock([start(3, "v", "a", "e"), end(3, "v", "n")], emit(3, "n", "v", "", "notice")),
        stuck(True),
    ),
    case(
        "mended: a deadlock in which a note was read is not",
        deadlock(arrive(3, "s", "system", "a"), turn(3, "v", "a", e="delay", s="consume")),
        stuck(False),
    ),
    case(
        "mended: a deadlock by what concerns the same problem",
        deadlock(
            arrive(0, "k", None, "b"),
            turn(3, "v", "b", k="consume"),
            row(5, "finish", outcome="stopped"),
            session=True,
        ),
        stuck(False, 4, event("e")),
        found("DL", "error", 4, 2, event("k"), waiting={"b": ["k"]}, mended=True),
    ),
    case(
        "mended: a missing answer, by any final event that comes later",
        trace(
            arrive(0, "e", None, "a"),
            turn(0, "v", "a", e="consume"),
            [*turn(5, "w", "b", "f"), final(5, "f", "w")],
            limits={"mc_window_s": 2, "coverage": False},
        ),
        found("MC", "error", 4, 2, {}, last="v", mended=True),
    ),
    case(
        "mended: a missing answer in a session, by one to the same problem only",
        trace(
            [*arrive(0, "e", None, "a"), *arrive(0, "k", None, "b")],
            [*turn(0, "v", "a", "n", e="consume"), emit(0, "n", "v", "a", "notice")],
            turn(0, "w", "b", k="consume"),
            deliver(5, "n", "a"),
            answer(5, "u", "a", "f", "n"),
            session=True,
            limits={"mc_window_s": 2},
        ),
        found("MC", "error", 9, 2, event("e"), last="v", mended=True),
        found("MC", "error", 9, 2, event("k"), last="w"),
    ),
    case(
        "mended: a stall whose work another used",
        trace(
            stints(5),
            [*arrive(10, "e", None, "ab"), start(10, "v", "a", "e")],
            turn(15, "w", "b", e="consume"),
            limits=EAGER,
        ),
        found(
            "STALL", "error", 24, 12, run_of("v"), agent="a", limit_s=2, inputs=["e"], mended=True
        ),
    ),
    case(
        "mended: a stall that ends with an error is not, nor one that was cut off",
        trace(
            stints(5, "a"),
            [start(10, "v", "a"), end(15, "v") | {"error": "timed out"}],
            start(20, "w", "a"),
            row(30, "leave", agent="a"),
            limits=EAGER,
        ),
        found("STALL", "error", 21, 12, run_of("v"), agent="a", limit_s=2, inputs=[]),
        found("FAIL", "notice", 22, 15, run_of("v"), stage="turn", agent="a", error="timed out"),
        found("STALL", "error", 23, 22, run_of("w"), agent="a", limit_s=2, inputs=[]),
    ),
    case(
        "mended: what was said again and again, once an answer is accepted",
        trace(
            [*turn(0, "v", "a", "x"), emit(0, "x", "v") | {"payload": 1}],
            [*turn(0, "u", "a", "y"), emit(0, "y", "u") | {"payload": 1}],
            arrive(1, "e", None, "a"),
            answer(2, "w", "a", "f", "e"),
            deliver(3, "f", None),
            limits={"loop_limit": 2},
        ),
        found("LOOP", "warning", 6, 0, event("y"), count=2, last="x", mended=True),
    ),
    case(
        "mended: not in a session without a common problem",
        trace(
            [*turn(0, "v", "a", "x"), emit(0, "x", "v") | {"payload": 1}],
            [*turn(0, "u", "a", "y"), emit(0, "y", "u") | {"payload": 1}],
            arrive(1, "e", None, "a"),
            answer(2, "w", "a", "f", "e"),
            deliver(3, "f", None),
            session=True,
            limits={"loop_limit": 2},
        ),
        found("LOOP", "warning", 6, 0, event("y"), count=2, last="x"),
    ),
    case(
        "mended: going round, in a session by an answer to a problem that was seen",
        trace(
            arrive(0, "e", None, "a"),
            [*turn(1, "v", "a", "x", e="consume"), emit(1, "x", "v", "b"), deliver(1, "x", "b")],
            [*turn(2, "w", "b", "y", x="consume"), emit(2, "y", "w", "a", "notice")],
            [deliver(2, "y", "a"), *answer(3, "u", "a", "f", "y"), deliver(3, "f", None)],
            session=True,
            limits={"livelock_turns": 2},
        ),
        found(
            "LIVELOCK",
            "notice",
            8,
            2,
            run_of("w"),
            agents=["a", "b"],
            turns=2,
            origin="v",
            mended=True,
        ),
    ),
]


# -- bounded evidence, and order ---

MANY = [f"k{n}" for n in range(101)]


def many(count: int) -> list[Row]:
    """An answer, in row 5, while so many other problems are open, and so many deliveries later."""
    posed = [emit(0, name, None, "b") for name in MANY[:count]]
    arrived = [deliver(0, name, "b") for name in MANY[:count]]
    return [*posed, *answer(0, "v", "a", "f", "e"), *arrived, look(9)]


CROWD = [f"agent {n}" for n in range(102)]


def solved(n: int) -> list[Row]:
    """Two rows: agent n answers what all were asked. The first does so in rows 206 and 207."""
    return [end(0, f"v{n}", f"x{n}", e="consume"), emit(0, f"x{n}", f"v{n}")]


def repeats(n: int, before: range, **keys: Any) -> Any:
    shared = [{"event": "e", "activations": [f"v{m}" for m in before]}]
    return found("RSP", "notice", 206 + 2 * n, 0, run_of(f"v{n}"), shared=shared, **keys)


BOUNDED = [
    case(
        "bounded: conflicts at a delivery",
        trace(
            [*arrive(0, "e1", None, "a"), *arrive(0, "e2", None, "b")],
            turn(1, "v", "a", " ".join(f"x{i}" for i in range(101)), e1="consume"),
            [emit(1, f"x{i}", "v", "c", "notice") for i in range(101)],
            [deliver(1, f"x{i}", "c") for i in range(101)],
            [*turn(2, "w", "b", "y", e2="consume"), *arrive(2, "y", "w", "c", "notice")],
        ),
        found(
            "CLA",
            "warning",
            212,
            2,
            {"event": "y", "agent": "c"},
            stage="delivery",
            conflicts=[f"x{i}" for i in range(100)],
            more=True,
        ),
    ),
    case(
        "bounded: a hundred items are all told",
        trace(arrive(0, "e", None, "a"), many(100), limits={"dl_window_s": 1}),
        et(105, 0, "error", unresolved=MANY[:100]),
        found("DL", "error", 205, 1, {}, waiting={"b": MANY[:100]}),
    ),
    case(
        "bounded: of more a hundred are told, and that there are more",
        trace(arrive(0, "e", None, "a"), many(101), limits={"dl_window_s": 1}),
        et(106, 0, "error", unresolved=MANY[:100], more=True),
        found("DL", "error", 207, 1, {}, waiting={"b": MANY[:100]}, more=True),
    ),
    case(
        "bounded: a list within a list",
        trace(
            emit(0, "e", None) | {"to": CROWD},
            [deliver(0, "e", name) for name in CROWD],
            [start(0, f"v{n}", name, "e") for n, name in enumerate(CROWD)],
            [one for n in range(len(CROWD)) for one in solved(n)],
            agents=CROWD,
        ),
        *[repeats(n, range(n)) for n in range(1, 101)],
        repeats(101, range(100), more=True),
    ),
    case(
        "order: er, then stall, then the orphan, all of one record and moment",
        trace(
            [*stints(4, "a"), emit(8, "k", None)],
            [*arrive(8, "e", None, "b"), *turn(8, "r1", "b", e=("a",)), deliver(8, "e", "a")],
            [*arrive(8, "n", None, "c", "notice"), start(8, "v", "a#2")],
            [start(8, "r2", "a", "e"), end(12, "r2", e=("z",))],
            look(12),
            agents=["a", "a#2", "b", "c"],
            limits={"reroute_limit": 1, "stall_factor": 1, "stall_min_s": 0.5, "oe_window_s": 9},
        ),
        found("ER", "notice", 27, 12, event("e"), path=["b", "a"]),
        found("STALL", "error", 27, 12, run_of("v"), agent="a#2", limit_s=4, inputs=[]),
    ),
    case(
        "order: of one moment first the stall, then MC, then what is late",
        trace(
            stints(5),
            [emit(10, "k", None, "b", "notice"), start(10, "v", "a")],
            [emit(10, "e", None, "c"), look(13)],
            limits=EAGER | {"late_window_s": 2},
        ),
        found("STALL", "error", 23, 12, run_of("v"), agent="a", limit_s=2, inputs=[]),
        found("LATE", "error", 23, 12, event("e"), to=["c"]),
    ),
]
