"""FAIL and VOID: what went wrong in a turn, for an answer, or in a request; and empty answers."""

from __future__ import annotations

from typing import Any

from tests.histories import arrive, deliver, emit, end, final, row, start, trace, turn
from tests.oracle import Row

from .case import activation, case, event, failed_request, found

UNCOVERED = {"coverage": False}  # so that nothing but failures is found


def fails(ts: float, v: str, agent: str, /, error: str = "boom", **keys: Any) -> list[Row]:
    """Two rows: an activation that ends with an error; the fates are those of its buffer.

    What stands with `delay` stays in the buffer.
    """
    because: Row = {key: keys.pop(key) for key in ("because", "cancelled") if key in keys}
    begin, last = turn(ts, v, agent, **keys)
    return [begin, last | {"error": error} | because]


def failure(t: int, ts: float, v: str = "u", agent: str = "a", error: str = "boom") -> Any:
    return found("FAIL", "notice", t, ts, activation(v), stage="turn", agent=agent, error=error)


def answer(ts: float, v: str, agent: str, /, **fates: str) -> list[Row]:
    """Three rows: an agent submits `f`."""
    return [*turn(ts, v, agent, "f", **fates), final(ts, "f", v)]


def unaided(t: int, ts: float, *failed: str) -> Any:
    evidence: Row = {"failed": list(failed)}
    return found("FAIL", "warning", t, ts, event("f"), stage="answer", **evidence)


def says(event: str, payload: Any, to: str) -> list[Row]:
    """Two rows: work from outside."""
    first, *rest = arrive(0, event, None, to)
    return [first | {"payload": payload}, *rest]


def in_vain(*between: Row | list[Row], **keys: Any) -> list[Row]:
    """`a` fails with `e1`, in rows 5 and 6, then comes what is between; `b` answers `e2`."""
    return trace(
        arrive(0, "e1", None, "a"),
        arrive(0, "e2", None, "b"),
        fails(1, "u", "a", e1="delay"),
        *between,
        answer(2, "v", "b", e2="consume"),
        row(3, "redirect", event="e1", to=["c"]),
        **({"limits": UNCOVERED} | keys),
    )


def early(t: int, *unresolved: str) -> Any:
    lists: Row = {"unresolved": list(unresolved), "uncovered": []}
    return found("ET", "error", t, 2, event("f"), **lists)


TURNS = [
    case(
        "fail: a turn that ends with an error",
        trace(arrive(0, "e", None, "a"), fails(1, "u", "a", e="consume")),
        failure(4, 1),
    ),
    case(
        "fail: not one that passes an error on, nor one that was called off",
        trace(
            fails(1, "u", "a"),
            fails(2, "v", "b", because="u"),
            fails(3, "w", "c", cancelled=True),
            fails(4, "x", "c", cancelled=False),
            fails(5, "y", "c", because=None),
        ),
        failure(2, 1),
        failure(8, 4, "x", "c"),
        failure(10, 5, "y", "c"),
    ),
    case(
        "fail: an instance fails with its whole name, and passes on what another instance raised",
        trace(
            fails(1, "u", "a#2"),
            fails(2, "v", "a", because="u"),
            agents=["a", "a#2"],
        ),
        failure(2, 1, agent="a#2"),
    ),
    case(
        "fail: of the error the first two hundred characters are told",
        trace(fails(1, "u", "a", error="\U0001f600é" * 101)),
        failure(2, 1, error="\U0001f600é" * 100),
    ),
]

