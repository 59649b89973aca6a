"""A picture as data: shapes in pixels, for two back ends.

The origin is at the top left, y grows downwards. A scene is computed once; later shapes in
it lie on top.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import cos, pi, sin
from typing import ClassVar, Literal

DOTS_PER_INCH = 96

Point = tuple[float, float]
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Style:
    """The style of a shape.

    Attributes:
        fill: The colour inside it; ``None``: none.
        stroke: The colour of its line; ``None``: no line.
        width: The width of the line.
        dash: Lengths of dashes and gaps in turn; empty: a line without gaps.
        opacity: 1 covers what lies below, 0 cannot be seen.
    """

    fill: str | None = None
    stroke: str | None = None
    width: float = 1.0
    dash: tuple[float, ...] = ()
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Circle:
    """A circle; some viewers show the `title` at the pointer."""

    at: Point
    radius: float
    look: Style
    title: str = ""


@dataclass(frozen=True, slots=True)
class Polygon:
    """A line through some points, closed or not."""

    points: tuple[Point, ...]
    look: Style
    title: str = ""
    closed: bool = True


@dataclass(frozen=True, slots=True)
class Curve:
    """A cubic Bezier curve: begin, two control points, end."""

    points: tuple[Point, Point, Point, Point]
    look: Style
    title: str = ""

    def at(self, part: float) -> Point:
        """The point at a part of the way, from 0 to 1."""
        a, b, c, d = (1 - part) ** 3, 3 * part * (1 - part) ** 2, 3 * part**2 * (1 - part), part**3
        p, q, r, s = self.points
        return (
            a * p[0] + b * q[0] + c * r[0] + d * s[0],
            a * p[1] + b * q[1] + c * r[1] + d * s[1],
        )


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with round corners; `at` is the top left corner."""

    at: Point
    size: tuple[float, float]
    look: Style
    radius: float = 0.0
    title: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """A line of text; `at` is on the baseline, at the start, the middle or the end."""

    at: Point
    text: str
    size: float
    colour: str
    anchor: Anchor = "start"
    bold: bool = False
    look: ClassVar[None] = None  # they are filled, and nothing else


Shape = Circle | Polygon | Curve | Box | Words


@dataclass
class DrawingScene:
    """A picture: size, title, and shapes from the lowest to the topmost."""

    width: float
    height: float
    title: str
    description: str
    shapes: list[Shape] = field(default_factory=list)

    def add(self, shapes: Iterable[Shape]) -> None:
        """Put shapes on top."""
        self.shapes += shapes


def line(a: Point, b: Point, colour: str | None, width: float) -> Polygon:
    """A straight line.

    Args:
        a: Its beginning.
        b: Its end.
        colour: Its colour.
        width: Its width, in pixels.
    """
    return Polygon((a, b), Style(None, colour, width), closed=False)


def star(radius: float) -> list[Point]:
    """The corners of a star with five points, from its middle."""
    radii = [radius, radius * 0.45] * 5
    angles = [pi * i / 5 - pi / 2 for i in range(10)]
    return [(r * cos(a), r * sin(a)) for r, a in zip(radii, angles, strict=True)]


def polygon(points: Sequence[Point], at: Point, look: Style, title: str = "") -> Polygon:
    """A closed line through points.

    Args:
        points: The points, from the middle of the shape.
        at: The middle.
        look: The style.
        title: The text at the pointer; by default none.
    """
    return Polygon(tuple((x + at[0], y + at[1]) for x, y in points), look, title)


def text_width(text: str, size: float, bold: bool = False) -> float:
    """The approximate width of a line of text in the usual fonts, rather too large.

    Args:
        text: The text.
        size: The size of its letters, in pixels.
        bold: Whether it is bold; by default not.
    """
    from rich.cells import cell_len

    return cell_len(text) * size * (0.64 if bold else 0.58)
