"""`digmon runs prune`: what it removes, what it never removes, and traces that it compresses."""

from __future__ import annotations

import fcntl
import gzip
import json
import logging
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dig._util import files
from dig.show.runs.pruning import stored_runs
from dig.traces.journal.reader import read_records
from dig.traces.verify import verify

RUN = ["run", "count-frequency", "--agents", "4", "--size", "400", "--seed", "3", "--virtual", "-q"]
DAY_S = 86_400


@pytest.fixture
def runs(call: Any, tmp_path: Path) -> Path:
    """Four finished runs, 4, 3, 2 and 1 days old, called `run-4` to `run-1`."""
    folder = tmp_path / "runs"
    assert call(*RUN, "--runs", tmp_path / "made")[0] == 0
    (made,) = (tmp_path / "made").iterdir()
    for days in (4, 3, 2, 1):
        run = folder / f"run-{days}"
        shutil.copytree(made, run)
        edit(run, execution=run.name)
        age(run, days)
    return folder


def edit(run: Path, **fields: Any) -> None:
    side = json.loads((run / "side.json").read_text())
    (run / "side.json").write_text(json.dumps({**side, **fields}))


def age(run: Path, days: float) -> None:
    ended = time.time() - (days + 0.5) * DAY_S
    os.utime(run / "trace.dig.jsonl", (ended, ended))


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".index.json")


def test_nothing_goes_unless_an_option_says_so(call: Any, runs: Path) -> None:
    status, _, errors = call("runs", "prune", runs)
    assert status == 2 and "say what stays: --keep-days 30" in errors
    assert len(left(runs)) == 4


