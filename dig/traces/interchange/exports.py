"""A stored run in the formats of other programs: a table of writers by name.

A writer takes an `Export` and yields pieces of text. To add a format, add a line to `FORMATS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dig._util.text import safe_text
from dig.errors import SettingsError, TraceError
from dig.graph.views import GraphView
from dig.traces.journal.reader import read_graph

# What XML 1.0 cannot say at all, and the backslash that stands for it.
_NOT_XML = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\\\\")


@dataclass(frozen=True)
class Export:
    """The part of a stored run to export.

    Attributes:
        path: The trace or run directory.
        at: The logical time of the graph; ``None``: the end.
        cleaned: Whether to export only productive edges and their nodes; by default all.
        service_per_agent: For spans: whether each agent is a service of its own; by default not.
    """

    path: Path
    at: int | None = None
    cleaned: bool = False
    service_per_agent: bool = False

    def view(self) -> GraphView:
        """The graph.

        Raises:
            TraceError: The trace cannot be read, or has no record at that time.
        """
        graph = read_graph(self.path)
        if self.at is not None and self.at > graph.t:
            reason = f"there is no record {self.at}; the last one is {graph.t}"
            raise TraceError(self.path, None, reason)
        return GraphView(graph, self.at, self.cleaned)


Writer = Callable[[Export], Iterator[str]]


def writer(name: str) -> Writer:
    """The writer of a format.

    Raises:
        SettingsError: There is no such format; the message names those that there are.
    """
    if name == "jaeger":
        raise SettingsError("Jaeger's page loads OTLP/JSON: write it with --format otlp -o FILE")
    if name not in FORMATS:
        formats = f"{', '.join(FORMATS)}; and otlp, which is sent"
        raise SettingsError(f"there is no format {name!r} of a file; known are: {formats}")
    return FORMATS[name]


def node_link(export: Export) -> Iterator[str]:
    """Node-link data of networkx, edges under the key `edges`: the output of `graph --json`."""
    yield json.dumps(export.view().node_link()) + "\n"


def graphml(export: Export) -> Iterator[str]:
    """GraphML, with the attributes of the node-link data.

    XML has no way to write most control characters; all of them, and backslashes, become escapes.
    """
    # Slow to import, and only this format needs it.
    import networkx as nx

    view = export.view()
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from((_xml(node), _all_xml(keys)) for node, keys in view.nodes())
    graph.add_edges_from((_xml(s), _xml(t), _all_xml(keys)) for s, t, keys in view.edges())
    for line in nx.generate_graphml(graph):
        yield line + "\n"


def _xml(text: str) -> str:
    return _NOT_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _all_xml(keys: dict[str, Any]) -> dict[str, Any]:
    return {key: _xml(value) if isinstance(value, str) else value for key, value in keys.items()}


def dot(export: Export) -> Iterator[str]:
    """Graphviz: activations are boxes, events ellipses, and unproductive edges are dashed."""
    view = export.view()
    yield "digraph dig {\n  rankdir=LR;\n"
    for node, keys in view.nodes():
        if keys["kind"] == "activation":
            label, shape = f"{keys['agent']}\n{node}", "box"
        else:
            shape = "doubleoctagon" if keys["final"] else "ellipse"
            label = f"{node}\n{keys['type']}"
        yield f"  {_quote(node)} [label={_quote(label)}, shape={shape}];\n"
    for source, target, keys in view.edges():
        style = ""
        if keys["kind"] == "delivery" and keys.get("fate") != "consume":
            style = f" [label={_quote(keys.get('fate', 'sees'))}, style=dashed]"
        yield f"  {_quote(source)} -> {_quote(target)}{style};\n"
    yield "}\n"


def _quote(text: str) -> str:
    """A text as a quoted string of the DOT language."""
    shown = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "\\n".join(safe_text(line) for line in shown.split("\n")) + '"'


def otlp_json(export: Export) -> Iterator[str]:
    """The whole run as spans (docs/internals/spans.md)."""
    from dig.traces.otel.environment import content_of_environment
    from dig.traces.otel.stored_spans import export_text

    if export.at is not None or export.cleaned:
        raise SettingsError("otlp-json shows a whole run; --at and --cleaned are for graphs")
    content = content_of_environment()
    return export_text(export.path, content=content, service_per_agent=export.service_per_agent)


FORMATS: dict[str, Writer] = {
    "graphml": graphml,
    "node-link": node_link,
    "dot": dot,
    "otlp-json": otlp_json,
}
