"""Findings: occurrences of a failure pattern, with evidence and explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, get_args

from dig._util.html import MOST_ROWS, Cell, Faint, Hop, Way, table
from dig._util.text import anything, counted, name, one_line
from dig.graph.graph import InteractionGraph
from dig.graph.records import FindingRow, base_name

WATCHDOG: Final = "watchdog"
RETRY: Final = "retry"
JUDGE: Final = "judge"


def is_rivals(pattern: str) -> bool:
    """Whether a pattern is a rival's (`judge:ET`), not a detector's."""
    return pattern.partition(":")[0] in (JUDGE, WATCHDOG, RETRY) and ":" in pattern


Severity = Literal["error", "warning", "notice"]
"""The worth of a finding to a person. Errors and warnings that no policy silences are alarms."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)

MOST_PICTURES = 3
"""The most paths of an explanation that a notebook shows."""

MOST_EVIDENCE = 100
"""The number of items of a list that evidence keeps."""


@dataclass(frozen=True)
class Path:
    """A way through the graph.

    Attributes:
        nodes: The ids of the events and activations, in order of time.
        text: The nodes for people, cut in the middle if there are many.
        hops: The nodes with their agents, for a picture.
    """

    nodes: tuple[str, ...]
    text: str
    hops: tuple[Hop, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Explanation:
    """The reason for a finding; as text, sentences with the paths below.

    Attributes:
        text: One or two plain sentences.
        paths: The paths that prove the sentences.
        title: The finding: its severity, its name and its time.
        now: A sentence about the graph as it stands now, which may have grown since.
    """

    text: str
    paths: tuple[Path, ...] = ()
    title: str = field(default="", compare=False, repr=False)
    now: str = field(default="", compare=False, repr=False)

    @property
    def says(self) -> str:
        """All sentences."""
        return f"{self.text} {self.now}".rstrip()

    def _repr_html_(self) -> str:
        rows: list[Sequence[Cell]] = [("why", self.says)]
        for path in self.paths[:MOST_PICTURES]:
            rows.append(("path", path.text))
            rows += [("", Way(path.hops, path.text))] if path.hops else []
        return table(self.title, rows)

    def __str__(self) -> str:
        return "\n".join([self.says, *(f"  path: {path}" for path in self.paths)])


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure pattern, seen once (paper, table 1).

    Attributes:
        pattern: The short name of the pattern, `ET` for instance.
        stage: The stage in the life of an event at which it was seen, for patterns that have
            stages.
        t: Logical time: the record that raised it, or the last one before its moment.
        us: The moment, in microseconds since the run began.
        subject: The ids that the finding is about.
        evidence: The ids that prove it; of long lists the first 100 items, and `more` is true.
        severity: `error`, `warning` or `notice`; by default a warning.
        silenced: The reason why a policy makes no alarm of the finding; ``None``: it does not.
        why: Explains the finding, for `dig.explain`; ``None``: the pattern in the table does, else
            the paths to the events and activations in subject and evidence.
        key: The pattern and the stage; of ET, the types of the missing events. Usual findings of
            a team are counted by it; the watch sets it.
        explains: Explains the finding by the graph of its run. The findings of a result and of a
            `RecordedRun` have it, so that a notebook shows their paths.
    """

    pattern: str
    t: int
    us: int
    subject: dict[str, Any]
    evidence: dict[str, Any]
    stage: str | None = None
    severity: Severity = "warning"
    silenced: str | None = None
    why: Callable[[InteractionGraph, Finding], Explanation] | None = field(
        default=None, compare=False, repr=False
    )

    key: str = field(default="", compare=False, repr=False)
    explains: Callable[[Finding], Explanation] | None = field(
        default=None, compare=False, repr=False
    )

    def _repr_html_(self) -> str:
        # A finding alone knows no graph; results and recorded runs attach one (`in_graph`).
        if self.explains is not None:
            return self.explains(self)._repr_html_()
        hint = "dig.explain(graph, finding) shows it, by the graph in which this was found"
        rows = [("why", anything(self.subject, self.evidence)), ("path", Faint(hint))]
        return table(f"{self.severity}: {name(self.pattern)} at {self.ts:.1f} s", rows)

    @property
    def ts(self) -> float:
        """The moment, in seconds since the run began."""
        return self.us / 1_000_000

    @property
    def is_alarm(self) -> bool:
        """Whether the finding deserves attention: an error or a warning, not silenced."""
        return self.severity != "notice" and self.silenced is None

    def row(self) -> dict[str, Any]:
        """The JSON object of the finding, as `digmon check --json` prints it."""
        return {
            "pattern": self.pattern,
            "severity": self.severity,
            "stage": self.stage,
            "t": self.t,
            "ts": self.ts,
            "subject": self.subject,
            "evidence": self.evidence,
        }


def bound_evidence(evidence: dict[str, Any]) -> dict[str, Any]:
    """Cut each list of evidence to 100 items; `more` marks evidence with cut lists."""
    first, is_cut = _cut(evidence)
    return {**first, "more": True} if is_cut else evidence


def _cut(value: Any) -> tuple[Any, bool]:
    """Cut the lists in a value; return also whether a list was longer."""
    if isinstance(value, dict):
        parts = {key: _cut(part) for key, part in value.items()}
        return {key: part for key, (part, _) in parts.items()}, any(c for _, c in parts.values())
    if isinstance(value, list | tuple):
        items = [_cut(item) for item in value[:MOST_EVIDENCE]]
        is_cut = len(value) > MOST_EVIDENCE or any(cut for _, cut in items)
        return [item for item, _ in items], is_cut
    return value, False


PAST = {("LIVELOCK", "origin"), ("LOOP", "last")}
"""The evidence, by pattern, that names history of which a session may have let go."""


def concerned_nodes(graph: InteractionGraph, finding: Finding) -> tuple[list[str], list[str]]:
    """The events in a finding; and the agents in the finding, or behind the events.

    Both are in the order in which the finding names them. `PAST` evidence is left out, and so are
    names of agents that have left, so that a session that lets go of history, and one that keeps
    it, say the same.

    Args:
        graph: The graph that it was found in; it may have grown since.
        finding: The finding.
    """
    h, evidence = graph.history, finding.evidence
    events, agents = list[str](), list[str | None]()
    items = evidence.items() if isinstance(evidence, Mapping) else [("", evidence)]
    # A session evicts past evidence at some time: names from there would make a check of the
    # whole trace differ from the live run.
    parts = [part for key, part in items if (finding.pattern, key) not in PAST]
    waiting = [key for part in parts if isinstance(part, Mapping) for key in part]
    for node in dict.fromkeys([*texts_in(finding.subject), *texts_in(parts), *waiting]):
        n, v = h.event(node), h.activation(node)
        if n is not None:
            events.append(node)
            agents.append(h.sender(n))
        elif v is not None:
            agents.append(h.agent(v))
        elif node in graph.agents:
            agents.append(node)
    return events, [agent for agent in dict.fromkeys(agents) if agent is not None]


def responsible_agents(graph: InteractionGraph, finding: Finding | FindingRow) -> list[str]:
    """The agents of a finding who acted, or who wait; instances count as their agent.

    The evidence names them, or else the subject does: the agent of an activation, or the sender of
    an event.
    """
    subject, evidence = finding.subject, finding.evidence
    if not (isinstance(subject, Mapping) and isinstance(evidence, Mapping)):
        return []
    if evidence.get("cause") == "discarded" and graph.knows(str(subject.get("event"))):
        # The agent that threw work away has lost it; the sender has not.
        by = getattr(graph.event(str(subject["event"])), "discarded_by", None)
        if by:
            return [*dict.fromkeys(map(base_name, by))]
    for key in ("agent", "agents", "path", "waiting", "last"):
        named = evidence.get(key)
        if key == "last":
            named = named or subject.get("activation") or subject.get("event")
        texts = [named] if isinstance(named, str) else named
        if not isinstance(texts, Iterable):
            continue
        agents = [_agent_of(graph, text) for text in texts if isinstance(text, str)]
        if any(agents):
            return [*dict.fromkeys(base_name(agent) for agent in agents if agent)]
    return []


def _agent_of(graph: InteractionGraph, text: str) -> str | None:
    """The agent of that name, of that activation, or that sent that event."""
    h = graph.history
    n, v = h.event(text), h.activation(text)
    if n is not None:
        return h.sender(n)
    if v is not None:
        return h.agent(v)
    return text if text in graph.agents or text in h.agents else None


class FindingKind(NamedTuple):
    """The common part of equal findings in different runs.

    Attributes:
        pattern, stage: As in the finding.
        agents: The agents that it concerns, sorted.
        types: The types of the events that it concerns, sorted.
    """

    pattern: str
    stage: str | None
    agents: tuple[str, ...]
    types: tuple[str, ...]

    @classmethod
    def of(cls, graph: InteractionGraph, finding: Finding) -> FindingKind:
        """The kind of a finding; the graph knows all events in the finding.

        An instance (`NAME#2`) counts as its agent, and no id is kept, so findings of different
        runs can be compared.
        """
        h, (events, agents) = graph.history, concerned_nodes(graph, finding)
        types = {h.types.names[h.type_of[h.event_number(event)]] for event in events}
        names = {base_name(agent) for agent in agents}
        return cls(finding.pattern, finding.stage, tuple(sorted(names)), tuple(sorted(types)))

    def has(self, other: FindingKind) -> bool:
        """Whether all agents and types of another kind of the same pattern are in this kind."""
        return (
            (self.pattern, self.stage) == (other.pattern, other.stage)
            and {*other.agents} <= {*self.agents}
            and {*other.types} <= {*self.types}
        )


def texts_in(value: Any, *, has_keys: bool = False) -> Iterator[str]:
    """All texts in a subject or in evidence; keys are left out, unless they are asked for."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in (*(value if has_keys else ()), *value.values()):
            yield from texts_in(part, has_keys=has_keys)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts_in(part, has_keys=has_keys)


def findings_html(findings: Sequence[Finding]) -> str:
    """Show findings as a table: severity, moment, subject and evidence."""
    rows = [_row(finding) for finding in findings[:MOST_ROWS]]
    if len(findings) > MOST_ROWS:
        rows.append((f"and {len(findings) - MOST_ROWS:,} more",))
    return table(counted(len(findings), "finding"), rows)


def _row(finding: Finding) -> Sequence[Cell]:
    cells = [finding.severity, name(finding.pattern), f"{finding.ts:.1f} s"]
    cells.append(anything(finding.subject, finding.evidence))
    if finding.silenced is None:
        return cells
    return [Faint(cell) for cell in (*cells, f"silenced: {one_line(finding.silenced)}")]
