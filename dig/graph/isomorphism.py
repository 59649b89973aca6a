"""Whether two labelled acyclic graphs are the same but for the names of their nodes.

Colours are refined first: nodes keep the same colour only while nothing in what leads to them and
what follows from them tells them apart. Runs are told apart by that alone nearly always. What
then looks alike is matched greedily, and a match that holds is a proof; if it does not hold, one
of the nodes that look alike is singled out, and it begins again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from dig._util.frozen import frozen

Colours = list[Any]
Paint = Callable[[Hashable], Any]
"""Gives a colour to what a node looks like: the same colour exactly to the same looks."""

Tick = Callable[[int], None]
"""Told how many nodes and edges were just looked at; it may raise to end the search."""


class Arc(NamedTuple):
    """One end of an edge, as its other end sees it."""

    label: int
    node: int


@frozen
class Diagram:
    """A labelled acyclic graph: its nodes are numbers, in an order that no edge goes against.

    Attributes:
        labels: What each node is.
        into: The edges that lead to each node, by where they come from.
        out: The edges that lead from each node, by where they go.
    """

    labels: tuple[Hashable, ...]
    into: tuple[tuple[Arc, ...], ...]
    out: tuple[tuple[Arc, ...], ...]

    @classmethod
    def of(cls, labels: Sequence[Hashable], into: Sequence[Sequence[Arc]]) -> Diagram:
        """A diagram made of its nodes and the edges that lead to each."""
        out: list[list[Arc]] = [[] for _ in labels]
        for node, arcs in enumerate(into):
            for label, source in arcs:
                out[source].append(Arc(label, node))
        return cls(tuple(labels), tuple(map(tuple, into)), tuple(map(tuple, out)))

    @property
    def size(self) -> int:
        """How many nodes and edges it has."""
        return len(self.labels) + sum(map(len, self.into))

    def pasts(self, colours: Sequence[Any], paint: Paint) -> Colours:
        """New colours: a node's own, and what leads to it from the beginning on."""
        return self._sweep(range(len(self.labels)), self.into, colours, paint)

    def futures(self, colours: Sequence[Any], paint: Paint) -> Colours:
        """New colours: a node's own, and what follows from it up to the end."""
        return self._sweep(range(len(self.labels) - 1, -1, -1), self.out, colours, paint)

    def _sweep(
        self,
        order: range,
        arcs: Sequence[Sequence[Arc]],
        colours: Sequence[Any],
        paint: Paint,
    ) -> Colours:
        swept: Colours = [None] * len(self.labels)
        for node in order:
            around = sorted((label, swept[other]) for label, other in arcs[node])
            swept[node] = paint((colours[node], tuple(around)))
        return swept


def refined(diagrams: Sequence[Diagram], paint: Paint, tick: Tick) -> list[Colours]:
    """The colours of some diagrams, refined until no node can be told from another any more."""
    colours: list[Colours] = [[paint(label) for label in one.labels] for one in diagrams]
    return _refine(diagrams, colours, lambda: paint, tick)


def are_isomorphic(a: Diagram, b: Diagram, tick: Tick) -> bool:
    """Whether some renaming of nodes makes `a` into `b`. Exact; may take long, see `tick`."""
    paint = _numbers()
    start = [[paint(label) for label in a.labels], [paint(label) for label in b.labels]]
    branches = [iter([(start[0], start[1])])]
    while branches:  # depth first; each branch singles one node more out than the one before
        colours = next(branches[-1], None)
        if colours is None:
            branches.pop()
            continue
        x, y = _refine((a, b), colours, _numbers, tick)
        if Counter(x) != Counter(y):
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
    diagrams: Sequence[Diagram],
    colours: Sequence[Colours],
    paints: Callable[[], Paint],
    tick: Tick,
) -> list[Colours]:
    """Sweep forth and back until a sweep tells no more nodes apart."""
    now = list(colours)
    work = sum(one.size for one in diagrams)
    kinds = -1
    while True:
        found = len({colour for one in now for colour in one})
        if found == kinds or any(Counter(one) != Counter(now[0]) for one in now[1:]):
            return now
        kinds = found
        for sweep in (Diagram.pasts, Diagram.futures):
            tick(work)
            paint = paints()
            now = [sweep(one, old, paint) for one, old in zip(diagrams, now, strict=True)]


def _matches(a: Diagram, x: Colours, b: Diagram, y: Colours) -> bool:
    """Whether going forward, always taking the first node that fits, maps `a` onto `b`."""
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
    """Colourings in which one node of `a`, and in turn each of `b` like it, stand out."""
    count = Counter(x)
    alike = [node for node, colour in enumerate(x) if count[colour] > 1]
    if not alike:
        return
    chosen = min(alike, key=lambda node: (count[x[node]], node))
    marked = _marked(x, chosen)
    for node, colour in enumerate(y):
        if colour == x[chosen]:
            yield marked, _marked(y, node)


def _marked(colours: Colours, node: int) -> Colours:
    marked = list(colours)
    marked[node] = -1
    return marked
