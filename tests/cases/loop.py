"""LOOP: an agent says the same again and again."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from tests.histories import arrive, deliver, emit, end, row, start, trace, turn
from tests.oracle import Row

from .case import case, event, found

TWICE = {"loop_limit": 2}


def says(n: int, payload: Any, agent: str = "a", inputs: str = "", /, **keys: Any) -> list[Row]:
    """Three rows: at second n, an agent consumes its buffer and says something in event `xn`."""
    fates = dict.fromkeys(inputs.split(), "consume")
    said = emit(n, f"x{n}", f"v{n}") | {"payload": payload} | keys
    return [*turn(n, f"v{n}", agent, f"x{n}", **fates), said]


def given(ts: float, name: str, to: str, payload: Any, by: str | None = None) -> list[Row]:
    """Two rows: an event with a payload, of a type that is no work."""
    first, *rest = arrive(ts, name, by, to, "notice")
    return [first | {"payload": payload}, *rest]


def again(t: int, n: int, last: str, count: int, severity: str = "warning") -> Any:
    return found("LOOP", severity, t, n, event(f"x{n}"), count=count, last=last)


def heard(name: str, by: str) -> Row:
    """A notice to `a` that says the same as all others."""
    return emit(0, name, by, "a", "notice") | {"payload": "y"}


TAKEN = enumerate([1, 3, 5, 2, 4, 6], 1)
"""The notices in the order in which `a` says something to them."""


def spoken(*turns: Iterable[int]) -> list[Row]:
    """Activations that say all this, in events `x0`, `x1` and so on."""
    rows: list[Row] = []
    events = (f"x{n}" for n in count())
    for n, payloads in enumerate(turns):
        said = [emit(0, next(events), f"v{n}", "b") | {"payload": p} for p in payloads]
        rows += [*turn(0, f"v{n}", "a", " ".join(one["event"] for one in said)), *said]
    return trace(rows, limits=TWICE)


def told(ts: float, name: str, agent: str, to: list[str], sort: str = "notice") -> list[Row]:
    """Three rows: an agent says its name to some, to itself for instance."""
    said = emit(ts, name, f"u{name}", "", sort) | {"to": to, "payload": name}
    return [*turn(ts, f"u{name}", agent, name), said]


UNLIKE = [
    (2, "a", ["a", "b"], "notice"),
    (3, "a", [], "notice"),
    (4, "b", ["a"], "notice"),
    (5, "a", ["a"], "message"),
]


LOOPS = [
    case(
        "loop: raised at the limit, twice and four times as much, the last as an error",
        trace(*[says(n, "hi") for n in range(1, 10)], limits=TWICE),
        again(6, 2, "x1", 2),
        again(12, 4, "x3", 4),
        again(24, 8, "x7", 8, "error"),
    ),
    case(
        "loop: at a limit of three the third and the sixth",
        trace(*[says(n, 7) for n in range(1, 8)], limits={"loop_limit": 3}),
        again(9, 3, "x2", 3),
        again(18, 6, "x5", 6),
    ),
    case("loop: off without a limit", trace(*[says(n, "hi") for n in range(1, 9)])),
    case(
        "loop: the order of keys is no difference",
        trace(
            says(1, {"a": {"b": 1, "c": 2}, "d": []}),
            says(2, {"d": [], "a": {"c": 2, "b": 1}}),
            limits=TWICE,
        ),
        again(6, 2, "x1", 2),
    ),
    case(
        "loop: nor is it without an object within",
        trace(says(1, {"a": 1, "b": [2]}), says(2, {"b": [2], "a": 1}), limits=TWICE),
        again(6, 2, "x1", 2),
    ),
    case(
        "loop: an object is no list of its members",
        trace(says(1, {"a": 1}), says(2, [["a", 1]]), says(3, '[["a",1]]'), limits=TWICE),
    ),
    case(
        "loop: another payload, type, order of recipients or agent is a difference",
        trace(
            says(1, "hi", to=["b", "z"]),
            says(2, "ho", to=["b", "z"]),
            says(3, "hi", to=["z", "b"]),
            says(4, "hi", to=["b", "z"], type="message"),
            says(5, "hi", "b", to=["b", "z"]),
            says(6, ["hi"], to=["b", "z"]),
            limits=TWICE,
        ),
    ),
    case(
        "loop: as JSON text, 1 is not 1.0 and not true",
        trace(says(1, 1), says(2, 1.0), says(3, True), says(4, "1"), limits=TWICE),
    ),
    case(
        "loop: nor is it within a list",
        trace(says(1, [1]), says(2, [True]), says(3, [1.0]), says(4, [1]), limits=TWICE),
        again(12, 4, "x1", 2),
    ),
    case(
        "loop: numbers in a list that Python hashes alike are different",
        trace(*[says(n, [x]) for n, x in enumerate([-1, -2, 0, 2**61 - 1, 2**70])], limits=TWICE),
    ),
    case(
        "loop: null is not counted",
        trace(says(1, None), says(2, None), limits=TWICE),
    ),
    case(
        "loop: what is not given is not counted",
        trace(
            turn(1, "v1", "a", "x1"),
            emit(1, "x1", "v1"),
            turn(2, "v2", "a", "x2"),
            emit(2, "x2", "v2"),
            limits=TWICE,
        ),
    ),
    case(
        "loop: an object with an own key that begins with $ is not counted",
        trace(says(1, {"$cut": "ab", "n": 1}), says(2, {"$cut": "ab", "n": 1}), limits=TWICE),
    ),
    case(
        "loop: such a key deeper inside, or an empty object, is counted",
        trace(
            says(1, {"n": {"$cut": "ab"}}),
            says(2, {"n": {"$cut": "ab"}}),
            says(3, {}),
            says(4, {}),
            says(5, [{"$cut": "ab"}]),
            says(6, [{"$cut": "ab"}]),
            limits=TWICE,
        ),
        again(6, 2, "x1", 2),
        again(12, 4, "x3", 2),
        again(18, 6, "x5", 2),
    ),
    case(
        "loop: what it was said to is compared, in any order and without system events",
        trace(
            given(0, "p1", "a", "p"),
            given(0, "q1", "a", "q"),
            says(1, "hi", "a", "p1 q1"),
            given(1, "q2", "a", "q"),
            given(1, "s", "a", "note", "system"),
            given(1, "p2", "a", "p"),
            says(2, "hi", "a", "q2 s p2"),
            limits=TWICE,
        ),
        again(16, 2, "x1", 2),
    ),
    case(
        "loop: the same thing twice is another multiset of inputs",
        trace(
            given(0, "p1", "a", "p"),
            says(1, "hi", "a", "p1"),
            given(1, "p2", "a", "p"),
            given(1, "p3", "a", "p"),
            says(2, "hi", "a", "p2 p3"),
            says(3, "hi"),
            limits=TWICE,
        ),
    ),
    case(
        "loop: an input without a payload that may be compared is not counted",
        trace(
            given(0, "p1", "a", {"$too_large": 9}),
            says(1, "hi", "a", "p1"),
            given(1, "p2", "a", {"$too_large": 9}),
            says(2, "hi", "a", "p2"),
            given(2, "p3", "a", None),
            says(3, "hi", "a", "p3"),
            given(3, "p4", "a", None),
            says(4, "hi", "a", "p4"),
            limits=TWICE,
        ),
    ),
    case(
        "loop: delayed inputs leave the message comparable",
        trace(
            given(0, "p1", "a", None),
            [start(1, "v1", "a", "p1"), end(1, "v1", "x1")],
            emit(1, "x1", "v1") | {"payload": "hi"},
            [start(2, "v2", "a", "p1"), end(2, "v2", "x2")],
            emit(2, "x2", "v2") | {"payload": "hi"},
            limits=TWICE,
        ),
        again(8, 2, "x1", 2),
    ),
    case(
        "loop: instances count as their agent, as recipients too",
        trace(
            says(1, "hi", "a", to=["b"]),
            says(2, "hi", "a#2", to=["b#12"]),
            agents=["a", "a#2"],
            limits=TWICE,
        ),
        again(6, 2, "x1", 2),
    ),
    case(
        "loop: a name that ends otherwise is no instance",
        trace(
            says(1, "hi", "a", to=["b"]),
            says(2, "hi", "a#2x", to=["b"]),
            says(3, "hi", "a", to=["b#"]),
            agents=["a", "a#2x"],
            limits=TWICE,
        ),
    ),
    case(
        "loop: notices and answers are not counted",
        trace(
            says(1, "hi", type="notice"),
            says(2, "hi", type="notice"),
            says(3, "hi", final=True),
            says(4, "hi", final=True),
            limits=TWICE,
        ),
    ),
    case(
        "loop: in a session each problem is counted by itself",
        trace(
            given(0, "p1", "a", "p"),
            says(1, "hi", "a", "p1"),
            given(1, "p2", "a", "p"),
            says(2, "hi", "a", "p2"),
            session=True,
            limits=TWICE,
        ),
    ),
    case(
        "loop: in a session what goes back to more problems is another message",
        trace(
            *[given(0, "p1", "bc", "p"), turn(0, "w1", "b", "y1 y2", p1="consume")],
            *[heard("y1", "w1"), heard("y2", "w1")],
            *[given(0, "p2", "bc", "p"), turn(0, "w2", "b", "y3 y4", p2="consume")],
            *[heard("y3", "w2"), heard("y4", "w2")],
            turn(0, "w3", "c", "y5 y6 y7", p1="consume", p2="consume"),
            *[heard("y5", "w3"), heard("y6", "w3"), heard("y7", "w3")],
            *[[deliver(n, f"y{m}", "a"), *says(n, "hi", "a", f"y{m}")] for n, m in TAKEN],
            session=True,
            limits=TWICE,
        ),
        again(35, 4, "x1", 2),
        again(39, 5, "x2", 2),
        again(43, 6, "x3", 2),
    ),
    case(
        "loop: in a session what has no source is counted together",
        trace(says(1, "hi"), says(2, "hi"), session=True, limits=TWICE),
        again(6, 2, "x1", 2),
    ),
    case(
        "loop: of what one activation says the same of the first counts, the others not at all",
        spoken([1, 1, 2, 1], [1], [1, 1], [1]),
        found("LOOP", "warning", 9, 0, event("x4"), count=2, last="x0"),
        found("LOOP", "warning", 16, 0, event("x7"), count=4, last="x5"),
    ),
    case(
        "loop: what was given before does not matter, wherever it stands",
        trace(
            says(1, {"a": [{"$given": 1, "$new": "hi"}]}),
            says(2, {"a": [{"$new": {"$given": {"$cut": 2}, "$new": "hi"}, "$given": 2}]}),
            says(3, {"a": [{"$given": 1, "$new": "hi", "more": 1}]}),
            says(4, {"a": ["hi"]}),
            says(5, {"a": ["hi"]}),
            limits=TWICE,
        ),
        again(6, 2, "x1", 2),
        again(15, 5, "x4", 4),
    ),
    case(
        "loop: what is new has to be whole, and something",
        trace(
            *[says(n, {"$given": 1, "$new": None}) for n in (1, 2)],
            *[says(n, {"$given": 1, "$new": {"$cut": 1}}) for n in (3, 4)],
            *[says(n, {"$new": "hi"}) for n in (5, 6)],
            limits=TWICE,
        ),
    ),
    case(
        "loop: a notice to oneself alone is a continuation, and no input",
        trace(
            says(1, "hi"),
            told(2, "k", "a#2", ["a", "a#2"]),
            deliver(2, "k", "a"),
            says(3, "hi", "a", "k"),
            agents=["a", "a#2"],
            limits=TWICE,
        ),
        again(10, 3, "x1", 2),
    ),
    case(
        "loop: a notice to others, to nobody, by others, or that is work, is an input",
        trace(
            says(1, "hi"),
            *[told(n, f"k{n}", by, to, sort) for n, by, to, sort in UNLIKE],
            row(6, "redirect", event="k3", to=["a"]),
            *[
                [deliver(n + 5, f"k{n}", "a"), *says(n + 5, "hi", "a", f"k{n}")]
                for n in range(2, 6)
            ],
            limits=TWICE,
        ),
    ),
    case(
        "loop: a message is among the latest thousand",
        spoken([0], range(1, 1000), [0]),
        found("LOOP", "warning", 1007, 0, event("x1000"), count=2, last="x0"),
    ),
    case(
        "loop: a message that a thousand others followed is forgotten",
        spoken([0], range(1, 1001), [0]),
    ),
    case(
        "loop: a message that is said again is among the latest again",
        spoken([0], range(1, 999), [0], [999, 1000], [0], [0]),
        found("LOOP", "warning", 1006, 0, event("x999"), count=2, last="x0"),
        found("LOOP", "warning", 1016, 0, event("x1003"), count=4, last="x1002"),
    ),
]