ANSWERS = [
    case(
        "fail: an answer though another agent failed with something else",
        in_vain(),
        failure(6, 1),
        early(9, "e1"),
        unaided(9, 2, "u"),
    ),
    case(
        "fail: made good by the activation that answers",
        trace(
            arrive(0, "e", None, "ab"),
            fails(1, "u", "a", e="delay"),
            answer(2, "v", "b", e="consume"),
        ),
        failure(5, 1),
    ),
    case(
        "fail: not made good by one that began before",
        trace(
            arrive(0, "e", None, "ab"),
            start(0, "v", "b", "e"),
            fails(1, "u", "a", e="delay"),
            [end(2, "v", "f", e="consume"), final(2, "f", "v")],
        ),
        failure(6, 1),
        unaided(8, 2, "u"),
    ),
    case(
        "fail: made good by a third agent",
        trace(
            arrive(0, "e1", None, "ac"),
            arrive(0, "e2", None, "b"),
            fails(1, "u", "a", e1="delay"),
            turn(2, "w", "c", e1="consume"),
            answer(2, "v", "b", e2="consume"),
            limits=UNCOVERED,
        ),
        failure(7, 1),
    ),
    case(
        "fail: not made good by an earlier turn of the agent that answers",
        trace(
            arrive(0, "e1", None, "ab"),
            fails(1, "u", "a", e1="delay"),
            turn(2, "w", "b", e1="consume"),
            answer(2, "v", "b"),
            limits=UNCOVERED,
        ),
        failure(5, 1),
        unaided(10, 2, "u"),
    ),
    case(
        "fail: not made good by a third agent that fails, too",
        trace(
            arrive(0, "e1", None, "ac"),
            fails(1, "u", "a", e1="delay"),
            fails(2, "w", "c", e1="consume"),
            answer(2, "v", "b"),
            limits=UNCOVERED,
        ),
        failure(5, 1),
        failure(7, 2, "w", "c"),
        unaided(10, 2, "u", "w"),
    ),
    case(
        "fail: made good by work that says the same, whatever was given before it",
        trace(
            says("e1", {"$given": 1, "$new": ["p"]}, "a"),
            says("e2", ["p"], "b"),
            fails(1, "u", "a", e1="consume"),
            answer(2, "v", "b", e2="consume"),
            limits=UNCOVERED,
        ),
        failure(6, 1),
    ),
    case(
        "fail: what is not recorded whole is not the same",
        trace(
            says("e1", {"$cut": "ab"}, "a"),
            says("e2", {"$cut": "ab"}, "b"),
            fails(1, "u", "a", e1="consume"),
            answer(2, "v", "b", e2="consume"),
            limits=UNCOVERED,
        ),
        failure(6, 1),
        unaided(9, 2, "u"),
    ),
    case(
        "fail: nor is a notice that says the same work",
        trace(
            says("e1", "p", "a"),
            [emit(0, "e2", None, "b", "notice") | {"payload": "p"}, deliver(0, "e2", "b")],
            fails(1, "u", "a", e1="consume"),
            answer(2, "v", "b", e2="consume"),
            limits=UNCOVERED,
        ),
        failure(6, 1),
        unaided(9, 2, "u"),
    ),
    case(
        "fail: one activation has to do all the work of the one that failed",
        trace(
            arrive(0, "e1", None, "ab"),
            arrive(0, "e2", None, "ac"),
            fails(1, "u", "a", e1="delay", e2="delay"),
            turn(2, "w", "c", e2="consume"),
            answer(2, "v", "b", e1="consume"),
            limits=UNCOVERED,
        ),
        failure(8, 1),
        unaided(13, 2, "u"),
    ),
    case(
        "fail: one that saw no work cannot be made good",
        trace(
            arrive(0, "k", None, "a", "notice"),
            arrive(0, "e", None, "b"),
            fails(1, "u", "a", k="consume"),
            answer(2, "v", "b", e="consume"),
        ),
        failure(6, 1),
        unaided(9, 2, "u"),
    ),
    case(
        "fail: what an agent, or an instance of it, did last counts",
        in_vain(turn(1, "w", "a#2"), agents=["a", "b", "c", "a#2"]),
        failure(6, 1),
        early(11, "e1"),
    ),
    case(
        "fail: what passes an error on, or is called off, is not what an agent did last",
        in_vain(
            fails(1, "w", "a", e1="delay", cancelled=True),
            fails(1, "x", "c"),
            fails(1, "y", "a", e1="delay", because="x"),
        ),
        failure(6, 1),
        failure(10, 1, "x", "c"),
        early(15, "e1"),
        unaided(15, 2, "u", "x"),
    ),
    case(
        "fail: an instance of the agent that answers is no other agent",
        trace(
            fails(1, "u", "b#2"),
            arrive(1, "e", None, "b"),
            answer(2, "v", "b", e="consume"),
            agents=["b", "b#2"],
        ),
        failure(2, 1, agent="b#2"),
    ),
    case(
        "fail: nor is the one that answers, though it failed itself",
        trace(
            arrive(0, "e", None, "b"),
            [start(1, "v", "b", "e"), end(2, "v", "f", e="consume") | {"error": "boom"}],
            final(2, "f", "v"),
        ),
        failure(4, 2, "v", "b"),
    ),
    case(
        "fail: in a session those that count stand in the order of their ends",
        trace(
            [
                *arrive(0, "e1", None, "ab"),
                *arrive(0, "e2", None, "bc"),
                start(0, "v", "b", "e1 e2"),
            ],
            [*fails(1, "u", "a", e1="consume"), *fails(2, "w", "c", e2="consume")],
            [*arrive(3, "e3", None, "a"), *fails(3, "x", "a", e3="consume")],
            [end(4, "v", "f", e1="consume", e2="consume"), final(4, "f", "v")],
            session=True,
        ),
        failure(9, 1),
        failure(11, 2, "w", "c"),
        failure(15, 3, "x"),
        unaided(17, 4, "u", "w"),
    ),
    case(
        "fail: in a session what has to do with another problem does not count",
        in_vain(session=True),
        failure(6, 1),
    ),
    case(
        "fail: in a session what only saw a part of the same problem counts",
        trace(
            arrive(0, "e", None, "a"),
            [
                *turn(0, "w", "a", "x y", e="consume"),
                emit(0, "x", "w", "b"),
                emit(0, "y", "w", "c"),
            ],
            [deliver(0, "x", "b"), deliver(0, "y", "c")],
            fails(1, "u", "b", x="consume"),
            answer(2, "v", "c", y="consume"),
            session=True,
            limits=UNCOVERED,
        ),
        failure(10, 1, agent="b"),
        unaided(13, 2, "u"),
    ),
]


