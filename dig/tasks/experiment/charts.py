"""Charts of an experiment with matplotlib: RMSE, findings by pattern, time and valid rate.

The same results give the same SVG, byte for byte, with the same matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dig._util.text import counted, one_line
from dig.errors import SettingsError

from .grid import Grid
from .paper import (
    MEASURES,
    METHOD_NAMES,
    Measure,
    PaperSetting,
    count_of,
    levels,
    measured,
    shown_patterns,
)
from .results import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "mas": "#7f7f7f", "watchdog": "#bcbd22", "retry": "#8c564b", "judge": "#9467bd",
    "dig": "#1f77b4",
}  # fmt: skip
_SHOWN = (("rmse", "RMSE"), ("seconds", "seconds"), ("valid", "valid"), ("findings", "findings"))
_HEADS = {
    "RMSE": "RMSE of valid answers",
    "seconds": "time of runs with a valid answer, s",
    "valid": "valid output rate",
    "findings": "findings of the paper's patterns",
}


def is_possible() -> bool:
    """Whether matplotlib is there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def draw(grid: Grid, rows: Sequence[Row], out: Path) -> list[Path]:
    """Draw all charts of an experiment as SVG.

    Args:
        grid: The grid that was run.
        rows: Its results.
        out: The directory to which they go.

    Raises:
        SettingsError: matplotlib is missing, or a file cannot be written.
    """
    if not is_possible():
        raise SettingsError("charts need matplotlib: pip install 'dig-monitor[draw]'")
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "dig", "font.size": 8}):
        drawn = []
        for name, figure in _figures(grid, rows):
            path = out / f"{name}.svg"
            try:
                figure.savefig(path, metadata={"Date": None})
            except OSError as error:
                raise SettingsError(f"{path} cannot be written: {one_line(error)}") from None
            drawn.append(path)
    return drawn


def _figures(grid: Grid, rows: Sequence[Row]) -> Iterator[tuple[str, Figure]]:
    teams = sorted({row.agents for row in rows})  # a user's own team may have a size of its own
    sizes = [f"{n}" for n in teams]
    for name, key in _SHOWN:
        measures = [(n, key, MEASURES[key]) for n in teams]
        yield name, _bar_chart(grid, rows, _HEADS[key], sizes, measures, "agents")
    for size in teams:
        title = f"findings by pattern, {counted(size, 'agent')}"
        by_pattern = [(size, pattern, count_of(pattern)) for pattern in shown_patterns(rows)]
        names = [pattern for _, pattern, _ in by_pattern]
        yield f"patterns-{size}", _bar_chart(grid, rows, title, names, by_pattern)


def _bar_chart(
    grid: Grid, rows: Sequence[Row], title: str, ticks: Sequence[str],
    measures: Sequence[tuple[int, str, Measure]], label: str = "",
) -> Figure:  # fmt: skip
    """A panel for each task and level, in which each measure has a bar for each method.

    Args:
        grid: The grid that was run.
        rows: Its results.
        title: The title of the figure.
        ticks: The names of the measures on the axis.
        measures: For each, the size of the teams, the name and the measure.
        label: The name of the axis.
    """
    from matplotlib.figure import Figure

    tasks, shown = list(dict.fromkeys(row.task for row in rows)), levels(rows)
    figure = Figure(figsize=(3.2 * len(shown), 2.6 * len(tasks) + 0.6), layout="constrained")
    figure.suptitle(title + grid.agents_note)
    axes = figure.subplots(len(tasks), len(shown), squeeze=False)
    for ax, (task, level) in zip(axes.flat, product(tasks, shown), strict=True):
        ax.set_title(one_line(f"{task}, {level}").replace("$", r"\$"))
        for place, method in enumerate(grid.methods):
            means = [
                measured(PaperSetting(task, n).rows(rows, level, method), name, measure)
                for n, name, measure in measures
            ]
            _bars(ax, means, place, method, grid)
        ax.set_xticks(range(len(ticks)), ticks)
        ax.set_xlabel(label)
    # Below the panels: which colour is which method.
    bars, names = axes[0][0].get_legend_handles_labels()
    figure.legend(bars, names, loc="outside lower center", ncols=len(names))
    return figure


def _bars(ax: Axes, means: Sequence[Any], place: int, method: str, grid: Grid) -> None:
    """One method's bars, with their intervals, beside those of the others."""
    width = 0.8 / len(grid.methods)
    at = [i + (place - (len(grid.methods) - 1) / 2) * width for i in range(len(means))]
    heights = [m.mean if m else 0.0 for m in means]
    below = [m.mean - m.low if m and m.low is not None else 0.0 for m in means]
    above = [m.high - m.mean if m and m.high is not None else 0.0 for m in means]
    colour, label = COLOURS.get(method), METHOD_NAMES.get(method, method)
    ax.bar(at, heights, width, color=colour, label=label)
    ax.errorbar(at, heights, [below, above], fmt="none", ecolor="black", elinewidth=0.8)
