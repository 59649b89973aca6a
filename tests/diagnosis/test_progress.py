"""How far a run came, and what a goal makes of a run, of a fork and of a plain trace."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from dig.detectors import standard
from dig.diagnosis.goal import Finished, Goal, Judgement, milestones
from dig.diagnosis.progress import any_milestones, share_reached
from dig.errors import SettingsError
from dig.graph.codec import decode
from dig.graph.records import Record
from dig.runtime.result import Left, RunResult
from dig.show.document import Evidence
from dig.tasks.milestones import Milestone
from dig.tasks.task import Score
from dig.traces.run import RecordedRun
from tests.histories import arrive, deliver, emit, final, row, trace, turn
from tests.oracle import Row
from tests.strategies import traces

DEFAULT = Goal.parse("default")

POSED = arrive(0, "e0", None, "a")
SPLIT = [
    *turn(1, "v1", "a", "e1 e2", e0="consume"),
    emit(1, "e1", "v1", "b"), emit(1, "e2", "v1", "c"), deliver(1, "e1", "b"),
    deliver(1, "e2", "c"),
]  # fmt: skip
ONE = [*turn(2, "v2", "b", "e3", e1="consume"), *arrive(2, "e3", "v2", "a", "solution")]
TWO = [*turn(3, "v3", "c", "e4", e2="consume"), *arrive(3, "e4", "v3", "a", "solution")]
BOTH = [*turn(4, "v4", "a", "e5", e3="consume", e4="consume"), final(4, "e5", "v4")]
HALF = [*turn(4, "v4", "a", "e5", e3="consume"), final(4, "e5", "v4")]
ACCEPTED = [deliver(5, "e5", None), row(5, "finish", outcome="submitted")]


def records(*parts: Any, **keys: Any) -> list[Record]:
    return [decode(one) for one in trace(*parts, **keys)]


def judged(*parts: Any, **more: Any) -> Judgement:
    return DEFAULT(Finished.of(records(*parts), {}, standard(), **more))


@pytest.mark.parametrize(
    ("parts", "reached"),
    [
        ([], "-----"),
        ([POSED], "-----"),
        ([POSED, SPLIT], "x----"),
        ([POSED, SPLIT, ONE], "x----"),
        ([POSED, SPLIT, ONE, TWO], "xx---"),
        ([POSED, SPLIT, ONE, TWO, BOTH], "xxx--"),
        ([POSED, SPLIT, ONE, TWO, BOTH, ACCEPTED], "xxxxx"),
        ([POSED, SPLIT, ONE, HALF, ACCEPTED], "x-xx-"),
        ([POSED, turn(1, "v1", "b", "e5"), final(1, "e5", "v1"), ACCEPTED], "--xx-"),
    ],
)
def test_any_run_has_five_milestones(parts: list[Any], reached: str) -> None:
    """Taken on, nothing needed left, submitted, accepted, good; progress is their share."""
    run = Finished.of(records(*parts), {}, standard())
    found = DEFAULT(run)
    flags = [one.reached for one in milestones(run, found)]
    assert "".join("-x"[flag] for flag in flags) == reached
    assert found.progress == reached.count("x") / 5


def test_work_of_an_activation_that_is_behind_no_answer_is_not_needed() -> None:
    """With memory what the agent did before is behind its answer, too."""
    aside = [*arrive(1, "n1", None, "b", "notice"), *turn(1, "w1", "b", "x1 x2", n1="consume")]
    aside += [emit(1, "x1", "w1", "c"), emit(1, "x2", "w1", "c")]
    answer = [*turn(2, "v1", "b", "e5", e0="consume"), final(2, "e5", "v1"), *ACCEPTED]
    posed = arrive(1, "e0", None, "b")
    for memory, left in ((False, False), (True, True)):
        run = RecordedRun(records(aside, posed, answer, memory=memory))
        assert any_milestones(run, True, "")[1].reached is not left


def left(run: RecordedRun) -> bool:
    """Whether work that an answer needs is left."""
    return not any_milestones(run, True, "")[1].reached


LOSES = [*turn(1, "v1", "a", "e1 e2", e0="consume"), emit(1, "e1", "v1"), emit(1, "e2", "v1")]


def test_behind_an_answer_that_was_made_of_nothing_is_all_that_its_agent_did_before() -> None:
    """An agent that acts on a note alone speaks of what it has seen; so one with memory."""
    answer = [*turn(2, "v2", "a", "e5"), final(2, "e5", "v2")]
    assert left(RecordedRun(records(POSED, LOSES, answer, ACCEPTED)))
    other = [*turn(2, "v2", "b", "e5"), final(2, "e5", "v2")]
    assert not left(RecordedRun(records(POSED, LOSES, other, ACCEPTED)))


def test_what_an_agent_does_after_its_answer_is_not_behind_it() -> None:
    """In a session it goes on."""
    posed = arrive(1, "n0", None, "a", "notice")
    answer = [*turn(1, "v0", "a", "e5", e0="consume"), final(1, "e5", "v0"), deliver(1, "e5", None)]
    later = [*turn(2, "v1", "a", "e1 e2", n0="consume"), emit(2, "e1", "v1"), emit(2, "e2", "v1")]
    run = RecordedRun(records(POSED, answer, posed, later, session=True, memory=True))
    assert not left(run)


def test_without_an_accepted_answer_the_last_one_counts() -> None:
    """It is the furthest that the run came."""
    aside = [*arrive(1, "n1", None, "b", "notice"), *turn(1, "w1", "b", "x1 x2", n1="consume")]
    aside += [emit(1, "x1", "w1", "c"), emit(1, "x2", "w1"), deliver(1, "x1", "c")]
    aside += [*turn(1, "w2", "c", "f1", x1="consume"), final(1, "f1", "w2")]
    answer = [*turn(2, "v2", "a", "e5", e0="consume"), final(2, "e5", "v2")]
    assert not left(RecordedRun(records(POSED, aside, answer)))
    assert left(RecordedRun(records(POSED, aside, turn(2, "v2", "a", e0="consume"))))


@given(traces())
def test_the_milestones_of_any_run_are_shown_by_its_records(rows: list[Row]) -> None:
    """Evidence is a record of the run, with a sentence, for what was reached and what was not."""
    run = RecordedRun(map(decode, rows))
    for one in any_milestones(run, False, "why"):
        assert one.evidence and all(e.t in range(len(rows)) and e.says for e in one.evidence)


def three(reached: int) -> list[Milestone]:
    return [Milestone("", n < reached, (Evidence(0, ""),)) for n in range(3)]


def test_a_run_that_is_not_good_has_not_come_all_the_way() -> None:
    """A user's goal may ask for more than the milestones of the task."""
    assert [share_reached(three(n), good=False) for n in range(4)] == [0, 1 / 3, 2 / 3, 2 / 3]
    assert share_reached(three(3), good=True) == 1


