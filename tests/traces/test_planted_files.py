"""A run directory from elsewhere: pipes are not waited for, links not written through."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from dig._util.files import MOST_BYTES, read_file
from dig.errors import DigError, JournalError
from dig.show.compare.golden import is_golden
from dig.show.page.writing import write_report
from dig.show.runs.index import INDEX, overview
from dig.show.runs.summary import read_beside
from dig.traces.journal.durable_files import write_file, write_output
from dig.traces.journal.journal import RESULT, SIDE, Journal, read_side
from dig.traces.journal.reader import TRACE, read_records
from dig.traces.journal.recovery import is_cut_off, recover
from dig.traces.otel.ids import origin_of
from dig.traces.verify import verify

from .journals import story
from .runs import directory, solved

PRECIOUS = b"a token, with no line break at its end"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory, in one of its own."""
    return directory(tmp_path / "runs", "r1", solved(), score={"valid": True}, method="dig",
                     began="2026-01-01T00:00:00+00:00")  # fmt: skip


def in_its_place(path: Path) -> None:
    """Put a pipe with a name where a file was."""
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "read",
    [
        lambda run: [*read_records(run)],
        write_report,
        lambda run: verify(run / TRACE),
    ],
    ids=["read", "report", "verify"],
)
def test_a_pipe_in_the_place_of_a_trace_is_not_waited_for(
    run: Path, read: Callable[[Path], object]
) -> None:
    """It is no file, and the error says so."""
    in_its_place(run / TRACE)
    with pytest.raises((DigError, ValueError), match="is no file"):
        read(run)


def test_who_only_looks_on_does_not_wait_for_a_pipe_either(run: Path) -> None:
    """The trace is none, so nothing is known of it."""
    in_its_place(run / TRACE)
    assert recover(run) is None
    assert not is_cut_off(run)
    assert not is_golden(run / TRACE)


@pytest.mark.parametrize("name", [SIDE, RESULT])
def test_a_pipe_beside_a_trace_is_not_waited_for(run: Path, name: str) -> None:
    """What lies beside a trace is as good as not there."""
    in_its_place(run / name)
    assert read_beside(run, name) == {}
    assert [one.state for one in overview(run.parent)] == ["ended"]
    assert write_report(run).records == 16
    if name == SIDE:
        with pytest.raises(DigError, match="is no file"):
            read_side(run)
        with pytest.raises(DigError, match="is no file"):
            origin_of(run)


def test_a_file_beside_a_trace_is_read_up_to_a_length(run: Path) -> None:
    """Else it would fill the memory."""
    with (run / RESULT).open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(OSError, match="longer than"):
        read_file(run / RESULT)
    assert read_beside(run, RESULT) == {}


def test_nothing_is_written_through_a_link(run: Path, tmp_path: Path) -> None:
    """Not even where the name of the link is the one that a file has while it is written."""
    other = tmp_path / "other"
    other.write_bytes(PRECIOUS)
    for name in ("report.html", "report.html.part"):
        (run / name).symlink_to(other)
    write_report(run)
    assert other.read_bytes() == PRECIOUS
    assert (run / "report.html").read_bytes().startswith(b"<!DOCTYPE html>")
    assert not (run / "report.html").is_symlink()


def test_each_writer_of_a_file_has_its_own_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second writer neither removes nor mixes what the first one has half written."""
    replace, parts = Path.replace, list[bytes]()

    def write_another_first(part: Path, target: Path) -> Path:
        monkeypatch.undo()
        write_file(target, b"second")
        parts.append(part.read_bytes())
        return replace(part, target)

    monkeypatch.setattr(Path, "replace", write_another_first)
    write_file(tmp_path / "file", b"first")
    assert (parts, (tmp_path / "file").read_bytes()) == ([b"first"], b"first")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_somebody_asks_for_is_written_whole_where_they_want_it(tmp_path: Path) -> None:
    """Through their own link, and to what is no file; if it fails, what was there stays."""
    there, link = tmp_path / "there", tmp_path / "link"
    there.write_bytes(PRECIOUS)
    link.symlink_to(there)
    write_output(link, b"new")
    assert (there.read_bytes(), link.is_symlink()) == (b"new", True)
    write_output(Path(os.devnull), b"new")
    assert not Path(os.devnull).is_file()
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
    try:
        with pytest.raises(OSError, match="too large"):
            write_output(there, b"longer than fits")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert [*tmp_path.iterdir()] in ([there, link], [link, there])
    assert there.read_bytes() == b"new"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_who_may_read_an_output_is_up_to_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    """And to the file that was there; a file of a run is its owner's, whatever the umask says."""
    ours, new, there = tmp_path / "ours", tmp_path / "new", tmp_path / "there"
    there.write_bytes(PRECIOUS)
    there.chmod(0o640)
    before = os.umask(umask)
    try:
        write_file(ours, b"new")
        write_output(new, b"new")
        write_output(there, b"new")
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (ours, new, there)]
    assert modes == [0o600, mode, 0o640]
    assert there.read_bytes() == b"new"


@pytest.mark.parametrize("salvage", [False, True])
def test_nothing_is_cut_off_through_a_link(tmp_path: Path, salvage: bool) -> None:
    """A segment may lead to a file of somebody's that is no journal at all."""
    with closing(Journal(tmp_path / TRACE)) as journal:
        for record in story()[:-1]:
            journal(record)
    other = tmp_path / "other"
    other.write_bytes(PRECIOUS + (b"\n" if salvage else b""))
    before = other.read_bytes()
    (tmp_path / f"{TRACE}.000002").symlink_to(other)
    with pytest.raises(JournalError, match="it is a link"):
        recover(tmp_path, salvage=salvage)
    assert other.read_bytes() == before
    assert not [*tmp_path.glob("*.torn*")]


def test_an_index_that_is_a_link_is_left_alone(run: Path, tmp_path: Path) -> None:
    """It may lead to a file of another program: only the link is replaced."""
    other = tmp_path / "other"
    other.write_text("cookies")
    (run.parent / INDEX).symlink_to(other)
    assert [one.state for one in overview(run.parent)] == ["ended"]
    assert other.read_text() == "cookies"
    assert not (run.parent / INDEX).is_symlink()


def test_a_pipe_in_the_place_of_an_index_is_not_waited_for(run: Path) -> None:
    """The overview is the same, only slower."""
    os.mkfifo(run.parent / INDEX)
    assert [one.state for one in overview(run.parent)] == ["ended"]
