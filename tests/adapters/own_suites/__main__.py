"""Runs a framework's own tests bare and wrapped, and compares: `python -m tests.adapters.own_suites`.

The sources are the distribution with the tests in it, unpacked anywhere but in here; the Python is
one of a virtual environment with the framework, this project, and what those tests need:

    pip download --no-deps --no-binary :all: langgraph==1.2.22 && tar xzf langgraph-1.2.22.tar.gz
    python -m venv own && own/bin/pip install -e '.[langgraph]' pytest pytest-mock pytest-repeat \\
        pytest-timeout pytest-xdist syrupy httpx redis uvloop pycryptodome \\
        langgraph-checkpoint-sqlite langgraph-checkpoint-postgres 'psycopg[binary]'
    python -m tests.adapters.own_suites langgraph --source langgraph-1.2.22 --python own/bin/python

Exit status: 0, if every test that passes bare passes wrapped, but for those that are known to look
at what a wrapper cannot leave as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Suite:
    """A framework's own tests.

    Attributes:
        plugin: The pytest plugin that wraps each team.
        known: Tests that look at what a wrapper changes, and why.
        environment: What they need to run without servers.
        arguments: What pytest is given besides.
    """

    plugin: str
    known: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()


SUITES = {
    "langgraph": Suite(
        "langgraph_plugin",
        {"test_pregel_loop_refcount": "it counts the references to LangGraph's loop"},
        {"NO_DOCKER": "true", "LANGSMITH_TRACING": "false"},
        ("-o", "addopts=", "--timeout=120", "tests"),
    )
}


@dataclass
class Results:
    """What came of a run.

    Attributes:
        passed: The tests that passed.
        failed: Those that failed, or had an error.
        seen: What the monitor has counted: teams, requests, findings.
    """

    passed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    seen: Counter[str] = field(default_factory=Counter)


def results_of(report: Path) -> Results:
    """Read a report of pytest's, `--junitxml`."""
    results = Results()
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        for note in case.iterfind("properties/property[@name='dig']"):
            results.seen.update(json.loads(note.get("value", "{}")))
        if case.find("failure") is not None or case.find("error") is not None:
            results.failed.add(name)
        elif case.find("skipped") is None:
            results.passed.add(name)
    return results


def broken(
    bare: Results, wrapped: Results, known: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """The tests that pass bare and not wrapped: those that are not known, and those that are.

    A test that was not run at all does not pass.
    """
    lost = sorted(bare.passed - wrapped.passed)
    expected = [name for name in lost if name.rpartition("::")[2].partition("[")[0] in known]
    return [name for name in lost if name not in expected], expected


def run(suite: Suite, mode: str, options: argparse.Namespace) -> Results:
    """Run a suite in one mode; what pytest prints goes to the terminal."""
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, **suite.environment, "DIG_OWN_SUITE_MODE": mode,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }  # fmt: skip
    with TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        command = [
            options.python, "-m", "pytest", "-q", "--tb=short", "-p", suite.plugin,
            "-p", "no:cacheprovider", "-n", str(options.jobs), f"--junitxml={report}",
            *suite.arguments,
        ]  # fmt: skip
        subprocess.run(command, cwd=options.source, env=environment, check=False)
        if not report.is_file():
            sys.exit(f"pytest has left no report of the {mode} run; see above why")
        return results_of(report)


def main() -> int:
    """Run a suite in both modes, and print what differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.adapters.own_suites")
    parser.add_argument("framework", choices=SUITES)
    parser.add_argument("--source", type=Path, required=True, help="where its sources are")
    parser.add_argument("--python", default=sys.executable, help="the Python to run it with")
    parser.add_argument("--mode", choices=["observe", "heal"], default="heal")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    suite = SUITES[options.framework]
    bare, wrapped = (run(suite, mode, options) for mode in ("bare", options.mode))
    unexpected, expected = broken(bare, wrapped, suite.known)
    print(f"bare: {len(bare.passed)} passed, {len(bare.failed)} failed")
    print(f"{options.mode}: {len(wrapped.passed)} passed, {len(wrapped.failed)} failed")
    print("seen:", ", ".join(f"{count} {what}" for what, count in sorted(wrapped.seen.items())))
    for name in expected:
        print(f"known: {name}")
    for name in unexpected:
        print(f"BROKEN: {name}")
    return bool(unexpected) or not wrapped.seen["teams"]


if __name__ == "__main__":
    sys.exit(main())
