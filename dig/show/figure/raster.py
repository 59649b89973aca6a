"""A scene as PNG or PDF, through matplotlib (the extra `draw`)."""

from __future__ import annotations

import warnings
from io import BytesIO
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from dig._util.extras import importing_extra
from dig._util.text import safe_text

from .scene import DOTS_PER_INCH, Box, Circle, Curve, DrawingScene, Polygon, Shape, Style, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path

SHARPNESS = 2
"""The dots of a PNG for one pixel of the scene, along each side."""

MOST_DOTS = 16_000

_NO_DATES: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}


def raster(scene: DrawingScene, form: Literal["png", "pdf"]) -> bytes:
    """The picture as the bytes of a PNG or PDF file.

    Raises:
        SettingsError: matplotlib is not installed.
    """
    with importing_extra("draw", f"a {form.upper()}, unlike an .svg,"):
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    size = scene.width / DOTS_PER_INCH, scene.height / DOTS_PER_INCH
    figure = Figure(figsize=size, dpi=DOTS_PER_INCH, facecolor="white")
    _draw(figure, scene)
    sharpness = min(SHARPNESS, MOST_DOTS / max(scene.width, scene.height))
    file = BytesIO()
    # Fonts of type 42 are letters to other programs; publishers refuse those of type 3.
    with warnings.catch_warnings(), rc_context({"pdf.fonttype": 42}):
        warnings.simplefilter("ignore")  # a character that the font does not have is a box
        figure.savefig(file, format=form, dpi=DOTS_PER_INCH * sharpness, metadata=_NO_DATES[form])
    return file.getvalue()


def _draw(figure: Figure, scene: DrawingScene) -> None:
    from matplotlib.collections import PathCollection

    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    axes.axis("off")
    # Shapes of one style are one artist: each costs matplotlib a millisecond.
    for order, (look, shapes) in enumerate(groupby(scene.shapes, key=attrgetter("look"))):
        if look is None:
            for words in shapes:
                _write(axes, words, order)
        else:
            paths = [_path(shape) for shape in shapes]
            axes.add_collection(PathCollection(paths, zorder=order, **_style(look)), autolim=False)


_SIDES = {"start": "left", "middle": "center", "end": "right"}


def _write(axes: Axes, words: Shape, order: int) -> None:
    assert isinstance(words, Words)  # nothing else has no look
    axes.text(
        *words.at, safe_text(words.text), fontsize=_points(words.size),
        color=words.colour, ha=_SIDES[words.anchor], va="baseline", zorder=order,
        fontweight="bold" if words.bold else "normal", parse_math=False,
    )  # fmt: skip


def _path(shape: Shape) -> Path:
    from matplotlib.patches import BoxStyle
    from matplotlib.path import Path

    match shape:
        case Circle():
            return Path.circle(shape.at, shape.radius)
        case Box():
            style = BoxStyle.Round(pad=0, rounding_size=max(shape.radius, 0.01))
            path: Path = style(*shape.at, *shape.size, 1)
            return path
        case Polygon(points=points, closed=closed):
            return Path([*points, points[0]] if closed else points, closed=closed)
        case Curve(points=points):
            return Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        case Words():
            raise TypeError("words have no path")


def _style(look: Style) -> dict[str, Any]:
    # matplotlib measures dashes in line widths, all other formats in pixels.
    dashes = (0, [part / look.width for part in look.dash]) if look.dash else "solid"
    return {
        "facecolors": look.fill or "none",
        "edgecolors": look.stroke or "none",
        "linewidths": _points(look.width) if look.stroke else 0,
        "linestyles": [dashes],
        "alpha": look.opacity,
    }


def _points(pixels: float) -> float:
    """Pixels as typographic points, matplotlib's unit of lines and letters."""
    return pixels * 72 / DOTS_PER_INCH