def test_old_runs_go_and_each_removal_is_logged(
    call: Any, runs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = left(runs)
    status, shown, _ = call("runs", "prune", runs, "--keep-days", "2.9", "--dry-run")
    assert (
        status == 0
        and "run-4: would be removed" in shown
        and "2 of 4 runs would be removed" in shown
    )
    assert left(runs) == before
    with caplog.at_level(logging.INFO, "dig"):
        status, shown, _ = call("runs", "prune", runs, "--keep-days", "2.9")
    assert status == 0 and "2 of 4 runs removed" in shown
    assert left(runs) == ["run-1", "run-2"]
    logged = [text.split()[2] for text in caplog.messages if text.startswith("dig: removed")]
    assert logged == [f"{runs / name}:" for name in ("run-4", "run-3")]


def test_the_oldest_go_until_the_rest_is_small_enough(call: Any, runs: Path) -> None:
    size = stored_runs(runs)[0].size
    status, shown, _ = call("runs", "prune", runs, "--keep-mb", str(2.5 * size / 1e6), "--json")
    rows = json.loads(shown)
    assert status == 0 and left(runs) == ["run-1", "run-2"]
    assert [Path(row["run"]).name for row in rows if row["removed"]] == ["run-4", "run-3"]


def without_end(run: Path) -> None:
    trace = run / "trace.dig.jsonl"
    trace.write_bytes(b"".join(trace.read_bytes().splitlines(keepends=True)[:-1]))
    age(run, 4)


def with_link(run: Path) -> None:
    (run / "result.json").unlink()
    (run / "result.json").symlink_to(run.parent / "run-1" / "result.json")


def plain_trace(run: Path) -> None:
    """As another program would write it: without the chain of a journal."""
    trace = run / "trace.dig.jsonl"
    rows = [json.loads(line) for line in trace.read_text().splitlines()]
    for row in rows:
        del row["chain"]
    del rows[0]["journal"]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    age(run, 4)


def damaged(run: Path) -> None:
    trace = run / "trace.dig.jsonl"
    trace.write_bytes(trace.read_bytes().replace(b"agent-1", b"agent-2", 1))
    age(run, 4)


KEPT: dict[str, Callable[[Path], object]] = {
    "it has not ended": without_end,
    "it has not ended ": damaged,
    "it was not made by dig": plain_trace,
    "it was not made by dig ": lambda run: edit(run, execution="another"),
    "it is not whole": lambda run: (run / "result.json").unlink(),
    "it has result.json": with_link,
    "it has note.txt": lambda run: (run / "note.txt").write_text("The customer's run."),
    "it has figures": lambda run: (run / "figures").mkdir(),
    "a fork began from it": lambda run: edit(
        run.parent / "run-1", forked_from={"run": str(run), "execution": run.name, "at": 3}
    ),
}


@pytest.mark.parametrize("reason", KEPT)
def test_a_run_in_doubt_stays(reason: str, call: Any, runs: Path) -> None:
    KEPT[reason](runs / "run-4")
    _, shown, _ = call("runs", "prune", runs, "--keep-days", "0", "--dry-run")
    assert f"run-4: stays, {reason.strip()}," in shown
    _, shown, _ = call("runs", "prune", runs, "--keep-days", "0", "--keep-mb", "0", "--gzip")
    assert left(runs) == ["run-4"]
    assert (runs / "run-4" / "trace.dig.jsonl").is_file()


def test_a_run_that_waits_for_a_person_stays(
    call: Any, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session may have been closed meanwhile."""
    from dig.show.runs import pruning
    from dig.show.runs.index import overview

    summaries = overview(runs)
    next(it for it in summaries if it.name == "run-4").waits.append({"activation": "a1"})
    monkeypatch.setattr(pruning, "overview", lambda folder: summaries)
    call("runs", "prune", runs, "--keep-days", "0")
    assert left(runs) == ["run-4"]


def test_a_run_that_a_process_has_opened_stays(call: Any, runs: Path) -> None:
    with open(runs / "run-4" / "trace.dig.jsonl", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        call("runs", "prune", runs, "--keep-days", "0", "--gzip")
    assert left(runs) == ["run-4"]
    assert (runs / "run-4" / "trace.dig.jsonl").is_file()


def test_nothing_is_removed_through_a_link(call: Any, runs: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (runs / "run-4").rename(elsewhere)
    (runs / "run-4").symlink_to(elsewhere)
    (tmp_path / "linked").symlink_to(runs)
    status, _, errors = call("runs", "prune", tmp_path / "linked", "--keep-days", "0")
    assert status == 2 and "is a link" in errors
    status, _, errors = call("runs", "prune", runs / "run-1", "--keep-days", "0")
    assert status == 2 and "or one run" in errors
    call("runs", "prune", runs, "--keep-days", "0")
    assert left(runs) == ["run-4"]
    assert (elsewhere / "trace.dig.jsonl").is_file()


def noted(run: Path) -> None:
    (run / "note.txt").write_text("Keep this one.")


def removed(run: Path) -> None:
    shutil.rmtree(run)


@pytest.mark.parametrize("change", [noted, removed])
def test_a_run_that_changes_after_the_look_stays(
    change: Callable[[Path], object], call: Any, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person, or another `prune`, may be at work."""
    from dig.show.runs import pruning

    def look(*arguments: Any) -> list[pruning.StoredRun]:
        chosen = to_remove(*arguments)
        change(runs / "run-4")
        return chosen

    to_remove = pruning.to_remove
    monkeypatch.setattr(pruning, "to_remove", look)
    status, shown, _ = call("runs", "prune", runs, "--keep-days", "0", "--gzip")
    assert status == 0 and "3 of 4 runs removed" in shown
    assert left(runs) == (["run-4"] if change is noted else [])


def test_an_interrupted_removal_leaves_nothing_that_looks_like_a_run(
    call: Any, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(shutil, "rmtree", fail)
    status, _, errors = call("runs", "prune", runs, "--keep-days", "3.9")
    assert status == 2 and "cannot remove" in errors
    rows = map(json.loads, call("runs", runs, "--json")[1].splitlines())
    assert sorted(Path(row["path"]).name for row in rows) == ["run-1", "run-2", "run-3"]


# --- compressed traces ---


COMMANDS = (
    "check", "verify", "show", "graph", "why", "replay --rerun", "fork --list",
    "export --format dot", "check --format junit", "why --json", "diff",
)  # fmt: skip


def test_every_command_reads_a_compressed_trace(call: Any, runs: Path) -> None:
    run = runs / "run-1"
    lines = [line.split() for line in COMMANDS]

    def output() -> list[Any]:
        results = []
        for words in lines:
            more = [run] if words == ["diff"] else []
            status, shown, errors = call(words[0], run, *more, *words[1:])
            kept = [line for line in shown.splitlines() if "timestamp=" not in line]
            results.append((words, status, kept, errors))
        return results

    before, records = output(), [*read_records(run)]
    trace = (run / "trace.dig.jsonl").read_bytes()
    status, shown, _ = call("runs", "prune", runs, "--gzip")
    assert status == 0 and "4 runs compressed" in shown
    assert gzip.decompress((run / "trace.dig.jsonl.gz").read_bytes()) == trace
    assert not (run / "trace.dig.jsonl").exists()
    assert output() == before
    assert [*read_records(run)] == [*read_records(run / "trace.dig.jsonl.gz")] == records
    assert not verify(run / "trace.dig.jsonl").problems
    assert call("report", run, "-o", runs.parent / "page.html")[0] == 0
    assert call("runs", runs)[1].count("run-") == 4
    call("runs", "prune", runs, "--keep-days", "2")
    assert left(runs) == ["run-1"]


def test_segments_are_compressed_too(call: Any, runs: Path) -> None:
    """Some may be compressed, and others not."""
    run = runs / "run-1"
    lines = (run / "trace.dig.jsonl").read_bytes().splitlines(keepends=True)
    parts = [lines[:5], lines[5:9], lines[9:]]
    for number, part in enumerate(parts, 1):
        name = "trace.dig.jsonl" + (f".{number:06}" if number > 1 else "")
        (run / name).write_bytes(b"".join(part))
    records = [*read_records(run)]
    assert len(records) == len(lines)
    assert call("runs", "prune", runs, "--gzip")[0] == 0
    assert [*read_records(run)] == records
    second = run / "trace.dig.jsonl.000002"
    second.write_bytes(b"".join(parts[1]))
    (run / "trace.dig.jsonl.000002.gz").unlink()
    assert [*read_records(run)] == records
    assert call("verify", run)[0] == 0
    second.unlink()
    status, _, errors = call("check", run)
    assert status == 2 and "000002" in errors and "missing" in errors


def test_the_list_of_runs_sees_another_compressed_trace(call: Any, runs: Path) -> None:
    assert call(*RUN, "--runs", runs, "--agents", "5")[0] == 0
    (made,) = [path for path in runs.iterdir() if not path.name.startswith("run-")]
    call("runs", "prune", runs, "--gzip")
    call("runs", runs)
    shutil.copy(made / "trace.dig.jsonl.gz", runs / "run-1" / "trace.dig.jsonl.gz")
    rows = [json.loads(line) for line in call("runs", runs, "--json")[1].splitlines()]
    assert {Path(row["path"]).name: row["agents"] for row in rows}["run-1"] == 5


def test_a_compressed_trace_without_a_directory_is_exported(call: Any, runs: Path) -> None:
    lone = runs.parent / "lone.dig.jsonl.gz"
    lone.write_bytes(gzip.compress((runs / "run-1" / "trace.dig.jsonl").read_bytes()))
    out = runs.parent / "spans.json"
    assert call("export", lone, "--format", "otlp", "-o", out)[0] == 0
    assert "resourceSpans" in out.read_text()


def test_what_is_compressed_is_not_compressed_again_and_does_not_go_on(
    call: Any, runs: Path
) -> None:
    assert "4 runs compressed" in call("runs", "prune", runs, "--gzip")[1]
    assert "compressed" not in call("runs", "prune", runs, "--gzip")[1]
    status, _, errors = call("run", "--resume", runs / "run-1")
    assert status == 2 and "is compressed, and cannot go on" in errors


@pytest.mark.parametrize("damage", ["cut", "changed", "bomb"])
def test_a_damaged_compressed_trace_is_refused(
    damage: str, call: Any, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("runs", "prune", runs, "--gzip")
    packed = runs / "run-1" / "trace.dig.jsonl.gz"
    data = packed.read_bytes()
    if damage == "bomb":
        monkeypatch.setattr(files, "MOST_UNPACKED", 100)
    elif damage == "cut":
        packed.write_bytes(data[:-20])
    else:
        packed.write_bytes(data[:40] + bytes(8) + data[48:])
    status, shown, errors = call("check", runs / "run-1")
    assert (status, shown) == (2, "")
    assert errors.count("\n") == 1 and "cannot be read" in errors
