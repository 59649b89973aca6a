"""Comparison of two behaviours: a verdict, and the first differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dig._util.text import name, names
from dig.errors import UndecidedError
from dig.graph.behaviour import LIMIT_S, ActivationEnd, ActivationStart, Behaviour, same_behaviour
from dig.graph.isomorphism import Diagram
from dig.graph.words import PAST
from dig.traces.journal.reader import read_graph

Counts = dict[str, int]

Row = tuple[str, str, str]
"""A label, and a value on each side."""


@dataclass(frozen=True)
class Divergence:
    """The first difference of a behaviour from another.

    Attributes:
        step: The number of the step.
        record: The record behind the step; ``None``: a golden file has no records.
        what: A description of the step.
    """

    step: int
    record: int | None
    what: str


@dataclass(frozen=True)
class BehaviourComparison:
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
    ) -> BehaviourComparison:
        """Compare two behaviours.

        Args:
            a: The first behaviour.
            b: The second.
            strict: Whether to compare by the strict notion; by default, by the causal one.
            limit_s: Seconds that the comparison may take.
            stopwatch: See `same_behaviour`.

        Raises:
            UndecidedError: The limit was reached before a verdict.
        """
        is_same = same_behaviour(a, b, strict=strict, limit_s=limit_s, stopwatch=stopwatch)
        find_difference = _unequal_steps if strict else _unlike_nodes
        steps = (None, None) if is_same else find_difference(a, b)
        places = _divergence(a, steps[0]), _divergence(b, steps[1])
        # Only the causal notion lets runs be the same in another order.
        is_reordered = is_same and a.steps != b.steps
        return cls(is_same, strict, is_reordered, places, (_counts(a), _counts(b)))

    def to_json(self) -> dict[str, Any]:
        """The part of `digmon diff --json` about behaviour."""
        places = [place and asdict(place) for place in self.places]
        return {
            "same": self.is_same,
            "notion": "strict" if self.strict else "causal",
            "reordered": self.is_reordered,
            "divergence": None if self.is_same else dict(zip("ab", places, strict=True)),
            "counts": dict(zip("ab", self.counts, strict=True)),
        }

    def lines(self, a: str, b: str) -> Iterator[str]:
        """The verdict, the first differences, and unequal counts.

        Args:
            a: The name of the first behaviour, for the heading.
            b: The name of the second.
        """
        notion = "strictly" if self.strict else "causally"
        if self.is_same:
            yield f"the same behaviour ({notion})" + (", in another order" * self.is_reordered)
        else:
            yield f"different behaviour ({notion})"
            if self.places == (None, None):
                yield "they are made of the same pieces, put together in another way"
            else:
                yield "first divergence:"
                width = max(len(a), len(b)) + 1
                for label, place in zip((a, b), self.places, strict=True):
                    yield f"  {f'{label}:':<{width}} {_place_text(place)}"
        yield from section("counts", unequal(*self.counts), a, b)


def _place_text(place: Divergence | None) -> str:
    if place is None:
        return "nothing that the other does not have"
    number = f"step {place.step}" if place.record is None else f"record {place.record}"
    return f"{number}: {place.what}"


def first_difference(a: Path, b: Path) -> dict[str, Any]:
    """The first difference between the behaviours of two runs.

    Returns:
        `records`: the record of each that has nothing like it in the other one, ``None`` if all of
        it is there; `says`: what it is, in words; both are ``None`` if the limit was reached.

    Raises:
        TraceError: One of the two cannot be read; the line is named.
    """
    try:
        places = BehaviourComparison.of(*(Behaviour.of(read_graph(run)) for run in (a, b))).places
    except UndecidedError:
        return {"records": None, "says": None}
    first = next(filter(None, places), None)
    return {"records": [place and place.record for place in places], "says": first and first.what}


def section(title: str, lines: Sequence[Row], a: str, b: str) -> Iterator[str]:
    """Rows of unequal values in columns under a heading; no lines, if there are none.

    Args:
        title: The title.
        lines: The rows.
        a: The heading of the first values.
        b: The heading of the second.
    """
    if not lines:
        return
    rows = [(title, a, b), *((f"  {label}", x, y) for label, x, y in lines)]
    widths = [max(map(len, column)) for column in zip((f"{title}  ", a, b), *rows, strict=True)]
    for label, x, y in rows:
        yield f"{label:<{widths[0]}}  {x:>{widths[1]}}  {y:>{widths[2]}}"


def unequal(a: Mapping[str, float], b: Mapping[str, float]) -> list[Row]:
    """Rows of the unequal figures; a missing figure is 0."""
    pairs = [(key, a.get(key, 0), b.get(key, 0)) for key in dict.fromkeys((*a, *b))]
    return [(name(key), f"{x:,g}", f"{y:,g}") for key, x, y in pairs if x != y]


def _counts(behaviour: Behaviour) -> Counts:
    """The numbers of agents, activations, events and edges, edges by fate."""
    kinds = Counter(node.kind for node in behaviour.nodes)
    agents = {beginning.agent for beginning in behaviour.beginnings}
    edges = Counter(fate for fates in behaviour.fates.values() for fate in fates)
    return {
        "active agents": len(agents),
        "activations": kinds["activation"],
        "events": kinds["event"],
        **{f"edges: {fate}": number for fate, number in sorted(edges.items())},
    }


# --- the first differences ---


def _unequal_steps(a: Behaviour, b: Behaviour) -> tuple[int | None, int | None]:
    """The first unequal step, in the order of the runs."""
    pairs = enumerate(zip(a.steps, b.steps, strict=False))
    first = next((i for i, (s, t) in pairs if s != t), min(len(a.steps), len(b.steps)))
    return first if first < len(a.steps) else None, first if first < len(b.steps) else None


def _unlike_nodes(a: Behaviour, b: Behaviour) -> tuple[int | None, int | None]:
    """The first node without a counterpart of the same past, or else of the same future."""
    colours: dict[Hashable, int] = {}

    def paint(looks: Hashable) -> int:
        return colours.setdefault(looks, len(colours))

    # Colours are refined until their number stays the same: nodes of one colour then have equal
    # pasts and futures as far as edges reach.
    x, y = ([paint(label) for label in behaviour.diagram.labels] for behaviour in (a, b))
    kinds = -1
    while kinds != len(set(x)):
        kinds = len(set(x))
        for refine in (Diagram.pasts, Diagram.futures):
            x, y = refine(a.diagram, x, paint), refine(b.diagram, y, paint)
            if Counter(x) != Counter(y):
                return _surplus(a, x, y), _surplus(b, y, x)
    return None, None


def _surplus(behaviour: Behaviour, colours: list[Any], other_colours: list[Any]) -> int | None:
    """The step of the first node of a colour with fewer nodes in the other behaviour."""
    remaining = Counter(other_colours)
    for node, colour in zip(behaviour.nodes, colours, strict=True):
        remaining[colour] -= 1
        if remaining[colour] < 0:
            return node.step
    return None


# --- in words ---


def _divergence(behaviour: Behaviour, number: int | None) -> Divergence | None:
    if number is None:
        return None
    record = behaviour.names.records[number] if behaviour.names else None
    return Divergence(number, record, _step_text(behaviour, number))


def _step_text(behaviour: Behaviour, number: int) -> str:
    step = behaviour.steps[number]
    if isinstance(step, ActivationEnd):
        return f"the end of {_activation_text(behaviour, step.activation)}"
    node = next(node for node in behaviour.nodes if node.step == number)
    if isinstance(step, ActivationStart):
        return _activation_text(behaviour, node.number)
    marks = f" [{', '.join(step.marks)}]" if step.marks else ""
    by = {"outside": "from outside", "system": "by the monitor"}.get(step.origin)
    if step.by is not None:
        by = f"by {_activation_name(behaviour, step.by)}"
    return f"event {_event_name(behaviour, node.number)}{marks}, {by}"


def _activation_text(behaviour: Behaviour, number: int) -> str:
    events = behaviour.beginnings[number].events
    fates = behaviour.fates.get(number) or ["looks at"] * len(events)
    deeds: dict[str, list[str]] = {}
    for event, fate in zip(events, fates, strict=True):
        deeds.setdefault(PAST.get(fate, fate), []).append(_event_name(behaviour, event))
    text = "; ".join(f"{verb} {names(inputs)}" for verb, inputs in deeds.items())
    return f"{_activation_name(behaviour, number)}, which {text or 'saw nothing'}"


def _activation_name(behaviour: Behaviour, activation: int) -> str:
    agent = behaviour.beginnings[activation].agent
    if behaviour.names is None:  # a golden file names by the order of appearance
        return f"v{activation} of a{agent}"
    agent_name = behaviour.names.agents[agent]
    return f"{name(behaviour.names.activations[activation])} of {name(agent_name)}"


def _event_name(behaviour: Behaviour, number: int) -> str:
    return f"e{number}" if behaviour.names is None else name(behaviour.names.events[number])
