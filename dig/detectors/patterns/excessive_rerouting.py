"""ER, excessive rerouting: agents pass work on and on, and no agent consumes it.

Paper, section 5 (5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from dig._util.text import name, names
from dig.detectors.finding import MOST_EVIDENCE, Finding, Severity
from dig.detectors.interventions import COOLDOWN_S, Inject, Intervention, Reroute
from dig.detectors.ladder import LadderStep
from dig.detectors.notes import quote_all
from dig.detectors.paths import PathFinder, Proof
from dig.detectors.protocols import Detector, Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import REROUTED, End, Record, base_name
from dig.graph.state import by_number

from .repeats import GRAVE, is_doubling, more_than


class ExcessiveRerouting(Detector):
    """Raises ER after more than `reroute_limit` reroutes of an event, over all copies.

    It is raised again each time the number of reroutes has doubled.
    """

    pattern = "ER"
    recorded_as = "dig.detectors.excessive_rerouting.ExcessiveRerouting"
    kinds = (REROUTED,)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Raise ER for each event with too many reroutes at the end of an activation."""
        assert isinstance(record, End)
        rerouted = [graph.event(f.event) for f in record.fates if f.fate == "reroute"]
        least = graph.run.limits.reroute_limit + 1
        for event in sorted(rerouted, key=by_number):
            n = len(event.reroutes)
            # At doublings only: an event in a circle would raise a finding in each turn.
            if event.work and is_doubling(n, least):
                severity: Severity = "error" if n >= GRAVE * least else "warning"
                if len({*map(base_name, event.reroutes)}) == n:
                    severity = "notice"  # a chain without a return
                subject = {"event": event.id}
                evidence = {"path": event.reroutes[: MOST_EVIDENCE + 1]}
                yield Finding("ER", record.t, record.us, subject, evidence, severity=severity)


def describe(subject: Any, evidence: Any) -> str:
    """ER in words."""
    path = evidence["path"]
    times = more_than(len(path), "time", evidence)
    return f"{name(subject['event'])} was passed on {times} and not consumed: by {names(path)}"


def prove(paths: PathFinder, finding: Finding) -> Proof:
    """The rerouting activations, in order."""
    h, event = paths.graph.history, finding.subject["event"]
    hands = [v for v in paths.seen_by(event) if paths.fate(event, v) == "reroute"]
    hands.sort(key=lambda v: h.t_end[h.activation(v) or 0])
    return "", (paths.path_to(event, *hands[:MOST_EVIDENCE]),)


class HealExcessiveRerouting(Healer):
    """Puts the names of the rerouting agents beside the event."""

    recorded_as = "dig.detectors.healing.HealExcessiveRerouting"

    def __init__(self, cooldown_s: float = COOLDOWN_S) -> None:
        """Set up.

        Args:
            cooldown_s: For how many seconds an event is not given a further note.
        """
        self.cooldown_s = cooldown_s

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject the path."""
        path = finding.evidence["path"]
        times = more_than(len(path), "time", finding.evidence)
        note = (
            f"This event was passed on {times} and consumed by nobody; "
            f"it went through the hands of {quote_all(path)}. Do not pass it on again: work on it."
        )
        yield Inject(finding.subject["event"], note)

    def escalate(
        self, graph: InteractionGraph, finding: Finding, step: LadderStep
    ) -> Iterator[Intervention]:
        """Put a note; then give the event to an agent outside of the path."""
        path, event = finding.evidence["path"], finding.subject["event"]
        times = Counter(path)
        most = tuple(agent for agent in times if times[agent] == max(times.values()))
        is_closed = all(agent in times for agent in graph.agents)
        helper = step.helper(graph, most if is_closed else path) if step.number > 1 else None
        if helper is None or helper in most:
            yield from self.heal(graph, finding)
            return
        note = (
            f"{quote_all(most)} passed this on again and again. Do not pass it on: it is yours "
            f"now, and so is what {quote_all(most)} had to do with it."
        )
        yield Reroute(event, note, (helper,), without=most)
