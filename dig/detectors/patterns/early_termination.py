"""ET, early termination: an answer is submitted while work is open or lost.

Paper, section 5 (1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from json import dumps, loads
from typing import Any

from dig._util.ranges import union
from dig._util.text import name, names
from dig.detectors.finding import Finding, Severity
from dig.detectors.interventions import COOLDOWN_S, Inject, Intervention, Replace, Reroute
from dig.detectors.ladder import LadderStep, redo, restart
from dig.detectors.notes import describe_events, quote
from dig.detectors.paths import PathFinder, Proof
from dig.detectors.protocols import Detector, Healer
from dig.graph.coverage import provenance, unconsumed_work
from dig.graph.graph import InteractionGraph
from dig.graph.records import ANSWERED, Emit, Record
from dig.graph.state import by_number

LONGEST_S = 30.0
MOST_DOUBLINGS = 60  # of a wait: a number that has no end does not fit into a float
"""The longest time, in seconds, for which a repeated bounce is put off."""


class EarlyTermination(Detector):
    """Looks at every new final event."""

    pattern = "ET"
    recorded_as = "dig.detectors.early_termination.EarlyTermination"
    kinds = (ANSWERED,)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Raise ET for a final event with open or uncovered work."""
        assert isinstance(record, Emit)
        unresolved, uncovered, is_needed = _missing(graph, graph.event(record.event).n)
        if unresolved or uncovered:
            evidence = {"unresolved": unresolved, "uncovered": uncovered}
            severity: Severity = "error" if is_needed else "warning"
            subject = {"event": record.event}
            yield Finding(self.pattern, record.t, record.us, subject, evidence, severity=severity)


def _missing(graph: InteractionGraph, n: int) -> tuple[list[str], list[str], bool]:
    """The open and the uncovered work of a final event; and whether any was needed.

    Without coverage all open work is taken for needed, and so it is by an answer to nothing.
    """
    limits, session = graph.run.limits, graph.run.session
    # The paper's definition: any open work makes an answer early, needed or not.
    if not (session or limits.coverage):
        return [event.id for event in graph.open_events()], [], True
    behind = provenance(graph, n)
    if session:
        requests = graph.problems.standing(behind)
        if not requests:
            return [], [], False
        open_events = sorted(graph.problems.open_events(requests).values(), key=by_number)
    else:
        open_events = graph.open_events()
    uncovered = unconsumed_work(graph, behind) if limits.coverage else []
    lost_events = [graph.history.event_ids[e] for e in uncovered if not graph.is_open(e)]
    on_nothing = not graph.history.inputs(behind.submitter)
    is_needed = bool(uncovered) or on_nothing or not limits.coverage
    return [event.id for event in open_events], lost_events, is_needed


def describe(subject: Any, evidence: Any) -> str:
    """ET in words."""
    missing = {"still open": evidence["unresolved"], "lost on the way to it": evidence["uncovered"]}
    parts = [f"{state}: {names(events)}" for state, events in missing.items() if events]
    return f"answer {name(subject['event'])} was submitted too early; {'; '.join(parts)}"


def prove(paths: PathFinder, finding: Finding) -> Proof:
    """The fate of the missing work, with paths."""
    missing = _missing_events(finding.evidence)
    return paths.last_seen_of(missing), paths.to_all(missing)


