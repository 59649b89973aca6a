"""A journal that is opened again: its last whole request, its lock, its files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dig.errors import JournalError, TraceError
from dig.graph.chain import SealedLines
from dig.graph.records import Emit, End
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import read_records
from dig.traces.journal.recovery import recover, whole_requests
from dig.traces.verify import verify
from tests.traces.journals import journalled, simple_run, story, write
from tests.traces.parted import files, long, parted, whole


def test_requests_are_whole_but_for_outputs_that_are_missing(tmp_path: Path) -> None:
    """At every cut: all records count, or those before the end whose outputs are cut off."""
    data = journalled(simple_run(12), tmp_path).read_bytes()
    lines = data.splitlines(keepends=True)
    records = list(read_records(tmp_path / "12.dig.jsonl"))
    path = tmp_path / "cut.dig.jsonl"
    incomplete = 0
    for cut in range(1, len(lines) + 1):
        path.write_bytes(b"".join(lines[:cut]))
        emitted = {row.event for row in records[:cut] if isinstance(row, Emit)}
        open_ends = [
            row.t for row in records[:cut] if isinstance(row, End) and {*row.outputs} - emitted
        ]
        incomplete += bool(open_ends)
        assert whole_requests(path) == (open_ends[0] if open_ends else cut)
    assert incomplete > 5


def test_what_follows_the_last_whole_request_is_set_aside(tmp_path: Path) -> None:
    """With the torn line behind it, and over several files."""
    data = long()
    lines = data.splitlines(keepends=True)
    for size in (1, 2_000, len(data)):
        path = parted(b"".join(lines[:40]) + lines[40][:9], tmp_path / str(size), size)
        aside = recover(path, records=30)
        assert aside is not None
        assert aside.what == "an incomplete last request"
        assert aside.records == 30
        assert whole(path) == b"".join(lines[:30])
        rest = b"".join(file.read_bytes() for file in aside.files)
        assert rest == b"".join(lines[30:40]) + lines[40][:9]
        assert recover(path, records=30) is None


def test_a_journal_that_goes_on_is_the_one_that_never_was_closed(tmp_path: Path) -> None:
    """Whatever the size of its files, and wherever it was closed."""
    unbroken = write(tmp_path, story()).read_bytes()
    for size in (1, 300, None):
        for cut in range(1, len(story())):
            folder = tmp_path / f"{size} {cut}"
            folder.mkdir()
            path = write(folder, story()[:cut], segment_bytes=size)
            sealed = SealedLines({})
            for record in story()[:cut]:
                sealed.line(record)
            journal = Journal(path, segment_bytes=size, is_new=False)
            journal.go_on(sealed, cut)
            journal.write(story()[cut:])
            journal.sync()
            journal.close()
            assert whole(path) == unbroken
            assert verify(path).problems == []
            assert (len(files(path)) == 1) == (size is None)
            shutil.rmtree(folder)


def test_a_journal_is_opened_by_one_process_and_never_through_a_link(tmp_path: Path) -> None:
    path = write(tmp_path, story()[:5])
    journal = Journal(path, is_new=False)
    with pytest.raises(JournalError, match="another process has locked it"):
        Journal(path, is_new=False)
    journal.close()
    link = tmp_path / "link.dig.jsonl"
    link.symlink_to(path)
    with pytest.raises(JournalError, match="cannot write"):
        Journal(link, is_new=False)
    with pytest.raises(JournalError, match="cannot write"):
        Journal(tmp_path / "nowhere", is_new=False)
    with pytest.raises(TraceError):
        whole_requests(tmp_path / "nowhere")
