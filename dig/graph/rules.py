"""The rules of the graph: the records allowed after a state.

A rule raises a `RuleError` that names it, and changes nothing; it returns what the record is about,
for its rewrite (`dig.graph.rewrites`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from typing import NoReturn

from dig.errors import RuleError

from . import records
from .graph_state import GraphState
from .records import ASIDE, SYSTEM, Fate, Record
from .state import ActivationState, AgentState, EventState

MOST_CHARACTERS = 300
FIRST = "the first record must be of kind `run`, and no other"


def _refuse(reason: str) -> NoReturn:
    if len(reason) > MOST_CHARACTERS:  # a name in a trace may be of any length
        reason = reason[: MOST_CHARACTERS - 1] + "…"
    raise RuleError(reason)


def check_moment(state: GraphState, record: Record) -> None:
    """Check that a record may come next, apart from its content.

    Raises:
        RuleError: The moment is not allowed.
    """
    kind = type(record)
    if record.t != state.t + 1:
        _refuse(f"`t` is {record.t}, but record {state.t + 1} comes next")
    if record.us < state.now:
        _refuse(f"`ts` falls from {state.now / 1e6} to {record.ts}")
    if state.t < 0 and kind is not records.Run:
        _refuse(FIRST)
    if state.finished is not None:
        _refuse("no record may follow `finish`")
    if kind in ASIDE:
        return
    if state.awaited:
        _check_awaited(state, record.event if isinstance(record, records.Emit) else None)
    if state.is_over and kind is not records.Finish:
        _refuse(f"no `{record.kind}` may follow an accepted final event (this is no session)")


def _check_awaited(state: GraphState, event: str | None) -> None:
    if event != state.awaited[-1]:
        _refuse(f"the `emit` of output {state.awaited[-1]!r} must come first")


def _new_id(state: GraphState, name: str) -> None:
    if name == SYSTEM:
        _refuse("`system` can be nobody's id")
    if state.history.is_taken(name):
        _refuse(f"the id {name!r} is used for a second thing")


def _new_agents(names: Collection[str]) -> None:
    if SYSTEM in names:
        _refuse("`system` can be nobody's id")
    if len(set(names)) != len(names):
        _refuse("`agents` names somebody twice")


def _event(state: GraphState, name: str) -> EventState:
    event = state.find(name)
    if event is None:
        _refuse(f"there is no event {name!r}")
    return event


def run(state: GraphState, record: records.Run) -> None:
    """Check the first record."""
    if state.t >= 0:
        _refuse(FIRST)
    _new_agents(record.agents)


def emit(state: GraphState, record: records.Emit) -> None:
    """Check that an event may be generated."""
    by = record.by
    if state.awaited and record.event != state.awaited[-1]:
        _check_awaited(state, record.event)
    if by is None or by == SYSTEM:
        if state.awaited:
            _refuse(f"{record.event!r} is an output of {state.ended.id!r}, not of {by!r}")
        _new_id(state, record.event)
    else:  # its end has checked the id
        if by != state.ended.id or not state.awaited:
            _refuse(f"{record.event!r} is not an output that the `end` of {by!r} names")
    if record.final and (by != state.ended.id or len(state.outputs) != 1):
        _refuse("only an activation's sole output may be final")


def deliver(state: GraphState, record: records.Deliver) -> EventState:
    """Check that an event may arrive; return the event."""
    event = state.live.get(record.event) or _event(state, record.event)
    if record.to is None:
        if not event.final:
            _refuse(f"{event.id!r} is no final event, so it cannot be accepted")
        if state.is_accepted(event.id):
            _refuse(f"{event.id!r} was accepted already")
        if state.is_bounced(event.id):
            _refuse(f"{event.id!r} was bounced, so it cannot be accepted")
    elif record.to not in event.flight:
        _refuse(f"{event.id!r} is not on its way to {record.to!r}")
    return event


def start(state: GraphState, record: records.Start) -> AgentState:
    """Check that an agent may begin; return the agent."""
    agent = state.present.get(record.agent)
    if agent is None:
        _refuse(f"agent {record.agent!r} is not present")
    if agent.activation is not None:
        _refuse(f"agent {record.agent!r} is busy with {agent.activation.id!r}")
    if record.inputs != tuple(agent.buffer):
        buffer = ", ".join(map(repr, agent.buffer)) or "nothing"
        _refuse(f"`inputs` must be the buffer of {record.agent!r} in order: {buffer}")
    _new_id(state, record.activation)
    return agent


def end(state: GraphState, record: records.End) -> tuple[ActivationState, dict[str, Fate]]:
    """Check that an activation may end so; return the activation and the fates by event."""
    activation = state.running.get(record.activation)
    if activation is None:
        _refuse(f"{record.activation!r} is not an activation in progress")
    fates = {fate.event: fate for fate in record.fates}
    if len(fates) != len(record.fates) or not fates.keys() <= activation.by_id.keys():
        names, inputs = [fate.event for fate in record.fates], activation.by_id
        wrong = next(name for name in names if name not in inputs or names.count(name) > 1)
        _refuse(f"{wrong!r} has a second fate, or is no input of {activation.id!r}")
    if record.because is not None or record.cancelled:
        check_cause(state, activation.agent, record.error, record.because, record.cancelled)
    for name in record.outputs:
        _new_id(state, name)
    if len(record.outputs) > 1 and len(set(record.outputs)) != len(record.outputs):
        _refuse("`outputs` names an event twice")
    return activation, fates


def check_cause(
    state: GraphState, agent: str, error: str | None, because: str | None, cancelled: bool
) -> None:
    """Check the cause of the error with which an agent's activation is about to end.

    Raises:
        RuleError: The cause is not allowed; the message says why.
    """
    if error is None:
        _refuse("`because` and `cancelled` stand only beside an `error`")
    if because is None:
        return
    if cancelled:
        _refuse("an `error` has `because` or `cancelled`, not both")
    h, v = state.history, state.history.activation(because)
    if v is None or not h.failed[v]:
        _refuse(f"`because` is {because!r}, which is no activation that ended with an `error`")
    if h.agent(v) == agent:
        _refuse(f"`because` is {because!r}, an activation of the same agent; it must be another's")


def join(state: GraphState, record: records.Join) -> None:
    """Check that an agent may join."""
    _new_agents([record.agent])
    if record.agent in state.present:
        _refuse(f"agent {record.agent!r} is present already")


def leave(state: GraphState, record: records.Leave) -> None:
    """Check that an agent may leave."""
    if record.agent not in state.present:
        _refuse(f"agent {record.agent!r} is not present")


def names_event(state: GraphState, record: records.Redirect | records.Expire) -> EventState:
    """Check that an event may be sent elsewhere or called back; return the event."""
    event = _event(state, record.event)
    if type(record) is records.Redirect and state.is_accepted(event.id):
        _refuse(f"{event.id!r} was accepted, so it cannot be redirected")
    return event


def heal(state: GraphState, record: records.HealRow) -> None:
    """Check that an intervention names a finding."""
    t, findings = record.finding, state.findings
    place = bisect_left(findings, t) if type(t) is int else len(findings)
    if place == len(findings) or findings[place] != t:
        _refuse("`finding` must be the `t` of an earlier record of kind `finding`")
