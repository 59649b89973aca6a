"""Findings, healing and results in words: plain ASCII of ours around safe text from outside.

Traces can hold anything where detectors and healers of a user's own wrote, so nothing here
expects a shape: what is not known is shown as it is, on one line and cut.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from dig.detectors import TELLERS
from dig.explain import anything, value_text
from dig.findings import Finding
from dig.graph import InteractionGraph
from dig.plain import MOST_LISTED, counted, cut, name, names, one_line, safe_text
from dig.records import FindingRow, HealRow, IncidentRow
from dig.runtime.result import Left, RunResult

from .journal import RESULT
from .segments import TRACE, segments

Row = tuple[str, str]
"""A label and a value."""

ERRORS = ("ET", "MC", "OE", "DL")
"""The patterns that are errors; the others are warnings."""


class Scored(Protocol):
    """How good an answer is, as a task tells it."""

    @property
    def valid(self) -> bool:
        """Whether the answer has the shape that the problem asks for."""
        ...

    @property
    def rmse(self) -> float | None:
        """Root of the mean squared error."""
        ...

    @property
    def reason(self) -> str:
        """Why it is not valid."""
        ...


# --- pieces -------------------------------------------------------------------------------------


def seconds(us: int) -> str:
    """A time on the run's clock."""
    return f"{us / 1_000_000:.1f} s"


# --- findings and healing -----------------------------------------------------------------------


def sentence(finding: Finding) -> str:
    """A finding as one line: what, when, and what proves it."""
    return f"{_head(finding)}: {told(finding)}"


def explained(finding: Finding, graph: InteractionGraph) -> str:
    """A finding with its explanation: what, when, why, and the paths that prove it.

    A finding that cannot be explained, because its detector's explanation fails, is just told.
    """
    try:
        why = str(finding.explain(graph))
    except Exception as error:  # a user's own code: nothing may be lost by it
        why = f"{told(finding)} (its explanation raised {one_line(repr(error))})"
    return f"{_head(finding)}: {safe_text(why)}"


def _head(finding: Finding) -> str:
    return f"{tag(finding)} at {seconds(finding.us)} (record {finding.t})"


def tag(finding: Finding | FindingRow) -> str:
    """The pattern of a finding, with its stage if it has one."""
    stage = f" {name(finding.stage)}" if finding.stage is not None else ""
    return name(finding.pattern) + stage


def told(finding: Finding | FindingRow) -> str:
    """What a finding says, without its pattern and its time."""
    teller = TELLERS.get(str(finding.pattern))
    try:
        text = teller(finding.subject, finding.evidence) if teller else None
    except (AttributeError, KeyError, TypeError):  # somebody else's finding of the same name
        text = None
    return one_line(text or anything(finding.subject, finding.evidence))


def healed(row: HealRow) -> str:
    """What healing did."""
    event, to = name(row.event), names(row.to or ())
    tellers = {
        "inject": f"put a note beside {event}" + (f", for {to}" if to else ""),
        "reroute": f"sent {event} to {to or 'nobody'} instead, with a note",
        "create": f"sent note {event} to {to or 'nobody'}",
        "refused": f"did nothing: {one_line(row.reason)}",
    }
    return tellers.get(str(row.action)) or f"{name(row.action)} {event}"


def incident(row: IncidentRow) -> str:
    """What happened that changes no graph."""
    detail = row.detail
    if isinstance(detail, Mapping) and detail.keys() == {"who", "what"}:
        return one_line(f"{detail['who']} {row.what}: {detail['what']}")
    if isinstance(detail, Mapping | list | tuple):
        return one_line(f"{row.what}: {value_text(detail)}")
    return one_line(f"{row.what}: {detail}")


# --- how a run ended ----------------------------------------------------------------------------


def summary(
    result: RunResult,
    score: Scored | None = None,
    directory: Path | None = None,
    making: Sequence[Row] = (),
) -> list[Row]:
    """How a run ended, as labels and values, each on one line.

    Args:
        result: How it ended.
        score: How good its answer is.
        directory: What it left on disk.
        making: What else is to be said of how it was made.
    """
    rows = [
        ("outcome", f"{result.outcome}: {one_line(result.reason)}"),
        ("answer", _answer(result.answer)),
        *(("note on it", one_line(note)) for note in result.notes),
    ]
    if score is not None:
        rows.append(("score", _score(score)))
    rows += making
    amounts = {"activation": result.activations, "event": result.events, "record": result.records}
    activity = ", ".join(counted(number, noun) for noun, number in amounts.items())
    rows += [
        ("time", seconds(round(result.seconds * 1_000_000))),
        ("activity", activity),
        ("failed turns", _counts(result.failures)),
        *_errors(result),
        ("findings", _counts(result.raised())),
        ("healing", _counts(result.heals)),
        *_left(result.left),
    ]
    if directory is not None:
        rows += [("trace", _trace(directory / TRACE)), ("result", _path(directory / RESULT))]
    return rows


def _trace(first: Path) -> str:
    further = sum(1 for _ in segments(first)) - 1
    return _path(first) + (f" and {counted(further, 'further file')}" if further else "")


def _path(path: Path) -> str:
    # Not cut, and blanks kept: it is there to be copied.
    return safe_text(path).replace("\n", "\\n").replace("\t", "\\t")


def _answer(answer: object) -> str:
    if answer is None:
        return "none"
    return one_line(answer if isinstance(answer, str) else json.dumps(answer, default=repr), 150)


def _score(score: Scored) -> str:
    if not score.valid:
        return f"no valid answer: {one_line(score.reason)}"
    return "valid" if score.rmse is None else f"RMSE {score.rmse:.2f}"


def _counts(counts: Mapping[str, int]) -> str:
    if not counts:
        return "none"
    largest = sorted(counts.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name(what)} {number:,}" for what, number in largest[:MOST_LISTED])
    more = sum(number for _, number in largest[MOST_LISTED:])
    return shown + (f", others {more:,}" if more else "")


def _errors(result: RunResult) -> list[Row]:
    told = [f"{name(agent)}: {one_line(error, 80)}" for agent, error in result.errors.items()]
    return [("last errors", cut(told, "; ", most=3))] if told else []


def _left(left: Left) -> list[Row]:
    unfinished = [f"{v} of {agent}" for v, agent in left.unfinished.items()]
    causes = Counter(left.orphaned.values())
    orphans = [
        f"{number:,} {name(cause)} ({names([e for e, c in left.orphaned.items() if c == cause])})"
        for cause, number in causes.most_common()
    ]
    rows = [
        ("undelivered", names(left.undelivered)),
        ("unconsumed", names(left.unconsumed)),
        ("orphaned", "; ".join(orphans)),
        ("unfinished", names(unfinished)),
    ]
    return [row for row in rows if row[1]] or [("left", "nothing: all work was consumed")]
