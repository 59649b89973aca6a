"""The oracle against the cases judged by hand."""

from __future__ import annotations

import pytest

from .cases import CASES
from .cases.case import Case
from .oracle_findings import findings
from .oracle_mended import mended


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_oracle_finds_what_the_page_says(case: Case) -> None:
    """All findings of a case, in their order, with severity and evidence."""
    assert findings(case.rows) == case.expected


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_oracle_says_what_was_mended(case: Case) -> None:
    """For each finding of a case, whether it was mended later in the trace."""
    assert mended(case.rows) == case.mended


def test_no_two_cases_have_one_name() -> None:
    """A name leads to one case."""
    assert len({case.name for case in CASES}) == len(CASES)
