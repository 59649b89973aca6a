"""The learned reader of the surface: what it is shown, and that it learns of other kinds alone."""

from __future__ import annotations

import numpy
import pytest
from numpy.typing import NDArray

from bench import surface
from dig.lab.benchmark.instances import FaultSet
from dig.traces.run import RecordedRun

Floats = NDArray[numpy.float64]


def test_each_agent_has_a_row_that_says_how_unlike_the_others_it_is(small: FaultSet) -> None:
    """A name tells nothing: only the first place is marked."""
    run = small.labelled()[0].records()
    agents, rows = surface.surface(RecordedRun(run))
    assert len(agents) == len(rows) == len({*agents})
    assert [row[0] for row in rows] == [1.0] + [0.0] * (len(rows) - 1)
    block = surface.standardised(rows)
    assert numpy.allclose(block[:, : len(rows[0])].mean(axis=0), 0)


def test_a_kind_is_asked_about_by_what_the_other_kinds_taught(
    small: FaultSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No run of a kind is in the fit that is asked about it, and each failure is asked once."""
    harmful = [label for each in small.labelled() if (label := each.label()).harm]
    kinds = [frozenset(fault["kind"] for fault in label.faults) for label in harmful]
    sizes = []

    def newton(pairs: list[tuple[Floats, int]], l2: float) -> Floats:
        sizes.append(len(pairs))
        return numpy.zeros(pairs[0][0].shape[1])

    monkeypatch.setattr(surface, "newton", newton)
    table = surface.ranked(small)
    counts = [len({cause.component for cause in label.causes}) for label in harmful]
    taught = [
        sum(count for other, count in zip(kinds, counts, strict=True) if other.isdisjoint(asked))
        for asked in dict.fromkeys(kinds)
    ]
    assert sizes == taught
    assert {row[0]: row[1] for row in table.rows}["all"] == str(len(harmful))