def gave_up(t: int, ts: float, subject: Row, how: str = "error", /, **keys: Any) -> Any:
    mended = keys.pop("mended", False)
    evidence: Row = {"how": how, "activation": None, "error": None} | keys
    return found("FAIL", "error", t, ts, subject, stage="request", mended=mended, **evidence)


EVENTS: list[Any] = ["z", "k", "v", 1, ["e"]]
ACTIVATIONS: list[Any] = ["z", "e", 1, {}]
MALFORMED: list[Any] = [
    *[None, "error", [], {"event": "e"}, {"how": "error", "error": 7}],
    *[{"how": how, "event": "e"} for how in ("other", None, ["error"])],
    *[{"how": "error", "event": name} for name in EVENTS],
    *[{"how": "error", "activation": name} for name in ACTIVATIONS],
]
"""Details of incidents that say nothing: the event has to be from outside, the others known."""

REQUESTS = [
    case(
        "fail: a request that ends without an answer, once for each time that it is said",
        trace(
            arrive(0, "e", None, "a"),
            fails(1, "u", "a", e="delay"),
            failed_request(2, how="error", event="e", activation="u", error="x" * 201),
            failed_request(3, how="limit", event="e"),
            failed_request(4, how="timeout", event=None, error=""),
        ),
        failure(4, 1),
        gave_up(5, 2, event("e"), activation="u", error="x" * 200),
        gave_up(6, 3, event("e"), "limit"),
        gave_up(7, 4, {}, "timeout", error=""),
    ),
    case(
        "fail: an incident of another form says nothing about a request",
        trace(
            arrive(0, "e", None, "a"),
            [*turn(1, "v", "a", "k", e="delay"), emit(1, "k", "v", "", "notice")],
            [row(2, "incident", what="request_failed", detail=detail) for detail in MALFORMED],
        ),
    ),
    case(
        "fail: after an accepted answer, too",
        trace(
            arrive(0, "e", None, "a"),
            answer(1, "v", "a", e="consume"),
            deliver(1, "f", None),
            failed_request(2, how="error", event="e"),
        ),
        gave_up(7, 2, event("e")),
    ),
    case(
        "fail: a request is never as usual",
        trace(
            failed_request(2, how="error"),
            fails(3, "u", "a"),
            usual={"runs": 39, "counts": {"FAIL request": [39], "FAIL turn": [39], "FAIL": [39]}},
        ),
        gave_up(1, 2, {}),
        failure(3, 3),
    ),
    case(
        "fail: a request is mended in a run by any answer that is accepted later",
        trace(
            failed_request(0, how="error"),
            arrive(1, "e", None, "a"),
            answer(2, "v", "a", e="consume"),
            deliver(3, "f", None),
        ),
        gave_up(1, 0, {}, mended=True),
    ),
    case(
        "fail: in a session by one behind which its event was consumed",
        trace(
            arrive(0, "e1", None, "a"),
            arrive(0, "e2", None, "b"),
            *[failed_request(1, how="error", **about) for about in ({"event": "e1"}, {})],
            failed_request(1, how="error", event="e2"),
            answer(2, "v", "a", e1="consume"),
            deliver(3, "f", None),
            session=True,
        ),
        gave_up(5, 1, event("e1"), mended=True),
        gave_up(6, 1, {}),
        gave_up(7, 1, event("e2")),
    ),
]


