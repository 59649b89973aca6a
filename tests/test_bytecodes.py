"""What a message costs, in bytecodes: exact, so a figure may only go down."""

from __future__ import annotations

import sys

import pytest

from bench.bytecodes import LATER, PAPER, counted, messages, total
from dig.detectors import standard

ELEVEN = frozenset(detector.pattern for detector in standard()) - LATER

# Only ever lowered. Another version of Python has other bytecodes.
MOST = {
    "thirteen patterns, journal": (None, True, 6_981),
    "eleven patterns, journal": (ELEVEN, True, 6_927),
    "thirteen patterns": (None, False, 6_180),
    "the paper's seven": (PAPER, False, 4_894),
    "no detector": (frozenset[str](), False, 4_556),
}


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the figures are those of 3.11")
@pytest.mark.parametrize(("patterns", "is_kept", "most"), MOST.values(), ids=MOST)
def test_a_message_takes_no_more_bytecodes_than_before(
    patterns: frozenset[str] | None, is_kept: bool, most: int
) -> None:
    """A message round a ring of agents: two requests, four records, their looks and the release."""
    assert total(counted(messages(patterns, is_kept=is_kept))) <= most
