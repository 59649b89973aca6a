"""The next step of the five answers after changes of a run were tried."""

from __future__ import annotations

from pathlib import Path

from dig.detectors.answers import FiveAnswers
from dig.show.cause import KnownCause, SuspectedPlace, TriedChange
from dig.show.runs.summary import follow_run, stored_answers
from tests.histories import arrive, end, row, start, trace
from tests.traces.runs import store


def answers_after(folder: Path, verdict: str, turn: str = "v") -> FiveAnswers:
    """The answers about a run that failed in `b`, if a diagnosis names the turn of `a`."""
    failed = row(2, "finding", pattern="FAIL", stage="turn", severity="error",
                 subject={"activation": "w"}, evidence={"agent": "b", "error": "boom"})  # fmt: skip
    rows = trace(
        arrive(0, "p", None, "ab"),
        [start(0, turn, "a", "p"), end(1, turn, p="consume"), start(1, "w", "b", "p")],
        [end(2, "w", p="delay") | {"error": "boom"}, failed, row(3, "finish", outcome="stopped")],
    )
    path = store(folder / "r.dig.jsonl", rows)
    tried = TriedChange("another agent decides", verdict, 0, 3, 0, 3)
    cause = KnownCause(2, "a held p", (SuspectedPlace(turn, 2, "a held p"),), (), (tried,), "a")
    return stored_answers(path, follow_run(path)[1].so_far, None, place="RUN", cause=cause)


def test_a_refuted_suspect_is_no_cause_and_has_no_part(tmp_path: Path) -> None:
    answers = answers_after(tmp_path, "refuted")
    assert "a" not in [agent.agent for agent in answers.who]
    assert "Mend the cause" not in answers.next


def test_what_was_just_tried_is_no_next_step(tmp_path: Path) -> None:
    answers = answers_after(tmp_path, "validated")
    assert answers.next.startswith("Mend the cause: a held p")
    assert answers.command == "digmon show RUN v"
    assert not answers_after(tmp_path, "refuted").command.startswith("digmon why")


def test_the_name_of_a_turn_cannot_move_the_cursor(tmp_path: Path) -> None:
    """Names in a trace come from anywhere; a next step without a turn shows the run."""
    assert answers_after(tmp_path, "validated", "v\x1b[2J").command == (
        "digmon show RUN 'v\\u001b[2J'"
    )
    assert answers_after(tmp_path, "refuted").command == "digmon show RUN"
