"""Healing: what is done about each pattern (paper, section 5).

A note is a template of ours (`notes`) that stands beside a payload, marked as the system's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from json import dumps, loads
from typing import Any

from dig.graph.graph import InteractionGraph

from .finding import Finding
from .interventions import Create, Inject, Intervention, Reroute
from .notes import MOST_LISTED, MOST_QUOTED, ancestries, ancestry, described, listed, made, quoted
from .patterns.orphaned_event import LOST

COOLDOWN_S = 1.0
LONGEST_S = 30.0


class HealEarlyTermination:
    """Bounces an early answer to its submitter, with the lists of what is missing.

    A submitter that answers again at once, with the same work still missing, gets its answer back
    only after a while, each time after a longer one: in a tight loop it would use up the budget
    before the work it should wait for can be done.
    """

    def __init__(self, cooldown_s: float = COOLDOWN_S) -> None:
        """Begin with no bounce remembered.

        Args:
            cooldown_s: After how many seconds the same is said a second time; doubled from then.
        """
        self._cooldown_s = cooldown_s
        self._said: dict[str, dict[str, Any]] = {}  # submitter -> the lists of its last bounce
        self._bounces: Counter[tuple[str, str]] = Counter()  # by submitter and lists

    def let_go(self, graph: InteractionGraph) -> None:
        """Forget the lists that name an event which nobody can find any more."""

        def holds(lists: dict[str, Any]) -> bool:
            return all(graph.knows(event) for events in lists.values() for event in events)

        self._said = {who: lists for who, lists in self._said.items() if holds(lists)}
        for said in [said for said in self._bounces if not holds(loads(said[1]))]:
            del self._bounces[said]

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject the lists; bounce, unless that was tried and nothing can move any more."""
        event = finding.subject["event"]
        submitter = graph.history.sender(graph.event(event).n) or ""
        lists = finding.evidence
        note = (
            "This answer was submitted while work is missing from it. "
            f"Not consumed by anybody yet: {described(graph, lists['unresolved'])}. "
            f"Lost on the way to this answer: {described(graph, lists['uncovered'])}. "
        )
        is_repeated = self._said.get(submitter) == lists
        is_there = submitter in graph.agents
        if not is_there or (is_repeated and not _can_move(graph, submitter, lists)):
            yield Inject(event, note + "It is accepted as it is.")
            return
        self._said[submitter] = lists
        note += "Take care of this work, then submit again."
        yield Reroute(event, note, (submitter,), self._wait_s(submitter, lists))

    def _wait_s(self, submitter: str, lists: dict[str, Any]) -> float:
        said = (submitter, dumps(lists))
        self._bounces[said] += 1
        repeats = self._bounces[said] - 1
        return min(self._cooldown_s * 2 ** (repeats - 1), LONGEST_S) if repeats else 0.0


def _can_move(graph: InteractionGraph, submitter: str, lists: dict[str, Any]) -> bool:
    """Whether a listed event is on its way, or in front of an agent that is at work.

    So is what its submitter was to take up with it: an answer that has not come back yet.
    """
    if any(event.final for event in graph.agents[submitter].incoming.values()):
        return True
    events = [graph.event(e) for e in (*lists["unresolved"], *lists["uncovered"])]
    seen = {e.id for activation in graph.activations.values() for e in activation.inputs}
    return any(event.flight or event.id in seen for event in events)


class HealDeadlock:
    """Wakes all agents with a list of who holds what."""

    def about(self, finding: Finding) -> object:
        """Who holds what: a deadlock about other work is another one."""
        return finding.evidence["waiting"]

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Create one system event for everybody who is present."""
        held = list(finding.evidence["waiting"].items())
        who = "; ".join(f"{quoted(agent)} holds {listed(e)}" for agent, e in held[:MOST_LISTED])
        more = f"; and {len(held) - MOST_LISTED} more agents" if len(held) > MOST_LISTED else ""
        note = (
            "Nobody has made progress for a while, and work is still waiting: "
            f"{who}{more}. Each of you: act on what you hold, pass it on, or discard it; "
            "do not wait for others that wait for you."
        )
        yield Create(note, tuple(graph.agents))


class HealMissingTermination:
    """Tells the agent that worked last, or everybody if it is gone, to submit."""

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Create a system event."""
        last = finding.evidence["last"]
        v = None if last is None else graph.history.activation(last)
        agent = None if v is None else graph.history.agent(v)
        problem = finding.subject.get("event")
        to = f" to {quoted(problem)}" if problem else ""
        note = (
            f"All work is done or lost, and no answer{to} has been submitted. "
            "Submit the answer now, from what you have."
        )
        yield Create(note, (agent,) if agent in graph.agents and agent else tuple(graph.agents))


