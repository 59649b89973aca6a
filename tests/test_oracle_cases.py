"""The oracle, and the detectors, against the cases judged by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tests.cases import CASES
from tests.cases.case import Case

from .comparison import Comparison, compare
from .histories import deliver, emit, row, trace, turn
from .oracle import Row
from .oracle_findings import findings
from .oracle_mended import mended, unhealed


@cache
def seen(number: int) -> Comparison:
    """A case as both see it; the oracle's time grows with the square of the rows."""
    return compare(CASES[number].rows)


@pytest.fixture(params=range(len(CASES)), ids=[case.name for case in CASES])
def case(request: pytest.FixtureRequest) -> tuple[Case, Comparison]:
    """A case, and what both find in it."""
    return CASES[request.param], seen(request.param)


@pytest.mark.sampled(3)
def test_the_oracle_finds_what_the_page_says(case: tuple[Case, Comparison]) -> None:
    """All findings of a case, in their order, with severity and evidence, and if it was mended."""
    known, found = case
    assert found.expected == expected(known)


def test_the_detectors_find_what_the_page_says(case: tuple[Case, Comparison]) -> None:
    """So do the detectors, and `Mending` says the same of what they find."""
    known, found = case
    assert found.fault is None
    assert found.found == expected(known)


def expected(case: Case) -> list[Row]:
    """The findings that the page gives, each with whether it was mended later in the trace."""
    both = zip(case.expected, case.mended, strict=True)
    return [{**row, "mended": mended} for row, mended in both]


def test_no_two_cases_have_one_name() -> None:
    """A name leads to one case."""
    assert len({case.name for case in CASES}) == len(CASES)


def test_unhealed_are_errors_neither_mended_nor_silenced() -> None:
    """Of four lost events one is used later, one is silenced, and one is usual for the team."""
    rows = trace(
        *[emit(0, name, None) for name in ("e1", "e2", "e3", "e4")],
        *[told("e2", silenced="known"), told("e3"), told("e4", evidence={"cause": "left"})],
        row(2, "redirect", event="e4", to=["a"]),
        deliver(2, "e4", "a"),
        turn(3, "v", "a", e4="consume"),
        limits={"oe_window_s": 1},
        usual={"runs": 19, "counts": {"OE": [19]}},
    )
    severities = [(one["subject"]["event"], one["severity"]) for one in findings(rows)]
    assert severities == [("e1", "notice"), ("e2", "error"), ("e3", "error"), ("e4", "error")]
    assert mended(rows) == [False, False, False, True]
    assert [one["subject"] for one in unhealed(rows)] == [{"event": "e3"}]


def told(event: str, **keys: Any) -> Row:
    """What a monitor wrote about a lost event."""
    about = {"pattern": "OE", "stage": None, "subject": {"event": event}, "severity": "error"}
    return row(1, "finding", **about, **({"evidence": {"cause": "no_recipient"}} | keys))
