"""A picture of a run, put together, and kept as a file of some format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

from dig._util.text import counted, name, one_line
from dig.detectors.describe import WORTHS, finding_text, pattern_label
from dig.detectors.patterns import BY_NAME, NAMES
from dig.errors import SettingsError
from dig.graph.graph import InteractionGraph
from dig.graph.words import seconds
from dig.show.cause import KnownCause
from dig.traces.journal.durable_files import journal_errors, write_output

from . import palette
from .graph_panel import GraphPanel, badge, flag, lane_name
from .layout import OUTSIDE, Layout, lay_out
from .raster import raster
from .scene import DOTS_PER_INCH, Box, DrawingScene, Point, Shape, Style, Words, line, text_width
from .selection import RunPart, Selection, select
from .source import Source
from .svg import svg
from .timeline import Timeline

FORMATS = (".svg", ".png", ".pdf")
PAPER_WIDTH = 7.5
"""Inches up to which a picture is taken for a figure of a paper: without what only waited."""
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
        twin: Path | InteractionGraph | None = None, *,
        has_title: bool = True, has_legend: bool = True,
    ) -> Drawing:  # fmt: skip
        """Draw a trace file, a run directory, or a graph (without a clock).

        Args:
            run: The run.
            part: The part of it to draw; by default all of it.
            width: The width of the figure in inches; letters keep their size. By default it is as
                wide as it is legible.
            cause: What a diagnosis names, with its candidates; by default nothing.
            twin: Another run, drawn below on the same scale of time; by default none.
            has_title: Whether the title and the line about the contents stand above.
            has_legend: Whether the legend stands below.

        Raises:
            TraceError: The trace cannot be read, or breaks a rule; the line is named.
            SettingsError: What is wanted makes no sense, or cannot be drawn.
        """
        runs = [run] if twin is None else [run, twin]
        sources = [Source.of_graph(r) if isinstance(r, InteractionGraph) else Source.of(r)
                   for r in runs]  # fmt: skip
        return cls(
            compose(
                sources, part or RunPart(), width, cause, has_title=has_title, has_legend=has_legend
            )
        )

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
        with journal_errors("write", path):
            write_output(path, data)

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
    sources: Sequence[Source], part: RunPart, width: float | None = None,
    cause: KnownCause | None = None, *, has_title: bool = True, has_legend: bool = True,
) -> DrawingScene:  # fmt: skip
    """Compute the picture: all shapes, in pixels.

    Args:
        sources: The run, and those to draw below it on the same scale of time.
        part: The part of it to draw.
        width: The width in inches; by default as much as is legible.
        cause: What a diagnosis names; by default nothing.
        has_title: Whether the title and the line about the contents stand above; by default so.
        has_legend: Whether the legend stands below; by default so.

    Raises:
        SettingsError: What is wanted makes no sense, or cannot be drawn.
    """
    if part.cleaned is None:  # in a column of a paper there is no room for what only waited
        is_narrow = width is not None and width <= PAPER_WIDTH
        part = replace(part, cleaned=is_narrow and part.is_whole)
    runs, right = _lay_out_runs(sources, part, width)
    left_x, across = MARGIN, runs[0].layout.width
    titles = [_title(run.source, run.selection, part) for run in runs]
    # The height is known when the last row of the legend is placed.
    scene = DrawingScene(
        right + across + MARGIN, 0, titles[0][0], "; below: ".join(text for _, text in titles)
    )
    us, used = max(_span_us(run.source, run.selection) for run in runs), dict[palette.Kind, None]()
    bottom, inner = 0.0, (left_x + 8, scene.width - left_x - MARGIN - 16)
    for (source, selection, agents, layout), title in zip(runs, titles, strict=True):
        words = [*_heading(*title, bottom, inner)] if has_title else []
        scene.add(words)
        heading = words[-1].at[1] + 13 if words else bottom + MARGIN
        own_cause = cause if source is sources[0] else None
        panel = GraphPanel(source, selection, layout, (right, heading), left_x, own_cause)
        top = heading + layout.height + 34
        timeline = Timeline(source, selection, agents, (right, top), left_x, across - 14, us)
        scene.add([Words((inner[0], top - 9), f"activations {source.time}", 11, palette.MUTED)])
        panel.draw(scene, part.focus)
        timeline.draw(scene)
        bottom = top + timeline.height + 10
        used |= {**panel.used, **timeline.used}
        if own_cause is not None:
            rows = [*cause_lines(own_cause, bottom + 18, inner)]
            scene.add(rows)
            bottom += 16 + 15 * len(rows)
    if has_legend:
        scene.add([line((left_x, bottom), (scene.width - MARGIN, bottom), palette.FAINT, 1)])
        signs, height = legend(used, (inner[0], bottom + 9), inner[1])
        scene.add(signs)
        bottom += 9 + height
    scene.height = bottom + 12
    paper = Box((0, 0), (scene.width, scene.height), Style(palette.PAPER))
    scene.shapes.insert(0, paper)  # a dark page would be dark behind dark words
    return scene


class _LaidOutRun(NamedTuple):
    source: Source
    selection: Selection
    agents: list[str]
    layout: Layout


def _lay_out_runs(
    sources: Sequence[Source], part: RunPart, width: float | None
) -> tuple[list[_LaidOutRun], float]:
    """The runs, as wide as one another, and the left end of their columns."""
    if len(sources) > 1 and not part.is_whole:
        raise SettingsError(
            "--twin: records of the other run have other numbers; leave out --at, --from, --to, "
            "--focus and --finding"
        )
    drawn = [(source, s := select(source, part), _agents(source, s, part)) for source in sources]
    names = max(text_width(lane_name(a, s), 11.5) for _, s, row in drawn for a in (*row, OUTSIDE))
    right = MARGIN + names + _GAP
    room = None if width is None else width * DOTS_PER_INCH - right - MARGIN
    # Letters keep their size, so a given width makes columns narrower.
    layouts = [lay_out(*run, room) for run in drawn]
    across = max(layout.width for layout in layouts)
    full_width = right + across + MARGIN
    if width is not None and full_width > width * DOTS_PER_INCH + 1:
        raise SettingsError(
            f"--width {width:g}: with letters that can be read this picture is at least "
            f"{ceil(10 * full_width / DOTS_PER_INCH) / 10:g} inches wide; try that, or a part of "
            "the run: --finding T, --focus ID, --from and --to, or --cleaned"
        )
    wide = [replace(layout, width=across) for layout in layouts]
    return [_LaidOutRun(*run, layout) for run, layout in zip(drawn, wide, strict=True)], right


def _span_us(source: Source, selection: Selection) -> int:
    first, last = selection.span
    return source.clock[last] - source.clock[first]


def _heading(
    title: str, description: str, top: float, across: tuple[float, float]
) -> Iterator[Words]:
    """The title, and the line about the contents, in so much room."""
    left_x, width = across
    shown = one_line(title, int(width / text_width("n", 17, True)))
    yield Words((left_x, top + 30), shown, 17, palette.INK, bold=True)
    for n, text in enumerate(wrap(description, int(width / text_width("n", 11)))):
        yield Words((left_x, top + 49 + 15 * n), text, 11, palette.MUTED)


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
    took = seconds(_span_us(source, selection))
    is_end = graph.finished is not None and selection.span[1] == graph.t
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
    findings = [kind for kind in used if isinstance(kind, palette.FindingLabel)]
    for kind in sorted(findings, key=_legend_place):
        width = text_width(one_line(kind.pattern, 12), 9, bold=True) + 7
        title = BY_NAME[kind.pattern].title if kind.pattern in BY_NAME else "finding"
        yield kind, f"{title} ({kind.worth})", width


def _legend_place(kind: palette.FindingLabel) -> tuple[int, int, str]:
    """Findings by worth, and of equal worth the patterns of the table first."""
    place = NAMES.index(kind.pattern) if kind.pattern in NAMES else len(NAMES)
    return WORTHS.index(kind.worth), place, kind.pattern


def _sign(kind: palette.Kind, at: Point, width: float) -> Iterator[Shape]:
    x, y = at
    centre = (x + width / 2, y)
    if isinstance(kind, palette.FindingLabel):
        yield from badge(kind.worth, one_line(kind.pattern, 12), centre, width)
    elif kind in palette.TURNS:
        yield from palette.turn_shapes(kind, (x, y - 6.5), (width, 13))
    elif kind in palette.EVENTS:
        yield palette.event_shape(kind, centre, 6.5)
    elif kind == palette.SUSPECTED:
        yield from flag("1", centre)
    elif kind in palette.LINKS:
        yield from palette.edge_sign(kind, at, width)
    else:
        yield palette.diamond(centre, 5, Style(palette.HEAL))
