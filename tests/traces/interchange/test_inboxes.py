"""Teams of Claude Code: members, messages, and whether these were read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dig.errors import TraceError
from dig.graph.records import Run
from dig.traces.interchange.imports import import_file
from dig.traces.interchange.inboxes import team_files

from .coding import START, at
from .test_coding_sessions import answers, raised, told, unread

SHUTDOWN = '{"type":"shutdown_request","from":"lead","reason":"done"}'


def letter(sender: str, text: str, seconds: float, *, read: bool = True) -> dict[str, Any]:
    return {"from": sender, "text": text, "timestamp": at(seconds), "color": "blue", "read": read}


def store(folder: Path, *, config: bool = True, **inboxes: list[dict[str, Any]]) -> Path:
    """A team of a lead and two members."""
    (folder / "inboxes").mkdir(parents=True)
    began = int(START.timestamp() * 1000)
    members = [
        {
            "name": name,
            "agentId": f"{name}@team",
            "joinedAt": began + 1000 * n,
            "prompt": f"Be {name}",
        }
        for n, name in enumerate(("lead", "ann", "bob"))
    ]
    if config:
        text = {"name": "team", "createdAt": began, "leadAgentId": "lead@team", "members": members}
        (folder / "config.json").write_text(json.dumps(text, indent=2))
    for name, letters in inboxes.items():
        (folder / "inboxes" / f"{name}.json").write_text(json.dumps(letters, indent=2))
    return folder / ("config.json" if config else "inboxes/lead.json")


REPORTS = [letter("ann", "ann is done", 10), letter("bob", "bob is done", 12)]


@pytest.mark.parametrize("config", [True, False])
def test_a_team_whose_lead_read_all_reports_is_quiet(config: bool, tmp_path: Path) -> None:
    ends = [letter("lead", SHUTDOWN, 20)]
    path = store(tmp_path, config=config, lead=REPORTS, ann=ends, bob=ends)
    imported = import_file(path)
    assert (imported.format, raised(path)) == ("claude-team", [])
    assert answers(imported) == [None] * config
    assert ("no configuration names" in told(imported)) != config


def test_a_report_that_the_lead_never_read_is_an_error_once_the_team_is_shut_down(
    tmp_path: Path,
) -> None:
    """Before that it may still be read."""
    letters = [REPORTS[0], {**REPORTS[1], "read": False}]
    assert raised(store(tmp_path / "1", lead=letters)) == []
    path = store(tmp_path / "2", lead=letters, ann=[letter("lead", SHUTDOWN, 20)])
    assert (raised(path), unread(path)) == ([("ET", "error")], ["message of bob-1"])


def test_a_member_that_never_said_anything_is_an_error(tmp_path: Path) -> None:
    path = store(tmp_path, lead=REPORTS[:1], ann=[letter("lead", SHUTDOWN, 20)])
    assert unread(path) == ["bob's task: bob@team"]


def test_what_a_member_did_not_read_and_what_the_program_says_is_plumbing(tmp_path: Path) -> None:
    idle = letter("ann", '{"type":"idle_notification","from":"ann"}', 11, read=False)
    by = letter("lead", "Stand by.", 13, read=False)
    path = store(tmp_path, lead=[*REPORTS, idle], ann=[by, letter("lead", SHUTDOWN, 20)])
    assert raised(path) == []


def test_a_team_is_read_from_any_of_its_files(tmp_path: Path) -> None:
    path = store(tmp_path, lead=REPORTS, ann=[letter("lead", "Go on", 5)])
    files = team_files(path)
    assert [file.name for file in files] == ["config.json", "ann.json", "lead.json"]
    assert {tuple(team_files(file)) for file in files} == {tuple(files)}
    for file in files:
        assert isinstance(run := import_file(file).records[0], Run) and run.run == "team"


def test_an_inbox_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = store(tmp_path, lead=REPORTS)
    (tmp_path / "inboxes" / "ann.json").write_text('[{"from": "x", "text": "y", "read": tru')
    with pytest.raises(TraceError, match=r"ann\.json:1: is no JSON"):
        import_file(path)
