"""The overview of a directory of runs: what it says, and that its index can be lost at any time."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import anyio
import pytest

import dig
from dig.errors import TraceError
from dig.show.runs import index
from dig.show.runs.index import INDEX, overview
from dig.show.runs.summary import RunSummary, grade, summarise
from dig.traces.journal.journal import Journal
from dig.traces.usage import tokens
from tests.traces.journals import story
from tests.traces.runs import directory, hasty, solved, store


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Four runs: one that went well, one in progress, one that is broken, and a bare trace."""
    folder = tmp_path / "runs"
    directory(folder, "r1", solved(tokens=5), method="dig", began="2026-01-01T00:00:00+00:00",
              score={"valid": True, "rmse": 2.5})  # fmt: skip
    going = directory(folder, "r2", hasty(), method="mas")
    with (going / "trace.dig.jsonl").open("a") as file:
        file.write('{"t": 17, "ts": 4, "ki')  # the line is being written
    broken = directory(folder, "r3", solved())
    lines = (broken / "trace.dig.jsonl").read_text().splitlines()
    (broken / "trace.dig.jsonl").write_text("\n".join([*lines[:4], "{}", *lines[4:]]) + "\n")
    store(folder / "alone.dig.jsonl", solved())
    (folder / "notes.txt").write_text("not a run")
    (folder / "empty").mkdir()
    return folder


def told(folder: Path) -> dict[str, RunSummary]:
    return {run.name: run for run in overview(folder)}


def test_a_run_is_summed_up(runs: Path) -> None:
    """Task, method, agents, outcome, findings, score, date, cost: all from the run's own files."""
    run = told(runs)["r1"]
    assert (run.state, run.outcome, run.task, run.method) == ("ended", "submitted", "adding", "dig")
    assert (run.agents, run.activations, run.events, run.records) == (3, 3, 4, 16)
    assert run.findings == {}
    assert run.score == {"valid": True, "rmse": 2.5}
    assert run.cost == {"input_tokens": 5, "output_tokens": 1}
    assert run.began == "2026-01-01T00:00:00+00:00"
    assert (tokens(run.cost), grade(run.score)) == (6, 2.5)


def test_an_instance_is_no_further_agent(tmp_path: Path) -> None:
    journal = tmp_path / "runs"

    async def ann(question: str) -> str:
        await anyio.sleep(0.01)
        return question

    async def ask_twice() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(team["ann"], "1")
            tasks.start_soon(team["ann"], "2")

    team = dig.wrap({"ann": ann}, journal=journal)
    anyio.run(ask_twice)
    dig.unwrap(team)
    (trace,) = journal.glob("*/trace.dig.jsonl")
    assert "ann#2" in trace.read_text()
    assert [run.agents for run in overview(journal)] == [1]


def test_runs_in_progress_and_broken_ones_are_listed_as_such(runs: Path) -> None:
    """Neither stops the overview, and the broken one says where."""
    found = told(runs)
    assert {name: run.state for name, run in found.items()} == {
        "r1": "ended", "r2": "in progress", "r3": "broken", "alone.dig.jsonl": "ended",
    }  # fmt: skip
    assert found["r2"].outcome is None
    assert found["r2"].problem is None
    assert found["r2"].findings == {"ET": 1}
    assert "trace.dig.jsonl:5: " in str(found["r3"].problem)
    assert found["r3"].records == 4


def test_a_journal_that_nobody_writes_any_more_was_cut_off(tmp_path: Path) -> None:
    """The lock knows, so the index need not; a result that is there says how it went on."""
    (tmp_path / "r").mkdir()
    journal = Journal(tmp_path / "r" / "trace.dig.jsonl")
    for record in story()[:4]:
        journal(record)
    assert [run.state for run in overview(tmp_path)] == ["in progress"]
    journal.close()
    (cut,) = overview(tmp_path)
    assert (cut.state, cut.outcome) == ("cut off", None)
    (tmp_path / "r" / "result.json").write_text('{"outcome": "submitted"}')
    (cut,) = overview(tmp_path)
    assert (cut.state, cut.outcome) == ("cut off", "submitted")


def test_a_trace_without_finding_rows_is_looked_at_again(tmp_path: Path) -> None:
    """Where no monitor wrote down what it raised, the detectors say what there was to raise."""
    rows = [row for row in hasty() if row["kind"] not in ("finding", "heal")]
    path = store(tmp_path / "t.dig.jsonl", [{**row, "t": t} for t, row in enumerate(rows)])
    assert summarise(path).findings == {"ET": 1}


@pytest.mark.parametrize(
    "beside",
    [
        b"", b"[]", b"{", b'{"score": NaN}', b"\xff", b"[" * 100_000, b'{"score": {"a": 1}}',
        b'{"score": 1e999}', b'{"score": {"a": 1' + b"0" * 400 + b"}}",
    ],
)  # fmt: skip
def test_files_beside_the_trace_may_hold_anything(tmp_path: Path, beside: bytes) -> None:
    """The trace is the truth; what cannot be read beside it is left out."""
    run = directory(tmp_path, "r", solved(), method=["odd"])
    (run / "result.json").write_bytes(beside)
    summary = summarise(run)
    assert summary.state == "ended"
    assert summary.method is None
    assert json.loads(json.dumps(summary.to_json(), allow_nan=False))["outcome"] == "submitted"


