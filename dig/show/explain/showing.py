"""The data of a run, or of one event, activation, agent or finding of it, with causal paths.

`show` reads a trace once and returns what `digmon show --json` prints; `dig.show.explain.telling`
puts it into words. A *path* is causal: from the problem, along consumed and generated events, to
the thing itself, as ids of events and activations in turn.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path

from dig.detectors.finding import Finding
from dig.detectors.run_so_far import Line, RunSoFar
from dig.errors import TraceError
from dig.graph.graph import InteractionGraph
from dig.graph.history import CONSUME
from dig.graph.records import FATES, HealRow, IncidentRow, Join, Leave
from dig.graph.words import healing_text, incident_text
from dig.runtime.result import left
from dig.show.page.about import verdict
from dig.show.runs.summary import RunSummary, summarise
from dig.traces.journal.reader import trace_path
from dig.traces.usage import cost_text

from .explainer import Explained, Explainer, path_to
from .story import event_story

MOST_PATHS = 12


def show(path: Path, name: str | None = None) -> Explained:
    """Explain a stored run, or one thing in it.

    Args:
        path: A trace file or run directory.
        name: The id of an event or an activation, an agent's name, or the record that raised a
            finding, looked for in this order; ``None``: the run as a whole.

    Raises:
        TraceError: The trace cannot be read, or there is no such thing in it.
    """
    explainer = Explainer(path)
    if name is None:
        return _run(explainer)
    if name in explainer.run.events:
        return _event(explainer, name)
    if name in explainer.run.activations:
        return _activation(explainer, name)
    if name in explainer.run.agents:
        return _agent(explainer, name)
    if name.isdecimal():
        return _finding(explainer, int(name))
    reason = f"there is no event, activation or agent {name[:60]!r} in it"
    raise TraceError(trace_path(path), None, f"{reason}; `digmon show` without it lists what is")


# --- the kinds of things ---


def _run(explainer: Explainer) -> Explained:
    graph = explainer.graph
    h = graph.history
    raised = list(explainer.findings())
    by_row = {one["row"]: one["record"] for one in raised}
    summary = summarise(explainer.path)
    return {
        "what": "run",
        "verdict": _verdict(explainer, summary),
        **summary.to_json(),
        "team": list(explainer.run.agents),
        "problems": [h.event_ids[n] for n in h.source_events],
        "raised": raised,
        "healing": [_heal(row, by_row.get(row.finding)) for row in explainer.run.heals],
        "incidents": [_incident(row) for row in explainer.run.incidents],
        "left": asdict(left(graph)),
    }


def _verdict(explainer: Explainer, summary: RunSummary) -> list[Line]:
    """The verdict on the run, in lines."""
    graph, run = InteractionGraph(), explainer.run
    so_far = RunSoFar(graph)
    found: dict[int, list[Finding]] = {}
    for finding in run.found:
        found.setdefault(finding.t, []).append(finding)
    for record in run.records:
        graph.apply(record)
        so_far(record, found.get(record.t, ()))
    return verdict(so_far, summary.state, summary.score, cost_text(summary.cost)).lines()


def _event(explainer: Explainer, name: str) -> Explained:
    event = explainer.run.events[name]
    return {
        "what": "event",
        "event": name,
        "type": event.type,
        "final": event.final,
        "by": event.by,
        "agent": event.agent,
        "state": _state(explainer, name),
        "path": path_to(explainer.graph.history, name),
        "story": event_story(explainer.run, name),
        "findings": explainer.about(name),
    }


def _state(explainer: Explainer, name: str) -> Explained:
    """The state of an event at the end."""
    graph = explainer.graph
    event = graph.event(name)
    return {
        "consumed": event.consumed,
        "accepted": graph.is_accepted(name),
        "bounced": graph.is_bounced(name),
        "orphaned": event.cause,
        "lies_with": list(event.copies),
        "on_its_way_to": list(event.flight),
    }


def _activation(explainer: Explainer, name: str) -> Explained:
    h, run = explainer.graph.history, explainer.run
    recorded, fates = run.activations[name], run.fates(name)
    end = recorded.end
    consumed = [event for event in recorded.inputs if fates.get(event) == FATES[CONSUME]]
    return {
        "what": "activation",
        "activation": name,
        "agent": recorded.agent,
        "began": {"record": recorded.t, "ts": recorded.us / 1_000_000},
        "ended": {"record": end.t, "ts": end.ts} if end else None,
        "usage": end.usage if end else None,
        "error": end.error if end else None,
        "inputs": [
            {"event": one.id, "fate": fates.get(one.id), "type": one.type, "by": one.by,
             "agent": one.agent}
            for one in map(run.events.__getitem__, recorded.inputs)
        ],
        "outputs": [
            {"event": one.id, "type": one.type, "final": one.final, "to": list(one.to),
             "state": _state(explainer, one.id)}
            for one in map(run.events.__getitem__, recorded.outputs)
        ],
        "ancestors": sorted(explainer.graph.ancestors(name), key=h.activation_number),
        "paths": [path_to(h, event) for event in consumed[:MOST_PATHS]],
        "findings": explainer.about(name),
    }  # fmt: skip


def _agent(explainer: Explainer, name: str) -> Explained:
    present = explainer.graph.agents.get(name)
    activations = []
    fates = Counter[str]()
    for one in explainer.run.activations.values():
        if one.agent == name:
            known = explainer.run.fates(one.id)
            given = [known.get(event, "looks at") for event in one.inputs]
            fates.update(given)
            did = {fate: [e for e, its in zip(one.inputs, given, strict=True) if its == fate]
                   for fate in dict.fromkeys(given)}  # fmt: skip
            activations.append(
                {"activation": one.id, "record": one.t, "ts": one.us / 1_000_000,
                 "ended": one.end.ts if one.end else None, "did": did,
                 "generated": list(one.outputs)}
            )  # fmt: skip
    return {
        "what": "agent",
        "agent": name,
        "present": present is not None,
        "came_and_went": [
            {"record": r.t, "ts": r.ts, "kind": r.kind}
            for r in explainer.run.records
            if isinstance(r, Join | Leave) and r.agent == name
        ],
        "activations": activations,
        "fates": fates,
        "buffer": list(present.buffer) if present else [],
        "on_the_way": list(present.incoming) if present else [],
        "findings": explainer.about(name),
    }


def _finding(explainer: Explainer, number: int) -> Explained:
    everything = list(explainer.findings())
    raised = [one for one in everything if one["record"] == number]
    if not raised:  # the number of its row, which the trace's rows of kind `heal` name
        raised = [one for one in everything if one["row"] == number]
    if not raised:
        known = ", ".join(dict.fromkeys(str(one["record"]) for one in everything[:20])) or "none"
        reason = f"record {number} is no finding; findings are at: {known}"
        raise TraceError(trace_path(explainer.path), None, reason)
    one, *others = raised
    why = explainer.why(one)
    return {
        "what": "finding",
        **one,
        "why": why.says,
        "healing": [_heal(row, one["record"]) for row in explainer.run.heals_of(one["row"])],
        "paths": [{"nodes": list(path.nodes), "says": path.text} for path in why.paths],
        "also": [other["says"] for other in others],
    }


def _heal(row: HealRow, finding: int | None) -> Explained:
    """An intervention as data; `finding` is the record that its finding goes by."""
    to = None if row.to is None else list(row.to)
    return {"record": row.t, "ts": row.ts, "finding": finding, "action": row.action,
            "event": row.event, "to": to, "note": row.note, "reason": row.reason,
            "says": healing_text(row)}  # fmt: skip


def _incident(row: IncidentRow) -> Explained:
    return {
        "record": row.t,
        "ts": row.ts,
        "incident": row.what,
        "detail": row.detail,
        "says": incident_text(row),
    }
