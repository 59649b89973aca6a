"""Runs commands in the current folder, and writes what they did that a folder must not cause.

    python tests/cli/watched_commands.py REPORT < COMMANDS

COMMANDS is a list of lists of arguments, as JSON. For each of them REPORT has the status, standard
error, and the acts that an audit hook saw: processes, connections, and code in the current folder.
"""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

FOLDER = os.path.realpath(os.curdir)
PROCESSES = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "pty.")
CONNECTIONS = ("socket.bind", "socket.connect", "socket.getaddrinfo", "socket.sendto")
ACTS: list[str] = []


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note an event of the interpreter that a folder must not cause."""
    if event.startswith(PROCESSES) or event in CONNECTIONS:
        ACTS.append(f"{event} {arguments!r}")
    elif event == "exec":
        note_code(event, getattr(arguments[0], "co_filename", ""))
    elif event == "import":
        note_code(event, arguments[1] or "")


def note_code(event: str, file: str) -> None:
    """Note code that lies in the folder."""
    if os.path.isfile(file) and os.path.realpath(file).startswith(FOLDER + os.sep):
        ACTS.append(f"{event} {file}")


def call(arguments: list[str]) -> dict[str, Any]:
    """The status of a command, its errors and its acts."""
    from dig import cli

    ACTS.clear()
    status: object = 0
    told = io.StringIO()
    with patch.object(sys, "argv", ["digmon", *arguments]), redirect_stderr(told):
        try:
            cli.main()
        except SystemExit as end:
            status = end.code or 0
    return {"status": status, "acts": [*ACTS], "told": told.getvalue()}


def main() -> None:
    """Run the commands, one after the other."""
    from dig.lab.benchmark import candidates
    from dig.show.server import server

    commands = json.load(sys.stdin)
    server.wait_for_a_signal.__code__ = (lambda: None).__code__  # `view` ends at once
    small = (candidates.Configuration("newsgroups", 60, 3),)
    less: Any = partial(candidates.Recipe, configurations=small, baseline_runs=20)
    patch.object(candidates, "Recipe", less).start()
    sys.addaudithook(watch)
    made = [call(arguments) for arguments in commands]
    Path(sys.argv[1]).write_text(json.dumps(made), encoding="utf-8")


if __name__ == "__main__":
    main()
