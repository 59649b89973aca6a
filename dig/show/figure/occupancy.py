"""The occupied parts of a picture, for labels in free places only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .scene import Point

_CELL = 40.0

Rectangle = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def around(at: Point, width: float, height: float) -> Rectangle:
    """The rectangle of some size around a point.

    Args:
        at: The centre.
        width: The width, in pixels.
        height: The height, in pixels.
    """
    x, y = at
    return (x - width / 2, y - height / 2, x + width / 2, y + height / 2)


class Occupancy:
    """Occupied rectangles in a coarse grid, for a search of few rectangles."""

    def __init__(self, bounds: Rectangle) -> None:
        self._bounds = bounds
        self._cells: dict[tuple[int, int], list[Rectangle]] = {}

    def take(self, rectangle: Rectangle) -> None:
        """Take a rectangle."""
        for cell in _cells(rectangle):
            self._cells.setdefault(cell, []).append(rectangle)

    def place(self, candidates: Iterable[Point], width: float, height: float) -> Point | None:
        """Take the first free place for a label; ``None`` if there is none.

        Args:
            candidates: The possible centres, the best first.
            width: The width of the label, in pixels.
            height: Its height, in pixels.
        """
        for at in candidates:
            rectangle = around(at, width, height)
            if self._is_free(rectangle):
                self.take(rectangle)
                return at
        return None

    def _is_free(self, rectangle: Rectangle) -> bool:
        x0, y0, x1, y1 = rectangle
        left_x, top, right, bottom = self._bounds
        if x0 < left_x or y0 < top or x1 > right or y1 > bottom:
            return False
        return not any(
            x0 < other[2] and other[0] < x1 and y0 < other[3] and other[1] < y1
            for cell in _cells(rectangle)
            for other in self._cells.get(cell, ())
        )


def _cells(rectangle: Rectangle) -> Iterator[tuple[int, int]]:
    x0, top, right, bottom = (int(side // _CELL) for side in rectangle)
    for x in range(x0, right + 1):
        for y in range(top, bottom + 1):
            yield x, y
