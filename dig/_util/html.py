"""Small HTML tables of escaped text, in the colours of the page that they are shown in."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .text import safe_text

MOST_ROWS = 30
"""The most rows that a table in a notebook shows."""

STRIP_WIDTH, STRIP_HEIGHT = 280, 11

_CELL = ' style="text-align:left;padding:1px 12px 1px 0"'
_FAINT = _CELL[:-1] + ';opacity:0.55"'


class Strip(NamedTuple):
    """A cell with a picture: the stretches of time in which a lane was active."""

    stretches: Sequence[tuple[int, int]]
    title: str


class Faint(str):
    """A cell with greyed text."""

    __slots__ = ()


Cell = str | Strip


def table(title: str, rows: Iterable[Sequence[Cell]], heads: Sequence[str] = ()) -> str:
    """A table as HTML.

    Args:
        title: The text above the table.
        rows: The cells of each row.
        heads: The heads of the columns; by default none.
    """
    head = "".join(f"<th{_CELL}>{_escaped(text)}</th>" for text in heads)
    body = "".join(_row(row) for row in rows)
    # Notebooks would take what stands between two dollar signs for a formula.
    return (
        f'<div class="tex2jax_ignore mathjax_ignore"><p><b>{_escaped(title)}</b></p>'
        f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}"
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(cells: Sequence[Cell]) -> str:
    return f"<tr>{''.join(map(_cell, cells))}</tr>"


def _cell(cell: Cell) -> str:
    style = _FAINT if isinstance(cell, Faint) else _CELL
    return f"<td{style}>{_drawn(cell) if isinstance(cell, Strip) else _escaped(cell)}</td>"


def _escaped(text: str) -> str:
    return html.escape(safe_text(text))


def _drawn(strip: Strip) -> str:
    path = "".join(f"M{a} 1h{b - a}v{STRIP_HEIGHT - 2}h{a - b}z" for a, b in strip.stretches)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{STRIP_WIDTH}" height="{STRIP_HEIGHT}" '
        f'role="img"><title>{_escaped(strip.title)}</title><path d="M0 {STRIP_HEIGHT - 1}'
        f'h{STRIP_WIDTH}" stroke="currentColor" opacity="0.3"/>'
        f'<path d="{path}" fill="currentColor"/></svg>'
    )
