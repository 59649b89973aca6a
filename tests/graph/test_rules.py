"""Which record may follow which: every rule, with the message that names what broke it."""

from __future__ import annotations

from typing import Any

import pytest

from dig.errors import RuleError
from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph
from tests.histories import arrive, deliver, emit, end, final, row, start, trace, turn
from tests.oracle import Row

RUN = row(0, "run", version=1, run="again", agents=["a"])
ASIDE = row(1, "incident", what="x", detail=None)
FINDING = row(1, "finding", pattern="ET", stage=None, subject={}, evidence={})
ANSWER = [*arrive(0, "e", None, "a"), *turn(1, "v", "a", "f", e="consume"), final(1, "f", "v")]
SPLIT = [*arrive(0, "e", None, "a"), *turn(1, "v", "a", "x y", e="consume")]


def fail(ts: float, activation: str, **whose: Any) -> Row:
    return end(ts, activation) | {"error": "no", **whose}


FAILED = [start(0, "v", "a"), fail(0, "v")]


def heal(finding: Any) -> Row:
    return row(1, "heal", finding=finding, action="inject", event="e", note="n")


BROKEN: list[tuple[str, list[Row]]] = [
    # What holds for every record.
    ("`ts` falls from 2.0 to 1.999999", [emit(2, "e", None), emit(1.999999, "x", None)]),
    ("the first record must be of kind `run`, and no other", [RUN]),
    ("no record may follow `finish`", [row(1, "finish", outcome="error"), ASIDE]),
    # Ids and names.
    ("`system` can be nobody's id", [emit(0, "system", None)]),
    ("`system` can be nobody's id", [start(0, "system", "a")]),
    ("`system` can be nobody's id", [start(0, "v", "a"), end(0, "v", "system")]),
    ("`system` can be nobody's id", [row(0, "join", agent="system")]),
    ("the id 'e' is used for a second thing", [emit(0, "e", None), emit(0, "e", None)]),
    ("the id 'v' is used for a second thing", [start(0, "v", "a"), emit(0, "v", None)]),
    ("the id 'v' is used for a second thing", [start(0, "v", "a"), start(0, "v", "b")]),
    ("the id 'v' is used for a second thing", [start(0, "v", "a"), end(0, "v", "v")]),
    ("the id 'e' is used for a second thing", [*SPLIT[:3], end(1, "v", "e")]),
    # Agents that come and go.
    ("agent 'a' is present already", [row(0, "join", agent="a")]),
    ("agent 'z' is not present", [row(0, "leave", agent="z")]),
    ("agent 'z' is not present", [start(0, "v", "z")]),
    # Events, from their generation to their delivery.
    ("'x' is not an output that the `end` of 'v' names", [start(0, "v", "a"), emit(0, "x", "v")]),
    ("'x' is not an output that the `end` of 'nobody' names", [emit(0, "x", "nobody")]),
    ("only an activation's sole output may be final", [emit(0, "f", None) | {"final": True}]),
    ("only an activation's sole output may be final", [emit(0, "f", "system") | {"final": True}]),
    ("only an activation's sole output may be final", [*SPLIT, final(1, "x", "v")]),
    ("there is no event 'x'", [deliver(0, "x", "a")]),
    ("there is no event 'v'", [start(0, "v", "a"), row(0, "expire", event="v")]),
    ("there is no event 'x'", [row(0, "redirect", event="x", to=["a"])]),
    ("'e' is not on its way to 'b'", [emit(0, "e", None, "a"), deliver(0, "e", "b")]),
    ("'e' is not on its way to 'a'", [*arrive(0, "e", None, "a"), deliver(0, "e", "a")]),
    (
        "'e' is no final event, so it cannot be accepted",
        [emit(0, "e", None, "a"), deliver(0, "e", None)],
    ),
    (
        "'f' was bounced, so it cannot be accepted",
        [
            *ANSWER,
            row(1, "redirect", event="f", to=["a"]),
            deliver(1, "f", "a"),
            deliver(1, "f", None),
        ],
    ),
    # Activations.
    ("agent 'a' is busy with 'v'", [start(0, "v", "a"), start(0, "w", "a")]),
    (
        "`inputs` must be the buffer of 'a' in order: 'e', 'x'",
        [*arrive(0, "e", None, "a"), *arrive(0, "x", None, "a"), start(0, "v", "a", "x e")],
    ),
    ("`inputs` must be the buffer of 'a' in order: nothing", [start(0, "v", "a", "x")]),
    ("'v' is not an activation in progress", [end(0, "v")]),
    ("'v' is not an activation in progress", [*turn(0, "v", "a"), end(0, "v")]),
    (
        "'v' is not an activation in progress",
        [start(0, "v", "a"), row(0, "leave", agent="a"), end(0, "v")],
    ),
    (
        "'x' has a second fate, or is no input of 'v'",
        [emit(0, "x", None, "a"), start(0, "v", "a"), end(0, "v", x="consume")],
    ),
    ("`outputs` names an event twice", [start(0, "v", "a"), end(0, "v", "x x")]),
    # Outputs that are awaited.
    ("the `emit` of output 'x' must come first", [*SPLIT, emit(1, "y", "v")]),
    ("the `emit` of output 'y' must come first", [*SPLIT, emit(1, "x", "v"), deliver(1, "e", "b")]),
    ("the `emit` of output 'x' must come first", [*SPLIT, row(1, "finish", outcome="error")]),
    ("'x' is an output of 'v', not of None", [*SPLIT, emit(1, "x", None)]),
    ("'x' is an output of 'v', not of 'system'", [*SPLIT, emit(1, "x", "system")]),
    # What was seen and done.
    ("`finding` must be the `t` of an earlier record of kind `finding`", [FINDING, heal(0)]),
    ("`finding` must be the `t` of an earlier record of kind `finding`", [heal(1), FINDING]),
    ("`finding` must be the `t` of an earlier record of kind `finding`", [FINDING, heal(True)]),
    # The end.
    (
        "no `join` may follow an accepted final event (this is no session)",
        [*ANSWER, deliver(1, "f", None), row(1, "join", agent="z")],
    ),
    # Whose an error is.
    (
        "`because` and `cancelled` stand only beside an `error`",
        [start(0, "v", "a"), end(0, "v") | {"cancelled": True}],
    ),
    (
        "an `error` has `because` or `cancelled`, not both",
        [*FAILED, start(1, "w", "b"), fail(1, "w", because="v", cancelled=True)],
    ),
    (
        "`because` is 'w', which is no activation that ended with an `error`",
        [start(0, "w", "b"), start(0, "v", "a"), fail(0, "v", because="w")],
    ),
    (
        "`because` is 'w', which is no activation that ended with an `error`",
        [*turn(0, "w", "b"), start(0, "v", "a"), fail(0, "v", because="w")],
    ),
    (
        "`because` is 'v', an activation of the same agent; it must be another's",
        [*FAILED, start(1, "w", "a"), fail(1, "w", because="v")],
    ),
]


