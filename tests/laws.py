"""What a host owes a team besides: nobody is forgotten, and everything comes in time.

Read off the records alone; it shares no code with dig.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .conservation import Account

PROMPT_US = 700_000  # a ready agent starts within latency, or the back-off of a retry


@dataclass
class Kept:
    """An event that a gate keeps: until when at most, when the gate decides, and whether both are
    known, since it was kept at once."""

    deadline_us: int
    decides_us: int
    is_exact: bool


@dataclass
class _Agent:
    present: bool = True
    activation: str | None = None
    buffer: list[str] = field(default_factory=list)
    ready_us: int | None = None  # since when it is to be started
    arrived: bool = False  # something came while it was active
    inputs: tuple[str, ...] = ()


def promptness(records: Iterable[Any], timeout_s: float, retries: int) -> None:
    """Assert that every agent is started when it should be, only then, and works no longer than
    it may; and that one that has failed keeps what was in front of it."""
    agents: dict[str, _Agent] = {}
    began: dict[str, tuple[str, int]] = {}
    failures: dict[str, int] = {}
    systems: set[str] = set()
    now = 0
    for row in records:
        now = row.us
        if row.kind == "run":
            agents = {name: _Agent() for name in row.agents}
        elif row.kind == "join":
            agents[row.agent] = _Agent()
        elif row.kind == "leave":
            agents.pop(row.agent)
        elif row.kind == "emit" and row.by == "system":
            systems.add(row.event)
        elif row.kind == "deliver" and row.to is not None:
            agent = agents[row.to]
            agent.buffer.append(row.event)
            agent.arrived = True
            if agent.activation is None and agent.ready_us is None:
                agent.ready_us = now
        elif row.kind == "start":
            agent = agents[row.agent]
            assert agent.ready_us is not None, f"{row.agent} is started for nothing at t={row.t}"
            assert now - agent.ready_us <= PROMPT_US, f"{row.agent} has waited to be started"
            agent.activation, agent.ready_us, agent.arrived = row.activation, None, False
            agent.inputs = tuple(row.inputs)
            began[row.activation] = row.agent, now
        elif row.kind == "end":
            name, since = began.pop(row.activation)
            agent = agents[name]
            assert now - since <= timeout_s * 1_000_000 + 2, f"{row.activation} took too long"
            named = {fate.event: fate.fate for fate in row.fates}
            if row.error is not None:
                assert all(named.get(e) == "delay" for e in agent.inputs), "a failure loses nothing"
            failures[name] = failures.get(name, 0) + 1 if row.error is not None else 0
            fates = {e: named.get(e, "consume" if e in systems else "delay") for e in agent.inputs}
            kept = [e for e in agent.inputs if fates[e] == "delay"]
            agent.buffer = [e for e in agent.buffer if fates.get(e, "delay") == "delay"]
            agent.activation = None
            again = bool(agent.buffer) and (agent.arrived or 0 < len(kept) < len(agent.inputs))
            if again or 0 < failures[name] <= retries:
                agent.ready_us = now
    for name, agent in agents.items():
        late = agent.ready_us is not None and now - agent.ready_us > PROMPT_US
        assert not late, f"{name} was forgotten"


def stillness(account: Account, outcome: str, reason: str) -> None:
    """Assert that a run in which nothing can happen any more leaves nothing on its way."""
    if outcome == "stopped" and "nothing could happen" in reason:
        assert not account.undelivered, f"{account.undelivered} will never arrive"


def timeliness(records: Iterable[Any], findings: Iterable[Any]) -> None:
    """Assert that every finding was told at its moment."""
    told = [row.us for row in records if row.kind == "finding"]
    late = [(us, f) for us, f in zip(told, findings, strict=True) if abs(us - f.us) > 2]
    assert not late, f"told late: {late[:1]}"


def lateness(records: Iterable[Any]) -> None:
    """Assert that only an activation that healing has taken out, with its agent, speaks later."""
    running: dict[str, str] = {}
    replaced: set[str] = set()
    taken_out: set[str] = set()
    for row in records:
        if row.kind == "start":
            running[row.agent] = row.activation
        elif row.kind == "end":
            running = {agent: v for agent, v in running.items() if v != row.activation}
        elif row.kind == "heal" and row.action == "replace":
            replaced.update(row.to)
        elif row.kind == "leave":
            activation = running.pop(row.agent, None)
            if activation is not None and row.agent in replaced:
                taken_out.add(activation)
            replaced.discard(row.agent)
        elif row.kind == "incident" and row.what == "late output":
            late = row.detail["activation"]
            assert late in taken_out, f"{late} has left by itself, and speaks"


def patience(records: Iterable[Any], kept: Mapping[str, Kept], account: Account) -> None:
    """Assert that what a gate keeps is not delivered before it has decided, or its time is up,
    that it is told when that is, and that what it kept goes on then."""
    end_us, exact = 0, {event: k for event, k in kept.items() if k.is_exact}
    overruled: set[str] = set()
    for row in records:
        end_us = row.us
        if row.kind == "deliver" and row.event in exact:
            until = min(exact[row.event].deadline_us, exact[row.event].decides_us)
            assert row.us >= until - 2, f"{row.event} was let go before its gate had decided"
        if row.kind == "incident" and row.what == "gate deadline passed":
            overruled.add(row.detail["event"])
    overruled &= exact.keys()
    may = {event for event, k in exact.items() if k.deadline_us <= k.decides_us + 2}
    must = {event for event in may if exact[event].deadline_us < end_us - 2}
    must -= {event for event in must if exact[event].decides_us <= exact[event].deadline_us + 2}
    assert must <= overruled <= may, f"{(must - overruled) | (overruled - may)}: a gate's deadline"
    over = {e for e, k in exact.items() if min(k.deadline_us, k.decides_us) < end_us - 2}
    if over == kept.keys():  # else what is still kept may stand in the way of others
        stuck = over & {*account.undelivered}
        assert not stuck, f"{stuck} is not let go"
