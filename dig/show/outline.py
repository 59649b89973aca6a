"""The graph as lines of text: one an activation, with its fates and its outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dig._util.text import name as shown
from dig.graph.records import SYSTEM
from dig.graph.views import GraphView

PAST = {
    "consume": "consumed",
    "delay": "delayed",
    "reroute": "rerouted",
    "discard": "discarded",
    None: "looks at",
}


def outline(view: GraphView) -> Iterator[str]:
    """A graph in lines, in order of time: events from outside, and every activation."""
    nodes = dict(view.nodes())
    seen: dict[str, dict[str | None, list[str]]] = {}
    made: dict[str, list[str]] = {}
    for source, target, edge in view.edges():
        if edge["kind"] == "generation":
            made.setdefault(source, []).append(target)
        else:
            seen.setdefault(target, {}).setdefault(edge.get("fate"), []).append(source)
    generated = {event for events in made.values() for event in events}
    for name, node in sorted(nodes.items(), key=lambda item: _time(item[1])):
        if node["kind"] == "activation":
            yield _activation(name, node, seen.get(name, {}), made.get(name, []), nodes)
        elif name not in generated:
            by = SYSTEM if view.graph.event(name).by == SYSTEM else "environment"
            yield f"t={node['t_gen']}  {by}: {_event(name, node)}"
    kinds = [node["kind"] for node in nodes.values()]
    edges = sum(1 for _ in view.edges())
    yield (
        f"{kinds.count('activation')} activations, {kinds.count('event')} events, "
        f"{edges} edges{' (cleaned)' if view.productive else ''}"
    )


def _time(node: dict[str, Any]) -> int:
    time: int = node["t_start"] if node["kind"] == "activation" else node["t_gen"]
    return time


def _activation(
    name: str,
    node: dict[str, Any],
    seen: dict[str | None, list[str]],
    made: Sequence[str],
    nodes: dict[str, dict[str, Any]],
) -> str:
    end = f"-{node['t_end']}" if "t_end" in node else "-..."
    did = [f"{PAST[fate]} {_list(events)}" for fate, events in seen.items()]
    if made:
        did.append("generated " + ", ".join(_event(event, nodes[event]) for event in made))
    what = "; ".join(did) or "did nothing"
    return f"t={node['t_start']}{end}  {shown(node['agent'])} ({shown(name)}): {what}"


def _event(name: str, node: dict[str, Any]) -> str:
    kind = "final " if node["final"] else ""
    return f"{shown(name)} [{kind}{shown(node['type'])}]"


def _list(names: Sequence[str]) -> str:
    return ", ".join(shown(name) for name in names)
