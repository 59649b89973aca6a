"""OE, orphaned event: work out of reach of all agents, without having been consumed.

Paper, section 5 (3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dig._util.text import name
from dig.detectors.finding import Finding
from dig.detectors.interventions import Create, Intervention, Reroute
from dig.detectors.ladder import LadderStep, Progress, part_behind, redo
from dig.detectors.notes import absent, describe_events, quote
from dig.detectors.paths import PathFinder, Proof
from dig.detectors.protocols import Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import LOST_OR_FOUND, Expire, Leave, Redirect
from dig.graph.state import EventState

from .event_window import EventWindowDetector

LOST = {
    "no_recipient": "it was sent to nobody who was there",
    "discarded": "it was discarded",
    "left": "the agent that had it has left",
    "expired": "its time has run out",
}
"""By cause: how an event was lost."""


class OrphanedEvent(EventWindowDetector):
    """Raises OE for an event orphaned for `oe_window_s` without a break."""

    pattern = "OE"
    recorded_as = "dig.detectors.orphaned_event.OrphanedEvent"
    kinds = (LOST_OR_FOUND, Leave, Redirect, Expire)
    window = "oe_window_s"

    def _since(self, event: EventState) -> int | None:
        """The moment of the loss."""
        return None if event.cause is None else event.us_lost

    def _evidence(self, event: EventState) -> dict[str, Any]:
        """The cause of the loss."""
        return {"cause": event.cause}


def describe(subject: Any, evidence: Any) -> str:
    """OE in words."""
    reason = LOST.get(evidence["cause"]) or name(evidence["cause"])
    return f"nobody consumed {name(subject['event'])}, and nobody can any more: {reason}"


def prove(paths: PathFinder, finding: Finding) -> Proof:
    """The fate of the event, with the path."""
    event = finding.subject["event"]
    return paths.last_seen_of([event]), (paths.to_last_seen(event),)


class HealOrphanedEvent(Healer):
    """Sends lost work back to its generator, or tells all agents."""

    recorded_as = "dig.detectors.healing.HealOrphanedEvent"

    def __init__(self) -> None:
        """Begin with no event sent back."""
        self._returned: set[str] = set()  # discarded events: these go back once

    def forget(self, graph: InteractionGraph) -> None:
        """Forget events unknown to the graph."""
        self._returned = {event for event in self._returned if graph.knows(event)}

    def missing_work(self, finding: Finding) -> Sequence[str]:
        """The lost event."""
        return (finding.subject["event"],)

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject the status and redirect; or create a system event."""
        event = graph.event(finding.subject["event"])
        if event.cause is None:
            return  # an agent has it again
        generator = graph.history.sender(event.n)
        note = (
            f"Nobody has consumed event {describe_events(graph, [event.id])}, "
            f"and nobody can any more: {LOST.get(event.cause, event.cause)}. "
        )
        if event.cause == "no_recipient":
            note += absent(graph, event.id)
        if generator not in graph.agents or generator is None:
            yield Create(note + "If it matters, do its part again.", tuple(graph.agents))
        elif event.cause != "discarded":
            yield Reroute(event.id, note + "Send it to somebody who is there.", (generator,))
        # The generator has thrown it away before: a further return would end in the same way.
        elif generator in event.discarded_by or event.id in self._returned:
            yield Create(note + "If it matters, do its part again.", (generator,))
        else:
            self._returned.add(event.id)
            yield Reroute(event.id, note + "See to it, if it matters.", (generator,))

    def escalate(
        self, graph: InteractionGraph, finding: Finding, step: LadderStep
    ) -> Iterator[Intervention]:
        """Send to the generator; then to another agent; then tell the users of the event."""
        event = graph.event(finding.subject["event"])
        if event.cause is None:
            return  # an agent has it again
        generator = graph.history.sender(event.n)
        refused = {*event.discarded_by}
        is_unwanted = event.cause == "discarded" and len(refused) > 1
        can_go_back = generator in graph.agents and generator not in refused
        if step.number == 1 and can_go_back:
            yield from self.heal(graph, finding)
            return
        again = redo(graph, finding, step)
        if again:
            yield from again
            return
        part = part_behind(graph, event.id) if event.cause == "discarded" else None
        if part is not None and part not in step.renewed:
            # An agent that throws it away cannot read it, so the work behind it is done again.
            helper = step.helper(graph, {generator or "", *refused})
            if (
                helper is not None
                and helper != generator
                and helper not in graph.event(part).copies
            ):
                note = (
                    f"What {quote(generator or '')} made of this was thrown away. Do it yourself."
                )
                yield Reroute(part, note, (helper,), action="reassign")
                return
        is_given = step.number < 3 and not is_unwanted
        helper = step.helper(graph, {generator or "", *refused}) if is_given else None
        if helper not in (None, *refused):
            note = (
                f"Nobody has consumed event {describe_events(graph, [event.id])}, and nobody could "
                f"any more: {LOST.get(event.cause, event.cause)}. Do it yourself."
            )
            yield Reroute(event.id, note, (helper or "",), action="redeliver")
        else:
            event_text = describe_events(graph, [event.id])
            note = f"{event_text} is lost for good. Do without it, or see to it."
            yield Create(note, _users(graph, event))

    def progress(self, graph: InteractionGraph, finding: Finding, step: LadderStep) -> Progress:
        """Whether the event is found; if lost again, OE is raised again."""
        event = finding.subject["event"]
        cause = graph.event(event).cause if graph.knows(event) else None
        return "untold" if cause in (None, "discarded") else "none"


def _users(graph: InteractionGraph, event: EventState) -> tuple[str, ...]:
    """The agents waiting for the results of an event: the requesters of its generator."""
    h = graph.history
    v = h.generator[event.n]
    asked_by = {h.sender(edge.event) for edge in h.edges(v)} if v >= 0 else set()
    return tuple(agent for agent in graph.agents if agent in asked_by) or tuple(graph.agents)
