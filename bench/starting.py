"""How long the package and the command take to start, beside an empty Python."""

from __future__ import annotations

import subprocess
import sys

from .measure import Candidate, Table, compared, per_unit


def _python(*arguments: str) -> Candidate:
    def once() -> int:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        return 1000  # so that microseconds a unit are milliseconds a start

    return once


def starting() -> Table:
    """Milliseconds from process start to exit."""
    times = per_unit(
        {
            "python -c pass": _python("-c", "pass"),
            "import dig": _python("-c", "import dig"),
            "from dig import Monitor": _python("-c", "from dig import Monitor"),
            "digmon --help": _python("-m", "dig", "--help"),
            "import networkx": _python("-c", "import networkx"),
            "import openai": _python("-c", "import openai"),
        },
        rounds=5,
    )
    note = "What is imported: python -X importtime -m dig --help"
    table = compared("Start", "start", times, note)
    return Table(table.title, ("", "ms", "ratio"), table.rows, note)
