"""Findings in words: plain ASCII of ours around safe text from outside.

A finding has, from short to long: a `pattern_label`, a `finding_heading`, a `finding_text`, a
`finding_line` (both together), and what `explain` says with paths.

A trace may hold anything where a user's detectors wrote, so no function here relies on the shape of
a record: an unknown part is shown as it is, on one line and cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal, NamedTuple

from dig._util.text import anything, counted, cut, join_clauses, name, names, one_line, safe_text
from dig.errors import PART_ERRORS
from dig.graph.graph import InteractionGraph
from dig.graph.records import HANDOFF, FindingRow, Limits, base_name
from dig.graph.state import EventState
from dig.graph.words import MOST_NAMED, seconds

from .finding import MOST_EVIDENCE, SEVERITIES, Explanation, Finding, Severity, texts_in
from .notes import nobody_takes
from .paths import MOST_PATHS, PathFinder
from .patterns import BY_NAME, severity_of

SILENCED: Literal["silenced"] = "silenced"
Worth = Severity | Literal["silenced"]
"""A severity or, of a finding that a policy silences, `silenced`."""

WORTHS: tuple[Worth, ...] = (*SEVERITIES, SILENCED)


def finding_line(
    finding: Finding, graph: InteractionGraph | None = None, *, has_paths: bool = True
) -> str:
    """A finding with its heading and its text.

    Args:
        finding: The finding.
        graph: The graph in which it was raised, to explain the finding and list the paths that
            prove it, in further lines; ``None``: its description, in one line.
        has_paths: Whether to list the paths; without them, it is the description in one line.
    """
    if graph is None or not has_paths:
        text = finding_text(finding, graph)
    else:
        text = safe_text(str(explain_safely(graph, finding)))
    aside = f" ({silenced_text(finding)})" if finding.silenced is not None else ""
    return f"{finding_heading(finding)}: {text}{aside}"


def explain(graph: InteractionGraph, finding: Finding) -> Explanation:
    """Explain a finding in one or two sentences, with paths as proof.

    Args:
        graph: The graph in which the finding was raised; it may have grown since.
        finding: The finding. If a user's detector raised it without a `why`, it is explained by
            the paths to the events and activations that it names.
    """
    now = [_idle_text(graph, finding) if finding.pattern == "ET" else "", _unsent(graph, finding)]
    text = " ".join(filter(None, now))
    return replace(_explanation(graph, finding), title=_title(finding), now=text)


def explain_safely(graph: InteractionGraph, finding: Finding) -> Explanation:
    """Explain a finding as `explain` does; if a user's code raises, describe the finding."""
    try:
        return explain(graph, finding)
    except PART_ERRORS as error:  # a user's own code, or a row of a shape of its own
        failed = f"its explanation raised {one_line(repr(error))}"
        return Explanation(f"{finding_text(finding)} ({failed})", title=_title(finding))


def _explanation(graph: InteractionGraph, finding: Finding) -> Explanation:
    if finding.why is not None:
        return finding.why(graph, finding)
    # A user's detector may raise a pattern of ours with evidence of another shape.
    pattern = BY_NAME.get(finding.pattern)
    if pattern is not None:
        try:
            return pattern.explain(graph, finding)
        except Exception:  # the evidence is of a user's detector of the same name
            pass
    texts = dict.fromkeys([*texts_in(finding.subject), *texts_in(finding.evidence)])
    # Evidence may hold any text; only the ids of this graph lead to a path.
    ids = [text for text in texts if graph.history.is_taken(text)]
    paths = PathFinder(graph, finding).to_all(ids)
    return Explanation(anything(finding.subject, finding.evidence), paths)


def _unsent(graph: InteractionGraph, finding: Finding) -> str:
    """The missing work of OE or ET without a recipient, in a sentence."""
    named = texts_in((finding.subject, finding.evidence)) if finding.pattern in ("ET", "OE") else ()
    events = filter(graph.knows, named)
    reasons = dict.fromkeys(filter(None, (nobody_takes(graph, event) for event in events)))
    return f"Work was sent to nobody: {'; '.join(reasons)}." if reasons else ""


def _idle_text(graph: InteractionGraph, finding: Finding) -> str:
    """The idle agents in front of missing work, in sentences."""
    if graph.has_evicted:  # an agent whose turns are evicted did run
        return ""
    h, sentences = graph.history, dict[str, None]()
    for event in map(graph.event, filter(graph.knows, texts_in(finding.evidence))):
        idle = [name(agent) for agent in (*event.copies, *event.flight) if agent not in h.agents]
        if idle:
            sender = h.sender(event.n)
            by = "" if sender is None else f"to which {name(sender)} sent it, and "
            place = "lies in front of" if event.copies else "is on its way to"
            says = f"{name(event.id)} {place} {names(idle)}, {by}which has not been started."
            sentences[says] = None
    return " ".join([*sentences][:MOST_PATHS])


def in_graph(graph: InteractionGraph, finding: Finding) -> Finding:
    """Attach the graph to a finding, so a notebook shows the finding with its paths."""
    return replace(finding, explains=partial(explain_safely, graph))


