"""Charts of an experiment with matplotlib: RMSE, findings by pattern, time and valid rate.

The same results give the same SVG, byte for byte, with the same matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

COLOURS = {"mas": "#7f7f7f", "judge": "#9467bd", "dig": "#1f77b4"}
_SHOWN = (("rmse", "RMSE"), ("seconds", "seconds"), ("valid", "valid"), ("findings", "findings"))
_HEADS = {
    "RMSE": "RMSE of valid answers",
    "seconds": "time of runs with a valid answer, s",
    "valid": "valid output rate",
    "findings": "findings, errors and warnings together",
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
    for name, key in _SHOWN:
        yield name, _by_team_size(grid, rows, key, MEASURES[key])
    for size in grid.agents:
        yield f"patterns-{size}", _by_pattern(grid, rows, size)


def _panels(
    grid: Grid, rows: Sequence[Row], title: str
) -> tuple[Figure, list[tuple[Axes, str, str]]]:
    """A figure with a panel for each task and level."""
    from matplotlib.figure import Figure

    tasks, shown = list(dict.fromkeys(row.task for row in rows)), levels(rows)
    figure = Figure(figsize=(3.2 * len(shown), 2.6 * len(tasks) + 0.6), layout="constrained")
    figure.suptitle(title + grid.agents_note)
    axes = figure.subplots(len(tasks), len(shown), squeeze=False)
    panels = [
        (axes[i][j], task, level) for i, task in enumerate(tasks) for j, level in enumerate(shown)
    ]
    for ax, task, level in panels:
        ax.set_title(one_line(f"{task}, {level}").replace("$", r"\$"))
    return figure, panels


def _by_team_size(grid: Grid, rows: Sequence[Row], key: str, measure: Measure) -> Figure:
    figure, panels = _panels(grid, rows, _HEADS[key])
    for ax, task, level in panels:
        for place, method in enumerate(grid.methods):
            cells = [PaperSetting(task, n).rows(rows, level, method) for n in grid.agents]
            _bars(ax, [measured(cell, key, measure) for cell in cells], place, method, grid)
        ax.set_xticks(range(len(grid.agents)), [f"{n}" for n in grid.agents])
        ax.set_xlabel("agents")
    _explain(figure, panels)
    return figure


def _by_pattern(grid: Grid, rows: Sequence[Row], agents: int) -> Figure:
    figure, panels = _panels(grid, rows, f"findings by pattern, {counted(agents, 'agent')}")
    shown = shown_patterns(rows)
    for ax, task, level in panels:
        for place, method in enumerate(grid.methods):
            cell = PaperSetting(task, agents).rows(rows, level, method)
            means = [measured(cell, name, count_of(name)) for name in shown]
            _bars(ax, means, place, method, grid)
        ax.set_xticks(range(len(shown)), shown)
    _explain(figure, panels)
    return figure


def _explain(figure: Figure, panels: Sequence[tuple[Axes, str, str]]) -> None:
    """Say below the panels which colour is which method."""
    bars, names = panels[0][0].get_legend_handles_labels()
    figure.legend(bars, names, loc="outside lower center", ncols=len(names))


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
