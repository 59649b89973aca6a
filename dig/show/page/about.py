"""The head of the page: facts about a run from the files beside the trace."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dig._util.text import one_line
from dig.show.cause import KnownCause
from dig.show.follower import RunFollower
from dig.show.runs.summary import read_beside, read_note, stored_answers, stored_state
from dig.traces.journal.journal import RESULT, SIDE

KEYS = ("execution", "task", "team", "method", "agents_are", "began")


def page_head(
    path: Path,
    follower: RunFollower,
    *,
    place: str,
    private: bool = False,
    cause: KnownCause | None = None,
) -> dict[str, Any]:
    """The data for the head of the page.

    `execution`, `task`, `team`, `method`, `agents_are` and `began` are of the side file, as far as
    they are texts; `state` is what a run without an end is; `file` is the
    name of the trace, `place` the run for a command line; `note` is what a person has written on
    it; `can_try` says whether changes of the run can be tried, `unmended` how many errors nobody
    mended (null: not known); `answers` are the five answers about the run, as far as it was
    followed, `requests` what happened to those of a session, `is_fork` says whether it continues
    another run.
    `dig.diagnosis.pictures` adds what pages of other things have: `unit` of time, `lanes` (what a
    lane is, in a word), `bands` and `open` (the first view).

    Args:
        path: The trace file or run directory.
        follower: The run, as far as its records are known.
        place: The run in commands: its path or, on a page for other machines, its name.
        private: Leave out what agents said to one another; by default not.
        cause: What a diagnosis names; ``None``: nothing.
    """
    side, result = read_beside(path, SIDE), read_beside(path, RESULT)
    state, so_far = stored_state(path), follower.so_far
    answers = stored_answers(
        path, so_far, result.get("score"), sums=follower.costs.sums, place=place, private=private,
        cause=cause,
    )  # fmt: skip
    return {
        **{key: one_line(side[key], 120) for key in KEYS if isinstance(side.get(key), str)},
        "file": one_line(path.resolve().name, 120),
        "state": state,
        "place": shlex.quote(place),
        "note": "" if private else read_note(path),
        "can_try": bool(side) and "capabilities" not in side,
        "unmended": so_far.errors[1],
        "is_fork": "forked_from" in side,
        "answers": asdict(answers) if so_far.run else None,
        "requests": so_far.requests if so_far.run else {},
        **({"cause": asdict(cause)} if cause else {}),
    }


def clock_speed(side: Mapping[str, Any]) -> float:
    """The speed of a run's clock, by the side file; 0 if the clock is virtual or unknown."""
    clock = str(side.get("clock", "real time x 1" if side else ""))
    try:
        return float(clock.removeprefix("real time x "))
    except ValueError:
        return 0.0
