"""The patterns, searched for by looking at every state of a trace on its own.

Whether a finding was mended later stands in `oracle_mended.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from .oracle import Row, State, micros

KINDS = (
    "ET", "ER", "CLA delivery", "CLA consumption", "RSP", "LOOP", "LIVELOCK", "VOID",
    "FAIL turn", "FAIL answer", "FAIL request", "STALL", "MC", "OE", "DL", "LATE",
)  # fmt: skip
"""Each pattern, with each of its stages, in the order in which simultaneous findings are listed:
first what records raise, then what windows raise."""

PATTERNS = tuple(dict.fromkeys(kind.split()[0] for kind in KINDS))

FOREVER = 10**30  # in microseconds: no trace lasts so long
MOST_ITEMS = 100
MOST_REMEMBERED = 1000
MOST_CHARACTERS = 200


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
    severity: str = "error"
    stage: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The object that the command line prints."""
        return {
            "pattern": self.pattern,
            "severity": self.severity,
            "stage": self.stage,
            "t": self.t,
            "ts": self.moment / 1e6,
            "subject": self.subject,
            "evidence": bounded(self.evidence),
        }


def bounded(evidence: dict[str, Any]) -> dict[str, Any]:
    """The evidence with no list longer than a hundred items."""

    def short(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: short(item) for key, item in value.items()}
        return [short(item) for item in value[:MOST_ITEMS]] if isinstance(value, list) else value

    kept: dict[str, Any] = short(evidence)
    return kept if kept == evidence else kept | {"more": True}


def findings(rows: list[Row], patterns: Container[str] = PATTERNS) -> list[dict[str, Any]]:
    """All findings of a trace in their order.

    Args:
        rows: The rows of a valid trace.
        patterns: The kinds to keep.

    Returns:
        The objects that a check of the trace must print.
    """
    return [one.as_json() for one in ordered(State.each(rows)) if one.pattern in patterns]


def ordered(states: list[State]) -> list[Found]:
    """All findings in their order, with their whole evidence."""
    if not states:
        return []
    last = states[-1]
    places = {name: row["t"] for name, row in (last.emits | last.starts).items()}

    def order(one: Found) -> tuple[int, int, int, int]:
        subject = one.subject.get("event") or one.subject.get("activation")
        place = 0 if subject is None else places[subject]
        return one.moment, one.t, PATTERNS.index(one.pattern), place

    found = [*_of_records(states), *_loops(last), *_livelocks(last), *_of_windows(states)]
    return _with_usual(last, sorted(found, key=order))


# -- findings that a record raises ---


def _of_records(states: list[State]) -> Iterator[Found]:
    looks = {
        "emit": _at_emit,
        "deliver": _at_deliver,
        "end": _at_end,
        "incident": _at_incident,
    }
    for before, now in zip([State(), *states], states, strict=False):
        look = looks.get(now.row["kind"])
        if look is not None:
            yield from look(before, now)


def _raise(now: State, pattern: str, stage: str | None = None, /, **about: Any) -> Found:
    """A finding at the state's last record; `about` holds its subject and its evidence."""
    return Found(pattern, micros(now.row["ts"]), now.row["t"], stage=stage, **about)


def _at_emit(_: State, now: State) -> Iterator[Found]:
    event = now.row["event"]
    if now.is_final(event):
        yield from _early(now, event)
        yield from _void(now, event)
        yield from _on_failures(now, event)


def _early(now: State, event: str) -> Iterator[Found]:
    if now.session and not now.aims(event):
        return
    unresolved = now.unresolved(event)
    uncovered = now.uncovered(event) if now.limits["coverage"] else []
    if unresolved or uncovered:
        evidence = {"unresolved": unresolved, "uncovered": uncovered}
        on_nothing = not now.inputs(now.row["by"])
        bad = now.unused(event) or on_nothing or not now.limits["coverage"]
        severity = "error" if bad else "warning"
        yield _raise(now, "ET", subject={"event": event}, evidence=evidence, severity=severity)


def _at_deliver(before: State, now: State) -> Iterator[Found]:
    event, agent = now.row["event"], now.row["to"]
    if agent is None:
        return
    conflicts = [e for e in before.buffers[agent] if _strangers(now, event, e)]
    if conflicts:
        subject = {"event": event, "agent": agent}
        evidence = {"conflicts": now.by_generation(conflicts)}
        foreign = any(_of_other_sources(now, event, e) for e in conflicts)
        severity = "warning" if foreign else "notice"
        yield _raise(now, "CLA", "delivery", subject=subject, evidence=evidence, severity=severity)


