"""A model that helps: what no agent may be told, and attempts that it merges."""

from __future__ import annotations

from pathlib import Path

import pytest

from dig.diagnosis.case import read_case
from dig.diagnosis.interventions.model_proposals import ModelHelp
from dig.diagnosis.interventions.secrecy import AnswerGuard
from dig.runtime.llm import Model, ModelSettings
from tests.diagnosis.failed_runs import failed
from tests.llm.server import says, serving


@pytest.mark.parametrize(
    ("expected", "target", "note", "is_refused"),
    [
        ("42", [], "it is 42", False),  # two digits may be anything
        ("the sum is 1,234", [], "go for 1234", True),
        (None, [987, 12], "count 987 of them", True),
        (None, [987, 12], "count 9871 of them, or 12", False),
        ('it is "London"', [], "think of london again", True),
        ('it is "Bonn"', [], "from Bonnie", False),
        ("Paris", [], "go to Paris.", True),
        (None, ["sci.space"], "read about sci.space", True),
        (None, [], "count 987 of them", False),
    ],
)
def test_a_note_with_a_value_of_the_answer_is_refused(
    expected: str | None, target: list[object], note: str, is_refused: bool
) -> None:
    """Numbers of three digits or more, and whole texts of four letters or more."""
    refusal = AnswerGuard(expected, target).refusal({"kind": "tell", "note": note})
    assert (refusal is not None) == is_refused


def helper(url: str) -> ModelHelp:
    return ModelHelp(Model(ModelSettings("m", url)))


def test_a_model_merges_and_renames_attempts_alone(tmp_path: Path) -> None:
    """The activations stay where they are; an attempt that is not named is left as it is."""
    case = read_case(failed(tmp_path, "split_twice", to="all", seed=4))
    first, second, *others = case.attempts
    answer = {"attempts": [{"ids": [first.id, second.id], "name": "Count in chunks!"}]}
    with serving([says(answer)]) as server:
        merged = helper(server.url).merge_attempts(case)
    assert {one.id for one in merged} == {"count-in-chunks", *(one.id for one in others)}
    joined = next(one for one in merged if one.id == "count-in-chunks")
    assert {*joined.activations} == {*first.activations, *second.activations}
    assert {a for one in merged for a in one.activations} == {*case.run.activations}


def test_an_attempt_that_is_not_there_is_not_merged(tmp_path: Path) -> None:
    """The model is told what is wrong, asked once more, and then left alone."""
    case = read_case(failed(tmp_path, "split_twice", to="all", seed=4))
    with serving([says({"attempts": [{"ids": ["p99"], "name": "x"}]})]) as server:
        asked = helper(server.url)
        assert asked.merge_attempts(case) == case.attempts
        assert len(server.requests) == 2
    assert "p99" in asked.notes[0]
