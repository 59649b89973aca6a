"""Exports: what other programs read back is the graph."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given

from dig.errors import SettingsError, TraceError
from dig.traces.interchange.exports import FORMATS, Export, writer
from dig.traces.journal.reader import read_graph
from tests.histories import arrive, row, trace
from tests.oracle import Row
from tests.strategies import traces

from .runs import hasty, solved, store


def text(name: str, path: Path, at: int | None = None, *, cleaned: bool = False) -> str:
    return "".join(writer(name)(Export(path, at, cleaned)))


def read_graphml(found: str) -> nx.DiGraph[str]:
    graph = nx.read_graphml(io.BytesIO(found.encode()))
    assert isinstance(graph, nx.DiGraph)
    return graph


@given(rows=traces(most=40))
def test_graphml_and_node_link_hold_the_whole_graph(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    """networkx reads back the nodes, edges and attributes that it is given, raw and cleaned."""
    path = store(tmp_path_factory.getbasetemp() / "any.dig.jsonl", rows)
    for cleaned in (False, True):
        view = read_graph(path).cleaned() if cleaned else read_graph(path).at(len(rows))
        wanted = view.to_networkx()
        graphml = read_graphml(text("graphml", path, cleaned=cleaned))
        linked = json.loads(text("node-link", path, cleaned=cleaned))
        for found in (graphml, nx.node_link_graph(linked, edges="edges")):
            assert contents(found) == contents(wanted)


def contents(graph: nx.Graph[Any]) -> list[dict[Any, Any]]:
    """Nodes and edges with their attributes, whatever their order."""
    edges = {(source, target): keys for source, target, keys in graph.edges(data=True)}
    return [{node: graph.nodes[node] for node in graph}, edges]


def test_node_link_is_what_graph_prints(tmp_path: Path) -> None:
    path = store(tmp_path / "t.dig.jsonl", hasty())
    assert json.loads(text("node-link", path, 9)) == read_graph(path).at(9).node_link()


def test_dot_draws_what_was_not_used_with_dashes(tmp_path: Path) -> None:
    """Every node and edge is there once; fates other than `consume` are named."""
    path = store(tmp_path / "t.dig.jsonl", hasty())
    lines = text("dot", path).splitlines()
    graph = read_graph(path).to_networkx()
    assert (lines[0], lines[-1]) == ("digraph dig {", "}")
    assert sum("->" in line for line in lines) == graph.number_of_edges()
    assert sum("shape=" in line for line in lines) == len(graph)
    assert '  "f" -> "x" [label="delay", style=dashed];' in lines
    assert '  "p" -> "v";' in lines
    assert '  "v" [label="a\\nv", shape=box];' in lines


NASTY = 'x"; } \\ <&>\n\x00\x1b\ud800'


@pytest.mark.parametrize("name", FORMATS)
def test_a_name_can_break_no_format(tmp_path: Path, name: str) -> None:
    """Quotes, tags, controls and halves of characters are escaped, and no two names become one."""
    twin = NASTY.replace("\x00", "\\u0000")
    fates = [{"event": NASTY, "fate": "consume"}, {"event": twin, "fate": "delay"}]
    rows = trace(
        arrive(0, NASTY, None, "a", NASTY),
        arrive(0, twin, None, "a"),
        row(1, "start", activation="v", agent="a", inputs=[NASTY, twin]),
        row(1, "end", activation="v", fates=fates, outputs=[]),
    )
    found = text(name, store(tmp_path / "t.dig.jsonl", rows))
    found.encode()
    if name == "graphml":
        assert len(read_graphml(found)) == 3
    elif name == "node-link":
        assert NASTY in {node["id"] for node in json.loads(found)["nodes"]}
    elif name != "dot":
        json.loads(found)
    else:
        strings = re.findall(r'"(?:[^"\\]|\\.)*"', found)
        assert "\n" not in "".join(strings)
        outside = re.sub(r'"(?:[^"\\]|\\.)*"', "", found)
        assert outside.count("}") == 1
        assert len({line for line in found.splitlines() if "shape" in line}) == 3


def test_an_unknown_format_names_those_there_are() -> None:
    with pytest.raises(SettingsError, match="graphml, node-link, dot"):
        writer("png")


def test_a_time_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    path = store(tmp_path / "t.dig.jsonl", solved())
    with pytest.raises(TraceError, match="no record 99"):
        text("dot", path, 99)
