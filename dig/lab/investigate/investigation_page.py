"""An investigation as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from dig.detectors.answers import FiveAnswers
from dig.diagnosis.pictures import LASTS, MOST_FACTS, StepPage
from dig.show.page.writing import Report

from .beliefs import Alert, Belief, Claim, Fact, Message, World
from .controller import Inbox
from .frontier import distances, successors
from .investigation import Investigation


def draw_investigation(investigation: Investigation, world: World, out: Path) -> Report:
    """Write the page of an investigation: first the steps, then the explanation in layers.

    Args:
        investigation: The answer.
        world: The world that was investigated.
        out: The file.

    Raises:
        JournalError: The file cannot be written.
    """
    layers = _layers(investigation)
    ordered = sorted(layers, key=lambda name: (layers[name], name))
    page = StepPage(
        investigation.name,
        dict.fromkeys([*ordered, *(line.entity for line in investigation.ledger)]),
    )
    _ledger(page, investigation, world)
    _explanation(page, investigation, {name: layers[name] for name in ordered})
    listed = ", ".join(investigation.answer) or "no place that is known"
    says = f"{'It' if investigation.frontier else 'A guess: it'} began at {listed}."
    page.say(page.rows[-1]["ts"] + 1, "answer", None, "final", (), says, is_answer=True)
    head = {
        "state": investigation.ended, "lanes": "part",
        "answers": asdict(FiveAnswers(headline=says)),
    }  # fmt: skip
    return page.write(out, head)


def _layers(investigation: Investigation) -> dict[str, int]:
    """The layer of each entity of the explanation: so many links from the frontier."""
    graph = successors(investigation.propagations)
    layers = dict.fromkeys(investigation.answer, 0)
    for source in investigation.answer:
        for entity, depth in distances(graph, source).items():
            layers[entity] = min(layers.get(entity, depth), depth)
    return layers


def _ledger(page: StepPage, investigation: Investigation, world: World) -> None:
    """Draw each judgement with its packet: evidence, alarms and inbox."""
    low, high = investigation.window
    # The document has no infinities; the world wants them back.
    window = (float("-inf") if low is None else low, float("inf") if high is None else high)
    inboxes: dict[str, Inbox] = {}
    names: dict[Message, str] = {}
    judged = {line.entity for line in investigation.ledger}
    for line in investigation.ledger:
        ts, packet = float(line.step), f"evidence of {line.entity}"
        if line.visit == 1:
            facts = world.evidence(line.entity, window)[:MOST_FACTS]
            alarms = [row.alert for row in investigation.alerts_explained]
            detail = {
                "kind": world.kind(line.entity), "evidence": [_plain(fact) for fact in facts],
                "alarms": [_plain(alarm) for alarm in alarms if alarm.entity == line.entity],
            }  # fmt: skip
            page.say(ts, packet, None, "evidence", [line.entity], detail)
        name, message = f"{line.step} {line.belief.label}", f"belief {line.step}"
        # The ledger has no inboxes: they are rebuilt from its messages, in its order.
        inbox = [names[message] for message in inboxes.get(line.entity, ())]
        page.act(ts, name, line.entity, [packet, *inbox])
        # Only an entity that was judged has an inbox to show.
        recipients = [other for other in line.told if other in judged]
        page.say(ts + LASTS, message, name, line.belief.label, recipients, _plain(line.belief))
        for other in recipients:
            sent = Message(line.entity, line.belief)
            names[sent] = message
            inboxes.setdefault(other, Inbox(other)).receive(sent)


def _plain(item: Fact | Alert | Belief | Claim) -> dict[str, Any]:
    """A part of a packet as plain JSON, without empty fields."""
    return {key: value for key, value in asdict(item).items() if value not in (None, "", ())}


def _explanation(page: StepPage, investigation: Investigation, layers: Mapping[str, int]) -> None:
    """Draw the explanation layer by layer, and a finding for each cause."""
    start = len(investigation.ledger) + 2.0
    wide = max(1.0, len(investigation.ledger) / (2 * len(layers))) if layers else 1.0
    labels = {entity.name: entity for entity in investigation.entities}
    links = {f"{link.source} -> {link.target}": link for link in investigation.propagations}
    names = {node: f"{node}: {labels[node].label}" if node in labels else node for node in layers}
    began: dict[str, int] = {}
    for entity, layer in layers.items():
        ts = start + layer * wide
        own = [name for name, link in links.items() if link.source == entity]
        into = [name for name, link in links.items() if link.target == entity]
        began[entity] = page.act(ts, names[entity], entity, into, wide * LASTS)
        for name in own:
            link = links[name]
            page.say(ts + wide * LASTS, name, names[entity], "claim", [link.target], _plain(link))
    for entity in investigation.answer:
        paths = [alarm.by for alarm in investigation.alerts_explained if entity in alarm.by]
        ways = [path[path.index(entity) :] for path in paths or [(entity,)]]
        ids = dict.fromkeys(node for route in ways for node in _along(route, names))
        kind = "origin" if investigation.frontier else "guess"
        says = labels[entity].why if entity in labels else ""
        page.find(
            began[entity], kind, f"{kind.capitalize()}: {entity}", says, [*ids],
            _along(ways[0], names), is_first=True,
        )  # fmt: skip


def _along(route: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """The nodes of a way from entity to entity, with the links between."""
    links = [node for a, b in pairwise(route) for node in (f"{a} -> {b}", names[b])]
    return [names[route[0]], *links]
