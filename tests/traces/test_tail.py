"""A trace read as it grows is the trace read at its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.errors import TraceError
from dig.traces.journal.reader import Tail, read_lines
from tests.traces.journals import story, write
from tests.traces.runs import hasty, store

KINDS = ["journal", "plain", "without a last newline"]


def made(folder: Path, kind: str) -> Path:
    if kind == "journal":
        return write(folder, story("\u2028é"))
    path = store(folder / "t.dig.jsonl", hasty())
    if kind != "plain":
        path.write_bytes(path.read_bytes().rstrip(b"\n"))
    return path


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_however_it_is_cut_into_pieces_it_is_read_once_and_whole(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    """A look at any byte leaves out what is not whole yet, and nothing comes twice."""
    path = made(tmp_path_factory.mktemp("tail"), kind)
    whole, content = list(read_lines(path)), path.read_bytes()
    cuts = data.draw(st.lists(st.integers(0, len(content)), max_size=8))
    tail, found = Tail(path), []
    for cut in [*sorted(cuts), len(content)]:
        path.write_bytes(content[:cut])
        found += [line.row for line in tail.read(is_growing=True)]
    assert found == [line.row for line in whole]
    assert tail.number == len(whole)


def test_a_file_that_became_shorter_is_another_one(tmp_path: Path) -> None:
    """What was read of it is not there any more: that is said, not guessed about."""
    path = write(tmp_path)
    tail = Tail(path)
    assert len(list(tail.read(is_growing=True))) == 8
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(TraceError, match="has become shorter"):
        list(tail.read(is_growing=True))
