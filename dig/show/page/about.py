"""The head of the page: facts about a run from the files beside the trace."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dig._util.text import one_line, safe_text
from dig.detectors.rings import rings_without_answer
from dig.detectors.run_so_far import FiveLines
from dig.show.follower import RunFollower
from dig.show.runs.summary import State, quality, read_beside, read_note, stored_state
from dig.traces.journal.journal import RESULT, SIDE
from dig.traces.journal.reader import trace_path
from dig.traces.usage import cost_text, is_number

KEYS = ("execution", "task", "team", "method", "agents_are", "began")


def page_head(path: Path, follower: RunFollower, *, private: bool = False) -> dict[str, Any]:
    """The data for the head of the page.

    `execution`, `task`, `team`, `method`, `agents_are` and `began` are of the side file, as far as
    they are texts; `score` is of the result; `state` is what a run without an end is; `file` is the
    name of the trace, `place` its path for a command line; `note` is what a person has written on
    it; `verdict` has the lines about the run, as far as it was followed, `requests`
    what happened to those of a session, `is_fork` whether it continues another run, and `answer`
    how good its answer is.
    `dig.diagnosis.pictures` adds what pages of other things have: `unit` of time, `lanes` (what a
    lane is, in a word), `bands` and `open` (the first view).

    Args:
        path: The trace file or run directory.
        follower: The run, as far as its records are known.
        private: Leave out what agents said to one another; by default not.
    """
    side, result = read_beside(path, SIDE), read_beside(path, RESULT)
    trace, state, so_far = trace_path(path), stored_state(path), follower.so_far
    verdict = run_verdict(follower, state, result.get("score"), private=private)
    return {
        **{key: one_line(side[key], 120) for key in KEYS if isinstance(side.get(key), str)},
        "file": one_line(trace.parent.name if path.is_dir() else trace.name, 120),
        "score": _score(result.get("score")),
        "state": state,
        "place": shlex.quote(safe_text(path)),
        "note": "" if private else read_note(path),
        "is_fork": "forked_from" in side,
        "verdict": verdict.lines() if so_far.run else [],
        "requests": so_far.requests if so_far.run else {},
        "answer": {
            "grade": quality(result.get("score"), is_early=so_far.is_early),
            "says": verdict.score,
        },
    }


def run_verdict(
    follower: RunFollower, state: State, score: object, *, private: bool = False
) -> FiveLines:
    """The verdict on a stored run.

    Args:
        follower: The run, with all its records.
        state: The state of a run without an end.
        score: The score of its answer, as its result has it.
        private: Leave out what agents said to one another; by default not.
    """
    fields = score if isinstance(score, dict) else {}
    figures = _score(score)
    says = fields.get("says") or (f"Its score is: {figures}." if figures else "")
    if fields.get("valid") is False:
        says = f"It is not valid: {fields.get('reason') or 'no reason is given'}."
    verdict = follower.so_far.verdict(state=state, private=private)
    end = " ".join([verdict.end, *rings_without_answer(follower.graph)])
    return replace(verdict, end=end).with_score(one_line(says), cost_text(follower.costs.sums))


def clock_speed(side: Mapping[str, Any]) -> float:
    """The speed of a run's clock, by the side file; 0 if the clock is virtual or unknown."""
    clock = str(side.get("clock", "real time x 1" if side else ""))
    try:
        return float(clock.removeprefix("real time x "))
    except ValueError:
        return 0.0


def _score(score: object) -> str | None:
    if not isinstance(score, dict):
        return _figure(score) if is_number(score) else None
    figures = [f"{one_line(k, 20)} {_figure(v)}" for k, v in score.items() if is_number(v)]
    return ", ".join(figures) or None


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else one_line(value, 20)
