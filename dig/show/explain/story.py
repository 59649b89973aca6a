"""The story of one event: all that happened to it from its emission on, in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dig._util.text import name, names
from dig.detectors.describe import finding_text, pattern_label, worth
from dig.graph.records import (
    SYSTEM,
    Deliver,
    Emit,
    End,
    Expire,
    FindingRow,
    HealRow,
    IncidentRow,
    Leave,
    Record,
    Redirect,
    Start,
)
from dig.graph.words import PAST, healing_text, incident_text, seconds
from dig.traces.run import RecordedRun

Chapter = dict[str, Any]


def event_story(run: RecordedRun, event: str) -> list[Chapter]:
    """The story of an event, from all records of a run that concern it.

    Each chapter has the record's number, time and kind, and a description; a chapter
    about an activation has its id, its agent, and the fate.
    """
    teller = _Teller(run, event)
    chapters = []
    for record in run.records:
        more = teller.tell(record)
        if more:
            chapters.append({"record": record.t, "ts": record.ts, "kind": record.kind, **more})
    return chapters


class _Teller:
    """Makes the chapter of each record, and remembers the start of the event's hold."""

    def __init__(self, run: RecordedRun, event: str) -> None:
        self._run = run
        self._event = event
        self._held_us = 0

    def tell(self, record: Record) -> Chapter | None:
        match record:
            case Emit() if record.event == self._event:
                return {"says": self._emitted(record)}
            case Deliver() if record.event == self._event:
                return {"to": record.to, "says": self._delivery(record)}
            case Redirect() if record.event == self._event:
                self._held_us = record.us
                return {"to": list(record.to), "says": f"sent to {names(record.to) or 'nobody'}"}
            case Expire() if record.event == self._event:
                return {"says": "expired: it is on its way to nobody any more"}
            case Start() if self._event in record.inputs:
                return self._seen(record.activation, "shown to", None)
            case End():
                return self._fate(record)
            case Leave() if self._run.left_with(record, self._event):
                return {"agent": record.agent, "says": f"lost with {name(record.agent)}, who left"}
            case FindingRow() if self._is_in(record.subject):
                return {"says": f"{worth(record)} {pattern_label(record)}: {finding_text(record)}"}
            case HealRow() if record.event == self._event:
                note = f": {record.note}" if record.note else ""
                return {"action": record.action, "says": f"healing {healing_text(record)}{note}"}
            case IncidentRow() if self._is_in(record.detail):
                return {"says": incident_text(record)}
        return None

    def _is_in(self, body: Any) -> bool:
        return isinstance(body, Mapping) and self._event in body.values()

    def _emitted(self, record: Emit) -> str:
        self._held_us = record.us
        if record.by is None:
            who = "came from outside"
        elif record.by == SYSTEM:
            who = "made by healing"
        else:
            agent = self._run.activations[record.by].agent
            who = f"emitted by {name(record.by)} of {name(agent)}"
        if record.final:
            return f"{who} as an answer, and held"
        return f"{who} for {names(record.to) or 'nobody'}, and held"

    def _delivery(self, record: Deliver) -> str:
        held = record.us - self._held_us
        after = f", after {seconds(held)}" if held >= 50_000 else ""
        if record.to is None:
            return f"accepted as the answer{after}"
        return f"delivered to {name(record.to)}{after}"

    def _fate(self, record: End) -> Chapter | None:
        activation = self._run.activations[record.activation]
        if self._event not in activation.inputs:
            return None
        fate = self._run.fates(activation.id)[self._event]
        to = next((one.to for one in record.fates if one.event == self._event), ())
        chapter = self._seen(record.activation, f"{PAST[fate]} by", fate)
        if fate == "reroute":
            chapter["to"] = list(to)
            chapter["says"] += f", to {names(to) or 'nobody'}"
        return chapter

    def _seen(self, activation: str, what: str, fate: str | None) -> Chapter:
        agent = self._run.activations[activation].agent
        says = f"{what} {name(activation)} of {name(agent)}"
        return {"activation": activation, "agent": agent, "fate": fate, "says": says}
