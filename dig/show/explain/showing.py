"""What a run was, or one event, activation, agent or finding of it: as data, with its paths.

`show` reads a trace once and returns what `digmon show --json` prints; `dig.show.explain.telling`
puts it into words. A *path* is causal: from the problem, over what was used to make what, to the
thing itself, as ids of events and activations in turn.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from dig.detectors.describe import healing_text, incident_text
from dig.errors import TraceError
from dig.graph.history import BY_SYSTEM, CONSUME, FROM_OUTSIDE
from dig.graph.records import FATES, SYSTEM, Emit, End, HealRow, IncidentRow, Join, Leave, Start
from dig.runtime.result import left
from dig.show.runs.summary import summarise
from dig.traces.journal.reader import trace_path

from .reading import Explained, Reading, path_to, said
from .story import event_story

MOST_PATHS = 12


def show(path: Path, name: str | None = None) -> Explained:
    """Explain a stored run, or one thing in it.

    Args:
        path: A trace file or run directory.
        name: The id of an event or an activation, an agent's name, or the record number of a
            finding, looked for in this order; ``None``: the run as a whole.

    Raises:
        TraceError: The trace cannot be read, or there is no such thing in it.
    """
    reading = Reading(path, name)
    if name is None:
        return _run(reading)
    history = reading.graph.history
    if history.event(name) is not None:
        return _event(reading, name)
    activation = history.activation(name)
    if activation is not None:
        return _activation(reading, name, activation)
    if name in reading.agents:
        return _agent(reading, name)
    if name.isdecimal():
        return _finding(reading, int(name))
    reason = f"there is no event, activation or agent {name[:60]!r} in it"
    raise TraceError(trace_path(path), None, f"{reason}; `digmon show` without it lists what is")


# --- the kinds of things ---


def _run(reading: Reading) -> Explained:
    graph = reading.graph
    h = graph.history
    return {
        "what": "run",
        **summarise(reading.path).to_json(),
        "team": list(reading.agents),
        "problems": [h.event_ids[n] for n in h.source_events],
        "raised": list(reading.findings()),
        "healing": [_heal(row) for row in reading.heals],
        "incidents": [
            {"record": row.t, "ts": row.ts, **_told_incident(row)} for row in reading.incidents
        ],
        "left": asdict(left(graph)),
    }


def _event(reading: Reading, name: str) -> Explained:
    graph = reading.graph
    event = graph.event(name)
    return {
        "what": "event",
        "event": name,
        "type": event.type,
        "final": event.final,
        **_origin(reading, event.n),
        "state": _state(reading, name),
        "path": path_to(reading.graph.history, name),
        "story": event_story(reading.mentions, graph.history, name),
        "findings": reading.about(name),
    }


def _state(reading: Reading, name: str) -> Explained:
    """Where an event is at the end."""
    graph = reading.graph
    event = graph.event(name)
    return {
        "consumed": event.consumed,
        "accepted": graph.is_accepted(name),
        "bounced": graph.is_bounced(name),
        "orphaned": event.cause,
        "lies_with": list(event.copies),
        "on_its_way_to": list(event.flight),
    }


def _origin(reading: Reading, n: int) -> Explained:
    h = reading.graph.history
    by = h.generator[n]
    if by == FROM_OUTSIDE:
        return {"by": None, "agent": None}
    if by == BY_SYSTEM:
        return {"by": SYSTEM, "agent": None}
    return {"by": h.activation_ids[by], "agent": h.agent(by)}


def _activation(reading: Reading, name: str, v: int) -> Explained:
    h = reading.graph.history
    start = next(r for r in reading.mentions if isinstance(r, Start) and r.activation == name)
    end = next((r for r in reading.mentions if isinstance(r, End) and r.activation == name), None)
    emits = [r for r in reading.mentions if isinstance(r, Emit) and r.by == name]
    inputs = [
        {
            "event": h.event_ids[edge.event],
            "fate": FATES[edge.fate] if end else None,
            "type": h.type_names[h.type_of[edge.event]],
            **_origin(reading, edge.event),
        }
        for edge in h.edges(v)
    ]
    outputs = [
        {"event": r.event, "type": r.type, "final": r.final, "to": list(r.to),
         "state": _state(reading, r.event)}
        for r in emits
    ]  # fmt: skip
    ancestors = sorted(reading.graph.ancestors(name), key=lambda one: h.activation(one) or 0)
    return {
        "what": "activation",
        "activation": name,
        "agent": h.agent(v),
        "began": {"record": start.t, "ts": start.ts},
        "ended": {"record": end.t, "ts": end.ts} if end else None,
        "usage": end.usage if end else None,
        "error": end.error if end else None,
        "inputs": inputs,
        "outputs": outputs,
        "ancestors": ancestors,
        "paths": [p for p in (path_to(reading.graph.history, i["event"]) for i in inputs
                              if i["fate"] == FATES[CONSUME]) if p][:MOST_PATHS],
        "findings": reading.about(name),
    }  # fmt: skip


def _agent(reading: Reading, name: str) -> Explained:
    h = reading.graph.history
    present = reading.graph.agents.get(name)
    ends = {r.activation: r for r in reading.mentions if isinstance(r, End)}
    activations = []
    fates: dict[str, int] = {}
    for start in (r for r in reading.mentions if isinstance(r, Start) and r.agent == name):
        v = h.activation(start.activation)
        end = ends.get(start.activation)
        did: dict[str, list[str]] = {}
        for edge in h.edges(v) if v is not None else ():
            fate = FATES[edge.fate] if end else "looks at"
            did.setdefault(fate, []).append(h.event_ids[edge.event])
            fates[fate] = fates.get(fate, 0) + 1
        activations.append(
            {"activation": start.activation, "record": start.t, "ts": start.ts,
             "ended": end.ts if end else None, "did": did,
             "generated": list(end.outputs) if end else []}
        )  # fmt: skip
    return {
        "what": "agent",
        "agent": name,
        "present": present is not None,
        "came_and_went": [
            {"record": r.t, "ts": r.ts, "kind": r.kind}
            for r in reading.mentions
            if isinstance(r, Join | Leave) and r.agent == name
        ],
        "activations": activations,
        "fates": fates,
        "buffer": list(present.buffer) if present else [],
        "on_the_way": list(present.incoming) if present else [],
        "findings": reading.about(name),
    }


def _finding(reading: Reading, number: int) -> Explained:
    raised = [one for one in reading.findings() if one["record"] == number]
    if not raised:  # the number that `digmon check` prints: the record that raised it
        rows = [said(f, f.t) for f in reading.found if f.t == number]
        raised = [next((r for r in reading.findings() if _same(r, row)), row) for row in rows]
    if not raised:
        known = ", ".join(str(one["record"]) for one in list(reading.findings())[:20]) or "none"
        reason = f"record {number} is no finding; findings are at: {known}"
        raise TraceError(trace_path(reading.path), None, reason)
    one, *others = raised
    why = reading.why(one)
    return {
        "what": "finding",
        **one,
        "why": why.text,
        "healing": [_heal(row) for row in reading.heals if row.finding == one["record"]],
        "paths": [{"nodes": list(path.nodes), "says": path.text} for path in why.paths],
        "also": [other["says"] for other in others],
    }


def _same(a: Explained, b: Explained) -> bool:
    return all(a[key] == b[key] for key in ("pattern", "stage", "subject"))


def _heal(row: HealRow) -> Explained:
    to = None if row.to is None else list(row.to)
    return {"record": row.t, "ts": row.ts, "finding": row.finding, "action": row.action,
            "event": row.event, "to": to, "note": row.note, "reason": row.reason,
            "says": healing_text(row)}  # fmt: skip


def _told_incident(row: IncidentRow) -> Explained:
    return {"incident": row.what, "detail": row.detail, "says": incident_text(row)}
