"""Attempts: which activations of a run belong to one plan, on short traces and on random ones."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from dig.diagnosis.attempts import find_attempts
from dig.graph.codec import decode
from dig.show.document import Attempt
from dig.traces.run import RecordedRun
from tests.histories import arrive, deliver, emit, final, row, start, trace, turn
from tests.oracle import Row
from tests.strategies import traces


def recorded(*parts: Any, **keys: Any) -> RecordedRun:
    return RecordedRun(map(decode, trace(*parts, **keys)))


def plans(run: RecordedRun) -> list[tuple[str | None, str]]:
    """The plan point and the activations of each attempt."""
    some = (one for each in find_attempts(run).values() for one in each)
    return [(one.plan, " ".join(one.activations)) for one in some]


def sent(ts: float, by: str | None, **to: str) -> list[Row]:
    """Events of one activation, all emitted before the first is delivered."""
    emits = [emit(ts, event, by, agents) for event, agents in to.items()]
    return emits + [deliver(ts, event, one) for event, agents in to.items() for one in agents]


POSED = arrive(0, "e0", None, "a")
SPLIT = [*turn(1, "v1", "a", "e1 e2", e0="consume"), *sent(1, "v1", e1="b", e2="c")]
ONE = [*turn(2, "v2", "b", "e3", e1="consume"), *arrive(2, "e3", "v2", "a", "solution")]
EARLY = [*turn(3, "v3", "a", "e4", e3="consume"), final(3, "e4", "v3")]
BOUNCED = [row(3, "redirect", event="e4", to=["a"]), deliver(3, "e4", "a")]
OVER = row(9, "finish", outcome="stopped")


def test_a_run_with_one_plan_is_one_attempt() -> None:
    """An activation that only waits, or has not ended, belongs to it, too."""
    run = recorded(POSED, SPLIT, turn(2, "v2", "b", e1="delay"), start(3, "v3", "c", "e2"), OVER)
    assert find_attempts(run) == {
        None: (Attempt("p1", "v1", ("v1", "v2", "v3"), None, "no answer"),)
    }


def test_a_returned_answer_begins_an_attempt_where_work_is_made_of_it() -> None:
    """To submit it again is no new plan."""
    again = [*turn(4, "v4", "a", "e5 e6", e4="consume"), *sent(4, "v4", e5="b", e6="c")]
    late = [*turn(5, "v5", "b", e5="consume"), *turn(6, "v6", "c", e6="consume")]
    assert plans(recorded(POSED, SPLIT, ONE, EARLY, BOUNCED, again, late[:2], OVER)) == [
        ("v1", "v1 v2 v3"), ("v4", "v4 v5"),
    ]  # fmt: skip
    submit = [*turn(4, "v4", "a", "e5", e4="consume"), final(4, "e5", "v4")]
    assert plans(recorded(POSED, SPLIT, ONE, EARLY, BOUNCED, submit)) == [("v1", "v1 v2 v3 v4")]


def test_a_note_of_the_system_begins_an_attempt_where_work_is_made_of_it() -> None:
    """It counts as read where the decision does not name it."""
    note = [*emits_note(2), *turn(3, "v2", "b", "e3", n1="consume"), *sent(3, "v2", e3="c")]
    assert plans(recorded(POSED, turn(1, "v1", "a", e0="consume"), note)) == [
        ("v1", "v1"), ("v2", "v2"),
    ]  # fmt: skip
    unnamed = [*emits_note(2), start(3, "v2", "b", "n1")]
    unnamed += [row(3, "end", activation="v2", fates=[], outputs=["e3"]), *sent(3, "v2", e3="c")]
    assert plans(recorded(POSED, turn(1, "v1", "a", e0="consume"), unnamed)) == [
        ("v1", "v1"), ("v2", "v2"),
    ]  # fmt: skip
    only_read = [*emits_note(2), *turn(3, "v2", "b", n1="consume")]
    assert plans(recorded(POSED, turn(1, "v1", "a", e0="consume"), only_read)) == [("v1", "v1 v2")]


def emits_note(ts: float) -> list[Row]:
    return [emit(ts, "n1", "system", "b", "system"), deliver(ts, "n1", "b")]


def test_who_splits_a_solution_or_a_problem_again_begins_an_attempt() -> None:
    """Attempts may go on at the same time."""
    posed = arrive(0, "e0", None, "ab")
    again = turn(2, "v2", "b", "e3 e4", e0="consume", e1="delay") + sent(2, "v2", e3="c", e4="c")
    mine = turn(3, "v3", "c", e2="consume", e3="delay", e4="delay")
    theirs = turn(4, "v4", "c", e3="consume", e4="consume")
    assert plans(recorded(posed, SPLIT, again, mine, theirs)) == [
        ("v1", "v1 v3"), ("v2", "v2 v4"),
    ]  # fmt: skip
    anew = [*turn(3, "v3", "a", "e5 e6", e3="consume"), *sent(3, "v3", e5="b", e6="c")]
    assert plans(recorded(POSED, SPLIT, ONE, anew)) == [("v1", "v1 v2"), ("v3", "v3")]
    just_split = [*turn(3, "v3", "b", "e5 e6", e1="consume"), *sent(3, "v3", e5="b", e6="c")]
    assert plans(recorded(POSED, SPLIT, just_split)) == [("v1", "v1 v3")]


def test_an_activation_that_never_ended_belongs_to_the_plan_of_what_it_sees() -> None:
    """It hangs over the work of that attempt, not of the first one."""
    again = [*turn(4, "v4", "a", "e5 e6", e4="consume"), *sent(4, "v4", e5="b", e6="c")]
    hung = start(5, "v5", "b", "e5")
    assert plans(recorded(POSED, SPLIT, ONE, EARLY, BOUNCED, again, hung)) == [
        ("v1", "v1 v2 v3"), ("v4", "v4 v5"),
    ]  # fmt: skip


def test_how_an_attempt_ended() -> None:
    """By its last answer; without one by the run, which may be cut off."""

    def ended(*parts: Any) -> list[tuple[str | None, str]]:
        return [(one.accepted, one.ended) for one in find_attempts(recorded(*parts))[None]]

    assert ended(POSED, SPLIT, ONE, EARLY, deliver(3, "e4", None)) == [("e4", "accepted")]
    assert ended(POSED, SPLIT, ONE, EARLY, BOUNCED, OVER) == [(None, "bounced")]
    assert ended(POSED, SPLIT, OVER) == [(None, "no answer")]
    assert ended(POSED, SPLIT) == [(None, "cut off")]


def test_a_problem_that_nobody_took_on_has_an_attempt_without_a_plan() -> None:
    """A run has one attempt at least."""
    assert plans(recorded(POSED, turn(1, "v1", "a", e0="delay"))) == [(None, "v1")]
    assert plans(recorded()) == [(None, "")]


def test_in_a_session_each_problem_has_attempts_of_its_own() -> None:
    """An activation that concerns two problems is in an attempt of each."""
    run = recorded(
        arrive(0, "e0", None, "a"), arrive(0, "x0", None, "b"),
        turn(1, "v1", "a", "e1", e0="consume"), sent(1, "v1", e1="c"),
        turn(2, "v2", "b", "x1", x0="consume"), sent(2, "v2", x1="c"),
        turn(3, "v3", "c", e1="consume", x1="consume"),
        session=True,
    )  # fmt: skip
    assert find_attempts(run) == {
        "e0": (Attempt("p1", "v1", ("v1", "v3"), None, "cut off"),),
        "x0": (Attempt("p2", "v2", ("v2", "v3"), None, "cut off"),),
    }


@given(traces())
def test_every_activation_is_in_one_attempt_of_each_problem_that_it_concerns(
    rows: list[Row],
) -> None:
    """Of ended ones: in that of the latest plan point among themselves and their ancestors."""
    run = RecordedRun(map(decode, rows))
    for problem, some in find_attempts(run).items():
        members = [name for name in run.activations if _concerns(run, name, problem)]
        assert sorted(one for each in some for one in each.activations) == sorted(members)
        points = {t: one for one, t in _plan_points(run, problem, members).items()}
        plans: list[str | None] = [points[t] for t in sorted(points)]
        assert [each.plan for each in some] == (plans or [None])
        for each in some:
            for name in each.activations:
                if run.activations[name].end:
                    behind = {name} | (run.graph.ancestors(name) & {*members})
                    reached = [t for t, one in points.items() if one in behind]
                    assert each.plan == (points[max(reached)] if reached else some[0].plan)


def _concerns(run: RecordedRun, name: str, problem: str | None) -> bool:
    if problem is None:
        return True
    return any(problem in run.graph.sources(event) for event in run.activations[name].inputs)


def _plan_points(run: RecordedRun, problem: str | None, members: list[str]) -> dict[str, int]:
    """The plan points with the records of their ends, by the definition and the graph's fates."""
    ends = {one: end.t for one in members if (end := run.activations[one].end)}
    used = {
        one: [run.events[e] for e, fate in run.fates(one).items() if fate == "consume"]
        for one in ends
    }
    made = {one: run.activations[one].outputs for one in ends}
    work_made = {one: [e for e in run.events.values() if e.by == one and e.is_work] for one in ends}
    counted = {one: [e for e in some if e.by != "system"] for one, some in used.items()}
    splits = {one for one in ends if 0 < len(counted[one]) < len(made[one])}

    def is_earlier(event: Any, one: str, among: Any) -> bool:
        return any(event in counted[other] and ends[other] < ends[one] for other in among)

    def is_point(one: str) -> bool:
        for event in used[one]:
            posed = event.by is None and event.is_work and problem in (None, event.id)
            if posed and not is_earlier(event, one, ends):
                return True
            if (event.final or event.by == "system") and work_made[one]:
                return True
            again = event.is_work and is_earlier(event, one, splits)
            if one in splits and event.by != "system" and (event.type == "solution" or again):
                return True
        return False

    return {one: t for one, t in ends.items() if is_point(one)}
