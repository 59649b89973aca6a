"""Pictures for tests, of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dig import InteractionGraph
from dig.graph.codec import decode
from dig.show.figure.drawing import compose
from dig.show.figure.scene import DrawingScene, Words
from dig.show.figure.selection import RunPart, Selection, select
from dig.show.figure.source import Source
from tests.oracle import Row


def source(rows: Iterable[Row]) -> Source:
    return Source.of_graph(InteractionGraph.of(decode(row) for row in rows))


def chosen(rows: Iterable[Row], **wanted: Any) -> Selection:
    return select(source(rows), RunPart(**wanted))


def scene(rows: Iterable[Row], **wanted: Any) -> DrawingScene:
    return compose([source(rows)], RunPart(**wanted))


def texts(picture: DrawingScene) -> list[str]:
    return [shape.text for shape in picture.shapes if isinstance(shape, Words)]
