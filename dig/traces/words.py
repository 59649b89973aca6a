"""Findings, healing and results in words: plain ASCII of ours around safe text from outside.

Traces can hold anything where detectors and healers of a user's own wrote, so nothing here
expects a shape: what is not known is shown as it is, on one line and cut.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from dig.findings import Finding
from dig.plain import safe_text
from dig.records import FindingRow, HealRow, IncidentRow
from dig.runtime.result import Left, RunResult

from .journal import RESULT
from .reader import TRACE

MOST_LISTED = 6
MOST_IN_NAME = 40
MOST_IN_TEXT = 300

Row = tuple[str, str]
"""A label and a value."""


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


def one_line(text: object, most: int = MOST_IN_TEXT) -> str:
    """Anything as one line that is safe on a terminal; white space in it becomes one blank."""
    # Cut first: an answer may be megabytes long. A character gets at most ten times as long.
    shown = " ".join(safe_text(str(text)[: 2 * most]).split())
    return shown if len(shown) <= most else shown[: max(0, most - 3)] + "..."


def name(text: object) -> str:
    """An id or an agent's name."""
    return one_line(text, MOST_IN_NAME) or "''"


def names(values: object, most: int = MOST_LISTED) -> str:
    """Some ids or names, cut where there are many."""
    if not isinstance(values, list | tuple):
        return name(values)
    shown = ", ".join(name(value) for value in values[:most])
    return shown + (f" and {len(values) - most} more" if len(values) > most else "")


def counted(number: int, noun: str) -> str:
    """A number of things: `1 event`, `3 events`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def seconds(us: int) -> str:
    """A time on the run's clock."""
    return f"{us / 1_000_000:.1f} s"


def _value(value: object, depth: int = 0) -> str:
    """Part of a subject or of evidence; what lies deep is shown as Python shows it."""
    if isinstance(value, str) or depth == 3:
        return name(value)
    if isinstance(value, Mapping):
        parts = [f"{name(key)}: {_value(part, depth + 1)}" for key, part in value.items()]
        shown = _cut(parts, "; ")
    elif isinstance(value, list | tuple):
        shown = _cut([_value(part, depth + 1) for part in value], ", ") or "nothing"
    else:
        return name(value)
    return f"({shown})" if depth > 1 else shown


def _cut(parts: list[str], comma: str) -> str:
    more = len(parts) - MOST_LISTED
    return comma.join(parts[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


# --- findings and healing -----------------------------------------------------------------------


def sentence(finding: Finding) -> str:
    """A finding as one line: what, when, and what proves it."""
    return f"{tag(finding)} at {seconds(finding.us)} (record {finding.t}): {told(finding)}"


def tag(finding: Finding | FindingRow) -> str:
    """The pattern of a finding, with its stage if it has one."""
    stage = f" {name(finding.stage)}" if finding.stage is not None else ""
    return name(finding.pattern) + stage


def told(finding: Finding | FindingRow) -> str:
    """What a finding says, without its pattern and its time."""
    teller = _TELLERS.get(str(finding.pattern))
    try:
        text = teller(finding.subject, finding.evidence) if teller else None
    except (AttributeError, KeyError, TypeError):  # somebody else's finding of the same name
        text = None
    return one_line(text or _anything(finding.subject, finding.evidence))


def _early_termination(subject: Any, evidence: Any) -> str:
    missing = {
        "still open": evidence["unresolved"],
        "lost on the way to it": evidence["uncovered"],
    }
    parts = [f"{what}: {names(events)}" for what, events in missing.items() if events]
    return f"answer {name(subject['event'])} was submitted too early; {'; '.join(parts)}"


def _deadlock(subject: Any, evidence: Any) -> str:
    held = list(evidence["waiting"].items())
    who = [f"{name(agent)} holds {names(events)}" for agent, events in held[:MOST_LISTED]]
    if len(held) > MOST_LISTED:
        who.append(f"{counted(len(held) - MOST_LISTED, 'more agent')} wait")
    problem = f" on {name(subject['event'])}" if "event" in subject else ""
    return f"work is waiting, and nobody makes progress{problem}: {'; '.join(who)}"


def _missing_termination(subject: Any, evidence: Any) -> str:
    last = f"the last to work was {name(evidence['last'])}" if evidence["last"] else "nobody worked"
    problem = f" on {name(subject['event'])}" if "event" in subject else ""
    return f"all work is done or lost{problem}, and nobody submits an answer; {last}"


_LOST = {
    "no_recipient": "sent to nobody who was there",
    "discarded": "discarded",
    "left": "gone with an agent that left",
    "expired": "expired",
}


def _orphaned_event(subject: Any, evidence: Any) -> str:
    why = _LOST.get(evidence["cause"]) or name(evidence["cause"])
    return f"nobody consumed {name(subject['event'])}, and nobody can any more: it was {why}"


def _excessive_rerouting(subject: Any, evidence: Any) -> str:
    path = evidence["path"]
    times = counted(len(path), "time")
    return f"{name(subject['event'])} was passed on {times} and not consumed: by {names(path)}"


def _cross_lineage(subject: Any, evidence: Any) -> str:
    conflicts = evidence["conflicts"]
    if "agent" in subject:
        event, agent = name(subject["event"]), name(subject["agent"])
        return f"{event} came to {agent} beside {names(conflicts)}, of other origin"
    pairs = _cut([f"{name(a)} with {name(b)}" for a, b in conflicts], ", ")
    return f"activation {name(subject['activation'])} put together {pairs}, of different origin"


def _repeated_solving(subject: Any, evidence: Any) -> str:
    shared = [f"{name(s['event'])} after {names(s['activations'], 3)}" for s in evidence["shared"]]
    return f"activation {name(subject['activation'])} solved again {_cut(shared, ', ')}"


_TELLERS: dict[str, Callable[[Any, Any], str]] = {
    "ET": _early_termination,
    "MC": _missing_termination,
    "OE": _orphaned_event,
    "DL": _deadlock,
    "ER": _excessive_rerouting,
    "CLA": _cross_lineage,
    "RSP": _repeated_solving,
}


def _anything(subject: object, evidence: object) -> str:
    if isinstance(subject, Mapping):
        subject = _cut([f"{name(key)} {_value(part, 1)}" for key, part in subject.items()], ", ")
    about = f"about {one_line(subject)}" if subject else "about the run"
    return f"{about}; {_value(evidence)}" if evidence else about


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
        return one_line(f"{row.what}: {_value(detail)}")
    return one_line(f"{row.what}: {detail}")


# --- how a run ended ----------------------------------------------------------------------------


def summary(
    result: RunResult, score: Scored | None = None, directory: Path | None = None
) -> list[Row]:
    """How a run ended, as labels and values, each on one line.

    Args:
        result: How it ended.
        score: How good its answer is.
        directory: What it left on disk.
    """
    rows = [
        ("outcome", f"{result.outcome}: {one_line(result.reason)}"),
        ("answer", _answer(result.answer)),
    ]
    if score is not None:
        rows.append(("score", _score(score)))
    amounts = {"activation": result.activations, "event": result.events, "record": result.records}
    activity = ", ".join(counted(number, noun) for noun, number in amounts.items())
    rows += [
        ("time", seconds(round(result.seconds * 1_000_000))),
        ("activity", activity),
        ("failures", _counts(result.failures)),
        ("findings", _counts(result.raised())),
        ("healing", _counts(result.heals)),
        *_left(result.left),
    ]
    if directory is not None:
        rows += [("trace", _path(directory / TRACE)), ("result", _path(directory / RESULT))]
    return rows


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
