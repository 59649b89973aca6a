"""What a reader of another format says about its source: guesses, and blind spots."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dig.graph.records import Fate, Limits, Run
from dig.traces.interchange import imports
from dig.traces.interchange.imports import FORMATS, Format, Imported, save
from dig.traces.interchange.scribe import Guesses, Scribe, blind_spot


def read_silence(path: Path) -> tuple[list[Any], Guesses]:
    """A run in which `p` lies for an hour in front of nobody who works: a deadlock."""
    guesses = Guesses()
    limits = guesses.leave_out(Limits(), ["DL", "MC"], "it shows no buffer")
    scribe = Scribe(Run(0, 0, "silence", ("a",), limits=limits), guesses)
    scribe.emit("p", None, ["a"], "problem")
    scribe.deliver("p", "a")
    scribe.start("v", "a")
    scribe.end("v", [Fate("p", "delay")], [])
    scribe.at(3_600_000_000)
    return scribe.finish("stopped", path.name), guesses


@pytest.fixture
def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = {**FORMATS, "silence": Format(read_silence, lambda path, head: head == "...")}
    monkeypatch.setattr(imports, "FORMATS", rows)
    path = tmp_path / "silence.txt"
    path.write_text("...")
    return path


def test_what_a_source_cannot_show_is_off_and_a_check_says_so(call: Any, silent: Path) -> None:
    """Without it the wait of an hour would be a deadlock; with the limit set, it is."""
    code, out, _ = call("check", silent)
    assert (code, "passes" in out) == (0, True)
    assert "not looked at: DL, MC: it shows no buffer" in out
    code, out, err = call("check", silent, "--json")
    assert (code, out) == (0, "")
    assert err == f"digmon: {silent}: not looked at: DL, MC: it shows no buffer\n"
    code, out, err = call("check", silent, "--json", "--set", "dl_window_s=30")
    assert [json.loads(line)["pattern"] for line in out.splitlines()] == ["DL"]
    assert (code, err) == (1, f"digmon: {silent}: not looked at: MC: it shows no buffer\n")


def test_a_check_of_a_foreign_file_is_that_of_its_imported_trace(
    call: Any, silent: Path, tmp_path: Path
) -> None:
    _, _, err = call("import", silent, "-o", tmp_path / "run")
    assert "not looked at: DL, MC: it shows no buffer" in err
    for options in ((), ("--json", "--set", "dl_window_s=30"), ("--format", "github")):
        code, out, _ = call("check", silent, *options)
        imported = call("check", tmp_path / "run", *options)
        assert imported[:2] == (code, out.replace(str(silent), str(tmp_path / "run")))


def test_a_trace_is_no_foreign_file_whatever_its_words(call: Any, tmp_path: Path) -> None:
    trace = save(Imported("silence", *read_silence(Path("..."))), tmp_path / "t.jsonl")
    assert imports.foreign_format(trace) is None


def test_other_details_name_no_blind_spot() -> None:
    others: list[Any] = ["guess: x", None, {"not_looked_at": "MC"}, {"because": "x"}, ["MC"]]
    assert [blind_spot(detail, Limits()) for detail in others] == [""] * 5
    detail = {"not_looked_at": ["LATE", "CLA"], "because": "x"}
    assert blind_spot(detail, replace(Limits(), late_window_s=3)) == "CLA: x"
