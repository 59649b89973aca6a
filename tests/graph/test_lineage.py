"""Lineage: sets of numbers as ranges, and how little a long conversation costs."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from dig._util.ranges import NOTHING, RangeSet, union
from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph
from tests.histories import arrive, emit, trace, turn
from tests.oracle import Row
from tests.random_traces import random_trace

numbers = st.sets(st.integers(0, 40))


def ranges(values: set[int]) -> RangeSet:
    return RangeSet.of(sorted(values))


def is_canonical(found: RangeSet) -> bool:
    """Whether no two sets of ranges stand for the same numbers: none is empty, none touch."""
    return len(found.ranges) % 2 == 0 and all(a < b for a, b in pairwise(found.ranges))


@given(numbers)
def test_a_set_holds_its_numbers_in_order(values: set[int]) -> None:
    """`of` and iteration are each other's inverse, and an empty set is false."""
    found = ranges(values)
    assert list(found) == sorted(values)
    assert is_canonical(found)
    assert bool(found) == bool(values)


@given(numbers, numbers)
def test_equal_sets_have_equal_ranges(one: set[int], other: set[int]) -> None:
    """Two sets are equal, and have the same hash, exactly when their numbers are the same."""
    assert (ranges(one) == ranges(other)) == (one == other)
    assert (hash(ranges(one)) == hash(ranges(other))) or one != other
    assert ranges(one) != one


@given(numbers, numbers)
def test_a_union_holds_the_numbers_of_both(one: set[int], other: set[int]) -> None:
    """The union of ranges is that of the sets they stand for, in canonical form."""
    found = ranges(one).union(ranges(other))
    assert set(found) == one | other
    assert is_canonical(found)


@given(numbers, numbers)
def test_a_union_with_a_part_is_the_whole_itself(one: set[int], other: set[int]) -> None:
    """A set that holds the other is shared, not copied."""
    whole, part = ranges(one | other), ranges(other)
    assert whole.union(part) is whole
    assert part.union(whole) in (whole, part)
    assert part.union(whole) is (part if part == whole else whole)


@given(st.lists(numbers))
def test_a_union_of_many_is_their_union(many: list[set[int]]) -> None:
    """`union` agrees with the union of Python's sets."""
    everything: set[int] = reduce(set.union, many, set())
    assert union(map(ranges, many)) == ranges(everything)


@given(numbers, st.integers(1, 5))
def test_a_union_of_one_object_is_that_object(values: set[int], count: int) -> None:
    """Outputs whose inputs are all of one lineage share its set."""
    one = ranges(values)
    assert union([one] * count) is (one if values else NOTHING)


@given(numbers, numbers)
def test_sets_are_disjoint_when_they_share_no_number(one: set[int], other: set[int]) -> None:
    """`isdisjoint` agrees with Python's sets, the empty one among them."""
    assert ranges(one).isdisjoint(ranges(other)) == one.isdisjoint(other)


def test_a_set_says_what_it_holds() -> None:
    """A failing test shows the ranges."""
    assert repr(RangeSet.of([1, 2, 7])) == "RangeSet((1, 3, 7, 8))"


# -- a long conversation ---


def merging(answers: int) -> list[Row]:
    """`a` and `b` answer problems in turn; `c` merges each answer into its summary so far."""
    parts: list[Row | list[Row]] = []
    summary: dict[str, str] = {}
    for n in range(answers):
        solver = "ab"[n % 2]
        parts += [
            arrive(n, f"p{n}", None, solver),
            turn(n, f"v{n}", solver, f"x{n}", **{f"p{n}": "consume"}),
            emit(n, f"x{n}", f"v{n}", "c"),
            {"ts": n, "kind": "deliver", "event": f"x{n}", "to": "c"},
            turn(n, f"m{n}", "c", f"s{n}", **summary, **{f"x{n}": "consume"}),
            arrive(n, f"s{n}", f"m{n}", "c"),
        ]
        summary = {f"s{n}": "consume"}
    return trace(*parts)


def test_a_merging_conversation_keeps_its_lineage_compact() -> None:
    """2,000 answers merged one by one: a summary of all costs no more than one of two.

    Kept as sets of ids, the lineages of the summaries would hold two million.
    """
    count = 2000
    graph = InteractionGraph.of(map(decode, merging(count)))
    assert graph.roots(f"s{count - 1}") == {f"v{n}" for n in range(count)}
    assert graph.sources(f"s{count - 1}") == {f"p{n}" for n in range(count)}
    last = graph.event(f"s{count - 1}")
    assert [list(last.roots.pairs()), list(last.sources.pairs())] == [[(0, count)]] * 2


def test_the_activations_about_a_request_are_those_that_concern_it() -> None:
    """One walk ahead says the same as a walk back from each of them, also in sessions."""
    asked = 0
    for seed in range(60):
        graph = InteractionGraph()
        for row in random_trace(Random(seed)):
            graph.apply(decode(row))
        history = graph.history
        for number in range(len(history.source_events)):
            sources = RangeSet.single(number)
            ids = enumerate(history.activation_ids)
            about = [v for v, activation in ids if graph.concerns(activation, sources)]
            assert graph.activations_about(sources) == about
            asked += len(about)
    assert asked > 500