def _of_other_sources(now: State, one: str, other: str) -> bool:
    mine, its = now.sources[one], now.sources[other]
    return bool(mine) and bool(its) and not mine & its


def _void(now: State, event: str) -> Iterator[Found]:
    """VOID: an answer that is none."""
    how = _how_void(now, event, now.row.get("payload"))
    if how is not None:
        severity = "warning" if how == "echo" else "error"
        evidence = {"how": how}
        yield _raise(now, "VOID", subject={"event": event}, evidence=evidence, severity=severity)


def _how_void(now: State, event: str, payload: Any) -> str | None:
    if not isinstance(payload, str):
        return None
    words = payload.strip()
    about = now.aims(event) if now.session else now.asked(event)
    asked = [now.emits[e].get("payload") for e in about]
    if not words:
        return "blank"
    if words in [question.strip() for question in asked if isinstance(question, str)]:
        return "echo"
    return "call" if _is_call(words) else None


def _is_call(words: str) -> bool:
    try:
        call = json.loads(words)
    except (ValueError, RecursionError):
        return False
    keys = set(call) if isinstance(call, dict) else set()
    shapes: list[set[Any]] = [{"name", "arguments"}, {"name", "parameters"}]
    return keys in shapes and isinstance(call["name"], str)


def _on_failures(now: State, event: str) -> Iterator[Found]:
    """FAIL answer: the last that other agents did for an answer was to fail."""
    author = now.row["by"]
    me = _agent(now.agent(author))
    latest: dict[str, str] = {}
    for v, row in now.ends.items():
        concerned = not now.session or now.concerns(v) & now.aims(event)
        if _agent(now.agent(v)) != me and not _is_anothers(row) and concerned:
            latest[_agent(now.agent(v))] = v
    failed = [v for v in now.ends if v in latest.values() and now.ends[v].get("error")]
    failed = [v for v in failed if not _is_made_good(now, v, author)]
    if failed:
        about: dict[str, Any] = {"subject": {"event": event}, "evidence": {"failed": failed}}
        yield _raise(now, "FAIL", "answer", **about, severity="warning")


def _is_anothers(end: Row) -> bool:
    """Whether an end says that its error is that of another."""
    return bool(end.get("because")) or bool(end.get("cancelled"))


def _is_made_good(now: State, failed: str, author: str) -> bool:
    """Whether another agent, or the activation that answers, did the work of one that failed."""
    work = [e for e in now.starts[failed]["inputs"] if now.is_work(e)]
    if not work:
        return False
    strangers = {_agent(now.agent(failed)), _agent(now.agent(author))}
    for v, row in now.ends.items():
        fits = v == author or _agent(now.agent(v)) not in strangers
        after = now.starts[v]["t"] > now.ends[failed]["t"]
        if fits and after and not row.get("error") and all(_did(now, v, e) for e in work):
            return True
    return False


def _did(now: State, activation: str, event: str) -> bool:
    """Whether an activation consumed an event, or work that says the same."""
    used = now.inputs(activation)
    words = _words(now.emits[event])
    same = [e for e in used if now.is_work(e) and words and _words(now.emits[e]) == words]
    return event in used or bool(same)


def _at_incident(_: State, now: State) -> Iterator[Found]:
    """FAIL request: the host says that there will be no answer."""
    told = now.failed_request
    if told is not None:
        subject = {} if told["event"] is None else {"event": told["event"]}
        evidence = {key: told[key] for key in ("how", "activation")}
        evidence["error"] = told["error"] and told["error"][:MOST_CHARACTERS]
        yield _raise(now, "FAIL", "request", subject=subject, evidence=evidence)


