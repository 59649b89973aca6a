"""Two runs side by side: the verdict, where they part, and what there is more of."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.errors import TraceError
from dig.graph.behaviour import same_behaviour
from dig.show.compare.difference import BehaviourComparison
from dig.show.compare.side_by_side import compare_runs
from tests.behaviours import bare, behaviour_of, commuted, moved, relabelled, renamed
from tests.graph.test_behaviour import cycles
from tests.histories import arrive, end, start, trace, turn
from tests.oracle import Row
from tests.strategies import traces
from tests.traces.runs import directory, hasty, solved, store


def compared(one: list[Row], other: list[Row], *, strict: bool = False) -> BehaviourComparison:
    return BehaviourComparison.of(behaviour_of(one), behaviour_of(other), strict=strict)


@given(rows=traces(most=40), seed=st.integers(0, 1000))
def test_equal_behaviours_part_nowhere(rows: list[Row], seed: int) -> None:
    rng = random.Random(seed)
    other, _ = commuted(bare(rows), rng, 20)
    found = compared(rows, renamed(other, rng))
    assert found.is_same
    assert found.places == (None, None)
    assert found.counts[0] == found.counts[1]


@given(rows=traces(most=40), seed=st.integers(0, 1000))
def test_different_behaviours_part_somewhere(rows: list[Row], seed: int) -> None:
    """The place is of the side that has it, and what comes before it is the same on both."""
    rng, one = random.Random(seed), behaviour_of(rows)
    for other in (relabelled(one, rng), moved(one, rng)):
        if other is None or same_behaviour(one, other):
            continue
        for strict in (True, False):
            found = BehaviourComparison.of(one, other, strict=strict)
            assert not found.is_same
            assert any(found.places)
        place = BehaviourComparison.of(one, other, strict=True).places[0]
        assert place is not None
        assert one.steps[: place.step] == other.steps[: place.step]
        assert one.steps[place.step] != other.steps[place.step]


def test_the_first_divergence_is_told_with_record_numbers() -> None:
    """Record, activation, agent and fates of both sides."""
    lines = list(compared(solved(), solved(q="discard")).lines("A", "B"))
    assert lines[:4] == [
        "different behaviour (causally)",
        "first divergence:",
        "  A: record 7: w of b, which consumed q",
        "  B: record 7: w of b, which discarded q",
    ]
    assert [line.split() for line in lines[4:]] == [
        ["counts", "A", "B"],
        ["edges:", "consume", "3", "2"],
        ["edges:", "discard", "0", "1"],
    ]


def test_what_only_moved_in_time_is_no_divergence() -> None:
    """The first difference is that which no reordering explains, not the first in the file."""
    begin = [arrive(0, "p", None, "a"), arrive(0, "q", None, "b")]
    v, w = turn(1, "v", "a", p="consume"), turn(1, "w", "b", q="consume")
    late = [start(1, "x", "a"), end(1, "x")]
    one, other = trace(*begin, v, w), trace(*begin, w, v, late)
    found = compared(one, other)
    assert found.places[0] is None
    assert found.places[1] is not None
    assert found.places[1].record == 9
    assert list(found.lines("A", "B"))[2:4] == [
        "  A: nothing that the other does not have",
        "  B: record 9: x of a, which saw nothing",
    ]


def test_a_run_in_another_order_is_the_same_and_says_so() -> None:
    begin = [arrive(0, "p", None, "a"), arrive(0, "q", None, "b"), arrive(0, "r", None, "b")]
    v, w = turn(1, "v", "a", p="consume"), turn(1, "w", "b", q="consume", r="consume")
    found = compared(trace(*begin, v, w), trace(*begin, w, v))
    assert found.is_same
    assert list(found.lines("A", "B")) == ["the same behaviour (causally), in another order"]
    assert not compared(trace(*begin, v, w), trace(*begin, w, v), strict=True).is_same


def test_the_same_pieces_put_together_otherwise_have_no_first_place() -> None:
    found = BehaviourComparison.of(cycles(6), cycles(3, 3))
    assert not found.is_same
    assert "same pieces, put together in another way" in "\n".join(found.lines("A", "B"))
    assert found.to_json()["divergence"] == {"a": None, "b": None}


# --- stored runs ---


def test_runs_are_compared_in_findings_cost_and_outcome_too(tmp_path: Path) -> None:
    one = directory(tmp_path, "one", solved(tokens=10), score=1.5)
    other = directory(tmp_path, "other", hasty())
    lines = [line.split() for line in compare_runs(one, other).lines("A", "B")]
    assert ["findings", "A", "B"] in lines
    assert ["ET", "0", "1"] in lines
    assert ["input_tokens", "10", "0"] in lines
    assert ["outcome", "submitted", "in", "progress"] in lines
    assert ["score", "1.5", "none"] in lines


def test_the_json_has_everything(tmp_path: Path) -> None:
    one, other = store(tmp_path / "a.dig.jsonl", solved()), directory(tmp_path, "b", hasty())
    body = json.loads(json.dumps(compare_runs(one, other).to_json()))
    assert (body["same"], body["notion"]) == (False, "causal")
    assert body["divergence"]["a"].keys() == {"step", "record", "what"}
    assert body["counts"]["a"]["activations"] == 3
    assert body["runs"]["b"]["findings"] == {"ET": 1}


def test_a_run_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    one = store(tmp_path / "a.dig.jsonl", solved())
    broken = store(tmp_path / "b.dig.jsonl", solved()[1:])
    for pair in ((one, broken), (broken, one), (one, tmp_path / "nothing")):
        with pytest.raises(TraceError):
            compare_runs(*pair)
