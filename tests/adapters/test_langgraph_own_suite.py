"""The plugin with which LangGraph's own tests are run, and how two runs of them are compared."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

import dig

from .own_suites.__main__ import HERE, Results, broken, results_of

OWN_TESTS = """
import pytest
from langgraph.graph import START, StateGraph

def build():
    built = StateGraph(dict).add_node("a", lambda state: state).add_edge(START, "a")
    return built.compile()

def test_passes():
    assert build().invoke({"x": 1}) == {"x": 1}

def test_looks_at_the_class():
    assert "Monitored" not in type(build()).stream.__code__.co_qualname

@pytest.mark.skip
def test_is_skipped():
    pass
"""


def ran(directory: Path, mode: str) -> Results:
    """Run those tests with the plugin, as the command does."""
    (directory / "test_own.py").write_text(OWN_TESTS)
    report = directory / "report.xml"
    paths = os.pathsep.join([str(HERE), str(Path(dig.__file__).parents[1])])
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "langgraph_plugin", "-p", "no:cacheprovider",
         f"--junitxml={report}", "test_own.py"],
        cwd=directory, check=False, capture_output=True,
        env={**os.environ, "DIG_OWN_SUITE_MODE": mode, "PYTHONPATH": paths},
    )  # fmt: skip
    return results_of(report)


def test_the_plugin_wraps_every_graph_that_is_compiled(tmp_path: Path) -> None:
    """Bare none is, and what passes bare and not wrapped is told."""
    bare, healed = ran(tmp_path, "bare"), ran(tmp_path, "heal")
    assert (bare.seen, bare.failed) == (Counter(), set())
    assert healed.seen == Counter(teams=2, requests=1, faults=0)
    assert bare.passed == {"test_own::test_passes", "test_own::test_looks_at_the_class"}
    assert broken(bare, healed, {}) == (["test_own::test_looks_at_the_class"], [])


def test_a_test_that_is_known_or_not_run_is_told_apart() -> None:
    """A name stands for all the parameters of a test; a test that was not run does not pass."""
    bare = Results(passed={"m::one[a]", "m::one[b]", "m::two"}, failed={"m::three"})
    healed = Results(passed={"m::one[a]", "m::three"}, failed={"m::one[b]"})
    assert broken(bare, healed, {"one": "it counts"}) == (["m::two"], ["m::one[b]"])
