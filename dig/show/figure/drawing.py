"""A picture of a run, put together, and kept as a file of some format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TypeGuard

from dig._util.text import counted, name, one_line
from dig.detectors.describe import WORTHS, seconds
from dig.detectors.patterns import BY_NAME, NAMES
from dig.errors import SettingsError
from dig.graph.graph import InteractionGraph
from dig.traces.journal.files import cannot, write_output

from . import palette
from .graph_panel import GraphPanel, badge, lane_name
from .layout import lay_out
from .raster import raster
from .scene import Box, Circle, Curve, DrawingScene, Point, Shape, Style, Words, line, text_width
from .selection import Selection, Wanted, select
from .source import Source
from .svg import svg
from .timeline import Timeline

FORMATS = (".svg", ".png", ".pdf")
MARGIN = 20.0
_GAP = 16.0
_MOST_LANES = 40


class Drawing:
    """A run as a picture: its graph in lanes, and below it the time line of the agents.

    In a notebook it shows itself.

    >>> Drawing.of(Path("runs/20260101-120000-abcdef")).save(Path("run.svg"))
    """

    def __init__(self, scene: DrawingScene) -> None:
        """A picture with these shapes; `of` makes one of a run."""
        self.scene = scene

    @classmethod
    def of(cls, run: Path | InteractionGraph, wanted: Wanted | None = None) -> Drawing:
        """Draw a trace file, a run directory, or a graph (which has no wall time).

        Raises:
            TraceError: The trace cannot be read, or breaks a rule; the line is named.
            SettingsError: What is wanted makes no sense, or cannot be drawn.
        """
        source = Source.of_graph(run) if isinstance(run, InteractionGraph) else Source.of(run)
        return cls(compose(source, wanted or Wanted()))

    def svg(self) -> str:
        """The picture as the text of an SVG file."""
        return svg(self.scene)

    def save(self, path: Path) -> None:
        """Write the picture to a file; its name says in which format.

        Raises:
            SettingsError: The format is not known, or its library is not installed.
            JournalError: The file cannot be written.
        """
        form = check_format(path)
        if form == ".svg":
            data = self.svg().encode()
        else:
            data = raster(self.scene, "png" if form == ".png" else "pdf")
        try:
            write_output(path, data)
        except OSError as error:
            raise cannot("write", path, error) from None

    _repr_svg_ = svg  # for notebooks


def check_format(path: Path) -> str:
    """The format that a file's name stands for, as its ending.

    Raises:
        SettingsError: The ending is no known format.
    """
    form = path.suffix.lower()
    if form not in FORMATS:
        raise SettingsError(f"{path}: the name must end in one of {', '.join(FORMATS)}")
    return form


def compose(source: Source, wanted: Wanted) -> DrawingScene:
    """Compute the picture: all shapes, in pixels.

    Raises:
        SettingsError: What is wanted makes no sense, or cannot be drawn.
    """
    selection = select(source, wanted)
    agents = _agents(source, selection, wanted)
    layout = lay_out(source, selection, agents)
    names = max(text_width(lane_name(lane), 11.5) for lane in (*layout.lanes, "outside"))
    left, right = MARGIN, MARGIN + names + _GAP
    scene = DrawingScene(right + layout.width + MARGIN, 0, *_title(source, selection, wanted))
    heading = 62.0
    panel = GraphPanel(source, selection, layout, (right, heading), left)
    top = heading + layout.height + 34
    timeline = Timeline(source, selection, agents, (right, top), left, layout.width - 14)
    scene.add(
        [
            Words((left + 8, 30), scene.title, 17, palette.INK, bold=True),
            Words((left + 8, 49), scene.description, 11, palette.MUTED),
            Words((left + 8, top - 9), "activations in wall time" if source.has_clock else
                  "activations, a record a second", 11, palette.MUTED),
        ]
    )  # fmt: skip
    panel.draw(scene, wanted.focus)
    timeline.draw(scene)
    bottom = top + timeline.height + 10
    scene.add([line((left, bottom), (scene.width - MARGIN, bottom), palette.FAINT, 1)])
    used = {**panel.used, **timeline.used}
    signs, height = legend(used, (left + 8, bottom + 9), scene.width - 2 * MARGIN - 16)
    scene.add(signs)
    scene.height = bottom + 9 + height + 12
    paper = Box((0, 0), (scene.width, scene.height), Style(palette.PAPER))
    scene.shapes.insert(0, paper)  # a dark page would be dark behind dark words
    return scene


def _agents(source: Source, selection: Selection, wanted: Wanted) -> list[str]:
    """The agents that have a lane: all, or of a part of a run (or very many) those that act."""
    history = source.graph.history
    everybody = dict.fromkeys((*source.graph.run.agents, *history.agent_names))
    is_whole = wanted.focus is None and wanted.first is None and wanted.last is None
    if is_whole and len(everybody) <= _MOST_LANES:
        return list(everybody)
    acting = {node["agent"] for node in selection.turns.values()}
    events = (history.event(one) for one, node in selection.nodes.items() if "t_gen" in node)
    acting |= {history.sender(n) for n in events if n is not None}
    return [agent for agent in everybody if agent in acting]


def _title(source: Source, selection: Selection, wanted: Wanted) -> tuple[str, str]:
    """The title of the picture, and a line about its contents."""
    graph = source.graph
    kinds = Counter(node["kind"] for node in selection.nodes.values())
    team = counted(len({*graph.run.agents, *graph.history.agent_names}), "agent")
    if source.is_simulated:
        team = team.replace(" agent", " simulated agent")
    first, last = selection.span
    took = seconds(source.clock[last] - source.clock[first])
    is_end = graph.finished is not None and last == graph.t
    parts = [
        *([name(graph.run.task)] if graph.run.task is not None else []),
        *([f"method {name(source.method)}"] if source.method else []),
        team,
        counted(kinds["activation"], "activation"),
        counted(kinds["event"], "event"),
        *([took] if source.has_clock else []),
        *([graph.finished.outcome] if graph.finished and is_end else []),
        *wanted.words,
    ]
    return one_line(graph.run.run, 80), ", ".join(parts)


# --- the legend ---


_ROW = 21.0
_SIZE = 10.5
_BETWEEN = 20.0

_LINKS = {
    palette.PRODUCTIVE: "generated, consumed",
    "delay": "delayed",
    "reroute": "rerouted",
    "discard": "discarded",
    palette.SEEN: "in front of it",
}


def legend(
    used: Collection[palette.Kind], origin: Point, width: float
) -> tuple[list[Shape], float]:
    """The legend as shapes, and its height.

    Args:
        used: The kinds of things that the picture contains.
        origin: The top left corner.
        width: The width of its rows, in pixels.
    """
    shapes: list[Shape] = []
    x, y = 0.0, 0.0
    for kind, text, sign in _entries(used):
        room = sign + 7 + text_width(text, _SIZE)
        if x > 0 and x + room > width:
            x, y = 0.0, y + _ROW
        at = (origin[0] + x, origin[1] + y + _ROW / 2)
        shapes += _sign(kind, at, sign)
        shapes.append(Words((at[0] + sign + 7, at[1] + 3.7), text, _SIZE, palette.INK))
        x += room + _BETWEEN
    return shapes, y + _ROW


def _entries(used: Collection[palette.Kind]) -> Iterator[tuple[palette.Kind, str, float]]:
    """Kind, text, and how wide the sign is."""
    turns = [(kind, f"activation: {kind}", 16.0) for kind in palette.TURNS]
    events = [(kind, kind, 16.0) for kind in palette.EVENTS]
    links = [(kind, text, 34.0) for kind, text in _LINKS.items()]
    known = (*turns, *events, *links, ("healing", "healing", 8.0))
    yield from (entry for entry in known if entry[0] in used)
    for kind in sorted(filter(_is_finding, used), key=_legend_place):
        width = text_width(one_line(kind.pattern, 12), 9, bold=True) + 7
        title = BY_NAME[kind.pattern].title if kind.pattern in BY_NAME else "finding"
        yield kind, f"{title} ({kind.worth})", width


def _is_finding(kind: palette.Kind) -> TypeGuard[palette.FindingLabel]:
    return isinstance(kind, palette.FindingLabel)


def _legend_place(kind: palette.FindingLabel) -> tuple[int, int, str]:
    """Findings by worth, and of equal worth the patterns of the table first."""
    place = NAMES.index(kind.pattern) if kind.pattern in NAMES else len(NAMES)
    return WORTHS.index(kind.worth), place, kind.pattern


def _sign(kind: palette.Kind, at: Point, width: float) -> Iterator[Shape]:
    x, y = at
    centre = (x + width / 2, y)
    if _is_finding(kind):
        yield from badge(kind.worth, one_line(kind.pattern, 12), centre, width)
    elif kind in palette.TURNS:
        look, letter, colour = palette.TURNS[kind]
        yield Circle(centre, 7, look)
        if letter:
            yield Words((centre[0], y + 3.2), letter, 8.8, colour, "middle", True)
    elif kind in palette.EVENTS:
        yield palette.event_shape(kind, centre, 6.5)
    elif kind in palette.LINKS:
        points = (at, (x + 10, y), (x + 20, y), (x + width, y))
        yield Curve(points, palette.LINKS[kind])
        yield from palette.mark(kind, (x + width * (1 if kind == palette.PRODUCTIVE else 0.6), y))
    else:
        yield line((centre[0], y - 7), (centre[0], y + 7), palette.GREEN, 1.6)
