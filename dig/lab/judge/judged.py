"""Findings of a judge, `judge:ET` and so on, and the healing that a judge asks for.

A judge is a member of the run that reads along (`reviewer`). It says what it thinks
in an event of type `notice`, so its words are in the trace, and what follows from them follows
again when the run is replayed. The payload is `{"reports": [..]}`, and a report

    {"pattern": "OE", "subject": "e9", "reason": "nobody holds e9 any more",
     "action": {"do": "reroute", "event": "e9", "to": ["agent-2"], "note": "see to this"}}

An action `do`es one of `none`, `inject` (a note into an event), `reroute` (that, and send it to
others) and `create` (a system event). Whatever else is asked for is refused, with the reason in
the trace. A judge may be wrong about all of this, and nothing here trusts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dig._util.text import safe_text
from dig.detectors.finding import JUDGE, Finding
from dig.detectors.interventions import Create, Inject, Intervention, Refuse, Reroute
from dig.detectors.notes import PREFIX
from dig.detectors.patterns import NAMES
from dig.detectors.protocols import Detector, Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import NOTICE, Emit, Record
from dig.graph.state import EventState

UNKNOWN = "?"

MOST_REPORTS = 20
"""The number of reports of a judge in one reading; further ones are not heard."""

MOST_CHARACTERS = 1000
MOST_NAMES = 100


class Judged(Detector):
    """Turns the reports of a judge into findings, without a check of their truth."""

    pattern = JUDGE
    recorded_as = "dig.detectors.judged.Judged"
    kinds = (Emit,)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Make a finding of each report."""
        if not isinstance(record, Emit) or record.by is None or record.type != NOTICE:
            return
        v = graph.history.activation(record.by)
        # Any agent can send a notice with reports; only those of the judge count.
        if v is None or graph.history.agent(v) != JUDGE:
            return
        # A replayed trace may hold any payload, so its shape is checked here and not by pydantic.
        reports = record.payload.get("reports") if isinstance(record.payload, Mapping) else None
        for report in reports[:MOST_REPORTS] if isinstance(reports, list) else ():
            yield _finding(graph, record, report if isinstance(report, Mapping) else {})


def _finding(graph: InteractionGraph, record: Emit, report: Mapping[str, Any]) -> Finding:
    name = report.get("pattern")
    pattern = name if name in NAMES else UNKNOWN
    evidence = {"reason": _text(report.get("reason")), "action": _action(report.get("action"))}
    if pattern == UNKNOWN:
        evidence["pattern"] = _text(name)
    subject = _subject(graph, report.get("subject"))
    return Finding(f"{PREFIX}{pattern}", record.t, record.us, subject, evidence)


def _subject(graph: InteractionGraph, name: object) -> dict[str, Any]:
    """The subject of a report, if there is such a thing."""
    if isinstance(name, str):
        if graph.history.event(name) is not None:
            return {"event": name}
        if graph.history.activation(name) is not None:
            return {"activation": name}
        if name in graph.agents:
            return {"agent": name}
    return {}


def _action(value: object) -> dict[str, Any]:
    action = value if isinstance(value, Mapping) else {}
    to = action.get("to")
    names = [_text(name) for name in to[:MOST_NAMES]] if isinstance(to, list) else []
    plain = {key: _text(action.get(key)) for key in ("do", "event", "note")}
    return {**plain, "do": plain["do"] or "none", "to": names}


def _text(value: object) -> str:
    return "" if value is None else safe_text(value, MOST_CHARACTERS)


class HealAsJudged(Healer):
    """Carries out the action that a judge asks for, if allowed and possible."""

    recorded_as = "dig.detectors.judged.HealAsJudged"

    def about(self, finding: Finding) -> object:
        """The healing of a report; another action for the same failure is another healing."""
        return finding.evidence["action"]

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """The intervention, or why there is none."""
        if finding.pattern == PREFIX + UNKNOWN:
            yield Refuse(f"there is no pattern {finding.evidence['pattern']!r}")
            return
        action = finding.evidence["action"]
        if action["do"] == "none":
            return
        # The words are those of a model: an unknown action is refused, never an error of the run.
        make = _ACTIONS.get(action["do"])
        if make is None:
            yield Refuse(f"there is no action {action['do']!r}; a judge has {', '.join(_ACTIONS)}")
        elif not action["note"]:
            yield Refuse("the action has no note, so nobody would know what it is for")
        else:
            yield make(graph, action)


def _inject(graph: InteractionGraph, action: dict[str, Any]) -> Intervention:
    return _unmovable(graph, action["event"]) or Inject(action["event"], action["note"])


def _reroute(graph: InteractionGraph, action: dict[str, Any]) -> Intervention:
    refused = _unmovable(graph, action["event"]) or _unreachable(graph, action["to"])
    return refused or Reroute(action["event"], action["note"], tuple(action["to"]))


def _create(graph: InteractionGraph, action: dict[str, Any]) -> Intervention:
    return _unreachable(graph, action["to"]) or Create(action["note"], tuple(action["to"]))


def _unmovable(graph: InteractionGraph, name: str) -> Refuse | None:
    """Why nobody can be shown an event any more; ``None`` if somebody can."""
    if graph.history.event(name) is None:
        return Refuse(f"there is no event {name!r}")
    event: EventState = graph.event(name)
    # A lost event can be sent again; a consumed one is used up.
    is_lost = event.cause is not None and not event.consumed
    if event.copies or event.flight or is_lost:
        return None
    return Refuse(f"event {name!r} is used up")


def _unreachable(graph: InteractionGraph, names: list[str]) -> Refuse | None:
    """Say why some agents cannot get events; ``None`` if all can."""
    # Work for the judge itself would stay open: it is present only while it reads.
    absent = [name for name in names if name not in graph.agents or name == JUDGE]
    if absent:
        return Refuse(f"there is no agent {absent[0]!r}")
    return None if names else Refuse("the action names no agents")


_ACTIONS = {"inject": _inject, "reroute": _reroute, "create": _create}


def judged_healers() -> dict[str, HealAsJudged]:
    """A fresh healer for each kind of finding of a judge."""
    return {f"{PREFIX}{pattern}": HealAsJudged() for pattern in (*NAMES, UNKNOWN)}
