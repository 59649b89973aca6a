"""To whoever reads a trace in several files, it is one trace."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.errors import TraceError
from dig.graph.records import IncidentRow, Record, Run
from dig.show.server.page_routes import stream
from dig.traces.journal.journal import SIDE, Journal
from dig.traces.journal.reader import TRACE, Tail, read_lines, read_records
from dig.traces.journal.segments import fault, segment_path, segments
from dig.traces.otel.ids import origin_of
from dig.traces.replay.rerun import rerun
from dig.traces.verify import verify
from tests.cli.test_cli import digmon
from tests.show.server.client import happenings
from tests.show.server.test_stream import Waiting, numbers
from tests.traces.forks import forked
from tests.traces.journals import rows_of, simple_run, write
from tests.traces.parted import EACH, LONG, files, long, parted

# --- what is read ---

COMMANDS = [
    ("check", "--json"), ("check",), ("graph", "--json"), ("graph", "--at", "20", "--json"),
    ("show", "--json"), ("show",), ("replay", "--json"), ("replay", "--rerun", "--json"),
    ("verify",), ("export", "--format", "node-link"), ("export", "--format", "dot"),
    ("export", "--format", "graphml"), ("export", "--format", "otlp-json"),
    ("export", "--format", "otlp", "-o", "spans.json"),
    ("draw", "-o", "run.svg"), ("report", "-o", "run.html"), ("runs", "--json"),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_says_the_same_of_it(
    command: tuple[str, ...], tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Output, errors, exit status and files that are written, for a run of one file and of many."""
    said = []
    for size in (10**9, 1_000):
        here = tmp_path / str(size)
        parted(long(), here / "run", size)
        side = {"execution": "run", "began": "2026-01-01T00:00:00+00:00"}
        (here / "run" / SIDE).write_text(json.dumps(side))
        monkeypatch.chdir(here)
        before = {path.name for path in here.iterdir()}
        told = digmon(capsys, monkeypatch, command[0], "run", *command[1:])
        made = {p.name: p.read_bytes() for p in here.iterdir() if p.name not in before}
        said.append((told, made))
    assert said[0][0][0] in (0, 1)
    assert said[1] == said[0]


def test_it_is_the_same_run_to_diff_and_to_fork(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The behaviour is the same, and a fork begins with its bytes."""
    for name, size in (("one", 10**9), ("many", 700)):
        parted(long(), tmp_path / name, size)
    code, out, _ = digmon(capsys, monkeypatch, "diff", tmp_path / "one", tmp_path / "many")
    assert code == 0, out
    assert rerun(tmp_path / "many").records == long().count(b"\n")
    for at in (1, 50, 110):
        fork, _ = forked(tmp_path / "many" / TRACE, at, simple_run(LONG))
        assert fork.read_bytes() == long()


def test_a_trace_that_stands_alone_is_told_by_all_of_its_content(tmp_path: Path) -> None:
    """Its spans have the same ids, however it is parted."""
    alone = [parted(long(), tmp_path / str(size), size) for size in (10**9, 500)]
    assert len({origin_of(path).execution for path in alone}) == 1


def test_a_line_of_the_trace_is_told_as_one_of_its_file(tmp_path: Path) -> None:
    """The first and the last line of every file."""
    path = parted(long(), tmp_path, 2_000)
    before = 0
    for file in files(path):
        count = file.read_bytes().count(b"\n")
        for line in (1, count):
            error = fault(path, before + line, "why")
            assert (error.path, error.line) == (file, line)
        before += count


READERS = [command for command in COMMANDS if command[0] != "runs" and "--rerun" not in command]


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_a_rule_that_is_broken_is_told_by_file_and_line(
    command: tuple[str, ...], tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """By whatever reads it; and so is a line that is no record at all."""
    for name, spoilt in (
        ("rule", {"t": 40, "kind": "leave", "agent": "nobody"}),
        ("record", {"t": 40, "kind": "leave"}),
    ):
        rows = rows_of(parted(long(), tmp_path / "whole", 10**9))
        del rows[0]["journal"]
        rows[40] = {**spoilt, "ts": rows[40]["ts"]}
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
        path = parted(data, tmp_path / name, 2_000)
        ((file, line),) = (
            (file.name, n)
            for file in files(path)
            for n, text in enumerate(file.read_bytes().splitlines(), 1)
            if b'"t": 40,' in text
        )
        monkeypatch.chdir(tmp_path)
        _, out, err = digmon(capsys, monkeypatch, command[0], name, *command[1:])
        where = f"{file}: line {line}: " if command[0] == "verify" else f"/{file}:{line}: "
        assert file != TRACE
        assert where in out + err


def test_a_part_of_a_trace_says_what_it_is_a_part_of(tmp_path: Path) -> None:
    path = files(write(tmp_path, segment_bytes=EACH))[3]
    with pytest.raises(TraceError, match=r"part of a trace.* begins with, trace\.dig\.jsonl"):
        list(read_records(path))
    with pytest.raises(ValueError, match=r"part of a trace, which begins in trace\.dig\.jsonl"):
        verify(path)


# --- what follows ---


def test_a_reader_beside_a_writer_misses_no_line(tmp_path: Path) -> None:
    """Between the look at a file's end and that for the next one, lines and files are added."""
    journal = Journal(tmp_path / TRACE, segment_bytes=500)
    records: list[Record] = [Run(0, 0, "r", ("ada",))]
    records += (IncidentRow(t, t, "w", t) for t in range(1, 2_000))

    def work() -> None:
        for record in records:
            journal(record)
        journal.close()

    writer = Thread(target=work)
    writer.start()
    tail, found = Tail(tmp_path), []
    while writer.is_alive():
        found += [line.row["t"] for line in tail.read(is_growing=True)]
    writer.join()
    found += [line.row["t"] for line in tail.read(is_growing=True)]
    assert found == list(range(2_000))
    assert len(files(journal.path)) > 300


@given(after=st.integers(-1, 9), size=st.integers(1, 1_500))
def test_who_comes_back_goes_on_in_whatever_file_it_was(
    tmp_path_factory: pytest.TempPathFactory, after: int, size: int
) -> None:
    path = write(tmp_path_factory.mktemp("run"), segment_bytes=size)
    assert numbers(happenings(stream(path, after, Waiting()))) == list(range(after + 1, 8))


@given(data=st.data(), size=st.integers(1, 1_500))
def test_a_look_at_any_moment_reads_what_is_whole_once(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, size: int
) -> None:
    """Files come into being and grow byte by byte under the reader."""
    folder = tmp_path_factory.mktemp("run")
    complete = [file.read_bytes() for file in segments(write(folder, segment_bytes=size))]
    rows = [line.row for line in read_lines(folder)]
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / TRACE).touch()
    total = sum(map(len, complete))
    tail, found = Tail(folder), []
    for cut in [*sorted(data.draw(st.lists(st.integers(0, total), max_size=8))), total]:
        left = cut
        for number, part in enumerate(complete, 1):
            if left > 0 or number == 1 or (left == 0 and data.draw(st.booleans())):
                segment_path(folder / TRACE, number).write_bytes(part[: max(left, 0)])
            left -= len(part)
        found += [line.row for line in tail.read(is_growing=True)]
    assert found == rows
