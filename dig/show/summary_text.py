"""The result of a run in words: dig's own ASCII around text from outside, made safe."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dig._util.text import counted, name, names, one_line, safe_text
from dig.runtime.result import Left, RunResult
from dig.traces.journal.journal import RESULT
from dig.traces.journal.segments import TRACE, segments

Row = tuple[str, str]
"""A label and a value."""


# --- how a run ended ----------------------------------------------------------------------------


def summary(
    result: RunResult,
    directory: Path | None = None,
    making: Sequence[Row] = (),
) -> list[Row]:
    """The facts beyond the five answers about a run, as labels and values of a line each.

    Args:
        result: The result.
        directory: The run directory; ``None``: there is none.
        making: Further rows about the making of the run; by default none.
    """
    rows = [
        ("outcome", f"{result.outcome}: {one_line(result.reason)}"),
        ("answer", _answer(result.answer)),
        *(("note on it", one_line(note)) for note in result.notes),
        *making,
        *(("failed part", one_line(failure)) for failure in result.component_failures),
        *_left_rows(result.left),
    ]
    if directory is not None:
        further = sum(1 for _ in segments(directory / TRACE)) - 1
        files = f" and {counted(further, 'further file')}" if further else ""
        rows.append(("trace", _path(directory / TRACE) + files))
        rows.append(("result", _path(directory / RESULT)))
    return rows


def _path(path: Path) -> str:
    # Not cut, and blanks kept, so that it can be copied.
    return safe_text(path).replace("\n", "\\n").replace("\t", "\\t")


def _answer(answer: object) -> str:
    if answer is None:
        return "none"
    return one_line(answer if isinstance(answer, str) else json.dumps(answer, default=repr), 150)


def _left_rows(undone: Left) -> list[Row]:
    unfinished = [f"{v} of {agent}" for v, agent in undone.unfinished.items()]
    causes = Counter(undone.orphaned.values())
    orphans = [
        f"{number:,} {name(cause)} ({names([e for e, c in undone.orphaned.items() if c == cause])})"
        for cause, number in causes.most_common()
    ]
    rows = [
        ("undelivered", names(undone.undelivered)),
        ("unconsumed", names(undone.unconsumed)),
        ("orphaned", "; ".join(orphans)),
        ("unfinished", names(unfinished)),
    ]
    return [row for row in rows if row[1]] or [("left", "nothing: all work was consumed")]
