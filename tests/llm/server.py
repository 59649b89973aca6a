"""An OpenAI-compatible server whose every answer is scripted, for tests over real HTTP."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True)
class Answer:
    """What the server does about one request: `cut` bytes of the body, then it hangs up.

    A withheld one does not come before the server is closed.
    """

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut: int | None = None
    is_withheld: bool = False


Script = Callable[[dict[str, Any]], Answer]
"""From the body of a request to an answer; several threads may call it at once."""


def completes(message: dict[str, Any], finish: str, usage: Sequence[int] | None) -> Answer:
    body: dict[str, Any] = {
        "id": "c1", "object": "chat.completion", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "message": {"role": "assistant", **message},
                     "finish_reason": finish}],
    }  # fmt: skip
    if usage is not None:
        sent, got = usage
        body["usage"] = {
            "prompt_tokens": sent, "completion_tokens": got, "total_tokens": sent + got
        }  # fmt: skip
    return Answer(json.dumps(body).encode())


def says(
    content: BaseModel | dict[str, Any] | str, finish: str = "stop",
    usage: Sequence[int] | None = (100, 10),
) -> Answer:  # fmt: skip
    """The model answers."""
    if isinstance(content, BaseModel):
        content = content.model_dump()
    text = content if isinstance(content, str) else json.dumps(content)
    return completes({"content": text}, finish, usage)


def refuses(why: str) -> Answer:
    return completes({"content": None, "refusal": why}, "stop", (100, 10))


def calls(*tools: tuple[str, dict[str, Any] | str]) -> Answer:
    """The model calls tools, each with arguments (or with some text in their place)."""
    asked = [
        {"id": f"call-{i}", "type": "function", "function": {
            "name": name, "arguments": args if isinstance(args, str) else json.dumps(args)}}
        for i, (name, args) in enumerate(tools)
    ]  # fmt: skip
    return completes({"content": None, "tool_calls": asked}, "tool_calls", (100, 10))


def writes(*tools: tuple[str, dict[str, Any]]) -> Answer:
    """The model calls tools in the decision's shape, as servers have it that know no other way."""
    return says({"calls": [{"tool": name, "arguments": arguments} for name, arguments in tools]})


def fails(status: int, why: str = "", code: str | None = None, **headers: str) -> Answer:
    """The server refuses."""
    body = json.dumps({"error": {"message": why, "type": "error", "param": None, "code": code}})
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return Answer(body.encode(), status, named)


class Server(ThreadingHTTPServer):
    """Keeps the `requests` it got, parsed, and the most that were `under_way` at once."""

    daemon_threads = True

    def __init__(self, script: Script | Sequence[Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script if callable(script) else in_order(script)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.under_way = self.most_under_way = 0
        self.closing = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is part of many a test."""


def in_order(answers: Sequence[Answer]) -> Script:
    """One answer after the other; the last one again and again."""
    left = list(answers)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits 40 ms until its head is acknowledged

    def do_POST(self) -> None:
        server, length = self.server, int(self.headers["Content-Length"])
        request = json.loads(self.rfile.read(length))
        with server.lock:
            server.requests.append(request)
            server.keys.append(self.headers.get("Authorization", ""))
            server.under_way += 1
            server.most_under_way = max(server.most_under_way, server.under_way)
        answer = server.script(request)
        time.sleep(answer.delay_s)
        if answer.is_withheld:
            server.closing.wait()
        with server.lock:
            server.under_way -= 1
        self.send_response_only(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body[: answer.cut])
        self.close_connection = answer.cut is not None

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(script: Script | Sequence[Answer]) -> Iterator[Server]:
    """A server, for as long as the block lasts."""
    with Server(script) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()
