"""Rewrites: the change of the graph by each kind of record (paper, section 4.2).

`dig.graph.rules` has accepted a record before it gets here, and says what it is about, so nothing
is checked or looked up again. Only `InteractionGraph.apply` calls this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dig._util.ranges import NOTHING, RangeSet

from . import records, rules
from .coverage import provenance
from .graph_state import GraphState
from .history import ACCEPTED, BOUNCED, BY_SYSTEM, CONSUMED, FROM_OUTSIDE
from .problems import Problems
from .records import (
    ANSWERED,
    CLOSED,
    DISTURBANCE,
    ERRED,
    FAILURES,
    FATES,
    LOST_OR_FOUND,
    MERGED,
    MET,
    POSED,
    REROUTED,
    SENT_OFF,
    SOLVED_AGAIN,
    SYSTEM,
    UNANSWERED,
    WAITING,
    Fate,
    FateName,
)
from .state import BUFFERED, FLYING, ActivationState, AgentState, EventState, by_number

CODES: dict[FateName, int] = {fate: code for code, fate in enumerate(FATES)}
"""The number that stands for a fate in the history."""


# --- one function a kind ---


def _begin(state: GraphState, record: records.Run, _: None) -> None:
    state.run = record
    state.problems = Problems(state.history, record.session)
    state.present = {name: AgentState(name) for name in record.agents}
    state.is_restricted = False


def _emit(state: GraphState, record: records.Emit, _: None) -> None:
    h = state.history
    if record.by is None:
        lineage = NOTHING, RangeSet.single(len(h.source_events))
        n = h.add_event(record, FROM_OUTSIDE)
    elif record.by == SYSTEM:
        lineage = NOTHING, NOTHING
        n = h.add_event(record, BY_SYSTEM)
    else:
        state.awaited.pop()
        lineage = state.lineage
        n = h.add_event(record, state.ended.n)
    event = EventState(record.event, n, record.by, record.type, h.flags[n])
    event.roots, event.sources = lineage
    if record.by is None:
        state.changed |= POSED
        state.problems.pose(event.work)
    state.live[event.id] = event
    # A policy that delays on purpose says so; an injected disturbance is no policy.
    if record.policy is not None:
        event.is_kept = record.policy != DISTURBANCE
    if event.final:
        state.changed |= ANSWERED
        state.problems.submit(event)
    else:
        _send(state, event, record.to)
    _place(state, event, "no_recipient")


def _deliver(state: GraphState, record: records.Deliver, event: EventState) -> None:
    _revive(state, event)
    if record.to is None:
        _accept(state, event)
    else:
        agent = state.present[record.to]
        del event.flight[agent.name], agent.incoming[event.id]
        event.copies[agent.name] = None
        agent.put(event)
        if len(agent.lineages) > 1:
            state.changed |= MET
        if event.final:
            state.history.flags[event.n] |= BOUNCED
            state.problems.decide(event)
    _place(state, event, None)


def _accept(state: GraphState, event: EventState) -> None:
    _land(state, event)
    state.history.flags[event.n] |= ACCEPTED
    state.problems.decide(event)
    if state.run.session:
        state.problems.settle(provenance(state, event.n))
        state.latest_provenance = None  # something behind it may be settled now
    else:
        state.is_over = state.is_restricted = True


def _start(state: GraphState, record: records.Start, agent: AgentState) -> None:
    activation = ActivationState(record.activation, agent.name, agent.buffer.copy(), record.us)
    activation.n = state.history.add_activation(
        activation.id, agent.name, record.t, [*map(by_number, activation.inputs)]
    )
    agent.activation = state.running[activation.id] = activation
    state.problems.start(activation)


def _end(
    state: GraphState, record: records.End, ending: tuple[ActivationState, dict[str, Fate]]
) -> None:
    activation, named = ending
    del state.running[activation.id]
    agent = state.present[activation.agent]
    agent.activation = None
    codes: list[int] = []
    for event in activation.inputs:
        fate = named.get(event.id)
        if fate is None:  # a decision need not name all: a note is read then, and work is kept
            fate = Fate(event.id, "consume" if event.by == SYSTEM else "delay")
        codes.append(CODES[fate.fate])
        if fate.fate != "delay":
            _take(state, agent, event, fate)
            activation.is_progress = True
            if fate.fate == "consume" and event.by != SYSTEM:
                activation.consumed.append(event)
    outputs = len(record.outputs)
    state.history.end_activation(activation.n, record.t, codes, outputs)
    if record.error is not None:
        state.history.failed[activation.n], state.has_failed = 1, True
    if state.has_failed:
        state.changed |= ERRED
    _solve(state, activation, outputs)
    activation.is_progress |= outputs > 0
    state.outputs = record.outputs
    state.awaited = [*reversed(record.outputs)]  # the last is taken first
    state.problems.end(activation, record.us, has_error=record.error is not None)
    state.ended = activation


def _solve(state: GraphState, activation: ActivationState, outputs: int) -> None:
    """Compute the lineage of an activation's outputs, and note the solved events."""
    inputs, h = activation.consumed, state.history
    roots, sources = (inputs[0].roots, inputs[0].sources) if inputs else (NOTHING, NOTHING)
    if len(inputs) > 1:
        for event in inputs:  # events of one lineage share its sets
            if event.roots is not roots:
                roots = roots.union(event.roots)
                state.changed |= MERGED
            if event.sources is not sources:
                sources = sources.union(event.sources)
    # Work without ancestry begins here: its first consumer is the root of what comes of it.
    if inputs and not roots.ranges:
        roots = h.new_root(activation.n)
    state.lineage = roots, sources
    if 0 < outputs <= len(inputs) and h.solve(activation.n, map(by_number, inputs)):
        state.changed |= SOLVED_AGAIN