def _at_end(_: State, now: State) -> Iterator[Found]:
    activation = now.row["activation"]
    yield from _rerouted(now, activation)
    subject = {"activation": activation}
    pairs = combinations(now.inputs(activation), 2)
    conflicts = [list(pair) for pair in pairs if _strangers(now, *pair)]
    if conflicts:
        evidence: dict[str, Any] = {"conflicts": conflicts}
        about: dict[str, Any] = {"subject": subject, "evidence": evidence, "severity": "warning"}
        yield _raise(now, "CLA", "consumption", **about)
    shared = _shared(now, activation)
    if shared:
        evidence = {"shared": shared}
        yield _raise(now, "RSP", subject=subject, evidence=evidence, severity="notice")
    if now.row.get("error") and not _is_anothers(now.row):
        agent, error = now.agent(activation), now.row["error"][:MOST_CHARACTERS]
        evidence = {"agent": agent, "error": error}
        about = {"subject": subject, "evidence": evidence, "severity": "notice"}
        yield _raise(now, "FAIL", "turn", **about)


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
        first = now.limits["reroute_limit"] + 1
        if not _is_doubling(len(path), first):
            continue
        returns = len(set(map(_agent, path))) < len(path)
        severity = ("error" if len(path) >= 4 * first else "warning") if returns else "notice"
        about: dict[str, Any] = {"evidence": {"path": path}, "severity": severity}
        yield _raise(now, "ER", subject={"event": event}, **about)


def _is_doubling(number: int, first: int) -> bool:
    """Whether a number that grows by one has come to `first`, to twice as much, and so on."""
    while first < number:
        first *= 2
    return first == number


def _shared(now: State, activation: str) -> list[dict[str, Any]]:
    """The inputs that an activation used again, with those who used them to answer before."""
    answering = [v for v in now.ends if now.is_reducing(v) and now.outputs(v)]
    if activation not in answering:
        return []
    answering.remove(activation)
    users = {e: [v for v in answering if e in now.inputs(v)] for e in now.inputs(activation)}
    return [{"event": e, "activations": them} for e, them in users.items() if them]


# -- the same said again, and going round: what a whole history tells ---


def _agent(name: str) -> str:
    """The agent of which a name is an instance, or the name."""
    return re.sub(r"(?s)(.)#[0-9]+\Z", r"\1", name)


def _at(last: State, row: Row, pattern: str, base: int, number: int, **about: Any) -> Found:
    """A finding whose pattern was seen `number` times where `base` times are the limit."""
    steps = {"LOOP": ["warning", "error"], "LIVELOCK": ["notice", "warning", "error"]}[pattern]
    severity = steps[[number >= base * 4**n for n in range(len(steps))].count(True) - 1]
    return Found(pattern, micros(row["ts"]), row["t"], severity=severity, **about)


def _loops(last: State) -> Iterator[Found]:
    limit = last.limits["loop_limit"]
    if limit is None:
        return
    # For each agent: how often each message was said, and the event that said it last.
    said: dict[str, dict[str, tuple[int, str]]] = {}
    of_turn: dict[str, list[str]] = {}
    for event, row in last.emits.items():
        message = _message(last, event)
        if message is None or message in of_turn.setdefault(row["by"], []):
            continue
        of_turn[row["by"]].append(message)
        known = said.setdefault(_agent(last.agent(row["by"])), {})
        count, before = known.pop(message, (0, ""))
        count += 1
        known[message] = count, event
        if len(known) > MOST_REMEMBERED:
            del known[next(iter(known))]
        if _is_doubling(count, limit):
            evidence = {"count": count, "last": before}
            yield _at(last, row, "LOOP", limit, count, subject={"event": event}, evidence=evidence)


def _message(last: State, event: str) -> str | None:
    """All that must be equal for a message to be the same; nothing if it is not compared."""
    row = last.emits[event]
    if not (last.is_agent_made(event) and last.is_work(event)):
        return None
    me = _agent(last.agent(row["by"]))
    inputs = [e for e in last.inputs(row["by"]) if not _is_continuation(last, e, me)]
    mine, *others = [_words(last.emits[e]) for e in [event, *inputs]]
    if mine is None or None in others:
        return None
    sources = last.by_generation(last.sources[event]) if last.session else []
    to = [_agent(a) for a in row["to"]]
    return json.dumps([mine, row["type"], to, sorted(map(str, others)), sources])


def _is_continuation(last: State, event: str, agent: str) -> bool:
    """Whether an agent sent an event to itself alone, to go on later."""
    row = last.emits[event]
    if row["final"] or row["type"] != "notice" or not last.is_agent_made(event):
        return False
    return {agent} == {_agent(last.agent(row["by"])), *map(_agent, row["to"])} and bool(row["to"])


def _words(emit: Row) -> str | None:
    """The payload of an event as it is compared; nothing if it cannot be."""
    payload = _new_part(emit.get("payload"))
    if payload is None or (isinstance(payload, dict) and _has_marks(payload)):
        return None
    return json.dumps(payload, sort_keys=True)


