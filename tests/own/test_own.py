"""Two runs of a framework's own tests are compared test by test."""

from __future__ import annotations

from pathlib import Path

import pytest

from .__main__ import Results, alarms, differing, flaky, main, plain, table
from .suites import SUITES, Suite


def results(**outcomes: str) -> Results:
    return Results(outcomes=outcomes)


def test_a_test_that_does_not_always_end_alike_is_flaky_and_is_not_compared() -> None:
    """It may also be missing in a run."""
    bare = [results(a="passed", b="passed", c="failed"), results(a="passed", b="failed")]
    assert flaky(bare) == {"b", "c"}
    assert differing(bare, results(a="passed", b="failed", c="passed"), healed=False) == []


def test_every_other_way_to_end_is_a_difference() -> None:
    """A test that was not run, and one that passes only when it is watched, too."""
    bare = [results(a="passed", b="failed", c="skipped", d="passed")]
    wrapped = results(a="failed", b="passed", c="passed")
    assert differing(bare, wrapped, healed=False) == ["a", "b", "c", "d"]
    assert differing(bare, wrapped, healed=True) == ["a", "c", "d"]


def test_a_report_has_the_outcome_of_each_test_and_what_the_sessions_saw(tmp_path: Path) -> None:
    """A test is called by its id; one that could not be imported has none."""
    (tmp_path / "report.xml").write_text(
        """<testsuites><testsuite time="2.5">
        <testcase classname="tests.m" name="a"><properties><property name="nodeid"
         value="tests/m.py::a"/><property name="dig" value='[{"requests": 2, "alarms": ["ET: x"]},
         {"refused": "no"}]'/></properties></testcase>
        <testcase classname="tests.m" name="b"><failure message="first&#10;second"/></testcase>
        <testcase classname="tests.m" name="c"><skipped/></testcase>
        </testsuite></testsuites>"""
    )
    seen = Results()
    seen.add(tmp_path / "report.xml", "p")
    assert seen.outcomes == {
        "p/tests/m.py::a": "passed", "p/tests.m::b": "failed", "p/tests.m::c": "skipped",
    }  # fmt: skip
    assert seen.messages == {"p/tests.m::b": "first"}
    assert seen.wrapped("alarms") == [("p/tests/m.py::a", ["ET: x"])]
    assert seen.row("observe") == ("observe", 1, 1, 1, 1, 2, 1, 2)
    assert table([seen.row("observe")]).endswith("| observe | 1 | 1 | 1 | 1 | 2 | 1 | 2 |")


@pytest.mark.parametrize("explained", [{"a": "it loops"}, {}])
def test_an_alarm_must_be_explained(
    explained: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """By the name of the test whose team it is about."""
    seen = Results(teams=[("p/m.py::a[x]", {"alarms": ["LOOP: x"]}), ("p/m.py::b", {})])
    assert alarms(Suite((), alarms=explained), seen) is bool(explained)
    assert "alarm: p/m.py::a[x]: 1, the first one LOOP: x" in capsys.readouterr().out


def test_a_name_stands_for_all_parameters_of_a_test() -> None:
    """The id of a parameter may look like a path."""
    assert plain("p/tests/m.py::Class::test_a[x::y-z]") == "test_a"


def test_at_most_five_tests_differ_by_design() -> None:
    """In all suites together, each with a reason."""
    listed = [name for suite in SUITES.values() for name in suite.by_design]
    assert len(listed) <= 5
    assert all(reason for suite in SUITES.values() for reason in suite.by_design.values())


def test_a_framework_whose_source_has_no_tests_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is fetched or run."""
    monkeypatch.setattr("sys.argv", ["own", "ag2"])
    assert main() == 0
    assert capsys.readouterr().out == "ag2: nothing to run: its source distribution has no tests\n"
