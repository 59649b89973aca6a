"""Data about a run, or about an event, activation, agent or finding, with causal paths.

`show` reads a trace and returns what `digmon show --json` prints; `dig.show.explain.lines` puts the
data into words. A *path* is causal: from the problem, along consumed and generated events, to its
end, as ids of events and activations in turn.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dig.detectors.answer_facts import mistakes_of
from dig.detectors.message_words import words_text
from dig.errors import TraceError
from dig.graph.history import CONSUME
from dig.graph.records import FATES, WAITS, HealRow, IncidentRow, Join, Leave, base_name
from dig.graph.words import healing_text, incident_text
from dig.runtime.agent_errors import STACK
from dig.runtime.result import remaining_work
from dig.show.runs.summary import follow_run, read_beside, stored_answers
from dig.traces.journal.journal import RESULT
from dig.traces.journal.reader import trace_path
from dig.traces.run import RecordedRun
from dig.traces.usage import Costs, cost_text, tokens

from .explainer import Explainer, Facts, path_to
from .story import event_story

MOST_PATHS = 12


def show(path: Path, id: str | None = None) -> Facts:
    """Explain a stored run, or a part of the run.

    Args:
        path: A trace file or run directory.
        id: The id of an event or an activation, an agent's name, or the record of an incident, or
            that raised a finding, looked for in this order; ``None``: the run as a whole.

    Raises:
        TraceError: The trace cannot be read, or nothing in the trace has this id.
    """
    explainer = Explainer(path)
    if id is None:
        return _run(explainer)
    if id in explainer.run.events:
        return _event(explainer, id)
    if id in explainer.run.activations:
        return _activation(explainer, id)
    if id in explainer.run.agents:
        return _agent(explainer, id)
    if id.isdecimal():
        return _finding(explainer, int(id))
    reason = f"there is no event, activation or agent {id[:60]!r} in it"
    raise TraceError(trace_path(path), None, f"{reason}; `digmon show` without it lists what is")


def _run(explainer: Explainer) -> Facts:
    run, h = explainer.run, explainer.graph.history
    findings = explainer.findings()
    # A `heal` names the row of its finding; people know findings by the record that raised them.
    by_row = {facts["row"]: facts["record"] for facts in findings}
    summary, follower = follow_run(explainer.path)
    return {
        "what": "run",
        **summary.to_json(),
        "answers": stored_answers(
            explainer.path, follower.so_far, summary.score, sums=follower.costs.sums
        ).lines(),
        "team": list(run.agents),
        "turns": follower.so_far.turns,
        "tokens": _tokens(run),
        "problems": [h.event_ids[n] for n in h.source_events],
        "raised": findings,
        "healing": [_heal(row, by_row.get(row.finding)) for row in run.heals],
        "incidents": [*map(_incident, run.incidents)],
        "left": asdict(remaining_work(explainer.graph)),
    }  # fmt: skip


def _incident(row: IncidentRow) -> Facts:
    return {"record": row.t, "ts": row.ts, "incident": row.what, "detail": row.detail,
            "says": incident_text(row)}  # fmt: skip


def _tokens(run: RecordedRun) -> dict[str, float]:
    """The known tokens of each agent."""
    costs: dict[str, Costs] = defaultdict(Costs)
    for activation in run.activations.values():
        if activation.end is not None:
            costs[base_name(activation.agent)](activation.end)
    return {agent: n for agent, sums in costs.items() if (n := tokens(sums.sums)) is not None}


def _event(explainer: Explainer, id: str) -> Facts:
    event = explainer.run.events[id]
    return {
        "what": "event",
        "event": id,
        "type": event.type,
        "final": event.final,
        "by": event.by,
        "agent": event.agent,
        "payload": event.payload,
        "counts": _counts(explainer.path).get(id, ""),
        "state": _state(explainer, id),
        "path": path_to(explainer.graph.history, id),
        "story": event_story(explainer.run, id),
        "findings": explainer.findings_about(id),
    }


def _state(explainer: Explainer, id: str) -> Facts:
    """The state of an event at the end of the trace."""
    graph = explainer.graph
    event = graph.event(id)
    return {
        "consumed": event.consumed,
        "accepted": graph.is_accepted(id),
        "bounced": graph.is_bounced(id),
        "orphaned": event.cause,
        "lies_with": list(event.copies),
        "on_its_way_to": list(event.flight),
    }


def _activation(explainer: Explainer, id: str) -> Facts:
    h, run = explainer.graph.history, explainer.run
    recorded, fates = run.activations[id], run.fates(id)
    end, counts = recorded.end, _counts(explainer.path)
    consumed = [event for event in recorded.inputs if fates.get(event) in (FATES[CONSUME], None)]
    return {
        "what": "activation",
        "activation": id,
        "agent": recorded.agent,
        "began": {"record": recorded.t, "ts": recorded.us / 1_000_000},
        "ended": {"record": end.t, "ts": end.ts} if end else None,
        "usage": end.usage if end else None,
        "error": end.error if end else None,
        "stack": str(_detail(run, STACK, id).get("text") or ""),
        "asks": _detail(run, WAITS, id).get("asks"),
        "inputs": [
            {"event": event.id, "fate": fates.get(event.id), "type": event.type, "by": event.by,
             "agent": event.agent, "payload": event.payload, "counts": counts.get(event.id, "")}
            for event in map(run.events.__getitem__, recorded.inputs)
        ],
        "outputs": [
            {"event": event.id, "type": event.type, "final": event.final, "to": list(event.to),
             "state": _state(explainer, event.id), "counts": counts.get(event.id, "")}
            for event in run.outputs(recorded)
        ],
        "ancestors": end and sorted(explainer.graph.ancestors(id), key=h.activation_number),
        "paths": [path_to(h, event) for event in consumed[:MOST_PATHS]],
        "findings": explainer.findings_about(id),
    }  # fmt: skip


def _counts(path: Path) -> dict[str, str]:
    """The counts of results with a miscount, by event."""
    rows = mistakes_of(read_beside(path, RESULT).get("score"))
    return {
        event: ": ".join(filter(None, (str(says), str(row["errors"].get(event) or ""))))
        for row in rows for event, says in row["counts"].items()
    }  # fmt: skip


def _detail(run: RecordedRun, what: str, activation: str) -> Mapping[str, Any]:
    """The detail of the first incident of a kind about an activation; empty: there is none."""
    details = (row.detail for row in run.incidents if row.what == what)
    own = (each for each in details if isinstance(each, Mapping))
    return next((each for each in own if each.get("activation") == activation), {})


def _agent(explainer: Explainer, agent: str) -> Facts:
    present = explainer.graph.agents.get(agent)
    rows = []
    counts = Counter[str]()
    for activation in explainer.run.activations.values():
        if activation.agent == agent:
            fates = explainer.run.fates(activation.id)
            events_by_fate: dict[str, list[str]] = {}
            # An activation that has not ended has no fates.
            for event in activation.inputs:
                events_by_fate.setdefault(fates.get(event, "looks at"), []).append(event)
            counts.update({fate: len(events) for fate, events in events_by_fate.items()})
            payloads = [event.payload for event in explainer.run.outputs(activation)]
            end, costs = activation.end, Costs()
            if end is not None:
                costs(end)
            rows.append(
                {"activation": activation.id, "record": activation.t,
                 "ts": activation.us / 1_000_000, "ended": end.ts if end else None,
                 "did": events_by_fate, "generated": list(activation.outputs),
                 "said": next(filter(None, map(words_text, payloads)), ""),
                 "error": end.error if end else None, "used": cost_text(costs.sums)}
            )  # fmt: skip
    return {
        "what": "agent",
        "agent": agent,
        "present": present is not None,
        "came_and_went": [
            {"record": r.t, "ts": r.ts, "kind": r.kind}
            for r in explainer.run.records
            if isinstance(r, Join | Leave) and r.agent == agent
        ],
        "activations": rows,
        "fates": counts,
        "buffer": list(present.buffer) if present else [],
        "on_the_way": list(present.incoming) if present else [],
        "findings": explainer.findings_about(agent),
    }


def _finding(explainer: Explainer, number: int) -> Facts:
    findings = explainer.findings()
    # The record that raised a finding, or else its own row, which rows of kind `heal` name.
    raised = [facts for facts in findings if facts["record"] == number]
    raised = raised or [facts for facts in findings if facts["row"] == number]
    incidents = [row for row in explainer.run.incidents if row.t == number]
    if incidents and not raised:
        return {"what": "incident", **_incident(incidents[0])}
    if not raised:
        records = ", ".join(dict.fromkeys(str(facts["record"]) for facts in findings[:20]))
        reason = f"record {number} is no finding or incident; findings are at: {records or 'none'}"
        raise TraceError(trace_path(explainer.path), None, reason)
    first = raised[0]
    explanation = explainer.explain(first)
    return {
        "what": "finding",
        **first,
        "why": explanation.says,
        "healing": [_heal(row, first["record"]) for row in explainer.run.heals_of(first["row"])],
        "paths": [{"nodes": list(path.nodes), "says": path.text} for path in explanation.paths],
        "also": [facts["says"] for facts in raised[1:]],
    }


def _heal(row: HealRow, finding: int | None) -> Facts:
    """An intervention as data, with the record of the finding."""
    to = None if row.to is None else list(row.to)
    return {"record": row.t, "ts": row.ts, "finding": finding, "action": row.action,
            "event": row.event, "to": to, "note": row.note, "reason": row.reason,
            "says": healing_text(row)}  # fmt: skip
