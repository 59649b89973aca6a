"""The layout of nodes: a lane for each agent, and each node to the right of all causes.

An activation stands in the lane of its agent, with the events that it generated beside it; what
comes from outside and from healing has lanes of its own. A node's *rank* is its column: past
all that led to it, and past what its lane holds already. So edges lead to the right, and in one
place there is either one activation or a stack of events: nothing overlaps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

from dig.graph.history import FROM_OUTSIDE, History
from dig.graph.records import SYSTEM

from .scene import Point
from .selection import Selection
from .source import Source

Lane = str | None
"""The lane of an agent, of the system, or, as `OUTSIDE`, of events from outside."""

OUTSIDE = None

FEW_LANES = 8
"""The most lanes that may be high; with more, nodes are smaller, and stacks lower."""

WIDE, NARROW, NARROWEST = 88.0, 15.0, 11.0
"""The bounds of the width of a column, in pixels; `NARROWEST` if the width is given."""

USUAL_WIDTH, LEAST_WIDTH = 1120.0, 720.0
LEAST_LANE = 34.0


@dataclass(frozen=True, slots=True)
class Placement:
    """A place in the grid: the lane, the column, and the row of the stack there."""

    lane: Lane
    rank: int
    row: int = 0


@dataclass(frozen=True)
class Layout:
    """The positions of nodes and lanes.

    Attributes:
        at: The centre of each node, in pixels; the first lane and the first column begin at 0.
        lanes: The top and the height of each lane, from the topmost on.
        column: The distance between columns.
        radius: The radius of a node.
        width, height: The size of the whole.
    """

    at: Mapping[str, Point]
    lanes: Mapping[Lane, tuple[float, float]]
    column: float
    radius: float
    width: float
    height: float


def lay_out(
    source: Source, selection: Selection, agents: Sequence[str], width: float | None = None
) -> Layout:
    """Find a place for each node of a selection.

    Args:
        source: The run.
        selection: The part of it to draw.
        agents: The agents with a lane, in order; every agent with a node must be among them.
        width: The width of the whole, in pixels, if columns are not too narrow then; ``None``:
            that which is usual.
    """
    is_low = len(agents) > FEW_LANES
    grid = _Grid(source.graph.history, selection, is_low)
    places = {id: grid.put(id, node) for id, node in selection.nodes.items()}
    ranks = 1 + max(place.rank for place in places.values())
    # A user who names a width gets narrower columns rather than an error.
    least = NARROW if width is None else NARROWEST
    column = min(WIDE, max(least, (width or USUAL_WIDTH) / ranks))
    radius = min(6.5 if is_low else 9.0, max(5.0, column * 0.3), column * 0.36)
    slot = 2 * radius + 5
    used = {place.lane for place in places.values()}
    order = [lane for lane in (OUTSIDE, *agents, SYSTEM) if lane in used or lane in agents]
    lanes: dict[Lane, tuple[float, float]] = {}
    top = 0.0
    for lane in order:
        height = max(LEAST_LANE, grid.tallest.get(lane, 1) * slot + 9)
        lanes[lane] = (top, height)
        top += height
    at = {}
    for id, place in places.items():
        lane_top, height = lanes[place.lane]
        rows = grid.stacked.get((place.lane, place.rank), 1)
        shift = (place.row - (rows - 1) / 2) * slot
        at[id] = (column * (place.rank + 0.5), lane_top + height / 2 + shift)
    total_width = max(column * ranks, LEAST_WIDTH if width is None else width)
    return Layout(at, lanes, column, radius, total_width, top)


class _Grid:
    """Places nodes in order of time."""

    def __init__(self, history: History, selection: Selection, is_low: bool) -> None:
        self._history = history
        self._is_low = is_low
        self._outputs = Counter(link.source for link in selection.links if not link.is_delivery)
        self._inputs: dict[str, list[str]] = {}
        for link in selection.links:
            if link.is_delivery:
                self._inputs.setdefault(link.target, []).append(link.source)
        self._rank: dict[str, int] = {}
        self._next: dict[Lane, int] = {}  # lane -> the first column that is free
        self._latest = -1  # the last column that is used
        self._lane: Lane = ""  # of the node before
        self._stacks: dict[str, tuple[int, int]] = {}  # activation -> first column, how many
        self._alone = (0, 0)  # the same, for the latest stack that no activation made
        self.stacked: dict[tuple[Lane, int], int] = {}
        self.tallest: dict[Lane, int] = {}

    def put(self, id: str, node: Mapping[str, Any]) -> Placement:
        """The place of the next node."""
        if node["kind"] == "activation":
            lane = node["agent"]
            ranks = [self._rank[event] + 1 for event in self._inputs.get(id, ())]
            v = self._history.activation(id)
            assert v is not None  # it is a node of the graph
            # A node without causes stands in the column that the others had reached by then.
            is_free = not any(self._history.edges(v))
            after = max(ranks, default=max(self._latest, 0) if is_free else 0)
            place = Placement(lane, max(after, self._next.get(lane, 0)))
        else:
            place = self._put_event(id)
        self._rank[id] = place.rank
        # Columns of a lane are used once, so nothing overlaps.
        self._next[place.lane] = max(self._next.get(place.lane, 0), place.rank + 1)
        self._latest = max(self._latest, place.rank)
        self._lane = place.lane
        self.stacked[place.lane, place.rank] = place.row + 1
        self.tallest[place.lane] = max(self.tallest.get(place.lane, 1), place.row + 1)
        return place

    def _put_event(self, id: str) -> Placement:
        """The place of an event: beside its generator, else right of all earlier nodes."""
        h = self._history
        n = h.event(id)
        assert n is not None  # it is a node of the graph
        by = h.generator[n]
        maker = h.activation_ids[by] if by >= 0 else ""
        if by >= 0:
            lane: Lane = h.agent(by)
            next_rank = max(self._next.get(lane, 0), self._latest)  # its maker is not drawn
            first = self._rank[maker] + 1 if maker in self._rank else next_rank
            first, count = self._stacks.get(maker, (first, 0))
            self._stacks[maker] = (first, count + 1)
        else:
            lane = OUTSIDE if by == FROM_OUTSIDE else SYSTEM
            if self._lane == lane and self._latest >= 0:  # together: a stack, too
                first, count = self._alone[0], self._alone[1] + 1
            else:
                first, count = self._latest + 1, 0
            self._alone = (first, count)
        # A stack of very many events is about square.
        rows = max(ceil(sqrt(1.5 * self._outputs[maker])), 3 if self._is_low else 8)
        return Placement(lane, first + count // rows, count % rows)
