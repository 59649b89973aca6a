"""What a simulated agent does in one activation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from dig.monitor.messages import Pending
from dig.runtime.agents import Decision
from dig.tasks.simulated.agent import SimulatedAgent

from .turns import (
    DATA,
    NOTE,
    PERFECT,
    decide,
    fates,
    problem,
    raw,
    see,
    solution,
    with_habit,
)  # fmt: skip


def test_a_long_problem_is_dealt_out_to_the_whole_team_in_equal_shares() -> None:
    decision = decide(see(problem()))
    assert fates(decision) == {"p0": "consume"}
    assert Counter(name for output in decision.outputs for name in output.to) == {
        "a1": 1, "a2": 1, "a3": 1,
    }  # fmt: skip
    assert [output.payload["part"] for output in decision.outputs] == [
        [0, 1000], [1000, 2000], [2000, 3000],
    ]  # fmt: skip
    assert {output.payload["report_to"] for output in decision.outputs} == {"a1"}


def test_a_short_problem_is_read_into_an_event_to_oneself() -> None:
    (output,) = decide(see(problem(0, 1000, "a2"))).outputs
    assert (output.type, output.to, output.payload["report_to"]) == ("raw_data", ["a1"], "a2")
    assert output.payload["data"] == DATA([0, 1000])


def test_no_more_parts_are_read_at_once_than_the_profile_says() -> None:
    view = see(*(problem(i * 100, i * 100 + 100, "a2") for i in range(9)))
    decision = decide(view, replace(PERFECT, reads_at_once=4))
    assert len(decision.outputs) == len(decision.fates) == 4


def test_raw_data_is_counted_and_reported_to_whoever_collects() -> None:
    (output,) = decide(see(raw(0, 1000, "a3"))).outputs
    assert (output.type, output.to, output.payload["covers"]) == ("solution", ["a3"], [[0, 1000]])
    assert Counter(DATA([0, 1000])) == {int(v): n for v, n in output.payload["counts"].items()}


def test_reading_takes_longer_the_more_there_is_to_read() -> None:
    def seconds(stop: int) -> float:
        return SimulatedAgent(1, PERFECT).plan(see(raw(0, stop))).think_s

    assert seconds(1000) - seconds(200) == pytest.approx(800 * PERFECT.read_s)


def test_solutions_wait_until_they_cover_everything() -> None:
    assert decide(see(solution(0, 1000), solution(2000, 3000))) == Decision()


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_solutions_that_cover_everything_are_submitted(order: tuple[int, ...]) -> None:
    decision = decide(see(*(solution(i * 1000, i * 1000 + 1000) for i in order)))
    (output,) = decision.outputs
    assert output.final and output.payload["counts"] == {"1": 3000}
    assert output.payload["covers"] == [[0, 3000]]
    assert len(decision.fates) == 3


def test_what_was_counted_twice_is_added_once() -> None:
    view = see(
        solution(0, 2000), solution(0, 2000, name="again"), solution(1500, 2500),
        solution(2000, 3000),
    )  # fmt: skip
    (output,) = decide(view).outputs
    assert output.final and output.payload["counts"] == {"1": 3000}


def test_ones_own_counts_complete_an_answer_at_once() -> None:
    (output,) = decide(see(solution(0, 2000), raw(2000, 3000))).outputs
    assert output.final and output.payload["covers"] == [[0, 3000]]


def test_a_solution_that_went_astray_is_sent_on_to_whoever_collects() -> None:
    (fate,) = decide(see(solution(0, 1000, report_to="a3"))).fates
    assert (fate.fate, fate.to) == ("reroute", ["a3"])


def test_whoever_is_sent_a_copy_keeps_it_and_may_submit_when_complete() -> None:
    copies = [solution(i, i + 1000, report_to="a2", is_for_all=True) for i in (0, 1000, 2000)]
    assert decide(see(*copies[:2])) == Decision()
    assert decide(see(*copies)).outputs[0].final


def test_an_agent_stands_in_for_a_collector_that_has_left() -> None:
    view = see(*(solution(i, i + 1000, report_to="gone") for i in (0, 1000, 2000)))
    assert decide(view).outputs[0].final


def test_a_returned_answer_is_kept_and_what_it_lacks_is_counted_again() -> None:
    returned = solution(0, 2000, name="f", notes=("Work is missing.",), final=True)
    decision = decide(see(returned))
    kept, again = decision.outputs
    assert fates(decision) == {"f": "consume"}
    assert (kept.type, kept.to, kept.payload["covers"]) == ("solution", ["a1"], [[0, 2000]])
    assert (again.type, again.payload["part"]) == ("problem", [2000, 3000])
    assert not kept.final


def test_without_compliance_a_returned_answer_is_submitted_again() -> None:
    returned = solution(0, 2000, name="f", notes=("Work is missing.",), final=True)
    (output,) = decide(see(returned), with_habit("compliance", 0.0)).outputs
    assert output.final and output.payload["covers"] == [[0, 2000]]


def test_a_note_about_a_deadlock_has_missing_ranges_counted_again_by_all() -> None:
    decision = decide(see(solution(0, 1000), problem(1000, 1500, "a1"), NOTE))
    assert fates(decision) == {"n1": "consume", "p1000": "consume"}
    again = [output for output in decision.outputs if output.type == "problem"]
    assert [output.payload["part"] for output in again] == [[1500, 2250], [2250, 3000]]
    assert again[0].to == ["a1"] and again[1].to != ["a1"]


def test_a_note_is_read_and_ignored_without_compliance() -> None:
    decision = decide(see(solution(0, 1000), NOTE), with_habit("compliance", 0.0))
    assert (fates(decision), decision.outputs) == ({"n1": "consume"}, [])


@pytest.mark.parametrize("habit", ["wait", "pass_on", "discard", "submit_early", "hand_over"])
def test_whoever_acts_on_a_note_has_no_bad_habits_then(habit: str) -> None:
    profile = with_habit(habit, 1.0)
    view = see(problem(0, 1000, "a1"), solution(1000, 2000), solution(2000, 2500), NOTE)
    assert decide(view, profile) == decide(view)


@pytest.mark.parametrize("payload", [None, "x", {}, {"task": "count-frequency", "part": [5, 1]}])
@pytest.mark.parametrize("kind", ["problem", "raw_data", "solution"])
def test_damaged_work_is_discarded_and_the_rest_goes_on(kind: str, payload: Any) -> None:
    decision = decide(see(Pending("x", kind, "a2", payload), problem(0, 1000, "a1")))
    assert fates(decision) == {"x": "discard", "p0": "consume"}


def test_a_problem_about_a_part_that_does_not_exist_is_discarded() -> None:
    assert fates(decide(see(problem(9000, 9500)))) == {"p9000": "discard"}


def test_a_message_that_is_no_work_is_read() -> None:
    assert fates(decide(see(Pending("m", "message", "a2", "hello")))) == {"m": "consume"}
