"""RSP, repeated subproblem solving: an event is solved again.

Paper, section 5 (7).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dig._util.text import cut, name, names
from dig.detectors.finding import MOST_EVIDENCE, Finding
from dig.detectors.interventions import Inject, Intervention
from dig.detectors.notes import MOST_QUOTED, into_outputs, list_outputs, quote, quote_all
from dig.detectors.paths import PathFinder, Proof
from dig.detectors.protocols import Detector, Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import SOLVED_AGAIN, Record

NOBODY = -1


class RepeatedSolving(Detector):
    """Looks up the earlier solvers of each input in the graph's history."""

    pattern = "RSP"
    recorded_as = "dig.detectors.repeated_solving.RepeatedSolving"
    kinds = (SOLVED_AGAIN,)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Raise RSP for an activation with an input solved before."""
        h, v = graph.history, graph.ended.n
        shared = []
        for n in sorted(event.n for event in graph.ended.consumed):
            # An activation that consumes without solving is not among the solvers.
            *earlier, latest = h.solvers(n) or [NOBODY]
            if earlier and latest == v:
                names = [h.activation_ids[w] for w in earlier[: MOST_EVIDENCE + 1]]
                shared.append({"event": h.event_ids[n], "activations": names})
        if shared:
            subject, evidence = {"activation": graph.ended.id}, {"shared": shared}
            yield Finding(self.pattern, record.t, record.us, subject, evidence, severity="notice")


def describe(subject: Any, evidence: Any) -> str:
    """RSP in words."""
    shared = [f"{name(s['event'])} after {names(s['activations'], 3)}" for s in evidence["shared"]]
    return f"activation {name(subject['activation'])} solved again {cut(shared)}"


def prove(paths: PathFinder, finding: Finding) -> Proof:
    """The paths to the event, and on to both activations."""
    again, shared = finding.subject["activation"], finding.evidence["shared"][0]
    event, first = shared["event"], shared["activations"][0]
    text = f"Both {name(first)} and {name(again)} consumed {name(event)} and made something of it."
    return text, (paths.path_to(event, first), paths.path_to(event, again))


class HealRepeatedSolving(Healer):
    """Puts a note about repeated work beside the outputs."""

    recorded_as = "dig.detectors.healing.HealRepeatedSolving"

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject the repeated work into the activation's outputs."""
        shared = "; ".join(
            f"{quote(item['event'])}, of which {list_outputs(graph, item['activations'])} before"
            for item in finding.evidence["shared"][:MOST_QUOTED]
        )
        note = f"Part of this may be there twice: {shared}. Count it once."
        yield from into_outputs(graph, finding, note)


class DesignateHandler(HealRepeatedSolving):
    """Names a handler for work with several recipients: the least loaded agent.

    The preventive form of healing RSP. It speaks before anything is wrong, and to agents that
    might have shared the work well by themselves, so it is not in the standard set.
    """

    recorded_as = "dig.detectors.healing.DesignateHandler"

    def prevent(self, graph: InteractionGraph, event: str) -> Iterator[Inject]:
        """Tell the handler about the role, and tell the others the handler's name."""
        state = graph.event(event)
        if not state.work:
            return
        present = [graph.agents[name] for name in state.flight]
        handler = min(present, key=lambda agent: len(agent.buffer) + len(agent.incoming)).name
        other_agents = tuple(name for name in state.flight if name != handler)
        have = "has" if len(other_agents) == 1 else "have"
        note = (
            f"You are to handle this event; {quote_all(other_agents)} {have} it too, and will "
            "leave it to you."
        )
        yield Inject(event, note, (handler,))
        note = f"{quote(handler)} is to handle this event: leave it to {quote(handler)}."
        yield Inject(event, note, other_agents)
