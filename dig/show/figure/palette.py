"""Styles: a table for each kind of shape, for shapes and for the legend alike.

Colours and shapes are those of the page of a run, whose style sheet is read here. Nothing is told
by colour alone: dashes, marks, letters and shapes say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dig.detectors.describe import Worth
from dig.graph.words import DISCARDS, FAILS, IDLES, REROUTES, RESPONDS, SUBMITS, WAITS, WORKS
from dig.show.page.html_page import source

from .scene import Box, Circle, Curve, Point, Polygon, Shape, Style, Words, line, polygon, star

_LIGHT = source("tokens.css").partition('[data-theme="dark"]')[0]
COLOURS: dict[str, str] = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", _LIGHT))
"""The colours of the page in its light theme, by name."""

INK, MUTED, FAINT = COLOURS["ink"], COLOURS["ink-2"], COLOURS["line"]
PAPER, STRIPE = COLOURS["ground"], COLOURS["band"]
BAR, EDGE, HEAL, ERROR = (COLOURS[name] for name in ("bar", "edge", "heal", "error"))
FLAG = COLOURS["accent"]

# --- activations ------------------------------------------------------------------------------

TURNS: dict[str, tuple[Style, str, str]] = {
    RESPONDS: (Style(BAR, PAPER, 1.0), "", PAPER),
    SUBMITS: (Style(BAR, PAPER, 1.0), "S", PAPER),
    WAITS: (Style(PAPER, BAR, 1.2), "", BAR),
    REROUTES: (Style(BAR, PAPER, 1.0), "R", PAPER),
    DISCARDS: (Style(BAR, PAPER, 1.0), "D", PAPER),
    FAILS: (Style(BAR, ERROR, 2.2), "!", PAPER),
    IDLES: (Style(FAINT, MUTED, 1.2), "", INK),
    WORKS: (Style(PAPER, BAR, 1.2, (2.5, 2)), "", BAR),
}
"""Kind of an activation -> its style, its letter, and the letter's colour."""

_HATCH = 6.0
_LETTER = 8.8


def turn_shapes(
    kind: str, corner: Point, size: tuple[float, float], title: str = "", opacity: float = 1.0
) -> Iterator[Shape]:
    """The bar of an activation; hatched for an activation without effect.

    Args:
        kind: Its kind.
        corner: Its top left corner.
        size: Its width and its height, in pixels.
        title: The text that viewers show at the pointer; by default none.
        opacity: Less than 1, where bars lie on each other.
    """
    look, letter, colour = TURNS[kind]
    (x, y), (width, height) = corner, size
    if opacity < 1:
        look = Style(look.fill, look.stroke, look.width, look.dash, opacity)
    yield Box(corner, size, look, 2, title)
    if kind == WAITS:
        for i in range(int((width + height) / _HATCH)):
            low = (i + 1) * _HATCH
            a = (x + min(low, width), y + max(0.0, low - width))
            b = (x + max(0.0, low - height), y + min(low, height))
            yield Polygon((a, b), Style(None, BAR, 0.8, (), opacity), closed=False)
    if letter and width > 11 and height > 11 and opacity == 1:
        at = (x + width / 2, y + height / 2 + _LETTER * 0.36)
        yield Words(at, letter, _LETTER, colour, "middle", True)


# --- edges ------------------------------------------------------------------------------------

PRODUCTIVE, SEEN, CHAIN = "productive", "in front of it", "chain"
SUSPECTED = "candidate"
LINKS: dict[str, Style] = {
    PRODUCTIVE: Style(None, EDGE, 1.2, (), 0.9),
    "delay": Style(None, COLOURS["delay"], 1.2, (5, 4), 0.75),
    "reroute": Style(None, COLOURS["reroute"], 1.3, (9, 4, 2, 4), 0.9),
    "discard": Style(None, COLOURS["discard"], 1.4, (2, 2.5), 0.95),
    SEEN: Style(None, EDGE, 1.1, (2, 3), 0.9),
    CHAIN: Style(None, FLAG, 5.0, (), 0.35),
}


