"""A trace in several files is the trace, byte for byte, to whoever reads it."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.errors import JournalError, SettingsError
from dig.show.runs.index import overview
from dig.traces.journal import appending
from dig.traces.journal import journal as module
from dig.traces.journal.journal import Journal, Keeping, RunDirectory
from dig.traces.journal.locking import is_being_written
from dig.traces.journal.reader import TRACE, read_records
from dig.traces.journal.recovery import recover
from dig.traces.journal.segments import segment_path
from dig.traces.verify import verify
from tests.traces.journals import Disk, journalled, simple_run, story, write
from tests.traces.parted import EACH, files, whole
from tests.traces.test_journal import full

# --- what is written ---


@given(size=st.integers(1, 3_000), seed=st.integers(0, 20))
def test_the_files_in_a_row_are_the_journal_that_never_was_parted(
    tmp_path_factory: pytest.TempPathFactory, size: int, seed: int
) -> None:
    """Whatever the size: the same bytes; none is larger, unless a line is; none is empty."""
    folder = tmp_path_factory.mktemp("run")
    run = story() if seed == 0 else story("x" * 97 * seed)
    one = write(folder, run).read_bytes()
    (folder / TRACE).unlink()
    path = write(folder, run, segment_bytes=size)
    assert whole(path) == one
    for file in files(path):
        data = file.read_bytes()
        assert 0 < len(data) <= size or data.count(b"\n") == 1
    assert list(read_records(folder)) == run
    assert verify(path).problems == []


def test_the_names_say_the_order_and_only_the_owner_may_read(tmp_path: Path) -> None:
    """The shell's order is that of the records, and a listing of traces shows one."""
    write(tmp_path, segment_bytes=EACH)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [TRACE, *(f"{TRACE}.{n:06}" for n in range(2, 9))]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert [run.state for run in overview(tmp_path.parent) if run.name == tmp_path.name] == [
        "ended"
    ]


def test_the_lock_is_that_of_the_run_whatever_file_is_written(tmp_path: Path) -> None:
    """Who looks at the first file sees whether the run goes on; a torn end is left alone then."""
    journal = Journal(tmp_path / TRACE, segment_bytes=EACH)
    for record in story():
        journal(record)
    with files(journal.path)[-1].open("ab") as file:
        file.write(b'{"t"')
    assert is_being_written(journal.path)
    assert recover(tmp_path) is None
    journal.close()
    assert not is_being_written(journal.path)
    assert recover(tmp_path) is not None


def test_nothing_is_written_where_it_would_go_on_after_something_else(tmp_path: Path) -> None:
    segment_path(tmp_path / TRACE, 2).write_text("of another run\n")
    with pytest.raises(JournalError, match=r"trace\.dig\.jsonl\.000002 is there"):
        Journal(tmp_path / TRACE)


@pytest.mark.parametrize("size", [0, -1])
def test_a_size_that_no_file_has_is_refused(tmp_path: Path, size: int) -> None:
    with pytest.raises(SettingsError, match="None"):
        Journal(tmp_path / TRACE, segment_bytes=size)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", ["file", "line"])
def test_a_disk_that_is_full_at_the_beginning_of_a_file_leaves_whole_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Be there no room for its name or for its first line: stop, or go on without."""
    made = 0

    def refuse(path: Path) -> int:
        nonlocal made
        made += 1
        if what == "file" and made == 4:
            raise OSError(errno.ENOSPC, "No space left")
        return new(path)

    new = appending._new
    monkeypatch.setattr(appending, "_new", refuse)
    for choice in ("stop", "continue"):
        made, folder = 0, tmp_path / choice
        folder.mkdir()
        disk = Disk(full(4) if what == "line" else lambda count: None)
        if choice == "stop":
            with pytest.raises(JournalError, match="No space left"):
                write(folder, segment_bytes=EACH, write=disk)
        else:
            write(folder, segment_bytes=EACH, write=disk, disk_full="continue")
            assert (folder / f"{TRACE}.unreplayable").exists()
        assert list(read_records(folder)) == story()[:3]
        assert verify(folder / TRACE).problems == []
        assert recover(folder) is None


def test_a_sync_is_of_every_file_that_is_new_and_of_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a record counts as synced, all files up to its own are, with the directory."""
    synced: list[str] = []
    monkeypatch.setattr(module, "sync_file", lambda path, sync=None: synced.append(path.name))
    journal = Journal(tmp_path / TRACE, segment_bytes=EACH, durability="power")
    for record in story()[:3]:
        journal(record)
    journal.sync()
    assert synced == [TRACE, f"{TRACE}.000002", f"{TRACE}.000003", tmp_path.name]
    synced.clear()
    journal.sync()
    assert synced == []
    journal(story()[3])
    journal.sync()
    journal.close()
    assert synced == [f"{TRACE}.000003", f"{TRACE}.000004", tmp_path.name]


def test_a_thread_may_sync_while_the_journal_goes_on_in_other_files(tmp_path: Path) -> None:
    """No file is closed under its hands, and in the end every one has been synced."""
    journal = Journal(tmp_path / TRACE, segment_bytes=EACH, durability="power")
    done = threading.Event()
    failed: list[Exception] = []

    def sync() -> None:
        try:
            while not done.is_set():
                journal.sync()
            journal.sync()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=sync)
    thread.start()
    run = simple_run(3)
    for record in read_records(journalled(run, tmp_path)):
        journal(record)
    done.set()
    thread.join()
    journal.close()
    assert not failed
    assert not journal._files.full
    assert len(files(journal.path)) > 50


# --- lists of runs ---


def test_a_run_that_goes_on_in_another_file_is_looked_at_again(tmp_path: Path) -> None:
    """The index goes by all files of a run."""
    directory = RunDirectory(tmp_path, {}, keeping=Keeping(segment_bytes=EACH))
    seen = []
    for record in story():
        directory.journal(record)
        (run,) = overview(tmp_path)
        seen.append(run.records)
    directory.journal.close()
    assert seen == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_full_file_that_is_cut_short_is_not_taken_for_a_run_that_goes_on(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    path = write(tmp_path / "run", segment_bytes=EACH)
    path.write_bytes(path.read_bytes()[:-3])
    files(path)[1].write_bytes(files(path)[1].read_bytes())
    (run,) = overview(tmp_path)
    assert run.state == "broken"
