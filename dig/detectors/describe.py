"""Findings in words: plain ASCII of ours around safe text from outside.

A trace may hold anything where a user's detectors wrote, so no function here relies on the shape of
a record: an unknown part is shown as it is, on one line and cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

from dig._util.text import anything, counted, name, names, one_line, safe_text
from dig.errors import PART_ERRORS
from dig.graph.graph import InteractionGraph
from dig.graph.records import FindingRow
from dig.graph.words import seconds

from .finding import MOST_EVIDENCE, SEVERITIES, Explanation, Finding, Severity, texts_in
from .notes import nobody_takes
from .paths import MOST_PATHS, PathFinder
from .patterns import BY_NAME, severity_of

SILENCED: Literal["silenced"] = "silenced"
Worth = Severity | Literal["silenced"]
"""A severity or, of a finding that a policy silences, `silenced`."""

WORTHS: tuple[Worth, ...] = (*SEVERITIES, SILENCED)


def sentence(finding: Finding) -> str:
    """A finding as one line: what, when, and what proves it."""
    return f"{heading(finding)}: {finding_text(finding)}{_aside(finding)}"


def explained(finding: Finding, graph: InteractionGraph) -> str:
    """A finding with its explanation: what, when, why, and the paths that prove it."""
    why = safe_text(str(explain_safely(graph, finding)))
    return f"{heading(finding)}: {why}{_aside(finding)}"


def explain(graph: InteractionGraph, finding: Finding) -> Explanation:
    """The meaning of a finding in one or two sentences, with the paths that prove it.

    Args:
        graph: The graph that it was found in; it may have grown since.
        finding: The finding. One of a user's detector that has no `why` is explained by the paths
            to the events and activations that it names.
    """
    now = [_skipped(graph, finding) if finding.pattern == "ET" else "", _unsent(graph, finding)]
    told = " ".join(filter(None, now))
    return replace(_explanation(graph, finding), title=titled(finding), now=told)


def explain_safely(graph: InteractionGraph, finding: Finding) -> Explanation:
    """The meaning of a finding, as `explain` tells it; if that fails, its description alone."""
    try:
        return explain(graph, finding)
    except PART_ERRORS as error:  # a user's own code, or a row of a shape of its own
        failed = f"its explanation raised {one_line(repr(error))}"
        return Explanation(f"{finding_text(finding)} ({failed})", title=titled(finding))


def _explanation(graph: InteractionGraph, finding: Finding) -> Explanation:
    if finding.why is not None:
        return finding.why(graph, finding)
    pattern = BY_NAME.get(finding.pattern)
    if pattern is not None:
        try:
            return pattern.explain(graph, finding)
        except Exception:  # the evidence is of a user's detector of the same name
            pass
    named = dict.fromkeys([*texts_in(finding.subject), *texts_in(finding.evidence)])
    known = [one for one in named if graph.history.is_taken(one)]
    paths = PathFinder(graph, finding).to_all(known)
    return Explanation(anything(finding.subject, finding.evidence), paths)


def _unsent(graph: InteractionGraph, finding: Finding) -> str:
    """The names in vain to which the work was sent that OE or ET is about."""
    named = texts_in((finding.subject, finding.evidence)) if finding.pattern in ("ET", "OE") else ()
    events = filter(graph.knows, named)
    reasons = dict.fromkeys(filter(None, (nobody_takes(graph, event) for event in events)))
    return f"Work was sent to nobody: {'; '.join(reasons)}." if reasons else ""


def _skipped(graph: InteractionGraph, finding: Finding) -> str:
    """The agents before which missing work lies and that have not run; and who sent the work."""
    if graph.has_evicted:  # an agent whose turns are evicted did run
        return ""
    h, told = graph.history, dict[str, None]()
    for event in map(graph.event, filter(graph.knows, texts_in(finding.evidence))):
        idle = [name(one) for one in (*event.copies, *event.flight) if one not in h.agents]
        if idle:
            sender = h.sender(event.n)
            by = "" if sender is None else f"to which {name(sender)} sent it, and "
            where = "lies in front of" if event.copies else "is on its way to"
            told[f"{name(event.id)} {where} {names(idle)}, {by}which has not been started."] = None
    return " ".join([*told][:MOST_PATHS])


def titled(finding: Finding) -> str:
    """A finding in a title: its severity, its name spelled out, and its moment."""
    known = BY_NAME.get(finding.pattern)
    title = f"{known.title} ({tag(finding)})" if known else tag(finding)
    return f"{worth(finding)}: {title} at {seconds(finding.us)} (record {finding.t})"


def in_graph(graph: InteractionGraph, finding: Finding) -> Finding:
    """A finding that a notebook shows with its paths.

    Args:
        graph: The graph that it was found in; it may have grown since.
        finding: The finding.
    """
    return replace(finding, explains=partial(explain_safely, graph))


def heading(finding: Finding) -> str:
    """The severity, the pattern and the moment of a finding."""
    return f"{worth(finding)} {tag(finding)} at {seconds(finding.us)} (record {finding.t})"


def _aside(finding: Finding) -> str:
    return f" ({silenced_text(finding)})" if finding.silenced is not None else ""


def worth(finding: Finding | FindingRow) -> Worth:
    """The worth of a finding, in a word; `silenced`, if a policy silences the finding."""
    return SILENCED if finding.silenced is not None else severity_of(finding)


def counts_text(counts: Mapping[str, int]) -> str:
    """The number of findings of each worth: `2 errors, 1 notice, 3 silenced`."""
    parts = [counted(counts[one], one) for one in SEVERITIES if counts.get(one)]
    if counts.get(SILENCED):
        parts.append(f"{counts[SILENCED]:,} silenced")
    return ", ".join(parts)


def tag(finding: Finding | FindingRow) -> str:
    """The pattern of a finding, with its stage if it has one."""
    stage = f" {name(finding.stage)}" if finding.stage is not None else ""
    return name(finding.pattern) + stage


def finding_text(finding: Finding | FindingRow) -> str:
    """The text of a finding, without its pattern and its time."""
    pattern = BY_NAME.get(str(finding.pattern))
    try:
        text = pattern.describe(finding.subject, finding.evidence) if pattern else None
    except (AttributeError, KeyError, TypeError):  # of a user's detector of the same name
        text = None
    cut = isinstance(finding.evidence, Mapping) and finding.evidence.get("more") is True
    more = f" (of long lists, {MOST_EVIDENCE} are kept)" if cut else ""
    return one_line(text or anything(finding.subject, finding.evidence)) + more


def silenced_text(finding: Finding | FindingRow) -> str:
    """Why a policy silences a finding; empty if none does."""
    if finding.silenced is None:
        return ""
    return f"silenced: {one_line(finding.silenced) or 'no reason is given'}"
