"""FAIL, failed turn: an agent fails, and an answer or a request may suffer.

Not in the paper: a turn that fails keeps its inputs, and to the graph it only waits. Three stages:
a `turn` fails; an `answer` is submitted although the last that another agent did for it was to
fail, and nobody made that good; a `request` ends without an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from dig._util.ranges import NOTHING, RangeSet, union
from dig._util.text import name, names, one_line
from dig.detectors.finding import Finding
from dig.detectors.interventions import Inject, Intervention
from dig.detectors.notes import quote_all
from dig.detectors.paths import PathFinder, Proof
from dig.detectors.protocols import Detector, Healer
from dig.graph.coverage import provenance
from dig.graph.graph import InteractionGraph
from dig.graph.records import ANSWERED, ERRED, UNANSWERED, Emit, End, IncidentRow, Record, base_name
from dig.graph.state import ActivationState

from .repeats import Contents, contents_of

MOST_CHARACTERS = 200
"""The characters of an error that stand in the evidence."""


class _Failure:
    """A failed activation, until other agents have done the work.

    Attributes:
        id: The activation; agent: its agent, without the number of an instance.
        t: The logical time of its end.
        work: The work events that it saw, with what they say.
        makers: The other agents that have done this work since; latest: the last activation that
            has.
    """

    __slots__ = ("agent", "id", "latest", "makers", "t", "work")

    def __init__(self, name: str, agent: str, t: int, work: dict[str, int | None]) -> None:
        self.id = name
        self.agent = agent
        self.t = t
        self.work = work
        self.makers: set[str] = set()
        self.latest = ""

    def is_done(self, agent: str, activation: str) -> bool:
        """Whether a third agent has done the work, or the submitting activation."""
        return self.latest == activation or not self.makers <= {agent}


class _Latest(NamedTuple):
    """The latest end of an agent's activations about some sources, with any failure."""

    sources: RangeSet
    failure: _Failure | None


class FailedTurn(Detector):
    """Remembers failures of agents without a good turn of the same agent later."""

    pattern = "FAIL"
    recorded_as = "dig.detectors.patterns.failed_turn.FailedTurn"
    kinds = (Emit, ERRED, ANSWERED, UNANSWERED)

    def __init__(self) -> None:
        """Begin with no failure."""
        self._contents: Contents | None = None
        self._ends: dict[str, list[_Latest]] = {}  # by agent, from its first failure on
        self._by_work: dict[str | int, dict[_Failure, None]] = {}  # by a work event or its content

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        """Raise FAIL for a turn, for an answer, or for a request."""
        if type(record) is Emit:
            if self._contents is None:
                self._contents = contents_of(graph)
            self._contents.note(graph, record)
            return self._at_answer(graph, record) if record.final and self._ends else ()
        if type(record) is End:
            return self._at_end(graph, record) if self._ends or record.error else ()
        return _at_failed_request(record) if type(record) is IncidentRow else ()

    def _at_end(self, graph: InteractionGraph, record: End) -> Iterable[Finding]:
        ended = graph.ended
        if record.because is not None or record.cancelled:
            return ()
        agent, session = base_name(ended.agent), graph.run.session
        sources = union([event.sources for event in ended.inputs]) if session else NOTHING
        if record.error is None:
            self._make_good(graph, ended, agent)
            if agent in self._ends and (sources or not session):
                self._follow(agent, _Latest(sources, None), session)
            return ()
        work = [event.id for event in ended.inputs if event.work]
        contents = {event: contents_of(graph).get(event) for event in work}
        failure = _Failure(ended.id, agent, record.t, contents)
        if sources or not session:
            self._follow(agent, _Latest(sources, failure), session)
            for key in _keys(contents):
                self._by_work.setdefault(key, {})[failure] = None
        evidence = {"agent": ended.agent, "error": record.error[:MOST_CHARACTERS]}
        subject = {"activation": ended.id}
        return [Finding("FAIL", record.t, record.us, subject, evidence, "turn", "notice")]

    def _follow(self, agent: str, latest: _Latest, session: bool) -> None:
        """Take note of an agent's latest end, in place of older ends about its sources."""
        # A later end hides earlier ones only as far as it is about the same problems.
        ends = [
            _Latest(before.sources.minus(latest.sources), before.failure)
            for before in (self._ends.get(agent, ()) if session else ())
        ]
        self._keep(agent, [*(before for before in ends if before.sources), latest])

    def _keep(self, agent: str, ends: list[_Latest]) -> None:
        """Remember an agent's ends, from the first failure on."""
        while ends and ends[0].failure is None:
            del ends[0]
        remaining = {end.failure for end in ends}
        for before in self._ends.pop(agent, ()):
            if before.failure is not None and before.failure not in remaining:
                for key in _keys(before.failure.work):
                    failures = self._by_work.get(key, {})
                    failures.pop(before.failure, None)
                    if not failures:
                        self._by_work.pop(key, None)
        if ends:
            self._ends[agent] = ends

    def _make_good(self, graph: InteractionGraph, ended: ActivationState, agent: str) -> None:
        """Take note of work that others had failed to do."""
        contents = contents_of(graph)
        keys = _keys({e.id: contents.get(e.id) for e in ended.consumed if e.work})
        start = graph.history.t_start[ended.n]
        for failure in {f: None for key in keys for f in self._by_work.get(key, ())}:
            is_all = all(e in keys or content in keys for e, content in failure.work.items())
            if is_all and failure.t < start and failure.agent != agent:
                failure.makers.add(agent)
                failure.latest = ended.id

    def _at_answer(self, graph: InteractionGraph, record: Emit) -> Iterable[Finding]:
        own, submitter, requests = base_name(graph.ended.agent), graph.ended.id, NOTHING
        if graph.run.session:
            n = graph.history.event_number(record.event)
            requests = graph.problems.standing(provenance(graph, n))
        failed: list[_Failure] = []
        for agent, ends in self._ends.items():
            for end in reversed(ends) if agent != own else ():
                if graph.run.session and end.sources.isdisjoint(requests):
                    continue
                if end.failure is not None and not end.failure.is_done(own, submitter):
                    failed.append(end.failure)
                break
        if not failed:
            return ()
        # By agent so far; evidence is in order of time.
        failed.sort(key=lambda failure: failure.t)
        subject, evidence = {"event": record.event}, {"failed": [failure.id for failure in failed]}
        return [Finding("FAIL", record.t, record.us, subject, evidence, "answer", "warning")]

    def awaited(self) -> Iterable[str]:
        """The failed activations that an answer may still lack."""
        return [end.failure.id for ends in self._ends.values() for end in ends if end.failure]

    def forget(self, graph: InteractionGraph) -> None:
        """Forget failures about answered problems, and renumber the sources."""
        contents_of(graph).forget(graph)
        if graph.run.session:
            for agent, ends in [*self._ends.items()]:
                standing = [
                    (graph.problems.unanswered_sources(graph.renumber_sources(s)), failure)
                    for s, failure in ends
                ]
                self._keep(agent, [_Latest(*end) for end in standing if end[0]])


