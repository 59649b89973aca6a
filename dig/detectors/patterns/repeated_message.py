"""LOOP, the same said again: an agent sends the same message, made from the same inputs.

Not in the paper: each message is new work to the graph, so no pattern of the paper sees that
nothing new is said.
"""

from __future__ import annotations

import marshal
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dig._util.json_values import encoder
from dig._util.text import name
from dig.detectors.finding import Explanation, Finding, Severity
from dig.detectors.interventions import Inject, Intervention
from dig.detectors.paths import PathFinder
from dig.detectors.protocols import Detector, Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import SYSTEM, Emit, End, Record, base_name
from dig.graph.state import EventState

from .repeats import GRAVE, EventMemory, is_doubling

MOST_MESSAGES = 1000
"""The number of distinct messages that are remembered of an agent about a problem, the latest."""

MOST_SOURCES = 32
"""About how many unanswered problems at most one message is counted, the earliest ones."""

MOST_PROBLEMS = 1000
"""About how many problems of a session messages are remembered, the latest ones."""

_dumps = encoder(sort_keys=True)
_DOLLAR, _BRACE = b"${"  # as numbers, which are found fastest

_Said = tuple[int, str, int]
"""The count of a message, and the event of the last time, with its logical time."""

_NEVER: _Said = (0, "", -1)

_NO_PROBLEM = (None,)
"""The problem of what is no session, or about none."""


class RepeatedMessage(Detector):
    """Counts the equal messages of an agent; the hash of a payload stands for the payload."""

    pattern = "LOOP"
    recorded_as = "dig.detectors.patterns.repeated_message.RepeatedMessage"
    kinds = (Emit, End)

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._contents: EventMemory[int] = EventMemory()
        self._inputs: tuple[int, ...] | None = None  # of the activation that ended last
        self._agent = ""  # which it is of
        # By problem (outside of a session all is one), agent and message, the latest last.
        self._said: OrderedDict[str | None, dict[str, dict[int, _Said]]] = OrderedDict()

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        """Raise LOOP when a message was said `loop_limit` times, and at each doubling of that."""
        limit = graph.run.limits.loop_limit
        if limit is None:
            return ()
        if type(record) is End:
            assert graph.ended is not None
            self._inputs = self._contents_of(graph.ended.consumed)
            self._agent = base_name(graph.ended.agent)
        elif type(record) is Emit and record.by != SYSTEM:
            content = _content(record.payload)
            if content is not None:
                self._contents.put(graph, record.event, content)
                if self._inputs is not None and record.by is not None:
                    return self._look(graph, record, content, limit)
        return ()

    def _contents_of(self, events: list[EventState]) -> tuple[int, ...] | None:
        """The contents of some events, in no order; ``None`` if that of one is not known."""
        contents: list[int] = []
        for event in events:
            content = self._contents.get(event.id)
            if content is None:
                return None
            contents.append(content)
        return tuple(sorted(contents))

    def _look(
        self, graph: InteractionGraph, record: Emit, content: int, limit: int
    ) -> Sequence[Finding]:
        (event,) = graph.touched
        if not event.work:
            return ()
        to = tuple(map(base_name, record.to))
        message = hash((content, record.type, to, self._inputs))
        about = graph.unanswered(event.sources, MOST_SOURCES) if graph.run.session else _NO_PROBLEM
        before = [self._count(problem, message, record) for problem in about or _NO_PROBLEM]
        n = 1 + max(before)[0]
        if not is_doubling(n, limit):
            return ()
        _, last, _ = max(before, key=lambda said: said[2])  # about any of the problems
        severity: Severity = "error" if n >= GRAVE * limit else "warning"
        subject, evidence = {"event": event.id}, {"count": n, "last": last}
        return [Finding(self.pattern, record.t, record.us, subject, evidence, severity=severity)]

    def _count(self, problem: str | None, message: int, record: Emit) -> _Said:
        """Count a message about a problem; return how often it was said before."""
        about = self._said.get(problem)
        if about is None:
            about = self._said[problem] = {}
            if len(self._said) > MOST_PROBLEMS:
                self._said.popitem(last=False)
        else:
            self._said.move_to_end(problem)
        messages = about.get(self._agent)
        if messages is None:
            messages = about[self._agent] = {}
        before = messages.pop(message, _NEVER)
        messages[message] = (before[0] + 1, record.event, record.t)
        if len(messages) > MOST_MESSAGES:
            del messages[next(iter(messages))]
        return before

    def forget(self, graph: InteractionGraph) -> None:
        """Forget the events that the graph knows no more, and what was said about them."""
        self._contents.forget(graph)
        for problem in [one for one in self._said if one is not None and not graph.knows(one)]:
            del self._said[problem]


def _content(payload: Any) -> int | None:
    """A number for what an event says; ``None`` if it says nothing, or is not recorded whole."""
    if payload is None:
        return None
    if type(payload) is str:
        return hash(payload)
    members = sorted(payload.items()) if type(payload) is dict else payload
    written: bytes | str = marshal.dumps(members, 2)  # fast; in later versions, identity counts
    if _DOLLAR in written and type(payload) is dict and any(key[:1] == "$" for key in payload):
        return None
    if _BRACE in written:  # maybe an object in it, of whose members the order does not count
        written = _dumps(payload)
    return hash((written,))


def describe(subject: Any, evidence: Any) -> str:
    """LOOP in words."""
    return (
        f"{name(subject['event'])} says for the {evidence['count']}th time what "
        f"{name(evidence['last'])} said, from the same inputs"
    )


def explain(graph: InteractionGraph, finding: Finding) -> Explanation:
    """The paths to the event, and to the one that said the same before."""
    paths = PathFinder(graph, finding)
    said = [finding.subject["event"], finding.evidence["last"]]
    text = f"{describe(finding.subject, finding.evidence)}."
    return Explanation(text, paths.to_all([event for event in said if graph.knows(event)]))


class HealRepeatedMessage(Healer):
    """Puts a note beside the message that it was said before."""

    recorded_as = "dig.detectors.patterns.repeated_message.HealRepeatedMessage"

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject how often this was said."""
        note = (
            f"This was said {finding.evidence['count']} times now, in the same words and from the "
            "same inputs. Do not answer it as before: try another way, or submit what there is."
        )
        yield Inject(finding.subject["event"], note)
