"""The hierarchical graph of a conversation: subtasks, the agents in them, and what goes on to what.

Edges stand on three levels. Between subtasks they join neighbours, between agents they stay inside
a subtask, and between steps they say which datum went from where to where. What breaks these rules
is left out and counted: a model that draws the graph may be wrong in parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

from dig._util.text import one_line

from .flow import (
    LoopGroup,
    Vocabulary,
    bag,
    chain,
    code_of,
    cosine,
    flow,
    loops,
    prose_of,
    vocabulary,
)
from .reading import Conversation, ConversationStep, DataEdge, DataType, folded

Scenario = Literal["local", "control", "data", "reversal"]
SubtaskLink = Literal["data_dependency", "logical_prerequisite"]
AgentLink = Literal[
    "observation", "reasoning", "decision", "environment_feedback", "memory", "loop_control"
]
SUBTASK_LINKS = frozenset(("data_dependency", "logical_prerequisite"))
MOST_SUBTASKS = 8
MOST_SHOWN = 120
"""Characters of a text that a draft shows."""


@dataclass(frozen=True, slots=True)
class SubtaskOracle:
    """Tests by which a subtask can be judged afterwards.

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
    """A range of steps with one purpose.

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
    """An agent's part in a subtask: what it saw, thought, did, and what came of it."""

    subtask: str
    agent: str
    observation: str = ""
    thought: str = ""
    action: str = ""
    result: str = ""


