"""The lower part of a picture: the activity of agents and of the system, in wall time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10

from dig._util.text import one_line

from . import palette
from .graph_panel import badge, finding_kind, lane_name
from .nodes import title, turn_kind
from .occupancy import Occupancy
from .scene import Box, DrawingScene, Point, Shape, Style, Words, line, text_width
from .selection import Selection
from .source import Source

ROW, SMALL_ROW = 19.0, 11.0
AXIS = 26.0
SYSTEM_ROW = 34.0
_LEAST_BAR = 1.5


@dataclass
class Timeline:
    """Draws when each agent was active.

    Attributes:
        source: The run.
        selection: The part of it to draw.
        agents: The agents with a row, in order.
        origin: The left end of the time axis, and the top of the first row.
        left: The left end of the names of the rows.
        width: The width of the time axis, in pixels.
        us: The microseconds that the axis is long.
        used: The kinds of things that were drawn, for the legend.
    """

    source: Source
    selection: Selection
    agents: Sequence[str]
    origin: Point
    left: float
    width: float
    us: int
    used: dict[palette.Kind, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._row = ROW if len(self.agents) <= 40 else SMALL_ROW
        self._begin = self.source.clock[self.selection.span[0]]
        self._us = max(self.us, 1)

    @property
    def height(self) -> float:
        """The height in pixels."""
        return self._row * len(self.agents) + SYSTEM_ROW + AXIS

    def draw(self, scene: DrawingScene) -> None:
        """Put the time line into a scene."""
        scene.add(self._rows())
        scene.add(self._axis())
        scene.add(self._bars())
        scene.add(self._system())

    def _x(self, us: float) -> float:
        part = min(max((us - self._begin) / self._us, 0.0), 1.0)
        return self.origin[0] + part * self.width

    def _rows(self) -> Iterator[Shape]:
        row_width = self.origin[0] + self.width - self.left
        size = min(10.5, self._row - 2)
        for i, agent in enumerate(self.agents):
            y = self.origin[1] + i * self._row
            if i % 2 == 0:
                yield Box((self.left, y), (row_width, self._row), Style(palette.STRIPE), 2)
            middle = y + self._row / 2 + size * 0.36
            text = lane_name(agent, self.selection)
            yield Words((self.left + 8, middle), text, size, palette.INK)
        y = self.origin[1] + len(self.agents) * self._row + SYSTEM_ROW / 2 + 4
        yield Words((self.left + 8, y), "system", 10.5, palette.MUTED)
        if not self.selection.findings:
            yield Words((self.origin[0], y), "nothing was found", 9.5, palette.MUTED)

    def _axis(self) -> Iterator[Shape]:
        top, bottom = self.origin[1], self.origin[1] + self.height - AXIS
        most = max(2, int(self.width / 110))
        rough = self._us / 1_000_000 / most
        size: float = 10.0 ** floor(log10(rough))
        # The first round number of seconds with which there are at most so many ticks.
        step = next(size * n for n in (1, 2, 5, 10) if size * n >= rough * 0.999)
        digits = max(0, -floor(log10(step) + 1e-9))
        first = ceil(self._begin / 1_000_000 / step)
        for tick in range(first, first + most + 1):
            us = tick * step * 1_000_000
            if us > self._begin + self._us:
                break
            unit = " s" if self.source.has_clock else ""
            x, text = self._x(us), f"{tick * step:,.{digits}f}{unit}"
            yield line((x, top), (x, bottom + 4), palette.FAINT, 1)
            yield Words((x, bottom + 17), text, 9.5, palette.MUTED, "middle")
        right = self.origin[0] + self.width
        yield line((self.origin[0], bottom), (right, bottom), palette.MUTED, 1)

    def _bars(self) -> Iterator[Shape]:
        rows = {agent: i for i, agent in enumerate(self.agents)}
        alike = self.selection.alike
        shared = {*alike, *alike.values()}
        clock = self.source.clock
        for id, node in self.selection.turns.items():
            kind = turn_kind(self.source, id, node)
            self.used[kind] = None
            end = node.get("t_end", self.selection.span[1])
            x0, x1 = self._x(clock[node["t_start"]]), self._x(clock[end])
            agent = node["agent"]
            y = self.origin[1] + rows[alike.get(agent, agent)] * self._row + 2.5
            size = (max(x1 - x0, _LEAST_BAR), self._row - 5)
            # Bars of agents in a shared row may overlap, so they are translucent.
            yield from palette.turn_shapes(
                kind, (x0, y), size, title(self.source, id, node, kind),
                0.4 if agent in shared else 1.0,
            )  # fmt: skip

    def _system(self) -> Iterator[Shape]:
        """The times of findings and of healing."""
        top = self.origin[1] + len(self.agents) * self._row
        room = Occupancy(
            (self.left, top - 1, self.origin[0] + self.width + 40, top + SYSTEM_ROW + 1)
        )
        for heal in self.selection.heals:
            self.used["healing"] = None
            yield palette.diamond((self._x(heal.us), top + SYSTEM_ROW - 5), 4, Style(palette.HEAL))
        labels: list[Shape] = []  # above the lines of those for which there is no place
        for finding in self.selection.findings:
            x, kind = self._x(finding.us), finding_kind(finding)
            label = one_line(kind.pattern, 12)
            width = text_width(label, 9, bold=True) + 7
            ways = [(x, top + SYSTEM_ROW * part) for part in (0.27, 0.73)]
            at = room.place(ways, width + 1, 13)
            self.used[kind] = None
            if at is not None:
                labels += badge(kind.worth, label, at, width)
            else:  # as a line, where labels would lie on each other
                yield line((x, top + 2), (x, top + 9), palette.BADGES[kind.worth][2], 1.2)
        yield from labels
