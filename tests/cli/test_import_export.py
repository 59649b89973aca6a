"""`digmon import` and `export`: what they write, what they tell, and how they exit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.test_reference import TEAM
from tests.traces.interchange.test_message_log import CHAT
from tests.traces.runs import directory, solved, store


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "chat.csv"
    path.write_text(CHAT)
    return path


def test_import_makes_a_run_and_tells_its_guesses(call: Any, log: Path, tmp_path: Path) -> None:
    """Guesses go to standard error and into the trace; the trace is one like any other."""
    code, out, err = call("import", log, "-o", tmp_path / "run")
    assert code == 0
    assert "records, read as log" in out
    guesses = [line.removeprefix("digmon: ") for line in err.splitlines()]
    text = (tmp_path / "run" / "trace.dig.jsonl").read_text()
    incidents = [json.loads(line)["detail"] for line in text.splitlines() if '"incident"' in line]
    assert incidents == ["read from chat.csv", *guesses]
    assert call("check", tmp_path / "run", "--json") == (0, "", "")
    assert call("show", tmp_path / "run", "turn-4")[0] == 0


def test_import_knows_a_stored_graph_when_it_sees_one(call: Any, tmp_path: Path) -> None:
    code, out, _ = call("import", TEAM, "--out", tmp_path / "t.dig.jsonl")
    assert (code, "read as dig-graph" in out) == (0, True)
    assert call("graph", tmp_path / "t.dig.jsonl")[0] == 0


def test_import_writes_nothing_over(call: Any, log: Path, tmp_path: Path) -> None:
    assert call("import", log, "-o", tmp_path / "run")[0] == 0
    code, out, err = call("import", log, "-o", tmp_path / "run")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "File exists" in err


@pytest.mark.parametrize(
    ("content", "options", "reason"),
    [
        (b"", (), "holds no message"),
        (b"\xff\xfe", (), "not UTF-8"),
        (b"from,to\na,b\n", ("--format", "xml"), "there is no format 'xml'"),
        (b"from,to\na,b\n", ("--format", "dig-graph"), "no JSON"),
    ],
)
def test_import_refuses_what_it_cannot_read(
    call: Any, tmp_path: Path, content: bytes, options: tuple[str, ...], reason: str
) -> None:
    (tmp_path / "x").write_bytes(content)
    code, out, err = call("import", tmp_path / "x", "-o", tmp_path / "run", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert reason in err
    assert not (tmp_path / "run").exists()


def test_import_wants_a_run_and_says_which(call: Any, tmp_path: Path) -> None:
    """A directory of runs is none, also as a further file."""
    for name in ("a", "b"):
        directory(tmp_path / name, "r", solved())
    for first in (tmp_path / "a", tmp_path / "b" / "r"):
        code, _, err = call("import", first, tmp_path / "a", "-o", tmp_path / "joined")
        cure = f"is no run, but a directory of 1 run: name it, {tmp_path / 'a' / 'r'}"
        assert (code, err) == (2, f"digmon: {tmp_path / 'a'}: {cure}\n")


def test_export_prints_or_writes_the_graph(call: Any, tmp_path: Path) -> None:
    path = store(tmp_path / "t.dig.jsonl", solved())
    code, out, _ = call("export", path, "--format", "node-link")
    assert code == 0
    assert json.loads(out) == json.loads(call("graph", path, "--json")[1])
    for name, begins in (("graphml", "<graphml"), ("dot", "digraph")):
        assert call("export", path, "--format", name, "-o", tmp_path / name)[0] == 0
        assert (tmp_path / name).read_text().startswith(begins)


def test_export_shows_a_part_of_the_graph(call: Any, tmp_path: Path) -> None:
    path = store(tmp_path / "t.dig.jsonl", solved())
    for options in (("--cleaned",), ("--at", "4"), ("--cleaned", "--at", "4")):
        _, out, _ = call("export", path, "--format", "node-link", *options)
        assert json.loads(out) == json.loads(call("graph", path, "--json", *options)[1])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("t.dig.jsonl", "--format", "png"), "there is no format 'png'"),
        (("t.dig.jsonl", "--format", "dot", "--at", "99"), "no record 99"),
        (("t.dig.jsonl", "--format", "dot", "-o", "no/such/place"), "cannot write"),
        (("nothing", "--format", "dot"), "No such file"),
    ],
)
def test_export_refuses_what_makes_no_sense(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...],
    reason: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    store(tmp_path / "t.dig.jsonl", solved())
    code, out, err = call("export", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert reason in err
