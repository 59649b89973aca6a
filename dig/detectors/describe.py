"""Findings, healing and incidents in words: plain ASCII of ours around safe text from outside.

Traces can hold anything where detectors and healers of a user's own wrote, so nothing here
expects a shape: what is not known is shown as it is, on one line and cut.
"""

from __future__ import annotations

from collections.abc import Mapping

from dig._util.text import anything, name, names, one_line, safe_text, value_text
from dig.graph.graph import InteractionGraph
from dig.graph.records import FindingRow, HealRow, IncidentRow

from . import TELLERS
from .explain import explain
from .finding import Finding

ERRORS = ("ET", "MC", "OE", "DL")
"""The patterns that are errors; the others are warnings."""


def seconds(us: int) -> str:
    """A time on the run's clock."""
    return f"{us / 1_000_000:.1f} s"


def sentence(finding: Finding) -> str:
    """A finding as one line: what, when, and what proves it."""
    return f"{_head(finding)}: {told(finding)}"


def explained(finding: Finding, graph: InteractionGraph) -> str:
    """A finding with its explanation: what, when, why, and the paths that prove it.

    A finding that cannot be explained, because its detector's explanation fails, is just told.
    """
    try:
        why = str(explain(graph, finding))
    except Exception as error:  # a user's own code: nothing may be lost by it
        why = f"{told(finding)} (its explanation raised {one_line(repr(error))})"
    return f"{_head(finding)}: {safe_text(why)}"


def _head(finding: Finding) -> str:
    return f"{tag(finding)} at {seconds(finding.us)} (record {finding.t})"


def tag(finding: Finding | FindingRow) -> str:
    """The pattern of a finding, with its stage if it has one."""
    stage = f" {name(finding.stage)}" if finding.stage is not None else ""
    return name(finding.pattern) + stage


def told(finding: Finding | FindingRow) -> str:
    """What a finding says, without its pattern and its time."""
    teller = TELLERS.get(str(finding.pattern))
    try:
        text = teller(finding.subject, finding.evidence) if teller else None
    except (AttributeError, KeyError, TypeError):  # somebody else's finding of the same name
        text = None
    return one_line(text or anything(finding.subject, finding.evidence))


def healed(row: HealRow) -> str:
    """What healing did."""
    event, to = name(row.event), names(row.to or ())
    tellers = {
        "inject": f"put a note beside {event}" + (f", for {to}" if to else ""),
        "reroute": f"sent {event} to {to or 'nobody'} instead, with a note",
        "create": f"sent note {event} to {to or 'nobody'}",
        "refused": f"did nothing: {one_line(row.reason)}",
    }
    return tellers.get(str(row.action)) or f"{name(row.action)} {event}"


def incident(row: IncidentRow) -> str:
    """What happened that changes no graph."""
    detail = row.detail
    if isinstance(detail, Mapping) and detail.keys() == {"who", "what"}:
        return one_line(f"{detail['who']} {row.what}: {detail['what']}")
    if isinstance(detail, Mapping | list | tuple):
        return one_line(f"{row.what}: {value_text(detail)}")
    return one_line(f"{row.what}: {detail}")