class HealEarlyTermination(Healer):
    """Bounces an early answer to its submitter, with lists of the missing work.

    A submitter that answers again at once, with the same work still missing, gets its answer back
    only after a while, each time after a longer one: in a tight loop it would use up the budget
    before the work it should wait for can be done.
    """

    recorded_as = "dig.detectors.healing.HealEarlyTermination"

    def __init__(self, cooldown_s: float = COOLDOWN_S) -> None:
        """Begin with no bounce remembered.

        Args:
            cooldown_s: After how many seconds the same is said a second time; doubled from then.
        """
        self._cooldown_s = cooldown_s
        self._latest: dict[str, dict[str, Any]] = {}  # submitter -> the lists of its last bounce
        self._bounces: Counter[tuple[str, str]] = Counter()  # by submitter and lists
        self._handed_out: set[str] = set()  # events, and what was made of them

    def forget(self, graph: InteractionGraph) -> None:
        """Forget lists with events unknown to the graph."""

        def holds(lists: dict[str, Any]) -> bool:
            return all(graph.knows(event) for event in _missing_events(lists))

        self._latest = {name: lists for name, lists in self._latest.items() if holds(lists)}
        self._handed_out = {event for event in self._handed_out if graph.knows(event)}
        for bounce in [bounce for bounce in self._bounces if not holds(loads(bounce[1]))]:
            del self._bounces[bounce]

    def missing_work(self, finding: Finding) -> Sequence[str]:
        """The lost and the open work."""
        return (*finding.evidence["uncovered"], *finding.evidence["unresolved"])

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject the lists; bounce, unless a bounce has not helped and nothing can move."""
        event, lists = finding.subject["event"], finding.evidence
        submitter = _submitter(graph, finding)
        note = _missing_note(graph, lists)
        if self._insists(graph, submitter, lists):
            yield Inject(event, note + "It is accepted as it is.")
            return
        self._latest[submitter] = lists
        note += "Take care of this work, then submit again."
        yield Reroute(event, note, (submitter,), self._wait_s(submitter, lists))

    def escalate(
        self, graph: InteractionGraph, finding: Finding, step: LadderStep
    ) -> Iterator[Intervention]:
        """Bounce; if nothing moves, have others do the missing work first.

        What is lost without a trace cannot be handed out again: then the answer is accepted.
        """
        lists, submitter = finding.evidence, _submitter(graph, finding)
        if (submitter, dumps(lists)) in self._bounces:
            self._latest[submitter] = lists  # two answers in turns count as one that insists
        if _is_left_behind(graph, finding, step):
            note = _missing_note(graph, lists) + "It was left behind when the problem began anew."
            yield Inject(finding.subject["event"], note)
            return
        if finding.severity != "error" or not self._insists(graph, submitter, lists):
            yield from self.heal(graph, finding)
            return
        again = redo(graph, finding, step) or _mixed_up(graph, finding, step)
        again = again or self._give_away(graph, finding, step)
        # It holds the answer: without it, what was submitted early would be accepted.
        again = [w for w in again if not (isinstance(w, Replace) and w.agent == submitter)]
        yield from again
        if again and submitter in graph.agents:
            note = f"{_missing_note(graph, lists)}Others were asked to do it: wait for it."
            event = finding.subject["event"]
            yield Reroute(event, note, (submitter,), step.patience / 1_000_000)
        else:
            yield from self.heal(graph, finding)

    def _give_away(
        self, graph: InteractionGraph, finding: Finding, step: LadderStep
    ) -> list[Intervention]:
        """Give open and lost work to another agent, once."""
        submitter = _submitter(graph, finding)
        events = [graph.event(event) for event in _missing_events(finding.evidence)]
        open_events = [event for event in events if event.cause or graph.is_open(event.n)]
        open_events = [event for event in open_events if not self._was_handed_out(graph, event.n)]
        if not open_events:
            return []
        helper = step.helper(graph, (submitter,))
        if helper is None or helper == submitter:
            return []
        self._handed_out.update(event.id for event in open_events)
        note = (
            f"An answer was submitted that does without this, and {quote(submitter)} does not see "
            "to it. Do it now."
        )
        return [
            Reroute(event.id, note, (helper,), action="reassign")
            for event in open_events
            if helper not in event.copies
        ]

    def _was_handed_out(self, graph: InteractionGraph, n: int) -> bool:
        """Whether an event was handed out, or made of such an event: the step belongs to the work.

        Else agents that pass work on are given it under a new id after each answer.
        """
        h = graph.history
        inputs = h.inputs(h.generator[n]) if h.generator[n] >= 0 else ()
        is_known = not self._handed_out.isdisjoint(h.event_ids[e] for e in (n, *inputs))
        if is_known:
            self._handed_out.add(h.event_ids[n])
        return is_known

    def _insists(self, graph: InteractionGraph, submitter: str, lists: dict[str, Any]) -> bool:
        """Whether a further bounce is of no use: the same answer, and nothing can move."""
        if submitter not in graph.agents:
            return True
        if self._latest.get(submitter) != lists:
            return False
        # The bounce itself is on its way, so the submitter has not had its chance.
        if any(event.final for event in graph.agents[submitter].incoming.values()):
            return False
        events = [graph.event(event) for event in _missing_events(lists)]
        inputs = {e.id for activation in graph.activations.values() for e in activation.inputs}
        return not any(event.flight or event.id in inputs for event in events)

    def _wait_s(self, submitter: str, lists: dict[str, Any]) -> float:
        bounce = (submitter, dumps(lists))
        # Doubled waits: in a tight loop bounces would use up the budget before the work is done.
        self._bounces[bounce] += 1
        repeats = self._bounces[bounce] - 1
        doublings = min(repeats - 1, MOST_DOUBLINGS)
        return min(self._cooldown_s * 2**doublings, LONGEST_S) if repeats else 0.0


def _is_left_behind(graph: InteractionGraph, finding: Finding, step: LadderStep) -> bool:
    """Whether all missing work is of attempts before the submitter's own."""
    h, submitter = graph.history, _submitter(graph, finding)
    problems = graph.unanswered_sources(graph.event(finding.subject["event"]).sources)
    begun = [step.renewed.get(problem, {}).get(submitter, -1) for problem in problems]
    missing = _missing_events(finding.evidence)
    return all(h.t_gen[h.event_number(event)] < min(begun, default=-1) for event in missing)


def _mixed_up(graph: InteractionGraph, finding: Finding, step: LadderStep) -> list[Intervention]:
    """Begin problems anew, where an answer to several problems lacks parts."""
    answered = graph.event(finding.subject["event"]).sources
    missing = [graph.event(event).sources for event in _missing_events(finding.evidence)]
    apart = union([sources for sources in missing if sources != answered])
    anew = [name for name in graph.unanswered_sources(apart) if name not in step.renewed]
    return list(restart(graph, finding, step, problems=anew)) if anew and graph.run.session else []


def _submitter(graph: InteractionGraph, finding: Finding) -> str:
    return graph.history.sender(graph.event(finding.subject["event"]).n) or ""


def _missing_note(graph: InteractionGraph, lists: dict[str, Any]) -> str:
    return (
        "This answer was submitted while work is missing from it. "
        f"Not consumed by anybody yet: {describe_events(graph, lists['unresolved'])}. "
        f"Lost on the way to this answer: {describe_events(graph, lists['uncovered'])}. "
    )


def _missing_events(lists: dict[str, Any]) -> list[str]:
    """The missing events in evidence, which may also have the key `more`."""
    return [*lists["unresolved"], *lists["uncovered"]]
