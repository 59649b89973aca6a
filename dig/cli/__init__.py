"""The command `digmon`: thin, one function a command.

- `app`: the application, and how errors end. `options`: what several commands take.
- `running`: run. `looking`: check, graph. `recorded`: verify, replay, fork.
- `comparing`: runs, show, diff. `drawing`: draw. `reporting`: report. `viewing`: view.
- `interchange`: import, export. `settling`: thresholds. `faulting`: faults.
- `experimenting`: experiment. `benching`: bench. `exporting`: `--otlp` of run.

Exit status: 0 all is well, 1 something was found (`check`) or no answer came (`run`), 2 the
call or its input is wrong, 130 it was interrupted.
"""

from __future__ import annotations

from . import (
    benching,
    comparing,
    drawing,
    experimenting,
    faulting,
    interchange,
    looking,
    recorded,
    reporting,
    running,
    settling,
    viewing,
)
from .app import app, main

__all__ = [
    "app",
    "benching",
    "comparing",
    "drawing",
    "experimenting",
    "faulting",
    "interchange",
    "looking",
    "main",
    "recorded",
    "reporting",
    "running",
    "settling",
    "viewing",
]
