"""The result of a run in words: dig's own ASCII around text from outside, made safe."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from dig._util.text import MOST_LISTED, counted, cut, name, names, one_line, safe_text
from dig.detectors.describe import counts_text
from dig.graph.words import seconds
from dig.runtime.result import Left, RunResult
from dig.traces.journal.journal import RESULT
from dig.traces.journal.segments import TRACE, segments

Row = tuple[str, str]
"""A label and a value."""


# --- how a run ended ----------------------------------------------------------------------------


def summary(
    result: RunResult,
    score: object = None,
    directory: Path | None = None,
    making: Sequence[Row] = (),
) -> list[Row]:
    """The result of a run, as labels and values of a line each.

    Args:
        result: The result.
        score: The score of its answer, shown as its `str`; ``None``: it has none.
        directory: The run directory; ``None``: there is none.
        making: Further rows about the making of the run; by default none.
    """
    rows = [
        ("outcome", f"{result.outcome}: {one_line(result.reason)}"),
        ("answer", _answer(result.answer)),
        *(("note on it", one_line(note)) for note in result.notes),
    ]
    if score is not None:
        rows.append(("score", str(score)))
    rows += making
    errors = [f"{name(agent)}: {one_line(error, 80)}" for agent, error in result.errors.items()]
    amounts = {"activation": result.activations, "event": result.events, "record": result.records}
    activity = ", ".join(counted(number, noun) for noun, number in amounts.items())
    rows += [
        ("time", seconds(round(result.seconds * 1_000_000))),
        ("activity", activity),
        ("failed turns", _counts(result.failures)),
        *([("last errors", cut(errors, "; ", most=3))] if errors else []),
        ("findings", _counts(result.raised())),
        *([("of these", worth)] if (worth := counts_text(result.worth)) else []),
        ("healing", _counts(result.heals)),
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


def _counts(counts: Mapping[str, int]) -> str:
    if not counts:
        return "none"
    largest = sorted(counts.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name(key)} {number:,}" for key, number in largest[:MOST_LISTED])
    more = sum(number for _, number in largest[MOST_LISTED:])
    return shown + (f", others {more:,}" if more else "")


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
