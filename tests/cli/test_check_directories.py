"""`digmon check DIR`: all that can be read there, the worst first, and what was passed over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.histories import trace
from tests.traces.interchange.coding import Talk, background, foreground, subagent, write
from tests.traces.interchange.test_trajectories import single
from tests.traces.runs import directory, solved


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    """Sessions of two projects, a trajectory, a run, and other files."""
    folder = tmp_path / "projects"
    foreground(folder / "good")
    background(folder / "bad", 5, 2)
    write(folder / "good" / "empty.jsonl", [{"type": "summary", "summary": "x", "leafUuid": "y"}])
    write(folder / "good" / "agent-a9.jsonl", subagent("a9", "alone", 1))
    (folder / "t.json").write_text(json.dumps(single()))
    (folder / "package.json").write_text('{"name": "x"}')
    (folder / "readme.md").write_text("# x")
    (folder / "deep" / "runs").mkdir(parents=True)
    directory(folder / "deep" / "runs", "one", solved())
    return folder


def test_a_directory_is_searched_and_the_worst_comes_first(call: Any, projects: Path) -> None:
    code, out, err = call("check", projects)
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[1].startswith(f"{projects / 'bad' / '5e55.jsonl'}: fails, 1 unhealed error")
    quiet = [line for line in lines if ": passes" in line]
    assert [line.partition(": passes")[0] for line in quiet] == [
        str(projects / place) for place in ("t.json", "good/5e55.jsonl", "deep/runs/one")
    ]
    assert "105 tokens" in quiet[1]
    assert out.count("not looked at: ") == 1
    assert [line for line in lines if line.startswith("skipped")] == [
        "skipped 1 file: a link, or no .json or .jsonl",
        "skipped 1 file: holds no turn of an agent",
        "skipped 1 file: in no known format",
        "skipped 8 files: read as a part of another run",
    ]
    assert lines[-1] == "The check fails: 3 runs passed, 1 run failed (1 unhealed error)."


def test_names_are_listed_on_demand_and_json_keeps_its_lines(call: Any, projects: Path) -> None:
    _, out, _ = call("check", projects, "-v")
    assert f"  {projects / 'package.json'}" in out.splitlines()
    code, out, err = call("check", projects, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["pattern"], row["trace"]) for row in rows] == [
        ("ET", str(projects / "bad" / "5e55.jsonl"))
    ]
    assert code == 1
    assert "digmon: skipped 1 file: in no known format" in err.splitlines()


def test_a_search_follows_no_links_and_runs_nothing(
    call: Any, projects: Path, tmp_path: Path
) -> None:
    (inside := tmp_path / "inside").mkdir()
    (inside / "all").symlink_to(projects)
    (inside / "session.jsonl").symlink_to(projects / "bad" / "5e55.jsonl")
    code, out, err = call("check", inside)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "there is no run in it" in err
    foreground(inside)
    assert call("check", inside)[0] == 0


def test_a_broken_session_is_named_and_the_others_are_checked(call: Any, projects: Path) -> None:
    broken = projects / "good" / "5e55.jsonl"
    broken.write_text(broken.read_text().replace("\n", "\n{\n", 1))
    code, out, err = call("check", projects)
    assert code == 2
    assert f"{broken}:2: is no JSON" in err
    assert "bad/5e55.jsonl: fails" in out and "1 run could not be read" in out


def test_a_directory_of_runs_stands_for_these_as_ever(call: Any, tmp_path: Path) -> None:
    directory(tmp_path, "one", solved())
    foreground(tmp_path / "sessions")
    _, out, _ = call("check", tmp_path)
    assert "one: passes" in out and "sessions" not in out and "skipped" not in out


def test_a_long_list_of_quiet_runs_is_cut(call: Any, tmp_path: Path) -> None:
    for number in range(23):
        write(tmp_path / "p" / f"{number}.jsonl", Talk().user("One?").say("One."))
    _, out, _ = call("check", tmp_path)
    assert out.count(": passes") == 20
    assert "and 3 further runs that passed (-v names them)" in out
    assert call("check", tmp_path, "-v")[1].count(".jsonl: passes") == 23


def test_a_trace_among_sessions_is_read_as_one(call: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = trace()
    (tmp_path / "in" / "x.dig.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert call("check", tmp_path)[0] in (0, 1)
    assert "x.dig.jsonl" in call("check", tmp_path)[1]
