"""The causal graph of a failure: nodes in states, verified steps between nodes, alarms.

docs/lab/faults-verification.md says what each state, rule and test means.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, ClassVar, Literal, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from dig._util.text import first_wrong
from dig.errors import RecordError

NodeType = Literal["agent", "activation", "event", "part", "outcome", "finding"]
NODE_TYPES: tuple[NodeType, ...] = get_args(NodeType)

TASK = "task"
"""The component of the parts of the task."""
OUTCOME = "outcome"
"""The component of a run's answer, its end, and the errors that were found."""
COMPONENT = "component"
"""The type, and the state, of the nodes of a projection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A component part in a state caused by the fault.

    Attributes:
        type: The type of the node.
        name: The name of the node: an agent's name, an id of the trace, a range of elements
            `2000-3000`, the record of a finding, or empty for the outcome.
        component: The component it belongs to: an agent's name, `task` or `outcome`.
        state: One of the vocabulary of its type.
        onset_t: The record at which the state is first visible in the faulted run.
        onset_s: The time of that moment, in seconds since the run began.
        test: The name of the test by which it deviates.
        value: The measured value in the faulted run.
        twin: The same in the run without the fault; ``None``: there is no counterpart.
        baseline: The likelihood of such a value without a fault: a share of the baseline.
    """

    # In a file each has its `id` as well, which follows from the others.
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    type: str
    name: str
    component: str
    state: str
    onset_t: int
    onset_s: float
    test: str
    value: float | None = None
    twin: float | None = None
    baseline: float | None = None

    @property
    def id(self) -> str:
        """`event:e37:lost`, `outcome:wrong`; in a projection the component."""
        if self.type == COMPONENT:
            return self.component
        return ":".join(part for part in (self.type, self.name, self.state) if part)


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """A step: the state of the source is the reason for the state of the target.

    Attributes:
        source: A node's id.
        target: A node's id.
        rule: The rule that admits the step; in a projection the rules, with commas.
    """

    source: str
    target: str
    rule: str


@dataclass(frozen=True, slots=True, order=True)
class Cause:
    """The beginning of a failure: a component, and the kind of fault."""

    component: str
    kind: str


@dataclass(frozen=True, slots=True)
class CausalGraph:
    """Verified consequences of the faults in a run.

    Attributes:
        nodes: In order of their onset.
        edges: Between ids of nodes, in the order of these.
        root_causes: The causes that were injected.
        alarms: The ids of the nodes at which the failure is visible.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    root_causes: tuple[Cause, ...] = ()
    alarms: tuple[str, ...] = ()

    def node(self, name: str) -> Node:
        """Return the node with an id.

        Raises:
            KeyError: There is no such node.
        """
        for node in self.nodes:
            if node.id == name:
                return node
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """Return the content of `causal_graph.json`."""
        return {
            "nodes": [{"id": node.id, **asdict(node)} for node in self.nodes],
            "edges": [asdict(edge) for edge in self.edges],
            "root_causes": [asdict(cause) for cause in self.root_causes],
            "alarms": list(self.alarms),
        }

    @classmethod
    def read(cls, body: Any) -> CausalGraph:
        """Read a graph from the result of `to_json`.

        Raises:
            RecordError: The data are not a causal graph; the message names the place.
        """
        try:
            graph = _adapter().validate_python(body)
        except ValidationError as error:
            raise RecordError(": ".join(first_wrong(error))) from None
        ids = {node.id for node in graph.nodes}
        named = {end for edge in graph.edges for end in (edge.source, edge.target)}
        for name in sorted(named.union(graph.alarms), key=str):
            if name not in ids:
                raise RecordError(f"the causal graph names {name!r}, which is none of its nodes")
        return graph

    def project(self) -> CausalGraph:
        """Return the graph over components: agents, `task` and `outcome`."""
        at: dict[str, Node] = {}
        for node in self.nodes:  # in order of onset
            at.setdefault(node.component, node)
        component = {node.id: node.component for node in self.nodes}
        rules: dict[tuple[str, str], set[str]] = {}
        for edge in self.edges:
            source, target = component[edge.source], component[edge.target]
            if source != target:
                rules.setdefault((source, target), set()).add(edge.rule)
        return CausalGraph(
            tuple(
                replace(
                    node,
                    type=COMPONENT,
                    name=node.component,
                    state=COMPONENT,
                    value=None,
                    twin=None,
                    baseline=None,
                )
                for node in at.values()
            ),
            tuple(Edge(*ends, ",".join(sorted(names))) for ends, names in sorted(rules.items())),
            self.root_causes,
            tuple(dict.fromkeys(component[alarm] for alarm in self.alarms)),
        )


@cache
def _adapter() -> TypeAdapter[CausalGraph]:
    return TypeAdapter(CausalGraph)
