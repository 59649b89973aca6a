"""The frontier, the explanatory graph and the ranking."""

from __future__ import annotations

from itertools import pairwise

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.lab.investigate.beliefs import Alert, Belief, Claim, Fact
from dig.lab.investigate.frontier import explanation, frontier, rank_entities

ENTITIES = "abcdefg"
LINKS = st.lists(st.tuples(st.sampled_from(ENTITIES), st.sampled_from(ENTITIES)), max_size=20)


@given(LINKS, st.sets(st.sampled_from(ENTITIES)))
def test_the_frontier_is_the_sources_of_the_condensation_of_origins(
    links: list[tuple[str, str]], origins: set[str]
) -> None:
    """By networkx: contract what reaches one another, take what nothing reaches."""
    graph = networkx.DiGraph(links)
    graph.add_nodes_from(ENTITIES)
    whole = networkx.transitive_closure(graph, reflexive=None).subgraph(origins)
    condensed = networkx.condensation(whole)
    sources = {
        one
        for node, count in condensed.in_degree()
        if count == 0
        for one in condensed.nodes[node]["members"]
    }
    claims = [Claim(a, b) for a, b in links]
    assert set(frontier(claims, sorted(origins))) == sources


@pytest.mark.parametrize(
    ("links", "origins", "answer"),
    [
        ("ab", "ab", "a"),
        ("ab ba", "ab", "ab"),
        ("ab ba ca", "abc", "c"),
        ("ax xb", "ab", "a"),
        ("", "ab", "ab"),
        ("ab", "", ""),
    ],
)
def test_small_frontiers(links: str, origins: str, answer: str) -> None:
    """Chains, cycles, a cycle with a cause, and entities between that are no origins."""
    claims = [Claim(one[0], one[1]) for one in links.split()]
    assert "".join(frontier(claims, origins)) == answer


@given(LINKS, st.sets(st.sampled_from(ENTITIES), min_size=1), st.sampled_from(ENTITIES))
def test_the_explanation_has_a_shortest_path_to_each_alarm(
    links: list[tuple[str, str]], sources: set[str], alarmed: str
) -> None:
    """The path is as long as networkx says; without one the alarm is not explained."""
    graph = networkx.DiGraph(links)
    graph.add_nodes_from(ENTITIES)
    lengths = networkx.multi_source_dijkstra_path_length(graph, sources)
    alert = Alert(alarmed, 1.0, "errors")
    claims, paths = explanation([Claim(a, b) for a, b in links], sorted(sources), [alert])
    assert (alert in paths) == (alarmed in lengths)
    if alert in paths:
        path = paths[alert]
        assert len(path) - 1 == lengths[alarmed] and path[0] in sources and path[-1] == alarmed
        steps = set(pairwise(path))
        assert {(one.source, one.target) for one in claims} == steps


def test_the_ranking_goes_by_weight_reach_time_and_name() -> None:
    """Each of the four decides where those before are equal; healthy entities are left out."""
    beliefs = {
        "late": Belief("symptom", "far", 0.5),
        "heavy": Belief("defer", weight=0.9),
        "b": Belief("defer", weight=0.5),
        "a": Belief("defer", weight=0.5),
        "reaches": Belief("defer", weight=0.5),
        "well": Belief("healthy", weight=1.0),
    }
    facts = {
        one: [Fact("x", ts, "log")]
        for one, ts in {"late": 9.0, "b": 5.0, "a": 5.0, "reaches": 9.0}.items()
    }
    claims = [Claim("reaches", "late")]
    order = rank_entities(beliefs, claims, [Alert("late", 1.0, "errors")], facts)
    assert order == ["heavy", "late", "reaches", "a", "b"]
