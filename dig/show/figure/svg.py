"""A scene as SVG: a file without scripts, styles or references, the same bytes every time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from xml.sax.saxutils import escape

from dig._util.text import safe_text

from .scene import Box, Circle, Curve, DrawingScene, Point, Polygon, Shape, Style, Words

FONTS = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


def svg(scene: DrawingScene) -> str:
    """The picture as the text of an SVG file."""
    return "\n".join(_lines(scene)) + "\n"


def _lines(scene: DrawingScene) -> Iterator[str]:
    width, height = _number(scene.width), _number(scene.height)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="{FONTS}">'
    )
    yield f"<title>{_text(scene.title)}</title>"
    yield f"<desc>{_text(scene.description)}</desc>"
    # Shapes in a row with one style share a group, so that files stay short.
    for look, shapes in groupby(scene.shapes, key=attrgetter("look")):
        if look is None:
            yield from map(_shape, shapes)
        else:
            yield f"<g{_attributes(look)}>"
            yield from map(_shape, shapes)
            yield "</g>"
    yield "</svg>"


def _attributes(look: Style) -> str:
    attributes = f' fill="{look.fill or "none"}"'
    if look.stroke is not None:
        attributes += f' stroke="{look.stroke}" stroke-width="{_number(look.width)}"'
    if look.dash:
        attributes += f' stroke-dasharray="{" ".join(map(_number, look.dash))}"'
    if look.opacity < 1:
        attributes += f' opacity="{_number(look.opacity)}"'
    return attributes


def _shape(shape: Shape) -> str:
    match shape:
        case Words():
            return _words(shape)
        case Circle():
            x, y = map(_number, shape.at)
            return _element("circle", f'cx="{x}" cy="{y}" r="{_number(shape.radius)}"', shape.title)
        case Box():
            (x, y), (w, h) = map(_number, shape.at), map(_number, shape.size)
            rounded = f' rx="{_number(shape.radius)}"' if shape.radius else ""
            return _element(
                "rect", f'x="{x}" y="{y}" width="{w}" height="{h}"{rounded}', shape.title
            )
        case Polygon():
            end = "z" if shape.closed else ""
            return _element("path", f'd="M{_points(shape.points)}{end}"', shape.title)
        case Curve():
            start, curve = _points(shape.points[:1]), _points(shape.points[1:])
            return _element("path", f'd="M{start}C{curve}"', shape.title)


def _words(words: Words) -> str:
    x, y = map(_number, words.at)
    anchor = "" if words.anchor == "start" else f' text-anchor="{words.anchor}"'
    weight = ' font-weight="bold"' if words.bold else ""
    return (
        f'<text x="{x}" y="{y}" font-size="{_number(words.size)}" fill="{words.colour}"'
        f"{anchor}{weight}>{_text(words.text)}</text>"
    )


def _element(tag: str, attributes: str, title: str) -> str:
    if not title:
        return f"<{tag} {attributes}/>"
    return f"<{tag} {attributes}><title>{_text(title)}</title></{tag}>"


def _text(text: str) -> str:
    """Text as XML, with forbidden and text-reversing characters made visible."""
    shown = safe_text(text).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
    return escape(shown)


def _points(points: tuple[Point, ...]) -> str:
    return " ".join(f"{_number(x)} {_number(y)}" for x, y in points)


def _number(value: float) -> str:
    """A number with few digits after the point: a tenth of a pixel is invisible."""
    text = f"{value:.1f}" if value >= 1 or value <= 0 else f"{value:.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
