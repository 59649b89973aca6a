"""Hierarchical graph of a conversation: subtasks, agents in subtasks, and edges between steps.

Edges stand on three levels. Between subtasks they join neighbours, between agents they stay inside
a subtask, and between steps they say which datum went from where to where. What breaks these rules
is left out and counted: a model that draws the graph may be wrong in parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

from dig._util.text import one_line

from . import flow
from .flow import LoopGroup
from .reading import Conversation, DataEdge, DataType, fold_name

Scenario = Literal["local", "control", "data", "reversal"]
SubtaskLink = Literal["data_dependency", "logical_prerequisite"]
AgentLink = Literal[
    "observation", "reasoning", "decision", "environment_feedback", "memory", "loop_control"
]
SUBTASK_LINKS = frozenset(("data_dependency", "logical_prerequisite"))
_LINK_AFTER: Mapping[str, AgentLink] = {"tool": "environment_feedback", "planner": "decision"}
_JSON_KEYS = ("subtasks", "agents", "edges", "loops")
MOST_SUBTASKS = 8
MOST_SHOWN = 120
"""Characters of a text that a draft shows."""


@dataclass(frozen=True, slots=True)
class SubtaskOracle:
    """Tests of a subtask, applied afterwards.

    Attributes:
        goal: The aim of the subtask.
        preconditions: The conditions that must hold before it.
        key_evidence: The evidence that must be verified on the way.
        acceptance: By what its result is accepted.
    """

    goal: str
    preconditions: tuple[str, ...]
    key_evidence: tuple[str, ...]
    acceptance: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subtask:
    """A range of steps with a common purpose.

    Attributes:
        id: Its name: `s1`, `s2`, ...
        goal: The aim of the subtask.
        first: Its first step.
        last: Its last step.
        oracle: By what it can be judged, if that is known.
    """

    id: str
    name: str
    goal: str
    first: int
    last: int
    oracle: SubtaskOracle | None = None

    def __contains__(self, step: int) -> bool:
        return self.first <= step <= self.last


@dataclass(frozen=True, slots=True)
class AgentPart:
    """Part of an agent in a subtask: observation, thought, action and result."""

    subtask: str
    agent: str
    observation: str = ""
    thought: str = ""
    action: str = ""
    result: str = ""


@dataclass(frozen=True, slots=True)
class BiasPattern:
    """A deviation upstream, and the anomaly downstream."""

    bias: str
    anomaly: str
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class HierarchyEdge:
    """An edge between subtasks, agents or steps.

    Attributes:
        level: `subtask`, `agent` or `step`.
        source: A subtask's id, an agent's name, or a step's number.
        target: The same, downstream.
        type: The sort of data that goes from one to the other.
        subtask: The subtask that an edge between agents lies in.
        patterns: By what a deviation upstream shows downstream.
        data: The datum that goes from step to step.
    """

    level: Literal["subtask", "agent", "step"]
    source: str | int
    target: str | int
    type: str
    subtask: str | None = None
    patterns: tuple[BiasPattern, ...] = ()
    data: str | None = None


@dataclass(frozen=True)
class HierarchicalGraph:
    """A conversation as a graph.

    Attributes:
        subtasks: Its subtasks, in order.
        agents: The parts of agents in them.
        edges: The edges between parts.
        loops: Its loop groups.
        end: The last step that can be at fault.
        lineage: The steps between which data went, as records show; ``None``: texts alone tell.
        dropped: The number of edges and parts that broke a rule, and were left out.
    """

    subtasks: tuple[Subtask, ...]
    end: int
    agents: tuple[AgentPart, ...] = ()
    edges: tuple[HierarchyEdge, ...] = ()
    loops: tuple[LoopGroup, ...] = ()
    lineage: frozenset[tuple[int, int]] | None = None
    # How a graph came about is no part of what it shows.
    dropped: int = field(default=0, compare=False)

    def subtask_of(self, step: int) -> Subtask:
        """Return the subtask of a step."""
        return next(subtask for subtask in self.subtasks if step in subtask)

    def chain(self, start: int) -> tuple[int, ...]:
        """Find the shortest way of data from a step to the last candidate.

        Args:
            start: The step at which the way begins.
        """
        edges = [(edge.source, edge.target) for edge in self.edges if edge.level == "step"]
        return flow.chain([(int(a), int(b)) for a, b in edges], start, self.end)

    def with_parts(
        self, conversation: Conversation, parts: Iterable[AgentPart]
    ) -> HierarchicalGraph:
        """Replace the parts of agents; parts of absent agents are dropped."""
        offered = list(parts)
        # Folded names: a model may write a name in another case.
        present = {
            (self.subtask_of(step.number).id, fold_name(step.agent)) for step in conversation.steps
        }
        valid = tuple(part for part in offered if (part.subtask, fold_name(part.agent)) in present)
        return replace(self, agents=valid, dropped=self.dropped + len(offered) - len(valid))

    def with_edges(self, edges: Iterable[HierarchyEdge]) -> HierarchicalGraph:
        """Add edges; edges against the rules are dropped."""
        offered = list(edges)
        valid = tuple(edge for edge in offered if self._follows_rules(edge))
        dropped = self.dropped + len(offered) - len(valid)
        return replace(self, edges=(*self.edges, *valid), dropped=dropped)

    def _follows_rules(self, edge: HierarchyEdge) -> bool:
        if edge.level == "step":
            steps = range(self.subtasks[0].first, self.subtasks[-1].last + 1)
            ends = (int(edge.source), int(edge.target))
            # Recorded lineage is certain: a model cannot add to it.
            is_known = self.lineage is None or ends in self.lineage
            return is_known and ends[0] in steps and ends[1] in steps and ends[0] < ends[1]
        if edge.level == "subtask":
            neighbours = {(a.id, b.id) for a, b in pairwise(self.subtasks)}
            return edge.type in SUBTASK_LINKS and (edge.source, edge.target) in neighbours
        inside = {fold_name(part.agent) for part in self.agents if part.subtask == edge.subtask}
        agents = {fold_name(str(edge.source)), fold_name(str(edge.target))}
        return edge.type not in SUBTASK_LINKS and len(agents) == 2 and agents <= inside

    def to_json(self) -> dict[str, Any]:
        """Render the graph as plain JSON."""
        graph = {key: list(map(asdict, getattr(self, key))) for key in _JSON_KEYS}
        for loop in graph["loops"]:
            del loop["failing"], loop["repeating"]
        return graph


def covers(subtasks: Sequence[Subtask], count: int) -> str | None:
    """Complain about ranges of subtasks; ``None``: each step is in a single range.

    Args:
        subtasks: The subtasks.
        count: The number of steps.
    """
    if not subtasks:
        return "there is no subtask"
    if len({subtask.id for subtask in subtasks}) < len(subtasks):
        return "two subtasks have one id"
    expected = 0
    for subtask in subtasks:
        if subtask.first != expected or subtask.last < subtask.first:
            return f"subtask {subtask.id} must begin at step {expected} and end there or later"
        expected = subtask.last + 1
    return None if expected == count else f"the last subtask must end at step {count - 1}"


def repair_subtasks(subtasks: Iterable[Subtask], count: int) -> tuple[Subtask, ...]:
    """Repair ranges to cover all steps: gaps go to the earlier subtask, overlaps to the first.

    Args:
        subtasks: The subtasks, in any order.
        count: The number of steps.
    """
    # A model may skip or share steps; without a gap `subtask_of` finds a subtask for each step.
    ranges: list[Subtask] = []
    for subtask in sorted(subtasks, key=lambda subtask: (subtask.first, subtask.last)):
        first = max(subtask.first, ranges[-1].last + 1 if ranges else 0)
        last = min(subtask.last, count - 1)
        if first > last:
            continue
        if ranges:
            ranges[-1] = replace(ranges[-1], last=first - 1)
        ranges.append(
            replace(subtask, id=f"s{len(ranges) + 1}", first=first if ranges else 0, last=last)
        )
    if not ranges:
        return (Subtask("s1", "the conversation", "", 0, count - 1),)
    return (*ranges[:-1], replace(ranges[-1], last=count - 1))


# --- the draft: without a model ---


def draft_graph(
    conversation: Conversation, subtasks: tuple[Subtask, ...] | None = None
) -> HierarchicalGraph:
    """Draft the graph from the texts alone.

    Args:
        conversation: The conversation.
        subtasks: Its subtasks; ``None``: those that a change of speaker and words shows.
    """
    subtasks = subtasks or _subtasks(conversation)
    edges = flow.data_flow(conversation)
    loop_groups = tuple(flow.loops(conversation))
    has_lineage = conversation.lineage is not None
    certain = frozenset((edge.source, edge.target) for edge in edges) if has_lineage else None
    end = conversation.candidates[-1].number
    graph = HierarchicalGraph(subtasks, end, loops=loop_groups, lineage=certain)
    graph = graph.with_parts(conversation, parts(conversation, subtasks))
    carried = {
        (graph.subtask_of(edge.source).id, graph.subtask_of(edge.target).id) for edge in edges
    }
    between = [
        HierarchyEdge(
            "subtask", a.id, b.id,
            "data_dependency" if (a.id, b.id) in carried else "logical_prerequisite",
        )
        for a, b in pairwise(subtasks)
    ]  # fmt: skip
    return graph.with_edges([*between, *_handovers(conversation, graph), *step_edges(edges)])


def step_edges(edges: Iterable[DataEdge]) -> list[HierarchyEdge]:
    """Turn the flow of data into edges: an edge a pair of steps, with the first datum."""
    by_ends: dict[tuple[int, int], HierarchyEdge] = {}
    for data_edge in edges:
        edge = step_edge(data_edge.source, data_edge.target, data_edge.fact, data_edge.type)
        by_ends.setdefault((data_edge.source, data_edge.target), edge)
    return list(by_ends.values())


def step_edge(source: int, target: int, datum: str, type_: DataType) -> HierarchyEdge:
    """Build an edge between steps."""
    return HierarchyEdge("step", source, target, type_, data=one_line(datum, MOST_SHOWN))


def _subtasks(conversation: Conversation) -> tuple[Subtask, ...]:
    """Cut where a planner plans anew or, without a planner, where speaker and words change."""
    steps = conversation.steps
    turning = "planner" if any(step.role == "planner" for step in steps) else "worker"
    distances = {
        step.number: 1 - flow.cosine(flow.bag(before.text), flow.bag(step.text))
        for before, step in pairwise(steps)
        if step.role == turning and step.agent != before.agent and not step.is_idle
    }
    # About three candidates a subtask: smaller ones say no more than the steps.
    most = min(MOST_SUBTASKS - 1, len(conversation.candidates) // 3)
    chosen = sorted(distances, key=lambda number: (-distances[number], number))[:most]
    firsts = [0, *sorted(chosen)]
    lasts = [*(first - 1 for first in firsts[1:]), len(steps) - 1]
    return tuple(
        Subtask(f"s{n}", one_line(steps[first].text, 60), _excerpt(steps[first].text), first, last)
        for n, (first, last) in enumerate(zip(firsts, lasts, strict=True), 1)
    )


def parts(conversation: Conversation, subtasks: Iterable[Subtask]) -> list[AgentPart]:
    """List the parts of agents in subtasks, by the first step with words."""
    steps = conversation.steps
    agent_parts = []
    for subtask in subtasks:
        inside = steps[subtask.first : subtask.last + 1]
        for agent in dict.fromkeys(step.agent for step in inside):
            own = [step for step in inside if step.agent == agent]
            step = max(own, key=lambda step: not step.is_idle)
            before = steps[step.number - 1].text if step.number else ""
            after = steps[step.number + 1] if step.number + 1 < len(steps) else None
            result = after.text if after is not None and after.role == "tool" else ""
            texts = (before, flow.prose_of(step.text), flow.code_of(step.text), result)
            agent_parts.append(AgentPart(subtask.id, step.agent, *map(_excerpt, texts)))
    return agent_parts


def _handovers(conversation: Conversation, graph: HierarchicalGraph) -> list[HierarchyEdge]:
    """Join agents with successive messages inside a subtask."""
    by_agents: dict[tuple[str, str, str], HierarchyEdge] = {}
    for before, step in pairwise(conversation.speaking_steps):
        subtask = graph.subtask_of(step.number)
        if before.number in subtask:
            kind = _LINK_AFTER.get(before.role, "reasoning")
            edge = HierarchyEdge("agent", before.agent, step.agent, kind, subtask.id)
            by_agents.setdefault((subtask.id, before.agent, step.agent), edge)
    return [edge for edge in by_agents.values() if edge.source != edge.target]


def _excerpt(text: str) -> str:
    return one_line(text, MOST_SHOWN) if text.strip() else ""
