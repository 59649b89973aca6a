"""Damage to a trace in several files is told by file and line, and set aside without a loss."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from dig.errors import DamageError, TraceError
from dig.show.runs.index import overview
from dig.traces.journal.reader import TRACE, Tail, read_records
from dig.traces.journal.recovery import recover
from dig.traces.journal.segments import segment_path, segments
from dig.traces.verify import verify
from tests.cli.test_cli import digmon
from tests.traces.journals import story, write
from tests.traces.parted import EACH, SPOILS, Spoil, files, long, parted, remove, whole

# --- damage ---


def told(path: Path) -> tuple[str, int | None]:
    """The file and line at which the reader stops."""
    with pytest.raises(TraceError) as caught:
        list(read_records(path))
    return caught.value.path.name, caught.value.line


def checked(path: Path) -> tuple[str | None, int | None]:
    """The file and line that the checker tells first."""
    problem = verify(path).problems[0]
    return problem.file, problem.line


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_file_that_is_not_what_it_was_is_told_by_name_and_line(
    tmp_path: Path, spoil: Spoil
) -> None:
    """By the reader and by the checker, for every file but the last, which nobody can miss."""
    count = len(files(parted(long(), tmp_path / "count", 4_000)))
    assert count > 4
    for at in range(1, count - 1):
        path = parted(long(), tmp_path / f"{spoil.__name__}-{at}", 4_000)
        number, line = spoil(files(path), at)
        name = segment_path(path, number + 1).name
        assert told(path) == (name, line)
        problem = verify(path).problems[0]
        if spoil is remove:
            assert name in problem.what
            assert problem.line is not None
        else:
            assert (problem.file, problem.line) == (name, line)


def test_a_first_file_that_was_deleted_is_missed_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run whose beginning somebody has thrown away is listed as broken, and says why."""
    (tmp_path / "run").mkdir()
    path = write(tmp_path / "run", segment_bytes=EACH)
    for gone in files(path)[:2]:
        gone.unlink()
    for command in ("check", "verify", "report"):
        code, out, err = digmon(capsys, monkeypatch, command, tmp_path / "run")
        assert (code, out) == (2, "")
        assert "trace.dig.jsonl: " in err
        assert "is missing" in err
        assert "trace.dig.jsonl.000003" in err
    (run,) = overview(tmp_path)
    assert run.state == "broken"
    assert "is missing" in (run.problem or "")


@pytest.mark.parametrize("odd", ["pipe", "directory", "link"])
def test_what_is_no_file_is_told_and_nobody_waits_for_it(tmp_path: Path, odd: str) -> None:
    """A pipe in the place of a segment has no end, and a link may lead nowhere."""
    (tmp_path / "run").mkdir()
    path = write(tmp_path / "run", segment_bytes=EACH)
    third = files(path)[2]
    third.unlink()
    if odd == "pipe":
        os.mkfifo(third)
    elif odd == "directory":
        third.mkdir()
    else:
        third.symlink_to(tmp_path / "nowhere")
    assert told(path) == (third.name, None)
    assert third.name in verify(path).problems[0].what
    (run,) = overview(tmp_path)
    assert (run.state, run.records) == ("broken", 2)
    tail = Tail(path)
    with pytest.raises(TraceError, match="000003"):
        list(tail.read(is_growing=True))


def test_no_flipped_bit_is_overlooked_in_any_file(tmp_path: Path) -> None:
    """It is told by the file and line where it is."""
    path = write(tmp_path, segment_bytes=600)
    rng = random.Random(1)
    for number, file in enumerate(files(path)):
        data = file.read_bytes()
        for _ in range(60):
            broken, at = bytearray(data), rng.randrange(len(data))
            broken[at] ^= 1 << rng.randrange(8)
            file.write_bytes(broken)
            where = file.name, data[:at].count(b"\n") + 1
            assert checked(path) == where
            if number + 1 < len(files(path)) or at < len(data) - 1:
                assert told(path)[0] == file.name
        file.write_bytes(data)
    assert verify(path).problems == []


