"""The difference between two behaviours: a verdict, and the first places that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dig._util.text import name, names
from dig.graph.behaviour import (
    LIMIT_S,
    ActivationEnd,
    ActivationStart,
    Behaviour,
    same_behaviour,
)
from dig.graph.isomorphism import Diagram
from dig.graph.words import PAST
from dig.traces.journal.reader import read_graph

from . import golden

Counts = dict[str, int]


def behaviour_at(path: Path) -> Behaviour:
    """The behaviour of a trace, of a run directory, or in a golden file.

    Raises:
        TraceError: It cannot be read, or breaks a rule; the line is named.
    """
    return golden.read(path) if golden.is_golden(path) else Behaviour.of(read_graph(path))


@dataclass(frozen=True)
class Divergence:
    """The first place in which a behaviour differs from another one.

    Attributes:
        step: The number of the step.
        record: The record behind it, if that is known.
        what: A description of the step.
    """

    step: int
    record: int | None
    what: str


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison of two behaviours.

    Attributes:
        is_same: Whether they are the same.
        strict: Whether the strict notion was used, or the causal one.
        is_reordered: Whether they are the same causally, but not strictly.
        places: For each the first place that differs; ``None`` if it has no step of its own.
        counts: For each the numbers of agents, activations, events and edges.
    """

    is_same: bool
    strict: bool
    is_reordered: bool
    places: tuple[Divergence | None, Divergence | None]
    counts: tuple[Counts, Counts]

    @classmethod
    def of(
        cls,
        a: Behaviour,
        b: Behaviour,
        *,
        strict: bool = False,
        limit_s: float = LIMIT_S,
        stopwatch: Callable[[], float] | None = None,
    ) -> Comparison:
        """Compare two behaviours.

        Args:
            a: One behaviour.
            b: The other one.
            strict: Whether to compare by the strict notion; by default, by the causal one.
            limit_s: Seconds that the comparison may take.
            stopwatch: See `same_behaviour`.

        Raises:
            UndecidedError: The limit was reached before a verdict.
        """
        is_same = same_behaviour(a, b, strict=strict, limit_s=limit_s, stopwatch=stopwatch)
        part = _strictly if strict else _causally
        steps = (None, None) if is_same else part(a, b)
        places = _place(a, steps[0]), _place(b, steps[1])
        is_reordered = is_same and a.steps != b.steps
        return cls(is_same, strict, is_reordered, places, (counts(a), counts(b)))

    def to_json(self) -> dict[str, Any]:
        """The comparison as `digmon diff --json` has it."""
        places = [place and asdict(place) for place in self.places]
        return {
            "same": self.is_same,
            "notion": "strict" if self.strict else "causal",
            "reordered": self.is_reordered,
            "divergence": None if self.is_same else dict(zip("ab", places, strict=True)),
            "counts": dict(zip("ab", self.counts, strict=True)),
        }


def counts(behaviour: Behaviour) -> Counts:
    """The numbers of agents, activations, events and edges, edges by their fate."""
    found = Counter(node.kind for node in behaviour.nodes)
    agents = {beginning.agent for beginning in behaviour.beginnings}
    edges = Counter(fate for fates in behaviour.fates.values() for fate in fates)
    return {
        "active agents": len(agents),
        "activations": found["activation"],
        "events": found["event"],
        **{f"edges: {fate}": number for fate, number in sorted(edges.items())},
    }


# --- the first differences ---


def _strictly(a: Behaviour, b: Behaviour) -> tuple[int | None, int | None]:
    """The first step that differs."""
    pairs = enumerate(zip(a.steps, b.steps, strict=False))
    first = next((i for i, (s, t) in pairs if s != t), min(len(a.steps), len(b.steps)))
    ends = [first if first < len(one.steps) else None for one in (a, b)]
    return ends[0], ends[1]


def _causally(a: Behaviour, b: Behaviour) -> tuple[int | None, int | None]:
    """The first node that the other has nothing like: no such past, or else no such future."""
    table: dict[Hashable, int] = {}

    def paint(looks: Hashable) -> int:
        return table.setdefault(looks, len(table))

    x, y = ([paint(label) for label in one.diagram.labels] for one in (a, b))
    kinds = -1
    while kinds != len(set(x)):
        kinds = len(set(x))
        for look in (Diagram.pasts, Diagram.futures):
            x, y = look(a.diagram, x, paint), look(b.diagram, y, paint)
            if Counter(x) != Counter(y):
                return _surplus(a, x, y), _surplus(b, y, x)
    return None, None


def _surplus(one: Behaviour, mine: list[Any], others: list[Any]) -> int | None:
    """The step of the first node of a colour of which the other one has fewer."""
    left = Counter(others)
    for node, colour in zip(one.nodes, mine, strict=True):
        left[colour] -= 1
        if left[colour] < 0:
            return node.step
    return None


# --- in words ---


def _place(behaviour: Behaviour, number: int | None) -> Divergence | None:
    if number is None:
        return None
    record = behaviour.names.records[number] if behaviour.names else None
    return Divergence(number, record, _what(behaviour, number))


def _what(behaviour: Behaviour, number: int) -> str:
    step = behaviour.steps[number]
    if isinstance(step, ActivationEnd):
        return f"the end of {_activation(behaviour, step.activation)}"
    node = next(node for node in behaviour.nodes if node.step == number)
    if isinstance(step, ActivationStart):
        return _activation(behaviour, node.number)
    marks = f" [{', '.join(step.marks)}]" if step.marks else ""
    by = {"outside": "from outside", "system": "by the monitor"}.get(step.origin)
    if step.by is not None:
        by = f"by {_of_agent(behaviour, step.by)}"
    return f"event {_event(behaviour, node.number)}{marks}, {by}"


def _activation(behaviour: Behaviour, number: int) -> str:
    events = behaviour.beginnings[number].events
    fates = behaviour.fates.get(number) or ["looks at"] * len(events)
    did: dict[str, list[str]] = {}
    for event, fate in zip(events, fates, strict=True):
        did.setdefault(PAST.get(fate, fate), []).append(_event(behaviour, event))
    what = "; ".join(f"{verb} {names(seen)}" for verb, seen in did.items())
    return f"{_of_agent(behaviour, number)}, which {what or 'saw nothing'}"


def _of_agent(behaviour: Behaviour, activation: int) -> str:
    agent = behaviour.beginnings[activation].agent
    if behaviour.names is None:
        return f"v{activation} of a{agent}"
    of = behaviour.names.agents[agent]
    return f"{name(behaviour.names.activations[activation])} of {name(of)}"


def _event(behaviour: Behaviour, number: int) -> str:
    return f"e{number}" if behaviour.names is None else name(behaviour.names.events[number])
