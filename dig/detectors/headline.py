"""The headline of a failed run: the turn that raised, the moment, and the agents that never ran.

    headlines = Headlines()
    headlines.look(record)                      # every record
    headline = headlines.of(graph, finding)     # when a finding is raised

Each report of a run begins with the headline, unless the finding was mended or silenced.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from dig._util.frozen import frozen
from dig._util.ranges import RangeSet, union
from dig._util.text import counted, first_words, join_clauses, name
from dig.graph import records
from dig.graph.graph import InteractionGraph
from dig.graph.records import NEVER_RAN, Emit, End, FindingRow, IncidentRow, Record, base_name
from dig.graph.turns import starts_turn
from dig.graph.words import moment

from .finding import Finding

MOST_ERROR = 120
MOST_REMEMBERED = 1_000
"""The number of errors, and of requests, that are remembered."""
MOST_NAMED = 3

MODEL_CALLS = "MaxTurnsExceeded"
"""The error of OpenAI Agents at `max_turns`, which counts the calls of a model."""

_TYPED = re.compile(r"[A-Za-z_][\w.]*(: |\Z)")


@frozen
class Headline:
    """The sentence about a failed request, or about an answer without an agent's work.

    Attributes:
        stage: `request` or `answer`, the stage of the finding.
        event: The request or the answer; empty: the run as a whole.
        t: The logical time of the finding.
        us: The moment of the finding, in microseconds.
        says: The sentence.
        private: The sentence without the words of the error.
        activation: The activation that raised the error; ``None``: not known.
        error: The error; empty: not known.
    """

    stage: str
    event: str
    t: int
    us: int
    says: str
    private: str
    activation: str | None = None
    error: str = ""

    @property
    def exception(self) -> tuple[str, str]:
        """The type of the error, empty if the error begins with none, and the message."""
        kind, _, message = self.error.partition(": ")
        return (kind, message) if _TYPED.match(self.error) else ("", self.error)


class Headlines:
    """Follows the errors of a run, and makes the headline of a finding of FAIL."""

    def __init__(self) -> None:
        """Begin before the first record."""
        self._errors: dict[str, End] = {}  # by activation
        self._posed: dict[str, int] = {}  # request -> when it came, in microseconds
        self.never_ran: dict[str, str] = {}  # event -> the agent that it was taken back from
        self.awaited: dict[str, list[str]] = {}  # agent that never ran -> whom it waited for
        self._stopped: dict[str, None] = {}  # the requests at a limit of their budget
        self.asked_last = ""  # the latest message after that

    def look(self, record: Record) -> None:
        """Take note of an error, a request, or an agent without a turn."""
        if isinstance(record, End) and record.error is not None:
            _remember(self._errors, record.activation, record)
        elif isinstance(record, Emit) and record.by is None:
            _remember(self._posed, record.event, record.us)
        elif isinstance(record, Emit) and record.type != records.NOTICE:
            self.asked_last = record.event
        elif isinstance(record, IncidentRow) and record.what in (NEVER_RAN, records.BUDGET):
            detail = record.detail if isinstance(record.detail, Mapping) else {}
            events = detail.get("events")
            for event in events if isinstance(events, list | tuple) else ():
                _remember(self.never_ran, str(event), str(detail.get("agent")))
            if isinstance(detail.get("awaited"), list | tuple):
                agents = [*map(str, detail["awaited"])]
                _remember(self.awaited, base_name(str(detail.get("agent"))), agents)
            if detail.get("stage") == "stopped":
                _remember(self._stopped, str(detail.get("event")), None)

    def of(self, graph: InteractionGraph, finding: Finding | FindingRow) -> Headline | None:
        """Make the headline of a finding; ``None``: the finding is no reason for a headline.

        Args:
            graph: The graph of the run, to which the record of the finding was applied.
            finding: The finding; FAIL of the stages `request` and `answer` has a headline.
        """
        evidence, subject = finding.evidence, finding.subject
        if finding.pattern != "FAIL" or finding.stage not in ("request", "answer"):
            return None
        if not isinstance(evidence, Mapping) or not isinstance(subject, Mapping):
            return None
        listed = evidence.get("failed")
        failed = [*map(str, listed)] if isinstance(listed, list | tuple) else []
        last = failed[-1] if failed else None
        origin = self._origin(evidence.get("activation") or last, graph)
        end = self._errors.get(origin or "")
        error = str((end.error if end else evidence.get("error")) or "")
        words = first_words(error, MOST_ERROR)
        if finding.stage == "answer":
            sentence = partial(_answer, graph, failed, origin)
        else:
            sentence = partial(self._request, graph, finding, origin)
        # Reports that leave the machine have no words of errors, which may quote payloads.
        says, private = sentence(words), sentence("")
        event, stage = str(subject.get("event") or ""), str(finding.stage)
        return Headline(stage, event, finding.t, finding.us, says, private, origin, error)

    @staticmethod
    def is_conductor(
        team: Collection[str], agent: str, end: End | None, limit: Mapping[str, Any]
    ) -> bool:
        """Whether the turn of an agent outside the team only ended a chat at this limit."""
        is_end = end is not None and end.cancelled and end.error == limit.get("error")
        # Of a team whose agents all join later nobody is known to stand outside.
        return is_end and bool(team) and base_name(agent) not in team

    def _origin(self, activation: object, graph: InteractionGraph) -> str | None:
        """Follow an error from activation to activation to the first one."""
        # Frameworks wrap the error of a called agent, so the reader wants the first of a chain.
        while isinstance(activation, str):
            end = self._errors.get(activation)
            if end is None or end.because is None:
                return activation if graph.history.activation(activation) is not None else None
            activation = end.because
        return None

    def _request(
        self, graph: InteractionGraph, finding: Finding | FindingRow, origin: str | None, words: str
    ) -> str:
        sources = graph.sources_about(finding.subject)
        noun = "request" if graph.run.session else "run"
        at = f"at {moment(finding.us)}"
        error = f": {words}" if words else ""
        cause = finding.evidence.get("how")
        # A budget does not count activations, so their number would only contradict its turns.
        if cause == "limit" and str(finding.subject.get("event")) in self._stopped:
            stop = words.partition(": ")[2] or f"the {noun} ended at the limit of its budget"
            n, agent = graph.history.event(self.asked_last), self.never_ran.get(self.asked_last)
            if agent and n is not None and sources and not graph.sources_of(n).isdisjoint(sources):
                text = f"`{name(base_name(agent))}`"
                stop += f", but asked {text} again" if words else f"; {text} was asked again"
            return f"{stop}, {at}"
        if cause == "limit":
            h = graph.history
            about = graph.activations_about(sources)
            ends = {v: self._errors.get(h.activation_ids[v]) for v in about}
            is_conductor = partial(self.is_conductor, graph.run.agents, limit=finding.evidence)
            turns = [v for v in about if not is_conductor(h.agent(v), ends[v])]
            turns = [v for v in turns if not is_framework_node(h.agent(v))]
            agents = [*dict.fromkeys(base_name(h.agent(v)) for v in turns)]
            if graph.run.session:
                turns = [v for v in turns if starts_turn(h, v)]
            number = counted(len(turns), "turn") + (f" of {list_agents(agents)}" if agents else "")
            error += ", which counts model calls" if words.startswith(MODEL_CALLS) else ""
            return f"the {noun} ended at a limit of its framework{error}, after {number}"
        if cause == "timeout":
            running = [a for a in graph.activations if graph.concerns(a, sources)]
            h = graph.history
            off = [h.activation_ids[v] for v in graph.activations_about(sources)]
            running += [a for a in off if a in self._errors and self._errors[a].cancelled]
            working = dict.fromkeys(acting_agent(graph, activation) or "" for activation in running)
            agents = [agent for agent in working if not is_framework_node(agent)]
            were = "was" if len(agents) == 1 else "were"
            at_work = f"; {list_agents(agents)} {were} still working" if agents else ""
            length = finding.us - self._posed.get(str(finding.subject.get("event")), 0)
            return f"the {noun} was out of time after {moment(length)}{at_work}"
        if origin is None:
            return f"the {noun} ended with an error{error}, {at}"
        # On the clock of the picture, where a reader looks for the turn.
        raised_at = moment((self._errors.get(origin) or finding).us)
        text = f"`{name(acting_agent(graph, origin))}` {_did(words)}, at {raised_at}"
        text += f", and the {noun} ended {at}" if raised_at != moment(finding.us) else ""
        idle = never_started(graph, sources, self.never_ran)
        return text + (f"; {list_agents(idle)} never ran" if idle else "")


def _answer(graph: InteractionGraph, failed: Sequence[str], origin: str | None, words: str) -> str:
    agents = [*dict.fromkeys(filter(None, (acting_agent(graph, turn) for turn in failed)))]
    did, agent = _did(words), acting_agent(graph, origin) or "an agent"
    last = f", which {did}" if len(agents) < 2 else f"; `{name(agent)}` {did}"
    return f"the answer was given without the work of {list_agents(agents or [agent])}{last}"


def standing_headline(
    findings: Sequence[Finding], headlines: Sequence[Headline | None], mended: Sequence[bool]
) -> Headline | None:
    """The headline of a whole run.

    Args:
        findings: All findings of the run.
        headlines: For each finding its headline, if there is one.
        mended: For each finding whether it was mended.
    """
    standing: list[Headline] = []
    has_errors = False
    for finding, headline, is_mended in zip(findings, headlines, mended, strict=True):
        if finding.silenced is None and not is_mended:
            if headline is not None:
                standing.append(headline)
            has_errors |= headline is None and finding.severity == "error"
    return worst(standing, has_errors=has_errors)


def worst(headlines: Sequence[Headline], *, has_errors: bool) -> Headline | None:
    """Choose a run's headline: the latest failed request, else the latest answer without work.

    Args:
        headlines: The headlines that are neither mended nor silenced, in order.
        has_errors: Whether another error stands, which is worse than such an answer.
    """
    # A request without an answer is the worst that can happen to a user, so it comes first.
    requests = [headline for headline in headlines if headline.stage == "request"]
    answers = [headline for headline in headlines if headline.stage == "answer" and not has_errors]
    return next(reversed(requests or answers), None)


def answered_by(graph: InteractionGraph, answer: str) -> list[str]:
    """The events from outside behind an answer, or behind the memory of its agent."""
    h, n = graph.history, graph.history.event(answer)
    v = -1 if n is None else h.generator[n]
    if v < 0:
        return []
    turns = [v]
    # An agent with a memory may answer from any earlier turn, not only from this turn's inputs.
    if graph.run.memory or not h.inputs(v):
        turns += [w for w in h.ended_by.get(h.agent_of[v], ()) if w < v]
    return graph.source_ids(union([graph.sources_of(e) for w in turns for e in h.inputs(w)]))


def is_unanswered(graph: InteractionGraph, request: str) -> bool:
    """Whether the graph knows an event from outside, and no answer to it."""
    sources = graph.sources_about({"event": request})
    return bool(sources and graph.problems.unanswered_sources(sources))


def only_waited(graph: InteractionGraph | None, end: End) -> bool:
    """Whether a cancelled turn only waited for a failed or cancelled turn."""
    h = graph.history if graph is not None else None
    numbers = [] if h is None else [h.event(fate.event) for fate in end.fates]
    makers = [h.generator[n] for n in numbers if h is not None and n is not None]
    return any(v >= 0 and h is not None and h.failed[v] for v in makers)


def never_started(
    graph: InteractionGraph, sources: RangeSet | None, taken_back: Mapping[str, str]
) -> list[str]:
    """The agents with work about a request and without a turn about the request.

    Args:
        graph: The graph of the run.
        sources: The request, as source numbers; ``None``: the run as a whole.
        taken_back: Events that were taken back from an agent, with that agent.
    """
    h, recipients = graph.history, dict[str, None]()
    for event_id, agent in taken_back.items():
        n = h.event(event_id)
        if n is not None and (sources is None or not graph.sources_of(n).isdisjoint(sources)):
            recipients[base_name(agent)] = None
    for event in graph.live.values():
        is_left = event.work and not event.consumed and event.cause != "no_recipient"
        if is_left and (sources is None or not event.sources.isdisjoint(sources)):
            to = (*event.copies, *event.flight, *event.sent_to)
            recipients |= dict.fromkeys(map(base_name, to))
    if not recipients:
        return []
    for v in graph.activations_about(sources):
        recipients.pop(base_name(h.agent(v)), None)
    return list(recipients)


def is_framework_node(agent: str) -> bool:
    """Whether an agent is a node of the framework, such as `__start__`, and not of the team."""
    return agent.startswith("__") and agent.endswith("__")


def acting_agent(graph: InteractionGraph, activation: str | None) -> str | None:
    """The agent of an activation, without the number of an instance; ``None``: not known."""
    v = None if activation is None else graph.history.activation(activation)
    return None if v is None else base_name(graph.history.agent(v))


def _did(words: str) -> str:
    """The end of a failed turn, with the first words of the error; empty words are private."""
    if not words:
        return "ended with an error"
    return f"raised {words}" if _TYPED.match(words) else f"ended with an error: {words}"


def list_agents(agents: Iterable[str]) -> str:
    """The first agents, and the number of further ones."""
    return join_clauses([f"`{name(agent)}`" for agent in agents], MOST_NAMED)


def _remember(rows: dict[str, Any], key: str, value: Any) -> None:
    rows[key] = value
    if len(rows) > MOST_REMEMBERED:
        del rows[next(iter(rows))]
