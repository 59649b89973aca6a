"""What is measured of a run, on histories written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from dig.graph.codec import decode
from dig.lab.truth.matching import Matching
from dig.lab.truth.measurements import measure_parts
from dig.tasks.accounting import PAYLOADS, TaskParts
from dig.traces.run import RecordedRun
from tests.histories import arrive, deliver, emit, end, final, row, start, trace, turn


def carrying(one: dict[str, Any], **payload: Any) -> dict[str, Any]:
    return {**one, "payload": payload}


def problem(ts: float, name: str, by: str | None, to: str, part: list[int]) -> list[Any]:
    first, *others = arrive(ts, name, by, to)
    return [carrying(first, part=part, report_to="a"), *others]


def solution(
    ts: float, name: str, by: str, to: str, ranges: list[list[int]], **counts: int
) -> list[Any]:
    first, *others = arrive(ts, name, by, to, "solution")
    return [carrying(first, covers=ranges, counts=counts, report_to="a"), *others]


def course(*parts: Any) -> RecordedRun:
    return RecordedRun(map(decode, trace(*parts)))


def parts(run: RecordedRun) -> TaskParts:
    return TaskParts(run, PAYLOADS)


def parted(one: list[int], other: list[int]) -> list[Any]:
    """A problem that a splits for b and c."""
    first, first_comes = problem(1, "e1", "v1", "b", one)
    second, second_comes = problem(1, "e2", "v1", "c", other)
    begun = [*problem(0, "e0", None, "a", [0, 20]), *turn(1, "v1", "a", "e1 e2", e0="consume")]
    return [*begun, first, second, first_comes, second_comes]


def numbers(run: RecordedRun, **more: Any) -> dict[tuple[str, str], float]:
    """Values by the name of a thing and a state."""
    return {(one.name, one.state): one.value for one in measure_parts(parts(run), **more)}


SPLIT = parted([0, 10], [10, 20])
SOLVED: list[Any] = [
    start(2, "v2", "b", "e1"),
    end(5, "v2", "e3", e1="consume"),
    *solution(5, "e3", "v2", "a", [[0, 10]], x=7, y=3),
]


def test_a_solution_and_what_is_left_open() -> None:
    """Seconds, shares and states of a run that goes on no further."""
    run = course(SPLIT, SOLVED, row(30, "finish", outcome="stopped"))
    found = numbers(run)
    assert found["v2", "slow"] == 3
    assert found["e1", "overdue"] == 4
    assert found["e3", "late"] == 5
    assert found["e2", "unread"]
    assert not found["e1", "unread"]
    assert found["e3", "unread"]
    assert found["a", "starved"]
    assert found["10-20", "missing"]
    assert not found["0-10", "missing"]
    assert found["", "missing"]
    assert found["v1", "losing"] == 0
    assert found["e3", "miscounted"] == 0


def test_what_is_consumed_without_an_outcome() -> None:
    """Half of the elements are lost in the hands of an activation."""
    run = course(
        SPLIT,
        turn(2, "v2", "b", "e3", e1="consume"),
        solution(2, "e3", "v2", "a", [[0, 5]], x=5),
        turn(3, "v3", "c", e2="consume"),
    )
    found = numbers(run)
    assert found["v2", "losing"] == 0.5
    assert found["v3", "losing"] == 1
    assert found["5-10", "missing"]
    assert not found["0-5", "missing"]


def test_an_answer_that_comes_too_early() -> None:
    """It is premature, its activation hasty, the outcome incomplete, a part missing."""
    early = carrying(final(6, "e4", "v4"), covers=[[0, 10]], counts={"x": 10})
    run = course(
        SPLIT, SOLVED, turn(6, "v4", "a", "e4", e3="consume"), early, deliver(6, "e4", None)
    )
    found = numbers(run, rmse=3.5)
    assert found["e4", "premature"] == found["v4", "hasty"] == found["", "incomplete"] == 0.5
    assert found["", "wrong"] == 3.5
    assert found["10-20", "missing"]
    assert not found["a", "starved"]


def test_an_event_that_says_more_than_was_known() -> None:
    """About elements that nobody asked its maker for, or about none: it is altered."""

    def answered(ranges: list[list[int]]) -> float:
        made = turn(2, "v2", "b", "e3", e1="consume")
        return numbers(course(SPLIT, made, solution(2, "e3", "v2", "a", ranges)))["e3", "altered"]

    assert not answered([[0, 10]])
    assert not answered([[2, 5], [7, 8]])
    assert answered([[0, 20]])
    assert answered([])


def test_work_that_is_there_twice() -> None:
    """The second event about the same elements is duplicated, unless it was made of the first."""
    found = numbers(course(parted([0, 10], [5, 20])))
    assert not found["e1", "duplicated"]
    assert found["e2", "duplicated"]


def test_counts_are_held_against_the_raw_data_that_were_seen() -> None:
    """Differences over all values, for each element; without data, the sum alone."""
    read = carrying(arrive(2, "e3", "v2", "b", "raw_data")[0], part=[0, 10], data=[1] * 6 + [2] * 4)
    run = course(
        SPLIT,
        turn(2, "v2", "b", "e3", e1="consume"), read, deliver(2, "e3", "b"),
        turn(3, "v3", "b", "e4", e3="consume"),
        solution(3, "e4", "v3", "a", [[0, 10]], **{"1": 4, "2": 4, "3": 1}),
    )  # fmt: skip
    assert numbers(run)["e4", "miscounted"] == pytest.approx(0.3)
    assert numbers(run, truth={})["e4", "miscounted"] == pytest.approx(0.1)


def test_lost_stays_lost_though_it_is_brought_back() -> None:
    """What was lost and redirected is not lost in the end, but it was lost."""
    gone = [*SPLIT, row(3, "leave", agent="c")]
    run = course(gone, row(4, "redirect", event="e2", to=["b"]), deliver(4, "e2", "b"))
    assert run.orphaned_t("e2") == 9
    assert not run.is_orphaned("e2")
    assert numbers(run)["e2", "lost"]
    assert run.leaves == {"c": 9}
    assert course(gone).is_orphaned("e2")


def test_an_idle_activation_is_told_by_what_lay_before_it() -> None:
    """To wait with work in front of it is not to wait for others."""
    waits = turn(2, "v2", "b", e1="delay")
    rows = {
        one.measure for one in measure_parts(parts(course(SPLIT, waits))) if one.state == "idle"
    }
    assert rows == {"activation idle work"}
    found = measure_parts(parts(course(SPLIT, SOLVED, turn(6, "v4", "a", e3="delay"))))
    assert ("v4", "activation idle some", 1) in {
        (one.name, one.measure, one.value) for one in found if one.state == "idle"
    }


# --- counterparts ---


def test_counterparts_are_found_by_place_and_by_what_they_are() -> None:
    """After the first difference ids say nothing any more."""
    usual = course(SPLIT, SOLVED, turn(7, "v4", "a", "e9", e3="delay"),
                   emit(7, "e9", "v4", "b"))  # fmt: skip
    other = course(
        SPLIT,
        start(2, "w2", "b", "e1"),
        end(6, "w2", "e4", e1="consume"),
        solution(6, "e4", "w2", "a", [[0, 10]], x=99),
        turn(7, "w4", "a", "e5", e4="delay"),
        emit(7, "e5", "w4", "b"),
    )
    matching = Matching(parts(other), parts(usual))
    assert matching.first == 9
    assert matching.activation("v1") == "v1"
    assert matching.activation("w2") == "v2"
    assert matching.event("e4") == "e3"
    assert matching.activation("w4") == "v4"
    assert matching.event("e5") == "e9"


def test_what_nothing_corresponds_to_has_no_counterpart() -> None:
    """An agent that is shown something else acts in a turn of its own."""
    other = course(SPLIT, turn(2, "v2", "c", e2="delay"))
    matching = Matching(parts(other), parts(course(SPLIT, SOLVED)))
    assert matching.activation("v2") is None
