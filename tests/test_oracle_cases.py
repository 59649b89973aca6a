"""The oracle, and the detectors, against the cases judged by hand."""

from __future__ import annotations

from typing import Any

import pytest

from .cases import CASES
from .cases.case import Case
from .comparison import compare
from .histories import deliver, emit, row, trace, turn
from .oracle import Row
from .oracle_findings import findings
from .oracle_mended import mended, unhealed


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_oracle_finds_what_the_page_says(case: Case) -> None:
    """All findings of a case, in their order, with severity and evidence."""
    assert findings(case.rows) == case.expected


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_oracle_says_what_was_mended(case: Case) -> None:
    """For each finding of a case, whether it was mended later in the trace."""
    assert mended(case.rows) == case.mended


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_detectors_find_what_the_page_says(case: Case) -> None:
    """So do the detectors, and `Mending` says the same of what they find."""
    seen = compare(case.rows)
    assert seen.fault is None
    assert seen.found == [
        {**row, "mended": mended} for row, mended in zip(case.expected, case.mended, strict=True)
    ]


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
