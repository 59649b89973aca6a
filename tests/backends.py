"""Programs that we did not write, installed apart, each run by the interpreter that is named."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest


@contextmanager
def server(
    name: str, folder: Path, arguments: list[str], *, ready: str = "", **variables: str
) -> Iterator[str]:
    """A backend on a port of its own; its address, once it answers at `ready`."""
    python = os.environ.get(name)
    if not python:
        pytest.skip(f"{name} names no interpreter with this backend")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    filled = [argument.format(port=port, folder=folder) for argument in arguments]
    environment = {**os.environ, **{k: v.format(port=port) for k, v in variables.items()}}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [python, *filled], cwd=folder, env=environment, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        try:
            _wait_for(address + ready, process, folder / "log")
            yield address
        finally:
            os.killpg(process.pid, signal.SIGTERM)  # it has children
            process.wait(30)


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1200):
        assert process.poll() is None, log.read_text()[-2000:]
        try:
            with urlopen(address, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    pytest.fail(log.read_text()[-2000:])
