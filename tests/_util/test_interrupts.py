"""Interrupts: they end a process even if they come at a bad moment."""

from __future__ import annotations

import signal
import subprocess
import sys

from dig._util.interrupts import interrupts_later

DROPPED = """
import signal, sys
from dig.cli.app import app, main

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

@app.command()
def finalize():
    Finalized()
    signal.pause()

sys.argv = ["digmon", "finalize"]
main()
"""


def test_an_interrupt_that_python_dropped_ends_the_command_all_the_same() -> None:
    """It came in a finalizer, where Python ignores exceptions."""
    done = subprocess.run([sys.executable, "-c", DROPPED], capture_output=True, timeout=60)
    assert done.returncode == 130
    assert b"Traceback" not in done.stderr


def test_an_interrupt_comes_at_the_end_of_the_block() -> None:
    steps = []
    try:
        with interrupts_later():
            signal.raise_signal(signal.SIGINT)
            steps.append("inside")
        steps.append("after")
    except KeyboardInterrupt:
        steps.append("interrupted")
    assert steps == ["inside", "interrupted"]
