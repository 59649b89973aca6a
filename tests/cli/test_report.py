"""`digmon report`: what it writes, what it says, and how it exits; and the report of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.show.page.pages import rows
from tests.traces.runs import directory, hasty


@pytest.fixture
def run(tmp_path: Path) -> Path:
    lines = hasty()
    lines[1]["payload"] = "what was asked"
    return directory(tmp_path, "r", lines)


def test_it_says_where_the_file_is(call: Any, run: Path, tmp_path: Path) -> None:
    """In the run directory, or where one wants it; with how much it shows."""
    code, out, err = call("report", run)
    assert (code, err) == (0, "")
    assert out.startswith(f"{run / 'report.html'}: {len(hasty())} records, ")
    assert "payloads are cut at 4,000 characters" in out
    code, out, _ = call("report", run, "-o", tmp_path / "x.html", "--json")
    assert (code, json.loads(out)["path"]) == (0, str(tmp_path / "x.html"))
    assert (tmp_path / "x.html").exists()


def test_payloads_can_be_left_out(call: Any, run: Path) -> None:
    """A report that is mailed need not tell what agents said to one another."""
    _, out, _ = call("report", run, "--no-payloads")
    assert "without payloads" in out
    assert "what was asked" not in str(rows(run / "report.html"))


COMMANDS = [
    *([name] for name in ("report", "verify", "show", "graph", "replay")),
    ["draw", "-o", "x.svg"],
    *(["export", "--format", name] for name in ("dot", "otlp-json")),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_directory_of_runs_is_no_run_and_says_so(
    call: Any, tmp_path: Path, command: list[str]
) -> None:
    """Whatever wants one run tells how many there are, and where to look."""
    directory(tmp_path, "r", hasty())
    directory(tmp_path, "s", hasty())
    code, out, err = call(command[0], tmp_path, *command[1:])
    assert (code, out) == (2, "")
    assert err == (
        f"digmon: {tmp_path}: is no run, but a directory of 2 runs: name one of them "
        "(`digmon runs` lists them)\n"
    )
    (tmp_path / "r").rename(tmp_path / "s" / "r")
    err = call(command[0], tmp_path, *command[1:])[2]
    run = tmp_path / "s"
    assert err == f"digmon: {tmp_path}: is no run, but a directory of 1 run: name it, {run}\n"
    (tmp_path / "none").mkdir()
    code, _, err = call(command[0], tmp_path / "none", *command[1:])
    assert (code, err) == (
        2, f"digmon: {tmp_path / 'none'}: is no run: there is no trace.dig.jsonl in it\n"
    )  # fmt: skip


def test_what_is_no_trace_is_told_in_one_line(call: Any, tmp_path: Path) -> None:
    """Exit status 2, and no file."""
    code, out, err = call("report", tmp_path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_run_ends_by_saying_where_its_report_is(call: Any, tmp_path: Path) -> None:
    """It shows the whole run."""
    arguments = ("--virtual", "--size", 2000, "--runs", tmp_path)
    _, out, _ = call("run", "count-frequency", *arguments)
    (file,) = tmp_path.glob("*/report.html")
    assert str(file) in out.replace("\n", "").replace(" ", "")
    assert rows(file)[-1]["kind"] == "finish"


def test_a_report_that_cannot_be_written_costs_no_run(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has ended as it has; how to have its report is said."""
    monkeypatch.setattr("dig.show.page.writing.NAME", "none/report.html")
    arguments = ("--virtual", "--size", 2000, "--runs", tmp_path)
    code, out, err = call("run", "count-frequency", *arguments)
    assert code == 0
    assert "no report was written" in err
    assert "digmon report" in out
