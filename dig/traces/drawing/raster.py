"""A scene as PNG or PDF, through matplotlib (the extra `draw`)."""

from __future__ import annotations

import warnings
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

from dig.errors import SettingsError
from dig.plain import safe_text

from .scene import Box, Circle, Curve, Look, Polygon, Scene, Words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 96
SHARPNESS = 2
"""How many dots of a PNG are one pixel of the scene, along each side."""

MOST_DOTS = 16_000

_NO_DATES: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}


def raster(scene: Scene, form: Literal["png", "pdf"]) -> bytes:
    """The picture as the bytes of a PNG or PDF file.

    Raises:
        SettingsError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SettingsError(
            f"{form.upper()} is drawn by matplotlib, which is not installed; "
            'try: pip install "dig-monitor[draw]", or a name that ends in .svg'
        ) from None
    size = scene.width / DOTS_PER_INCH, scene.height / DOTS_PER_INCH
    figure = Figure(figsize=size, dpi=DOTS_PER_INCH, facecolor="white")
    _draw(figure, scene)
    sharpness = min(SHARPNESS, MOST_DOTS / max(scene.width, scene.height))
    file = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a character that the font does not have is a box
        figure.savefig(file, format=form, dpi=DOTS_PER_INCH * sharpness, metadata=_NO_DATES[form])
    return file.getvalue()


def _draw(figure: Figure, scene: Scene) -> None:
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    axes.axis("off")
    for order, shape in enumerate(scene.shapes):
        if isinstance(shape, Words):
            axes.text(
                *shape.at, safe_text(shape.text), fontsize=_points(shape.size),
                color=shape.colour, ha=_SIDES[shape.anchor], va="baseline", zorder=order,
                fontweight="bold" if shape.bold else "normal", parse_math=False,
            )  # fmt: skip
        else:
            patch = _patch(shape)
            patch.set(zorder=order, **_style(shape.look))
            axes.add_patch(patch)


_SIDES = {"start": "left", "middle": "center", "end": "right"}


def _patch(shape: Circle | Box | Polygon | Curve) -> Any:
    from matplotlib import patches
    from matplotlib.path import Path

    match shape:
        case Circle():
            return patches.Circle(shape.at, shape.radius)
        case Box():
            rounded = (
                f"round,pad=0,rounding_size={shape.radius}" if shape.radius else "square,pad=0"
            )
            return patches.FancyBboxPatch(shape.at, *shape.size, boxstyle=rounded)
        case Polygon(points=points, closed=closed):
            return patches.PathPatch(
                Path([*points, points[0]] if closed else points, closed=closed)
            )
        case Curve(points=points):
            codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
            return patches.PathPatch(Path(points, codes))


def _style(look: Look) -> dict[str, Any]:
    width = _points(look.width)
    # matplotlib counts dashes in line widths, everybody else in pixels.
    dashes = (0, [part / look.width for part in look.dash]) if look.dash else "solid"
    return {
        "facecolor": look.fill or "none",
        "edgecolor": look.stroke or "none",
        "linewidth": width if look.stroke else 0,
        "linestyle": dashes,
        "alpha": look.opacity,
    }


def _points(pixels: float) -> float:
    """Pixels as the points of typographers, in which matplotlib measures lines and letters."""
    return pixels * 72 / DOTS_PER_INCH
