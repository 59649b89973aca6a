"""Healing: what is done about each pattern (paper, section 5).

A note is a template of ours with ids in it, quoted and cut; it stands beside a payload, marked
as the system's, and never quotes what an agent wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dig.findings import Create, Finding, Inject, Intervention, Reroute
from dig.graph import InteractionGraph
from dig.plain import safe_text

MOST_LISTED = 12
MOST_CHARACTERS = 64


def quoted(name: object) -> str:
    """An id or an agent's name as a note shows it."""
    shown = safe_text(name, MOST_CHARACTERS).replace("`", "'")
    return f"`{shown}`"


def listed(names: Sequence[object]) -> str:
    """Some ids as a note lists them, cut where there are many."""
    if not names:
        return "nothing"
    shown = ", ".join(quoted(name) for name in names[:MOST_LISTED])
    more = len(names) - MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown


class HealEarlyTermination:
    """Bounces an early answer to its submitter, with the lists of what is missing."""

    def __init__(self) -> None:
        """Begin with no bounce remembered."""
        self._said: dict[str, dict[str, Any]] = {}  # submitter -> the lists of its last bounce

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject the lists; bounce, unless that was tried and nothing can move any more."""
        event = finding.subject["event"]
        submitter = _submitter(graph, event)
        lists = finding.evidence
        note = (
            "This answer was submitted while work is missing from it. "
            f"Not consumed by anybody yet: {listed(lists['unresolved'])}. "
            f"Lost on the way to this answer: {listed(lists['uncovered'])}. "
        )
        stuck = self._said.get(submitter) == lists and not _can_move(graph, lists)
        if submitter not in graph.agents or stuck:
            yield Inject(event, note + "It is accepted as it is.")
            return
        self._said[submitter] = lists
        yield Reroute(event, note + "Take care of this work, then submit again.", (submitter,))


def _submitter(graph: InteractionGraph, event: str) -> str:
    h = graph.history
    agent = h.agent_of[h.generator[graph.event(event).n]]
    return list(h.agents)[agent]


def _can_move(graph: InteractionGraph, lists: dict[str, Any]) -> bool:
    """Whether a listed event is on its way, or in front of an agent that is at work."""
    events = [graph.event(e) for e in (*lists["unresolved"], *lists["uncovered"])]
    seen = {e.id for activation in graph.activations.values() for e in activation.inputs}
    return any(event.flight or event.id in seen for event in events)


class HealDeadlock:
    """Wakes all agents with a list of who holds what."""

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Create one system event for everybody who is present."""
        held = finding.evidence["waiting"]
        who = "; ".join(f"{agent} holds {listed(events)}" for agent, events in held.items())
        note = (
            "Nobody has made progress for a while, and work is still waiting: "
            f"{who}. Each of you: act on what you hold, pass it on, or discard it; "
            "do not wait for others that wait for you."
        )
        yield Create(note, tuple(graph.agents))
