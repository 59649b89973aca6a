"""A picture of a run, put together, and kept as a file of some format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import TypeGuard

from dig._util.text import counted, name, one_line
from dig.detectors.describe import WORTHS, finding_text, pattern_label
from dig.detectors.patterns import BY_NAME, NAMES
from dig.errors import SettingsError
from dig.graph.graph import InteractionGraph
from dig.graph.words import seconds
from dig.show.cause import KnownCause
from dig.traces.journal.durable_files import cannot, write_output

from . import palette
from .graph_panel import GraphPanel, badge, flag, lane_name
from .layout import OUTSIDE, lay_out
from .raster import raster
from .scene import (
    DOTS_PER_INCH,
    Box,
    Curve,
    DrawingScene,
    Point,
    Shape,
    Style,
    Words,
    line,
    text_width,
)
from .selection import RunPart, Selection, select
from .source import Source
from .svg import svg
from .timeline import Timeline

FORMATS = (".svg", ".png", ".pdf")
MARGIN = 20.0
_GAP = 16.0
_MOST_LANES = 40


class Drawing:
    """A run as a picture: the graph in lanes, and below the time line of the agents.

    In a notebook it shows itself.

    >>> Drawing.of(Path("runs/20260101-120000-abcdef")).save(Path("run.svg"))
    """

    def __init__(self, scene: DrawingScene) -> None:
        """Make a picture of shapes; `of` makes a picture of a run."""
        self.scene = scene

    @classmethod
    def of(
        cls, run: Path | InteractionGraph, part: RunPart | None = None,
        width: float | None = None, cause: KnownCause | None = None,
    ) -> Drawing:  # fmt: skip
        """Draw a trace file, a run directory, or a graph (without wall time).

        Args:
            run: The run.
            part: The part of it to draw; by default all of it.
            width: The width of the figure in inches; letters keep their size. By default it is as
                wide as it is legible.
            cause: What a diagnosis names, with its candidates; by default nothing.

        Raises:
            TraceError: The trace cannot be read, or breaks a rule; the line is named.
            SettingsError: What is wanted makes no sense, or cannot be drawn.
        """
        source = Source.of_graph(run) if isinstance(run, InteractionGraph) else Source.of(run)
        return cls(compose(source, part or RunPart(), width, cause))

    def svg(self) -> str:
        """The picture as the text of an SVG file."""
        return svg(self.scene)

    def save(self, path: Path) -> None:
        """Write the picture to a file, in the format of the file's name.

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
    """The format for the name of a file, as the ending of the name.

    Raises:
        SettingsError: The ending is no known format.
    """
    form = path.suffix.lower()
    if form not in FORMATS:
        raise SettingsError(f"{path}: the name must end in one of {', '.join(FORMATS)}")
    return form


def compose(
    source: Source, part: RunPart, width: float | None = None, cause: KnownCause | None = None
) -> DrawingScene:
    """Compute the picture: all shapes, in pixels.

    Args:
        source: The run.
        part: The part of it to draw.
        width: The width in inches; by default as much as is legible.
        cause: What a diagnosis names; by default nothing.

    Raises:
        SettingsError: What is wanted makes no sense, or cannot be drawn.
    """
    selection = select(source, part)
    agents = _agents(source, selection, part)
    names = max(text_width(lane_name(lane, selection), 11.5) for lane in (*agents, OUTSIDE))
    left_x, right = MARGIN, MARGIN + names + _GAP
    room = None if width is None else width * DOTS_PER_INCH - right - MARGIN
    # Letters keep their size, so a given width makes columns narrower.
    layout = lay_out(source, selection, agents, room)
    full_width = right + layout.width + MARGIN
    if width is not None and full_width > width * DOTS_PER_INCH + 1:
        raise SettingsError(
            f"--width {width:g}: with letters that can be read this picture is at least "
            f"{ceil(10 * full_width / DOTS_PER_INCH) / 10:g} inches wide; try that, or a part of "
            "the run: --finding T, --focus ID, --from and --to, or --cleaned"
        )
    across = full_width - left_x - MARGIN - 16
    # The height is known when the last row of the legend is placed.
    scene = DrawingScene(full_width, 0, *_title(source, selection, part))
    # Titles are cut by estimate: fonts differ from viewer to viewer.
    words = [*_heading(scene, left_x + 8, across)]
    scene.add(words)
    heading = words[-1].at[1] + 13
    panel = GraphPanel(source, selection, layout, (right, heading), left_x, cause)
    top = heading + layout.height + 34
    timeline = Timeline(source, selection, agents, (right, top), left_x, layout.width - 14)
    clock = "activations in wall time" if source.has_clock else "activations, a record a second"
    scene.add([Words((left_x + 8, top - 9), clock, 11, palette.MUTED)])
    panel.draw(scene, part.focus)
    timeline.draw(scene)
    bottom = top + timeline.height + 10
    if cause is not None:
        rows = [*cause_lines(cause, bottom + 18, (left_x + 8, across))]
        scene.add(rows)
        bottom += 16 + 15 * len(rows)
    scene.add([line((left_x, bottom), (scene.width - MARGIN, bottom), palette.FAINT, 1)])
    used = {**panel.used, **timeline.used}
    signs, height = legend(used, (left_x + 8, bottom + 9), across)
    scene.add(signs)
    scene.height = bottom + 9 + height + 12
    paper = Box((0, 0), (scene.width, scene.height), Style(palette.PAPER))
    scene.shapes.insert(0, paper)  # a dark page would be dark behind dark words
    return scene


