"""Late work: activations in progress after the end of a request.

The caller has the answer and reads nothing more, so such work can be reported, but not healed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from dig.graph.graph import InteractionGraph
from dig.graph.records import WORK_AFTER_ANSWER
from dig.graph.state import ActivationState

GRACE_US = 1_000_000
"""The time that an activation has to end in, from the end of its request, or from its own start.

A framework's own clean-up is over by then.
"""


class IncidentWriter(Protocol):
    """Writes the records of a run: the recorder of a monitor, or an importer."""

    graph: InteractionGraph
    now: int

    def incident(self, kind: str, detail: dict[str, str], /) -> None:
        """Write an incident of the present moment."""


class LateWork:
    """Reports work after the end of a request, once for each activation.

    The report is an incident, since it is no finding that a healer could do something about.

    Attributes:
        due: By activation, the moment from which it counts, and its latest request.
    """

    def __init__(self, writer: IncidentWriter) -> None:
        """Begin with no activation."""
        self._writer = writer
        self.due: dict[str, tuple[int, str]] = {}
        self._reported: set[str] = set()  # those in progress

    def note(self, activations: Iterable[ActivationState]) -> None:
        """Note the activations without a request in progress."""
        graph, now = self._writer.graph, self._writer.now
        for activation in activations:
            problems = activation.problems
            # One look at most: a session may have a thousand requests in progress.
            if problems and not (problems[0].is_over or problems[0].is_failed or graph.is_over):
                continue
            is_over = graph.is_over or all(each.is_over or each.is_failed for each in problems)
            # Work about notices alone is plumbing: a log that nobody waits for.
            if is_over and any(event.work for event in activation.inputs):
                requests = graph.source_ids(graph.activation_sources(activation.id))
                if requests and activation.id not in self._reported:
                    self.due.setdefault(activation.id, (now + GRACE_US, requests[-1]))

    def look(self) -> None:
        """Report the noted activations in progress, from their deadline on."""
        if not self.due:
            return
        running, now = self._writer.graph.running, self._writer.now
        self._reported &= running.keys()
        for id, (us, request) in tuple(self.due.items()):
            if us <= now or id not in running:
                del self.due[id]
                if id in running and not running[id].waits:  # a person costs nothing
                    self._reported.add(id)
                    detail = {"event": request, "activation": id, "agent": running[id].agent}
                    self._writer.incident(WORK_AFTER_ANSWER, detail)

    def deadline(self) -> int | None:
        """The moment at which the next activation is due, in microseconds."""
        return min(self.due.values())[0] if self.due else None