def _new_part(payload: Any) -> Any:
    """The payload without what was given before, wherever it stands."""
    if isinstance(payload, dict):
        if set(payload) == {"$given", "$new"}:
            return _new_part(payload["$new"])
        return {key: _new_part(value) for key, value in payload.items()}
    return [_new_part(value) for value in payload] if isinstance(payload, list) else payload


def _has_marks(payload: dict[str, Any]) -> bool:
    return any(key.startswith("$") for key in payload)


def _livelocks(last: State) -> Iterator[Found]:
    limit, most = last.limits["livelock_turns"], last.limits["livelock_agents"]
    if limit is None or most is None:
        return
    before = {v: _trigger(last, v) for v in last.ends}
    seen = []
    for activation, row in last.ends.items():
        if not last.outputs(activation):
            continue
        chain = [activation]
        while before[chain[-1]] is not None:
            chain.append(str(before[chain[-1]]))
        agents: set[str] = set()
        turns = 0
        for v in chain:
            if len(agents | {_agent(last.agent(v))}) > most:
                break
            agents.add(_agent(last.agent(v)))
            turns += 1
        evidence = {"agents": sorted(agents), "turns": turns, "origin": chain[-1]}
        if len(agents) > 1 and _is_doubling(turns, limit) and evidence not in seen:
            seen.append(evidence)
            about: dict[str, Any] = {"subject": {"activation": activation}, "evidence": evidence}
            yield _at(last, row, "LIVELOCK", limit, turns, **about)


def _trigger(last: State, activation: str) -> str | None:
    """The activation that generated what set off another, if an agent did."""
    me = _agent(last.agent(activation))
    made = [last.emits[e]["by"] for e in last.inputs(activation) if last.is_agent_made(e)]
    others = [v for v in made if _agent(last.agent(v)) != me]
    return str((others or made)[-1]) if made else None


# -- findings that a window raises ---


@dataclass(frozen=True)
class Look:
    """What one window's watcher sees after one record.

    Attributes:
        state: The state after the record.
        holds: Whether the condition holds.
        restarts: Whether the record makes the watcher start over although it holds.
        busy: The moments, in microseconds, from which on the activations in progress hold it
            back no more.
        stalled: The moment of a STALL, if it is not the record but the finding that is looked at.
    """

    state: State
    holds: bool
    restarts: bool = False
    busy: tuple[int, ...] = ()
    stalled: int | None = None

    @property
    def us(self) -> int:
        """The moment of the record, or of the STALL."""
        return micros(self.state.row["ts"]) if self.stalled is None else self.stalled


def _of_windows(states: list[State]) -> Iterator[Found]:
    last = states[-1]
    stalls = list(_stalls(states))
    yield from stalls
    work = [e for e in last.emits if last.is_work(e)]
    lost = {event for state in states for event in state.orphaned}
    for event in work:
        yield from _orphan(states, event) if event in lost else ()
        yield from _late(states, event)
    problems: list[str | None] = [e for e in work if last.is_environment(e)]
    for problem in problems if last.session else [None]:
        yield from _idle(states, stalls, problem, "MC", _missing, _last)
        yield from _idle(states, stalls, problem, "DL", _stuck, _waiting)


def _moments(looks: list[Look], window: int) -> Iterator[tuple[int, State]]:
    """The moments at which a window is over, with the state of then.

    The state after a record lasts until the next one, whose own moment still belongs to it: what
    is due at that moment comes before the record. The last state lasts for a moment only. A STALL
    comes before what else is due at its moment, so that moment belongs to what is after it.
    """
    for first, look in enumerate(looks):
        if not look.holds or (first and looks[first - 1].holds and not look.restarts):
            continue  # no interval begins here
        for here, after in zip(looks[first:], [*looks[first + 1 :], None], strict=True):
            if here is not look and (not here.holds or here.restarts):
                break  # the interval is over
            moment = max(look.us + window, here.us, *here.busy)
            if after is None:
                until = here.us
            else:
                until = after.us if after.stalled is None else after.us - 1
            if moment <= until:
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


def _late(states: list[State], event: str) -> Iterator[Found]:
    window = states[-1].limits["late_window_s"]
    if window is None or states[-1].emits[event].get("policy") not in (None, "fault"):
        return
    looks = [Look(state, _is_late(state, event) and not _is_over(state)) for state in states]
    for moment, state in _moments(looks, micros(window)):
        evidence = {"to": sorted(state.flight[event])}
        yield Found("LATE", moment, state.row["t"], {"event": event}, evidence)


