"""What faults make of payloads."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dig.faults.inject.payload_changes import GARBAGE, TRANSFORMS, UNKNOWN, damage, payloads_of
from dig.tasks.simulated.message_reading import Numbers
from dig.tasks.simulated.parts import Job, Partial, RawData

READING = Numbers()
JOB = Job(READING.task, (0, 100), (0, 300), 100, "ann")
COUNTING = payloads_of(READING.task)


def counted(start: int, stop: int, **counts: int) -> dict[str, Any]:
    return Partial({name[1:]: n for name, n in counts.items()}, ((start, stop),), JOB).payload()


PROBLEM, RAW = JOB.payload(), JOB.payload(data=[1] * 100)
SOLUTION = counted(0, 100, v1=60, v2=40)


def read(payload: Any) -> Partial:
    partial = Partial.read(payload, READING)
    assert partial is not None
    return partial


def test_every_transform_of_the_table_is_there_for_tasks_of_ours() -> None:
    assert {*COUNTING.transforms} == {*TRANSFORMS} == {*payloads_of("newsgroups").transforms}
    assert {*payloads_of("a task of one's own").transforms} == {"garbled"}


def test_what_is_damaged_can_still_be_read_unless_it_is_garbled() -> None:
    """Otherwise whoever gets it would throw it away, and it would be another fault."""
    ten = read(COUNTING.transforms["counts"](SOLUTION))
    assert (ten.counts, ten.covers) == ({"1": 600, "2": 400}, ((0, 100),))
    all_of_it = read(COUNTING.transforms["covers"](SOLUTION))
    assert (all_of_it.counts, all_of_it.is_complete) == ({"1": 60, "2": 40}, True)
    other = Job.read(COUNTING.transforms["part"](PROBLEM), READING)
    assert other is not None and (other.part, other.whole) == ((100, 200), (0, 300))
    for payload in (PROBLEM, RAW, SOLUTION):
        garbled = COUNTING.transforms["garbled"](payload)
        assert not any(kind.read(garbled, READING) for kind in (Job, Partial, RawData))


@pytest.mark.parametrize(
    ("how", "payload"),
    [("counts", PROBLEM), ("counts", RAW), ("covers", PROBLEM), ("part", SOLUTION), ("part", RAW)],
)
def test_a_transform_says_what_it_is_not_for(how: str, payload: Any) -> None:
    assert COUNTING.transforms[how](payload) is None


@example(start=0, length=299)
@example(start=0, length=151)
@given(start=st.integers(0, 290), length=st.integers(1, 300))
def test_another_part_is_another_one_within_the_whole(start: int, length: int) -> None:
    """Whatever the part is; the whole has no other part, so it is let be."""
    part = (start, min(300, start + length))
    if part == (0, 300):
        return
    job = Job.read(COUNTING.transforms["part"](JOB.at(part).payload()), READING)
    assert job is not None
    assert job.part != part and 0 <= job.part[0] < job.part[1] <= 300


def test_care_counts_nothing_twice_and_a_heap_does() -> None:
    """Both go to whom they are made for."""
    twice = [SOLUTION, SOLUTION, counted(100, 200, v3=7), {"else": 1}]
    careful, heap = read(COUNTING.joined(twice, "bob")), read(COUNTING.heaped(twice, "bob"))
    assert careful.counts == {"1": 60, "2": 40, "3": 7}
    assert heap.counts == {"1": 120, "2": 80, "3": 7}
    assert careful.covers == heap.covers == ((0, 200),)
    assert careful.job.report_to == heap.job.report_to == "bob"


def test_solutions_of_which_nothing_is_known_are_listed() -> None:
    assert UNKNOWN.joined(["a"], "bob") == "a"
    assert COUNTING.joined(["a", "b"], "bob") == {"solutions": ["a", "b"]}


def test_any_value_can_be_damaged_and_keeps_its_shape() -> None:
    thing = object()
    value = {"text": "hello", "n": [1, 2.5, True, None], "pair": ("x", thing)}
    assert damage(value) == {
        "text": GARBAGE, "n": [10, 25.0, True, None], "pair": (GARBAGE, thing),
    }  # fmt: skip