@pytest.mark.parametrize(("reason", "rows"), BROKEN, ids=[reason for reason, _ in BROKEN])
def test_a_record_that_breaks_a_rule_is_refused(reason: str, rows: list[Row]) -> None:
    """The message says which rule, and names whom it is about."""
    graph = InteractionGraph()
    records = [decode(one) for one in trace(rows)]
    for record in records:
        if record is records[-1] or (reason.startswith("`finding`") and record.kind == "heal"):
            with pytest.raises(RuleError) as caught:
                graph.apply(record)
            assert str(caught.value) == reason
            return
        graph.apply(record)


def test_the_first_record_names_each_agent_once() -> None:
    """A team has no two agents of one name, and none is called `system`."""
    for agents, reason in [("aa", "`agents` names somebody twice"), (["system"], "nobody's id")]:
        with pytest.raises(RuleError, match=reason):
            InteractionGraph.of(map(decode, trace(agents=agents)))


def test_a_trace_begins_with_a_run_numbered_zero() -> None:
    """Before `run` there is nothing that another record could be about."""
    for rows, reason in [
        ([{"t": 0, **ASIDE}], "must be of kind `run`"),
        ([{"t": 1, **RUN}], "`t` is 1, but record 0 comes next"),
    ]:
        with pytest.raises(RuleError, match=reason):
            InteractionGraph.of(map(decode, rows))


def test_an_answer_is_accepted_once() -> None:
    """In a session, too, an answer goes to the environment one time."""
    rows = trace(ANSWER, deliver(1, "f", None), deliver(1, "f", None), session=True)
    with pytest.raises(RuleError, match="'f' was accepted already"):
        InteractionGraph.of(map(decode, rows))


def test_what_is_seen_and_done_may_come_at_any_moment() -> None:
    """Findings, healings and incidents stand between outputs and after an answer, too."""
    rows = trace(
        ANSWER[:-1],
        [FINDING, heal(5), ASIDE],
        ANSWER[-1],
        deliver(1, "f", None),
        [FINDING, heal(10), ASIDE],
        row(1, "finish", outcome="submitted"),
    )
    assert InteractionGraph.of(map(decode, rows)).finished is not None


def test_an_error_may_be_passed_on_or_called_off() -> None:
    """An error of another agent's earlier activation, or none of anybody's: both are told.

    An instance is another agent here: it may have asked the first one.
    """
    rows = [*FAILED, start(1, "w", "b"), fail(1, "w", because="v"), start(2, "x", "c")]
    rows += [row(2, "join", agent="a#2"), start(2, "y", "a#2"), fail(2, "y", because="v")]
    records = [decode(row) for row in trace(*rows, fail(3, "x", cancelled=True))]
    assert InteractionGraph.of(records).t == len(records) - 1
