"""The command `digmon`: thin, one file per command or per few small commands.

`app` is the application, and how errors end; `options` has what several commands take.
No module here imports `annotations` from `__future__`: typer would evaluate the text of each option
four times, at each start of the command.

Exit status: 0 all is well, 1 the answer is no (each command says when), 2 the call or its input is
wrong, 130 it was interrupted.
"""

from dig.lab.cli import bench, experiment, investigate

from . import (
    check,
    draw,
    export,
    fork,
    hooks,
    learn,
    machines,
    replay,
    report,
    run,
    runs,
    show,
    start,
    verify,
    view,
    why,
)
from .app import GroupedCommand, app, main

_ORDER = (
    "demo", "init", "doctor", "run", "report", "view", "show", "runs", "runs prune", "check",
    "why", "try", "fork", "replay", "diff", "draw", "graph", "export", "import", "verify",
    "learn", "thresholds", "experiment", "faults", "serve", "agent", "ask", "sessions", "pull",
    "hooks", "investigate",
)  # fmt: skip
"""The commands in the order of `digmon --help`."""

for _command in app.registered_commands:
    if not issubclass(_command.cls or object, GroupedCommand):
        _command.cls = GroupedCommand
app.registered_commands.sort(
    key=lambda command: _ORDER.index(command.name or getattr(command.callback, "__name__", ""))
)

__all__ = [
    "app", "bench", "check", "draw", "experiment", "export", "fork", "hooks", "investigate",
    "learn", "machines", "main", "replay", "report", "run", "runs", "show", "start", "verify",
    "view", "why",
]  # fmt: skip
