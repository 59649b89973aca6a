"""One fault: how it is written, and what is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.errors import SettingsError
from dig.faults.inject.fault import Fault
from dig.faults.inject.fault_catalogue import KINDS


@given(
    kind=st.sampled_from([*KINDS]),
    start_s=st.floats(0, 1e6),
    length_s=st.none() | st.floats(1, 1e6),
    probability=st.floats(0, 1),
)
def test_a_fault_comes_back_from_its_json(
    kind: str, start_s: float, length_s: float | None, probability: float
) -> None:
    """All of it, with the parameters that were filled in."""
    end_s = None if length_s is None else start_s + length_s
    given = {"probability": probability}
    fault = Fault(kind=kind, target="ada", start_s=start_s, end_s=end_s, parameters=given)
    assert Fault.read(json.loads(json.dumps(fault.to_json()))) == fault
    assert fault.parameters.keys() == KINDS[kind].parameters.keys()


def test_a_fault_is_written_in_one_line() -> None:
    """Numbers are numbers, and a name in quotes may have blanks."""
    fault = Fault.parse("corrupt target='agent 3' start=10 end=30.5 how=counts at_most=2")
    assert (fault.kind, fault.target, fault.start_s, fault.end_s) == (
        "corrupt", "agent 3", 10.0, 30.5,
    )  # fmt: skip
    assert fault.parameters == {
        "how": "counts", "probability": 1.0, "at_most": 2, "rise_s": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no target"),
        ("crash", "'crash' has no target; write e.g."),
        ("crush target=ada", "there is no fault 'crush'; known are: drop, "),
        ("crash target=ada start=soon", "start is 'soon'; it must be a number"),
        ("crash target=ada start=5 end=5", "got 5 and 5"),
        ("crash target=ada start=-1", "got -1 and"),
        ("crash target=ada start=nan", "got nan and"),
        ("crash target=ada end=inf", "got 0 and inf"),
        ("stall target=ada seconds=inf", "seconds is 'inf'; it goes from 0 to"),
        ("slow target=ada factor=inf", "factor is 'inf'; it goes from 1 to"),
        ("crash target=ada at_most=inf", "at_most is 'inf'; it goes"),
        ("crash target=", "needs a target"),
        ("crash target=ada speed=3", "crash has no parameter 'speed'; it has: probability"),
        ("crash target=ada probability=2", "probability is '2'; it goes from 0 to 1"),
        ("crash target=ada probability=nan", "probability is 'nan'; it goes"),
        ("crash target=ada at_most=1.5", "at_most is '1.5'; it goes from 0 to inf, in whole"),
        ("stall target=ada seconds=long", "stall: seconds is 'long'; it must be a number"),
        ("corrupt target=ada how=badly", "how is 'badly'; it must be one of: any, garbled"),
        ("crash target='ada", "is not written as a fault is"),
        ("crash target=ada loud", "'loud' says nothing"),
        ("crash target=ada target=bob", "'target' is said twice"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would(text: str, says: str) -> None:
    with pytest.raises(SettingsError) as error:
        Fault.parse(text)
    assert says in str(error.value)


@pytest.mark.parametrize("row", [{}, {"kind": "crash"}, {"kind": "crash", "target": "a", "x": 1}])
def test_json_that_is_no_fault_is_refused(row: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        Fault.read(row)


@pytest.mark.parametrize(
    "text",
    ["%s target=ada", "%s", "crash %s", "crash target=ada %s=1", "crash target=ada start=%s",
     "crash target=ada at_most=%s", "corrupt target=ada how=%s", "crash target=ada start='%s",
     "%s x"],
)  # fmt: skip
def test_a_value_is_cut_in_an_error(text: str) -> None:
    """It may be long, and steer a terminal."""
    with pytest.raises(SettingsError) as refused:
        Fault.parse(text % ("\x1b[31m\u202e" + "x" * 10_000))
    said = str(refused.value)
    assert len(said) < 600 and said.isprintable()


@pytest.mark.parametrize("value", [10**400, -(10**400), [], {}])
@pytest.mark.parametrize("key", ["start_s", "end_s", "probability"])
def test_json_of_numbers_that_are_none_is_refused(key: str, value: object) -> None:
    """A whole number may be too large for a float."""
    row: dict[str, object] = {"kind": "crash", "target": "ada", key: value}
    if key == "probability":
        row = {"kind": "crash", "target": "ada", "parameters": {key: value}}
    with pytest.raises(SettingsError):
        Fault.read(row)


def test_the_end_of_a_window_is_not_in_it() -> None:
    fault = Fault(kind="crash", target="ada", start_s=1, end_s=2)
    assert [fault.is_on(time_s) for time_s in (0.999, 1, 1.999, 2)] == [False, True, True, False]
