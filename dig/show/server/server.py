"""The local server: sockets, threads and deadlines around `request_guard` and `page_routes`.

Each connection has one thread and one request, so a slow or silent reader delays no other one,
and is cut off after a while.
"""

from __future__ import annotations

import io
import os
import signal
import socket
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from threading import Condition, Event, Thread
from types import FrameType
from typing import Any

from dig.errors import RefusedError, SettingsError

from .acts import Acts
from .page_routes import PageResponse, Routes
from .request_guard import ADDRESS, METHODS, RequestGuard
from .shelf import Shelf

SETTINGS = Path("digmon.toml")
"""The file for rules about false alarms, where no other is named."""

MOST_CONNECTIONS = 64
KEPT = 4
"""One place in so many is kept for requests whose address is right."""

MOST_HEAD, MOST_BODY = 16 * 1024, 32 * 1024
ASKING_S, ANSWERING_S = 5.0, 10.0
ENDING_S = 0.5
CLOSING_S = 2.0
"""Seconds for connections when the server ends: to end by themselves, and after the cut."""

_BLANK = b"\r\n\r\n"
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Server(ThreadingHTTPServer):
    """Serves a shelf on 127.0.0.1 until it is closed.

    Attributes:
        guard: The check of requests.
        routes: The pages.
        asking_s, answering_s: Seconds that a request may take to arrive, and that a reader may
            take to accept a piece of an answer.
        most_connections: The most connections that may be open at a time. Those whose request has
            not arrived have some of these places alone, and the newest of them have them.
    """

    daemon_threads = True  # a thread that hangs in a read of a dead disk keeps no process alive
    request_queue_size = 128
    allow_reuse_address = os.name == "posix"  # elsewhere it would let others take the port

    def __init__(
        self, shelf: Shelf, port: int = 0, token: str | None = None, settings: Path = SETTINGS
    ) -> None:
        """Listen.

        Args:
            shelf: The runs.
            port: The port; 0: any free one.
            token: The secret of its addresses; ``None``: a new one.
            settings: The file to which rules about false alarms are added.

        Raises:
            SettingsError: The port is taken, or not to be had.
        """
        self._closing = Event()
        self._changed = Condition()
        self._open: set[socket.socket] = set()
        self._waiting: dict[socket.socket, None] = {}  # as they came: no right request arrived yet
        self.asking_s, self.answering_s = ASKING_S, ANSWERING_S
        self.most_connections = MOST_CONNECTIONS
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            reason = error.strerror or error
            raise SettingsError(f"cannot listen on port {port}: {reason}; try another") from None
        self.guard = RequestGuard(self.server_port, token)
        self.routes = Routes(shelf, self.guard.root, self._closing.wait, Acts(settings))

    @property
    def address(self) -> str:
        """The address of the first page for a visitor."""
        return self.guard.root + self.routes.start()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve in threads while a block lasts; then end all connections."""
        thread = Thread(target=self.serve_forever, args=(0.1,), name="dig-view", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._closing.set()
            self.shutdown()
            thread.join()
            self.server_close()
            with self._changed:  # what is being told is told to its end, if that is soon
                self._changed.wait_for(lambda: not self._open, ENDING_S)
                for connection in self._open:
                    with suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)
                self._changed.wait_for(lambda: not self._open, CLOSING_S)

    def server_bind(self) -> None:
        """Bind without a question to a name server, unlike the inherited method."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.socket.getsockname()[1]

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Make room for a connection, or refuse with the status 503.

        The oldest one that only waits goes. So a program that opens connections without end, and
        does not know the address, shuts out nobody who does.
        """
        with self._changed:
            is_full = len(self._open) >= self.most_connections
            # The rest is for readers who know the address.
            most_waiting = self.most_connections - self.most_connections // KEPT
            oldest = None
            if is_full or len(self._waiting) >= most_waiting:
                oldest = next(iter(self._waiting), None)
            has_room = oldest is not None or not is_full
            if oldest is not None:
                self._forget(oldest)
            if has_room:
                self._open.add(request)
                self._waiting[request] = None
        with suppress(OSError):
            if oldest is not None:
                oldest.shutdown(socket.SHUT_RDWR)
            elif not has_room:
                request.settimeout(0)
                request.send(_BUSY)
        return has_room

    def admit(self, request: socket.socket) -> None:
        """Count a connection with an admitted request as a reader."""
        with self._changed:
            self._waiting.pop(request, None)

    def _forget(self, request: socket.socket) -> None:
        self._open.discard(request)
        self._waiting.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        with self._changed:
            self._forget(request)
            self._changed.notify_all()
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Show errors of this package; a reader may go at any time."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """A connection with a single request and answer."""

    server: Server
    protocol_version = "HTTP/1.1"
    command = requestline = ""  # as long as nothing was read

    def handle(self) -> None:
        """Answer a request that arrives in time."""
        self._until = time.monotonic() + self.server.asking_s
        head, _, body = self._receive(b"", lambda data: _BLANK in data, MOST_HEAD).partition(_BLANK)
        # The parser of the library reads from a file, and must not wait for the socket.
        self.rfile = io.BufferedReader(io.BytesIO(head + _BLANK))
        self.raw_requestline = self.rfile.readline(MOST_HEAD)
        if len(head) + len(_BLANK) > MOST_HEAD:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self.parse_request():
            try:
                answer = self._answer(body)
            except RefusedError as refusal:
                self._refuse(refusal.status, str(refusal))
            else:
                self._send(answer)

    def _answer(self, body: bytes) -> PageResponse:
        """Answer a request; the body is only read of a request that writes.

        Args:
            body: As much of the body as came with the head.
        """
        routes = self.server.routes
        parts = self.server.guard.check(self.command, self.path, self.headers)
        self.server.admit(self.connection)
        if self.command != "POST":
            return routes.answer(parts, self.headers.get("Last-Event-ID"))
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal() and len(length) < 9):
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "how long is it?")
        if int(length) > MOST_BODY:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MOST_BODY:,} bytes")
        body = self._receive(body, lambda data: len(data) >= int(length), MOST_BODY)
        return routes.act(parts, body[: int(length)])

    def _receive(self, data: bytes, is_whole: Callable[[bytes], bool], most: int) -> bytes:
        """Read until a request has a whole part, or is longer than it may be."""
        while not is_whole(data) and len(data) <= most:
            remaining_s = self._until - time.monotonic()
            if remaining_s <= 0:
                raise TimeoutError
            self.connection.settimeout(remaining_s)
            part = self.connection.recv(4096)
            if not part:
                raise ConnectionAbortedError
            data += part
        self.connection.settimeout(self.server.answering_s)
        return data

    def _send(self, answer: PageResponse) -> None:
        content = answer.content
        self.request_version = self.protocol_version  # to HTTP/0.9 no head would be sent
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.type)
        self.send_header("Content-Security-Policy", f"{answer.policy}; frame-ancestors 'none'")
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if answer.location is not None:
            self.send_header("Location", answer.location)
        if answer.status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", ", ".join(METHODS))
        if isinstance(content, bytes):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            for piece in (content,) if isinstance(content, bytes) else content:
                self.wfile.write(piece)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse an invalid request, without any part of the request in the response.

        Args:
            code: The status.
            message: Ignored: it quotes the request.
            explain: Ignored, too.
        """
        self._refuse(HTTPStatus(code))

    def _refuse(self, status: HTTPStatus, reason: str = "") -> None:
        text = ": ".join(filter(None, (f"{status.value} {status.phrase}", reason)))
        self._send(PageResponse("text/plain; charset=utf-8", f"{text}\n".encode(), status=status))

    def version_string(self) -> str:
        """The name of the server in responses."""
        return "digmon"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: the token stands in every address."""


# --- serving until a signal comes, and a browser ---


@contextmanager
def serve(
    path: Path, port: int = 0, *, opens: bool = True, settings: Path = SETTINGS
) -> Iterator[str]:
    """Serve a run or a directory of runs while a block lasts, and open a browser.

    Args:
        path: A run directory, a trace file, or a directory of runs, which may come later.
        port: The port to listen on; 0: any free one.
        opens: Whether to open a browser, if there is one; by default it does.
        settings: The file to which rules about false alarms are added.

    Yields:
        Its address.

    Raises:
        TraceError: The file is no trace, or the directory cannot be read.
        SettingsError: The port is not available.
    """
    server = Server(Shelf(path), port, settings=settings)
    with server.running():
        if opens:
            open_browser(server.guard.invitation())
        yield server.address


def open_browser(address: str) -> None:
    """Open an address in a graphical browser, if there seems to be any."""
    has_screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if has_screen:  # without, what is left are browsers that would take over the terminal
        with suppress(webbrowser.Error, OSError):
            webbrowser.open(address)


def wait_for_a_signal() -> None:
    """Return when the process is interrupted (Ctrl-C) or asked to end."""
    enough = Event()

    def stop(number: int, frame: FrameType | None) -> None:
        enough.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while not enough.wait(0.5):  # on Windows a wait without an end cannot be interrupted
            pass
    finally:
        for number, old in before.items():
            signal.signal(number, old)
