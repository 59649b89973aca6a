"""The learned reader of the surface: what it is shown, and what each fit has seen."""

from __future__ import annotations

from collections.abc import Iterable

import numpy
import pytest
from numpy.typing import NDArray

from bench import surface
from bench.surface import _Question
from dig.lab.benchmark import rules as rules_page
from dig.lab.benchmark.instances import FaultSet
from dig.lab.benchmark.rules import ORDER, learned, rules
from dig.traces.run import RecordedRun

Floats = NDArray[numpy.float64]


@pytest.fixture(scope="module")
def questions(small: FaultSet) -> list[_Question]:
    return [_Question(each) for each in small.labelled() if each.label().harm]


def test_each_agent_has_three_numbers_for_each_kind_of_sign(small: FaultSet) -> None:
    """Shares of a kind are one together, or none has it."""
    for instance in small.labelled()[:5]:
        rows = rules_page.surface(RecordedRun(instance.records()))
        block = numpy.array([*rows.values()]).reshape(len(rows), len(ORDER), 3)
        totals = block[:, :, 1].sum(axis=0)
        assert numpy.allclose(totals[totals > 0], 1)
        assert ((block[:, :, 2] > 0) <= (block[:, :, 1] == 1)).all()


def test_no_fit_has_seen_what_it_is_asked_about(
    questions: list[_Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In ten folds no run, and with kinds left out no run of the same kind."""
    taught: list[list[_Question]] = []

    def fit(known: Iterable[_Question]) -> Floats:
        taught.append([*known])
        return numpy.zeros(3 * len(ORDER))

    monkeypatch.setattr(surface, "fit", fit)
    assert len(surface.known_kinds(questions)) == len(questions)
    missing = [each for known in taught for each in questions if each not in known]
    assert sorted(map(id, missing)) == sorted(map(id, questions))
    taught.clear()
    surface.kinds_left_out(questions)
    for asked, known in zip(dict.fromkeys(each.kinds for each in questions), taught, strict=True):
        assert {*known} == {each for each in questions if each.kinds.isdisjoint(asked)}


def test_the_shipped_weights_name_an_agent_by_a_sign_of_the_rules(small: FaultSet) -> None:
    """It is another choice among the same signs, and not the same choice for all runs."""
    choices = set[bool]()
    for instance in small.labelled():
        records = instance.records()
        by_weights, by_order = learned(records), rules(records)
        assert by_weights is not None and by_order is not None
        assert by_weights[0] in RecordedRun(records).agents and by_weights[2] < len(records)
        choices.add(by_weights[0] == by_order[0])
    assert choices == {True, False}