# --- after a crash ---


def test_a_cut_at_every_byte_of_the_last_file_is_a_torn_end(tmp_path: Path) -> None:
    """No byte of its first line need be there; earlier files are not touched."""
    (tmp_path / "whole").mkdir()
    path = write(tmp_path / "whole", segment_bytes=500)
    parts = [file.read_bytes() for file in segments(path)]
    before = sum(part.count(b"\n") for part in parts[:-1])
    for cut in range(len(parts[-1]) + 1):
        folder = tmp_path / str(cut)
        shutil.copytree(path.parent, folder)
        last = files(folder / TRACE)[-1]
        last.write_bytes(parts[-1][:cut])
        complete = before + parts[-1][:cut].count(b"\n")
        assert list(read_records(folder)) == story()[:complete]
        aside = recover(folder)
        end = parts[-1][:cut].rfind(b"\n") + 1
        assert last.read_bytes() == parts[-1][:end]
        if end == cut:
            assert aside is None
        else:
            assert aside is not None
            assert (aside.path, aside.line, aside.records) == (last, None, complete)
            assert aside.files[0].read_bytes() == parts[-1][end:cut]
        assert verify(folder / TRACE).problems == []


def test_what_follows_damage_stays_until_it_is_salvaged(tmp_path: Path) -> None:
    """Later files are set aside as they are; nothing is lost."""
    for at in (1, 2):
        path = parted(long(), tmp_path / str(at), 3_000)
        paths = files(path)
        paths[at].write_bytes(paths[at].read_bytes().replace(b'"t":', b'"T":', 3))
        before = whole(path)
        assert recover(path) is None
        with pytest.raises(DamageError, match=r"--salvage` keeps"):
            list(read_records(path))
        aside = recover(path, salvage=True)
        assert aside is not None
        assert (aside.path, aside.line) == (paths[at], 1)
        assert len(aside.files) == len(paths) - at
        assert whole(path) + b"".join(file.read_bytes() for file in aside.files) == before
        assert sum(1 for _ in read_records(path)) == aside.records
        assert recover(path, salvage=True) is None


def test_what_follows_a_missing_file_can_be_given_up(tmp_path: Path) -> None:
    path = parted(long(), tmp_path, 3_000)
    paths = files(path)
    kept = paths[0].read_bytes()
    paths[1].unlink()
    assert recover(path) is None
    aside = recover(path, salvage=True)
    assert aside is not None
    assert (aside.line, len(aside.files)) == (None, len(paths) - 2)
    assert "missing file" in str(aside)
    assert whole(path) == kept
    assert verify(path).problems == []


class Crash(BaseException):
    """The process dies."""


@pytest.mark.parametrize("step", range(14))
def test_salvaging_that_is_cut_off_is_carried_on_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """At whatever step: done again it ends the same, and every byte is in some file."""
    path = parted(long(), tmp_path, 5_000)
    paths = files(path)
    paths[1].write_bytes(paths[1].read_bytes().replace(b'"t":', b'"T":', 2))
    lines = set(chain(*(file.read_bytes().splitlines() for file in paths)))
    done = 0

    def dying(call: Any) -> Any:
        def run(*given: Any, **named: Any) -> Any:
            nonlocal done
            done += 1
            if done == step + 1:
                raise Crash
            return call(*given, **named)

        return run

    with monkeypatch.context() as broken:
        for name in ("fsync", "open"):
            broken.setattr(os, name, dying(getattr(os, name)))
        broken.setattr(Path, "replace", dying(Path.replace))
        with contextlib.suppress(Crash):
            recover(path, salvage=True)
    recover(path, salvage=True)
    assert [file.name for file in segments(path)] == [paths[0].name, paths[1].name]
    assert verify(path).problems == []
    left = [file.read_bytes().splitlines() for file in tmp_path.iterdir()]
    assert lines <= set(chain(*left))
