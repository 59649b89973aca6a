"""What a simulated agent does in one activation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from dig.monitor.messages import About, Pending
from dig.runtime.agents import Decision
from dig.tasks.simulated.parts import Partial
from dig.tasks.simulated.simulated_agent import SimulatedAgent

from .turns import (
    DATA,
    JOB,
    PERFECT,
    WAKE_UP,
    decide,
    fates,
    named,
    noted,
    problem,
    raw,
    see,
    solution,
    system,
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


# --- notes: each by its pattern and its content ---


RETURNED = solution(0, 2000, name="f", final=True)
LAST = problem(2000, 3000, "a1")
EARLY = replace(with_habit("submit_early", 1.0), enough=0.0)


def test_a_returned_answer_is_kept_and_lost_work_that_et_names_is_counted_again() -> None:
    """Exactly the part that is lost."""
    decision = decide(see(noted(RETURNED, named("ET", LAST, lost=("p2000",)))), EARLY)
    kept, *again = decision.outputs
    assert fates(decision) == {"f": "consume"}
    assert (kept.type, kept.to, kept.payload["covers"]) == ("solution", ["a1"], [[0, 2000]])
    assert [(output.type, output.payload["part"]) for output in again] == [
        ("problem", [2000, 3000])
    ]


def test_work_that_et_names_as_open_is_waited_for() -> None:
    """Also in later turns: the agent writes down for itself what is still to come."""
    (kept,) = decide(see(noted(RETURNED, named("ET", LAST))), EARLY).outputs
    assert (kept.final, kept.payload["awaited"]) == (False, [[2000, 3000]])
    later = Pending("later", "solution", "a1", kept.payload)
    assert decide(see(later, turn=2), EARLY) == Decision()
    (answer,) = decide(see(later, solution(2000, 3000), turn=3), EARLY).outputs
    assert answer.final and answer.payload["covers"] == [[0, 3000]]


@pytest.mark.parametrize("compliance", [0.0, 1.0])
def test_a_returned_answer_without_content_is_only_looked_at_again(compliance: float) -> None:
    """Whoever takes a part for the whole does so again; others keep what they have."""
    early = replace(EARLY, compliance=compliance)
    (again,) = decide(see(RETURNED), early, seed=2).outputs
    assert again.final and again.payload["covers"] == [[0, 2000]]
    (kept,) = decide(see(RETURNED), replace(early, submit_early=0.0), seed=2).outputs
    assert (kept.final, kept.to, kept.payload["covers"]) == (False, ["a1"], [[0, 2000]])


def test_a_note_that_is_not_heeded_changes_nothing() -> None:
    profile = replace(EARLY, compliance=0.0)
    view = see(noted(RETURNED, named("ET", LAST)))
    assert decide(view, profile) == decide(see(RETURNED), profile)


def test_a_note_about_a_deadlock_has_the_collector_see_to_what_nobody_holds() -> None:
    """What lies in front of others is waited for; the rest is counted again."""
    mine, others = solution(0, 1000), problem(1000, 2000, "a1")
    decision = decide(see(mine, system(named("DL", mine, others))), with_habit("wait", 1.0))
    kept, *again = decision.outputs
    assert kept.payload["awaited"] == [[1000, 3000]]
    parts = sorted(output.payload["part"] for output in again)
    assert (parts[0][0], parts[-1][1]) == (2000, 3000)


def test_an_agent_that_a_note_about_a_deadlock_does_not_name_does_nothing_new() -> None:
    view = see(solution(0, 1000), system(named("DL", problem(1000, 2000))))
    assert decide(view) == decide(see(solution(0, 1000), WAKE_UP))


def test_a_bare_wake_up_is_read_and_only_makes_an_agent_look_again() -> None:
    decision = decide(see(solution(0, 1000), WAKE_UP))
    assert (fates(decision), decision.outputs) == ({"n1": "consume"}, [])


@pytest.mark.parametrize("habit", ["wait", "pass_on", "discard", "hand_over"])
def test_a_bare_wake_up_switches_no_bad_habit_off(habit: str) -> None:
    profile = with_habit(habit, 1.0)
    some = problem(0, 1000, "a1"), solution(1000, 2000), solution(2000, 2500)
    woken = decide(see(*some, WAKE_UP), profile)
    alone = decide(see(*some), profile)
    assert {**fates(alone), "n1": "consume"} == {"n1": "consume", **fates(woken)}
    assert woken.outputs == alone.outputs


def test_what_there_is_is_submitted_if_nothing_else_is_left_to_do() -> None:
    """MC: an incomplete result, too."""
    (output,) = decide(see(solution(0, 1000), system(About("MC")))).outputs
    assert output.final and output.payload["covers"] == [[0, 1000]]


def test_a_result_that_was_announced_is_submitted_only_if_a_note_asks_for_it() -> None:
    whole = [solution(i, i + 1000) for i in (0, 1000, 2000)]
    (told,) = decide(see(*whole), with_habit("announce", 1.0)).outputs
    assert (told.type, told.final, told.to) == ("notice", False, ["a1", "a2", "a3"])
    notice = Pending("t", told.type, "a1", told.payload)
    assert decide(see(notice)) == decide(see()) == Decision()
    (answer,) = decide(see(notice, system(About("MC")))).outputs
    assert answer.final and answer.payload["covers"] == [[0, 3000]]


TWICE = (
    solution(0, 2000), solution(0, 2000, name="again"), solution(2000, 3000)
)  # fmt: skip
MIXED = (solution(0, 2000), solution(1500, 2500, name="other"), solution(2000, 3000))


@pytest.mark.parametrize(
    ("habit", "pattern", "events", "wrong"),
    [("count_twice", "RSP", TWICE, 5000), ("mix", "CLA", MIXED, 4000)],
)
def test_counts_are_added_up_wrongly_unless_a_note_warns_of_it(
    habit: str, pattern: str, events: tuple[Pending, ...], wrong: int
) -> None:
    profile = with_habit(habit, 1.0)
    (output,) = decide(see(*events), profile).outputs
    assert output.final and output.payload["counts"] == {"1": wrong}
    warned = events[0], noted(events[1], About(pattern)), events[2]
    (output,) = decide(see(*warned), profile).outputs
    assert output.final and output.payload["counts"] == {"1": 3000}


def test_a_warning_about_raw_data_goes_on_with_its_counts() -> None:
    """So that the agent that puts them together counts once."""
    (output,) = decide(see(noted(raw(0, 1000, "a3"), About("RSP")))).outputs
    assert output.payload["is_repeated"] is True
    warned = replace(TWICE[1], payload={**TWICE[1].payload, "is_repeated": True})
    (answer,) = decide(see(TWICE[0], warned, TWICE[2]), with_habit("count_twice", 1.0)).outputs
    assert answer.payload["counts"] == {"1": 3000}


def test_a_subproblem_that_nobody_wants_is_passed_on_until_a_note_says_so() -> None:
    """All agents agree about which it is; the problem itself is never passed on for that."""
    profile = replace(PERFECT, unwanted=1.0, shirk=1.0)
    part = problem(0, 1000, "a1")
    for agent in ("a1", "a2", "a3"):
        assert fates(decide(see(part, agent=agent), profile)) == {"p0": "reroute"}
    assert fates(decide(see(noted(part, About("ER"))), profile)) == {"p0": "consume"}
    assert fates(decide(see(problem()), profile)) == {"p0": "consume"}


def test_lost_work_that_comes_back_is_done_if_a_note_says_that_it_is_lost() -> None:
    part = problem(0, 1000, "a1")
    profile = with_habit("discard", 1.0)
    assert fates(decide(see(noted(part, named("OE", part))), profile)) == {"p0": "consume"}
    assert fates(decide(see(part), profile)) == {"p0": "discard"}


def test_lost_work_is_done_again_by_the_agent_that_a_note_names() -> None:
    note = named("OE", problem(0, 1000, "a3"), lost=("p0",), agents=("a1",))
    (output,) = decide(see(system(note))).outputs
    assert (output.type, output.payload["part"], output.payload["report_to"]) == (
        "problem", [0, 1000], "a3",
    )  # fmt: skip
    assert decide(see(system(note), agent="a2")).outputs == []


def test_solutions_of_two_problems_are_kept_apart() -> None:
    """Each answer has its own counts alone; as a habit, they are mixed."""
    other = Partial({"1": 500}, ((3000, 3500),), replace(JOB, whole=(3000, 3500)))
    theirs = Pending("o", "solution", "a2", other.payload())
    mine = solution(0, 3000)
    (output,) = decide(see(mine, theirs)).outputs
    assert output.final and output.payload["counts"] == {"1": 3000}
    assert fates(decide(see(mine, theirs))) == {"s0": "consume"}
    (output,) = decide(see(mine, theirs), with_habit("mix", 1.0)).outputs
    assert output.payload["counts"] == {"1": 3500}


@pytest.mark.parametrize("payload", [None, "x", {}, {"task": "count-frequency", "part": [5, 1]}])
@pytest.mark.parametrize("kind", ["problem", "raw_data", "solution"])
def test_damaged_work_is_discarded_and_the_rest_goes_on(kind: str, payload: Any) -> None:
    decision = decide(see(Pending("x", kind, "a2", payload), problem(0, 1000, "a1")))
    assert fates(decision) == {"x": "discard", "p0": "consume"}


def test_a_problem_about_a_part_that_does_not_exist_is_discarded() -> None:
    assert fates(decide(see(problem(9000, 9500)))) == {"p9000": "discard"}


def test_chat_about_work_is_a_notice_which_a_colleague_reads() -> None:
    """It is no work to anybody, so no answer is early because of it."""
    output, chat = decide(see(raw(0, 1000, "a2"), agent="a3"), with_habit("chat", 1.0)).outputs
    assert (output.to, chat.type) == (["a2"], "notice")
    read = decide(see(Pending("m", chat.type, "a3", chat.payload)))
    assert (fates(read), read.outputs) == ({"m": "consume"}, [])


def test_a_message_that_is_no_work_is_read() -> None:
    assert fates(decide(see(Pending("m", "message", "a2", "hello")))) == {"m": "consume"}
