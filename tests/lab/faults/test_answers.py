"""Answers: what the schema takes, and what is said of a file that it does not take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dig.errors import SettingsError
from dig.faults.inject.fault_catalogue import KINDS
from dig.lab.benchmark.answer_file import Answer, Answers, CausalStep, RootCause, read_answers

ANSWERS = Answers(
    by="me",
    answers={
        "i0001": Answer(
            root_causes=(RootCause(component="agent-3", kind="drop", evidence=(4, 7)),),
            propagation=(CausalStep(source="agent-3", target="outcome", evidence=(9,)),),
        ),
        "i0002": Answer(),
    },
)


def store(folder: Path, body: Any) -> Path:
    path = folder / "answers.json"
    path.write_text(body if isinstance(body, str) else json.dumps(body))
    return path


def about(**answer: Any) -> dict[str, Any]:
    return {"format": "digmon-answers", "version": 1, "answers": {"i0001": answer}}


def test_answers_survive_their_file(tmp_path: Path) -> None:
    """What was written is read again as the same answers."""
    assert read_answers(store(tmp_path, ANSWERS.text())) == ANSWERS


def test_evidence_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    """A record proves no more for being named again."""
    cause = {"component": "a", "kind": "drop", "evidence": [7, 4, 7]}
    read = read_answers(store(tmp_path, about(root_causes=[cause])))
    assert read.answers["i0001"].root_causes[0].evidence == (7, 4)


CAUSE = {"component": "agent-3", "kind": "drop"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{", "is not JSON"),
        ('{"a": 1, "a": 2}', "'a'"),
        ([], "the file: input should be an object"),
        ({"answers": {}, "version": 2}, "version: input should be 1"),
        ({"answers": {}, "more": 1}, "more: extra inputs are not permitted"),
        ({}, "answers: field required"),
        (about(root_causes=[{"kind": "drop"}]), "answers.i0001.root_causes[0].component"),
        (about(root_causes=[{**CAUSE, "kind": ""}]), "root_causes[0].kind"),
        (about(step=-1), "answers.i0001.step"),
        (about(root_causes=[CAUSE, {**CAUSE, "evidence": [-1]}]), "root_causes[1].evidence[0]"),
        (about(root_causes=[{**CAUSE, "evidence": ["7"]}]), "root_causes[0].evidence[0]"),
        (about(propagation=[{"source": "", "target": "b"}]), "propagation[0].source"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path: Path, body: Any, said: str) -> None:
    """One line says what is wrong, and where in the file."""
    path = store(tmp_path, body)
    with pytest.raises(SettingsError) as error:
        read_answers(path)
    assert str(error.value).startswith(str(path))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """An error names the file."""
    with pytest.raises(SettingsError, match=r"gone\.json cannot be read: No such file"):
        read_answers(tmp_path / "gone.json")


def test_the_schema_names_all_kinds() -> None:
    """Who reads the schema alone knows every kind, and what all parts mean."""
    found = Answers.model_json_schema()
    kind = found["$defs"]["RootCause"]["properties"]["kind"]
    assert kind["examples"] == [*KINDS]
    parts = [found, *found["$defs"].values()]
    assert all("description" in key for part in parts for key in part["properties"].values())