def mark(kind: str, at: Point) -> list[Shape]:
    """The mark at the end of an edge: a tip, a ring, a diamond or a cross, as on the page."""
    look, size = LINKS[kind], 3.4
    x, y = at
    match kind:
        case "delay":
            return [Circle(at, size * 0.75, Style(PAPER, look.stroke, 1.3))]
        case "reroute":
            return [polygon(((-4, 0), (0, -3.5), (4, 0), (0, 3.5)), at, Style(look.stroke))]
        case "discard":
            s = size * 0.9
            arms = ((x - s, y - s), (x + s, y + s)), ((x - s, y + s), (x + s, y - s))
            return [line(*arm, look.stroke, 1.6) for arm in arms]
        case "productive":
            tip = ((-size * 1.3, -size * 0.8), (size * 0.4, 0), (-size * 1.3, size * 0.8))
            return [polygon(tip, at, Style(EDGE))]
        case _:
            return []


def edge_sign(kind: str, at: Point, width: float) -> Iterator[Shape]:
    """A straight edge with its mark, for the legend.

    Args:
        kind: Its kind.
        at: Its beginning.
        width: Its length in pixels.
    """
    x, y = at
    yield Curve((at, (x + 10, y), (x + 20, y), (x + width, y)), LINKS[kind])
    yield from mark(kind, (x + width * (1 if kind == PRODUCTIVE else 0.6), y))


# --- events -----------------------------------------------------------------------------------

PROBLEM, SOLUTION, RAW, MESSAGE, NOTICE, SYSTEM_NOTE, OTHER = (
    "problem", "solution", "raw data", "message", "notice", "system", "other",
)  # fmt: skip
ANSWER, BOUNCED, OPEN_ANSWER = "accepted answer", "answer sent back", "answer"

EVENTS: dict[str, Style] = {
    PROBLEM: Style(COLOURS["problem"]),
    SOLUTION: Style(COLOURS["solution"]),
    RAW: Style(PAPER, COLOURS["raw_data"], 1.4),
    MESSAGE: Style(COLOURS["message"]),
    NOTICE: Style(PAPER, COLOURS["notice"], 1.4),
    SYSTEM_NOTE: Style(COLOURS["system"]),
    OTHER: Style(COLOURS["other"]),
    ANSWER: Style(COLOURS["final"], COLOURS["final"], 1.1),
    BOUNCED: Style(PAPER, ERROR, 1.3),
    OPEN_ANSWER: Style(PAPER, COLOURS["final"], 1.1),
}


def diamond(at: Point, radius: float, look: Style, title: str = "") -> Polygon:
    """A square on a corner: the sign of healing.

    Args:
        at: Its centre.
        radius: The distance of its corners from the centre, in pixels.
        look: Its style.
        title: The text that viewers show at the pointer; by default none.
    """
    return polygon(((0, -radius), (radius, 0), (0, radius), (-radius, 0)), at, look, title)


def event_shape(kind: str, at: Point, radius: float, title: str = "") -> Shape:
    """The shape of an event, by type, as on the page.

    Args:
        kind: Its kind.
        at: Its centre.
        radius: Its radius in pixels.
        title: The text that viewers show at the pointer; by default none.
    """
    look, s = EVENTS[kind], radius * 0.85
    if kind in (ANSWER, BOUNCED, OPEN_ANSWER):
        return polygon(star(radius * 1.3), at, look, title)
    if kind in (MESSAGE, NOTICE):
        return Circle(at, s if kind == MESSAGE else s * 0.7, look, title)
    if kind == SYSTEM_NOTE:
        return diamond(at, s * 1.25, look, title)
    if kind == PROBLEM:  # a wedge: here it begins
        return polygon(((-s, -s), (s * 1.15, 0), (-s, s)), at, look, title)
    return polygon(((-s, -s), (s, -s), (s, s), (-s, s)), at, look, title)


# --- findings ---------------------------------------------------------------------------------


class FindingLabel(NamedTuple):
    """The label of a finding."""

    worth: Worth
    pattern: str


Kind = str | FindingLabel
"""The kind of something in a picture, for its look and for the legend."""


def _badge(name: str, dash: tuple[float, ...] = ()) -> tuple[Style, str, str]:
    """The outlined label of a warning or a notice."""
    colour = COLOURS[name]
    return Style(COLOURS[f"{name}-soft"], colour, 1.0, dash), colour, colour


BADGES: dict[Worth, tuple[Style, str, str]] = {
    "error": (Style(ERROR, PAPER, 1.0), PAPER, ERROR),
    "warning": _badge("warning"),
    "notice": _badge("note"),
    "silenced": _badge("silenced", (2, 1.5)),
}
"""The worth of a finding -> its label's style, the colour of its letters, and that of a line in
place of the label."""