def _is_late(state: State, event: str) -> bool:
    if event not in state.emits or event in state.consumed or ("event", event) in state.waiting:
        return False
    return bool(state.flight[event]) and not state.copies[event]


def _stalls(states: list[State]) -> Iterator[Found]:
    """STALL: each activation in progress is looked at after each record, until the next one."""
    last = states[-1]
    if last.limits["stall_factor"] is None or last.limits["stall_min_s"] is None:
        return
    good = [v for v in last.ends if last.is_progress(v) and not last.ends[v].get("error")]
    good = [v for v in good if ("activation", v) not in last.waiting]
    raised: set[str] = set()
    for state, after in zip(states, [*states[1:], last], strict=True):
        known = [v for v in good if v in state.ends]
        for agent, activation in state.running.items():
            limit = _stall_limit(state, agent, known)
            if activation in raised or ("activation", activation) in state.waiting or not limit:
                continue
            begun = micros(state.starts[activation]["ts"])
            moment = max(begun + limit, micros(state.row["ts"]))
            if moment <= micros(after.row["ts"]) and not _is_over(state):
                raised.add(activation)
                seen = [e for e in state.starts[activation]["inputs"] if state.is_work(e)]
                evidence: dict[str, Any] = {"agent": agent, "limit_s": limit / 1e6}
                evidence["inputs"] = state.by_generation(seen)
                about = {"activation": activation}
                yield Found("STALL", moment, state.row["t"], about, evidence)