class Task:
    """A task of a user's own; `found` are its milestones."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def milestones(self, records: Any) -> Any:
        return self.found() if callable(self.found) else self.found


def test_milestones_of_the_tasks_own_come_first() -> None:
    """Where the task has none to tell, those of any run are taken."""
    assert judged(POSED, SPLIT, task=Task(three(1))).progress == 1 / 3
    assert judged(POSED, SPLIT, task=Task([])).progress == 1 / 5
    assert judged(POSED, SPLIT, task=object()).progress == 1 / 5


def test_milestones_that_fail_are_told_in_a_sentence() -> None:
    """They are a user's own code."""
    with pytest.raises(SettingsError, match=r"milestones of the task raised .* of runs/x"):
        judged(POSED, task=Task(lambda: 1 / 0), name="runs/x")
    with pytest.raises(SettingsError, match="a task has at most 5 milestones, not 6"):
        judged(POSED, task=Task(three(1) * 2))


def test_a_run_without_records_has_no_progress() -> None:
    """Nothing is known of it."""
    assert DEFAULT(Finished([], {})) == (False, None, "the run has no end")


# --- what is judged ---

LOST = [*POSED, *turn(1, "v1", "a", "e1", e0="consume"), emit(1, "e1", "v1", "")]
ANSWER = [*turn(99, "v9", "a", "e5"), final(99, "e5", "v9"), deliver(99, "e5", None)]
OVER = [row(99, "finish", outcome="submitted")]
WINDOWS = {"oe_window_s": 5}


def test_of_a_fork_only_what_was_found_since_its_change_counts() -> None:
    """What is past cannot be mended."""
    rows = records(LOST, ANSWER, OVER, limits=WINDOWS)
    (lost,) = Finished.of(rows, {}, standard()).unhealed
    assert lost.pattern == "OE"
    assert [one.pattern for one in Finished.of(rows, {}, standard(), since=lost.t).unhealed]
    fork = Finished.of(rows, {}, standard(), since=lost.t + 1)
    assert not fork.unhealed and DEFAULT(fork).good


def test_a_finding_that_was_mended_is_not_unhealed() -> None:
    """What was lost came back, and was consumed."""
    back = [row(50, "redirect", event="e1", to=["b"]), deliver(50, "e1", "b")]
    back += [*turn(51, "v2", "b", "e4", e1="consume"), *arrive(51, "e4", "v2", "a", "solution")]
    end_ = [*turn(99, "v9", "a", "e5", e4="consume"), final(99, "e5", "v9"), *ACCEPTED[:1]]
    rows = records(LOST, back, [{**one, "ts": 99} for one in end_], OVER, limits=WINDOWS)
    assert not Finished.of(rows, {}, standard()).unhealed


def test_a_finding_that_the_run_silenced_is_not_unhealed() -> None:
    """The reason stands in its row."""
    about: dict[str, Any] = {"subject": {"event": "e1"}, "evidence": {"cause": "no_recipient"}}
    about |= {"pattern": "OE", "stage": None, "severity": "error"}
    said = row(99, "finding", **about, silenced="known")
    rows = records(LOST, said, ANSWER, OVER, limits=WINDOWS)
    assert not Finished.of(rows, {}, standard()).unhealed


def test_an_answer_without_a_score_was_not_checked() -> None:
    """A plain trace has none; a note says so, where there is an answer at all."""
    rows = records(POSED, SPLIT, ONE, TWO, BOTH, ACCEPTED)
    assert Finished.of(rows, {}, standard()).notes == (
        "the answer was not checked: no score is known",
    )
    assert not Finished.of(rows, {}, standard(), score=Score(True, 3.0)).notes
    assert not Finished.of(rows[:-1], {}, standard()).notes


def test_how_a_run_ended_stands_for_its_result_file() -> None:
    """A fork that has just been made is judged without reading it again."""
    rows = records(POSED, SPLIT, ONE, TWO, BOTH, ACCEPTED)
    left = Left((), (), {}, {})
    result = RunResult("submitted", "", None, 5.0, len(rows), 6, 4, {}, (), {}, left)
    run = Finished.of(rows, result, standard(), score=Score(True, 3.0))
    assert Goal.parse("seconds<6 and score.rmse<=3")(run).good
    assert Goal.parse("seconds<5")(run).why == "seconds<5 does not hold"
