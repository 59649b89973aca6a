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
    narrator = _Narrator(run, event)
    chapters = []
    for record in run.records:
        chapter = narrator.chapter(record)
        if chapter:
            chapters.append({"record": record.t, "ts": record.ts, "kind": record.kind, **chapter})
    return chapters


class _Narrator:
    """Makes the chapter of each record, and remembers the start of the event's hold."""

    def __init__(self, run: RecordedRun, event: str) -> None:
        self._run = run
        self._event = event
        self._held_us = 0

    def chapter(self, record: records.Record) -> Chapter | None:
        match record:
            case records.Emit() if record.event == self._event:
                self._held_us = record.us
                return {"says": self._emission(record)}
            case records.Deliver() if record.event == self._event:
                held_us = record.us - self._held_us
                after = f", after {seconds(held_us)}" if held_us >= 50_000 else ""
                is_answer = record.to is None
                end = "accepted as the answer" if is_answer else f"delivered to {name(record.to)}"
                return {"to": record.to, "says": end + after}
            case records.Redirect() if record.event == self._event:
                self._held_us = record.us
                return {"to": list(record.to), "says": f"sent to {names(record.to) or 'nobody'}"}
            case records.Expire() if record.event == self._event:
                return {"says": "expired: it is on its way to nobody any more"}
            case records.Start() if self._event in record.inputs:
                return self._input(record.activation, "shown to", None)
            case records.End() if self._event in self._run.activations[record.activation].inputs:
                return self._fate(record)
            case records.Leave() if self._run.left_with(record, self._event):
                return {"agent": record.agent, "says": f"lost with {name(record.agent)}, who left"}
            case records.FindingRow() if self._is_in(record.subject):
                return {"says": f"{worth(record)} {pattern_label(record)}: {finding_text(record)}"}
            case records.HealRow() if record.event == self._event:
                note = f": {record.note}" if record.note else ""
                return {"action": record.action, "says": f"healing {healing_text(record)}{note}"}
            case records.IncidentRow() if self._is_in(record.detail):
                return {"says": incident_text(record)}
        return None

    def _is_in(self, body: Any) -> bool:
        return isinstance(body, Mapping) and self._event in body.values()

    def _emission(self, record: records.Emit) -> str:
        if record.by is None:
            origin = "came from outside"
        elif record.by == records.SYSTEM:
            origin = "made by healing"
        else:
            agent = self._run.activations[record.by].agent
            origin = f"emitted by {name(record.by)} of {name(agent)}"
        purpose = "as an answer" if record.final else f"for {names(record.to) or 'nobody'}"
        return f"{origin} {purpose}, and held"

    def _fate(self, record: records.End) -> Chapter:
        # The end may leave fates out; the run knows the implied fates, too.
        fate = self._run.fates(record.activation)[self._event]
        chapter = self._input(record.activation, f"{PAST[fate]} by", fate)
        if fate == "reroute":
            to = next((row.to for row in record.fates if row.event == self._event), ())
            chapter["to"] = list(to)
            chapter["says"] += f", to {names(to) or 'nobody'}"
        return chapter

    def _input(self, activation: str, verb: str, fate: str | None) -> Chapter:
        agent = self._run.activations[activation].agent
        says = f"{verb} {name(activation)} of {name(agent)}"
        return {"activation": activation, "agent": agent, "fate": fate, "says": says}
