"""Journals: what is written, when it is on the disk, and what happens if it cannot be."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dig.errors import DamageError, JournalError, TraceError
from dig.graph.records import IncidentRow
from dig.runtime.group_commit import Durability
from dig.traces.journal import journal as module
from dig.traces.journal.durable_files import write_file
from dig.traces.journal.journal import Journal, Keeping, RunDirectory, read_side
from dig.traces.journal.reader import TRACE, read_graph, read_records

from .journals import LARGE, Disk, story, write


def full(at: int) -> Any:
    return lambda count: OSError(errno.ENOSPC, "No space left") if count >= at else None


# --- what is written ---


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert list(read_records(write(tmp_path))) == story()


def test_a_record_is_there_in_one_write_before_the_sink_returns(tmp_path: Path) -> None:
    disk = Disk(lambda count: None)
    journal = Journal(tmp_path / TRACE, write=disk)
    for number, record in enumerate(story(), 1):
        journal(record)
        assert (tmp_path / TRACE).read_bytes().count(b"\n") == disk.count == number
    journal.close()


def test_records_that_come_at_once_are_in_one_write_or_none_is_there(tmp_path: Path) -> None:
    """The records of a request: all of them, or none if the disk has failed."""
    disk = Disk(full(3))
    journal = Journal(tmp_path / TRACE, write=disk)
    journal.write(story()[:2])
    journal.write(story()[2:5])
    assert disk.count == 2
    with pytest.raises(JournalError):
        journal.write(story()[5:9])
    journal.close()
    assert list(read_records(tmp_path / TRACE)) == story()[:5]


def test_a_write_that_is_cut_short_is_carried_on(tmp_path: Path) -> None:
    path = write(tmp_path, write=Disk(lambda count: None, short=True))
    assert list(read_records(path)) == story()


def test_its_keys_are_extra_so_that_a_plain_reader_needs_none_of_them(tmp_path: Path) -> None:
    path = write(tmp_path, header={"gates": []})
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows[0]["journal"] == {"version": 1, "gates": []}
    for row in rows:
        assert len(row.pop("chain")) == 32
        row.pop("journal", None)
    plain = tmp_path / "plain.dig.jsonl"
    plain.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert list(read_records(plain)) == story()


def test_the_same_records_give_the_same_bytes_at_every_level(tmp_path: Path) -> None:
    written = set()
    for level in ("process", "effects", "power"):
        (tmp_path / level).mkdir()
        written.add(write(tmp_path / level, durability=level).read_bytes())
    assert len(written) == 1


@pytest.mark.parametrize("redacts", [True, False])
def test_secrets_are_masked_in_the_files_beside_a_trace(tmp_path: Path, redacts: bool) -> None:
    """Unless the run keeps them in its trace, too."""
    header = {} if redacts else {"redacts": False}
    said = {
        "reason": "stopped: OSError('api_key=abcdef1234')",
        "tokens": 5,
        "token": ["abcdef1234"],
    }
    directory = RunDirectory(tmp_path, said, header=header)
    directory.write_result({"errors": said})
    directory.journal.close()
    for name in ("side.json", "result.json"):
        text = (directory.path / name).read_text()
        assert json.loads(text) and '"tokens": 5' in text
        assert ("abcdef1234" in text) is not redacts


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, {"task": "t"})
    for record in story(LARGE):
        directory.journal(record)
    directory.write_result({})
    directory.journal.close()
    files = [path for path in directory.path.rglob("*") if path.is_file()]
    assert len(files) == 4
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert (directory.path / "blobs").stat().st_mode & 0o777 == 0o700
    assert read_side(directory.path)["task"] == "t"


# --- one writer ---


def test_a_journal_has_one_writer(tmp_path: Path) -> None:
    """A file that is there is never written to, and one that is being written is locked."""
    from dig.traces.journal.locking import is_being_written

    journal = Journal(tmp_path / TRACE)
    assert is_being_written(tmp_path / TRACE)
    with pytest.raises(JournalError, match="File exists"):
        Journal(tmp_path / TRACE)
    journal.close()
    assert not is_being_written(tmp_path / TRACE)


# --- large payloads ---


def test_a_large_payload_lies_beside_the_trace_once(tmp_path: Path) -> None:
    path = write(tmp_path, story(LARGE))
    assert path.stat().st_size < 5_000
    assert len(list((tmp_path / "blobs").iterdir())) == 1
    assert list(read_records(path)) == story(LARGE)


def test_the_graph_needs_no_payload(tmp_path: Path) -> None:
    path = write(tmp_path, story(LARGE))
    (blob,) = (tmp_path / "blobs").iterdir()
    blob.unlink()
    assert read_graph(path).finished is not None


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda blob: blob.unlink(), "cannot be read"),
        (lambda blob: blob.write_text('"other"'), "is damaged"),
        (lambda blob: (blob.unlink(), blob.symlink_to("/etc/passwd")), "cannot be read"),
    ],
)
def test_a_payload_that_is_not_what_it_was_is_refused(
    tmp_path: Path, spoil: Any, reason: str
) -> None:
    path = write(tmp_path, story(LARGE))
    (blob,) = (tmp_path / "blobs").iterdir()
    spoil(blob)
    with pytest.raises(TraceError, match=reason) as caught:
        list(read_records(path))
    assert caught.value.line == 2


@pytest.mark.parametrize("blobs", [[], {"payload": 1}, {"payload": "../../etc/passwd"}])
def test_a_trace_cannot_name_a_file_that_is_no_payload(tmp_path: Path, blobs: Any) -> None:
    rows = [
        {"t": 0, "ts": 0, "kind": "run", "version": 1, "run": "r", "agents": ["a"]},
        {"t": 1, "ts": 0, "kind": "incident", "what": "w", "detail": 0, "blobs": blobs},
    ]
    path = tmp_path / "t.dig.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(TraceError, match="blobs"):
        list(read_records(path))


# --- the disk is full ---


def test_a_full_disk_stops_the_run_and_leaves_whole_records(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="No space left"):
        write(tmp_path, write=Disk(full(4)))
    data = (tmp_path / TRACE).read_bytes()
    assert (data.count(b"\n"), data[-1:]) == (3, b"\n")
    assert list(read_records(tmp_path)) == story()[:3]


def test_a_run_may_go_on_without_a_journal_and_the_trace_says_so(tmp_path: Path) -> None:
    journal = Journal(tmp_path / TRACE, disk_full="continue", write=Disk(full(4)))
    for record in story():
        journal(record)
    journal.close()
    assert journal.unreplayable_from == 3
    assert (tmp_path / f"{TRACE}.unreplayable").exists()
    assert list(read_records(tmp_path)) == story()[:3]


# --- its file is taken away ---


def remove(folder: Path) -> None:
    (folder / TRACE).unlink()


def cut(folder: Path) -> None:
    os.truncate(folder / TRACE, 0)


def move(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def replace(folder: Path) -> None:
    data = (folder / TRACE).read_bytes()
    (folder / TRACE).unlink()
    (folder / TRACE).write_bytes(data)


TAKEN: dict[Callable[[Path], object], str] = {
    remove: "was removed", cut: "was cut",
    move: r"was (removed or )?moved", shutil.rmtree: "was removed", replace: "was removed",
}  # fmt: skip


@pytest.mark.parametrize("take", TAKEN)
@pytest.mark.parametrize("segment_bytes", [None, 700])
def test_a_file_that_is_taken_away_is_noticed_within_a_second(
    tmp_path: Path, take: Callable[[Path], object], segment_bytes: int | None,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """The run stops with a sentence, in the log too, and the trace is marked."""
    now, folder = [0.0], tmp_path / "run"
    folder.mkdir()
    journal = Journal(folder / TRACE, segment_bytes=segment_bytes, clock=lambda: now[0])
    journal.write(story()[:3])
    take(folder)

    def go_on() -> None:
        for at in (3, 4):  # the second is later than a second, or does not fit any more
            now[0] += 0.6
            journal.write(story()[at : at + 1])

    with pytest.raises(JournalError, match=TAKEN[take]):
        go_on()
    with pytest.raises(JournalError, match=TAKEN[take]):  # it stays so
        journal.write(story()[5:6])
    assert journal.unreplayable_from == (3 if segment_bytes else 4)
    assert re.search(TAKEN[take], caplog.text)
    is_gone = take in (move, shutil.rmtree)
    assert is_gone or (folder / f"{TRACE}.unreplayable").exists()
    journal.close()


def test_a_later_segment_that_is_taken_away_is_noticed(tmp_path: Path) -> None:
    """It is the file that is written to that counts: full ones may be put elsewhere."""
    now = [0.0]
    journal = Journal(tmp_path / TRACE, segment_bytes=300, clock=lambda: now[0])
    journal.write(story()[:4])
    (tmp_path / TRACE).unlink()
    now[0] = 2.0
    journal.write(story()[4:5])
    journal._files.current.unlink()
    now[0] = 4.0
    with pytest.raises(JournalError, match=r"trace\.dig\.jsonl\.\d+ was removed"):
        journal.write(story()[5:6])
    assert (tmp_path / f"{TRACE}.unreplayable").exists()
    journal.close()


@pytest.mark.parametrize("take", TAKEN)
@pytest.mark.parametrize("durability", ["process", "effects"])
def test_a_run_may_go_on_without_a_file_that_is_taken_away(
    tmp_path: Path, take: Callable[[Path], object], durability: Durability
) -> None:
    """With `continue` nothing is raised, at a sync neither, and it is known from where on."""
    now, folder = [0.0], tmp_path / "run"
    folder.mkdir()
    journal = Journal(
        folder / TRACE, disk_full="continue", durability=durability, clock=lambda: now[0]
    )
    journal.write(story()[:3])
    journal.sync()
    take(folder)
    journal.write(story()[3:4])
    if durability == "effects":
        journal.sync()
    now[0] = 1.1
    journal.write(story()[4:5])
    journal.write(story()[5:6])
    journal.sync()
    assert journal.unreplayable_from in (3, 4)
    journal.close()


def test_the_last_record_is_never_written_to_a_file_that_is_gone(tmp_path: Path) -> None:
    """A run that ends in the same second does not end as if all were well."""
    journal = Journal(tmp_path / TRACE, clock=lambda: 0.0)
    journal.write(story()[:6])
    remove(tmp_path)
    with pytest.raises(JournalError, match="was removed"):
        journal.write(story()[6:])
    journal.close()


def test_a_thousand_records_are_looked_after_before_a_second_is_over(tmp_path: Path) -> None:
    """A team that is fast loses no more of its trace than that."""
    journal = Journal(tmp_path / TRACE, clock=lambda: 0.0)
    remove(tmp_path)
    incidents = [IncidentRow(t, 0, "x", None) for t in range(1, 2_000)]
    journal.write(story()[:1])
    journal.write(incidents[:998])
    with pytest.raises(JournalError, match="was removed"):
        journal.write(incidents[998:])
    assert journal.unreplayable_from is not None
    assert journal.unreplayable_from <= 1_000
    journal.close()


def test_no_record_costs_a_look_at_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For 500 records in one second the file is not looked at."""
    looks = Counter[str]()
    stat = os.fstat
    monkeypatch.setattr(os, "fstat", lambda file: (looks.update("x"), stat(file))[1])
    journal = Journal(tmp_path / TRACE, clock=lambda: 0.0)
    before = looks["x"]
    for t in range(500):
        journal(IncidentRow(t, 0, "x", None))
    assert looks["x"] == before
    journal.close()


