"""Serving runs until somebody says that it is enough, and opening a browser, if there is one."""

from __future__ import annotations

import os
import signal
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from types import FrameType

from .server import Server
from .shelf import Shelf


@contextmanager
def shown(path: Path, port: int = 0, *, opens: bool = True) -> Iterator[str]:
    """Serve a run or a directory of runs while a block lasts, and open it in a browser.

    Args:
        path: A run directory, a trace file, or a directory of runs.
        port: Where to listen; 0: wherever there is room.
        opens: Whether to open a browser, if there is one.

    Yields:
        Its address.

    Raises:
        TraceError: There is no such thing.
        SettingsError: The port is not to be had.
    """
    server = Server(Shelf(path), port)
    with server.running():
        if opens:
            open_browser(server.guard.invitation())
        yield server.address


def open_browser(address: str) -> bool:
    """Open an address in a browser with windows; says whether there seems to be one."""
    has_screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if not has_screen:  # what is left are browsers that would take over the terminal
        return False
    with suppress(webbrowser.Error, OSError):
        return webbrowser.open(address)
    return False


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
