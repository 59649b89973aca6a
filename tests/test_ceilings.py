"""No package grows, and none speaks less plainly, without a word about it in the same commit."""

from __future__ import annotations

from collections import Counter

import pytest

from .ceilings import packages, shares

# Lines of code. A change that needs more raises its row in the same commit, and says why there.
LINES = {
    "dig": 198,
    "_util": 640,
    "adapters": 9_245,
    "cli": 2_253,
    "detectors": 3_950,
    "diagnosis": 6_756,
    "faults": 1_317,
    "graph": 2_542,
    "lab": 9_586,
    "monitor": 2_106,
    "runtime": 4_221,
    "show": 5_356,
    "tasks": 2_575,
    "traces": 4_976,
}

# All packages together: fillers per 1,000 names, participles and leaning first lines in per cent.
MOST = {"fillers": 4.0, "participles": 1.5, "leaning": 15.0}
LEAST_COMMENTS = 4.0
"""Comments to 100 lines of code."""


@pytest.fixture(scope="module")
def counted() -> dict[str, Counter[str]]:
    """The counts of each package."""
    return packages()


def test_no_package_has_grown(counted: dict[str, Counter[str]]) -> None:
    """Each has at most the lines of code that its row says, and no row is a hundred too high."""
    lines = {package: counts["lines"] for package, counts in counted.items()}
    assert lines.keys() == LINES.keys()
    grown = {name: lines[name] for name in lines if lines[name] > LINES[name]}
    assert not grown, "raise these rows of LINES, with a reason in the commit"
    shrunk = {name: lines[name] for name in lines if lines[name] < LINES[name] - 100}
    assert not shrunk, "lower these rows of LINES"


def test_names_and_sentences_stay_plain(counted: dict[str, Counter[str]]) -> None:
    """`python -m tests.ceilings` shows the figures of each package."""
    figures = shares(sum(counted.values(), Counter()))
    assert all(figures[key] <= most for key, most in MOST.items()), figures
    assert figures["comments"] >= LEAST_COMMENTS, figures