def _take(state: GraphState, agent: AgentState, event: EventState, fate: Fate) -> None:
    """Take an event out of a buffer, and apply the fate."""
    agent.take(event)
    del event.copies[agent.name]
    if fate.fate == "consume":
        event.consumed = True
        event.reroutes = []
        state.history.flags[event.n] |= CONSUMED
    elif fate.fate == "reroute":
        state.changed |= REROUTED
        if not event.consumed:
            event.reroutes.append(agent.name)
        _send(state, event, fate.to)
    else:
        event.discarded_by[agent.name] = None
    _place(state, event, "discarded" if fate.fate == "discard" else "no_recipient")


def _join(state: GraphState, record: records.Join, _: None) -> None:
    state.present[record.agent] = AgentState(record.agent)


def _leave(state: GraphState, record: records.Leave, _: None) -> None:
    agent = state.present.pop(record.agent)
    if agent.activation is not None:
        state.problems.end(state.running.pop(agent.activation.id), record.us, has_left=True)
    events = {**agent.buffer, **agent.incoming}
    for event in sorted(events.values(), key=by_number):
        event.copies.pop(agent.name, None)
        event.flight.pop(agent.name, None)
        _place(state, event, "left")


def _redirect(state: GraphState, record: records.Redirect, event: EventState) -> None:
    _revive(state, event)
    since = event.flight
    _land(state, event)
    _send(state, event, record.to)
    # Who was a recipient before keeps its number: for that agent, it is the same sending.
    for name in event.flight.keys() & since.keys():
        event.flight[name] = since[name]
    _place(state, event, "no_recipient")


def _expire(state: GraphState, record: records.Expire, event: EventState) -> None:
    _revive(state, event)
    _land(state, event)
    _place(state, event, "expired")


def _finding(state: GraphState, record: records.FindingRow, _: None) -> None:
    state.findings.append(record.t)


def _incident(state: GraphState, record: records.IncidentRow, _: None) -> None:
    """Note a wait on purpose or a failed request; other incidents change nothing."""
    detail = record.detail if isinstance(record.detail, dict) else {}
    if record.what == records.WAITS and not state.is_over:
        _wait(state, detail.get("activation"), detail.get("event"))
    elif record.what == records.REQUEST_FAILED and _is_failed_request(state, detail):
        state.changed |= UNANSWERED
        event = detail.get("event")
        state.problems.fail(None if event is None else state.event(event).sources)


