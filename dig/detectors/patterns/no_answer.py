"""VOID, no answer: the submitted answer is empty, the question, or a call in words.

Not in the paper: to the graph every final event is an answer. A model that stops early, repeats its
task or writes its tool call down submits one, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from json import loads
from typing import Any

from dig._util.text import name
from dig.detectors.finding import Finding, Severity
from dig.detectors.interventions import Inject, Intervention, Reroute
from dig.detectors.paths import PathFinder, Proof
from dig.detectors.protocols import Detector, Healer
from dig.graph.coverage import provenance
from dig.graph.graph import InteractionGraph
from dig.graph.records import ANSWERED, POSED, Emit, Record

CALLS = ({"name", "arguments"}, {"name", "parameters"})
"""The keys of a call of a tool, as models write it down."""

IN_WORDS = {
    "blank": "is empty",
    "echo": "is a question that was asked, and no answer to it",
    "call": "is a call that was written down and not made",
}
"""How an answer is none, in words."""


class VoidAnswer(Detector):
    """Reads every new final event; of a request it remembers a hash."""

    pattern = "VOID"
    recorded_as = "dig.detectors.patterns.no_answer.VoidAnswer"
    kinds = (POSED, ANSWERED)

    def __init__(self) -> None:
        """Begin with nothing asked."""
        self._requests: dict[int, list[str]] = {}  # by the hash of their words, events from outside

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        """Raise VOID for a final event with a text that says nothing new."""
        if not (isinstance(record, Emit) and isinstance(record.payload, str)):
            return ()
        text = record.payload.strip()
        if record.by is None:
            self._requests.setdefault(hash(text), []).append(record.event)
            return ()
        flaw = self._find_flaw(graph, record, text)
        if flaw is None:
            return ()
        severity: Severity = "warning" if flaw == "echo" else "error"
        subject, evidence = {"event": record.event}, {"how": flaw}
        return [Finding(self.pattern, record.t, record.us, subject, evidence, severity=severity)]

    def _find_flaw(self, graph: InteractionGraph, record: Emit, text: str) -> str | None:
        if not text:
            return "blank"
        h = graph.history
        # Equal hashes of whole texts are taken for equal texts: no text has to be kept.
        if alike := [e for e in map(h.event, self._requests.get(hash(text), ())) if e is not None]:
            behind = provenance(graph, h.event_number(record.event))
            echoed = [e for e in alike if e in behind.outside]
            if echoed and graph.run.session:  # of what is over it keeps too little to say so
                about = graph.problems.standing(behind)
                echoed = [e for e in echoed if not graph.sources_of(e).isdisjoint(about)]
            if echoed:
                return "echo"
        return "call" if text[0] == "{" and _is_call(text) else None

    def forget(self, graph: InteractionGraph) -> None:
        """Forget events unknown to the graph."""
        requests = {text: [*filter(graph.knows, events)] for text, events in self._requests.items()}
        self._requests = {text: events for text, events in requests.items() if events}


def _is_call(text: str) -> bool:
    try:
        call = loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(call, dict) and call.keys() in CALLS and isinstance(call["name"], str)


def describe(subject: Any, evidence: Any) -> str:
    """VOID in words."""
    return f"answer {name(subject['event'])} {IN_WORDS[evidence['how']]}"


def prove(paths: PathFinder, finding: Finding) -> Proof:
    """The path to the answer."""
    return "", (paths.path_to(finding.subject["event"]),)


class HealVoidAnswer(Healer):
    """Puts the reason beside the answer, and bounces the answer a single time."""

    recorded_as = "dig.detectors.patterns.no_answer.HealVoidAnswer"

    def __init__(self) -> None:
        """Begin with no bounce remembered."""
        self._bounced: set[tuple[str, ...]] = set()  # by submitter and what it was asked

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject the reason; bounce the answer, unless the agent was told before."""
        event = finding.subject["event"]
        submitter = graph.history.sender(graph.event(event).n) or ""
        about = submitter, *graph.asked_problems(event)
        note = f"This was submitted as the answer, but it {IN_WORDS[finding.evidence['how']]}. "
        if finding.severity != "error" or about in self._bounced or submitter not in graph.agents:
            yield Inject(event, note)
            return
        self._bounced.add(about)
        yield Reroute(event, note + "Submit the answer itself.", (submitter,))

    def forget(self, graph: InteractionGraph) -> None:
        """Forget bounces of answers to requests unknown to the graph."""
        self._bounced = {about for about in self._bounced if all(map(graph.knows, about[1:]))}
