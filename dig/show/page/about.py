"""The head of the page: facts about a run from the files beside its trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dig._util.text import one_line
from dig.detectors.verdict import FiveLines, RunSoFar
from dig.show.runs.summary import State, beside, standing
from dig.traces.journal.journal import RESULT, SIDE
from dig.traces.journal.reader import trace_path
from dig.traces.usage import cost_text, is_number

from .rows import Rows

KEYS = ("execution", "task", "method", "agents_are", "began", "clock")


def head(path: Path, made: Rows, *, private: bool = False) -> dict[str, Any]:
    """The data for the head of the page.

    `execution`, `task`, `method`, `agents_are`, `began` and `clock` are of the side file, as far
    as they are texts; `score` is of the result; `state` is what a run without an end is; `file`
    is the name of the trace; `verdict` has the lines about the run, as far as it was followed, and
    `answer` how good its answer is.

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
        "verdict": told.lines() if made.so_far.run else [],
        "answer": {"grade": _grade(result.get("score"), made.so_far), "says": told.score},
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


def _grade(score: object, so_far: RunSoFar) -> str:
    """How good the answer is: `good`, `inexact`, `bad`, or `unknown`."""
    known = score if isinstance(score, dict) else {}
    if known.get("valid") is False or known.get("complete") is False:
        return "bad"
    if not is_number(known.get("rmse")):
        return "bad" if so_far.is_early else "unknown"
    return "inexact" if known["rmse"] else "good"


def _score(score: object) -> str | None:
    if not isinstance(score, dict):
        return _figure(score) if is_number(score) else None
    known = {one_line(key, 20): value for key, value in score.items() if is_number(value)}
    return ", ".join(f"{key} {_figure(value)}" for key, value in known.items()) or None


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else one_line(value, 20)
