"""Run a framework's own tests bare, observed and healed: `python -m tests.own NAME`.

The Python must have the framework, this project and what the tests need: `make test-own-NAME`
makes such an environment. The sources are fetched into it; the reports stay beside them, and a
later call with `--resume` takes those that are there.

Exit status: 0, if every test that is not flaky ends observed as it ends bare, each that passes
bare passes healed, no wrapper failed, and no team raises an alarm; what `suites.py` lists by name,
with a reason, may be otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from .suites import SUITES, Suite

HERE = Path(__file__).parent


@dataclass
class Results:
    """What came of a run.

    Attributes:
        outcomes: By test: `passed`, `failed` or `skipped`.
        messages: By test that failed: the first line of why.
        teams: The tests that built teams, with what the session of each team saw.
        seconds: How long pytest took.
    """

    outcomes: dict[str, str] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    teams: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, report: Path, package: str) -> None:
        """Read a report of pytest's, `--junitxml`."""
        root = ElementTree.parse(report)
        self.seconds += sum(float(one.get("time", 0)) for one in root.iter("testsuite"))
        for case in root.iter("testcase"):
            notes = {one.get("name"): one.get("value", "") for one in case.iter("property")}
            name = notes.get("nodeid") or f"{case.get('classname')}::{case.get('name')}"
            test = f"{package}/{name}"
            self.teams += [(test, team) for team in json.loads(notes.get("dig", "[]"))]
            failed = [one for one in case if one.tag in ("failure", "error")]
            if failed:
                self.outcomes[test] = "failed"
                self.messages[test] = str(failed[0].get("message")).partition("\n")[0]
            else:
                self.outcomes[test] = "passed" if case.find("skipped") is None else "skipped"

    def wrapped(self, *keys: str) -> list[Any]:
        """What the sessions saw, under some keys that not all of them have."""
        return [(test, team[key]) for key in keys for test, team in self.teams if team.get(key)]

    def row(self, title: str) -> tuple[Any, ...]:
        """Its row of the table."""
        count = Counter(self.outcomes.values())
        sessions = [team for _, team in self.teams if "refused" not in team]
        seen = (sum(team["requests"] for team in sessions), len(self.wrapped("alarms")))
        teams = (len(sessions), *seen) if self.teams else ("", "", "")
        return (title, *(count[one] for one in ("passed", "failed", "skipped")), *teams,
                round(self.seconds))  # fmt: skip


HEAD = ("run", "passed", "failed", "skipped", "teams", "requests", "teams with alarms", "s")


def flaky(bare: Sequence[Results]) -> set[str]:
    """The tests that do not end alike in all bare runs."""
    names = set().union(*(one.outcomes for one in bare))
    return {name for name in names if len({one.outcomes.get(name) for one in bare}) > 1}


def differing(bare: Sequence[Results], wrapped: Results, *, healed: bool) -> list[str]:
    """The tests that end in another way than bare, and are not flaky.

    Args:
        bare: The bare runs.
        wrapped: The run that is compared.
        healed: Whether healing may let a test pass that fails bare.
    """
    first, unstable = bare[0].outcomes, flaky(bare)
    names = sorted((first.keys() | wrapped.outcomes.keys()) - unstable)
    differs = [name for name in names if first.get(name) != wrapped.outcomes.get(name)]
    return [name for name in differs if not healed or first.get(name) != "failed"]


def plain(test: str) -> str:
    """The name of a test's function, without module and parameters."""
    return test.partition("[")[0].rpartition("::")[2]


# --- running ------------------------------------------------------------------------------------


def fetch(package: str, into: Path) -> Path:
    """The unpacked source distribution of the version that is installed."""
    name = f"{package}=={version(package)}"
    folder = into / name
    if not folder.is_dir():
        into.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--no-binary", package, "--dest", str(into), name,
        ]  # fmt: skip
        subprocess.run(command, check=True)
        (archive,) = into.glob(f"{package.replace('-', '_')}-{version(package)}.tar.gz")
        with tarfile.open(archive) as packed:
            top = packed.getnames()[0].partition("/")[0]
            packed.extractall(into, filter="data")
        (into / top).rename(folder)
    return folder


def files(suite: Suite, source: Path) -> list[str]:
    """The test files that build teams; in the others there is nothing to wrap."""
    found = sorted(source.glob("tests/**/test_*.py"))
    return [str(one.relative_to(source)) for one in found if suite.about in one.read_text("utf-8")]


