"""Isomorphism: compares two labelled acyclic graphs, apart from the names of nodes.

Colours are refined first: nodes keep the same colour only while nothing that leads to them or
follows from them distinguishes them. That alone distinguishes nearly all different runs. Nodes
that still look alike are matched greedily. A match that holds is a proof; if it does not hold, one
of these nodes is singled out, and the refinement begins again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from dig._util.frozen import frozen

Colours = list[Any]
Paint = Callable[[Hashable], Any]
"""Maps the looks of a node to a colour: equal looks, and only these, get the same colour."""

Tick = Callable[[int], None]
"""Called with the number of nodes and edges just visited; it may raise to end the search."""


class Arc(NamedTuple):
    """One end of an edge, seen from the other end."""

    label: int
    node: int


@frozen
class Diagram:
    """A labelled acyclic graph: nodes are numbers in a topological order.

    Attributes:
        labels: The label of each node.
        into: The edges that lead to each node, by where they come from.
        out: The edges that lead from each node, by where they go.
    """

    labels: tuple[Hashable, ...]
    into: tuple[tuple[Arc, ...], ...]
    out: tuple[tuple[Arc, ...], ...]

    @classmethod
    def of(cls, labels: Sequence[Hashable], into: Sequence[Sequence[Arc]]) -> Diagram:
        """Make a diagram of nodes and the edges leading to each node."""
        out: list[list[Arc]] = [[] for _ in labels]
        for node, arcs in enumerate(into):
            for label, source in arcs:
                out[source].append(Arc(label, node))
        return cls(tuple(labels), tuple(map(tuple, into)), tuple(map(tuple, out)))

    @property
    def size(self) -> int:
        """The number of nodes and edges."""
        return len(self.labels) + sum(map(len, self.into))

    def pasts(self, colours: Sequence[Any], paint: Paint) -> Colours:
        """Compute new colours, from each node's own colour and all nodes before."""
        return self._sweep(range(len(self.labels)), self.into, colours, paint)

    def futures(self, colours: Sequence[Any], paint: Paint) -> Colours:
        """Compute new colours, from each node's own colour and all nodes after."""
        return self._sweep(range(len(self.labels) - 1, -1, -1), self.out, colours, paint)

    def _sweep(
        self, order: range, arcs: Sequence[Sequence[Arc]], colours: Sequence[Any], paint: Paint
    ) -> Colours:
        swept: Colours = [None] * len(self.labels)
        for node in order:
            around = sorted((label, swept[other]) for label, other in arcs[node])
            swept[node] = paint((colours[node], tuple(around)))
        return swept


def refine_colours(diagrams: Sequence[Diagram], paint: Paint, tick: Tick) -> list[Colours]:
    """The colours of some diagrams, refined until a sweep distinguishes no more nodes.

    Args:
        diagrams: The diagrams; equal colours are comparable across all of them.
        paint: Makes a colour of a node's looks.
        tick: Called with the amount of work done.
    """
    colours: list[Colours] = [[paint(label) for label in diagram.labels] for diagram in diagrams]
    return _refine(diagrams, colours, lambda: paint, tick)


def are_isomorphic(a: Diagram, b: Diagram, tick: Tick) -> bool:
    """Whether some renaming of nodes turns `a` into `b`.

    Args:
        a: One diagram.
        b: The other diagram.
        tick: Called with the amount of work done; the search is exact, and may take long.
    """
    paint = _numbers()
    start = [[paint(label) for label in a.labels], [paint(label) for label in b.labels]]
    branches = [iter([(start[0], start[1])])]
    while branches:  # depth first; each branch singles one node more out than the one before
        colours = next(branches[-1], None)
        if colours is None:
            branches.pop()
            continue
        x, y = _refine((a, b), colours, _numbers, tick)
        if Counter(x) != Counter(y):  # colours are invariant, so no renaming maps one to the other
            continue
        tick(a.size + b.size)
        if _matches(a, x, b, y):
            return True
        branches.append(_singled_out(x, y))
    return False


def _numbers() -> Paint:
    table: dict[Hashable, int] = {}
    return lambda looks: table.setdefault(looks, len(table))


def _refine(
    diagrams: Sequence[Diagram], colours: Sequence[Colours], paints: Callable[[], Paint], tick: Tick
) -> list[Colours]:
    """Sweep forth and back until a sweep tells no more nodes apart."""
    now = list(colours)
    work = sum(diagram.size for diagram in diagrams)
    kinds = -1
    while True:
        colour_count = len({colour for colouring in now for colour in colouring})
        if colour_count == kinds or any(
            Counter(colouring) != Counter(now[0]) for colouring in now[1:]
        ):
            return now
        kinds = colour_count
        for sweep in (Diagram.pasts, Diagram.futures):
            tick(work)
            paint = paints()
            now = [sweep(diagram, old, paint) for diagram, old in zip(diagrams, now, strict=True)]


def _matches(a: Diagram, x: Colours, b: Diagram, y: Colours) -> bool:
    """Whether going forward, with the first fitting node each time, maps `a` onto `b`."""
    image: list[int] = []
    free: dict[Hashable, list[int]] = defaultdict(list)
    for node in range(len(y) - 1, -1, -1):
        free[y[node], frozenset(b.into[node])].append(node)
    for node, colour in enumerate(x):
        looks = (colour, frozenset(Arc(label, image[n]) for label, n in a.into[node]))
        alike = free.get(looks)
        if not alike:
            return False
        image.append(alike.pop())
    return True


def _singled_out(x: Colours, y: Colours) -> Iterator[tuple[Colours, Colours]]:
    """Colourings in which one node of `a`, and in turn each similar node of `b`, stands out."""
    count = Counter(x)
    alike = [node for node, colour in enumerate(x) if count[colour] > 1]
    if not alike:
        return
    chosen = min(alike, key=lambda node: (count[x[node]], node))
    marked = _mark_node(x, chosen)
    for node, colour in enumerate(y):
        if colour == x[chosen]:
            yield marked, _mark_node(y, node)


def _mark_node(colours: Colours, node: int) -> Colours:
    marked = list(colours)
    marked[node] = -1
    return marked
