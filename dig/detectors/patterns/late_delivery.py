"""LATE, late delivery: work is on its way to a recipient for too long.

Not in the paper: a message that a network keeps is neither lost nor waiting in a buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dig._util.text import name, names
from dig.detectors.finding import Finding
from dig.detectors.interventions import Intervention, Reroute
from dig.detectors.notes import describe_events
from dig.detectors.paths import PathFinder, Proof
from dig.detectors.protocols import Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import SENT_OFF, WAITING
from dig.graph.state import FLYING, EventState

from .event_window import EventWindowDetector


class LateDelivery(EventWindowDetector):
    """Raises LATE for an event on its way for `late_window_s` without a break."""

    pattern = "LATE"
    recorded_as = "dig.detectors.patterns.late_delivery.LateDelivery"
    kinds = (WAITING, SENT_OFF)
    window = "late_window_s"

    def _since(self, event: EventState) -> int | None:
        """The moment since which an event is on its way alone, and not on purpose."""
        return event.us_sent if event.place == FLYING and not event.is_kept else None

    def _evidence(self, event: EventState) -> dict[str, Any]:
        """The recipients without the event."""
        return {"to": sorted(event.flight)}


def describe(subject: Any, evidence: Any) -> str:
    """LATE in words."""
    return f"{name(subject['event'])} has been on its way to {names(evidence['to'])} for too long"


def prove(paths: PathFinder, finding: Finding) -> Proof:
    """The path to the event."""
    return "", (paths.to_last_seen(finding.subject["event"]),)


class HealLateDelivery(Healer):
    """Sends the event once more."""

    recorded_as = "dig.detectors.patterns.late_delivery.HealLateDelivery"

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Send the event again to the recipients without it."""
        event = graph.event(finding.subject["event"])
        if event.place == FLYING:
            note = f"Event {describe_events(graph, [event.id])} came late, and was sent once more."
            yield Reroute(event.id, note, tuple(sorted(event.flight)), action="redeliver")
