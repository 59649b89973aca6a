"""The patterns, searched for by looking at every state of a trace on its own."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from .oracle import Row, State, micros

KINDS = ("ET", "MC", "OE", "DL", "ER", "CLA delivery", "CLA consumption", "RSP")
"""Each pattern, with each of its stages, in the order in which simultaneous findings are listed."""

PATTERNS = tuple(dict.fromkeys(kind.split()[0] for kind in KINDS))


def kind_of(finding: dict[str, Any]) -> str:
    """The pattern of a finding, with its stage if it has one, as in `KINDS`."""
    return " ".join(filter(None, (finding["pattern"], finding["stage"])))


@dataclass(frozen=True)
class Found:
    """A finding before it is put in order."""

    pattern: str
    moment: int
    t: int
    subject: dict[str, str]
    evidence: dict[str, Any]
    stage: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The object that the command line prints."""
        return {
            "pattern": self.pattern,
            "stage": self.stage,
            "t": self.t,
            "ts": self.moment / 1e6,
            "subject": self.subject,
            "evidence": self.evidence,
        }


def findings(rows: list[Row], patterns: Container[str] = PATTERNS) -> list[dict[str, Any]]:
    """All findings of a trace in their order.

    Args:
        rows: The rows of a valid trace.
        patterns: The kinds to keep.

    Returns:
        The objects that a check of the trace must print.
    """
    return findings_of(State.each(rows), patterns)


def findings_of(states: list[State], patterns: Container[str] = PATTERNS) -> list[dict[str, Any]]:
    """The findings of a trace whose states after each row are there already."""
    found = [*_of_windows(states), *_of_records(states)]
    generated = states[-1].emits if states else {}

    def order(one: Found) -> tuple[int, int, int, int]:
        subject = generated.get(one.subject.get("event", ""), {"t": 0})
        return one.moment, one.t, PATTERNS.index(one.pattern), subject["t"]

    return [one.as_json() for one in sorted(found, key=order) if one.pattern in patterns]


# -- findings that a record raises ---


def _of_records(states: list[State]) -> Iterator[Found]:
    looks = {"emit": _at_emit, "deliver": _at_deliver, "end": _at_end}
    for before, now in zip([State(), *states], states, strict=False):
        look = looks.get(now.row["kind"])
        if look is not None:
            yield from look(before, now)


def _raise(now: State, pattern: str, stage: str | None = None, /, **about: Any) -> Found:
    """A finding at the state's last record; `about` holds its subject and its evidence."""
    return Found(pattern, micros(now.row["ts"]), now.row["t"], stage=stage, **about)


def _at_emit(_: State, now: State) -> Iterator[Found]:
    event = now.row["event"]
    if not now.is_final(event) or (now.session and not now.aims(event)):
        return
    unresolved = now.unresolved(event)
    uncovered = now.uncovered(event) if now.limits["coverage"] else []
    if unresolved or uncovered:
        evidence = {"unresolved": unresolved, "uncovered": uncovered}
        yield _raise(now, "ET", subject={"event": event}, evidence=evidence)


def _at_deliver(before: State, now: State) -> Iterator[Found]:
    event, agent = now.row["event"], now.row["to"]
    if agent is None:
        return
    conflicts = [e for e in before.buffers[agent] if _strangers(now, event, e)]
    if conflicts:
        subject = {"event": event, "agent": agent}
        evidence = {"conflicts": now.by_generation(conflicts)}
        yield _raise(now, "CLA", "delivery", subject=subject, evidence=evidence)


def _at_end(_: State, now: State) -> Iterator[Found]:
    activation = now.row["activation"]
    yield from _rerouted(now, activation)
    subject = {"activation": activation}
    pairs = combinations(now.inputs(activation), 2)
    conflicts = [list(pair) for pair in pairs if _strangers(now, *pair)]
    if conflicts:
        evidence: dict[str, Any] = {"conflicts": conflicts}
        yield _raise(now, "CLA", "consumption", subject=subject, evidence=evidence)
    shared = _shared(now, activation)
    if shared:
        yield _raise(now, "RSP", subject=subject, evidence={"shared": shared})


def _strangers(now: State, one: str, other: str) -> bool:
    """Whether both events have a lineage, and not a common one."""
    if not (now.is_agent_made(one) and now.is_agent_made(other)):
        return False
    mine, its = now.roots[one], now.roots[other]
    return bool(mine) and bool(its) and not mine & its


def _rerouted(now: State, activation: str) -> Iterator[Found]:
    for event, fate in now.fates(activation).items():
        if fate != "reroute" or event in now.consumed or not now.is_work(event):
            continue
        path = [now.agent(v) for v in now.ends if now.fates(v).get(event) == "reroute"]
        if len(path) > now.limits["reroute_limit"]:
            yield _raise(now, "ER", subject={"event": event}, evidence={"path": path})


def _shared(now: State, activation: str) -> list[dict[str, Any]]:
    """The inputs that an activation used again, with those who used them to answer before."""
    answering = [v for v in now.ends if now.is_reducing(v) and now.outputs(v)]
    if activation not in answering:
        return []
    answering.remove(activation)
    users = {e: [v for v in answering if e in now.inputs(v)] for e in now.inputs(activation)}
    return [{"event": e, "activations": them} for e, them in users.items() if them]