def _keys(work: dict[str, int | None]) -> set[str | int]:
    """The work events and their contents, if the contents count."""
    return {*work, *(content for content in work.values() if content is not None)}


def _at_failed_request(record: IncidentRow) -> Iterable[Finding]:
    detail = record.detail
    event, error = detail.get("event"), detail.get("error")
    evidence = {
        "how": detail["how"],
        "activation": detail.get("activation"),
        "error": error if error is None else error[:MOST_CHARACTERS],
    }
    subject = {} if event is None else {"event": event}
    return [Finding("FAIL", record.t, record.us, subject, evidence, "request", "error")]


def describe(subject: Any, evidence: Any) -> str:
    """FAIL in words."""
    if "failed" in evidence:
        failed = names(evidence["failed"])
        return f"answer {name(subject['event'])} does without what failed: {failed}"
    words = evidence["error"] or ""
    if len(words) == MOST_CHARACTERS:  # cut when it was raised
        words = f"{words.rpartition(' ')[0] or words} ..."
    error = f": {one_line(words)}" if words else ""
    if "agent" in evidence:
        agent = name(evidence["agent"])
        return f"activation {name(subject['activation'])} of {agent} failed{error}"
    ending = {"error": "by an error", "limit": "at a limit", "timeout": "by a timeout"}
    request = f"request {name(subject['event'])}" if "event" in subject else "a request"
    return f"{request} ended without an answer, {ending[evidence['how']]}{error}"


def prove(paths: PathFinder, finding: Finding) -> Proof:
    """The paths to the failed activations, and to the answer or the request.

    A limit or a timeout has no activation to blame, so the path leads to the last one there was.
    """
    subject, evidence = finding.subject, finding.evidence
    nodes = [*evidence.get("failed", ()), evidence.get("activation"), *subject.values()]
    if "how" in evidence and evidence.get("activation") is None:
        nodes = [paths.latest_about(subject) or subject.get("event")]
    proofs = paths.to_all(node for node in dict.fromkeys(nodes) if node is not None)
    longer = {path.nodes[:end] for path in proofs for end in range(len(path.nodes))}
    return "", tuple(dict.fromkeys(path for path in proofs if path.nodes not in longer))


class HealFailedTurn(Healer):
    """Names the failed agents beside an answer."""

    recorded_as = "dig.detectors.patterns.failed_turn.HealFailedTurn"

    def can_heal(self, finding: Finding) -> bool:
        """Whether the finding is about an answer: only an answer can carry a note."""
        return finding.stage == "answer"

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject the failed agents and their activations."""
        h = graph.history
        failed = {name: h.activation(name) for name in finding.evidence["failed"]}
        agents = dict.fromkeys(h.agent(v) for v in failed.values() if v is not None)
        note = (
            f"This was submitted although the last that {quote_all([*agents])} did for it was to "
            f"fail ({quote_all([*failed])}), and nobody has done that work since. A part may be "
            "missing."
        )
        yield Inject(finding.subject["event"], note)