def void(payload: Any, asked: Any = "What is 1 + 1?", sort: str = "problem") -> list[Row]:
    """`a` answers `e` with a payload, in row 5."""
    first, *rest = arrive(0, "e", None, "a", sort)
    said = answer(1, "v", "a", e="consume")
    return trace(first | {"payload": asked}, *rest, [*said[:2], said[2] | {"payload": payload}])


def no_answer(how: str, severity: str = "error", t: int = 5, ts: float = 1, **keys: Any) -> Any:
    return found("VOID", severity, t, ts, event("f"), how=how, **keys)


def forms(name: str, payloads: list[Any], *one: Any) -> list[Any]:
    return [case(f"void: {name}, {n}", void(payload), *one) for n, payload in enumerate(payloads)]


VOIDS = [
    *forms("nothing but blanks", ["", " \n\t", "\u2003"], no_answer("blank")),
    *forms(
        "the question, without blanks at its ends",
        ["What is 1 + 1?", "\n What is 1 + 1?  "],
        no_answer("echo", "warning"),
    ),
    *forms(
        "a call that was written down",
        ['{"name": "add", "arguments": {"a": 1}}', ' {"parameters": 3, "name": ""}\n'],
        no_answer("call"),
    ),
    *forms(
        "something else",
        [
            *[None, 0, [], {}, {"name": "add", "arguments": {}}, "what is 1 + 1?", "2"],
            *['{"name": "add", "arguments": {}, "id": 1}', '{"name": 1, "arguments": {}}', "[]"],
            *[
                '{"name": "add"}',
                '{"name": "add", "parameters": 1, "arguments": 2}',
                '{"name": "a"',
            ],
        ],
    ),
    case(
        "void: an echo of a notice, whose blanks do not count either",
        void("hello", " hello\n", "notice"),
        no_answer("echo", "warning"),
    ),
    case(
        "void: an echo of a call is an echo",
        void('{"name": "a", "arguments": 1}', '{"name": "a", "arguments": 1}'),
        no_answer("echo", "warning"),
    ),
    case(
        "void: what was asked, but not what the answer goes back to, is no echo",
        trace(
            says("e1", "one", "a"),
            says("e2", "two", "b"),
            [*(said := answer(1, "v", "a", e1="consume"))[:2], said[2] | {"payload": "two"}],
            session=True,
        ),
    ),
    case(
        "void: mended by a later answer that is one",
        trace(
            arrive(0, "e", None, "a"),
            [*(said := answer(1, "v", "a", e="consume"))[:2], said[2] | {"payload": ""}],
            [row(2, "redirect", event="f", to=["a"]), deliver(2, "f", "a")],
            [*turn(3, "w", "a", "g", f="consume"), final(3, "g", "w") | {"payload": "2"}],
            deliver(4, "g", None),
        ),
        no_answer("blank", mended=True),
    ),
    case(
        "void: not by the same answer, accepted after all",
        trace(
            arrive(0, "e", None, "a"),
            [*(said := answer(1, "v", "a", e="consume"))[:2], said[2] | {"payload": ""}],
            deliver(4, "f", None),
        ),
        no_answer("blank"),
    ),
    case(
        "void: an echo that is accepted is no error, and mended",
        trace(
            says("e", "hello", "a"),
            [*(said := answer(1, "v", "a", e="consume"))[:2], said[2] | {"payload": "hello"}],
            deliver(4, "f", None),
        ),
        no_answer("echo", "warning", mended=True),
    ),
    case(
        "void: in a session mended by an answer to what it answers by memory, too",
        trace(
            arrive(0, "e", None, "a"),
            turn(0, "u", "a", e="consume"),
            [*(said := answer(1, "v", "a"))[:2], said[2] | {"payload": ""}],
            [*turn(3, "w", "a", "g"), final(3, "g", "w") | {"payload": "2"}],
            deliver(4, "g", None),
            session=True,
            memory=True,
        ),
        no_answer("blank", t=7, mended=True),
    ),
]

FAILS = [*TURNS, *ANSWERS, *REQUESTS]
