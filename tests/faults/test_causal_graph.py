"""The causal graph: its ids, its JSON, its projection on components."""

from __future__ import annotations

import json

import pytest

from dig.diagnosis.causes import CausalGraph, Cause, Edge, Node
from dig.errors import RecordError


def node(type_: str, name: str, component: str, state: str, t: int) -> Node:
    return Node(
        type=type_, name=name, component=component, state=state, onset_t=t, onset_s=t / 10, test="x"
    )


GRAPH = CausalGraph(
    (
        node("agent", "agent-3", "agent-3", "injected", 5),
        node("event", "e4", "agent-3", "lost", 6),
        node("part", "0-10", "task", "missing", 7),
        node("outcome", "", "outcome", "wrong", 9),
    ),
    (
        Edge("agent:agent-3:injected", "event:e4:lost", "R1"),
        Edge("event:e4:lost", "part:0-10:missing", "R2"),
        Edge("part:0-10:missing", "outcome:wrong", "R3"),
    ),
    (Cause("agent-3", "drop"),),
    ("outcome:wrong",),
)


def test_a_graph_survives_json() -> None:
    """What was written is read again as the same graph."""
    assert CausalGraph.read(json.loads(json.dumps(GRAPH.to_json()))) == GRAPH


def test_a_node_is_found_by_its_id() -> None:
    """An id names type, thing and state."""
    assert GRAPH.node("event:e4:lost").onset_t == 6
    with pytest.raises(KeyError):
        GRAPH.node("event:e4:late")


def test_a_projection_has_components_and_no_step_within_one() -> None:
    """Agents, task and outcome; an event belongs to its agent."""
    small = GRAPH.project()
    assert [n.id for n in small.nodes] == ["agent-3", "task", "outcome"]
    assert [(e.source, e.target) for e in small.edges] == [
        ("agent-3", "task"),
        ("task", "outcome"),
    ]
    assert small.alarms == ("outcome",)
    assert small.root_causes == GRAPH.root_causes
    assert CausalGraph.read(small.to_json()) == small


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"edges": [{"source": "a", "target": "b"}]}, r"edges\.0\.rule: Field required"),
        ({"alarms": ["outcome:late"]}, "outcome:late"),
        ({"nodes": None}, "nodes"),
        ({"steps": []}, "steps"),
    ],
)
def test_what_is_no_graph_is_refused(change: dict[str, object], said: str) -> None:
    """The message names the place."""
    with pytest.raises(RecordError, match=said):
        CausalGraph.read({**GRAPH.to_json(), **change})
