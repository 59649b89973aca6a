"""`digmon run --resume RUN`: a run whose process ended goes on in its own directory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dig.traces.journal.journal import RESULT, UNREPLAYABLE
from dig.traces.journal.locking import lock
from dig.traces.journal.reader import TRACE
from dig.traces.replay.rerun import rerun
from dig.traces.verify import verify
from tests.traces.parted import files, whole

SHORT = ("run", "count-frequency", "--virtual", "--agents", 4, "--size", 2_000, "--seed", 3)

KILLER = """
import os
import signal
import anyio
import dig
from dig.runtime import Decision, NewEvent

async def act(view):
    await anyio.sleep(0.05)
    if view.turn == int(os.environ.get("DIES_IN_TURN", 0)):
        os.kill(os.getpid(), signal.SIGKILL)
    if view.turn == 6:
        return Decision.submit(view, view.events[0].payload)
    payload = [view.turn, view.events[0].payload]
    return Decision.respond(view, NewEvent(payload=payload, to=["ada"]))

team = {"ada": act}

class Dies(dig.Detector):
    pattern = "DIES"

    def detect(self, graph, record):
        if record.t == int(os.environ.get("DIES_AT_RECORD", -1)):
            os.kill(os.getpid(), signal.SIGKILL)
        return ()