def _heading(scene: DrawingScene, left_x: float, across: float) -> Iterator[Words]:
    """The title, and the line about the contents, in so much room."""
    title = one_line(scene.title, int(across / text_width("n", 17, True)))
    yield Words((left_x, 30), title, 17, palette.INK, bold=True)
    for n, text in enumerate(wrap(scene.description, int(across / text_width("n", 11)))):
        yield Words((left_x, 49 + 15 * n), text, 11, palette.MUTED)


def _agents(source: Source, selection: Selection, part: RunPart) -> list[str]:
    """The agents with a lane: of a part of a run, or of very many agents, only those that act."""
    shown = [agent for agent in source.agents if agent not in selection.alike]
    if part.is_whole and len(shown) <= _MOST_LANES:
        return shown
    acting = set(map(source.agent_of, (*selection.turns, *selection.nodes)))
    return [agent for agent in shown if agent in acting]


def _title(source: Source, selection: Selection, part: RunPart) -> tuple[str, str]:
    """The title of the picture, and a line about the contents."""
    graph = source.graph
    kinds = Counter(node["kind"] for node in selection.nodes.values())
    team = counted(len(source.agents), "agent")
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
        *(["lanes that are alike drawn once"] if selection.alike else []),
        *part.words,
    ]
    finding = None if part.finding is None else source.finding(part.finding)
    if finding is not None:
        parts.append(f"the paths of {pattern_label(finding)}: {finding_text(finding)}")
    return one_line(graph.run.run, 80), ", ".join(parts)


# --- the diagnosis ---


_MOST_LISTED = 10


def cause_lines(cause: KnownCause, top: float, across: tuple[float, float]) -> Iterator[Words]:
    """The candidates of a diagnosis, by flag number, and the changes as a table.

    Args:
        cause: The diagnosis.
        top: The baseline of the first line.
        across: The left end of the lines, and their width.
    """
    left_x, width = across
    # The first candidate is the cause itself.
    further = enumerate(cause.candidates[1:_MOST_LISTED], 2)
    heads = [f"cause: {cause.says}", *(f"{n}  {candidate.says}" for n, candidate in further)]
    if cause.tried:
        heads.append("what was tried (a dot a run, filled if it was good; then without the change)")
    rows = [
        f"{_dots(change.good, change.of)}  |  {_dots(change.unchanged_good, change.unchanged_of)}  "
        f"{change.verdict}: {change.says}"
        for change in cause.tried[:_MOST_LISTED]
    ]
    for n, text in enumerate([*heads, *rows]):
        shown = one_line(text, int(width / text_width("n", _SIZE)))
        yield Words((left_x, top + 15 * n), shown, _SIZE, palette.INK, bold=text in heads[:1])


def _dots(good: int, of: int) -> str:
    return "\N{BLACK CIRCLE}" * good + "\N{WHITE CIRCLE}" * (of - good)


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
    palette.CHAIN: "the failure went on",
}


def legend(
    used: Collection[palette.Kind], origin: Point, width: float
) -> tuple[list[Shape], float]:
    """The legend as shapes, and the height.

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
    turns = [(kind, f"activation: {kind}", 18.0) for kind in palette.TURNS]
    events = [(kind, kind, 16.0) for kind in palette.EVENTS]
    links = [(kind, text, 34.0) for kind, text in _LINKS.items()]
    entries = (
        *turns,
        *events,
        *links,
        ("healing", "healing", 10.0),
        (palette.SUSPECTED, "candidate of the diagnosis", 14.0),
    )
    yield from (entry for entry in entries if entry[0] in used)
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
        yield from palette.turn_shapes(kind, (x, y - 6.5), (width, 13))
    elif kind in palette.EVENTS:
        yield palette.event_shape(kind, centre, 6.5)
    elif kind == palette.SUSPECTED:
        yield from flag("1", centre)
    elif kind in palette.LINKS:
        points = (at, (x + 10, y), (x + 20, y), (x + width, y))
        yield Curve(points, palette.LINKS[kind])
        yield from palette.mark(kind, (x + width * (1 if kind == palette.PRODUCTIVE else 0.6), y))
    else:
        yield palette.diamond(centre, 5, Style(palette.HEAL))
