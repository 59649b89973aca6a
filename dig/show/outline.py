"""The graph as lines of text: a line for each activation, with fates and outputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from dig._util.text import name as shown
from dig.graph.records import SYSTEM
from dig.graph.views import GraphView
from dig.graph.words import PAST


def outline(view: GraphView) -> Iterator[str]:
    """A graph in lines, in order of time: events from outside, and every activation."""
    nodes = dict(view.nodes())
    inputs: dict[str, dict[str | None, list[str]]] = defaultdict(lambda: defaultdict(list))
    outputs: dict[str, list[str]] = defaultdict(list)
    edges = list(view.edges())
    for source, target, edge in edges:
        if edge["kind"] == "generation":
            outputs[source].append(target)
        else:
            inputs[target][edge.get("fate")].append(source)
    # Events of an activation stand in its line, so only the others get a line of their own.
    generated = {event for events in outputs.values() for event in events}
    for name, node in sorted(nodes.items(), key=lambda item: moment(item[1])):
        if node["kind"] == "activation":
            did = [
                f"{PAST[fate]} {', '.join(map(shown, events))}"
                for fate, events in inputs[name].items()
            ]
            if outputs[name]:
                events = ", ".join(_event(event, nodes[event]) for event in outputs[name])
                did.append(f"generated {events}")
            time, text = f"t={node['t_start']}-{node.get('t_end', '...')}", "; ".join(did)
            yield f"{time}  {shown(node['agent'])} ({shown(name)}): {text or 'did nothing'}"
        elif name not in generated:
            by = SYSTEM if view.graph.event(name).by == SYSTEM else "environment"
            yield f"t={node['t_gen']}  {by}: {_event(name, node)}"
    kinds = [node["kind"] for node in nodes.values()]
    yield (
        f"{kinds.count('activation')} activations, {kinds.count('event')} events, "
        f"{len(edges)} edges{' (cleaned)' if view.productive else ''}"
    )


def moment(node: Mapping[str, Any]) -> int:
    """The logical time of the beginning of a node."""
    time: int = node["t_gen"] if node["kind"] == "event" else node["t_start"]
    return time


def _event(name: str, node: dict[str, Any]) -> str:
    kind = "final " if node["final"] else ""
    return f"{shown(name)} [{kind}{shown(node['type'])}]"