class HealOrphanedEvent:
    """Sends lost work back to the agent that generated it, or tells everybody."""

    def __init__(self) -> None:
        """Begin with nothing sent back."""
        self._returned: set[str] = set()  # discarded events: these go back once

    def let_go(self, graph: InteractionGraph) -> None:
        """Forget the events that nobody can find any more."""
        self._returned = {event for event in self._returned if graph.knows(event)}

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject the status and redirect; or create a system event."""
        event = graph.event(finding.subject["event"])
        if event.cause is None:
            return  # somebody has it again
        generator = graph.history.sender(event.n)
        note = (
            f"Nobody has consumed event {described(graph, [event.id])}, "
            f"and nobody can any more: {LOST.get(event.cause, event.cause)}. "
        )
        if generator not in graph.agents or generator is None:
            yield Create(note + "If it matters, do its part again.", tuple(graph.agents))
        elif event.cause != "discarded":
            yield Reroute(event.id, note + "Send it to somebody who is there.", (generator,))
        elif generator in event.discarded_by or event.id in self._returned:
            yield Create(note + "If it matters, do its part again.", (generator,))
        else:
            self._returned.add(event.id)
            yield Reroute(event.id, note + "See to it, if it matters.", (generator,))


class HealExcessiveRerouting:
    """Puts beside the event who has passed it on."""

    def __init__(self, cooldown_s: float = COOLDOWN_S) -> None:
        """Set up.

        Args:
            cooldown_s: For how many seconds an event is not given a further note.
        """
        self.cooldown_s = cooldown_s

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject the path."""
        path = finding.evidence["path"]
        note = (
            f"This event was passed on {len(path)} times and consumed by nobody; "
            f"it went through the hands of {listed(path)}. Do not pass it on again: work on it."
        )
        yield Inject(finding.subject["event"], note)


class HealCrossLineage:
    """Puts beside the events where they come from."""

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject the ancestries: into the delivered event, or into the activation's outputs."""
        conflicts = finding.evidence["conflicts"]
        if finding.stage == "delivery":
            event = finding.subject["event"]
            note = (
                f"This event comes from {ancestry(graph, event)}. In front of you lies what "
                f"has no origin in common with it: {ancestries(graph, conflicts)}. "
                "Put them together only if they belong together."
            )
            yield Inject(event, note, (finding.subject["agent"],))
            return
        pairs = "; ".join(
            f"{quoted(a)} from {ancestry(graph, a)} with {quoted(b)} from {ancestry(graph, b)}"
            for a, b in conflicts[:MOST_QUOTED]
        )
        note = f"This was made by putting together what has no origin in common: {pairs}."
        yield from _into_outputs(graph, finding, note)


class HealRepeatedSolving:
    """Puts beside the outputs what of them may be there twice."""

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject what may be repeated into the activation's outputs."""
        shared = "; ".join(
            f"{quoted(item['event'])}, of which {made(graph, item['activations'])} before"
            for item in finding.evidence["shared"][:MOST_QUOTED]
        )
        note = f"Part of this may be there twice: {shared}. Count it once."
        yield from _into_outputs(graph, finding, note)


class DesignateHandler(HealRepeatedSolving):
    """Also names a handler for work that several agents are given: the least loaded of them.

    The preventive form of healing RSP. It speaks before anything is wrong, and to agents that
    might have shared the work well by themselves, so it is not in the standard set.
    """

    def prevent(self, graph: InteractionGraph, event: str) -> Iterator[Inject]:
        """Tell the handler, and tell the others who it is."""
        state = graph.event(event)
        if not state.work:
            return
        present = [graph.agents[name] for name in state.flight]
        handler = min(present, key=lambda agent: len(agent.buffer) + len(agent.incoming)).name
        others = tuple(name for name in state.flight if name != handler)
        told = f"{listed(others)} {'has' if len(others) == 1 else 'have'} it too, and will leave it"
        yield Inject(event, f"You are to handle this event; {told} to you.", (handler,))
        note = f"{quoted(handler)} is to handle this event: leave it to {quoted(handler)}."
        yield Inject(event, note, others)


def _into_outputs(graph: InteractionGraph, finding: Finding, note: str) -> Iterator[Intervention]:
    v = graph.history.activation(finding.subject["activation"])
    for n in graph.history.outputs(v) if v is not None else ():
        event = graph.event(graph.history.event_ids[n])
        if event.flight or event.final or event.cause:
            yield Inject(event.id, note)