def run(name: str, title: str, options: argparse.Namespace, tests: Sequence[str] = ()) -> Results:
    """Run a suite once, or read what an earlier run has left.

    Args:
        name: The framework.
        title: The mode, with what tells the run from others.
        options: Those of the command.
        tests: Only these, as `Results` calls them.
    """
    suite, results, own = SUITES[name], Results(), Path(sys.prefix) / "own"
    paths = [str(HERE), str(HERE / "stand_ins"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, **suite.environment, "DIG_OWN_MODE": title.partition(" ")[0],
        "DIG_OWN_FRAMEWORK": name, "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }  # fmt: skip
    for package in suite.packages:
        source, report = fetch(package, own), own / f"{package}-{title.replace(' ', '-')}.xml"
        chosen = options.only or (suite.part if options.part else files(suite, source))
        if tests:
            mine = (one.partition("/") for one in tests)
            chosen = [nodeid for of, _, nodeid in mine if of == package]
        chosen = [one for one in chosen if (source / one.partition("::")[0]).exists()]
        command = [
            sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "wrap_teams",
            "-p", "no:cacheprovider", "--timeout=120", "-n", str(options.jobs), "--dist=loadfile",
            f"--junitxml={report}", *suite.arguments, *chosen,
        ]  # fmt: skip
        if chosen and not (options.resume and not tests and report.is_file()):
            report.unlink(missing_ok=True)
            with report.with_suffix(".txt").open("w", encoding="utf-8") as said:
                subprocess.run(
                    command, cwd=source, env=environment, stdout=said,
                    stderr=subprocess.STDOUT, check=False,
                )  # fmt: skip
            if not report.is_file():
                sys.exit(f"pytest has left no report; see {report.with_suffix('.txt')}")
        if chosen:
            results.add(report, package)
    return results


def table(rows: Iterable[Iterable[Any]]) -> str:
    """A table in Markdown."""
    lines = [HEAD, ("---", *["---:"] * (len(HEAD) - 1)), *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def differences(
    name: str, title: str, options: argparse.Namespace, bare: Sequence[Results], wrapped: Results
) -> bool:
    """Print what differs in a run from the bare ones, and say whether all of it may.

    A test that differs is run once more; if it ends as bare then, it is told of as flaky. Many
    tests look at the clock, and a machine with other work to do fails them now and then.
    """
    suite, is_well = SUITES[name], True
    differ = differing(bare, wrapped, healed=title == "heal")
    again = run(name, f"{title} again", options, differ) if differ else Results()
    for test in differ:
        known = suite.by_design.get(plain(test))
        if again.outcomes.get(test) == bare[0].outcomes.get(test):
            print(f"{title}, flaky: {test}: {wrapped.messages.get(test)}")
            continue
        is_well = is_well and known is not None
        why = known or wrapped.messages.get(test) or wrapped.outcomes.get(test, "not run")
        print(f"{title}, {'by design' if known else 'DIFFERS'}: {test}: {why}")
    for test, why in wrapped.wrapped("faults", "stopped"):
        is_well = False
        print(f"{title}, WRAPPER FAILED: {test}: {why}")
    return is_well


def alarms(suite: Suite, observed: Results) -> bool:
    """Print which teams raised an alarm, and say whether each is explained."""
    raised = observed.wrapped("alarms")
    is_well = True
    for test, texts in raised:
        of_all = {suite.alarms.get(text.partition(":")[0], "") for text in texts}
        why = suite.alarms.get(plain(test)) or ("" not in of_all and min(of_all))
        is_well = is_well and bool(why)
        print(f"alarm: {test}: {len(texts)}, the first one {texts[0]} {why or 'NOT EXPLAINED'}")
    return is_well


def main() -> int:
    """Run a suite in all modes, and print what differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.own")
    parser.add_argument("framework", choices=SUITES)
    parser.add_argument("--bare", type=int, default=3, help="how often bare, to tell flaky tests")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--part", action="store_true", help="a part that takes seconds, bare once")
    parser.add_argument("--resume", action="store_true", help="keep the runs that are there")
    parser.add_argument("--only", nargs="+", metavar="PATH", help="paths of tests, instead of all")
    options = parser.parse_args()
    name, suite = options.framework, SUITES[options.framework]
    if suite.none:
        print(f"{name}: nothing to run: {suite.none}")
        return 0
    times = 1 if options.part else options.bare
    titles = [*(f"bare {number}" for number in range(1, times + 1)), "observe", "heal"]
    runs = {title: run(name, title, options) for title in titles}
    print(table(results.row(title) for title, results in runs.items()))
    *bare, observed, healed = runs.values()
    for test in sorted(flaky(bare)):
        print(f"flaky: {test}")
    for why, count in sorted(Counter(why for _, why in observed.wrapped("refused")).items()):
        print(f"not wrapped: {count} teams: {why}")
    wells = [
        differences(name, "observe", options, bare, observed),
        differences(name, "heal", options, bare, healed),
        alarms(suite, observed), bool(observed.teams),
    ]  # fmt: skip
    return not all(wells)


if __name__ == "__main__":
    sys.exit(main())
