"""Server-sent events of a run: all of it, once, in order, whoever comes back when."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.show.server import following
from dig.show.server.page_routes import stream
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE
from tests.show.server.client import Happening, happenings
from tests.traces.journals import LARGE, story, write
from tests.traces.parted import files
from tests.traces.runs import hasty, store


class Waiting:
    """Time that passes by calls; at each a step is taken, after the last the server closes."""

    def __init__(self, *steps: Callable[[], object], more: int = 0) -> None:
        self.steps = list(steps)
        self.more = more

    def __call__(self, seconds: float) -> bool:
        if self.steps:
            self.steps.pop(0)()
            return False
        self.more -= 1
        return self.more < 0


def numbers(found: Iterable[Happening]) -> list[int]:
    """The numbers of the records in some events."""
    return [row["t"] for one in found if one.name == "" for row in one.data]


def seen(path: Path, after: int = -1, wait: Waiting | None = None) -> list[Happening]:
    return list(happenings(stream(path, after, wait or Waiting())))


def test_a_run_that_has_ended_is_told_as_a_whole_and_ends(tmp_path: Path) -> None:
    """Head, rows, head with the last state, end."""
    found = seen(write(tmp_path))
    assert [one.name for one in found] == ["head", "", "head", "end"]
    assert numbers(found) == list(range(8))
    assert found[2].data["state"] == "ended"
    assert "chain" not in found[1].data[0]


@given(st.integers(-1, 9))
def test_who_comes_back_is_told_what_is_missing_and_nothing_twice(
    tmp_path_factory: pytest.TempPathFactory, after: int
) -> None:
    """Whatever record a reader names as its last one, the next one is the first that it gets."""
    path = write(tmp_path_factory.mktemp("run"))
    assert numbers(seen(path, after)) == list(range(after + 1, 8))


@pytest.mark.parametrize("most", [1, 3, 500])
def test_the_id_of_a_batch_is_the_number_of_its_last_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """A reader that stops after any batch misses nothing by naming its id."""
    monkeypatch.setattr(following, "MOST_ROWS", most)
    path = write(tmp_path)
    batches = [one for one in seen(path) if one.name == ""]
    assert all(int(one.id) == one.data[-1]["t"] for one in batches)
    for n, batch in enumerate(batches, 1):
        assert numbers([*batches[:n], *seen(path, int(batch.id))]) == list(range(8))


@pytest.mark.parametrize(("segment_bytes", "least"), [(None, 1), (400, 3)])
def test_a_record_is_told_at_the_next_look_after_its_line(
    segment_bytes: int | None, least: int, tmp_path: Path
) -> None:
    """A journal that grows is followed record by record, and from file to file."""
    journal = Journal(tmp_path / TRACE, segment_bytes=segment_bytes)
    records = iter(story())
    journal(next(records))
    told: list[int] = []
    looks: list[int] = []

    def write_one() -> None:
        looks.append(len(told))
        journal(next(records))

    for one in happenings(stream(tmp_path, -1, Waiting(*[write_one] * 7))):
        told += numbers([one])
    journal.close()
    assert len(files(journal.path)) >= least
    assert looks == [1, 2, 3, 4, 5, 6, 7], "at each look all that was written had been told"
    assert told == list(range(8))


def test_half_a_line_is_told_when_it_is_whole(tmp_path: Path) -> None:
    """A part of a line is no record, in a journal or a plain trace."""
    lines = [json.dumps(row) + "\n" for row in hasty()]
    path = tmp_path / "t.dig.jsonl"
    path.write_text(lines[0] + lines[1][:20])

    def rest() -> None:
        path.write_text("".join(lines[:3]))

    found = seen(path, wait=Waiting(lambda: None, rest))
    assert numbers(found) == [0, 1, 2]
    assert [one.data["state"] for one in found if one.name == "head"] == ["in progress"]


def test_a_plain_trace_without_a_last_newline_is_told_to_its_end(tmp_path: Path) -> None:
    """Other programs leave the newline out, or write it later."""
    lines = [json.dumps(row) for row in hasty()]
    path = tmp_path / "t.dig.jsonl"
    path.write_text("\n".join(lines[:4]))
    found = seen(path, wait=Waiting(lambda: path.write_text("\n".join(lines[:6]) + "\n")))
    assert numbers(found) == list(range(6))


def test_findings_are_told_where_no_trace_tells_of_them(tmp_path: Path) -> None:
    """A plain trace is looked at; what is found comes with the record that shows it."""
    rows = [row for row in hasty() if row["kind"] not in ("finding", "heal")]
    for t, row in enumerate(rows):
        row["t"] = t
    found = [row for one in seen(store(tmp_path / "t.dig.jsonl", rows)) if one.name == ""
             for row in one.data]  # fmt: skip
    raised = [row for row in found if row["kind"] == "finding"]
    assert [row["pattern"] for row in raised] == ["ET"]
    assert "q" in raised[0]["why"]


def test_findings_of_which_the_trace_tells_are_told_once(tmp_path: Path) -> None:
    """Who recorded them knows best."""
    found = seen(store(tmp_path / "t.dig.jsonl", hasty()))
    kinds = [row["kind"] for one in found if one.name == "" for row in one.data]
    assert kinds.count("finding") == 1


def test_a_journal_that_nobody_writes_any_more_was_cut_off(tmp_path: Path) -> None:
    """A run that was killed ends for the reader, too."""
    path = write(tmp_path, story()[:5])
    found = seen(path, wait=Waiting(more=20))
    assert numbers(found) == list(range(5))
    assert [one.name for one in found][-2:] == ["head", "end"]
    assert found[-2].data["state"] == "cut off"


def test_a_journal_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    """As long as somebody holds its lock nothing is over."""
    journal = Journal(tmp_path / TRACE)
    for record in story()[:5]:
        journal(record)
    names = [one.name for one in seen(tmp_path, wait=Waiting(more=30))]
    journal.close()
    assert names == ["head", ""]


@pytest.mark.parametrize("damage", ["flip", "shorter", "rule"])
def test_a_damaged_trace_is_told_as_far_as_it_is_whole(tmp_path: Path, damage: str) -> None:
    """What is wrong is said, with the line, and the stream ends."""
    path = write(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    steps: list[Callable[[], Any]] = []
    if damage == "flip":
        path.write_bytes(b"".join([*lines[:4], lines[4].replace(b"2", b"3", 1), *lines[5:]]))
    elif damage == "shorter":
        path.write_bytes(b"".join(lines[:4]))
        path.open("a").close()
        steps = [lambda: path.write_bytes(b"".join(lines[:2]))]
    else:
        rows = [*hasty()[:4], {**hasty()[3], "t": 4}]
        path = store(tmp_path / "t.dig.jsonl", rows)
    found = seen(path, wait=Waiting(*steps))
    assert numbers(found) == [0, 1, 2, 3]
    last = [one for one in found if one.name == "head"][-1].data
    assert last["state"] == "broken"
    assert last["problem"]
    assert found[-1].name == "end"


def test_what_was_written_before_the_server_closes_is_told(tmp_path: Path) -> None:
    """A run that ends together with its server is told to its end."""
    path = write(tmp_path, story()[:1])
    (tmp_path / "whole").mkdir()
    whole = write(tmp_path / "whole").read_bytes()

    def close(seconds: float) -> bool:
        path.write_bytes(whole)
        return True

    found = list(happenings(stream(path, -1, close)))
    assert numbers(found) == list(range(8))
    assert found[-1].name == "end"


def test_silence_is_broken_now_and_then(tmp_path: Path) -> None:
    """A comment goes out, so that a reader that has gone is noticed."""
    journal = Journal(tmp_path / TRACE)
    journal(story()[0])
    pieces: Iterator[bytes] = stream(tmp_path, -1, Waiting(more=250))
    comments = [piece for piece in pieces if piece.startswith(b":")]
    journal.close()
    assert len(comments) == 2


def test_a_large_payload_is_cut_and_a_missing_one_stops_nothing(tmp_path: Path) -> None:
    """A page is sent what one may want to look at, not all there is."""
    path = write(tmp_path, story(LARGE))
    (emit,) = [row for row in seen(path)[1].data if row["t"] == 1]
    assert len(emit["payload"]) < 5000 < emit["chars"]
    for blob in (tmp_path / "blobs").iterdir():
        blob.unlink()
    assert numbers(seen(path)) == list(range(8))


def test_nothing_in_a_payload_ends_an_event_of_the_stream(tmp_path: Path) -> None:
    """Lines, fields and whole events in a payload stay a payload."""
    hostile = "x\n\ndata: [1]\n\nevent: end\r\rid: 99\u2028\u2029\ud800"
    found = seen(write(tmp_path, story(hostile)))
    assert numbers(found) == list(range(8))
    assert found[1].data[1]["payload"] == hostile
