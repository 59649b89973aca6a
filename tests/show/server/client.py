"""A reader of the local server that says exactly what it is told to say."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dig.show.server.server import Server
from dig.show.server.shelf import Shelf

TOKEN = "token-of-the-tests"


class Response(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


@contextmanager
def serving(path: Path, **settings: Any) -> Iterator[Server]:
    """A server of a run or a directory."""
    policy = {"settings": settings.pop("settings")} if "settings" in settings else {}
    server = Server(Shelf(path), settings.pop("port", 0), settings.pop("token", TOKEN), **policy)
    for name, value in settings.items():
        setattr(server, name, value)
    with server.running():
        yield server


@contextmanager
def connected(server: Server) -> Iterator[socket.socket]:
    """A connection on which nothing was said yet."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as connection:
        yield connection


def get(server: Server, path: str = "", method: str = "GET", **headers: str | None) -> Response:
    """The response to a request for a path after the token, whole."""
    return send(server, f"/{TOKEN}/{path}", method, **headers)


def send(server: Server, target: str, method: str = "GET", **headers: str | None) -> Response:
    """The response to a request; a header that is `None` is left out, `_` stands for `-`."""
    with connected(server) as connection:
        connection.sendall(request(server, target, method, **headers))
        return parse(b"".join(iter(lambda: connection.recv(65536), b"")))


def request(server: Server, target: str, method: str = "GET", **headers: str | None) -> bytes:
    """The bytes of a request."""
    given = {"Host": f"127.0.0.1:{server.server_port}", **headers}
    lines = [
        f"{name.replace('_', '-')}: {text}" for name, text in given.items() if text is not None
    ]
    return "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode("latin-1")


def parse(data: bytes) -> Response:
    """A response, from its bytes."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return Response(int(first.split()[1]), headers, body)


class Happening(NamedTuple):
    """A server-sent event."""

    name: str
    id: str
    data: Any


def happenings(pieces: Iterator[bytes]) -> Iterator[Happening]:
    """The events in a stream, comments and all else left out."""
    buffer = b""
    for piece in pieces:
        buffer += piece
        *whole, buffer = buffer.split(b"\n\n")
        for block in whole:
            lines = [line.partition(": ") for line in block.decode().split("\n")]
            fields = {name: value for name, _, value in lines}
            if "data" in fields:
                data = json.loads(fields["data"])
                yield Happening(fields.get("event", ""), fields.get("id", ""), data)