def _wait(state: GraphState, activation: object, event: object) -> None:
    if event is None and isinstance(activation, str) and activation in state.running:
        waiting = state.running[activation]
        waiting.waits = True
        state.problems.touched.update(dict.fromkeys(waiting.problems))
        state.changed |= WAITING
    elif activation is None and isinstance(event, str) and state.knows(event):
        state.event(event).is_kept = True
        state.changed |= WAITING


def _is_failed_request(state: GraphState, detail: dict[str, Any]) -> bool:
    """Whether the detail is well formed, and names only existing events and activations."""
    failure, event, activation, error = map(detail.get, ("how", "event", "activation", "error"))
    is_known = activation is None or (
        isinstance(activation, str) and state.history.activation(activation) is not None
    )
    is_outside = event is None or (
        isinstance(event, str) and state.knows(event) and state.event(event).by is None
    )
    is_text = error is None or isinstance(error, str)
    return isinstance(failure, str) and failure in FAILURES and is_known and is_outside and is_text


def _finish(state: GraphState, record: records.Finish, _: None) -> None:
    state.finished, state.is_restricted = record, True


# --- the life of an event ---


def _send(state: GraphState, event: EventState, to: tuple[str, ...]) -> None:
    """Put an event on its way to the present agents without a copy."""
    event.sent_to = to
    for name in to:
        agent = state.present.get(name)
        if agent is not None and name not in event.copies:
            event.flight.setdefault(name, state.t)
            agent.incoming[event.id] = event


def _land(state: GraphState, event: EventState) -> None:
    """Take an event back from all agents in `flight`."""
    for name in event.flight:
        del state.present[name].incoming[event.id]
    event.flight = {}


def _place(state: GraphState, event: EventState, cause: str | None) -> None:
    """Update the state of an event after a change: open, orphaned (with the cause), or closed."""
    # Detectors of single events look at `touched` alone, so every change of place passes here.
    state.touched.append(event)
    place, before = 0, event.place
    if event.work and not event.consumed:
        place = (BUFFERED if event.copies else 0) + (FLYING if event.flight else 0)
        if (event.cause is None) != (place > 0):
            event.cause, event.us_lost = None if place else cause, state.now
            state.changed |= LOST_OR_FOUND
    if place != before:
        if place == FLYING:
            event.us_sent = state.now
            state.changed |= SENT_OFF
        state.problems.move(event, place)
        if not before:
            state.open[event.id] = event
        elif not place:
            del state.open[event.id]
    if not (place or event.copies or event.flight or event.cause):
        if event.final and not state.history.flags[event.n] & (ACCEPTED | BOUNCED):
            return  # it is still to be decided about
        state.live.pop(event.id, None)
        state.changed |= CLOSED


def _revive(state: GraphState, event: EventState) -> None:
    """Reopen a closed event."""
    if event.id not in state.live:
        state.live[event.id] = event
        state.changed |= CLOSED


def _pass(state: GraphState, record: Any, subject: Any = None) -> None:
    """Stand for the rule or the rewrite of a kind that has none."""


STEPS: dict[type, tuple[Callable[..., Any], Callable[..., None]]] = {
    records.Run: (rules.run, _begin),
    records.Emit: (rules.emit, _emit),
    records.Deliver: (rules.deliver, _deliver),
    records.Start: (rules.start, _start),
    records.End: (rules.end, _end),
    records.Join: (rules.join, _join),
    records.Leave: (rules.leave, _leave),
    records.Redirect: (rules.names_event, _redirect),
    records.Expire: (rules.names_event, _expire),
    records.FindingRow: (_pass, _finding),
    records.HealRow: (rules.heal, _pass),
    records.IncidentRow: (_pass, _incident),
    records.Finish: (_pass, _finish),
}
"""Of each kind of record its rule and its rewrite."""