def recorded_finding(row: Finding | FindingRow) -> Finding:
    """The finding in a row of a trace."""
    key = f"{row.pattern} {row.stage}" if row.stage else str(row.pattern)
    return Finding(
        str(row.pattern), row.t, row.us, row.subject, row.evidence, row.stage,
        severity_of(row), row.silenced, key=key,
    )  # fmt: skip


def finding_heading(finding: Finding) -> str:
    """The severity, the pattern and the moment of a finding."""
    return f"{worth(finding)} {pattern_label(finding)} {_moment_text(finding)}"


def _title(finding: Finding) -> str:
    """The heading of a finding with the name of the pattern spelled out."""
    pattern, label = BY_NAME.get(finding.pattern), pattern_label(finding)
    title = f"{pattern.title} ({label})" if pattern else label
    return f"{worth(finding)}: {title} {_moment_text(finding)}"


def _moment_text(finding: Finding) -> str:
    return f"at {seconds(finding.us)} (record {finding.t})"


def worth(finding: Finding | FindingRow) -> Worth:
    """The severity of a finding, or `silenced` if a policy silences the finding."""
    return SILENCED if finding.silenced is not None else severity_of(finding)


def counts_text(counts: Mapping[str, int]) -> str:
    """The number of findings of each worth: `2 errors, 1 notice, 3 silenced`."""
    parts = [counted(counts[severity], severity) for severity in SEVERITIES if counts.get(severity)]
    if counts.get(SILENCED):
        parts.append(f"{counts[SILENCED]:,} silenced")
    return ", ".join(parts)


def pattern_label(finding: Finding | FindingRow) -> str:
    """The short name of a finding's pattern, with the stage: `FAIL turn`."""
    stage = f" {name(finding.stage)}" if finding.stage is not None else ""
    return name(finding.pattern) + stage


def finding_text(finding: Finding | FindingRow, graph: InteractionGraph | None = None) -> str:
    """The description of a finding, without the pattern and the moment.

    Args:
        finding: The finding.
        graph: The graph of its run, which may say more; ``None``: the evidence has to do.
    """
    pattern = BY_NAME.get(str(finding.pattern))
    try:
        text = pattern.text(finding, graph) if pattern else None
    except (AttributeError, KeyError, TypeError):  # of a user's detector of the same name
        text = None
    # The lists are cut when a finding is raised, so the reader is told that more were concerned.
    cut = isinstance(finding.evidence, Mapping) and finding.evidence.get("more") is True
    more = f" (of long lists, {MOST_EVIDENCE} are kept)" if cut else ""
    return one_line(text or anything(finding.subject, finding.evidence)) + more


def pattern_title(pattern: object) -> str:
    """The name of a pattern in words, with the short name: `deadlock (DL)`."""
    row = BY_NAME.get(str(pattern))
    return f"{row.title} ({row.name})" if row else name(pattern)


def plain_text(finding: Finding | FindingRow, limits: Limits, agents: Mapping[str, Any]) -> str:
    """Describe a finding and its agents for a reader new to graphs.

    Args:
        finding: The finding.
        limits: The thresholds of its run.
        agents: The names of the run's agents.
    """
    pattern = BY_NAME.get(str(finding.pattern))
    if pattern is None:
        return "a detector of the user's own raised it"
    evidence = finding.evidence
    waiting = evidence.get("waiting") if isinstance(evidence, Mapping) else None
    named = list(waiting) if isinstance(waiting, Mapping) else []
    named += [text for text in texts_in((finding.subject, evidence)) if text in agents]
    team = cut([name(agent) for agent in dict.fromkeys(named)], most=MOST_NAMED)
    return pattern.plain.format_map(asdict(limits)) + (f" ({team})" if team else "")


def silenced_text(finding: Finding | FindingRow) -> str:
    """The reason why a policy silences a finding; empty: the finding is not silenced."""
    if finding.silenced is None:
        return ""
    return f"silenced: {one_line(finding.silenced) or 'no reason is given'}"


# --- lost and missing work ---


_LOSSES = {
    "no_recipient": "sent to nobody who was there",
    "left": "lost when {} left",
    "expired": "lost, since it was not delivered in time",
}
"""By cause: the way in which an event was lost."""


def loss_text(graph: InteractionGraph, event: str, them: str = "") -> str:
    """The loss of an event; empty: the event is not lost, or not known any more.

    Args:
        graph: The graph of the run.
        event: The event.
        them: `it` or `them`, where the sentence before has named the event, or several such events.
    """
    state = graph.event(event) if graph.knows(event) else None
    if state is None or state.cause is None:
        return ""
    sender = graph.history.sender(state.n)
    work = f"a message of {name(base_name(sender))}" if sender else "a request from outside"
    if state.cause != "discarded":
        absent = [agent for agent in state.sent_to if agent not in graph.present]
        loss = _LOSSES.get(state.cause, "lost").format(cut(_agents(absent)) or "an agent")
        return f"they were {loss}" if them == "them" else f"{them or work} was {loss}"
    agents = _agents(state.discarded_by)
    work = "a message of its own" if sender and agents == _agents([sender]) else work
    return f"{cut(agents, most=MOST_NAMED)} threw {them or work} away"


