"""The relations along which deviations spread: each asks about two things of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dig.diagnosis.causes import Node
from dig.faults.inject.injections import Injection
from dig.graph.records import Emit, FindingRow
from dig.tasks.accounting import TaskParts
from dig.tasks.number_ranges import Ranges, common, length, merge, named_range
from dig.traces.run import RecordedEvent, RecordedRun


@dataclass(frozen=True, slots=True)
class Setting:
    """The setting of questions about relations.

    Attributes:
        parts: The faulted run, with the parts of its task.
        injections: The deeds of the faults.
    """

    parts: TaskParts
    injections: tuple[Injection, ...]

    @property
    def run(self) -> RecordedRun:
        """The faulted run."""
        return self.parts.run

    def event(self, node: Node) -> RecordedEvent:
        """The event of a node."""
        return self.run.events[node.name]

    def finding(self, node: Node) -> FindingRow:
        """The finding of a node."""
        row = self.run.records[int(node.name)]
        assert isinstance(row, FindingRow)
        return row


Relation = Callable[[Setting, Node, Node], bool]
"""Whether a relation holds between two nodes; its function has the name of the relation."""


def acted_in(at: Setting, source: Node, target: Node) -> bool:
    """A fault of the agent acted in the activation."""
    acts = [(injection.agent, injection.activation) for injection in at.injections]
    return (source.name, target.name) in acts


def acted_on_what_it_generated(at: Setting, source: Node, target: Node) -> bool:
    """The event was changed by the fault, or came from a changed decision."""
    event = at.event(target)
    acts = [injection for injection in at.injections if injection.agent == source.name]
    for act in acts:
        if act.activation is not None and act.activation == event.by:
            row = at.run.records[act.t]
            # An act on a decision touches all outputs; an act on an event, that one and later ones.
            if not isinstance(row, Emit) or row.event == event.id or act.t < event.t:
                return True
    return False


def is_(at: Setting, source: Node, target: Node) -> bool:
    """The nodes are the same thing in two states; no state causes itself."""
    return source.name == target.name and source.state != target.state


def was_to_have(at: Setting, source: Node, target: Node) -> bool:
    """At the departure, the event lay before the agent or was on the way; or came later."""
    event, departure = at.event(target), at.run.leaves[source.name]
    lay_there = any(to == source.name and t < departure for to, t in event.arrivals)
    return (
        at.run.orphaned_t(event.id) == departure
        or lay_there
        or source.name in (*event.to, at.parts.report_to(event))
    )


def was_to_be_told_by(at: Setting, source: Node, target: Node) -> bool:
    """The target consumed an event to be reported to the source."""
    activations = [
        activation for activation in at.run.activations.values() if activation.agent == target.name
    ]
    consumed = [
        at.run.events[e] for activation in activations for e in activation.with_fate("consume")
    ]
    return any(at.parts.report_to(event) == source.name for event in consumed)


def kept_waiting(at: Setting, source: Node, target: Node) -> bool:
    """The event lay before the agent during the activation, but was not consumed."""
    activation, event = at.run.activations[source.name], at.event(target)
    if activation.id in event.consumed_by or target.component != activation.agent:
        return False
    end = activation.end.t if activation.end else at.run.last.t
    came = any(to == activation.agent and activation.t <= t <= end for to, t in event.arrivals)
    # In front of the agent from the start, or arrived while it worked.
    return came or event.id in activation.inputs


def generated(at: Setting, source: Node, target: Node) -> bool:
    """The activation generated the event."""
    return at.event(target).by == source.name


def passed_on(at: Setting, source: Node, target: Node) -> bool:
    """The activation rerouted the event."""
    return target.name in at.run.activations[source.name].with_fate("reroute")


def threw_away(at: Setting, source: Node, target: Node) -> bool:
    """The activation discarded the event."""
    return target.name in at.run.activations[source.name].with_fate("discard")


def was_dropped_by(at: Setting, source: Node, target: Node) -> bool:
    """The activation dropped the event, already in the state of the source."""
    # A state that the event entered after the activation dropped it cannot have caused the drop.
    dropped = passed_on(at, target, source) or threw_away(at, target, source)
    return dropped and source.onset_t < target.onset_t


def consumed_the_last_of(at: Setting, source: Node, target: Node) -> bool:
    """The activation consumed work on the part, but no output covers the part."""
    activation = at.run.activations[source.name]
    events = at.run.events
    used = [
        r for event_id in activation.with_fate("consume") for r in at.parts.about(events[event_id])
    ]
    generated = [r for event_id in activation.outputs for r in at.parts.about(events[event_id])]
    piece = (named_range(target.name),)
    # A part that is covered only half is lost as well.
    return common(tuple(used), piece) > 0 and common(tuple(generated), piece) < length(piece)


def _lacks(at: Setting, agent: str, ranges: Ranges) -> bool:
    """Whether the solutions of an agent miss some of the elements."""
    held = merge(r for event in at.parts.solutions_kept(agent) for r in at.parts.about(event))
    # Several solutions together may cover the elements, so their union is looked at.
    return common(held, ranges) < length(ranges)


def lost_what_was_to_be_told_to(at: Setting, source: Node, target: Node) -> bool:
    """The activation consumed an event meant for the agent, and the agent lacks the elements."""
    used = at.run.activations[source.name].with_fate("consume")
    events = [at.run.events[event_id] for event_id in used]
    events_for = [event for event in events if at.parts.report_to(event) == target.name]
    return any(_lacks(at, target.name, at.parts.about(event)) for event in events_for)


def was_to_be_told_to(at: Setting, source: Node, target: Node) -> bool:
    """The event was meant for the agent; nobody consumed the event, and the agent lacks it."""
    event = at.event(source)
    return (
        not event.consumed_by
        and at.parts.report_to(event) == target.name
        and _lacks(at, target.name, at.parts.about(event))
    )


def led_to(at: Setting, source: Node, target: Node) -> bool:
    """A causal path leads from source to target."""
    return source.name != target.name and source.name in at.run.ancestors(target.name)


def is_about(at: Setting, source: Node, target: Node) -> bool:
    """The event is about elements of the part."""
    return common(at.parts.about(at.event(source)), (named_range(target.name),)) > 0


def is_the_undone_work_on(at: Setting, source: Node, target: Node) -> bool:
    """The event is about elements of the part, and no activation consumed the event."""
    return not at.event(source).consumed_by and is_about(at, source, target)


def leaves_out(at: Setting, source: Node, target: Node) -> bool:
    """The event is not about all of the part."""
    event, piece = at.event(source), (named_range(target.name),)
    return common(at.parts.about(event), piece) < length(piece)


def is_lacked_by(at: Setting, source: Node, target: Node) -> bool:
    """No solution of the agent is about the part."""
    held = at.parts.solutions_kept(target.name)
    return not any(common(at.parts.about(event), (named_range(source.name),)) for event in held)


def is_of_the_same_run(at: Setting, source: Node, target: Node) -> bool:
    """The relation holds always."""
    return True


def was_there_in_the_end(at: Setting, source: Node, target: Node) -> bool:
    """The event lies unread in the end."""
    return at.run.is_unread(at.event(source))


def is_behind_the_answer(at: Setting, source: Node, target: Node) -> bool:
    """There is an answer, and the event is an ancestor of the answer."""
    answer = at.parts.answer
    return answer is not None and source.name in at.run.ancestors(answer.id)


def was_going_on_in_the_end(at: Setting, source: Node, target: Node) -> bool:
    """The activation has not ended."""
    return at.run.activations[source.name].end is None


def is_the_subject_of_oe(at: Setting, source: Node, target: Node) -> bool:
    """The finding is an OE about the event."""
    row = at.finding(target)
    return row.pattern == "OE" and row.subject.get("event") == source.name


def _named_by_et(at: Setting, node: Node) -> list[str]:
    row = at.finding(node)
    # Only an ET has open work in its evidence.
    if row.pattern != "ET":
        return []
    return [*row.evidence.get("unresolved", ()), *row.evidence.get("uncovered", ())]


def is_named_by_et(at: Setting, source: Node, target: Node) -> bool:
    """The finding is an ET with the event as open work."""
    return source.name in _named_by_et(at, target)


def is_behind_the_subject_of_et(at: Setting, source: Node, target: Node) -> bool:
    """The finding is an ET about an answer, and the event is an ancestor of the answer."""
    row = at.finding(target)
    subject = row.subject.get("event") if row.pattern == "ET" else None
    return subject is not None and source.name in at.run.ancestors(subject)


def is_about_what_et_names(at: Setting, source: Node, target: Node) -> bool:
    """The event shares elements with an event in the evidence of the ET."""
    mine = at.parts.about(at.event(source))
    return any(
        common(mine, at.parts.about(at.run.events[event_id]))
        for event_id in _named_by_et(at, target)
    )


def is_named_by_dl(at: Setting, source: Node, target: Node) -> bool:
    """The finding is a DL, with the event among the waiting events."""
    row = at.finding(target)
    waiting = row.evidence.get("waiting", {}) if row.pattern == "DL" else {}
    return any(source.name in events for events in waiting.values())


def waits_in_dl(at: Setting, source: Node, target: Node) -> bool:
    """The finding is a DL, with the agent among the waiting agents."""
    row = at.finding(target)
    return row.pattern == "DL" and source.name in row.evidence.get("waiting", {})


def is_missed_by_mc(at: Setting, source: Node, target: Node) -> bool:
    """The finding is an MC."""
    return at.finding(target).pattern == "MC"
