"""What simulated agents exchange, and the arithmetic of what is covered."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig._util.json_values import plain
from dig.tasks.number_ranges import Range, merge
from dig.tasks.simulated.message_reading import Numbers
from dig.tasks.simulated.parts import Job, Partial, RawData, disjoint, join

NUMBERS = Numbers()
JOB = Job(NUMBERS.task, (0, 40), (0, 40), 20, "a1")


def partial(*covers: Range) -> Partial:
    """Counts of some ranges of an array that has only fives."""
    return Partial({"5": sum(stop - start for start, stop in covers)}, merge(covers), JOB)


ranges = st.tuples(st.integers(0, 39), st.integers(1, 10)).map(lambda r: (r[0], min(40, sum(r))))
partials = st.lists(ranges, min_size=1, max_size=3).map(
    lambda some: Partial({"5": len(cells(some))}, merge(some), JOB)
)


def cells(covers: Any) -> set[int]:
    return {cell for start, stop in covers for cell in range(start, stop)}


@given(st.lists(partials, max_size=14))
def test_no_element_is_counted_twice(some: list[Partial]) -> None:
    chosen = disjoint(some)
    assert all(not a.overlaps(b) for a in chosen for b in chosen if a is not b)
    together = join(chosen, JOB)
    assert together.counts.get("5", 0) == together.covered


def test_solutions_that_lie_apart_are_not_compared_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A team that counts millions of numbers keeps thousands of them."""
    parts = [partial((i, i + 1)) for i in (*range(0, 2000, 2), *range(1, 2000, 2))]
    monkeypatch.delattr(Partial, "overlaps")
    assert disjoint(parts) == parts


@given(st.lists(partials, max_size=7))
def test_of_all_ways_to_choose_the_one_that_covers_most_is_taken(some: list[Partial]) -> None:
    ways: list[list[Partial]] = [[]]
    for one in some:
        ways += [[*way, one] for way in ways if not any(one.overlaps(other) for other in way)]
    best = max(sum(one.covered for one in way) for way in ways)
    assert sum(one.covered for one in disjoint(some)) == best


def test_many_copies_of_the_same_parts_are_chosen_from_quickly() -> None:
    parts = [partial((i, i + 1)) for i in range(40)]
    assert join(disjoint(parts * 10), JOB).is_complete


@given(partials)
def test_payloads_read_back_as_what_was_written(one: Partial) -> None:
    assert Partial.read(plain(one.payload()), NUMBERS) == one
    assert Job.read(plain(JOB.payload()), NUMBERS) == JOB
    data = RawData(JOB.at([0, 3]), (1, 2, 1))
    assert RawData.read(plain(data.job.payload(data=[1, 2, 1])), NUMBERS) == data


GOOD = partial((0, 10)).payload() | JOB.at([0, 3]).payload(data=[1, 2, 1])


@pytest.mark.parametrize("damage", [None, "x", -1, [], {}, [3, 2], [[0]], {"a": 1}, True])
@pytest.mark.parametrize("key", ["task", "part", "whole", "most_per_message", "data", "counts"])
def test_a_damaged_payload_is_none_or_read_but_never_raises(key: str, damage: Any) -> None:
    for payload in (GOOD | {key: damage}, {k: v for k, v in GOOD.items() if k != key}, damage):
        for kind in (Job, RawData, Partial):
            assert isinstance(kind.read(payload, NUMBERS), kind | None)


@pytest.mark.parametrize("covers", [None, [[0]], [[2, 1]], [0, 5], "all"])
def test_counts_whose_covers_are_damaged_are_not_read(covers: Any) -> None:
    assert Partial.read(GOOD | {"covers": covers}, NUMBERS) is None
