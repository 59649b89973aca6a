"""Claude Code itself with our hooks, and a scripted model behind it; `DIG_CLAUDE` names it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from dig.cli.hooks import Action, hooks
from dig.detectors import standard
from dig.show.gate.checked import CheckedRun, check_run

ROOT = Path(__file__).parents[2]
CLAUDE = os.environ.get("DIG_CLAUDE")

pytestmark = pytest.mark.skipif(not CLAUDE, reason="DIG_CLAUDE names no Claude Code")

Block = dict[str, Any]


class Model(ThreadingHTTPServer):
    """A model that gives tasks as a scenario says, and otherwise answers at once.

    Attributes:
        tasks: The prompts of the subagents that an agent with a prompt starts in the background.
        slow: The prompts whose agents wait until the main agent has stopped.
        prompts: The last text of each request.
    """

    daemon_threads = True

    def __init__(self, tasks: dict[str, list[str]], slow: str) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.tasks, self.slow = tasks, slow
        self.prompts: list[str] = []
        self.numbers = count()
        self.has_stopped = Event()

    def answer(self, body: dict[str, Any]) -> list[Block]:
        first, last = (_text(body["messages"][index]) for index in (0, -1))
        self.prompts.append(last)
        if not body.get("tools"):
            return [{"type": "text", "text": "A title"}]
        task = next((name for name in ("MAIN", "ONE", "TWO") if f"{name}." in first), "")
        turns = sum(message["role"] == "assistant" for message in body["messages"])
        if turns == 0 and task in self.tasks:
            return [self._call(prompt) for prompt in self.tasks[task]]
        if task == "MAIN" and turns > 1:
            self.has_stopped.set()
        if task == self.slow:
            self.has_stopped.wait(30)
        return [{"type": "text", "text": f"The report of {task}"}]

    def _call(self, prompt: str) -> Block:
        task: Block = {"description": "d", "prompt": f"{prompt}.", "run_in_background": True}
        task |= {"subagent_type": "general-purpose"}
        return {
            "type": "tool_use",
            "id": f"toolu_{next(self.numbers)}",
            "name": "Agent",
            "input": task,
        }


class _Requests(BaseHTTPRequestHandler):
    server: Model

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send("text/plain", b"")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "messages" not in body or "count_tokens" in self.path:
            self._send("application/json", b'{"input_tokens": 1}')
            return
        blocks = self.server.answer(body)
        reason = "tool_use" if blocks[0]["type"] == "tool_use" else "end_turn"
        message = {
            "id": f"msg_{next(self.server.numbers)}", "type": "message", "role": "assistant",
            "model": body["model"], "content": blocks, "stop_reason": reason,
            "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        if body.get("stream"):
            self._send("text/event-stream", b"".join(_stream(message)))
        else:
            self._send("application/json", json.dumps(message).encode())

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _stream(message: dict[str, Any]) -> Iterator[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()

    yield event("message_start", message={**message, "content": [], "stop_reason": None})
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            text = json.dumps(block["input"])
            start, delta = (
                {**block, "input": {}},
                {"type": "input_json_delta", "partial_json": text},
            )
        yield event("content_block_start", index=index, content_block=start)
        yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=end, usage=message["usage"])
    yield event("message_stop")


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else json.dumps(content)


def run(folder: Path, model: Model, *, hold: bool) -> CheckedRun:
    """A session of Claude Code with a model; returns the checked journal."""
    with chdir(folder):
        hooks(Action.install, hold=hold, yes=True)
    Thread(target=model.serve_forever, daemon=True).start()
    monitor = subprocess.Popen(
        [sys.executable, "-m", "dig", "hooks", "watch"], cwd=folder, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert monitor.stderr is not None
    assert "listened to" in monitor.stderr.readline()
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "CLAUDE_CONFIG_DIR": str(folder / "home"),
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.server_port}",
        "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }  # fmt: skip
    done = subprocess.run(
        [str(CLAUDE), "-p", "MAIN.", "--allowedTools", "Agent,Task"], cwd=folder, env=environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    monitor.send_signal(signal.SIGTERM)
    monitor.communicate(timeout=60)
    model.shutdown()
    model.server_close()
    assert done.returncode == 0, done.stderr
    (trace,) = folder.glob(".claude/dig/*/trace.dig.jsonl")
    return check_run(trace.parent, standard())


BACKGROUND = {"MAIN": ["ONE", "TWO"]}
NESTED = {"MAIN": ["ONE"], "ONE": ["TWO"]}


@pytest.mark.parametrize("tasks", [BACKGROUND, NESTED])
def test_subagents_in_the_background_are_quiet_when_observed(
    tasks: dict[str, list[str]], tmp_path: Path
) -> None:
    model = Model(tasks, slow="TWO")
    model.has_stopped.set()
    checked = run(tmp_path, model, hold=False)
    assert [found.text for found in checked.findings if found.finding.severity != "notice"] == []
    assert not any("hook feedback" in prompt for prompt in model.prompts)


@pytest.mark.parametrize(("tasks", "held"), [(BACKGROUND, 1), (NESTED, 2)])
def test_agents_that_stop_too_early_are_held_once_each(
    tasks: dict[str, list[str]], held: int, tmp_path: Path
) -> None:
    """The reason reaches the model; in the end all reports have been read."""
    model = Model(tasks, slow="TWO")
    checked = run(tmp_path, model, hold=True)
    told = [prompt for prompt in model.prompts if "You are held once" in prompt]
    assert len(told) == held
    assert all(found.is_mended for found in checked.findings if found.finding.pattern == "ET")
    assert not any(found.is_unhealed for found in checked.findings)
