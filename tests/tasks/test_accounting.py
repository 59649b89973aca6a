"""Ranges are sets of elements, and what is missing of a task follows from its payloads."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.graph.codec import decode
from dig.monitor.messages import Output
from dig.tasks.accounting import PAYLOADS, TaskParts
from dig.tasks.number_ranges import (
    Range,
    between,
    common,
    covers,
    difference,
    lacking,
    length,
    merge,
    missing,
    named_range,
    range_name,
)
from dig.traces.run import RecordedRun
from tests.histories import arrive, deliver, emit, trace, turn

BOUNDS = st.tuples(st.integers(0, 30), st.integers(1, 9)).map(lambda r: (r[0], r[0] + r[1]))
RANGES = st.lists(BOUNDS, max_size=5).map(merge)


def cells(ranges: Any) -> set[int]:
    return {cell for start, stop in ranges for cell in range(start, stop)}


@given(st.lists(BOUNDS))
def test_merged_ranges_are_the_same_elements_in_order_and_apart(some: list[Range]) -> None:
    """No two of them touch, so that equal sets of elements are equal tuples."""
    done = merge(some)
    assert cells(done) == cells(some)
    assert all(left[1] < right[0] for left, right in pairwise(done))


@given(BOUNDS, st.lists(BOUNDS))
def test_missing_is_what_is_in_the_whole_and_in_no_range(whole: Range, some: list[Range]) -> None:
    """The ranges may overlap, and reach beyond the whole."""
    assert cells(missing(whole, some)) == cells([whole]) - cells(some)


@given(RANGES, RANGES)
def test_ranges_are_sets_of_numbers(one: Any, other: Any) -> None:
    """Length, intersection and difference are those of the sets."""
    assert length(one) == len(cells(one))
    assert common(one, other) == len(cells(one) & cells(other))
    assert cells(difference(one, other)) == cells(one) - cells(other)
    if one:
        assert lacking(other, one) == pytest.approx(len(cells(one) - cells(other)) / length(one))
        assert covers(other, one[0]) == (cells(one[:1]) <= cells(other))


@given(BOUNDS)
def test_a_range_is_found_again_by_its_name(one: Range) -> None:
    """Names of parts stand in fault sets."""
    assert named_range(range_name(one)) == one


@pytest.mark.parametrize(
    ("kind", "payload", "ranges"),
    [
        ("problem", {"part": [0, 5]}, ((0, 5),)),
        ("solution", {"covers": [[5, 9], [0, 5]]}, ((0, 9),)),
        ("solution", {"part": [0, 5]}, ()),
        ("problem", {"part": [5, 5]}, ()),
        ("problem", {"part": [-1, 5]}, ()),
        ("problem", {"part": [True, 5]}, ()),
        ("problem", {"part": [0, 5, 9]}, ()),
        ("solution", {"covers": [[0, 5], None]}, ()),
        ("problem", "\ufffd", ()),
    ],
)
def test_only_what_is_written_properly_is_about_elements(
    kind: str, payload: Any, ranges: Any
) -> None:
    """Payloads come from others and may be anything."""
    assert PAYLOADS.about(Output(payload, (), kind)) == ranges


@pytest.mark.parametrize(
    ("payload", "agent"), [({"report_to": "a"}, "a"), ({"report_to": 5}, None), ("a", None)]
)
def test_a_result_is_reported_to_a_name(payload: Any, agent: str | None) -> None:
    """Nothing else can be the name of an agent."""
    assert PAYLOADS.report_to(Output(payload, (), "problem")) == agent


class Pages:
    """An accounting of a user's own: the payload of a question or an answer is a page's number."""

    def about(self, event: Any) -> tuple[Range, ...]:
        if event.type == "book":
            return ((0, event.payload),)
        return ((event.payload, event.payload + 1),) if isinstance(event.payload, int) else ()

    def report_to(self, event: Any) -> str | None:
        return None


def arriving(ts: float, name: str, by: str | None, to: str, sort: str, payload: Any) -> list[Any]:
    first, *others = arrive(ts, name, by, to, sort)
    return [{**first, "payload": payload}, *others]


def test_when_parts_are_solved_and_when_a_solution_is_gone() -> None:
    """A solution that is consumed lives on in what is made of it."""
    run = RecordedRun(
        map(
            decode,
            trace(
                arriving(0, "e0", None, "a", "book", 2),
                turn(1, "v1", "a", "e1 e2", e0="consume"),
                [{**emit(1, f"e{n + 1}", "v1", "b", "page"), "payload": n} for n in (0, 1)],
                deliver(1, "e1", "b"),
                turn(5, "v2", "b", "e3", e1="consume"),
                arriving(5, "e3", "v2", "a", "solution", 0),
                turn(6, "v3", "a", "e4", e3="consume"),
                arriving(6, "e4", "v3", "b", "solution", 0),
            ),
        )
    )
    parts = TaskParts(run, Pages())
    assert parts.whole == ((0, 2),)
    assert between(parts.cuts) == [(0, 1), (1, 2)]
    assert parts.solved_us((0, 1)) == 5_000_000
    assert parts.solved_us((1, 2)) is None
    assert parts.gone_t(run.events["e3"]) == run.events["e4"].t
    assert not parts.is_missing((0, 1))
    assert parts.is_missing((1, 2))