def test_a_program_that_changes_its_folder_has_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path means the folder in which the journal was begun."""
    now = [0.0]
    monkeypatch.chdir(tmp_path)
    journal = Journal(Path(TRACE), clock=lambda: now[0])
    journal.write(story()[:4])
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    now[0] = 5.0
    journal.write(story()[4:])
    journal.close()
    assert list(read_records(tmp_path / TRACE)) == story()


def test_another_fault_of_the_disk_always_stops_the_run(tmp_path: Path) -> None:
    broken = Disk(lambda count: OSError(errno.EIO, "Input/output error") if count == 3 else None)
    with pytest.raises(JournalError, match="Input/output"):
        write(tmp_path, disk_full="continue", write=broken)


def test_a_file_for_which_there_is_no_room_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a part of it nor another in the place of the one that was there."""
    (tmp_path / "result.json").write_text("as it was")

    def fail(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_file(tmp_path / "result.json", b"as it would be", synced=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["as it was"]


# --- on the disk ---


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file and directory was synced, by name; a part counts as its file."""
    count: Counter[str] = Counter()

    def sync(file: int) -> None:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{file}"))
        count[".".join(name.split(".")[:-2]) if name.endswith(".part") else name] += 1

    monkeypatch.setattr(module, "_sync", sync)
    monkeypatch.setattr(os, "fsync", sync)
    return count


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names of open files are needed")
def test_a_sync_is_for_all_that_was_written_and_payloads_come_with_it(
    tmp_path: Path, synced: Counter[str]
) -> None:
    journal = Journal(tmp_path / TRACE, durability="power")
    records = story(LARGE)
    journal(records[0])
    journal.sync()
    assert synced == {TRACE: 1, tmp_path.name: 1}
    for record in records[1:3]:
        journal(record)
    for _ in range(3):
        journal.sync()
    journal.close()
    (blob,) = (tmp_path / "blobs").iterdir()
    assert synced == {TRACE: 2, tmp_path.name: 2, "blobs": 1, blob.name: 1}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names of open files are needed")
@pytest.mark.parametrize("durability", ["process", "effects", "power"])
def test_a_run_directory_is_on_the_disk_with_all_that_was_made_for_it(
    tmp_path: Path, synced: Counter[str], durability: Any
) -> None:
    """A synced journal is of no use if nothing leads to it after a power cut."""
    directory = RunDirectory(
        tmp_path / "new" / "runs", {"task": "t"}, keeping=Keeping(durability=durability)
    )
    directory.journal.close()
    if durability == "process":
        assert not synced
        return
    made = {tmp_path.name: 1, "new": 1, "runs": 1}
    beside = {"side.json": 1, directory.path.name: 1}
    assert synced == {**made, **beside}
    directory.write_result({})
    assert synced == {**made, "side.json": 1, "result.json": 1, directory.path.name: 2}


def test_after_a_sync_that_failed_nobody_is_told_that_one_succeeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / TRACE, durability="power")
    journal(story()[0])

    def fail(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(module, "_sync", fail)
        with pytest.raises(JournalError, match="cannot sync"):
            journal.sync()
    with pytest.raises(JournalError, match="cannot sync"):
        journal.sync()
    journal.close()


# --- damage ---


def test_damage_is_located_to_the_line_whatever_follows(tmp_path: Path) -> None:
    path = write(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    swapped = [lines[0], lines[2], lines[1], *lines[3:]]
    for broken in (swapped, lines[:1] + lines[2:], [*lines[:2], lines[1], *lines[2:]]):
        path.write_bytes(b"".join(broken))
        with pytest.raises(DamageError) as caught:
            list(read_records(path))
        assert caught.value.line == next(
            n for n, (a, b) in enumerate(zip(broken, lines, strict=False), 1) if a != b
        )


def test_a_journal_cannot_pass_for_a_plain_trace(tmp_path: Path) -> None:
    """Neither without the keys of its first line, nor with all of them changed."""
    path = write(tmp_path)
    data = path.read_bytes()
    for keys in ((b'"chain"',), (b'"journal"',), (b'"chain"', b'"journal"')):
        broken = data
        for key in keys:
            broken = broken.replace(key, b'"other"', 1)
        path.write_bytes(broken)
        with pytest.raises(TraceError):
            list(read_records(path))
