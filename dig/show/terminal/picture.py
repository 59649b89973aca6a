"""A frame of a run as lines for a terminal of any size, readable without colour.

From top to bottom: what runs and for how long, counts, one lane per agent, the events on their
way, and news. Where there is not enough room, lanes are folded into one line, and what matters
least goes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.align import AlignMethod
from rich.cells import cell_len
from rich.text import Text

from dig._util.text import name, one_line
from dig.graph.words import seconds

from .frame import RANKS, Frame, Lane, LogLine, TimeMark

LOOK_BACK_US = 45_000_000
"""A time line shows at least so much of the past, if there is room for 12 cells."""

MOST_CAPTION = 2
"""The most lines of the caption."""

LEGENDS = (
    "━ thinks ░ holds > sends c reads w waits r reroutes d drops S submits ! fails",
    "system: e event from outside F finding H healed A answer accepted i incident",
)

STYLES = {
    "bad": "bold red", "warning": "yellow", "notice": "cyan", "silenced": "dim", "good": "green",
    "plain": "",
}  # fmt: skip
_MARK_STYLES = {
    TimeMark.IDLE: "dim", TimeMark.HOLDS: "yellow", TimeMark.BUSY: "cyan", "!": "bold red",
    "S": "bold green", "F": "bold red", "H": "green", "A": "bold green", "i": "yellow",
}  # fmt: skip
_ASCII = str.maketrans("·░━─…→", ".:=-~>")


def draw(title: str, frame: Frame, width: int, height: int) -> list[Text]:
    """A frame as at most `height` lines of at most `width` cells.

    Args:
        title: What runs.
        frame: The frame.
        width: The width of the terminal, in cells.
        height: Its height, in lines.
    """
    width = max(width, 1)
    ending = f" {frame.outcome or 'running'}, {seconds(frame.us)}"
    heading = _pad(one_line(title), max(0, width - len(ending)), style="bold")
    top = [Text.assemble(heading, _fit(ending, width), no_wrap=True)]
    top.append(_fit(frame.counts, width))
    if height >= MOST_CAPTION + 14:  # room for it is kept, lest lanes move when it comes
        lines = [*_wrap(frame.caption, width, most=MOST_CAPTION), *[""] * MOST_CAPTION]
        top += [_fit(line, width, "bold") for line in lines[:MOST_CAPTION]]
    if frame.cost:
        top.append(_fit(f"cost: {frame.cost}", width))
    if frame.failed:
        top.append(_fit(frame.failed, width, STYLES["bad"]))
    held = "; ".join(frame.held) or "nothing"
    if frame.moving > len(frame.held):
        held += f"; {frame.moving - len(frame.held):,} more"
    parcels = [_fit(f"held      {held}", width)]
    parcels.append(_fit(f"released  {frame.released}", width))
    room = max(0, height - len(top))
    news_least = min(room // 3, 9)  # even before there are any, lest lanes fold when they come
    lanes = _lanes(frame, width, room - news_least - (len(parcels) if room >= 12 else 0))
    # Lanes get their room first, then the news; the events on their way go first of all.
    room -= len(lanes)
    parcels = parcels if room >= len(parcels) + news_least else []
    news = _news(frame.news, width, room - len(parcels))
    return [*top, *lanes, *parcels, *news][: max(height, 1)]


def ascii_only(line: Text, encoding: str) -> Text:
    """A line for a terminal without Unicode, of the same length."""
    copy = line.copy()
    copy.plain = line.plain.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return copy


# --- pieces -------------------------------------------------------------------------------------


def _fit(text: str | Text, width: int, style: str = "") -> Text:
    """Text cut to a width; a cut text ends in an ellipsis."""
    line = text.copy() if isinstance(text, Text) else Text(text, style)
    line.no_wrap = True
    line.truncate(width, overflow="ellipsis")
    return line


def _pad(text: str | Text, width: int, align: AlignMethod = "left", style: str = "") -> Text:
    line = _fit(text, width, style)
    line.align(align, width)
    return line


def _news(news: Sequence[LogLine], width: int, room: int) -> list[Text]:
    """The latest news with room below a heading, the newest at the bottom."""
    if room < 2:
        return []
    lines: list[Text] = []
    for item in reversed(news):
        item_lines = _item(item, width)
        if len(lines) + len(item_lines) > room - 1:
            break
        lines = item_lines + lines
    heading = "── findings, healing, failures "
    return [_fit(heading + "─" * max(0, width - len(heading)), width, "dim"), *lines]


def _item(item: LogLine, width: int) -> list[Text]:
    head = Text.assemble(
        f"{seconds(item.us):>9}  ", (f"{item.tag:<8}  ", STYLES[item.style]), no_wrap=True
    )
    has_room = width >= 60  # for the text to stand beside the head
    indent = 21 if has_room else 4
    used = head.cell_len - indent if has_room else 0
    body = _wrap(item.text, max(1, width - indent), used)
    lines = [head.append(body.pop(0))] if has_room else [head]
    lines += [Text(" " * indent + line, no_wrap=True) for line in body]
    return [_fit(line, width) for line in lines]


def _wrap(text: str, width: int, used: int = 0, most: int = 3) -> list[str]:
    """Text in at most so many lines, broken at blanks; `used` cells of the first are occupied."""
    # rich can wrap, too, but not below a head of another width.
    lines, room = [""], width - used
    for word in text.split(" "):
        blank = " " if lines[-1] else ""
        if cell_len(blank + word) <= room or (not blank and len(lines) == most):
            lines[-1] += blank + word
            room -= cell_len(blank + word)
        elif len(lines) == most:
            lines[-1] += "…" if room > 0 else ""
            break
        else:
            lines.append(word)
            room = width - cell_len(word)
    return lines


# --- lanes --------------------------------------------------------------------------------------


_DOING, _HOLDS = 15, 5
"""Widths of columns."""


def _widths(lanes: Iterable[Lane], width: int) -> list[int]:
    """The widths of the columns of the lanes: name, deed, held, time line, counts (0: left out)."""
    longest = max((cell_len(name(lane.name)) for lane in lanes), default=0)
    names = min(max(longest, 6), max(6, width // 6))
    count = 6 if width >= 70 else 0
    strip = width - names - _DOING - _HOLDS - (17 if count else 0) - 5
    return [names, _DOING + 1, (_HOLDS + 1) * (width >= 32), strip * (strip >= 8), *[count] * 3]


def _line(widths: Sequence[int], cells: Sequence[str | Text], style: str = "") -> Text:
    """A line with a value in each column, the first two of them in a style."""
    line = Text(no_wrap=True)
    for column, (width, cell) in enumerate(zip(widths, cells, strict=False)):
        if width:
            align: AlignMethod = "left" if column in (0, 1, 3) else "right"
            line.append("  " * (column == 3))
            line.append(_pad(cell, width, align, style if column < 2 else ""))
    return line


def _lanes(frame: Frame, width: int, room: int) -> list[Text]:
    """The agents and the system, below a heading; as many as there is room for."""
    if room < 1:
        return []
    has_legend = room >= 8
    spare = room - 2 - has_legend
    lanes, folded = list(frame.lanes), list[Lane]()
    if len(lanes) > spare:
        # First are those of present and active agents. Whatever else would be worth a place, the
        # latest failure for instance, changes too often to be followed with the eye.
        ranked = sorted(lanes, key=lambda lane: (lane.state == TimeMark.ABSENT, lane.turns == 0))
        chosen = {lane.name for lane in ranked[: max(0, spare - (2 if spare >= 8 else 1))]}
        folded = [lane for lane in lanes if lane.name not in chosen]
        lanes = [lane for lane in lanes if lane.name in chosen]
    widths = _widths([*lanes, frame.system], width)
    # Doubled, not grown by a little: so the picture jumps seldom.
    step_us, cells = 250_000, widths[3]
    while cells and step_us * cells < min(frame.us, LOOK_BACK_US):
        step_us *= 2
    span = f"last {cells * step_us / 1e6:.0f} s, {step_us / 1e6:g} s a cell"
    lines = [_line(widths, ("agent", " now", "holds", span, "turns", "sent", "fails"))]
    lines[0].stylize("dim")
    lines += [_lane(lane, frame.us, widths, step_us) for lane in lanes]
    if folded:
        deeds = Counter(_doing(lane) for lane in folded)
        counts = ", ".join(f"{n} {state}" for state, n in deeds.most_common())
        lines.append(_fit(f"{len(folded)} more: {counts}", width))
        states = Counter(lane.state for lane in folded)
        if spare >= 8:
            bar = "".join(state * states[state] for state in TimeMark.STATES[::-1])
            lines.append(_fit(f"  {bar}", width))
    doing = "over" if frame.outcome else "watching"
    marks = _strip(frame.system.marks, frame.us, cells, step_us)
    moving = f"{frame.moving:,}" if frame.moving else "-"
    lines.append(_line(widths, ("system", f" {doing}", moving, marks)))
    if has_legend:
        legends = LEGENDS[: 2 if room - len(lines) > 2 else 1]
        lines += [_fit(legend, width, "dim") for legend in legends]
    return [_fit(line, width) for line in lines[:room]]


def _lane(lane: Lane, us: int, widths: Sequence[int], step_us: int) -> Text:
    doing = _doing(lane)
    if lane.state in (TimeMark.BUSY, TimeMark.HOLDS):
        doing += f" {seconds(max(0, us - lane.since_us))}"
    style = "dim" if lane.state == TimeMark.ABSENT else ""
    style = "bold red" if doing.startswith("failed") else style
    marks = _strip(lane.marks, us, widths[3], step_us)
    counts = [f"{count:,}" for count in (lane.turns, lane.sent, lane.fails)]
    holds = f"{lane.holds:,}" if lane.holds else "-"
    return _line(widths, (name(lane.name), f" {doing}", holds, marks, *counts), style)


def _doing(lane: Lane) -> str:
    if lane.has_failed and lane.state in (TimeMark.IDLE, TimeMark.HOLDS):
        return "failed"
    return ("away", "idle", "waiting", "thinking")[TimeMark.STATES.index(lane.state)]


# --- time lines ---------------------------------------------------------------------------------


def _strip(marks: Iterable[tuple[int, str]], us: int, cells: int, step_us: int) -> Text:
    """A time line up to a moment, of the whole run if there is room.

    Args:
        marks: The marks on it, each with its time in microseconds.
        us: The moment.
        cells: The width of the time line.
        step_us: The time that a cell stands for, in microseconds.
    """
    first = max(0, us // step_us - cells + 1)
    # A state lasts from its mark to the next state; an event has a single cell.
    row = [TimeMark.ABSENT] * cells
    state, since = TimeMark.ABSENT, 0
    for at, mark in [*marks, (us, "")]:
        cell = at // step_us - first
        if mark == "" or mark in TimeMark.STATES:
            for i in range(max(0, since // step_us - first), min(cells, cell + 1)):
                is_over = i == cell and at % step_us == 0 and mark != ""
                if RANKS[state] > RANKS[row[i]] and not is_over:
                    row[i] = state
            state, since = mark, at
        elif 0 <= cell < cells and RANKS[mark] > RANKS[row[cell]]:
            row[cell] = mark
    line = Text(no_wrap=True)
    for mark, run in groupby(row):
        line.append("".join(run), _MARK_STYLES.get(mark, ""))
    return line
