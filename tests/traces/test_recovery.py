"""Recovery: what a crash leaves is set aside, and what is damaged is refused or salvaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from dig.errors import DamageError, TraceError
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE, read_records
from dig.traces.journal.recovery import recover

from .journals import story, write


@pytest.mark.sampled(4)
@pytest.mark.parametrize("offset", range(4))
def test_a_cut_at_every_byte_leaves_the_longest_valid_prefix(tmp_path: Path, offset: int) -> None:
    """The records whose newline is there are read, and the rest is in a file beside them."""
    whole = write(tmp_path).read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first + offset, len(whole), 4):
        path = tmp_path / f"{cut}.dig.jsonl"
        path.write_bytes(whole[:cut])
        complete = whole[:cut].count(b"\n")
        assert list(read_records(path)) == story()[:complete]
        aside = recover(path)
        end = whole[:cut].rindex(b"\n") + 1
        assert path.read_bytes() == whole[:end]
        if end == cut:
            assert aside is None
        else:
            assert aside is not None
            assert aside.files[0].read_bytes() == whole[end:cut]
            assert (aside.bytes, aside.records, aside.line) == (cut - end, complete, None)


def test_nothing_is_whole_in_a_first_line_that_is_torn(tmp_path: Path) -> None:
    whole = write(tmp_path).read_bytes()
    path = tmp_path / "cut.dig.jsonl"
    for cut in range(whole.index(b"\n") + 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(TraceError):
            list(read_records(path))


def test_a_second_torn_tail_does_not_replace_the_first(tmp_path: Path) -> None:
    path = write(tmp_path)
    files = []
    for _ in range(3):
        path.write_bytes(path.read_bytes()[:-3])
        aside = recover(path)
        assert aside is not None
        files.append(aside.files[0].name)
    assert files == [f"{TRACE}.torn", f"{TRACE}.torn.1", f"{TRACE}.torn.2"]


def test_damage_in_the_middle_stays_until_it_is_salvaged(tmp_path: Path) -> None:
    path = write(tmp_path)
    data = path.read_bytes()
    broken = data.replace(b'"start"', b'"stOrt"')
    path.write_bytes(broken)
    assert recover(path) is None
    with pytest.raises(DamageError):
        list(read_records(path))
    aside = recover(path, salvage=True)
    assert aside is not None
    assert (aside.line, aside.records) == (4, 3)
    assert path.read_bytes() + aside.files[0].read_bytes() == broken
    assert list(read_records(path)) == story()[:3]
    assert recover(path, salvage=True) is None


def test_a_journal_without_a_whole_line_cannot_be_salvaged(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"ada"', b'"bob"', 1))
    with pytest.raises(TraceError, match="nothing to salvage"):
        recover(path, salvage=True)


def test_a_plain_trace_and_a_run_that_goes_on_are_left_alone(tmp_path: Path) -> None:
    plain = tmp_path / "plain.dig.jsonl"
    plain.write_text('{"t": 0, "ts": 0, "kind": "run", "version": 1, "run": "r", "agents": []}')
    assert recover(plain, salvage=True) is None
    journal = Journal(tmp_path / TRACE)
    for record in story():
        journal(record)
    with open(tmp_path / TRACE, "ab") as file:
        file.write(b'{"t"')
    assert recover(tmp_path) is None
    assert list(read_records(tmp_path)) == story()
    journal.close()
    assert recover(tmp_path) is not None
