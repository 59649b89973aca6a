"""An investigation as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from dig.diagnosis.pictures import LASTS, MOST_FACTS, StepPage
from dig.show.page.writing import Report

from .beliefs import Alert, Belief, Claim, Fact, Message, World
from .controller import Inbox
from .frontier import reached, successors
from .investigation import Investigation


def draw_investigation(found: Investigation, world: World, out: Path) -> Report:
    """Write the page of an investigation: its steps, and then what explains the alarms, in layers.

    Args:
        found: The answer.
        world: The world that was investigated.
        out: The file.

    Raises:
        JournalError: The file cannot be written.
    """
    layers = _layers(found)
    ordered = sorted(layers, key=lambda one: (layers[one], one))
    page = StepPage(found.name, dict.fromkeys([*ordered, *(one.entity for one in found.ledger)]))
    _ledger(page, found, world)
    _explanation(page, found, {one: layers[one] for one in ordered})
    listed = ", ".join(found.answer) or "no place that is known"
    says = f"{'It' if found.frontier else 'A guess: it'} began at {listed}."
    page.say(page.rows[-1]["ts"] + 1, "answer", None, "final", (), says, is_answer=True)
    answer = {"grade": "unknown", "says": says}
    head = {"state": found.ended, "lanes": "part", "answer": answer, "verdict": [["end", says]]}
    return page.write(out, head)


def _layers(found: Investigation) -> dict[str, int]:
    """The layer of each entity of the explanation: so many links from the frontier."""
    graph = successors(found.propagations)
    layers = dict.fromkeys(found.answer, 0)
    for source in found.answer:
        depth = {source: 0}
        for entity, before in reached(graph, source).items():
            if before is not None:
                depth[entity] = depth[before] + 1
                layers[entity] = min(layers.get(entity, depth[entity]), depth[entity])
    return layers


def _ledger(page: StepPage, found: Investigation, world: World) -> None:
    """Each judgement with the packet that it was made from: evidence, alarms and inbox."""
    low, high = found.window
    window = (float("-inf") if low is None else low, float("inf") if high is None else high)
    inboxes: dict[str, Inbox] = {}
    names: dict[Message, str] = {}
    judged = {line.entity for line in found.ledger}
    for line in found.ledger:
        ts, packet = float(line.step), f"evidence of {line.entity}"
        if line.visit == 1:
            facts = world.evidence(line.entity, window)[:MOST_FACTS]
            alarms = [one.alert for one in found.alerts_explained]
            known = {
                "kind": world.kind(line.entity), "evidence": [_plain(one) for one in facts],
                "alarms": [_plain(one) for one in alarms if one.entity == line.entity],
            }  # fmt: skip
            page.say(ts, packet, None, "evidence", [line.entity], known)
        name, message = f"{line.step} {line.belief.label}", f"belief {line.step}"
        inbox = [names[one] for one in inboxes.get(line.entity, ())]
        page.act(ts, name, line.entity, [packet, *inbox])
        told = [other for other in line.told if other in judged]
        page.say(ts + LASTS, message, name, line.belief.label, told, _plain(line.belief))
        for other in told:
            sent = Message(line.entity, line.belief)
            names[sent] = message
            inboxes.setdefault(other, Inbox(other)).receive(sent)


def _plain(one: Fact | Alert | Belief | Claim) -> dict[str, Any]:
    """A part of a packet as it is shown: what is empty is left out."""
    return {key: value for key, value in asdict(one).items() if value not in (None, "", ())}


def _explanation(page: StepPage, found: Investigation, layers: Mapping[str, int]) -> None:
    """The smallest graph that explains the alarms, a layer after the other; a finding a cause."""
    start = len(found.ledger) + 2.0
    wide = max(1.0, len(found.ledger) / (2 * len(layers))) if layers else 1.0
    labels = {one.name: one for one in found.entities}
    links = {f"{one.source} -> {one.target}": one for one in found.propagations}
    names = {one: f"{one}: {labels[one].label}" if one in labels else one for one in layers}
    began: dict[str, int] = {}
    for entity, layer in layers.items():
        ts, own = (
            start + layer * wide,
            [name for name, one in links.items() if one.source == entity],
        )
        into = [name for name, one in links.items() if one.target == entity]
        began[entity] = page.act(ts, names[entity], entity, into, wide * LASTS)
        for name in own:
            link = links[name]
            page.say(ts + wide * LASTS, name, names[entity], "claim", [link.target], _plain(link))
    for entity in found.answer:
        paths = [one.by for one in found.alerts_explained if entity in one.by] or [(entity,)]
        ways = [path[path.index(entity) :] for path in paths]
        ids = dict.fromkeys(node for way in ways for node in _along(way, names))
        kind = "origin" if found.frontier else "guess"
        says = labels[entity].why if entity in labels else ""
        page.find(
            began[entity], kind, f"{kind.capitalize()}: {entity}", says, [*ids],
            _along(ways[0], names), is_first=True,
        )  # fmt: skip


def _along(way: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """The nodes of a way from entity to entity, with the links between."""
    links = [node for a, b in pairwise(way) for node in (f"{a} -> {b}", names[b])]
    return [names[way[0]], *links]
