"""Styles: one table a kind of thing, for shapes and for the legend alike.

The colours are those of Okabe and Ito, which colour-blind people can tell apart; and nothing is
told by colour alone: dashes, marks, letters and shapes say the same.
"""

from __future__ import annotations

from typing import NamedTuple

from dig.detectors.describe import (
    DISCARDS,
    FAILS,
    IDLES,
    REROUTES,
    RESPONDS,
    SUBMITS,
    WAITS,
    WORKS,
    Worth,
)

from .scene import Circle, Point, Polygon, Shape, Style, line, moved, regular, star

INK, MUTED, FAINT = "#1f2933", "#5b6875", "#d5dbe1"
PAPER, STRIPE = "#ffffff", "#f4f6f8"
ORANGE, BLUE, VERMILLION, GREEN = "#e69f00", "#0072b2", "#d55e00", "#009e73"
SLATE, SKY, ROSE = "#3e4c59", "#56b4e9", "#7b1e4b"

# --- activations ------------------------------------------------------------------------------

TURNS: dict[str, tuple[Style, str, str]] = {
    RESPONDS: (Style(SLATE, SLATE, 1.4), "", PAPER),
    SUBMITS: (Style(GREEN, GREEN, 1.4), "S", PAPER),
    WAITS: (Style("#fdf3dc", ORANGE, 1.4), "W", "#7a5200"),
    REROUTES: (Style("#e3f0f9", BLUE, 1.4), "R", "#004a75"),
    DISCARDS: (Style("#fbe9dd", VERMILLION, 1.4), "D", "#8a3c00"),
    FAILS: (Style(INK, INK, 1.4), "!", PAPER),
    IDLES: (Style(FAINT, MUTED, 1.4), "", INK),
    WORKS: (Style(PAPER, SLATE, 1.4, (2.5, 2)), "", SLATE),
}
"""Kind of an activation -> its style, its letter, and the letter's colour."""

# --- edges ------------------------------------------------------------------------------------

PRODUCTIVE, SEEN = "productive", "in front of it"
LINKS: dict[str, Style] = {
    PRODUCTIVE: Style(None, "#52606d", 1.2, (), 0.75),
    "delay": Style(None, ORANGE, 1.1, (5, 3), 0.65),
    "reroute": Style(None, BLUE, 1.3, (7, 2.5, 1.5, 2.5), 0.85),
    "discard": Style(None, VERMILLION, 1.4, (1.5, 2.5), 0.95),
    SEEN: Style(None, MUTED, 1.1, (1, 3), 0.8),
}


def mark(kind: str, at: Point) -> list[Shape]:
    """The mark at the end of an edge of some kind: a ring, an arrow, a cross or an arrow head."""
    look, size = LINKS[kind], 3.4
    x, y = at
    match kind:
        case "delay":
            return [Circle(at, size * 0.75, Style(PAPER, look.stroke, 1.3))]
        case "reroute":
            points = moved(((-size, -size), (size * 0.6, 0), (-size, size)), x, y)
            return [Polygon(points, Style(None, look.stroke, 1.5), closed=False)]
        case "discard":
            s = size * 0.9
            arms = ((x - s, y - s), (x + s, y + s)), ((x - s, y + s), (x + s, y - s))
            return [line(*arm, look.stroke, 1.6) for arm in arms]
        case "productive":
            points = moved(
                ((-size * 1.3, -size * 0.8), (size * 0.4, 0), (-size * 1.3, size * 0.8)), x, y
            )
            return [Polygon(points, Style("#52606d"))]
        case _:
            return []


# --- events -----------------------------------------------------------------------------------

PROBLEM, SOLUTION, RAW, NOTICE, SYSTEM_NOTE, OTHER = (
    "problem", "solution", "raw data", "notice", "system", "message",
)  # fmt: skip
ANSWER, BOUNCED, OPEN_ANSWER = "accepted answer", "answer sent back", "answer"
_CORNERS = {
    PROBLEM: (4, 1.05, 0),
    RAW: (6, 0.92, 0),
    SYSTEM_NOTE: (3, 1.05, 0),
    NOTICE: (3, 1, 0.5),
}
"""Number of corners, size and turn of the events that are no squares on their sides."""

EVENTS: dict[str, Style] = {
    PROBLEM: Style(SKY, "#20638f", 1.2),
    SOLUTION: Style("#a9b8c6", SLATE, 1.2),
    RAW: Style(PAPER, SLATE, 1.2),
    OTHER: Style("#dfe5ea", SLATE, 1.2),
    NOTICE: Style(PAPER, MUTED, 1.1),
    SYSTEM_NOTE: Style("#f0e442", "#6b6400", 1.2),
    ANSWER: Style(GREEN, "#00614a", 1.1),
    BOUNCED: Style(PAPER, ROSE, 1.3),
    OPEN_ANSWER: Style("#cfeee4", "#00614a", 1.1),
}


def event_shape(kind: str, at: Point, radius: float, title: str = "") -> Shape:
    """The shape of an event: a square, except for a few kinds that stand out.

    Args:
        kind: Its kind.
        at: Its centre.
        radius: Its radius in pixels.
        title: The text that viewers show at the pointer; by default none.
    """
    look = EVENTS[kind]
    if kind in (ANSWER, BOUNCED, OPEN_ANSWER):
        return Polygon(star(at, radius * 1.3), look, title)
    corners, size, turn = _CORNERS.get(kind, (4, 1.05, 0.125))
    return Polygon(regular(at, radius * size, corners, turn), look, title)


# --- findings ---------------------------------------------------------------------------------


class FindingLabel(NamedTuple):
    """What the label of a finding shows."""

    worth: Worth
    pattern: str


Kind = str | FindingLabel
"""The kind of something in a picture, for its look and for the legend."""

BADGES: dict[Worth, tuple[Style, str, str]] = {
    "error": (Style(ROSE, PAPER, 1.0), PAPER, ROSE),
    "warning": (Style("#f0e442", "#6b6400", 1.0), INK, "#6b6400"),
    "notice": (Style("#e3f0f9", BLUE, 1.0), "#004a75", BLUE),
    "silenced": (Style(PAPER, MUTED, 1.0, (2, 1.5)), MUTED, MUTED),
}
"""What a finding is worth -> its label's style, the colour of its letters, and that of a line in
place of the label."""
