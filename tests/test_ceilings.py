"""No package grows, and none speaks less plainly, without a word about it in the same commit."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent

import pytest

from .ceilings import files, packages, shares
from .test_architecture import MODULES, ROOT, imported

# Lines of code. A change that needs more raises its row in the same commit, and says why there.
LINES = {
    "dig": 250,
    "_util": 740,
    "adapters": 12_386,
    "cli": 2_712,
    "detectors": 6_622,
    "diagnosis": 6_795,
    "faults": 1_225,
    "graph": 2_657,
    "lab": 9_224,
    "monitor": 2_176,
    "runtime": 4_647,
    "show": 5_650,
    "tasks": 2_872,
    "traces": 7_206,
}

# What a command imports at any time; packages' own `__init__` are not counted.
IMPORTED = {"dig.cli.check": 15_276, "dig.cli.report": 12_420, "dig.cli.run": 26_657}
LOADED_BY_WRAP = 13_200
"""What is loaded when a wrapped team of plain callables has answered."""

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


def lines_of(paths: Iterable[Path]) -> int:
    """The lines of code of some files."""
    return sum(files()[path]["lines"] for path in paths if path.name != "__init__.py")


@pytest.mark.parametrize("command", IMPORTED)
def test_a_command_imports_little(command: str) -> None:
    """Also where an import stands in a function."""
    closure, waiting = {command}, [command]
    while waiting:
        new = {*imported(MODULES[waiting.pop()])} - closure
        closure |= new
        waiting += new
    assert lines_of(ROOT / MODULES[module] for module in closure) <= IMPORTED[command]


def test_a_wrapped_team_loads_little() -> None:
    """What only some teams want is loaded by these: a journal, alarms, a run that is repeated."""
    program = """
        import asyncio, sys
        import dig

        async def answer(question):
            return question

        team = dig.wrap({"ada": answer})
        assert asyncio.run(team["ada"]("?")) == "?"
        modules = [module for name, module in sys.modules.items() if name.startswith("dig.")]
        print(*(module.__file__ for module in modules if module.__file__), sep="\\n")
    """
    command = [sys.executable, "-c", dedent(program)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert lines_of(map(Path, finished.stdout.splitlines())) <= LOADED_BY_WRAP
