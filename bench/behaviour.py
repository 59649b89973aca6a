"""What telling behaviours apart costs beside networkx, and what an overview of runs costs."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import networkx as nx
from networkx.algorithms.isomorphism import DiGraphMatcher

from dig.graph.behaviour import Behaviour, signature
from dig.graph.isomorphism import Diagram, are_isomorphic
from dig.show.runs.index import INDEX, overview
from dig.tasks.run.execute import execute
from dig.tasks.run.team_run import TeamRun
from dig.traces.journal.reader import read_graph

from .measure import Table, compared, per_unit

RUNS = 12


def _run(folder: Path, seed: int) -> Path:
    return execute(TeamRun(agents=20, size=40_000, seed=seed), folder).directory


def comparing() -> Table:
    """Microseconds a node, of a run of twenty agents that is compared with its own likeness."""
    with tempfile.TemporaryDirectory() as folder:
        graph = read_graph(_run(Path(folder), seed=3))
    behaviour = Behaviour.of(graph)
    diagram = behaviour.diagram
    one = _labelled(diagram)
    warnings.simplefilter("ignore", UserWarning)  # networkx tells that its hash once changed
    times = per_unit(
        {
            "networkx: weisfeiler_lehman_graph_hash": lambda: (
                len(nx.weisfeiler_lehman_graph_hash(one, edge_attr="looks", node_attr="looks"))
                and len(one)
            ),
            "networkx: DiGraphMatcher": lambda: _match(one) and len(one),
            "behaviour of a graph": lambda: len(Behaviour.of(graph).nodes),
            "signature, strict": lambda: len(signature(behaviour, strict=True)) and len(one),
            "signature, causal": lambda: len(signature(behaviour)) and len(one),
            "exact test, causal": lambda: (
                are_isomorphic(diagram, diagram, lambda work: None) and len(one)
            ),
        },
        rounds=3,
    )
    return compared(f"Behaviour of a run with {len(one):,} nodes", "node", times)


def _labelled(diagram: Diagram) -> nx.DiGraph[int]:
    graph: nx.DiGraph[int] = nx.DiGraph()
    for node, label in enumerate(diagram.labels):
        graph.add_node(node, looks=repr(label))
    for node, arcs in enumerate(diagram.into):
        graph.add_edges_from((arc.node, node, {"looks": str(arc.label)}) for arc in arcs)
    return graph


def _match(graph: nx.DiGraph[int]) -> bool:
    def same(a: dict[str, str], b: dict[str, str]) -> bool:
        return a["looks"] == b["looks"]

    return bool(DiGraphMatcher(graph, graph, node_match=same, edge_match=same).is_isomorphic())


def listing() -> Table:
    """Microseconds a run of an overview, with an index and without."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in range(RUNS):
            _run(folder, seed)

        def first() -> int:
            (folder / INDEX).unlink(missing_ok=True)
            return len(overview(folder))

        times = per_unit(
            {"without an index": first, "with one": lambda: len(overview(folder))}, rounds=3
        )
    return compared(f"Overview of {RUNS} runs", "run", times)
