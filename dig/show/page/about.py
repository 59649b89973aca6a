"""The head of the page: facts about a run from the files beside its trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dig._util.text import one_line
from dig.show.runs.summary import beside, standing
from dig.traces.journal.journal import RESULT, SIDE
from dig.traces.journal.reader import trace_path
from dig.traces.usage import is_number

KEYS = ("execution", "task", "method", "agents_are", "began", "clock")


def head(path: Path) -> dict[str, Any]:
    """The data for the head of the page.

    `execution`, `task`, `method`, `agents_are`, `began` and `clock` are of the side file, as far
    as they are texts; `score` is of the result; `state` is what a run without an end is; `file`
    is the name of the trace.
    """
    side, result = beside(path, SIDE), beside(path, RESULT)
    known = {key: one_line(side[key], 120) for key in KEYS if isinstance(side.get(key), str)}
    trace = trace_path(path)
    return {
        **known,
        "file": one_line(trace.parent.name if path.is_dir() else trace.name, 120),
        "score": _score(result.get("score")),
        "state": standing(path),
    }


def _score(score: object) -> str | None:
    if not isinstance(score, dict):
        return _figure(score) if is_number(score) else None
    known = {one_line(key, 20): value for key, value in score.items() if is_number(value)}
    return ", ".join(f"{key} {_figure(value)}" for key, value in known.items()) or None


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else one_line(value, 20)