# -- findings that a window raises ---


@dataclass(frozen=True)
class Look:
    """What one window's watcher sees after one record.

    Attributes:
        state: The state after the record.
        holds: Whether the condition holds.
        restarts: Whether the record makes the watcher start over although it holds.
        busy: The starts, in microseconds, of the activations in progress that hold it back.
    """

    state: State
    holds: bool
    restarts: bool = False
    busy: tuple[int, ...] = ()

    @property
    def us(self) -> int:
        """The moment of the record."""
        return micros(self.state.row["ts"])


def _of_windows(states: list[State]) -> Iterator[Found]:
    if not states:
        return
    last = states[-1]
    work = [e for e in last.emits if last.is_work(e)]
    for event in work:
        yield from _orphan(states, event)
    problems: list[str | None] = [e for e in work if last.is_environment(e)]
    for problem in problems if last.session else [None]:
        yield from _idle(states, problem, "MC", _missing, _last)
        yield from _idle(states, problem, "DL", _stuck, _waiting)


def _moments(looks: list[Look], window: int, limit: int = 0) -> Iterator[tuple[int, State]]:
    """The moments at which a window is over, with the state of then.

    The state after a record lasts until the next one, whose own moment still belongs to it: what
    is due at that moment comes before the record. The last state lasts for a moment only.
    """
    for first, look in enumerate(looks):
        if not look.holds or (first and looks[first - 1].holds and not look.restarts):
            continue  # no interval begins here
        for here, after in zip(looks[first:], [*looks[first + 1 :], looks[-1]], strict=True):
            if here is not look and (not here.holds or here.restarts):
                break  # the interval is over
            free = [start + limit for start in here.busy]
            moment = max(look.us + window, here.us, *free)
            if moment <= after.us:
                yield moment, here.state
                break


def _is_over(state: State) -> bool:
    """Whether the run has its answer and no window is looked at any more."""
    return bool(state.accepted) and not state.session


def _orphan(states: list[State], event: str) -> Iterator[Found]:
    looks = [Look(state, event in state.orphaned and not _is_over(state)) for state in states]
    for moment, state in _moments(looks, micros(_limit(states, "oe_window_s"))):
        evidence = {"cause": state.orphaned[event]}
        yield Found("OE", moment, state.row["t"], {"event": event}, evidence)


def _idle(
    states: list[State],
    problem: str | None,
    pattern: str,
    condition: Callable[[State, str | None], bool],
    evidence: Callable[[State, str | None], dict[str, Any]],
) -> Iterator[Found]:
    looks = [_idle_look(state, problem, condition) for state in states]
    window = micros(_limit(states, f"{pattern.lower()}_window_s"))
    limit = micros(_limit(states, "activation_limit_s"))
    subject = {} if problem is None else {"event": problem}
    for moment, state in _moments(looks, window, limit):
        yield Found(pattern, moment, state.row["t"], subject, evidence(state, problem))


def _limit(states: list[State], name: str) -> float:
    """A limit of the run, the same in all its states."""
    return float(states[-1].limits[name])


def _idle_look(
    state: State, problem: str | None, condition: Callable[[State, str | None], bool]
) -> Look:
    if _is_over(state) or problem in state.answered:
        return Look(state, holds=False)
    running = [v for v in state.running.values() if _touches(state, v, problem)]
    ended = state.row["activation"] if state.row["kind"] == "end" else None
    return Look(
        state,
        holds=condition(state, problem),
        restarts=ended is not None and state.is_progress(ended) and _touches(state, ended, problem),
        busy=tuple(micros(state.starts[v]["ts"]) for v in running),
    )


def _touches(state: State, activation: str, problem: str | None) -> bool:
    return problem is None or problem in state.concerns(activation)


def _of(state: State, events: list[str], problem: str | None) -> list[str]:
    """Those of the events that concern the problem, all of them outside a session."""
    return [e for e in events if problem is None or problem in state.sources[e]]


def _missing(state: State, problem: str | None) -> bool:
    """MC: there was work, none is left, and no answer is under way."""
    posed = [e for e in state.emits if state.is_environment(e) and state.is_work(e)]
    finals = _of(state, [e for e in state.emits if state.is_final(e)], problem)
    gone = state.bounced | (set(state.accepted) if state.session else set())
    asked = bool(posed) if problem is None else problem in posed
    return asked and not _of(state, state.open_events(), problem) and set(finals) <= gone


def _last(state: State, problem: str | None) -> dict[str, Any]:
    ended = [v for v in state.ends if _touches(state, v, problem)]
    return {"last": ended[-1] if ended else None}


def _stuck(state: State, problem: str | None) -> bool:
    """DL: work lies in buffers, and none is on its way."""
    pending = _of(state, state.open_events(), problem)
    held = any(state.copies[e] for e in pending)
    return held and not any(state.flight[e] for e in pending)


def _waiting(state: State, problem: str | None) -> dict[str, Any]:
    pending = _of(state, state.open_events(), problem)
    shares = {a: [e for e in pending if a in state.copies[e]] for a in sorted(state.present)}
    return {"waiting": {agent: events for agent, events in shares.items() if events}}
