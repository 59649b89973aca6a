"""Cut-outs of the graph: what they hold, and that networkx takes them."""

from __future__ import annotations

import json
from collections.abc import Iterable

import networkx as nx
import pytest
from hypothesis import given

from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph
from dig.graph.views import GraphView
from tests.histories import arrive, emit, start, trace, turn
from tests.oracle import Row
from tests.strategies import traces


def graph_of(rows: Iterable[Row]) -> InteractionGraph:
    return InteractionGraph.of(map(decode, rows))


def assert_same(one: nx.Graph[str], other: nx.Graph[str]) -> None:
    """The same nodes and edges with the same attributes, in the same order."""
    assert type(one) is type(other)
    assert list(one.nodes(data=True)) == list(other.nodes(data=True))
    assert list(one.edges(data=True)) == list(other.edges(data=True))


@given(traces())
def test_node_link_data_loads_back_into_the_same_graph(rows: list[Row]) -> None:
    """What is printed as JSON is what networkx makes of it, raw and cleaned."""
    graph = graph_of(rows)
    for view in (GraphView(graph), graph.cleaned(), graph.at(len(rows) // 2)):
        data = json.loads(json.dumps(view.node_link()))
        assert_same(nx.node_link_graph(data, edges="edges"), view.to_networkx())


@given(traces(most=40))
def test_a_view_at_a_time_is_that_of_the_records_up_to_it(rows: list[Row]) -> None:
    """`at(t)` shows neither what came later nor what became of things later."""
    graph = graph_of(rows)
    for t in range(len(rows)):
        then = graph_of(rows[: t + 1])
        assert graph.at(t).node_link() == GraphView(then).node_link()
        assert graph.at(t).cleaned().node_link() == then.cleaned().node_link()


def small() -> InteractionGraph:
    """`a` uses `e0` and keeps `e1`; `b` has just begun to look at the answer."""
    return graph_of(
        trace(
            arrive(0, "e0", None, "a"),
            arrive(0, "e1", None, "a", "notice"),
            turn(1, "v", "a", "x", e0="consume", e1="delay"),
            arrive(1, "x", "v", "b", "solution"),
            start(2, "w", "b", "x"),
            emit(2, "s", "system", "c", "system"),
        )
    )


def test_nodes_and_edges_have_the_keys_of_the_format() -> None:
    """The format names the keys of every kind of node and edge, and there are no others."""
    data = small().at(99).node_link()
    event = {"kind": "event", "final": False}
    assert data["nodes"] == [
        {**event, "t_gen": 1, "type": "problem", "id": "e0"},
        {**event, "t_gen": 3, "type": "notice", "id": "e1"},
        {**event, "t_gen": 7, "type": "solution", "id": "x"},
        {**event, "t_gen": 10, "type": "system", "id": "s"},
        {"kind": "activation", "agent": "a", "t_start": 5, "t_end": 6, "id": "v"},
        {"kind": "activation", "agent": "b", "t_start": 9, "id": "w"},
    ]
    assert data["edges"] == [
        {"kind": "generation", "t": 7, "source": "v", "target": "x"},
        {"kind": "delivery", "fate": "consume", "t": 6, "source": "e0", "target": "v"},
        {"kind": "delivery", "fate": "delay", "t": 6, "source": "e1", "target": "v"},
        {"kind": "delivery", "t": 9, "source": "x", "target": "w"},
    ]
    assert {key: data[key] for key in data if key not in ("nodes", "edges")} == {
        "directed": True,
        "multigraph": False,
        "graph": {},
    }


def test_the_cleaned_graph_keeps_productive_edges_and_what_they_touch() -> None:
    """Delays, activations that are still at work and events that nobody used are left out."""
    cleaned = small().cleaned().to_networkx()
    assert set(cleaned.nodes) == {"e0", "v", "x"}
    assert set(cleaned.edges) == {("e0", "v"), ("v", "x")}


@pytest.mark.parametrize("t", [0, 5, 6, 99])
def test_the_order_of_time_and_cleaning_makes_no_difference(t: int) -> None:
    """A view that is cleaned and one that is of a time can be made each from the other."""
    graph = small()
    assert graph.at(t).cleaned() == graph.cleaned().at(t)
    assert graph.at(t).at(3) == graph.at(3)


def test_before_its_end_an_activation_has_seen_but_not_used() -> None:
    """At its start the delivery edges are there without a fate, and productive ones are not."""
    graph = small()
    assert graph.at(5).to_networkx().edges["e0", "v"] == {"kind": "delivery", "t": 5}
    assert len(graph.at(5).cleaned().to_networkx()) == 0
    assert set(graph.at(6).cleaned().to_networkx()) == {"e0", "v"}


def test_a_view_follows_the_run() -> None:
    """A view without a time shows the graph as it is when it is asked."""
    graph = small()
    view = GraphView(graph)
    before = len(view.to_networkx())
    graph.apply(decode({"t": 11, **emit(3, "late", None, "a")}))
    assert len(view.to_networkx()) == before + 1
    assert "late" not in graph.at(10).to_networkx()
