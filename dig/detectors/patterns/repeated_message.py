"""LOOP, the same said again: an agent sends the same message, made from the same inputs.

Not in the paper: each message is new work to the graph, so no pattern of the paper sees that
nothing new is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dig._util.ranges import RangeSet
from dig._util.text import name
from dig.detectors.finding import Finding, Severity
from dig.detectors.interventions import Create, Inject, Intervention, Reroute
from dig.detectors.ladder import LadderStep, redo, restart
from dig.detectors.notes import quote
from dig.detectors.paths import PathFinder, Proof
from dig.detectors.protocols import Detector, Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import SYSTEM, Emit, Record, base_name
from dig.graph.state import ActivationState

from .repeats import GRAVE, Contents, contents_of, is_doubling

MOST_MESSAGES = 1000
"""The number of distinct messages that are remembered of an agent, the latest."""

_Message = tuple[int, tuple[int, ...]]
"""The hash of a message, and the ranges of its sources in a session."""

_Count = tuple[int, str]
"""The count of a message, and the event of the last time."""


class RepeatedMessage(Detector):
    """Counts the equal messages of an agent; the hash of a payload stands for the payload."""

    pattern = "LOOP"
    recorded_as = "dig.detectors.patterns.repeated_message.RepeatedMessage"
    kinds = (Emit,)

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._contents: Contents | None = None
        self._limit: int | None = None
        self._ended: ActivationState | None = None  # the latest with an output
        self._inputs: tuple[int, ...] | None = None  # what it consumed
        self._counted: set[_Message] = set()  # what it has said
        self._of_agent: dict[_Message, _Count] = {}  # the messages of its agent
        self._messages: dict[str, dict[_Message, _Count]] = {}  # by agent, the latest last

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        """Raise LOOP at the `loop_limit`-th equal message, and at each doubling."""
        if self._contents is None:
            self._contents, self._limit = contents_of(graph), graph.run.limits.loop_limit
        if self._limit is None:
            return ()
        if type(record) is not Emit or record.by == SYSTEM:
            return ()
        if record.by is not None and self._ended is not graph.ended:
            self._ended = graph.ended
            self._inputs = self._contents.of_inputs(graph.ended.consumed)
            self._of_agent = self._messages.setdefault(base_name(graph.ended.agent), {})
            self._counted.clear()
        content = self._contents.note(graph, record)
        if content is None or self._inputs is None or record.by is None:
            return ()
        (event,) = graph.touched
        if not event.work:
            return ()
        to = tuple(map(base_name, record.to))
        sources = event.sources.ranges if graph.run.session else ()
        message = hash((content, record.type, to, self._inputs)), sources
        if message in self._counted:
            return ()
        self._counted.add(message)
        messages, limit = self._of_agent, self._limit
        before, last = messages.pop(message, (0, ""))
        n = before + 1
        messages[message] = n, event.id
        # Popped and set again above, so the first is the one not said for longest.
        if len(messages) > MOST_MESSAGES:
            del messages[next(iter(messages))]
        if n < limit or not is_doubling(n, limit):
            return ()
        severity: Severity = "error" if n >= GRAVE * limit else "warning"
        subject, evidence = {"event": event.id}, {"count": n, "last": last}
        return [Finding(self.pattern, record.t, record.us, subject, evidence, severity=severity)]

    def forget(self, graph: InteractionGraph) -> None:
        """Forget events unknown to the graph, and renumber the sources."""
        contents_of(graph).forget(graph)
        # Many messages have the same sources, and each set of them is renumbered once.
        old = {ranges for messages in self._messages.values() for _, ranges in messages}
        new = {ranges: graph.renumber_sources(RangeSet(ranges)).ranges for ranges in old}
        for agent, messages in self._messages.items():
            self._messages[agent] = {
                (message, new[ranges]): count for (message, ranges), count in messages.items()
            }


def describe(subject: Any, evidence: Any) -> str:
    """LOOP in words."""
    return (
        f"{name(subject['event'])} says for the {evidence['count']}th time what "
        f"{name(evidence['last'])} said, from the same inputs"
    )


def prove(paths: PathFinder, finding: Finding) -> Proof:
    """The paths to the event, and to the earlier event with the same words."""
    events = [finding.subject["event"], finding.evidence["last"]]
    return "", paths.to_all(filter(paths.graph.knows, events))


class HealRepeatedMessage(Healer):
    """Puts a note beside a repeated message, or gives the message to another agent."""

    recorded_as = "dig.detectors.patterns.repeated_message.HealRepeatedMessage"

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject the number of repetitions; for an error, redirect, or ask for the answer."""
        event = graph.event(finding.subject["event"])
        note = (
            f"This was said {finding.evidence['count']} times now, in the same words and from the "
            "same inputs. Do not answer it as before: try another way, or submit what there is."
        )
        sender = graph.history.sender(event.n) or ""
        without = [sender, *event.flight, *event.copies]
        helper = LadderStep().helper(graph, without) if finding.severity == "error" else None
        if helper is not None and helper not in without:
            yield Reroute(event.id, f"{note} It comes to you instead.", (helper,))
            return
        yield Inject(event.id, note)
        if finding.severity == "error" and sender in graph.agents:
            note = f"You say the same again and again ({quote(event.id)}). Submit what there is."
            yield Create(note, (sender,))

    def escalate(
        self, graph: InteractionGraph, finding: Finding, step: LadderStep
    ) -> Iterator[Intervention]:
        """Tell; said twice as often, begin the problem anew without the sender."""
        sender = graph.history.sender(graph.event(finding.subject["event"]).n) or ""
        yield from self.heal(graph, finding)
        if finding.evidence["count"] > (graph.run.limits.loop_limit or 0):
            yield from redo(graph, finding, step) or restart(graph, finding, step, [sender])
