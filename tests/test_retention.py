"""Letting go: of nothing that a verdict will ever ask for; what stays, says what it said before."""

from __future__ import annotations

import pytest

from tests.retaining import found_letting_go, session_rows


@pytest.mark.parametrize("number", range(300))
def test_findings_are_the_same_whatever_is_let_go_of(number: int) -> None:
    """In a random session, the graph lets go of what it can at random moments."""
    rows = session_rows(number)
    kept, watch = found_letting_go(rows, number, keep=(0, 5, 30)[number % 3], often=0.4)
    assert kept == found_letting_go(rows, number, keep=0, often=0.0)[0]
    assert watch.graph.event_count == sum(row["kind"] == "emit" for row in rows)