@dataclass(frozen=True, slots=True)
class BiasPattern:
    """A deviation upstream, and the anomaly downstream by which it shows."""

    bias: str
    anomaly: str
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class HierarchyEdge:
    """An edge.

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
    dropped: int = field(default=0, compare=False)

    def subtask_of(self, step: int) -> Subtask:
        """The subtask that a step belongs to."""
        return next(one for one in self.subtasks if step in one)

    def chain(self, start: int) -> tuple[int, ...]:
        """The shortest way of data from a step to the last one that can be at fault.

        Args:
            start: The step at which the way begins.
        """
        edges = [(one.source, one.target) for one in self.edges if one.level == "step"]
        return chain([(int(a), int(b)) for a, b in edges], start, self.end)

    def with_parts(
        self, conversation: Conversation, parts: Iterable[AgentPart]
    ) -> HierarchicalGraph:
        """The graph with other parts of agents; parts that nobody has are left out."""
        given = list(parts)
        present = {
            (self.subtask_of(one.number).id, folded(one.agent)) for one in conversation.steps
        }
        kept = tuple(one for one in given if (one.subtask, folded(one.agent)) in present)
        return replace(self, agents=kept, dropped=self.dropped + len(given) - len(kept))

    def with_edges(self, edges: Iterable[HierarchyEdge]) -> HierarchicalGraph:
        """The graph with further edges; those that break a rule are left out."""
        given = list(edges)
        kept = tuple(one for one in given if self._follows_rules(one))
        dropped = self.dropped + len(given) - len(kept)
        return replace(self, edges=(*self.edges, *kept), dropped=dropped)

    def _follows_rules(self, edge: HierarchyEdge) -> bool:
        if edge.level == "step":
            steps = range(self.subtasks[0].first, self.subtasks[-1].last + 1)
            ends = (int(edge.source), int(edge.target))
            is_known = self.lineage is None or ends in self.lineage
            return is_known and ends[0] in steps and ends[1] in steps and ends[0] < ends[1]
        if edge.level == "subtask":
            neighbours = {(a.id, b.id) for a, b in pairwise(self.subtasks)}
            return edge.type in SUBTASK_LINKS and (edge.source, edge.target) in neighbours
        inside = {folded(one.agent) for one in self.agents if one.subtask == edge.subtask}
        agents = {folded(str(edge.source)), folded(str(edge.target))}
        return edge.type not in SUBTASK_LINKS and len(agents) == 2 and agents <= inside

    def to_json(self) -> dict[str, Any]:
        """The graph as plain JSON."""
        loops = [
            {
                key: value
                for key, value in asdict(one).items()
                if key not in ("failing", "repeating")
            }
            for one in self.loops
        ]
        return {
            "subtasks": [asdict(one) for one in self.subtasks],
            "agents": [asdict(one) for one in self.agents],
            "edges": [asdict(one) for one in self.edges],
            "loops": loops,
        }


def covers(subtasks: Sequence[Subtask], count: int) -> str | None:
    """The complaint about ranges of subtasks; ``None``: they cover all steps, each once.

    Args:
        subtasks: The subtasks.
        count: The number of steps.
    """
    if not subtasks:
        return "there is no subtask"
    if len({one.id for one in subtasks}) < len(subtasks):
        return "two subtasks have one id"
    expected = 0
    for one in subtasks:
        if one.first != expected or one.last < one.first:
            return f"subtask {one.id} must begin at step {expected} and end there or later"
        expected = one.last + 1
    return None if expected == count else f"the last subtask must end at step {count - 1}"


def repaired(subtasks: Iterable[Subtask], count: int) -> tuple[Subtask, ...]:
    """Subtasks whose ranges cover all steps: gaps go to the earlier one, overlaps to the first.

    Args:
        subtasks: The subtasks, in any order.
        count: The number of steps.
    """
    found: list[Subtask] = []
    for one in sorted(subtasks, key=lambda one: (one.first, one.last)):
        first = max(one.first, found[-1].last + 1 if found else 0)
        last = min(one.last, count - 1)
        if first > last:
            continue
        if found:
            found[-1] = replace(found[-1], last=first - 1)
        found.append(replace(one, id=f"s{len(found) + 1}", first=first if found else 0, last=last))
    if not found:
        return (Subtask("s1", "the conversation", "", 0, count - 1),)
    return (*found[:-1], replace(found[-1], last=count - 1))


# --- the draft: without a model ---


def drafted(
    conversation: Conversation,
    words: Vocabulary | None = None,
    subtasks: tuple[Subtask, ...] | None = None,
) -> HierarchicalGraph:
    """The graph as the texts alone show it.

    Args:
        conversation: The conversation.
        words: The word lists; ``None``: the shipped ones.
        subtasks: Its subtasks; ``None``: those that a change of speaker and words shows.
    """
    subtasks = subtasks or _subtasks(conversation)
    edges = flow(conversation)
    found = tuple(loops(conversation, words or vocabulary()))
    has_lineage = conversation.lineage is not None
    certain = frozenset((one.source, one.target) for one in edges) if has_lineage else None
    end = conversation.candidates[-1].number
    graph = HierarchicalGraph(subtasks, end, loops=found, lineage=certain)
    graph = graph.with_parts(conversation, parts(conversation, subtasks))
    carried = {(graph.subtask_of(one.source).id, graph.subtask_of(one.target).id) for one in edges}
    between = [
        HierarchyEdge(
            "subtask", a.id, b.id,
            "data_dependency" if (a.id, b.id) in carried else "logical_prerequisite",
        )
        for a, b in pairwise(subtasks)
    ]  # fmt: skip
    return graph.with_edges([*between, *_handovers(conversation, graph), *step_edges(edges)])


def step_edges(edges: Iterable[DataEdge]) -> list[HierarchyEdge]:
    """The flow of data as edges: between two steps one edge, with the first datum."""
    found: dict[tuple[int, int], HierarchyEdge] = {}
    for one in edges:
        edge = step_edge(one.source, one.target, one.fact, one.type)
        found.setdefault((one.source, one.target), edge)
    return list(found.values())


def step_edge(source: int, target: int, datum: str, type_: DataType) -> HierarchyEdge:
    """An edge by which a datum goes from one step to another."""
    return HierarchyEdge("step", source, target, type_, data=one_line(datum, MOST_SHOWN))


def _subtasks(conversation: Conversation) -> tuple[Subtask, ...]:
    """Ranges that begin where a planner plans anew or, without one, speaker and words change."""
    steps = conversation.steps
    turning = "planner" if any(one.role == "planner" for one in steps) else "worker"
    distances = {
        one.number: 1 - cosine(bag(before.text), bag(one.text))
        for before, one in pairwise(steps)
        if one.role == turning and one.agent != before.agent and not one.is_idle
    }
    most = min(MOST_SUBTASKS - 1, len(conversation.candidates) // 3)
    chosen = sorted(distances, key=lambda number: (-distances[number], number))[:most]
    firsts = [0, *sorted(chosen)]
    lasts = [*(first - 1 for first in firsts[1:]), len(steps) - 1]
    return tuple(
        Subtask(f"s{n}", one_line(steps[first].text, 60), _shown(steps[first].text), first, last)
        for n, (first, last) in enumerate(zip(firsts, lasts, strict=True), 1)
    )


def parts(conversation: Conversation, subtasks: Iterable[Subtask]) -> list[AgentPart]:
    """The part of each agent in each subtask, by its first step there that says something."""
    steps = conversation.steps
    found = []
    for subtask in subtasks:
        inside = steps[subtask.first : subtask.last + 1]
        for agent in dict.fromkeys(one.agent for one in inside):
            own = [one for one in inside if one.agent == agent]
            found.append(_part(steps, subtask.id, max(own, key=lambda one: not one.is_idle)))
    return found


def _part(steps: Sequence[ConversationStep], subtask: str, one: ConversationStep) -> AgentPart:
    before = steps[one.number - 1].text if one.number else ""
    after = steps[one.number + 1] if one.number + 1 < len(steps) else None
    return AgentPart(
        subtask, one.agent, _shown(before), _shown(prose_of(one.text)), _shown(code_of(one.text)),
        _shown(after.text) if after is not None and after.role == "tool" else "",
    )  # fmt: skip


def _handovers(conversation: Conversation, graph: HierarchicalGraph) -> list[HierarchyEdge]:
    """An edge between agents where one speaks right after the other, inside a subtask."""
    found: dict[tuple[str, str, str], HierarchyEdge] = {}
    for before, one in pairwise(conversation.told):
        subtask = graph.subtask_of(one.number)
        if before.number in subtask:
            kind = "environment_feedback" if before.role == "tool" else "reasoning"
            kind = "decision" if before.role == "planner" else kind
            edge = HierarchyEdge("agent", before.agent, one.agent, kind, subtask.id)
            found.setdefault((subtask.id, before.agent, one.agent), edge)
    return [one for one in found.values() if one.source != one.target]


def _shown(text: str) -> str:
    return one_line(text, MOST_SHOWN) if text.strip() else ""
