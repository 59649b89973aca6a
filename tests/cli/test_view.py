"""`digmon view` and `digmon run --view`, as programs of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest

from dig.show.server import server
from tests.traces.journals import write
from tests.traces.runs import directory, solved

urlopen = build_opener(ProxyHandler({})).open


@contextmanager
def started(*arguments: object, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """The command, while it runs."""
    command = [sys.executable, "-m", "dig", *map(str, arguments)]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(stream: Any) -> str:
    """The next line of an output."""
    return str(stream.readline()).strip()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_view_prints_an_address_that_works_until_it_is_ended(tmp_path: Path, how: int) -> None:
    """On standard output, alone; Ctrl-C is the way to end it, so it is no failure."""
    directory(tmp_path, "one", solved())
    with started("view", tmp_path, "--no-open") as process:
        address = line(process.stdout)
        assert address.startswith("http://127.0.0.1:")
        assert b"<title>Runs" in urlopen(address).read()
        with pytest.raises(HTTPError, match="403"):
            urlopen(address.rstrip("/") + "x/")
        process.send_signal(how)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err


def test_run_view_shows_the_run_and_ends_with_it(tmp_path: Path) -> None:
    """Where nobody sits at a terminal nothing waits for Ctrl-C; the page is told the end."""
    options = ["--seed", "25", "--speed", "30", "--runs", tmp_path, "--view"]
    with started("run", "count-frequency", *options) as process:
        address = line(process.stderr).removeprefix("digmon: shown at ")
        told = urlopen(address + "events").read()
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert told.endswith(b"event: end\ndata: null\n\n")
    assert "answer" in out


def test_a_directory_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """Its list is empty, and has each run that comes."""
    with started("view", tmp_path / "runs", "--no-open") as process:
        address = line(process.stdout)
        assert "does not exist yet; what comes there is shown" in line(process.stderr)
        assert json.loads(urlopen(f"{address}runs").read())["runs"] == []
        directory(tmp_path / "runs", "one", solved())
        assert b"<title>" in urlopen(f"{address}run/one/").read()


def test_a_port_that_is_taken_is_said_to_be(call: Any, tmp_path: Path) -> None:
    """And what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = call("view", "--no-open", tmp_path, "--port", port)
    assert (code, out) == (2, "")
    assert f"cannot listen on port {port}" in err and "try another" in err


def test_a_browser_is_opened_only_where_there_are_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser in the terminal would take it over."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    write(tmp_path)
    with server.serve(tmp_path):
        assert opened == []
    monkeypatch.setenv("DISPLAY", ":0")
    with server.serve(tmp_path, opens=False):
        assert opened == []
    with server.serve(tmp_path) as address:
        (invitation,) = opened
        with urlopen(invitation) as page:
            assert page.url == address
