"""Small HTML tables of escaped text, in the colours of the page around."""

from __future__ import annotations

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


class Hop(NamedTuple):
    """A node of a path: the id, the agent, and whether the node is an event."""

    id: str
    lane: str
    is_event: bool


class Way(NamedTuple):
    """A cell with a picture: a path through the lanes of agents, hop by hop."""

    hops: Sequence[Hop]
    title: str


class Card(NamedTuple):
    """A card of a strip: label, text, and the colour of the edge."""

    label: str
    text: str
    colour: str


class Faint(str):
    """A cell with greyed text."""

    __slots__ = ()


Cell = str | Strip | Way


def table(title: str, rows: Iterable[Sequence[Cell]], heads: Sequence[str] = ()) -> str:
    """A table as HTML.

    Args:
        title: The text above the table.
        rows: The cells of each row.
        heads: The heads of the columns; by default none.
    """
    head = "".join(f"<th{_CELL}>{_escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    # Notebooks would take what stands between two dollar signs for a formula.
    return (
        f'<div class="tex2jax_ignore mathjax_ignore"><p><b>{_escape(title)}</b></p>'
        f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}"
        f"<tbody>{body}</tbody></table></div>"
    )


def strip(cards: Iterable[Card]) -> str:
    """Cards beside one another, from the first to the last."""
    shown = "".join(
        f'<div style="border:1px solid #8884;border-left:4px solid {card.colour};'
        'border-radius:4px;padding:4px 8px;max-width:260px;text-align:left">'
        f"<b>{_escape(card.label)}</b><br/>{_escape(card.text)}</div>"
        for card in cards
    )
    return (
        '<div class="tex2jax_ignore mathjax_ignore" '
        f'style="display:flex;flex-wrap:wrap;gap:8px;margin:6px 0">{shown}</div>'
    )


def _cell(cell: Cell) -> str:
    style = _FAINT if isinstance(cell, Faint) else _CELL
    if isinstance(cell, Strip):
        return f"<td{style}>{_strip_picture(cell)}</td>"
    return f"<td{style}>{_path_picture(cell) if isinstance(cell, Way) else _escape(cell)}</td>"


def _escape(text: str) -> str:
    from html import escape  # slow to import

    return escape(safe_text(text))


def _strip_picture(strip: Strip) -> str:
    path = "".join(f"M{a} 1h{b - a}v{STRIP_HEIGHT - 2}h{a - b}z" for a, b in strip.stretches)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{STRIP_WIDTH}" height="{STRIP_HEIGHT}" '
        f'role="img"><title>{_escape(strip.title)}</title><path d="M0 {STRIP_HEIGHT - 1}'
        f'h{STRIP_WIDTH}" stroke="currentColor" opacity="0.3"/>'
        f'<path d="{path}" fill="currentColor"/></svg>'
    )


_HOP, _LANE, _NAMES = 46, 30, 110
"""The distance of two hops and of two lanes, and the room for the names of lanes, in pixels."""

MOST_HOPS = 16


def _path_picture(path: Way) -> str:
    hops = list(path.hops)
    if len(hops) > MOST_HOPS:  # its beginning and its end
        hops = hops[: MOST_HOPS // 2] + hops[-MOST_HOPS // 2 :]
    lanes = {lane: n for n, lane in enumerate(dict.fromkeys(hop.lane for hop in hops))}
    points = [(_NAMES + i * _HOP, 14 + lanes[hop.lane] * _LANE) for i, hop in enumerate(hops)]
    names = "".join(
        f'<text x="0" y="{18 + n * _LANE}" opacity="0.7">{_escape(safe_text(lane, 16))}</text>'
        for lane, n in lanes.items()
    )
    line = "M" + " ".join(f"{x} {y}" for x, y in points)
    width, height = _NAMES + len(hops) * _HOP, 14 + len(lanes) * _LANE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img" '
        f'font-size="10" fill="currentColor"><title>{_escape(path.title)}</title>{names}'
        f'<path d="{line}" fill="none" stroke="currentColor" opacity="0.4"/>'
        f"{''.join(map(_node, hops, points))}</svg>"
    )


def _node(hop: Hop, at: tuple[int, int]) -> str:
    x, y = at
    shape = f'<rect x="{x - 9}" y="{y - 6}" width="18" height="12" rx="2"/>'
    if hop.is_event:
        shape = f'<circle cx="{x}" cy="{y}" r="5" stroke="currentColor" fill="#8888"/>'
    label = _escape(safe_text(hop.id, 7))
    return f'{shape}<text x="{x}" y="{y + 17}" text-anchor="middle">{label}</text>'
