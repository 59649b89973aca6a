"""The upper part of a picture: the graph, in a lane for each agent."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from dig._util.text import name, one_line
from dig.detectors.describe import WORTHS, Worth, worth
from dig.detectors.finding import Finding
from dig.graph.records import SYSTEM, FindingRow
from dig.show.cause import KnownCause

from . import palette
from .layout import OUTSIDE, Lane, Layout
from .nodes import event_kind, title, turn_kind
from .occupancy import Occupancy, around
from .scene import Box, Circle, Curve, DrawingScene, Point, Shape, Style, Words, line, text_width
from .selection import DrawnEdge, Selection, about, moment
from .source import Source

LABEL = 8.5
BADGE = 9.0
BAR_WIDTH, BAR_HEIGHT = 2.2, 1.6
"""The size of an activation, in radii of a node."""
_BADGE_HEIGHT = 13.0


@dataclass
class GraphPanel:
    """Draws the graph.

    Attributes:
        source: The run.
        selection: The part of it to draw.
        layout: The positions of nodes.
        origin: The left end of the first column, and the top of the first lane.
        left: The left end of the names of the lanes.
        cause: What a diagnosis names; ``None``: nothing.
        used: The kinds of things that were drawn, for the legend.
    """

    source: Source
    selection: Selection
    layout: Layout
    origin: Point
    left: float
    cause: KnownCause | None = None
    used: dict[palette.Kind, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        left_x, top = self.origin
        self._at = {id: (x + left_x, y + top) for id, (x, y) in self.layout.at.items()}
        right, bottom = left_x + self.layout.width, top + self.layout.height
        self._room = Occupancy((left_x, top - 12, right, bottom + 4))
        moments = [(moment(node), id) for id, node in self.selection.nodes.items()]
        self._moments = sorted(moments, key=lambda item: item[0])

    def draw(self, scene: DrawingScene, focus: str | None) -> None:
        """Put the graph into a scene."""
        # Later shapes lie on earlier ones, and labels get the room that is left.
        scene.add(self._lanes())
        scene.add(self._chain())
        scene.add(self._links())
        if focus is not None:
            scene.add([self._halo(self._at[focus])])
        scene.add(self._all_nodes())
        scene.add(self._flags())
        scene.add(self._badges())
        scene.add(self._heals())
        scene.add(self._labels())

    # --- lanes and edges ---

    def _lanes(self) -> Iterator[Shape]:
        width = self.origin[0] + self.layout.width - self.left
        for i, (lane, (top, height)) in enumerate(self.layout.lanes.items()):
            at = (self.left, self.origin[1] + top)
            if i % 2 == 0:
                yield Box(at, (width, height), Style(palette.STRIPE), 3)
            is_agent = lane not in (OUTSIDE, SYSTEM)
            colour = palette.INK if is_agent else palette.MUTED
            text = lane_name(lane, self.selection)
            yield Words((at[0] + 8, at[1] + height / 2 + 4), text, 11.5, colour)

    def _links(self) -> Iterator[Shape]:
        """The edges; non-productive edges are below the others."""
        ports = self._ports()
        ordered = sorted(self.selection.links, key=lambda link: link.is_productive)
        # Marks come last, so that no edge crosses a mark.
        marks: list[Shape] = []
        for link in ordered:
            kind = palette.PRODUCTIVE if link.is_productive else link.fate or palette.SEEN
            self.used[kind] = None
            curve = self._curve(link, kind, ports[link])
            yield curve
            if link.is_delivery:
                # The mark of a dashed line stands before the end, where edges are apart.
                end = curve.points[3] if link.is_productive else curve.at(0.84)
                marks += palette.mark(kind, end)
        yield from marks

    def _ports(self) -> dict[DrawnEdge, float]:
        """For each edge the offset of the end from the middle of the target, spread by origin."""
        incoming: dict[str, list[DrawnEdge]] = {}
        for link in self.selection.links:
            incoming.setdefault(link.target, []).append(link)
        ports = {}
        for links in incoming.values():
            links.sort(key=lambda link: self._at[link.source][1])
            # Edges end side by side; at the same point they would look like a single edge.
            spread = min(self.layout.radius * 0.7, 2.5 * (len(links) - 1))
            for i, link in enumerate(links):
                ports[link] = spread * (2 * i / (len(links) - 1) - 1) if len(links) > 1 else 0.0
        return ports

    def _curve(self, link: DrawnEdge, kind: str, port: float) -> Curve:
        (x0, y0), (x1, y1) = self._at[link.source], self._at[link.target]
        radius = self.layout.radius
        x0, x1, y1 = x0 + radius, x1 - radius - (2 if link.is_delivery else 0), y1 + port
        dx, bow = x1 - x0, 0.0
        reach = max(min(dx * 0.5, 90.0), min(dx, 10.0))
        if (
            abs(y1 - y0) < radius * 2 and dx > self.layout.column * 1.3
        ):  # past what stands between the two
            bow = (radius * 2.1 + min(dx * 0.03, 8.0)) * (-1 if link.is_productive else 1)
            reach = min(dx * 0.3, 60.0)
        points = ((x0, y0), (x0 + reach, y0 + bow), (x1 - reach, y1 + bow), (x1, y1))
        return Curve(points, palette.LINKS[kind])

    # --- the diagnosis ---

    def _chain(self) -> Iterator[Shape]:
        """The path of the failure, below the edges."""
        steps = self.cause.chain if self.cause else ()
        ids = self.source.graph.history.activation_ids
        chain = [ids[step] for step in steps if step < len(ids)]
        # The chain names activations; the events between them are found among the drawn edges.
        links = {(link.source, link.target): link for link in self.selection.links}
        for before, after in pairwise(chain):
            events = [s for s, t in links if t == after and (before, s) in links]
            for hop in [(before, events[-1]), (events[-1], after)] if events else []:
                self.used[palette.CHAIN] = None
                yield self._curve(links[hop], palette.CHAIN, 0.0)

    def _flags(self) -> Iterator[Shape]:
        """The numbers of the candidates, and a ring around the first."""
        for number, candidate in enumerate(self.cause.candidates if self.cause else (), 1):
            if candidate.node in self._at:
                at = self._at[candidate.node]
                if number == 1:
                    yield self._halo(at)
                # The ring around the first candidate needs room.
                up = self.layout.radius + _BADGE_HEIGHT / 2 + (9 if number == 1 else 3)
                near = [(at[0], at[1] - up), (at[0] - 14, at[1] - up), (at[0] + 14, at[1] - up)]
                place = self._room.place(near, 14, _BADGE_HEIGHT) or near[0]
                self.used[palette.SUSPECTED] = None
                yield from flag(str(number), place)

    # --- nodes ---

    def _halo(self, at: Point) -> Shape:
        radius = self.layout.radius + 6
        self._room.take(around(at, 2 * radius, 2 * radius))
        return Circle(at, radius, Style(None, palette.ERROR, 1.5))

    def _all_nodes(self) -> Iterator[Shape]:
        radius = self.layout.radius
        for id, node in self.selection.nodes.items():
            at = self._at[id]
            self._room.take(around(at, 2 * radius + 3, 2 * radius + 3))
            if node["kind"] == "event":
                kind = event_kind(self.source, id, self.selection.until)
                text = title(self.source, id, node, kind)
                yield palette.event_shape(kind, at, radius * 0.92, text)
            else:
                kind = turn_kind(self.source, id, node)
                width, height = radius * BAR_WIDTH, radius * BAR_HEIGHT
                corner = (at[0] - width / 2, at[1] - height / 2)
                text = title(self.source, id, node, kind)
                yield from palette.turn_shapes(kind, corner, (width, height), text)
            self.used[kind] = None

    def _badges(self) -> Iterator[Shape]:
        """The labels of findings, each beside the subject."""
        counts: dict[str, Counter[palette.FindingLabel]] = {}
        for finding in self.selection.findings:
            if (node := self._place_of(finding)) is not None:
                counts.setdefault(node, Counter())[finding_kind(finding)] += 1
        for id, labels in counts.items():
            x, y = self._at[id]
            for kind, count in sorted(labels.items(), key=lambda item: WORTHS.index(item[0].worth)):
                text = one_line(kind.pattern, 12)
                label = f"{text} x{count}" if count > 1 else text
                width = text_width(label, BADGE, bold=True) + 7
                up = self.layout.radius + _BADGE_HEIGHT / 2 + 2
                side = self.layout.radius + width / 2 + 3
                near = [(x, y - up), (x, y + up), (x - side, y), (x + side, y)]
                far = [
                    (x + dx, y + sign * (up + step))
                    for step in (0.0, 14.0, 28.0)
                    for sign in (-1, 1)
                    for dx in (0.0, width * 0.6, -width * 0.6)
                ]
                at = self._room.place(near + far, width + 1, _BADGE_HEIGHT + 1) or near[0]
                self.used[kind] = None
                if abs(at[1] - y) > up + 1:  # too far away to be seen to belong to it
                    edge = y + (self.layout.radius + 1) * (1 if at[1] > y else -1)
                    yield line(at, (x, edge), palette.BADGES[kind.worth][2], 0.8)
                yield from badge(kind.worth, label, at, width)

    def _heals(self) -> Iterator[Shape]:
        """A diamond beside each event that healing changed; one that it made is a diamond."""
        for event in dict.fromkeys(str(heal.event) for heal in self.selection.heals):
            node = self.selection.nodes.get(event)
            if node is not None and self.source.graph.event(event).by != SYSTEM:
                (x, y), away = self._at[event], self.layout.radius + 5
                sides = [(x + dx, y + dy) for dy in (-away, away) for dx in (away, -away)]
                at = self._room.place(sides, 9, 9) or sides[0]
                self.used["healing"] = None
                yield palette.diamond(at, 4.5, Style(palette.HEAL), "healing acted on it")

    def _place_of(self, finding: Finding | FindingRow) -> str | None:
        """The node of a finding: the subject or, if the subject is the run, the latest node."""
        named = about(finding)
        if named:
            return next((id for id in named if id in self._at), None)
        # About the whole run: the label stands at the latest node of that time.
        before = bisect_right(self._moments, finding.t, key=lambda item: item[0])
        return self._moments[before - 1][1] if before else None

    def _labels(self) -> Iterator[Shape]:
        """The ids of nodes, as far as there is room."""
        for id in self.selection.nodes:
            (x, y), text = self._at[id], name(id)
            width = text_width(text, LABEL)
            away = self.layout.radius + LABEL / 2 + 2
            at = self._room.place([(x, y + away), (x, y - away)], width, LABEL)
            if at is not None:
                yield Words((at[0], at[1] + LABEL * 0.36), text, LABEL, palette.MUTED, "middle")


def lane_name(lane: Lane, selection: Selection) -> str:
    """The name of a lane, with the number of folded lanes."""
    if lane is OUTSIDE:
        return "outside"
    alike = sum(shown == lane for shown in selection.alike.values())
    return (one_line(lane, 24) or "''") + (f" and {alike:,} alike" if alike else "")


def finding_kind(finding: Finding | FindingRow) -> palette.FindingLabel:
    """The kind of a finding."""
    return palette.FindingLabel(worth(finding), str(finding.pattern))


def flag(number: str, at: Point) -> Iterator[Shape]:
    """The number of a candidate of a diagnosis.

    Args:
        number: The number.
        at: The centre.
    """
    x, y = at
    yield Box((x - 7, y - _BADGE_HEIGHT / 2), (14, _BADGE_HEIGHT), Style(palette.FLAG), 6.5)
    yield Words((x, y + BADGE * 0.36), number, BADGE, palette.PAPER, "middle", True)


def badge(worth: Worth, label: str, at: Point, width: float) -> Iterator[Shape]:
    """The label of a finding.

    Args:
        worth: What the finding is worth, which decides the colours.
        label: The text.
        at: The centre.
        width: The width, in pixels.
    """
    look, colour, _ = palette.BADGES[worth]
    corner = (at[0] - width / 2, at[1] - _BADGE_HEIGHT / 2)
    yield Box(corner, (width, _BADGE_HEIGHT), look, 3)
    yield Words((at[0], at[1] + BADGE * 0.36), label, BADGE, colour, "middle", True)