def missing_text(
    graph: InteractionGraph, submitter: str, open_work: Counter[str], unread: Counter[str],
    uncovered: Any,
) -> str:  # fmt: skip
    """The missing work of an answer: the place, or the agents; empty: none is missing.

    Args:
        graph: The graph of the run.
        submitter: The agent of the answer.
        open_work: The number of open messages in front of each agent.
        unread: The number of unread messages in front of the submitter, by sender.
        uncovered: The work that is not open and not in the answer, as the evidence of ET has it.
    """
    if open_work:
        others = open_work - Counter({submitter: unread.total()})
        elsewhere = f"{_still(others)} in front of {join_clauses([*others], MOST_NAMED)}"
        agents = join_clauses([name(agent) for agent in unread if agent], MOST_NAMED)
        own = f"{_still(unread)} unread in front of {submitter}{f' (from {agents})' * bool(agents)}"
        return f", while {join_clauses([elsewhere] * bool(others) + [own] * bool(unread))}"
    ids = [*map(str, uncovered)] if isinstance(uncovered, Sequence) else []
    numbers = [n for event in ids if (n := graph.history.event(event)) is not None]
    agents = cut(_agents(filter(None, map(graph.history.sender, numbers))), most=MOST_NAMED)
    if not agents:
        return ""
    losses = {loss_text(graph, event, "it" if len(ids) == 1 else "them") for event in ids}
    loss = f" ({losses.pop()})" if len(losses) == 1 and losses != {""} else ""
    return f", without the work on {counted(len(numbers), 'message')} of {agents}{loss}"


def count_open(graph: InteractionGraph, events: Any) -> Counter[str]:
    """The number of the open events in front of each agent, or on the way to the agent."""
    places = [(*state.copies, *state.flight) for state in _states(graph, events)]
    return Counter(agent for agents in places for agent in _agents(agents))


def _states(graph: InteractionGraph, events: Any) -> list[EventState]:
    ids = [*map(str, events)] if isinstance(events, Sequence) else []
    return [graph.event(event) for event in ids if graph.knows(event)]


def count_unread(graph: InteractionGraph, answer: str, unresolved: Any) -> tuple[str, Counter[str]]:
    """The agent of an answer, and the senders of the unread work in front of the agent."""
    h, n = graph.history, graph.history.event(answer)
    submitter = name(base_name((n is not None and h.sender(n)) or ""))
    v = -1 if n is None else h.generator[n]
    seen = {edge.event for edge in h.edges(v)} if v >= 0 else set[int]()
    states = [state for state in _states(graph, unresolved) if state.n not in seen]
    unread = [s.n for s in states if submitter in _agents((*s.copies, *s.flight))]
    return submitter, Counter(base_name(h.sender(number) or "") for number in unread)


def _still(numbers: Counter[str]) -> str:
    number = numbers.total()
    return f"{counted(number, 'message')} {'was' if number == 1 else 'were'} still"


class LostWork(NamedTuple):
    """An event that was lost, with the agent behind the loss, the deed and the moment."""

    event: str
    agent: str
    deed: str
    us: int


def list_lost(graph: InteractionGraph, events: Any) -> list[LostWork]:
    """The missing work of an answer thrown away or sent to nobody, and results sent so."""
    h, ids = graph.history, {*map(str, events)} if isinstance(events, Sequence) else set[str]()
    losses: list[LostWork] = []
    for event in graph.live.values():
        v = h.generator[event.n]
        inputs = {h.event_ids[n] for n in h.inputs(v)} if v >= 0 else set[str]()
        # A handoff to nobody has sentences of its own.
        is_work = event.work and event.type != HANDOFF
        if is_work and event.cause in _DEEDS and not ids.isdisjoint((event.id, *inputs)):
            agent = next(iter(event.discarded_by), h.sender(event.n) or "")
            losses.append(LostWork(event.id, base_name(agent), _DEEDS[event.cause], event.us_lost))
    return [loss for loss in losses if loss.agent]


_DEEDS = {
    "discarded": "threw {} away", "no_recipient": "sent {} to nobody who was there",
    "expired": "sent {}, which was lost",
}  # fmt: skip
"""By cause: the deed behind a loss."""


def _agents(agents: Any) -> list[str]:
    return [name(agent) for agent in dict.fromkeys(map(base_name, agents))]


def sums_in(usage: object) -> Counter[str]:
    """The `tokens` and the `dollars` in some usage, which may be nested, by model for instance."""
    sums = Counter[str]()
    for key, value in usage.items() if isinstance(usage, Mapping) else ():
        kind = _SPENT.get(key)
        if kind and type(value) in (int, float) and 0 < value < 1e12:  # it may be anything
            sums[kind] += value
        sums.update(sums_in(value))
    return sums


_SPENT = {
    "cost_usd": "dollars", "input_tokens": "tokens", "output_tokens": "tokens",
    "prompt_tokens": "tokens", "completion_tokens": "tokens",
}  # fmt: skip
