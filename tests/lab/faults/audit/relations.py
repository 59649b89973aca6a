"""The relations of docs/lab/faults-verification.md; its rules are read from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from .first_seen import piece
from .history import Event, History, Row, Turn, both, tidy
from .numbers import has, kept, unread

Node = dict[str, Any]

PAGE = Path(__file__).parents[4] / "docs" / "lab" / "faults-verification.md"


class Rule(NamedTuple):
    source: str
    source_states: frozenset[str]
    relation: str
    target: str
    target_states: frozenset[str]


def rules(page: Path = PAGE) -> dict[str, Rule]:
    """The table of rules in the document."""
    found = {}
    text = page.read_text("utf-8").split("## Rules\n")[1].split("\n## ")[0]
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if len(cells) == 5 and ": " in cells[1]:
            (source, its), (target, others) = cells[1].split(": "), cells[3].split(": ")
            states, targets = frozenset(its.split()), frozenset(others.split())
            found[cells[0]] = Rule(source, states, cells[2], target, targets)
    return found


def holds(relation: str, h: History, acts: list[Row], source: Node, target: Node) -> bool:
    """Whether a relation holds between two nodes in the faulted run."""
    if target["type"] == "finding":
        return _found(relation, h, source, h.rows[int(target["name"])])
    if source["type"] == "agent":
        acts = [act for act in acts if act["agent"] == source["name"]]
        return _of_agent(relation, h, acts, source["name"], target)
    if source["type"] == "activation":
        return _of_turn(relation, h, h.turns[source["name"]], target)
    return _of_work(relation, h, source, target)


def lacks(h: History, event: Event) -> bool:
    """Whether who is to be told of an event keeps no solution of some of it."""
    held = tidy(r for solution in kept(h, event.tell) for r in solution.about)
    return not has(held, event.about)


def _of_agent(relation: str, h: History, acts: list[Row], agent: str, target: Node) -> bool:
    if relation == "acted in":
        return target["name"] in [act["activation"] for act in acts]
    if relation == "acted on what it generated":
        other = h.events[target["name"]]
        return any(
            act["activation"] == other.by is not None
            and (h.rows[act["t"]]["kind"] != "emit" or act["t"] <= other.t)
            for act in acts
        )
    if relation == "is":
        return bool(target["name"] == agent)
    if relation == "was to have":
        left, other = h.left[agent], h.events[target["name"]]
        had = any(to == agent and t < left for to, t in other.arrivals)
        return other.lost == left or had or agent in [*other.to, other.tell]
    if relation == "was to be told by":
        turns = [turn for turn in h.turns.values() if turn.agent == target["name"]]
        return any(h.events[e].tell == agent for turn in turns for e in turn.having("consume"))
    return relation == "is of the same run"


def _of_turn(relation: str, h: History, turn: Turn, target: Node) -> bool:
    if relation == "kept waiting":
        other = h.events[target["name"]]
        stop = h.end if turn.stop is None else turn.stop
        came = any(to == turn.agent and turn.t <= t <= stop for to, t in other.arrivals)
        is_there = other.id in turn.inputs or came
        took = turn.fates.get(other.id) == "consume"
        return is_there and not took and target["component"] == turn.agent
    if relation == "lost what was to be told to":
        events = [h.events[e] for e in turn.having("consume")]
        return any(event.tell == target["name"] and lacks(h, event) for event in events)
    if relation == "generated":
        return h.events[target["name"]].by == turn.id
    if relation == "passed on":
        return turn.fates.get(target["name"]) == "reroute"
    if relation == "threw away":
        return turn.fates.get(target["name"]) == "discard"
    if relation == "consumed the last of":
        part = piece(target["name"])
        used = [h.events[e].about for e in turn.having("consume")]
        made = [r for e in turn.outputs for r in h.events[e].about]
        return any(both(about, part) for about in used) and both(made, part) < both(part, part)
    return relation == "was going on in the end" and turn.stop is None


def _of_work(relation: str, h: History, source: Node, target: Node) -> bool:
    """What an event or a part has to do with something else."""
    name = source["name"]
    if relation == "is":
        return name == target["name"] and bool(source["state"] != target["state"])
    if relation == "led to":
        return name != target["name"] and name in h.behind(target["name"])
    if relation == "was dropped by":
        turn = h.turns[target["name"]]
        was_so = turn.stop is not None and source["onset_t"] < turn.stop
        return was_so and turn.fates.get(name) in ("reroute", "discard")
    if relation == "was to be told to":
        event = h.events[name]
        return not event.consumer and event.tell == target["name"] and lacks(h, event)
    if relation == "is about":
        return both(h.events[name].about, piece(target["name"])) > 0
    if relation == "is the undone work on":
        event = h.events[name]
        return not event.consumer and both(event.about, piece(target["name"])) > 0
    if relation == "leaves out":
        return not has(h.events[name].about, piece(target["name"]))
    if relation == "was there in the end":
        return unread(h.events[name])
    if relation == "is behind the answer":
        return h.answer is not None and name in h.behind(h.answer.id)
    if relation == "is lacked by":
        held = kept(h, target["name"])
        return not any(both(one.about, piece(name)) for one in held)
    return relation == "is of the same run"


def _found(relation: str, h: History, source: Node, row: Row) -> bool:
    """Whether a finding is of the right pattern, and has to do with the source."""
    name, evidence, subject = source["name"], row["evidence"], row["subject"]
    if row["pattern"] == "ET":
        named = [*evidence["unresolved"], *evidence["uncovered"]]
        elements = tidy(r for one in named for r in h.events[one].about)
        if relation == "is about what ET names":
            return both(h.events[name].about, elements) > 0
        if relation == "is behind the subject of ET":
            return name in h.behind(subject["event"])
        return relation == "is named by ET" and name in named
    if row["pattern"] == "DL":
        waiting = evidence["waiting"]
        if relation == "is named by DL":
            return name in [event for events in waiting.values() for event in events]
        return relation == "waits in DL" and name in waiting
    if row["pattern"] == "OE":
        return relation == "is the subject of OE" and bool(subject["event"] == name)
    return relation == "is missed by MC"
