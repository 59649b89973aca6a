"""The independent audit of causal graphs: it agrees with what is right, and finds what is not."""

from __future__ import annotations

import ast
import copy
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dig.diagnosis.causes import Edge
from tests.lab.faults import verified
from tests.lab.faults.audit.__main__ import audit
from tests.lab.faults.audit.relations import PAGE

Graph = dict[str, Any]
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="an installed package has no docs")
KINDS = (
    "drop", "delay", "duplicate", "address_nobody", "corrupt", "stall", "crash", "leave", "slow",
    "silent", "hoard", "submit_early", "discard_needed",
)  # fmt: skip


@pytest.fixture(scope="module")
def small_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two instances of each of some kinds, with other targets, and one of two faults."""
    folder = tmp_path_factory.mktemp("set")
    faults = [
        (verified.fault(kind, target, start_s),)
        for kind in KINDS
        for target, start_s in (("agent-2", 0.0), ("agent-1", 3.0))
    ]
    both = (verified.fault("crash", "agent-2", 2.0), verified.fault("drop", "agent-4"))
    instances = []
    for some in [*faults, both]:
        try:
            seed, graph = verified.found(*some, seeds=range(1, 12))
        except AssertionError:
            continue
        instances.append((seed, some, graph))
    verified.write(folder, instances)
    return folder


def test_no_node_and_no_step_breaks_a_rule(small_set: Path) -> None:
    """What verification admits holds when it is measured again from the files."""
    instances, steps, wrong = audit(small_set)
    assert wrong == []
    assert instances >= 20
    assert steps > 5 * instances


def test_the_audit_shares_no_code() -> None:
    """It imports the standard library and itself alone."""
    for path in (Path(__file__).parent / "audit").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            else:
                continue
            assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names, path


@pytest.fixture
def one(small_set: Path, tmp_path: Path) -> Path:
    """A set with the first instance alone, to be spoiled."""
    shutil.copytree(small_set / "baseline", tmp_path / "baseline")
    shutil.copytree(small_set / "public" / "i0001", tmp_path / "public" / "i0001")
    return tmp_path


def _add_step(graph: Graph) -> None:
    graph["edges"].append({**graph["edges"][0], "rule": "P1"})


def _add_unrelated(graph: Graph) -> None:
    """A step by a rule that there is, between nodes that there are, where the relation fails."""
    alarm = next(node for node in graph["nodes"] if node["type"] == "finding")
    lost = next(node for node in graph["nodes"] if node["state"] == "lost")
    graph["edges"].append({"source": lost["id"], "target": alarm["id"], "rule": "F2"})


def _turn_round(graph: Graph) -> None:
    edge = graph["edges"][0]
    edge["source"], edge["target"] = edge["target"], edge["source"]


def _retime(graph: Graph) -> None:
    graph["nodes"][-1]["onset_t"] -= 1


def _other_moment(graph: Graph) -> None:
    graph["nodes"][1]["onset_s"] += 0.5


def _other_state(graph: Graph) -> None:
    node = next(node for node in graph["nodes"] if node["type"] == "event")
    node["state"], node["id"] = "unread", f"event:{node['name']}:unread"


def _other_value(graph: Graph) -> None:
    graph["nodes"][1]["value"] += 1


def _other_twin(graph: Graph) -> None:
    graph["nodes"][-1]["twin"] = 7


def _rarer(graph: Graph) -> None:
    graph["nodes"][1]["baseline"] /= 2


def _other_component(graph: Graph) -> None:
    graph["nodes"][1]["component"] = "agent-4"


def _stranger(graph: Graph) -> None:
    """A node for something that is in no such state, and that no path reaches."""
    graph["nodes"].append({**graph["nodes"][1], "name": "e1", "id": "event:e1:lost"})


def _cut(graph: Graph) -> None:
    """Without its first steps, the graph hangs on nothing."""
    graph["edges"] = [edge for edge in graph["edges"] if not edge["source"].startswith("agent:")]


def _no_alarm(graph: Graph) -> None:
    graph["alarms"].pop()


def _other_cause(graph: Graph) -> None:
    graph["root_causes"][0]["kind"] = "delay"


@pytest.mark.parametrize(
    "spoil",
    [
        _add_step, _add_unrelated, _turn_round, _retime, _other_moment, _other_state,
        _other_value, _other_twin, _rarer, _other_component, _stranger, _cut, _no_alarm,
        _other_cause,
    ],
)  # fmt: skip
def test_a_planted_mistake_is_found(one: Path, spoil: Callable[[Graph], None]) -> None:
    """Whatever is changed in a graph, the audit says that something is wrong."""
    path = one / "public" / "i0001" / "causal_graph.json"
    graph = json.loads(path.read_text())
    spoilt = copy.deepcopy(graph)
    spoil(spoilt)
    assert spoilt != graph
    path.write_text(json.dumps(spoilt))
    assert audit(one)[2]


def test_a_trace_that_is_not_the_one_is_found(one: Path) -> None:
    """The graph must hold in the trace that is there."""
    place = one / "public" / "i0001"
    shutil.copy(place / "twin.dig.jsonl", place / "trace.dig.jsonl")
    assert audit(one)[2]


def test_what_is_said_to_bring_itself_about_is_found(tmp_path: Path) -> None:
    """A step from an event that was passed on to the same, by a rule that there is."""
    passing = verified.fault("pass_on", "agent-1", 3.0)
    seed, graph = verified.found(passing)
    name = next(node.id for node in graph.nodes if node.state == "rerouted")
    wrong = replace(graph, edges=(*graph.edges, Edge(name, name, "E4")))
    verified.write(tmp_path, [(seed, (passing,), graph), (seed, (passing,), wrong)])
    found = audit(tmp_path)[2]
    assert found
    assert all("i0002" in one for one in found)
    assert any(f"{name}: it is a consequence of itself" in one for one in found)