"""


@pytest.fixture
def stopped(call: Any, tmp_path: Path) -> Any:
    """Makes a run in virtual time, and cuts its journal; returns both, the whole bytes first."""

    def make(records: int, *options: object) -> tuple[bytes, Path]:
        assert call(*SHORT, "--runs", tmp_path, *options)[0] in (0, 1)
        (path,) = tmp_path.glob(f"*/{TRACE}")
        data = whole(path)
        lines = data.splitlines(keepends=True)
        kept = 0
        for file in files(path):
            held = file.read_bytes().count(b"\n")
            part = lines[kept : min(kept + held, records)]
            kept += held
            file.write_bytes(b"".join(part)) if part else file.unlink()
        (path.parent / RESULT).unlink()
        return data, path

    return make


@pytest.mark.parametrize("records", [1, 2, 10, 37, 40, 60])
def test_a_run_in_virtual_time_ends_as_if_it_had_not_stopped(
    call: Any, stopped: Any, records: int
) -> None:
    """With the same bytes, wherever it stopped: also within a request."""
    data, path = stopped(records)
    code, out, err = call("run", "--resume", path.parent)
    assert code == 0, err
    assert path.read_bytes() == data
    assert out.startswith("verdict  ")
    result = json.loads((path.parent / RESULT).read_text())
    assert (result["records"], result["clock"]) == (data.count(b"\n"), "virtual")


def test_outputs_that_were_cut_off_are_set_aside(call: Any, stopped: Any) -> None:
    """They are in a file beside, and the activation begins again."""
    data, path = stopped(38)
    lines = data.splitlines(keepends=True)
    end = next(t for t in range(38, 60) if json.loads(lines[t])["kind"] == "end")
    path.write_bytes(b"".join(lines[: end + 1]) + lines[end + 1][:20])
    _, _, err = call("run", "--resume", path.parent)
    assert f"an incomplete last request ({len(lines[end]) + 20} bytes) was set aside" in err
    assert path.with_name(f"{TRACE}.torn").read_bytes() == lines[end] + lines[end + 1][:20]
    assert path.read_bytes() == data


def test_a_journal_of_several_files_goes_on_in_the_last(call: Any, stopped: Any) -> None:
    data, path = stopped(40, "--segment-size", "2KiB")
    count = len(files(path))
    assert count > 2
    assert call("run", "--resume", path.parent, "--segment-size", "2KiB")[0] == 0
    assert whole(path) == data
    assert len(files(path)) > count


def test_faults_and_several_problems_go_on_too(call: Any, stopped: Any) -> None:
    data, path = stopped(30, "--fault", "crash target=agent-2 start=1 end=6")
    assert call("run", "--resume", path.parent)[0] in (0, 1)
    assert path.read_bytes() == data
    assert json.loads((path.parent / RESULT).read_text())["injections"]


def digmon(
    folder: Path, *arguments: object, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "dig", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
    )  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("at", [17, 44])
def test_a_process_that_was_killed_goes_on_in_virtual_time(tmp_path: Path, at: int) -> None:
    """In the middle of a request, of which nothing is in the journal then."""
    (tmp_path / "dying.py").write_text(KILLER)
    arguments = (*SHORT, "--detector", "dying:Dies")
    assert digmon(tmp_path, *arguments, "--runs", "whole").returncode == 0
    died = digmon(tmp_path, *arguments, DIES_AT_RECORD=str(at))
    assert died.returncode == -signal.SIGKILL
    ((whole_run,), (run,)) = (list((tmp_path / name).iterdir()) for name in ("whole", "runs"))
    before = (run / TRACE).read_bytes()
    assert 0 < before.count(b"\n") <= at
    done = digmon(tmp_path, "run", "--resume", run, "--detector", "dying:Dies")
    assert done.returncode == 0, done.stderr
    assert (run / TRACE).read_bytes() == (whole_run / TRACE).read_bytes()
    assert digmon(tmp_path, "verify", run).returncode == 0
    assert digmon(tmp_path, "replay", run, "--rerun", "--detector", "dying:Dies").returncode == 0


def test_a_process_that_was_killed_goes_on_in_real_time(tmp_path: Path) -> None:
    """Twice; its agent is called again for the activation in which it died."""
    (tmp_path / "dying.py").write_text(KILLER)
    command = ("run", "count-frequency", "--team", "dying:team", "--quiet")
    assert digmon(tmp_path, *command, DIES_IN_TURN="3").returncode == -signal.SIGKILL
    (run,) = (tmp_path / "runs").iterdir()
    again = digmon(tmp_path, *command, "--resume", run, DIES_IN_TURN="5")
    assert again.returncode == -signal.SIGKILL
    done = digmon(tmp_path, *command, "--resume", run)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (run / TRACE).read_bytes().splitlines()]
    incidents = [row["detail"] for row in rows if row["kind"] == "incident"]
    assert len(incidents) == 2
    assert all(detail["down_s"] >= 0 for detail in incidents)
    assert sum(row["kind"] == "start" for row in rows) == 6
    assert not verify(run / TRACE).problems
    assert rerun(run / TRACE).is_finished


# --- what cannot go on ---


def test_a_run_that_ended_is_refused(call: Any, tmp_path: Path) -> None:
    call(*SHORT, "--runs", tmp_path)
    (run,) = tmp_path.iterdir()
    assert "has ended, and cannot go on" in call("run", "--resume", run)[2]
    (run / RESULT).unlink()
    assert "has ended, and cannot go on" in call("run", "--resume", run)[2]


def test_a_run_that_is_still_going_on_is_refused(call: Any, stopped: Any) -> None:
    _, path = stopped(30)
    before = path.read_bytes()
    with path.open("rb") as file:
        lock(file.fileno())
        code, out, err = call("run", "--resume", path.parent)
    assert (code, out) == (2, "")
    assert "another process has locked it" in err
    assert path.read_bytes() == before


def test_a_damaged_journal_is_refused_with_its_line(call: Any, stopped: Any) -> None:
    data, path = stopped(30)
    lines = data.splitlines(keepends=True)[:30]
    path.write_bytes(b"".join([*lines[:9], lines[9].replace(b'"ts"', b'"tz"'), *lines[10:]]))
    code, _, err = call("run", "--resume", path.parent)
    assert code == 2
    assert f"{path}:10" in err.replace("line 10", f"{path}:10")


def test_other_runs_that_cannot_go_on_are_told_apart(
    call: Any, stopped: Any, tmp_path: Path
) -> None:
    _, path = stopped(30)
    side = path.with_name("side.json")
    said = json.loads(side.read_text())

    def refused(**changes: object) -> str:
        side.write_text(json.dumps({**said, **changes}))
        code, out, err = call("run", "--resume", path.parent)
        assert (code, out) == (2, "")
        return str(err)

    assert "or the same model (--model" in refused(agents_are="model gpt-x")
    assert "is a fork: fork its parent again" in refused(forked_from={"run": "x"})
    assert "so name task and team" in refused(agents_are="mine:team")
    (path.parent / f"{TRACE}{UNREPLAYABLE}").touch()
    assert "went on without its journal" in refused()
    assert "cannot be read" in call("run", "--resume", tmp_path / "nowhere")[2]
    side.write_text(json.dumps({"run": "wrapped", "mode": "heal", "team": "a graph"}))
    assert "no `digmon run` made this run" in call("run", "--resume", path.parent)[2]
    side.unlink()
    assert "side.json cannot be read" in call("run", "--resume", path.parent)[2]


OPTIONS = [
    ("--seed", 4), ("--virtual",), ("--fault", "crash target=agent-1"), ("--twin",), ("--speed", 2),
    ("--otlp", "http://localhost:1"), ("--set", "dl_window_s=4"),
]  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_a_new_run_are_refused(call: Any, tmp_path: Path, option: Any) -> None:
    code, out, err = call("run", "--resume", tmp_path, *option)
    assert (code, out) == (2, "")
    assert "goes on as it was made" in err


def test_a_run_needs_a_task_or_a_run_that_goes_on(call: Any) -> None:
    code, _, err = call("run", "--virtual")
    assert (code, err) == (
        2,
        "digmon: name the task, such as count-frequency, or a run to --resume\n",
    )