# --- the index ---


def reads(folder: Path) -> int:
    """How many traces the next overview reads."""
    with mock.patch.object(index, "summarise", wraps=summarise) as spy:
        overview(folder)
    return spy.call_count


def test_a_run_is_read_once(runs: Path) -> None:
    """What has not changed is not read again; what has, is."""
    assert reads(runs) == 4
    assert reads(runs) == 0
    (runs / "r1" / "result.json").write_text("{}")
    assert reads(runs) == 1
    directory(runs, "r5", solved())
    assert reads(runs) == 1


def test_a_run_that_is_gone_is_forgotten(runs: Path) -> None:
    """The index keeps no row of a run that is not there, even if it comes back."""
    overview(runs)
    (runs / "alone.dig.jsonl").rename(runs.parent / "away")
    assert "alone.dig.jsonl" not in told(runs)
    (runs.parent / "away").rename(runs / "alone.dig.jsonl")
    assert reads(runs) == 1


def test_the_index_goes_with_a_directory_that_is_moved(runs: Path) -> None:
    """Paths are those of now."""
    overview(runs)
    moved = runs.rename(runs.parent / "elsewhere")
    assert reads(moved) == 0
    assert {Path(run.path).parent for run in overview(moved)} == {moved}


def test_the_index_is_for_its_owner_only(runs: Path) -> None:
    """It tells what the runs tell."""
    overview(runs)
    assert (runs / INDEX).stat().st_mode & 0o777 == 0o600


def test_damage_to_the_index_never_shows(runs: Path) -> None:
    """Whatever bytes are flipped in it, cut off or put there instead, the overview is the same."""
    wanted = overview(runs)
    whole = (runs / INDEX).read_bytes()
    rng = random.Random(1)
    for turn in range(60):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 5, 500])):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        if turn % 5 == 0:
            damaged = damaged[: rng.randrange(len(damaged))]
        (runs / INDEX).write_bytes(damaged)
        assert overview(runs) == wanted
        assert overview(runs) == wanted


@pytest.mark.parametrize(
    "text", ["[]", '{"r1": 1}', '{"r1": ["a", "b", 3]}', '{"r1": ["a", "b", "c"]}', "[" * 100_000]
)
def test_a_file_of_another_sort_is_replaced(runs: Path, text: str) -> None:
    """JSON of another shape does no harm, and is gone after the next overview."""
    wanted = overview(runs)
    (runs / INDEX).write_text(text)
    assert overview(runs) == wanted
    assert reads(runs) == 0


@pytest.mark.parametrize(
    "other",
    ['{"r1": [STAMP, {"path": "r1", "weather": "fine"}]}', '{"r1": [STAMP, {}]}', '{"r1": STAMP}',
     '{"r1": [STAMP, []]}', "[]", "[" * 100_000],
)  # fmt: skip
def test_an_index_of_another_program_is_replaced(runs: Path, other: str) -> None:
    """Its checksum is right, and its rows have other fields."""
    wanted = overview(runs)
    body = other.replace("STAMP", json.dumps(index._stamp(runs / "r1"))).encode()
    (runs / INDEX).write_bytes(index._digest(body) + b"\n" + body)
    assert overview(runs) == wanted
    assert reads(runs) == 0


def test_a_place_where_no_index_can_be_is_fine(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that is only to be read has an overview too."""
    wanted = overview(runs)
    (runs / INDEX).unlink()
    (runs / INDEX).mkdir()
    assert overview(runs) == wanted


def test_several_may_ask_at_once(runs: Path) -> None:
    """Overviews side by side agree, whoever writes the index."""
    wanted = overview(runs)
    (runs / INDEX).unlink()
    with ThreadPoolExecutor(8) as pool:
        assert all(found == wanted for found in pool.map(overview, [runs] * 24))


def test_a_run_directory_is_one_run(runs: Path) -> None:
    """Nothing is put into it."""
    assert [run.name for run in overview(runs / "r1")] == ["r1"]
    assert not (runs / "r1" / INDEX).exists()


def test_a_directory_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        overview(tmp_path / "nothing")


def test_the_verdict_of_a_run_that_died_is_that_of_its_state(tmp_path: Path) -> None:
    """Nothing changes in its files: the writer's lock is gone, and what depended on it with it."""
    (tmp_path / "r").mkdir()
    journal = Journal(tmp_path / "r" / "trace.dig.jsonl")
    for record in story()[:4]:
        journal(record)
    (going,) = overview(tmp_path)
    journal.close()
    (dead,) = overview(tmp_path)
    assert (going.state, dead.state) == ("in progress", "cut off")
    assert going.headline != dead.headline
    assert dead == summarise(tmp_path / "r")
    assert reads(tmp_path) == 0
