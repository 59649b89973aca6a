"""CountFrequency: the array, the problem, the tools, the scorer."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig._util.json_values import plain
from dig.errors import SettingsError
from dig.tasks.count_frequency import VALUES, CountFrequency

SIZES = (2, 3, 1000, 1001, 5000)


def everything(task: CountFrequency) -> list[int]:
    """The whole array, read as agents have to: piece by piece."""
    tools = task.tools()
    pieces = tools["split"]([0, task.size], -(-task.size // task.most_per_message))
    return list(chain.from_iterable(tools["raw_data"](piece) for piece in pieces))


@pytest.mark.parametrize("size", SIZES)
def test_equal_arguments_make_an_equal_array(size: int) -> None:
    assert everything(CountFrequency(size, 7)) == everything(CountFrequency(size, 7))


def test_the_array_is_the_same_on_every_machine() -> None:
    assert everything(CountFrequency(20, 1)) == FIRST_ARRAY


FIRST_ARRAY = [3, 9, 6, 8, 8, 9, 5, 9, 5, 5, 7, 0, 2, 5, 3, 4, 9, 9, 4, 0]


def test_other_seeds_make_other_arrays() -> None:
    assert len({tuple(everything(CountFrequency(50, seed))) for seed in range(20)}) == 20


@pytest.mark.parametrize("seed", range(10))
def test_some_values_are_clearly_more_frequent_than_others(seed: int) -> None:
    """So that an answer that only knows the size is a bad one."""
    counts = Counter(everything(CountFrequency(5000, seed)))
    assert set(counts) == set(VALUES)
    assert max(counts.values()) > 1.5 * min(counts.values())


@pytest.mark.parametrize("size", SIZES)
def test_no_single_message_can_carry_the_whole_array(size: int) -> None:
    task = CountFrequency(size, 1)
    with pytest.raises(ValueError, match="split it first"):
        task.tools()["raw_data"]([0, size])


def test_the_problem_names_a_part_and_carries_no_data() -> None:
    problem = CountFrequency(1000, 1).problem("a1", "a2")
    assert (problem.type, problem.to, problem.final) == ("problem", ("a1", "a2"), False)
    assert problem.payload["part"] == [0, 1000]
    assert problem.payload["task"] == "count-frequency"
    assert "data" not in problem.payload
    assert plain(problem.payload) == problem.payload


@given(st.integers(2, 3000), st.data())
def test_pieces_cover_their_part_once_and_are_nearly_equal(size: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, size - 1))
    stop = data.draw(st.integers(start + 1, size))
    pieces = data.draw(st.integers(1, min(50, stop - start)))
    tools = CountFrequency(size, 1).tools()
    parts = tools["split"]([start, stop], pieces)
    assert list(chain.from_iterable(range(*part) for part in parts)) == list(range(start, stop))
    sizes = [tools["size"](part) for part in parts]
    assert len(sizes) == pieces and max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    "part",
    [None, 3, "01", [1], [1, 2, 3], [0, 1.0], [False, True], [5, 5], [6, 5], [-1, 5], [0, 101]],
)
@pytest.mark.parametrize("tool", ["size", "split", "raw_data"])
def test_a_tool_refuses_what_is_no_part_and_says_what_a_part_is(tool: str, part: Any) -> None:
    arguments = (part, 1) if tool == "split" else (part,)
    with pytest.raises(ValueError, match=r"a part (is|lies)"):
        CountFrequency(100, 1).tools()[tool](*arguments)


@pytest.mark.parametrize("pieces", [0, -1, 11, 2.0, True, "2"])
def test_split_refuses_a_number_of_pieces_that_cannot_be(pieces: Any) -> None:
    with pytest.raises(ValueError, match="can be cut into 1 to 10 pieces"):
        CountFrequency(100, 1).tools()["split"]([0, 10], pieces)


def test_what_a_tool_returns_is_the_callers_own() -> None:
    task = CountFrequency(100, 1)
    before = task.tools()["raw_data"]([0, 50])
    task.tools()["raw_data"]([0, 50]).clear()
    assert task.tools()["raw_data"]([0, 50]) == before


def test_the_true_counts_score_zero_with_keys_of_either_kind() -> None:
    task = CountFrequency(1000, 3)
    counts = Counter(everything(task))
    for answer in ({"counts": dict(counts)}, {"counts": {str(v): n for v, n in counts.items()}}):
        score = task.score({**answer, "covers": [[0, 1000]]})
        assert (score.valid, score.rmse, score.reason) == (True, 0.0, "")


def test_the_score_is_the_root_of_the_mean_squared_error_over_all_values() -> None:
    task = CountFrequency(1000, 3)
    counts = Counter(everything(task))
    counts[0] += 30
    counts[1] += 40
    assert task.score({"counts": counts}).rmse == pytest.approx((2500 / 10) ** 0.5)


@pytest.mark.parametrize(
    ("wrong", "covers", "says"),
    [
        (0, [[0, 1000]], "It counts all 1,000 elements right."),
        (100, [[0, 1000]], "Of 1,000 elements 100 are counted too much."),
        (-100, [[0, 1000]], "Of 1,000 elements 100 are missing from it, although it says that it "
            "covers all."),
        (100, [[0, 400]], "It covers only 400 of 1,000 elements; [400, 1000] is missing. Of 1,000 "
            "elements 100 are counted too much."),
    ],
)  # fmt: skip
def test_a_score_says_how_good_the_answer_is_with_its_scale(
    wrong: int, covers: Any, says: str
) -> None:
    task = CountFrequency(1000, 3)
    counts = Counter(everything(task))
    counts[0] += wrong
    assert task.score({"counts": counts, "covers": covers}).says == says


@pytest.mark.parametrize(
    ("misread", "says", "wrong"),
    [
        (0, "these right", 0.6),
        (7, "7 of these stand at a wrong value", 0.607),
    ],
)
def test_the_covered_part_of_an_answer_is_judged_by_its_own_truth(
    misread: int, says: str, wrong: float
) -> None:
    """The missing parts lack so many of each value that a surplus of one cancels against them."""
    task = CountFrequency(1000, 3)
    counts = Counter(everything(task)[:400])
    counts[0] += misread
    counts[1] -= misread
    score = task.score({"counts": counts, "covers": [[0, 400]]})
    reach = "It covers only 400 of 1,000 elements"
    assert score.says == f"{reach}, and {says}; [400, 1000] is missing."
    assert score.wrong == pytest.approx(wrong)


@pytest.mark.parametrize(
    ("covers", "complete"),
    [
        ([[0, 1000]], True), ([[500, 1000], [0, 500]], True), ([[0, 600], [400, 1000]], True),
        ([[0, 999]], False), ([[1, 1000]], False), ([[0, 400], [500, 1000]], False), ([], False),
        (None, None), ("all", None), ([[0, 2000]], None), ([5], None), ([[0, "x"]], None),
    ],
)  # fmt: skip
def test_an_answer_is_complete_if_what_it_says_it_covers_is_all(covers: Any, complete: Any) -> None:
    """An answer that does not say it, or not so that it can be read, is not judged."""
    task = CountFrequency(1000, 3)
    score = task.score({"counts": {}, "covers": covers})
    assert (score.valid, score.complete) == (True, complete)
    assert task.score({"counts": {}}).complete is None


def test_a_value_that_is_missing_counts_as_zero() -> None:
    task = CountFrequency(1000, 3)
    truth = Counter(everything(task))
    without = {value: count for value, count in truth.items() if value != 4}
    assert task.score({"counts": without}).rmse == pytest.approx((truth[4] ** 2 / 10) ** 0.5)


@pytest.mark.parametrize(
    "answer",
    [
        None, 5, "counts", [], {}, {"counts": None}, {"counts": [1, 2]}, {"counts": {"10": 1}},
        {"counts": {"x": 1}}, {"counts": {"01": 1}}, {"counts": {1: 1, "1": 1}},
        {"counts": {True: 1}}, {"counts": {"1": "many"}}, {"counts": {"1": True}},
        {"counts": {"1": -1}}, {"counts": {"1": float("nan")}}, {"counts": {"1": float("inf")}},
        {"counts": {"1": 10**400}}, {"counts": {"1": None}},
    ],
)  # fmt: skip
def test_an_answer_of_another_shape_is_not_valid_and_the_reason_is_given(answer: Any) -> None:
    score = CountFrequency(100, 1).score(answer)
    assert not score.valid and score.rmse is None and score.reason


@pytest.mark.parametrize(("size", "most"), [(1, 1000), (0, 1000), (-5, 1000), (10, 0)])
def test_sizes_that_make_no_sense_are_refused(size: int, most: int) -> None:
    with pytest.raises(SettingsError):
        CountFrequency(size, 1, most_per_message=most)
