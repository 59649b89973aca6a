"""How long a hook of Claude Code takes, beside an empty Python: `python -m bench hooks`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from dig.adapters.claude_code import hook

from .measure import Candidate, Table, compared, per_unit

EVENTS: dict[str, dict[str, Any]] = {
    "PreToolUse": {"tool_name": "Agent", "tool_input": {"prompt": "x" * 2_000}},
    "SubagentStart": {"agent_id": "a1", "agent_type": "Explore"},
    "SubagentStop": {
        "agent_id": "a1",
        "agent_type": "Explore",
        "last_assistant_message": "x" * 2_000,
    },
    "Stop": {"stop_hook_active": True, "last_assistant_message": "x" * 2_000},
    "TeammateIdle": {"teammate_name": "ann", "team_name": "team"},
}
PYTHON = [sys.executable, "-I", "-S"]


def _process(command: list[str], data: bytes = b"") -> Candidate:
    def once() -> int:
        subprocess.run(command, input=data, check=True, stdout=subprocess.DEVNULL)
        return 1000  # so that microseconds a unit are milliseconds a start

    return once


def hooks(quick: bool) -> Table:
    """Milliseconds from the start of the program to its end, for each hook."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        environment = {**os.environ, "CLAUDE_CONFIG_DIR": str(folder)}
        monitor = subprocess.Popen(
            [sys.executable, "-m", "dig", "hooks", "watch", "--user"], env=environment,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        stack.callback(monitor.wait)
        stack.callback(monitor.terminate)
        assert monitor.stderr is not None
        monitor.stderr.readline()  # it listens now
        Thread(target=partial(list, monitor.stderr), daemon=True).start()
        bare = {
            "python -I -S -c pass": _process([*PYTHON, "-c", "pass"]),
            "the same, import json": _process([*PYTHON, "-c", "import json"]),
        }
        programs = {
            "no monitor": [str(folder / "none"), "--hold"],
            "observing": [str(folder / "dig")],
            "holding": [str(folder / "dig"), "--hold"],
        }
        candidates = {
            f"{event}, {name}": _process([*PYTHON, hook.__file__, *options], _input(event, name))
            for name, options in programs.items()
            for event in EVENTS
        }
        times = per_unit({**bare, **candidates}, rounds=3 if quick else 15)
    note = "An event of 2,000 characters; a session of one subagent."
    table = compared("Hooks of Claude Code", "start", times, note)
    return Table(table.title, ("", "ms", "ratio"), table.rows, note)


def _input(event: str, session: str) -> bytes:
    fields = {"session_id": session, "transcript_path": "/none", "hook_event_name": event}
    return json.dumps({**fields, **EVENTS[event]}).encode()


if __name__ == "__main__":
    print(hooks("--quick" in sys.argv))
