"""Traces of runs that failed, written by hand, with the findings of FAIL that a monitor recorded.

A planner asks `hotels`, `flights` and a writer. `hotels` raises; `flights` is called off, the
planner passes the error on, and the writer never begins.
"""

from __future__ import annotations

from typing import Any

from tests.histories import deliver, emit, final, row, start, trace
from tests.oracle import Row

ERROR = "ValueError: the hotel service answered 503. Try it later"
RAISED = "`hotels` raised ValueError: the hotel service answered 503, at 0.2 s"
FAILED = f"{RAISED}; `writer` never ran"
LIMIT = "GraphRecursionError: Recursion limit of 12 reached. You can raise it"
TEAM = ("planner", "hotels", "flights", "writer")


def sent(ts: float, event: str, by: str | None, to: str, sort: str = "message") -> list[Row]:
    return [emit(ts, event, by, sort=sort) | {"to": [to]}, deliver(ts, event, to)]


def ended(ts: float, activation: str, outputs: str = "", *consumed: str, **keys: Any) -> Row:
    fates = [{"event": event, "fate": "consume"} for event in consumed]
    return row(ts, "end", activation=activation, fates=fates, outputs=outputs.split(), **keys)


def turn_failed(ts: float, activation: str, agent: str, error: str) -> Row:
    return row(
        ts, "finding", pattern="FAIL", stage="turn", severity="notice",
        subject={"activation": activation}, evidence={"agent": agent, "error": error},
    )  # fmt: skip


def request_failed(
    ts: float, how: str, event: str | None = None, activation: str | None = None,
    error: str | None = None,
) -> list[Row]:  # fmt: skip
    """The incident, and the finding that it raises."""
    named = {"event": event, "activation": activation, "error": error}
    detail = {"how": how} | {key: one for key, one in named.items() if one is not None}
    evidence = {"how": how, "activation": activation, "error": error}
    return [
        row(ts, "incident", what="request_failed", detail=detail),
        row(ts, "finding", pattern="FAIL", stage="request", severity="error",
            subject={} if event is None else {"event": event}, evidence=evidence),
    ]  # fmt: skip


def asked(error: str = ERROR) -> list[Row]:
    """`hotels` has raised an error; the others are told of it."""
    return [
        *sent(0, "p", None, "planner", "problem"),
        start(0.1, "a1", "planner", "p"),
        ended(0.1, "a1", "x y w k", "p"),
        *(emit(0.1, event, "a1", sort="message") | {"to": [to]}
          for event, to in (("x", "hotels"), ("y", "flights"), ("w", "writer"))),
        emit(0.1, "k", "a1", sort="notice") | {"to": ["planner"]},
        deliver(0.1, "x", "hotels"), deliver(0.1, "y", "flights"), deliver(0.1, "w", "writer"),
        deliver(0.1, "k", "planner"),
        start(0.1, "a4", "hotels", "x"),
        start(0.1, "a5", "flights", "y"),
        start(0.2, "a6", "planner", "k"),
        ended(0.2, "a4", error=error),
        turn_failed(0.2, "a4", "hotels", error),
        ended(0.2, "a5", error="CancelledError", cancelled=True),
        ended(0.2, "a6", error=error, because="a4"),
    ]  # fmt: skip


def failed(error: str = ERROR, *, session: bool = False, **keys: Any) -> list[Row]:
    """The request fails by the error."""
    return trace(
        asked(error),
        request_failed(0.2, "error", "p", "a4", error),
        row(0.3, "finish", outcome="stopped" if session else "error"),
        agents=TEAM, session=session, patterns=2, **keys,
    )  # fmt: skip


def at_limit(how: str = "limit", error: str = LIMIT) -> list[Row]:
    """A writer and a critic talk, until the framework or the time limit ends that."""
    talk = [*sent(0, "p", None, "writer", "problem")]
    for number in range(4):
        agent, other = ("writer", "critic") if number % 2 == 0 else ("critic", "writer")
        event = f"m{number}" if number else "p"
        talk += [
            start(number + 1, f"a{number}", agent, event),
            ended(number + 1, f"a{number}", f"m{number + 1}", event),
            *sent(number + 1, f"m{number + 1}", f"a{number}", other),
        ]
    if how == "timeout":
        talk.append(start(5, "a4", "writer", "m4"))
    return trace(
        talk, request_failed(60, how, "p", None, error if how == "limit" else None),
        row(60, "finish", outcome="stopped" if how == "limit" else "timeout"),
        agents=("writer", "critic"), patterns=2,
    )  # fmt: skip


def partial(error: str = "ConnectionError: no route to the shop") -> list[Row]:
    """An answer is accepted although `prices` raised, and nobody made it good."""
    return trace(
        sent(0, "p", None, "planner", "problem"),
        start(0, "a1", "planner", "p"),
        ended(0, "a1", "x", "p"),
        sent(0, "x", "a1", "prices"),
        start(0, "a2", "prices", "x"),
        ended(1, "a2", "r", "x", error=error),
        turn_failed(1, "a2", "prices", error),
        sent(1, "r", "a2", "planner"),
        start(2, "a3", "planner", "r"),
        ended(2, "a3", "f", "r"),
        final(2, "f", "a3"),
        row(2, "finding", pattern="FAIL", stage="answer", severity="warning",
            subject={"event": "f"}, evidence={"failed": ["a2"]}),
        deliver(2, "f", None),
        row(2, "finish", outcome="submitted"),
        agents=("planner", "prices"), patterns=2,
    )  # fmt: skip


PARTIAL = (
    "the answer was given without the work of `prices`, which raised ConnectionError: no route "
    "to the shop"
)


def waiting(*, is_resumed: bool = False) -> list[Row]:
    """A buyer waits for a person to approve; it goes on, or does not."""
    rest = [ended(9, "a1", "", "p")] if is_resumed else []
    bought = emit(1, "p", None, sort="problem") | {"to": ["buyer"], "payload": "Buy the tickets."}
    return trace(
        bought,
        deliver(1, "p", "buyer"),
        start(2, "a1", "buyer", "p"),
        row(3.5, "incident", what="waits", detail={"activation": "a1"}),
        rest,
        agents=("buyer",), session=True, patterns=2,
    )  # fmt: skip
