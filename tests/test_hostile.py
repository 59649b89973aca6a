"""Hostile texts on a terminal: nothing of them steers it, or hides what is there."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from rich.console import Console

from dig.cli.app import GuardedOutput
from dig.show.terminal.live import LiveView
from dig.traces.journal.reader import read_records
from tests.cli.test_cli import digmon
from tests.hostile import ATTACKS, hostile_run, texts
from tests.traces.runs import store


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which every text is hostile."""
    folder = tmp_path_factory.mktemp("runs") / "<b>\u202e$(x)"
    store(folder / "trace.dig.jsonl", hostile_run(150))
    (folder / "side.json").write_text(json.dumps({"method": ATTACKS[50], "began": ATTACKS[0]}))
    return folder


def steering(text: str) -> set[str]:
    """The characters of a text that a terminal acts on, or that nobody sees."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co")} - {"\n"}


@pytest.mark.parametrize(
    "command",
    [
        "check",
        "show",
        "show e3",
        "show a3",
        "show 0",
        "graph",
        "runs ..",
        "verify",
        "replay",
        "diff",
    ],
)
def test_no_command_prints_what_steers_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, hostile: Path, command: str
) -> None:
    """Whatever a trace holds; on standard output and on standard error."""
    name, _, rest = command.partition(" ")
    given = texts(150)
    asked: list[Any] = {
        "e3": [f"e3 {given[3]}"], "a3": [f"a3 {given[3]}"], "0": [f"0 {given[0]}"],
    }.get(rest, [])  # fmt: skip
    path = hostile.parent if rest == ".." else hostile
    if name == "diff":
        asked = [hostile]
    code, out, err = digmon(capsys, monkeypatch, name, path, *asked)
    assert code in (0, 1), err
    assert out
    assert steering(out + err) <= {"\u200d"}, "a joiner between emoji is all that may stay"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("width", [20, 100])
@pytest.mark.parametrize(
    "command",
    [
        "check", "check --format junit", "show",
        "show nothing", "graph", "runs", "verify", "replay", "diff", "why",
        "fork --list", "fork --list --json", "report", "learn -o usual.json", "verify --json",
        "export --format graphml", "export --format dot", "export --format node-link",
        "export --format otlp-json", "draw -o drawn.svg", "try --at 3 --tell a=b",
    ],
)  # fmt: skip
def test_no_line_is_a_command_to_a_ci(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, hostile: Path,
    tmp_path: Path, command: str, width: int,
) -> None:  # fmt: skip
    """GitHub's runner obeys `::` at the beginning of a line, also after blanks, and `##[`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(width))
    name, *rest = command.split()
    given = [hostile, hostile] if name == "diff" else [hostile]
    ids = ["e" + texts(150)[149]] if rest == ["nothing"] else rest
    _, out, err = digmon(capsys, monkeypatch, name, *given, *ids)
    assert out + err
    assert [line for line in (out + err).splitlines() if line.lstrip().startswith("::")] == []
    assert name == "export" or "##[" not in out + err
    if "--json" in rest:
        rows = json.loads(out)
        assert "##[add-mask]" in json.dumps(rows) or name == "verify", "JSON says the same"


def test_commands_to_a_ci_are_those_that_are_meant(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`check --format github` prints annotations, each of which says what was found."""
    damaged = tmp_path / "a\n::stop-commands::x\n##[error]x.dig.jsonl"
    damaged.write_text("{}\n")
    _, out, err = digmon(capsys, monkeypatch, "check", damaged, "--format", "github")
    said = [x for x in (out + err).splitlines() if x.lstrip().startswith(("::", "##["))]
    assert len(said) == 1 and said[0].startswith("::error file=")


def test_a_list_of_records_has_a_line_for_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, hostile: Path
) -> None:
    """No name can make a record that is not there."""
    _, out, _ = digmon(capsys, monkeypatch, "fork", hostile, "--list")
    assert len(out.split("\n")) == len([*read_records(hostile)]) + 1


def test_a_line_is_guarded_however_it_is_written() -> None:
    """In pieces, in colour, after another line; what is in the midst of a line stays."""
    out = io.StringIO()
    guarded = GuardedOutput(out)
    pieces = ("a::b ", "::c\n", "  ", "::d\n", "\x1b[1m \x1b[0m::e\r::f", "\n", "x", "##[g")
    assert [guarded.write(piece) for piece in pieces] == [*map(len, pieces)]
    assert out.getvalue() == ("a::b ::c\n  : :d\n\x1b[1m \x1b[0m: :e\r: :f\nx##\\u005bg")
    assert guarded.unguarded is out and guarded.getvalue() == out.getvalue()


def test_the_live_view_prints_nothing_that_steers_a_terminal(hostile: Path) -> None:
    """Where it prints lines; what it paints is tested beside it."""
    out = io.StringIO()
    with LiveView(Console(file=out, width=80, _environ={}), title=ATTACKS[50]) as view:
        for record in read_records(hostile):
            view(record)
    assert out.getvalue()
    assert steering(out.getvalue()) == set()


def test_texts_are_the_same_for_the_same_seed() -> None:
    """What fails can be had again."""
    assert texts(1000) == texts(1000) != texts(1000, seed=1)
    assert len(set(texts(1000))) > 900
    assert texts(len(ATTACKS)) == list(ATTACKS)


@pytest.mark.parametrize("format", ["graphml", "node-link", "dot", "otlp"])
def test_every_export_is_what_it_says_whatever_is_in_it(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    format: str,
) -> None:
    """Half a character, a control character or a piece of markup breaks none of them."""
    out = tmp_path / "out"
    alone = store(tmp_path / "t.dig.jsonl", hostile_run(150))
    code, _, err = digmon(capsys, monkeypatch, "export", alone, "--format", format, "-o", out)
    assert code == 0, err
    text = out.read_bytes().decode("utf-8")
    match format:
        case "graphml":
            assert len(nx.parse_graphml(text)) == 2 * 150
        case "dot":
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
            statements = re.findall(r'^  "(?:[^"\\]|\\.)*"(?: ->| \[label)', text, re.MULTILINE)
            assert len(statements) == len(text.splitlines()) - 3
        case _:
            assert [json.loads(line) for line in text.splitlines() if line.strip()]


def test_no_error_prints_what_steers_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, hostile: Path
) -> None:
    """A directory can be called anything."""
    code, _, err = digmon(capsys, monkeypatch, "export", hostile, "--format", "otlp-json")
    assert code == 2
    assert "side.json" in err
    assert steering(err) == set()
