"""The head of the page: facts about a run from the files beside its trace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dig._util.text import one_line
from dig.detectors.run_so_far import FiveLines, RunSoFar
from dig.show.runs.summary import State, beside, quality, standing
from dig.traces.journal.journal import RESULT, SIDE
from dig.traces.journal.reader import trace_path
from dig.traces.usage import cost_text, is_number

from .rows import Rows

KEYS = ("execution", "task", "team", "method", "agents_are", "began")


def head(path: Path, made: Rows, *, private: bool = False) -> dict[str, Any]:
    """The data for the head of the page.

    `execution`, `task`, `team`, `method`, `agents_are` and `began` are of the side file, as far as
    they are texts; `score` is of the result; `state` is what a run without an end is; `file` is the
    name of the trace; `verdict` has the lines about the run, as far as it was followed, `requests`
    what happened to those of a session, `is_fork` whether it continues another run, and `answer`
    how good its answer is.
    `dig.diagnosis.pictures` adds what pages of other things have: `unit` of time, `lanes` (what a
    lane is, in a word), `bands` and `open` (the first view).

    Args:
        path: The trace file or run directory.
        made: What has made its rows, so far.
        private: Leave out what agents said to one another; by default not.
    """
    side, result = beside(path, SIDE), beside(path, RESULT)
    known = {key: one_line(side[key], 120) for key in KEYS if isinstance(side.get(key), str)}
    trace, state = trace_path(path), standing(path)
    spent = cost_text(made.costs.sums)
    told = verdict(made.so_far, state, result.get("score"), spent, private=private)
    return {
        **known,
        "file": one_line(trace.parent.name if path.is_dir() else trace.name, 120),
        "score": _score(result.get("score")),
        "state": state,
        "is_fork": "forked_from" in side,
        "verdict": told.lines() if made.so_far.run else [],
        "requests": made.so_far.requests if made.so_far.run else {},
        "answer": {
            "grade": quality(result.get("score"), is_early=made.so_far.is_early),
            "says": told.score,
        },
    }


def verdict(
    so_far: RunSoFar, state: State, score: object, spent: str, *, private: bool = False
) -> FiveLines:
    """The verdict on a stored run.

    Args:
        so_far: The run, with all its records.
        state: How a run without an end stands.
        score: The score of its answer, as its result has it.
        spent: The tokens and the money that it took.
        private: Leave out what agents said to one another; by default not.
    """
    told = so_far.verdict(state=state, private=private)
    known = score if isinstance(score, dict) else {}
    figures = _score(score)
    says = known.get("says") or (f"Its score is: {figures}." if figures else "")
    if known.get("valid") is False:
        says = f"It is not valid: {known.get('reason') or 'no reason is given'}."
    return told.scored(one_line(says), spent)


def speed_of(side: Mapping[str, Any]) -> float:
    """The speed of a run's clock, by its side file; 0 if it is virtual, or not known."""
    clock = str(side.get("clock", "real time x 1" if side else ""))
    try:
        return float(clock.removeprefix("real time x "))
    except ValueError:
        return 0.0


def _score(score: object) -> str | None:
    if not isinstance(score, dict):
        return _figure(score) if is_number(score) else None
    known = {one_line(key, 20): value for key, value in score.items() if is_number(value)}
    return ", ".join(f"{key} {_figure(value)}" for key, value in known.items()) or None


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else one_line(value, 20)
