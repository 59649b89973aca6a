"""Charts of an experiment with matplotlib: valid and complete answers, errors, costs, findings.

The same results give the same SVG, byte for byte, with the same matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dig._util.extras import importing_extra
from dig._util.text import counted, one_line
from dig.errors import file_errors

from . import row_measures
from .grid import Grid
from .paper import value_of
from .samples import Samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEADS = {
    row_measures.VALID: "valid output rate",
    row_measures.COMPLETE: "valid and complete answers",
    row_measures.RMSE: "RMSE of valid answers",
    row_measures.SECONDS: "time of runs with a valid answer, s",
    row_measures.CALLS: "activations of agents",
    row_measures.FINDINGS: "findings of the paper's patterns",
}


def is_possible() -> bool:
    """Whether matplotlib is there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def draw(grid: Grid, samples: Samples, out: Path) -> list[Path]:
    """Draw all charts of an experiment as SVG.

    Args:
        grid: The grid that was run.
        samples: Its results.
        out: The directory to which they go.

    Raises:
        SettingsError: matplotlib is missing, or a file cannot be written.
    """
    with importing_extra("draw", "a chart"):
        import matplotlib as mpl

    # Without a salt, ids in an SVG are random: equal results would give unequal files.
    with mpl.rc_context({"svg.hashsalt": "dig", "font.size": 8}):
        drawn = []
        for name, figure in _figures(grid, samples):
            path = out / f"{name}.svg"
            with file_errors(path, "written"):
                figure.savefig(path, metadata={"Date": None})
            drawn.append(path)
    return drawn


def _figures(grid: Grid, samples: Samples) -> Iterator[tuple[str, Figure]]:
    # Those of the results: a user's own team may have a size of its own.
    teams = sorted({setting.agents for setting in samples.settings})
    sizes = [f"{n}" for n in teams]
    for measure in row_measures.shown_measures(samples.rows, tuple(_HEADS)):
        bars = [(n, measure) for n in teams]
        chart = _bar_chart(grid, samples, _HEADS[measure], sizes, bars, "agents")
        yield measure.name.lower(), chart
    patterns = row_measures.shown_patterns(samples.rows)
    for size in teams:
        head = f"findings by pattern, {counted(size, 'agent')}"
        bars = [(size, row_measures.count_of(pattern)) for pattern in patterns]
        yield f"patterns-{size}", _bar_chart(grid, samples, head, patterns, bars)


def _bar_chart(
    grid: Grid, samples: Samples, head: str, ticks: Sequence[str],
    measures: Sequence[tuple[int, row_measures.Measure]], label: str = "",
) -> Figure:  # fmt: skip
    """Draw a panel for each task and level: for each measure, a bar for each method.

    Args:
        grid: The grid that was run.
        samples: Its results.
        head: The title of the figure.
        ticks: The names of the measures on the axis.
        measures: For each, the size of the teams, and the measure.
        label: The name of the axis.
    """
    from matplotlib.figure import Figure

    tasks, shown = list(dict.fromkeys(setting.task for setting in samples.settings)), samples.levels
    figure = Figure(figsize=(3.2 * len(shown), 2.6 * len(tasks) + 0.6), layout="constrained")
    figure.suptitle(head + grid.agents_note)
    axes = figure.subplots(len(tasks), len(shown), squeeze=False)
    for ax, (task, level) in zip(axes.flat, product(tasks, shown), strict=True):
        # Between two dollars, matplotlib reads text as mathematics.
        ax.set_title(one_line(f"{task}, {level}").replace("$", r"\$"))
        for place, method in enumerate(grid.methods):
            settings = {
                setting.agents: setting
                for setting in samples.settings
                if (setting.task, setting.level) == (task, level)
            }
            means = [
                value_of(samples, settings.get(n), method, measure).ours for n, measure in measures
            ]
            _bars(ax, means, place, method, grid)
        ax.set_xticks(range(len(ticks)), ticks)
        ax.set_xlabel(label)
    # Below the panels: which colour is which method.
    bars, names = axes[0][0].get_legend_handles_labels()
    figure.legend(bars, names, loc="outside lower center", ncols=len(names))
    return figure


def _bars(ax: Axes, means: Sequence[Any], place: int, method: str, grid: Grid) -> None:
    """Draw the bars of a method, with intervals, beside the other methods."""
    width = 0.8 / len(grid.methods)
    at = [i + (place - (len(grid.methods) - 1) / 2) * width for i in range(len(means))]
    # A place without a mean has a bar, too, or the bars would not meet their ticks.
    heights = [m.mean if m else 0.0 for m in means]
    below = [m.mean - m.low if m and m.low is not None else 0.0 for m in means]
    above = [m.high - m.mean if m and m.high is not None else 0.0 for m in means]
    colour = row_measures.METHODS[method][1] if method in row_measures.METHODS else None
    ax.bar(at, heights, width, color=colour, label=row_measures.title(method))
    ax.errorbar(at, heights, [below, above], fmt="none", ecolor="black", elinewidth=0.8)