def _stall_limit(state: State, agent: str, known: list[str]) -> int | None:
    """For how long an activation of an agent may last, by what is known of ended ones."""
    mine = [v for v in known if _agent(state.agent(v)) == _agent(agent)]
    least = micros(state.limits["stall_min_s"])
    if len(mine) < 5:
        mine, least = known, max(least, micros(state.limits["activation_limit_s"]))
        if len(known) < 10:
            return None
    rows = [(state.starts[v], state.ends[v]) for v in mine[-99:]]
    lasted = sorted(micros(end["ts"]) - micros(start["ts"]) for start, end in rows)
    m = lasted[-(-9 * len(lasted) // 10) - 1]
    return max(least, round(float(state.limits["stall_factor"]) * m))


def _idle(
    states: list[State],
    stalls: list[Found],
    problem: str | None,
    pattern: str,
    condition: Callable[[State, str | None], bool],
    evidence: Callable[[State, str | None], dict[str, Any]],
) -> Iterator[Found]:
    looks: list[Look] = []
    before = State()
    for state in states:
        looks.append(_idle_look(before, state, problem, condition, stalls))
        before = state
        here = [one for one in stalls if one.t == state.row["t"]]
        here = [one for one in here if _touches(state, one.subject["activation"], problem)]
        for one in sorted(here, key=lambda one: one.moment):
            looks.append(replace(looks[-1], restarts=True, stalled=one.moment))
            looks[-1] = replace(looks[-1], busy=_busy(state, problem, stalls, one.moment))
    window = micros(_limit(states, f"{pattern.lower()}_window_s"))
    subject = {} if problem is None else {"event": problem}
    for moment, state in _moments(looks, window):
        severity = "warning" if _in_progress(state, problem, stalls, moment) else "error"
        told = evidence(state, problem)
        yield Found(pattern, moment, state.row["t"], subject, told, severity)


def _limit(states: list[State], name: str) -> float:
    """A limit of the run, the same in all its states."""
    return float(states[-1].limits[name])


def _idle_look(
    before: State,
    state: State,
    problem: str | None,
    condition: Callable[[State, str | None], bool],
    stalls: list[Found],
) -> Look:
    if _is_over(state) or problem in state.answered or problem in state.given_up:
        return Look(state, holds=False)
    return Look(
        state,
        holds=condition(state, problem),
        restarts=_begins_anew(before, state, problem),
        busy=_busy(state, problem, stalls, -1),
    )


def _begins_anew(before: State, state: State, problem: str | None) -> bool:
    """Whether the last record makes the idle windows begin anew."""
    row = state.row
    if row["kind"] == "leave":
        gone = before.running.get(row["agent"])
        return gone is not None and _is_waiting(state, gone) and _touches(state, gone, problem)
    if row["kind"] != "end" or not _touches(state, row["activation"], problem):
        return False
    tried = state.is_progress(row["activation"]) or bool(row.get("error"))
    return tried or _is_waiting(state, row["activation"])


def _is_waiting(state: State, activation: str) -> bool:
    return ("activation", activation) in state.waiting


def _in_progress(state: State, problem: str | None, stalls: list[Found], moment: int) -> list[str]:
    """The activations in progress for which no STALL was raised before or now."""
    t = state.row["t"]
    over = {s.subject["activation"] for s in stalls if (s.t, s.moment) <= (t, moment)}
    return [v for v in state.running.values() if v not in over and _touches(state, v, problem)]


def _busy(state: State, problem: str | None, stalls: list[Found], moment: int) -> tuple[int, ...]:
    """Until when each activation in progress holds back what is idle, in microseconds."""
    limit = micros(state.limits["activation_limit_s"])
    counting = _in_progress(state, problem, stalls, moment)
    until = {v: micros(state.starts[v]["ts"]) + limit for v in counting}
    waiting = [v for v in state.running.values() if _is_waiting(state, v)]
    until |= {v: FOREVER for v in waiting if _touches(state, v, problem)}
    return tuple(until.values())


def _touches(state: State, activation: str, problem: str | None) -> bool:
    return problem is None or problem in state.concerns(activation)


def _of(state: State, events: list[str], problem: str | None) -> list[str]:
    """Those of the events that concern the problem, all of them outside a session."""
    return [e for e in events if problem is None or problem in state.sources[e]]


def _missing(state: State, problem: str | None) -> bool:
    """MC: there was work, none is left, and no answer is under way."""
    finals = _of(state, state.finals, problem)
    gone = state.bounced | (set(state.accepted) if state.session else set())
    asked = bool(state.posed) if problem is None else problem in state.posed
    return asked and not _of(state, state.open_events, problem) and set(finals) <= gone


def _last(state: State, problem: str | None) -> dict[str, Any]:
    ended = [v for v in state.ends if _touches(state, v, problem)]
    return {"last": ended[-1] if ended else None}


def _stuck(state: State, problem: str | None) -> bool:
    """DL: work lies in buffers, and none is on its way."""
    pending = _of(state, state.open_events, problem)
    held = any(state.copies[e] for e in pending)
    return held and not any(state.flight[e] for e in pending)


def _waiting(state: State, problem: str | None) -> dict[str, Any]:
    pending = _of(state, state.open_events, problem)
    shares = {a: [e for e in pending if a in state.copies[e]] for a in sorted(state.present)}
    return {"waiting": {agent: events for agent, events in shares.items() if events}}


# -- what is usual for the team ---


def _with_usual(last: State, found: list[Found]) -> list[Found]:
    """The findings, those that are usual for the team as notices."""
    usual = last.usual
    if not usual or usual["runs"] < 19:
        return found
    usual_ones = [
        _is_usual(usual, _key(last, one), number)
        for one, number in zip(found, _numbers(last, found), strict=True)
    ]
    return [
        replace(one, severity="notice") if is_usual else one
        for one, is_usual in zip(found, usual_ones, strict=True)
    ]


def _is_usual(usual: Row, key: str, number: int) -> bool:
    counts = usual["counts"].get(key, [])
    runs = counts[number - 1] if number <= len(counts) else 0
    return key != "FAIL request" and bool(20 * (1 + runs) > 1 + usual["runs"])


def _key(last: State, one: Found) -> str:
    """The kind of a finding, under which its times are counted."""
    if one.pattern != "ET":
        return " ".join(filter(None, (one.pattern, one.stage)))
    lists = one.evidence["unresolved"] + one.evidence["uncovered"]
    return f"ET {','.join(sorted({last.emits[e]['type'] for e in lists}))}"


def _numbers(last: State, found: list[Found]) -> Iterator[int]:
    """For each finding the how manieth of its key it is, in a session about these sources."""
    counted: dict[str, dict[tuple[str, ...], int]] = {}
    for one in found:
        known = counted.setdefault(_key(last, one), {})
        sources = tuple(sources_of(last, one))
        number = known.pop(sources, 0) + 1
        known[sources] = number
        if len(known) > MOST_REMEMBERED:
            del known[next(iter(known))]
        yield number


def sources_of(last: State, one: Found) -> list[str]:
    """The environment events that the subject of a finding is about; none outside a session."""
    if not last.session or not one.subject:
        return []
    if "activation" in one.subject:
        return last.by_generation(last.concerns(one.subject["activation"]))
    return last.by_generation(last.sources[one.subject["event"]])
