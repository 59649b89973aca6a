"""The measures of a run, beside the paper's figures, and the names of the methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dig.detectors.patterns import NAMES
from dig.tasks.run.team_run import LADDER
from dig.traces.usage import tokens

from .paper_figures import PAPER_PATTERNS, Figures, paper
from .results import Row

BASELINE, OURS = "mas", "dig"
"""The method that does nothing, and the one that is compared with all others."""

HEALING = (OURS, LADDER)
"""The methods that heal by the graph."""

GRAPHLESS = ("watchdog", "retry")
"""The rivals that know no graph."""

RIVALS = ("redraw", *GRAPHLESS, "judge")
"""The rivals of our methods."""
METHODS: Mapping[str, tuple[str, str]] = {
    BASELINE: ("MAS only", "#7f7f7f"),
    "redraw": ("MAS, another draw", "#c7c7c7"),
    "watchdog": ("MAS + watchdog", "#bcbd22"),
    "retry": ("MAS + retry", "#8c564b"),
    "judge": ("MAS + judge", "#9467bd"),
    OURS: ("MAS + DIG", "#1f77b4"),
    LADDER: ("MAS + DIG, with ladders", "#17becf"),
}
"""The title and the colour of each method; the paper has figures of `mas`, `judge`, `dig`."""


def title(method: str) -> str:
    """The name of a method in tables."""
    return METHODS[method][0] if method in METHODS else method


@dataclass(frozen=True)
class GridSetting:
    """The setting of a method: task, level and size of the problem, and size of the team."""

    task: str
    level: str
    size: int
    agents: int


@dataclass(frozen=True, eq=False)
class Measure:
    """A number to measure for each run.

    Attributes:
        name: Its name in tables.
        of: Its value of a run; ``None``: this run does not count.
        better: 1: more is better, -1: less is, 0: neither.
        is_flag: Whether the measure's values are 0 and 1.
        paper: The paper's figure of it; ``None``: the paper has none.
        scales: By task and level, our figure and the paper's by which values are divided.
    """

    name: str
    of: Callable[[Row], float | None]
    better: int = -1
    is_flag: bool = False
    paper: Callable[[Figures], float | None] | None = None
    scales: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)

    def value(self, row: Row) -> float | None:
        """The value of a run, scaled."""
        value = self.of(row)
        scale, _ = self.scales.get((row.task, row.level), (1.0, 1.0))
        return value if value is None else value / scale

    def figure(self, setting: GridSetting, method: str) -> float | None:
        """The paper's figure for a method in a setting, scaled."""
        figures = paper(setting.task, setting.size, setting.level, setting.agents, method)
        value = self.paper(figures) if self.paper and figures else None
        _, scale = self.scales.get((setting.task, setting.level), (1.0, 1.0))
        return value if value is None else value / scale


VALID = Measure("valid", lambda row: row.valid, 1, True, lambda figures: figures.valid)
COMPLETE = Measure("complete", lambda row: row.complete, 1, True)
RMSE = Measure("RMSE", lambda row: row.rmse, paper=lambda figures: figures.rmse)
SECONDS = Measure(
    "seconds",
    # A run that fails soon is not a fast one.
    lambda row: row.seconds if row.valid else None,
    paper=lambda figures: figures.seconds,
)
CALLS = Measure("calls", lambda row: row.calls)
TOKENS = Measure("tokens", lambda row: tokens(row.usage))
NOTES = Measure("notes", lambda row: row.notes, 0)
FINDINGS = Measure(
    "findings",
    lambda row: sum(row.findings.get(pattern, 0) for pattern in PAPER_PATTERNS),
    paper=lambda figures: figures.total,
)
SEVERITIES = (
    Measure("errors", lambda row: row.count("error")),
    Measure("warnings", lambda row: row.count("warning")),
    Measure("notices", lambda row: row.count("notice")),
)

GOALS = (VALID, COMPLETE, RMSE)
"""The aim of a method."""
COSTS = (SECONDS, CALLS, TOKENS)

MEASURES = (*GOALS, *COSTS, NOTES, FINDINGS, *SEVERITIES)
"""All that tables have. As in the paper, findings are those of its seven patterns, and RMSE and
time are of valid answers only."""


def shown_measures(rows: Sequence[Row], measures: Sequence[Measure] = MEASURES) -> list[Measure]:
    """The measures with a value in some run: simulated agents use no tokens, for instance."""
    return [measure for measure in measures if any(measure.of(row) is not None for row in rows)]


def shown_patterns(rows: Sequence[Row]) -> list[str]:
    """The patterns of the paper, and all other patterns with findings."""
    raised = {pattern for row in rows for pattern, count in row.findings.items() if count}
    return [name for name in NAMES if name in raised.union(PAPER_PATTERNS)]


def count_of(pattern: str) -> Measure:
    """The measure with the count of a pattern's findings."""
    return Measure(
        pattern,
        lambda row: row.findings.get(pattern, 0),
        paper=lambda figures: figures.findings.get(pattern),
    )
