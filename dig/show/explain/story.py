"""The story of an event: everything that happened from the emission on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dig._util.text import name, names
from dig.detectors.describe import finding_text, pattern_label, worth
from dig.graph import records
from dig.graph.words import PAST, healing_text, incident_text, seconds
from dig.traces.run import RecordedRun

Chapter = dict[str, Any]


def event_story(run: RecordedRun, event: str) -> list[Chapter]:
    """The story of an event, from all records about the event.

    Each chapter has the record's number, time and kind, and a description; a chapter
    about an activation has its id, its agent, and the fate.
    """
    chapter: Chapter
    chapters, held_us = list[Chapter](), 0
    for record in run.records:
        match record:
            case records.Emit() if record.event == event:
                held_us, chapter = record.us, {"says": _emission(run, record)}
            case records.Deliver() if record.event == event:
                waited_us = record.us - held_us
                after = f", after {seconds(waited_us)}" if waited_us >= 50_000 else ""
                is_answer = record.to is None
                end = "accepted as the answer" if is_answer else f"delivered to {name(record.to)}"
                chapter = {"to": record.to, "says": end + after}
            case records.Redirect() if record.event == event:
                held_us = record.us
                says = f"sent to {names(record.to) or 'nobody'}"
                chapter = {"to": list(record.to), "says": says}
            case records.Expire() if record.event == event:
                chapter = {"says": "expired: it is on its way to nobody any more"}
            case records.Start() if event in record.inputs:
                chapter = _input(run, record.activation, "shown to", None)
            case records.End() if event in run.activations[record.activation].inputs:
                chapter = _fate(run, record, event)
            case records.Leave() if run.left_with(record, event):
                says = f"lost with {name(record.agent)}, who left"
                chapter = {"agent": record.agent, "says": says}
            case records.FindingRow() if _is_in(record.subject, event):
                says = f"{worth(record)} {pattern_label(record)}: {finding_text(record)}"
                chapter = {"says": says}
            case records.HealRow() if record.event == event:
                note = f": {record.note}" if record.note else ""
                says = f"healing {healing_text(record)}{note}"
                chapter = {"action": record.action, "says": says}
            case records.IncidentRow() if _is_in(record.detail, event):
                chapter = {"says": incident_text(record)}
            case _:
                continue
        chapters.append({"record": record.t, "ts": record.ts, "kind": record.kind, **chapter})
    return chapters


def _is_in(body: Any, event: str) -> bool:
    return isinstance(body, Mapping) and event in body.values()


def _emission(run: RecordedRun, record: records.Emit) -> str:
    if record.by is None:
        origin = "came from outside"
    elif record.by == records.SYSTEM:
        origin = "made by healing"
    else:
        origin = f"emitted by {name(record.by)} of {name(run.activations[record.by].agent)}"
    purpose = "as an answer" if record.final else f"for {names(record.to) or 'nobody'}"
    return f"{origin} {purpose}, and held"


def _fate(run: RecordedRun, record: records.End, event: str) -> Chapter:
    """The fate of the event in an activation that ended."""
    fate = run.fates(record.activation)[event]
    chapter = _input(run, record.activation, f"{PAST[fate]} by", fate)
    if fate == "reroute":
        to = next((row.to for row in record.fates if row.event == event), ())
        chapter["to"] = list(to)
        chapter["says"] += f", to {names(to) or 'nobody'}"
    return chapter


def _input(run: RecordedRun, activation: str, verb: str, fate: str | None) -> Chapter:
    agent = run.activations[activation].agent
    says = f"{verb} {name(activation)} of {name(agent)}"
    return {"activation": activation, "agent": agent, "fate": fate, "says": says}
