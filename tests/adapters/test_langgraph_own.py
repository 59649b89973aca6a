"""The plugin with which LangGraph's own tests are run (`tests.own`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

import dig
from tests.own.__main__ import HERE, Results

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


def test_the_plugin_wraps_every_graph_that_is_compiled(tmp_path: Path) -> None:
    """A test that looks at what a wrapper changes fails; a report has what each session saw."""
    (tmp_path / "test_own.py").write_text(OWN_TESTS)
    environment = {
        **os.environ, "DIG_OWN_MODE": "observe", "DIG_OWN_FRAMEWORK": "langgraph",
        "PYTHONPATH": os.pathsep.join([str(HERE), str(Path(dig.__file__).parents[1])]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "wrap_teams", "-p", "no:cacheprovider",
         "--junitxml=report.xml", "test_own.py"],
        cwd=tmp_path, check=False, capture_output=True, env=environment,
    )  # fmt: skip
    observed = Results()
    observed.add(tmp_path / "report.xml", "own")
    passes, looks, skipped = (
        f"own/test_own.py::test_{name}" for name in ("passes", "looks_at_the_class", "is_skipped")
    )
    assert observed.outcomes == {passes: "passed", looks: "failed", skipped: "skipped"}
    assert [(test, team["requests"]) for test, team in observed.teams] == [(passes, 1), (looks, 0)]
    assert observed.wrapped("faults", "stopped", "alarms") == []
