"""Hostile inputs: a short version of `python -m tests.fuzz`, and what it has found."""

from __future__ import annotations

import json
import os
import time
from hashlib import sha256
from pathlib import Path

import pytest

from dig._util.json_text import MOST_LEVELS
from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError, TraceError
from dig.lab.experiment.file import read_grid
from dig.lab.experiment.results import read_rows
from dig.show.compare.golden import read as read_golden
from dig.traces.interchange.imports import import_file
from dig.traces.journal.reader import read_graph, read_records
from dig.traces.verify import verify
from tests.fuzz.guarding import Carried, TooSlow
from tests.fuzz.running import WATCHMAN, hold_promises
from tests.histories import final, row, trace, turn
from tests.traces.runs import store

HUGE = "9" * 5_000
DEEP = "[" * 5_000 + "]" * 5_000


@pytest.mark.parametrize("entrance", ["reader", "importers", "server", "journals"])
def test_no_hostile_input_breaks_a_promise(entrance: str, tmp_path: Path) -> None:
    """Only documented errors, soon, with nothing carried out; some inputs still pass."""
    hold_promises(entrance, tmp_path)


def test_inputs_are_the_same_for_the_same_seed(tmp_path: Path) -> None:
    """What fails can be had again."""
    from tests.fuzz.inputs import hostile_input

    seeds = [b'{"a": [1, 2, {"b": null}]}', b"x y z"]
    made = [hostile_input(seeds, 1, n) for n in range(200)]
    assert made == [hostile_input(seeds, 1, n) for n in range(200)]
    assert made != [hostile_input(seeds, 2, n) for n in range(200)]
    assert len(set(made)) > 150


# --- the watchman itself ---


def test_what_is_carried_out_is_seen(tmp_path: Path) -> None:
    """A program that is started, code that is made, a file that is written elsewhere."""
    with pytest.raises(Carried, match=r"os\.system"), WATCHMAN.watching(tmp_path):
        os.system("true")
    with pytest.raises(Carried, match="compile"), WATCHMAN.watching(tmp_path):
        eval("1 + 1")
    with pytest.raises(Carried, match="writes"), WATCHMAN.watching(tmp_path / "in"):
        (tmp_path / "out").write_text("")
    with WATCHMAN.watching(tmp_path):
        (tmp_path / "in").write_text("")


def test_what_hangs_is_seen(tmp_path: Path) -> None:
    """It is left in the middle, whether it computes or waits."""
    with pytest.raises(TooSlow), WATCHMAN.watching(tmp_path, patience_s=0.05):
        time.sleep(20)
    with pytest.raises(TooSlow), WATCHMAN.watching(tmp_path, most_s=0.05):
        all(not zero for zero in iter(int, 1))


# --- what it has found ---


@pytest.mark.parametrize("value", [HUGE, DEEP, '{"a": 1, "a": 2}'], ids=["huge", "deep", "twice"])
@pytest.mark.parametrize(
    "whole",
    [
        '[{"from": "a", "to": "b", "content": %s}]',
        '{"from": "a", "to": "b"}\n{"from": "a", "at": %s}',
        '{"schema": "dig.graph.v2", "events": {}, "activations": {}, "created_at": %s}',
    ],
    ids=["log", "lines", "graph"],
)
def test_an_import_refuses_what_no_reader_takes(whole: str, value: str, tmp_path: Path) -> None:
    """Numbers of 5,000 digits, 5,000 levels, a key twice: an error that names the file."""
    path = tmp_path / "file.json"
    path.write_text(whole % value)
    with pytest.raises(TraceError, match=r"file\.json"):
        import_file(path)


def test_a_time_of_400_digits_is_none(tmp_path: Path) -> None:
    """A whole number may be too large for a float."""
    path = tmp_path / "log.json"
    path.write_text('[{"from": "a", "to": "b", "at": %s}]' % ("9" * 400))
    with pytest.raises(TraceError, match="no time"):
        import_file(path)


def test_a_file_that_is_too_long_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be held in memory as a whole."""
    monkeypatch.setattr("dig.traces.interchange.source_files.MOST_BYTES", 100)
    path = tmp_path / "log.csv"
    path.write_text("from,to\n" + "a,b\n" * 100)
    with pytest.raises(TraceError, match="longer than 100 bytes"):
        import_file(path)


@pytest.mark.parametrize("content", [HUGE, DEEP, "NaN", "{", "\x00", '{"a":1,"a":2}'])
def test_a_payload_beside_a_trace_is_read_as_strictly(content: str, tmp_path: Path) -> None:
    """Its checksum only says that it is what whoever made the trace has put there."""
    name = sha256(content.encode()).hexdigest()
    event = row(0, "emit", event="e", by=None, to=[], type="x", final=False)
    path = store(tmp_path / "trace.dig.jsonl", trace(event | {"blobs": {"payload": name}}))
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / f"{name}.json").write_text(content)
    with pytest.raises(TraceError, match="no JSON that can be read") as error:
        list(read_records(path))
    assert error.value.line == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_a_pipe_in_the_place_of_a_payload_holds_nobody_up(tmp_path: Path) -> None:
    """Neither the reader nor the checker waits for somebody to write into it."""
    name = "0" * 64
    event = row(0, "emit", event="e", by=None, to=[], type="x", final=False)
    path = store(tmp_path / "trace.dig.jsonl", trace(event | {"blobs": {"payload": name}}))
    (tmp_path / "blobs").mkdir()
    os.mkfifo(tmp_path / "blobs" / f"{name}.json")
    with pytest.raises(TraceError, match="is damaged"):
        list(read_records(path))
    assert "is damaged" in str(verify(path).problems[0])


@pytest.mark.parametrize(("depth", "fits"), [(MOST_LEVELS - 1, True), (MOST_LEVELS, False)])
@pytest.mark.parametrize("filler", ["", "1", '"[["'])
def test_reader_and_checker_agree_how_deep_a_line_may_be(
    depth: int, fits: bool, filler: str, tmp_path: Path
) -> None:
    """As deep as the deepest payload, and what stands around it."""
    rows = trace(row(0, "incident", what="x", detail=None))
    path = store(tmp_path / "t.dig.jsonl", rows)
    path.write_text(path.read_text().replace("null", "[" * depth + filler + "]" * depth))
    assert (not verify(path).problems) == fits
    if fits:
        read_graph(path)
    else:
        with pytest.raises(TraceError, match="nested too deeply"):
            read_graph(path)


def test_the_checker_looks_at_the_type_of_an_answer(tmp_path: Path) -> None:
    """As the reader does."""
    answer = final(0, "f", "v") | {"type": 2}
    path = store(tmp_path / "t.dig.jsonl", trace(turn(0, "v", "a", "f"), answer))
    with pytest.raises(TraceError, match="`type` is 2"):
        read_graph(path)
    assert verify(path).problems


@pytest.mark.parametrize("value", [HUGE, DEEP], ids=["huge", "deep"])
def test_no_other_file_breaks_its_reader(value: str, tmp_path: Path) -> None:
    """Settings, grids, results of experiments, behaviours: an error that names the file."""
    path = tmp_path / "file"
    path.write_text(f"[thresholds]\nx = {value}\n")
    with pytest.raises(SettingsError, match="is not TOML"):
        Thresholds.load((), path, {})
    with pytest.raises(SettingsError, match="is not TOML"):
        read_grid(path)
    path.write_text(json.dumps({"a": 0}).replace("0", value) + "\n")
    with pytest.raises(SettingsError, match="line 1 is no result"):
        read_rows(path)
    with pytest.raises(TraceError, match="is no step of a behaviour"):
        read_golden(path)
