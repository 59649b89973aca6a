"""Milestones: what a run reached on the way to a good answer, by its records alone."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from dig.detectors.thresholds import Thresholds
from dig.graph.codec import decode
from dig.graph.records import Record
from dig.tasks.count_frequency import CountFrequency
from dig.tasks.milestones import MOST
from dig.tasks.run.arrange import make_run, make_task
from dig.tasks.run.execute import execute
from dig.traces.journal.reader import read_records
from tests.histories import arrive, deliver, end, final, row, start, trace, turn

TASK = CountFrequency(size=20, seed=1)
COUNTS = {"counts": {"1": 20}}


def carrying(one: list[Any] | dict[str, Any], **payload: Any) -> list[Any]:
    first, *others = one if isinstance(one, list) else [one]
    return [{**first, "payload": payload}, *others]


POSED = carrying(arrive(0, "e0", None, "a"), part=[0, 20])
SPLIT = [
    start(1, "v1", "a", "e0"), end(1, "v1", "e1", e0="consume"),
    *carrying(arrive(1, "e1", "v1", "b"), part=[0, 10]),
]  # fmt: skip
HALF = [
    *turn(2, "v2", "b", "e2", e1="consume"),
    *carrying(arrive(2, "e2", "v2", "a", "solution"), covers=[[0, 10]]),
]
ALL = [
    start(3, "v3", "c"), end(3, "v3", "e3"),
    *carrying(arrive(3, "e3", "v3", "a", "solution"), covers=[[10, 20]]),
]  # fmt: skip


def answered(**payload: Any) -> list[Any]:
    made = turn(4, "v4", "a", "e4", e2="consume", e3="consume")
    return [*made, *carrying(final(4, "e4", "v4"), **payload)]


WHOLE = answered(covers=[[0, 20]], **COUNTS)
ACCEPTED = [deliver(5, "e4", None)]


@pytest.mark.parametrize(
    ("parts", "reached"),
    [
        ([POSED], 0),
        ([POSED, SPLIT], 1),
        ([POSED, SPLIT, HALF], 2),
        ([POSED, SPLIT, HALF, ALL], 3),
        ([POSED, SPLIT, HALF, ALL, WHOLE], 4),
        ([POSED, SPLIT, HALF, ALL, WHOLE, ACCEPTED], 5),
        ([POSED, SPLIT, HALF, ALL, answered(covers=[[0, 10]], **COUNTS), ACCEPTED], 3),
        ([POSED, SPLIT, HALF, ALL, answered(covers=[[0, 20]], counts=5), ACCEPTED], 4),
    ],
)
def test_each_stage_of_counting_is_a_milestone(parts: list[Any], reached: int) -> None:
    """They are reached one by one; an answer that is not whole or not valid is not good."""
    found = TASK.milestones(map(decode, trace(*parts)))
    assert [one.reached for one in found] == [True] * reached + [False] * (5 - reached)


def test_what_is_not_reached_says_what_is_there() -> None:
    """The evidence is the last record, or the one that accepted an answer that is not good."""
    part = turn(4, "v4", "a", "e4", e2="consume")
    part += carrying(final(4, "e4", "v4"), covers=[[0, 10]], **COUNTS)
    rows = trace(POSED, SPLIT, HALF, part, ACCEPTED)
    found = TASK.milestones(map(decode, rows))
    told = {one.title: (one.evidence[0].t, one.evidence[0].says) for one in found}
    last = len(rows) - 1
    assert told["all of the parts were counted"] == (last, "10 of 20 elements are in solutions")
    good = told["an answer was accepted, and is good"]
    assert good == (last, "the answer e4 was accepted, but is not complete")


def test_a_problem_that_is_passed_on_as_a_whole_is_not_split() -> None:
    """The next agent has as much to do as the first."""
    passed = [*turn(1, "v1", "a", "e1", e0="consume")]
    passed += carrying(arrive(1, "e1", "v1", "b"), part=[0, 20])
    assert not TASK.milestones(map(decode, trace(POSED, passed)))[0].reached


def test_who_reads_all_at_once_has_read() -> None:
    """A task that fits into one message need not be split."""
    made = [*turn(1, "v1", "a", "e1", e0="consume")]
    for sort, reached in (("raw_data", True), ("solution", True), ("message", False)):
        read = carrying(arrive(1, "e1", "v1", "b", sort), part=[0, 20], covers=[[0, 20]])
        assert TASK.milestones(map(decode, trace(POSED, made, read)))[0].reached is reached


def test_a_solution_of_everything_is_no_answer_before_it_is_submitted() -> None:
    """It lies before the agent that is to submit it."""
    made = [*turn(1, "v1", "a", "e1", e0="consume")]
    made += carrying(arrive(1, "e1", "v1", "b", "solution"), covers=[[0, 20]])
    found = TASK.milestones(map(decode, trace(POSED, made)))
    assert [one.reached for one in found] == [True, True, True, False, False]


def test_a_problem_that_does_not_say_what_the_whole_is_has_no_such_milestones() -> None:
    """Payloads may be damaged, masked, or left out when the records were read."""
    assert TASK.milestones(map(decode, trace(arrive(0, "e0", None, "a")))) == ()


@cache
def recorded(task: str, size: int, seed: int, method: str) -> tuple[Any, tuple[Record, ...]]:
    run = make_run(task, Thresholds.load(), size=size, agents=3, seed=seed, method=method)
    with TemporaryDirectory() as folder:
        execution = execute(run, Path(folder))
        return make_task(run), tuple(read_records(execution.directory))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("task", "size"), [("count-frequency", 3000), ("newsgroups", 60)])
def test_a_longer_beginning_of_a_run_never_reaches_less(task: str, size: int, seed: int) -> None:
    """Evidence lies within the records, and does not move when more of them are there."""
    made, records = recorded(task, size, seed, "mas")
    before: list[Any] = []
    for stop in range(1, len(records) + 1):
        found = made.milestones(records[:stop])
        assert len(found) in (0, MOST)
        assert all(0 <= e.t < stop for one in found for e in one.evidence)
        assert [one for one in found if one.reached][: len(before)] == before
        before = [one for one in found if one.reached]


def test_both_tasks_have_milestones_that_a_healed_run_reaches() -> None:
    """Newsgroups counts posts as CountFrequency counts numbers."""
    for task, size in [("count-frequency", 3000), ("newsgroups", 60)]:
        made, records = recorded(task, size, 3, "dig")
        assert all(one.reached for one in made.milestones(records))


def test_an_answer_of_odd_text_is_told_in_one_short_line() -> None:
    """Payloads come from others and may be anything."""
    odd = answered(covers=[[0, 20]], counts={"\x1b[31m" + "x" * 500: 1})
    found = TASK.milestones(map(decode, trace(POSED, SPLIT, HALF, ALL, odd, ACCEPTED)))
    says = found[-1].evidence[0].says
    assert "no valid answer" in says and "\x1b" not in says and len(says) < 160


def test_no_finish_is_needed() -> None:
    """A run that is still going on is judged by what there is."""
    rows = trace(POSED, SPLIT, row(9, "finish", outcome="stopped"))
    assert [one.reached for one in TASK.milestones(map(decode, rows))] == [
        one.reached for one in TASK.milestones(map(decode, rows[:-1]))
    ]
