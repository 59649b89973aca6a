"""The command `digmon`: thin, one file a command, called as the command is.

`app` is the application, and how errors end; `options` has what several commands take.

Exit status: 0 all is well, 1 something was found (`check`) or no answer came (`run`), 2 the
call or its input is wrong, 130 it was interrupted.
"""

from __future__ import annotations

# The order of these imports is the order of the commands in `digmon --help`.
# isort: off
from . import runs, show, diff, draw, experiment, faults, import_, export, check, graph, report
from . import view, run, verify, replay, fork, thresholds, bench

# isort: on
from .app import app, main

__all__ = [
    "app", "bench", "check", "diff", "draw", "experiment", "export", "faults", "fork", "graph",
    "import_", "main", "replay", "report", "run", "runs", "show", "thresholds", "verify", "view",
]  # fmt: skip
