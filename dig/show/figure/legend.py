"""What the signs in a picture mean: only of those that are in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dig._util.text import one_line
from dig.detectors.patterns import BY_NAME

from . import palette
from .graph_panel import badge
from .scene import Circle, Curve, Look, Point, Polygon, Shape, Words, text_width

_ROW = 21.0
_SIZE = 10.5
_GAP = 20.0

_LINKS = {
    palette.PRODUCTIVE: "generated, consumed",
    "delay": "delayed",
    "reroute": "rerouted",
    "discard": "discarded",
    palette.SEEN: "in front of it",
}


def legend(used: Collection[str], origin: Point, width: float) -> tuple[list[Shape], float]:
    """The legend for some kinds of things, in rows of some width; and how high it is."""
    shapes: list[Shape] = []
    x, y = 0.0, 0.0
    for kind, text, sign in _entries(used):
        room = sign + 7 + text_width(text, _SIZE)
        if x > 0 and x + room > width:
            x, y = 0.0, y + _ROW
        at = (origin[0] + x, origin[1] + y + _ROW / 2)
        shapes += _sign(kind, at, sign)
        shapes.append(Words((at[0] + sign + 7, at[1] + 3.7), text, _SIZE, palette.INK))
        x += room + _GAP
    return shapes, y + _ROW


def _entries(used: Collection[str]) -> Iterator[tuple[str, str, float]]:
    """Kind, text, and how wide the sign is."""
    turns = [(kind, f"activation: {kind}", 16.0) for kind in palette.TURNS]
    events = [(kind, kind, 16.0) for kind in palette.EVENTS]
    links = [(kind, text, 34.0) for kind, text in _LINKS.items()]
    known = (*turns, *events, *links, ("healing", "healing", 8.0))
    yield from (entry for entry in known if entry[0] in used)
    raised = [kind.removeprefix(palette.FINDING) for kind in used if _is_finding(kind)]
    known_first = [*(one for one in BY_NAME if one in raised), *sorted({*raised} - {*BY_NAME})]
    for pattern in known_first:
        width = text_width(one_line(pattern, 12), 9, bold=True) + 7
        yield (
            palette.FINDING + pattern,
            BY_NAME[pattern].title if pattern in BY_NAME else "finding",
            width,
        )


def _is_finding(kind: str) -> bool:
    return kind.startswith(palette.FINDING)


def _sign(kind: str, at: Point, width: float) -> Iterator[Shape]:
    x, y = at
    centre = (x + width / 2, y)
    if kind in palette.TURNS:
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
    elif _is_finding(kind):
        pattern = kind.removeprefix(palette.FINDING)
        yield from badge(pattern, one_line(pattern, 12), centre, width)
    else:
        line = Look(None, palette.GREEN, 1.6)
        yield Polygon(((centre[0], y - 7), (centre[0], y + 7)), line, closed=False)
