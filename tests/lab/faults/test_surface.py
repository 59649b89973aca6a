"""The learned reader of the surface: what it is shown, and what each fit has seen."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy
import pytest
from numpy.typing import NDArray

from bench import surface
from bench.surface import _Question
from dig.lab.benchmark import surface as page
from dig.lab.benchmark.instances import FaultSet
from dig.lab.benchmark.rules import ORDER, rules
from dig.lab.benchmark.surface import DEEDS, learned
from dig.traces.run import RecordedRun

Floats = NDArray[numpy.float64]


@pytest.fixture(scope="module")
def questions(small: FaultSet) -> list[_Question]:
    return [_Question(each) for each in small.labelled() if each.label().harm]


NUMBERS = len(ORDER) + len(DEEDS)


def test_each_agent_has_three_numbers_for_each_sign_and_each_deed(small: FaultSet) -> None:
    """Shares of a sign are one together, or none has it; a deed is held against the team's."""
    for instance in small.labelled()[:5]:
        rows = page.surface(RecordedRun(instance.records()))
        block = numpy.array([*rows.values()]).reshape(len(rows), NUMBERS, 3)
        signs, deeds = block[:, : len(ORDER)], block[:, len(ORDER) :]
        totals = signs[:, :, 1].sum(axis=0)
        assert numpy.allclose(totals[totals > 0], 1)
        assert ((signs[:, :, 2] > 0) <= (signs[:, :, 1] == 1)).all()
        assert numpy.allclose(numpy.median(deeds[:, :, 0], axis=0), 0)
        differs = numpy.ptp(deeds[:, :, 0], axis=0) > 0
        assert numpy.allclose(deeds[:, :, 1:].sum(axis=0), differs[:, None])


def test_no_fit_has_seen_what_it_is_asked_about(
    questions: list[_Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In ten folds no run, and with kinds left out no run of the same kind."""
    taught: list[list[_Question]] = []

    def fit(known: Iterable[_Question]) -> Floats:
        taught.append([*known])
        return numpy.zeros(3 * NUMBERS)

    monkeypatch.setattr(surface, "fit", fit)
    assert len(surface.known_kinds(questions)) == len(questions)
    missing = [each for known in taught for each in questions if each not in known]
    assert sorted(map(id, missing)) == sorted(map(id, questions))
    taught.clear()
    surface.kinds_left_out(questions)
    for asked, known in zip(dict.fromkeys(each.kinds for each in questions), taught, strict=True):
        assert {*known} == {each for each in questions if each.kinds.isdisjoint(asked)}


def test_the_shipped_weights_name_an_agent_by_a_sign_of_the_rules(small: FaultSet) -> None:
    """It is another choice than by the rules, and not for all runs."""
    choices = set[bool]()
    for instance in small.labelled():
        records = instance.records()
        by_weights, by_order = learned(records), rules(records)
        assert by_weights is not None and by_order is not None
        assert by_weights[0] in RecordedRun(records).agents and by_weights[2] < len(records)
        choices.add(by_weights[0] == by_order[0])
    assert choices == {True, False}


def test_a_fit_says_which_commands_make_its_sets(
    small: FaultSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "weights.json"
    monkeypatch.setattr("sys.argv", ["surface", str(small.path), "--fit", str(weights)])
    surface.main()
    about = json.loads(weights.read_text())
    assert about["sets"] == ["digmon bench make --seed 7 --salt small --count 30"]
    assert len(about["weights"]) == 3 * NUMBERS
