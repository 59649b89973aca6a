"""The corners of what may happen in a run, and which of them a trace visits.

Random traces are worth as much as what they reach. `FEATURES` names what they should, each with
a function that finds it in the oracle's states; the suite and the campaign count them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

from .oracle import Row, State, micros

WINDOWS = ("MC", "OE", "DL")


@dataclass(frozen=True)
class Seen:
    """A trace as the oracle reads it: the states after each record, and all findings."""

    states: list[State]
    found: list[Row]

    @property
    def steps(self) -> Iterator[tuple[State, State]]:
        """Each state beside the one before it."""
        return pairwise(self.states)

    def at(self, kind: str) -> Iterator[tuple[State, State, Row]]:
        """The states before and after each record of a kind, and the record."""
        return ((was, now, now.row) for was, now in self.steps if now.row["kind"] == kind)

    @cached_property
    def alike(self) -> list[set[frozenset[str]]]:
        """For each state of a session the pairs of problems of which all is about both."""
        return [_alike(state) for state in self.states] if self.last.session else []

    @property
    def last(self) -> State:
        return self.states[-1]

    @property
    def due(self) -> list[Row]:
        """What windows raised."""
        return [one for one in self.found if one["pattern"] in WINDOWS]

    def limit(self, name: str) -> int:
        return micros(self.last.limits[name])


def features(states: list[State], found: list[Row]) -> list[str]:
    """The features that a trace has."""
    seen = Seen(states, found)
    return [name for name, has in FEATURES.items() if has(seen)]


def moments(found: list[Row]) -> Counter[tuple[float, int]]:
    return Counter((one["ts"], one["t"]) for one in found)


# -- agents ---


def _returns(seen: Seen) -> bool:
    gone = {row["agent"] for _, _, row in seen.at("leave")}
    return any(row["agent"] in gone for _, _, row in seen.at("join") if _later(seen, row))


def _later(seen: Seen, join: Row) -> bool:
    left = [row["t"] for _, _, row in seen.at("leave") if row["agent"] == join["agent"]]
    return bool(left) and left[0] < join["t"]


def _remembers_from_before(seen: Seen) -> bool:
    """An answer rests on what its agent did before it left and returned."""
    for _, now, row in seen.at("emit"):
        if row["final"]:
            agent = now.agent(row["by"])
            back = [r["t"] for _, _, r in seen.at("join") if r["agent"] == agent]
            mine = [v for v in now.behind(row["event"]) if now.agent(v) == agent]
            if any(now.ends[v]["t"] < t < now.ends[row["by"]]["t"] for v in mine for t in back):
                return True
    return False


# -- events ---


def _named(row: Row) -> Iterator[str]:
    """The recipients that a record names."""
    if row["kind"] in ("emit", "redirect"):
        yield from row["to"]
    for fate in row.get("fates", []):
        yield from fate.get("to", [])


def _of_cause(cause: str) -> Callable[[Seen], bool]:
    return lambda seen: any(cause in state.orphaned.values() for state in seen.states)


def _revived(cause: str) -> Callable[[Seen], bool]:
    """Something orphaned for this reason is sent to somebody again."""
    return lambda seen: any(
        was.orphaned.get(row["event"]) == cause and now.flight[row["event"]]
        for was, now, row in seen.at("redirect")
    )


def _unnamed_note(seen: Seen) -> bool:
    for was, now, row in seen.at("end"):
        named = {fate["event"] for fate in row["fates"]}
        read = now.starts[row["activation"]]["inputs"]
        if any(was.is_system(event) and event not in named for event in read):
            return True
    return False


def _only_a_note(seen: Seen) -> bool:
    """An activation ends whose only progress is to have read a note that it does not name."""
    return any(
        now.is_progress(row["activation"])
        and not row["outputs"]
        and all(fate["fate"] == "delay" for fate in row["fates"])
        for _, now, row in seen.at("end")
    )


def _twice_consumed(seen: Seen) -> bool:
    used = Counter(e for v in seen.last.ends for e in seen.last.inputs(v))
    return any(count > 1 for count in used.values())


# -- lineage and answers ---


def _merges(seen: Seen) -> bool:
    """An activation puts together two lineages, none of which holds the other."""
    for v in seen.last.ends:
        roots = seen.last.roots[v]
        if all(roots > seen.last.roots[e] for e in seen.last.inputs(v)) and len(roots) > 1:
            return True
    return False


def _finals(seen: Seen) -> Iterator[tuple[State, str]]:
    return ((now, row["event"]) for _, now, row in seen.at("emit") if row["final"])


def _stops_at_settled(seen: Seen) -> bool:
    """Part of what stands behind an answer is settled, part is not."""
    for now, event in _finals(seen):
        behind = now.behind(event)
        used = {e for v in behind for e in now.inputs(v) if now.is_agent_made(e)}
        if behind and any(now.emits[e]["by"] in now.settled for e in used):
            return True
    return False


def _side_by_side(seen: Seen) -> bool:
    """Two unanswered problems of a session have open events, and some of them differ."""
    if not seen.last.session:
        return False
    for state in seen.states:
        pending = {state.sources[e] - state.answered for e in state.open_events}
        if any(not one & other for one in pending if one for other in pending if other):
            return True
    return False


def _about(state: State) -> dict[str, frozenset[str]]:
    """For each unanswered problem of a session what is going on about it."""
    going = {e: state.sources[e] for e in state.open_events}
    going |= {v: state.concerns(v) for v in state.running.values()}
    outside = [e for e in state.emits if state.is_environment(e)]
    return {
        problem: frozenset(one for one, sources in going.items() if problem in sources)
        for problem in outside
        if problem not in state.answered
    }


def _alike(state: State) -> set[frozenset[str]]:
    pairs = combinations(((p, things) for p, things in _about(state).items() if things), 2)
    return {frozenset((p, q)) for (p, mine), (q, its) in pairs if mine == its}


def _parted(seen: Seen) -> bool:
    """Of two problems that were alike, something concerns only one."""
    for (before, after), now in zip(pairwise(seen.alike), seen.states[1:], strict=False):
        about = _about(now) if before - after else {}
        if any(p in about and q in about and about[p] != about[q] for p, q in before):
            return True
    return False


# -- windows ---


def _at_a_record(seen: Seen) -> bool:
    """A record stands exactly at a deadline, and comes after it."""
    times = {state.row["t"]: state.row["ts"] for state in seen.states}
    return any(times.get(one["t"] + 1) == one["ts"] for one in seen.due)


def _just_in_time(seen: Seen) -> bool:
    """An interval is broken by the record at the microsecond before or at which it would be due."""
    span = seen.limit("oe_window_s")
    since: dict[str, int] = {}
    for was, now in seen.steps:
        us = micros(now.row["ts"])
        for event in was.orphaned:
            since.setdefault(event, micros(was.row["ts"]))
            if event not in now.orphaned and us == since[event] + span - 1:
                return True
        since = {event: us for event, us in since.items() if event in now.orphaned}
    return False


def _busy(seen: Seen, one: Row) -> list[int]:
    """The starts of the activations in progress when a window raised something."""
    state = seen.states[one["t"]]
    if one["pattern"] == "OE":
        return []
    return [micros(state.starts[v]["ts"]) for v in state.running.values()]


def _limit_passes(seen: Seen) -> bool:
    """Something is raised at the very moment at which an activation does not count any more."""
    span = seen.limit("activation_limit_s")
    return any(
        micros(one["ts"]) - span in _busy(seen, one)
        and micros(one["ts"]) > micros(seen.states[one["t"]].row["ts"])
        for one in seen.due
    )


def _raised_by(kind: str) -> Callable[[Seen], bool]:
    """Something due is raised by the record that makes it possible."""

    def has(seen: Seen) -> bool:
        return any(
            one["pattern"] != "OE"
            and seen.states[one["t"]].row["kind"] == kind
            and seen.states[one["t"]].row["ts"] == one["ts"]
            for one in seen.due
        )

    return has


def _patterns_at_once(seen: Seen) -> bool:
    kinds = {(one["ts"], one["t"], one["pattern"]) for one in seen.due}
    return len(kinds) > len({(ts, t) for ts, t, _ in kinds})


def _again(pattern: str) -> Callable[[Seen], bool]:
    """The pattern is raised twice about one subject."""

    def has(seen: Seen) -> bool:
        subjects = Counter(str(one["subject"]) for one in seen.found if one["pattern"] == pattern)
        return any(count > 1 for count in subjects.values())

    return has


def _filled(key: str) -> Callable[[Seen], bool]:
    return lambda seen: any(one["evidence"].get(key) for one in seen.found)


def _longest(key: str, least: int) -> Callable[[Seen], bool]:
    def size(one: Row) -> int:
        value: Any = one["evidence"].get(key) or ()
        return len(value)

    return lambda seen: any(size(one) >= least for one in seen.found)


def _worth(pattern: str, severity: str | None) -> Callable[[Seen], bool]:
    """The pattern is raised with that severity, or with any."""
    return lambda seen: any(
        one["pattern"] == pattern and severity in (None, one["severity"]) for one in seen.found
    )


def _stall_first(seen: Seen) -> bool:
    """MC or DL is raised while an activation is in progress for which STALL was raised."""
    over: set[str] = set()
    for one in seen.found:
        if one["pattern"] == "STALL":
            over.add(one["subject"]["activation"])
        running = set(seen.states[one["t"]].running.values())
        if one["pattern"] in ("MC", "DL") and running & over:
            return True
    return False


def _says_nothing(was: State, now: State) -> bool:
    """Whether an incident has changed nothing of what detectors look at."""
    return was.waiting == now.waiting and now.failed_request is None


def _void(how: str) -> Callable[[Seen], bool]:
    return lambda seen: any(one["evidence"].get("how") == how for one in seen.found)


SEVERITIES = {
    "ET": "error warning notice",
    "MC": "error warning notice",
    "OE": "error notice",
    "DL": "error warning notice",
    "STALL": "error notice",
    "LATE": "error notice",
    "ER": "error warning notice",
    "CLA": "warning notice",
    "RSP": "notice",
    "LOOP": "error warning notice",
    "LIVELOCK": "error warning notice",
    "VOID": "error warning notice",
    "FAIL": "error warning notice",
}
"""What a finding of a pattern may be worth; all but RSP are notices where they are usual."""

FEATURES: dict[str, Callable[[Seen], bool]] = {
    "session": lambda seen: seen.last.session,
    "memory": lambda seen: seen.last.memory,
    "coverage off": lambda seen: not seen.last.limits["coverage"],
    "activations at once": lambda seen: any(len(s.running) > 1 for s in seen.states),
    "leave": lambda seen: any(seen.at("leave")),
    "leave in an activation": lambda seen: any(
        row["agent"] in was.running for was, _, row in seen.at("leave")
    ),
    "leave with work in the buffer": lambda seen: any(
        was.buffers[row["agent"]] for was, _, row in seen.at("leave")
    ),
    "leave with work on its way": lambda seen: any(
        row["agent"] in to for was, _, row in seen.at("leave") for to in was.flight.values()
    ),
    "newcomer": lambda seen: any(not _later(seen, row) for _, _, row in seen.at("join")),
    "return": _returns,
    "answer from before the return": _remembers_from_before,
    "recipient who is not there": lambda seen: any(
        name not in now.present for now in seen.states for name in _named(now.row)
    ),
    "recipient who holds it": lambda seen: any(
        row["event"] in now.buffers.get(name, [])
        for _, now, row in seen.at("redirect")
        for name in row["to"]
    ),
    "expiry on the way": lambda seen: any(
        was.flight[row["event"]] for was, _, row in seen.at("expire")
    ),
    "expiry beside a copy": lambda seen: any(
        was.flight[row["event"]] and now.copies[row["event"]] for was, now, row in seen.at("expire")
    ),
    "redirect on the way": lambda seen: any(
        was.flight[row["event"]] and now.flight[row["event"]]
        for was, now, row in seen.at("redirect")
    ),
    "redirect of what was consumed": lambda seen: any(
        row["event"] in was.consumed and now.flight[row["event"]]
        for was, now, row in seen.at("redirect")
    ),
    "no recipient": _of_cause("no_recipient"),
    "discarded": _of_cause("discarded"),
    "left": _of_cause("left"),
    "expired": _of_cause("expired"),
    "no recipient, then redirected": _revived("no_recipient"),
    "discarded, then redirected": _revived("discarded"),
    "left, then redirected": _revived("left"),
    "expired, then redirected": _revived("expired"),
    "answer sent back": lambda seen: bool(seen.last.bounced),
    "bounced answer consumed": lambda seen: bool(seen.last.bounced & seen.last.consumed),
    "bounced answer rerouted": lambda seen: any(
        fate["event"] in now.bounced and fate["fate"] == "reroute"
        for _, now, row in seen.at("end")
        for fate in row["fates"]
    ),
    "accepted while on its way back": lambda seen: any(
        row["to"] is None and was.flight[row["event"]] for was, _, row in seen.at("deliver")
    ),
    "answer after a bounce accepted": lambda seen: any(
        row["to"] is None and was.bounced for was, _, row in seen.at("deliver")
    ),
    "several answers accepted": lambda seen: len(seen.last.accepted) > 1,
    "answer on a note alone": lambda seen: any(
        not now.inputs(now.emits[event]["by"]) for now, event in _finals(seen)
    ),
    "answer beside settled work": _stops_at_settled,
    "answer that asks for nothing": lambda seen: any(
        now.session and not now.aims(event) for now, event in _finals(seen)
    ),
    "notice of an agent": lambda seen: any(
        row["type"] == "notice" and seen.last.is_agent_made(e) for e, row in seen.last.emits.items()
    ),
    "notice from outside": lambda seen: any(
        row["type"] == "notice" and row["by"] is None for row in seen.last.emits.values()
    ),
    "notice consumed": lambda seen: any(
        seen.last.emits[e]["type"] == "notice" for e in seen.last.consumed
    ),
    "several problems": lambda seen: sum(map(seen.last.is_environment, seen.last.emits)) > 1,
    "problems side by side": _side_by_side,
    "problems alike": lambda seen: any(seen.alike),
    "problems alike, then parted": _parted,
    "lineages merge": _merges,
    "consumed twice": _twice_consumed,
    "note read by default": _unnamed_note,
    "note is all the progress": _only_a_note,
    "reroute edge beside a copy": lambda seen: any(
        fate["fate"] == "reroute" and now.copies[fate["event"]]
        for _, now, row in seen.at("end")
        for fate in row["fates"]
    ),
    "record at a deadline": _at_a_record,
    "orphan found a microsecond early": _just_in_time,
    "windows over at once": lambda seen: any(count > 1 for count in moments(seen.due).values()),
    "windows of several patterns over at once": _patterns_at_once,
    "activation limit passes": _limit_passes,
    "raised beside an activation too old": lambda seen: any(
        _busy(seen, one) for one in seen.due
    ),
    "raised by an end": _raised_by("end"),
    "raised by a leave": _raised_by("leave"),
    "orphaned again": _again("OE"),
    "deadlock again": _again("DL"),
    "missing termination again": _again("MC"),
    "rerouted on and on": _again("ER"),
    "open work at an answer": _filled("unresolved"),
    "lost work at an answer": _filled("uncovered"),
    "more than is told": _filled("more"),
    "stalled activation": _worth("STALL", "error"),
    "stall before a deadlock or a missing answer": _stall_first,
    "instances in one round": lambda seen: any(
        one["pattern"] == "LIVELOCK" and any("#" in a for a in seen.last.present)
        for one in seen.found
    ),
    "said again in a session": lambda seen: seen.last.session and _worth("LOOP", None)(seen),
    "waits on purpose": lambda seen: bool(seen.last.waiting),
    "incident of another form": lambda seen: any(
        row["what"] in ("waits", "request_failed") and _says_nothing(was, now)
        for was, now, row in seen.at("incident")
    ),
    "end of an activation that waits": lambda seen: any(
        ("activation", row["activation"]) in was.waiting for was, _, row in seen.at("end")
    ),
    "leave in an activation that waits": lambda seen: any(
        ("activation", was.running.get(row["agent"])) in was.waiting
        for was, _, row in seen.at("leave")
    ),
    "raised after an activation that failed": lambda seen: any(
        one["pattern"] in ("MC", "DL")
        and any(end.get("error") and end["t"] <= one["t"] for end in seen.last.ends.values())
        for one in seen.found
    ),
    "error of another": lambda seen: any(end.get("because") for end in seen.last.ends.values()),
    "error by being called off": lambda seen: any(
        end.get("cancelled") for end in seen.last.ends.values()
    ),
    "answer after a failure, and nothing raised": lambda seen: any(
        now.is_final(row["event"])
        and any(end.get("error") for end in now.ends.values())
        and not any((one["t"], one["stage"]) == (row["t"], "answer") for one in seen.found)
        for _, now, row in seen.at("emit")
    ),
    "request failed after an answer": lambda seen: any(
        was.accepted and now.failed_request for was, now, _ in seen.at("incident")
    ),
    "nothing looked at any more": lambda seen: None in seen.last.given_up,
    "one problem looked at no more": lambda seen: bool(seen.last.given_up - {None}),
    **{f"answer that is {how}": _void(how) for how in ("blank", "echo", "call")},
    "payload with what was given": lambda seen: any(
        "$given" in str(row.get("payload")) for row in seen.last.emits.values()
    ),
    **{
        f"{pattern} as {severity}": _worth(pattern, severity)
        for pattern, severities in SEVERITIES.items()
        for severity in severities.split()
    },
    "deadlock of several": _longest("waiting", 2),
    "several conflicts": _longest("conflicts", 2),
    "several shared": _longest("shared", 2),
    "solved three times": lambda seen: any(
        len(item["activations"]) > 1
        for one in seen.found
        for item in one["evidence"].get("shared", ())
    ),
}  # fmt: skip
