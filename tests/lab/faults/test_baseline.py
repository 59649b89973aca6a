"""The baseline: how rare a number is among those of fault-free runs."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.errors import RecordError, SettingsError
from dig.lab.run_pair import play
from dig.lab.truth.baseline import FEWEST, Baseline
from dig.lab.truth.measurements import Measured

from .verified import baseline, configured, fault, fault_free

VALUES = st.lists(st.integers(0, 50).map(lambda i: i / 10), min_size=1, max_size=60)


def of(values: list[float]) -> Baseline:
    return Baseline.of(1, [Measured("event", "e", "late", "m", value) for value in values])


@given(VALUES, st.integers(0, 60).map(lambda i: i / 10))
def test_rarity_is_the_share_of_numbers_at_least_as_large(
    values: list[float], value: float
) -> None:
    """Itself among them, so that it is never nothing."""
    above = sum(other >= value for other in values)
    assert of(values).rarity("m", value) == (1 + above) / (1 + len(values))


@given(VALUES)
def test_a_number_of_the_baseline_is_seldom_rare(values: list[float]) -> None:
    """At most one in twenty of any numbers is among the rarest twentieth."""
    known = of(values)
    rare = sum(known.rarity("m", value) <= 0.05 for value in values)
    assert rare <= 0.05 * len(values)


def test_of_what_nothing_is_known_nothing_is_rare() -> None:
    """A measure without numbers deviates from nothing."""
    assert of([1.0]).rarity("other", 99) == 1


def test_a_baseline_survives_json() -> None:
    """Numbers are kept with how often they came."""
    body = json.loads(json.dumps(baseline().to_json()))
    assert Baseline.read(body) == baseline()
    assert baseline().runs == len(fault_free())


@pytest.mark.parametrize("body", [None, {"runs": 3}, {"runs": 3, "values": {"m": [1]}}])
def test_what_is_no_baseline_is_refused(body: object) -> None:
    """With one line that says so."""
    with pytest.raises(RecordError, match="no baseline"):
        Baseline.read(body)


def test_few_runs_make_no_baseline() -> None:
    """With fewer than nineteen not even what never occurs would be rare."""
    with pytest.raises(SettingsError, match=str(FEWEST)):
        Baseline.from_runs(fault_free()[: FEWEST - 1])
    least = Baseline.from_runs(fault_free()[:FEWEST])
    assert least.rarity("outcome timeout", 1) <= 0.05


def test_a_run_with_a_fault_belongs_to_no_baseline() -> None:
    """Even one would make what it does usual."""
    runs = [*fault_free(), play(configured(1), [fault("crash")])]
    with pytest.raises(SettingsError, match="no fault"):
        Baseline.from_runs(runs)
