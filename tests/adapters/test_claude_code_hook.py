"""The hook program, run as Claude Code runs it, with a monitor, without one, and with bad ones."""

from __future__ import annotations

import ast
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from dig.adapters.claude_code import hook
from dig.cli.hooks import Action, hooks
from tests.adapters.test_claude_code import payload

ROOT = Path(__file__).parents[2]
DIGMON = [sys.executable, "-m", "dig"]
TASK = {"subagent_type": "Explore", "prompt": "find it", "description": "d"}


class Project:
    """A project with hooks, as its settings have them, and maybe a monitor."""

    def __init__(self, folder: Path, *options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.directory = folder, folder / ".claude" / "dig"
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with chdir(folder):
            hooks(Action.install, hold="--hold" in options, yes=True)
        settings = json.loads((folder / ".claude" / "settings.json").read_text())
        self.commands = {name: groups[0]["hooks"][0] for name, groups in settings["hooks"].items()}
        self.monitor: subprocess.Popen[str] | None = None

    def watch(self) -> None:
        self.monitor = subprocess.Popen(
            [*DIGMON, "hooks", "watch"], cwd=self.folder, env=self.environment, text=True,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert self.monitor.stderr is not None
        assert "listened to" in self.monitor.stderr.readline()

    def stop_watching(self) -> str:
        """Interrupt the monitor; return what it has said."""
        assert self.monitor is not None
        self.monitor.send_signal(signal.SIGINT)
        _, said = self.monitor.communicate(timeout=60)
        assert self.monitor.returncode == 130
        return said

    def run(self, kind: str, data: bytes) -> tuple[int, str, str]:
        """Run a hook in a shell with an input; return status, output and errors."""
        done = subprocess.run(
            self.commands[kind]["command"], shell=True, input=data, capture_output=True,
            cwd=self.folder, timeout=60, env={"PATH": os.environ["PATH"]},
        )  # fmt: skip
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def __call__(self, kind: str, session: str = "s1", **fields: Any) -> tuple[int, str, str]:
        transcript = self.folder / f"{session}.jsonl"
        return self.run(kind, json.dumps(payload(kind, transcript, session, **fields)).encode())

    @property
    def journals(self) -> dict[str, list[dict[str, Any]]]:
        traces = [path.read_text() for path in self.directory.glob("*/trace.dig.jsonl")]
        rows = [[json.loads(line) for line in trace.splitlines()] for trace in traces]
        return {trace[0]["run"]: trace for trace in rows}


PASSES = (0, "", "")
"""Nothing is printed, so the host goes on."""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project whose agents are held; each test has a session of its own."""
    project = Project(tmp_path_factory.mktemp("watched"), "--hold")
    project.watch()
    yield project
    project.stop_watching()


@pytest.fixture
def alone(tmp_path: Path) -> Project:
    """A project whose agents would be held, without a monitor."""
    return Project(tmp_path, "--hold")


def begin(project: Project, session: str, *ids: str) -> None:
    for id in ids:
        agent = {"agent_id": id, "agent_type": "Explore"}
        tool = {"tool_name": "Agent", "tool_input": TASK, "tool_use_id": f"t{id}"}
        assert project("PreToolUse", session, **tool) == PASSES
        assert project("SubagentStart", session, **agent) == PASSES


# --- with a monitor ---


def test_a_stop_is_held_once_while_work_is_open(watched: Project) -> None:
    begin(watched, "once", "a1")
    status, output, errors = watched("Stop", "once", stop_hook_active=False)
    assert (status, errors) == (0, "")
    assert json.loads(output)["decision"] == "block"
    assert "`Explore a1`" in json.loads(output)["reason"]
    assert watched("Stop", "once", stop_hook_active=True) == PASSES
    agent = {"agent_id": "a1", "agent_type": "Explore", "agent_transcript_path": "/none"}
    assert watched("SubagentStop", "once", last_assistant_message="it", **agent) == PASSES
    assert watched("Stop", "once", stop_hook_active=False, background_tasks=[]) == PASSES


def test_two_sessions_at_once_have_a_journal_each(watched: Project) -> None:
    begin(watched, "left", "a1")
    begin(watched, "right", "b2")
    assert "`Explore a1`" in watched("Stop", "left", stop_hook_active=False)[1]
    assert "`Explore b2`" in watched("Stop", "right", stop_hook_active=False)[1]
    assert {"claude left", "claude right"} <= watched.journals.keys()


def test_hooks_at_the_same_time_are_all_noted(watched: Project) -> None:
    ids = [f"c{number}" for number in range(12)]
    with ThreadPoolExecutor(12) as pool:
        outputs = [*pool.map(lambda id: begin(watched, "many", id), ids)]
    assert outputs == [None] * 12
    reason = json.loads(watched("Stop", "many", stop_hook_active=False)[1])["reason"]
    assert all(f"Explore {id}" in reason for id in ids[:3])
    trace = watched.journals["claude many"]
    assert sum(row["kind"] == "emit" and row["type"] == "message" for row in trace) == 12


def test_the_socket_and_its_directory_are_the_users_own(watched: Project) -> None:
    for path, mode in ((watched.directory, 0o700), (watched.directory / hook.SOCKET, 0o600)):
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert (watched.directory / ".gitignore").read_text() == "*\n", "nor is it of the project"


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff\x00", b"{}", b'{"session_id": 1}',
     b'{"session_id": "x", "hook_event_name": "Stop", "transcript_path": 5}',
     b'{"session_id": "../../x", "hook_event_name": ["Stop"], "transcript_path": "/"}',
     b"[" * 100_000, b'{"session_id": "x", "a": NaN}'],
)  # fmt: skip
def test_garbage_lets_everything_pass_and_the_monitor_goes_on(
    data: bytes, watched: Project
) -> None:
    assert watched.run("Stop", data) == PASSES
    session = f"after-{zlib.crc32(data)}"
    begin(watched, session, "a1")
    assert "block" in watched("Stop", session, stop_hook_active=False)[1]


def test_an_input_that_is_too_large_lets_everything_pass(watched: Project) -> None:
    assert watched("Stop", "large", last_assistant_message="x" * 20_000_000) == PASSES
    assert watched("Stop", "small", last_assistant_message="x" * 2_000_000) == PASSES
    assert "claude small" in watched.journals


def test_an_end_of_the_monitor_ends_the_journals(tmp_path: Path) -> None:
    """The state when it ends is checked like any run; a new monitor begins anew."""
    project = Project(tmp_path, "--hold")  # such hooks wait until they are noted
    project.watch()
    begin(project, "s1", "a1")
    assert project("Stop", stop_hook_active=True) == PASSES
    assert "session s1: " in project.stop_watching()
    (trace,) = project.journals.values()
    assert trace[-1]["kind"] == "finish"
    assert "early" in project_check(project)
    assert project("Stop") == PASSES, "nobody listens any more"
    project.watch()
    assert project("Stop") == PASSES
    project.stop_watching()
    assert len([*project.directory.glob("*/trace.dig.jsonl")]) == 2


def project_check(project: Project) -> str:
    (run,) = [path.parent for path in project.directory.glob("*/trace.dig.jsonl")]
    command = [*DIGMON, "check", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, env=project.environment)
    assert done.returncode == 1
    return done.stdout


def test_a_path_of_any_length_will_do(tmp_path: Path) -> None:
    """A socket's name has at most about a hundred bytes: it is named from its directory."""
    project = Project(tmp_path / ("x" * 120) / "with a blank", "--hold")
    project.watch()
    begin(project, "s1", "a1")
    assert "block" in project("Stop", stop_hook_active=False)[1]
    project.stop_watching()


# --- without a monitor, or with a bad one ---


def test_without_a_monitor_everything_passes(alone: Project) -> None:
    begin(alone, "s1", "a1")
    assert alone("Stop", stop_hook_active=False) == PASSES
    assert not alone.directory.exists()


def test_a_dead_monitors_socket_lets_everything_pass(alone: Project) -> None:
    alone.directory.mkdir()
    with chdir(alone.directory), socket.socket(socket.AF_UNIX) as server:
        server.bind(hook.SOCKET)
        server.listen()
    assert alone("Stop") == PASSES


def test_a_file_in_the_place_of_the_socket_lets_everything_pass(alone: Project) -> None:
    alone.directory.mkdir()
    (alone.directory / hook.SOCKET).write_text("")
    assert alone("Stop") == PASSES


ANSWERS: dict[str, bytes | None] = {
    "none": None, "half": b'{"decision": "block", "reas', "a byte": b"{", "empty": b"",
}  # fmt: skip
"""What a monitor may send before it hangs; ``None``: it does not even read."""


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_monitor_that_hangs_lets_everything_pass(answer: str, alone: Project) -> None:
    """It accepts, and says nothing, or half of something: a limit ends the wait."""
    alone.directory.mkdir()
    clients: list[socket.socket] = []

    def serve() -> None:
        client, _ = server.accept()
        clients.append(client)
        if (data := ANSWERS[answer]) is not None:
            client.sendall(data)

    with socket.socket(socket.AF_UNIX) as server:
        with chdir(alone.directory):
            server.bind(hook.SOCKET)
        server.listen()
        thread = Thread(target=serve)
        thread.start()
        data = json.dumps(payload("Stop", Path("/t"), words="x" * 1_000_000)).encode()
        assert alone.run("Stop", data) == PASSES
        thread.join()
        for client in clients:
            client.close()


def test_a_full_queue_of_the_monitor_lets_everything_pass(alone: Project) -> None:
    """Not even a connection is made: the time for that is over soon."""
    alone.directory.mkdir()
    with chdir(alone.directory), socket.socket(socket.AF_UNIX) as server:
        server.bind(hook.SOCKET)
        server.listen(0)
        with socket.socket(socket.AF_UNIX) as first:
            first.connect(hook.SOCKET)
            assert alone("Stop") == PASSES
    assert hook.CONNECT_S == 0.05


@pytest.mark.parametrize("arguments", [[], ["/nowhere"], ["/nowhere", "--hold"], ["/etc/passwd"]])
def test_wrong_arguments_let_everything_pass(arguments: list[str]) -> None:
    command = [sys.executable, "-I", "-S", hook.__file__, *arguments]
    done = subprocess.run(command, input=b"{}", capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_host_that_does_not_read_gets_no_error(watched: Project) -> None:
    """The reader of the output has gone: the status is 0 all the same."""
    begin(watched, "gone", "a1")
    reader, writer = os.pipe()
    os.close(reader)
    data = json.dumps(payload("Stop", Path("/t"), "gone", stop_hook_active=False)).encode()
    done = subprocess.run(
        watched.commands["Stop"]["command"], shell=True, input=data, stdout=writer,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_program_imports_the_standard_library_only() -> None:
    """And of that only what it needs: the agent waits for it."""
    tree = ast.parse(Path(hook.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert sorted(ast.unparse(node) for node in imports) == [
        "import _socket", "import os", "import sys",
    ]  # fmt: skip
