"""Cooperative behaviour: the course of a run without names, payloads and times.

The paper (section 4.3, eq. 12) calls two runs the same behaviour if their graphs, through time,
are isomorphic. A `Behaviour` is a run reduced to that comparison: the steps in which its graph
grew, with everything named by order of appearance. There are two notions:

- *strict*: the same graphs in the same order. Logical time is total, so this is equality of steps.
- *causal*: the same nodes, edges and fates, and the same order for each agent; independent
    steps may have happened in any order.

Ids, names, payloads, types other than `notice`, notes and wall time never matter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from typing import Literal, NamedTuple

from dig._util.text import counted
from dig.errors import SettingsError, UndecidedError

from .graph import InteractionGraph
from .history import ACCEPTED, BY_SYSTEM, FINAL, FROM_OUTSIDE, NOTICE_TYPE, History
from .isomorphism import Arc, Diagram, Paint, are_isomorphic, refine_colours
from .records import FATES, FateName, Record

LIMIT_S = 10.0
WORK_PER_S = 1_000_000
"""The nodes and edges that count as one second of comparing if no stopwatch is given."""

Origin = Literal["outside", "system", "agent"]
Mark = Literal["final", "accepted", "notice"]
MARKS: tuple[tuple[Mark, int], ...] = (
    ("final", FINAL), ("accepted", ACCEPTED), ("notice", NOTICE_TYPE),
)  # fmt: skip


class Generation(NamedTuple):
    """The generation of an event; `by` is the number of the generating activation, if any."""

    origin: Origin
    by: int | None
    marks: tuple[Mark, ...]


class ActivationStart(NamedTuple):
    """The start of an activation: the numbers of the agent and of the input events."""

    agent: int
    events: tuple[int, ...]


class ActivationEnd(NamedTuple):
    """The end of an activation, with a fate for each input event in order."""

    activation: int
    fates: tuple[FateName, ...]


BehaviourStep = Generation | ActivationStart | ActivationEnd

# Labels of the edges of a causal diagram.
_GENERATED, _UNFATED, _NEXT = -1, -2, -3


class BehaviourNode(NamedTuple):
    """A node of the graph: kind, number, and the step of its generation or start."""

    kind: Literal["event", "activation"]
    number: int
    step: int


class NodeNames(NamedTuple):
    """The names of the nodes and agents in the run, for texts about a behaviour."""

    events: tuple[str, ...]
    activations: tuple[str, ...]
    agents: tuple[str, ...]
    records: tuple[int, ...]
    """The record behind each step."""


class Behaviour:
    """A run reduced to the steps in which the graph grew.

    Attributes:
        steps: The steps in order; events, activations and agents are numbered by appearance.
        names: The names in the run, if they are known.
    """

    def __init__(self, steps: Iterable[BehaviourStep], names: NodeNames | None = None) -> None:
        """Make a behaviour of steps, each of which may name only numbers of earlier steps."""
        self.steps: tuple[BehaviourStep, ...] = tuple(steps)
        self.names = names

    @classmethod
    def of(cls, run: Comparable) -> Behaviour:
        """The behaviour of a run: of its graph, or of its records.

        Raises:
            RuleError: A record contradicts those before it.
            SettingsError: The graph is that of a session, and has evicted some of its history.
        """
        if isinstance(run, Behaviour):
            return run
        graph = run if isinstance(run, InteractionGraph) else InteractionGraph.of(run)
        return _of_graph(graph)

    @cached_property
    def nodes(self) -> tuple[BehaviourNode, ...]:
        """The events and activations, in order of appearance."""
        nodes: list[BehaviourNode] = []
        events = activations = 0
        for number, step in enumerate(self.steps):
            if isinstance(step, Generation):
                nodes.append(BehaviourNode("event", events, number))
                events += 1
            elif isinstance(step, ActivationStart):
                nodes.append(BehaviourNode("activation", activations, number))
                activations += 1
        return tuple(nodes)

    @cached_property
    def beginnings(self) -> tuple[ActivationStart, ...]:
        """The start of each activation, in order."""
        return tuple(step for step in self.steps if isinstance(step, ActivationStart))

    @cached_property
    def fates(self) -> dict[int, tuple[FateName, ...]]:
        """The fates of the input events, by ended activation."""
        return {
            step.activation: step.fates for step in self.steps if isinstance(step, ActivationEnd)
        }

    @cached_property
    def diagram(self) -> Diagram:
        """The diagram for the causal notion, with one node for each of `nodes`."""
        labels: list[Hashable] = []
        into: list[list[Arc]] = []
        events: list[int] = []
        activations: list[int] = []
        latest: dict[int, int] = {}  # agent -> its activation before
        for place, node in enumerate(self.nodes):
            step = self.steps[node.step]
            if isinstance(step, Generation):
                events.append(place)
                labels.append((step.origin, step.marks))
                arcs = [] if step.by is None else [Arc(_GENERATED, activations[step.by])]
            elif isinstance(step, ActivationStart):
                activations.append(place)
                fates = self.fates.get(node.number)
                labels.append(("ended" if fates is not None else "in progress",))
                codes = [_UNFATED] * len(step.events) if fates is None else map(FATES.index, fates)
                edges = zip(codes, step.events, strict=True)
                arcs = [Arc(code, events[event]) for code, event in edges]
                if step.agent in latest:
                    arcs.append(Arc(_NEXT, latest[step.agent]))
                latest[step.agent] = place
            into.append(arcs)
        return Diagram.of(labels, into)


Comparable = InteractionGraph | Behaviour | Iterable[Record]
"""A run to compare: a graph, the records that lead to one, or a behaviour itself."""


def signature(run: Comparable, *, strict: bool = False) -> str:
    """Return a short text: equal for equal behaviour.

    Runs with different signatures behave differently. Strict signatures are equal for the same
    behaviour only; for runs with the same causal signature, `same_behaviour` decides.
    """
    behaviour = Behaviour.of(run)
    if strict:
        return _digest(behaviour.steps).hex()
    paint: Paint = _digest
    (colours,) = refine_colours([behaviour.diagram], paint, lambda work: None)
    return _digest(sorted(colours)).hex()


def same_behaviour(
    a: Comparable,
    b: Comparable,
    *,
    strict: bool = False,
    limit_s: float = LIMIT_S,
    stopwatch: Callable[[], float] | None = None,
) -> bool:
    """Whether two runs are the same behaviour.

    Args:
        a: One run.
        b: The other run.
        strict: Whether to compare by the strict notion; by default, by the causal one.
        limit_s: Seconds that the comparison may take. The strict notion needs no limit.
        stopwatch: A clock in seconds, `time.monotonic` for instance; ``None``: the work is
            counted instead, so that the verdict is the same on every machine.

    Raises:
        RuleError: A record contradicts those before it.
        UndecidedError: The limit was reached before a verdict.
    """
    first, second = Behaviour.of(a), Behaviour.of(b)
    if first.steps == second.steps:
        return True
    if strict or len(first.nodes) != len(second.nodes):
        return False
    return are_isomorphic(first.diagram, second.diagram, _Limit(limit_s, stopwatch))


class _Limit:
    """Ends a comparison after a time or an amount of work."""

    def __init__(self, limit_s: float, stopwatch: Callable[[], float] | None) -> None:
        self._limit_s = limit_s
        self._stopwatch = stopwatch
        self._began = stopwatch() if stopwatch else 0.0
        self._work = 0

    def __call__(self, work: int) -> None:
        self._work += work
        clock = self._stopwatch
        spent = clock() - self._began if clock else self._work / WORK_PER_S
        if spent > self._limit_s:
            raise UndecidedError(
                f"{self._limit_s:g} s were not enough to compare the two behaviours; allow more "
                "time, or compare strictly"
            )


def _digest(looks: object) -> bytes:
    from hashlib import blake2b  # slow to import

    return blake2b(repr(looks).encode(), digest_size=16).digest()


def _of_graph(graph: InteractionGraph) -> Behaviour:
    h = graph.history
    if graph.has_evicted:
        evicted = counted(h.gone_events, "event")
        raise SettingsError(f"the graph has let go of {evicted}: compare its trace, or keep all")
    at: list[BehaviourStep | None] = [None] * (graph.t + 1)
    agents: dict[int, int] = {}  # those that were activated, by order of appearance
    for n in range(len(h.event_ids)):
        at[h.t_gen[n]] = _generation(h, n)
    for v in range(len(h.activation_ids)):
        edges = sorted(h.edges(v))
        agent = agents.setdefault(h.agent_of[v], len(agents))
        at[h.t_start[v]] = ActivationStart(agent, tuple(edge.event for edge in edges))
        if h.t_end[v] >= 0:
            at[h.t_end[v]] = ActivationEnd(v, tuple(FATES[edge.fate] for edge in edges))
    steps = [(t, step) for t, step in enumerate(at) if step is not None]
    names = NodeNames(
        tuple(h.event_ids),
        tuple(h.activation_ids),
        tuple(h.agents.names[agent] for agent in agents),
        tuple(t for t, _ in steps),
    )
    return Behaviour((step for _, step in steps), names)


def _generation(h: History, n: int) -> Generation:
    marks = tuple(mark for mark, flag in MARKS if h.flags[n] & flag)
    by = h.generator[n]
    if by == FROM_OUTSIDE:
        return Generation("outside", None, marks)
    if by == BY_SYSTEM:
        return Generation("system", None, marks)
    return Generation("agent", by, marks)
