"""The results of an experiment by setting, method and seed: means, and differences of methods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from .results import Row
from .row_measures import RMSE, GridSetting, Measure
from .statistics import Mean, mean, mean_difference, share

ALL_TASKS, ALL_LEVELS = "all tasks", "all levels"


@dataclass(frozen=True)
class Pool:
    """Settings with the same team size to look at together; a single setting is looked at alone."""

    settings: tuple[GridSetting, ...]

    @property
    def agents(self) -> int:
        """The size of the teams."""
        return self.settings[0].agents

    @property
    def task(self) -> str:
        """The task, or `ALL_TASKS` if there are several."""
        tasks = {setting.task for setting in self.settings}
        return tasks.pop() if len(tasks) == 1 else ALL_TASKS

    @property
    def level(self) -> str:
        """The level, or `ALL_LEVELS` if there are several."""
        levels = {setting.level for setting in self.settings}
        return levels.pop() if len(levels) == 1 else ALL_LEVELS


class Samples:
    """The runs of an experiment.

    Attributes:
        rows: All of them.
        settings: The settings that there are: by team size, then by task, the easiest first.
        methods: The methods that there are.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        """Sort runs by setting."""
        self.rows = sorted(rows, key=lambda row: row.seed)
        self._runs: dict[tuple[GridSetting, str], list[Row]] = defaultdict(list)
        for row in self.rows:
            setting = GridSetting(row.task, row.level, row.size, row.agents)
            self._runs[setting, row.method].append(row)
        tasks = [*dict.fromkeys(row.task for row in rows)]
        self.settings = sorted(
            dict.fromkeys(setting for setting, _ in self._runs),
            key=lambda setting: (setting.agents, tasks.index(setting.task), setting.size),
        )
        self.methods = [*dict.fromkeys(method for _, method in self._runs)]
        self._values: dict[tuple[Pool, str, str], dict[int, float]] = {}
        self._means: dict[tuple[GridSetting, str, str], Mean | None] = {}
        self._ranges: dict[tuple[str, str, str], tuple[float, float]] = {}

    def runs(self, setting: GridSetting, method: str) -> list[Row]:
        """The runs of a method in a setting, in order of seeds."""
        return self._runs.get((setting, method), [])

    @property
    def levels(self) -> list[str]:
        """The levels of difficulty, the easiest first."""
        sized = sorted(self.settings, key=lambda setting: setting.size)
        return [*dict.fromkeys(setting.level for setting in sized)]

    def pools(self) -> list[Pool]:
        """All settings of each team size together."""
        return [
            Pool(tuple(setting for setting in self.settings if setting.agents == agents))
            for agents in dict.fromkeys(setting.agents for setting in self.settings)
        ]

    def values(self, pool: Pool, method: str, measure: Measure) -> dict[int, float]:
        """The value for each seed: the mean over the settings that have a value for the seed."""
        key = (pool, method, measure.name)
        if key not in self._values:
            values = defaultdict[int, list[float]](list)
            for setting in pool.settings:
                for row in self.runs(setting, method):
                    if (value := measure.value(row)) is not None:
                        values[row.seed].append(value)
            self._values[key] = {seed: fmean(values) for seed, values in values.items()}
        return self._values[key]

    def mean(self, setting: GridSetting, method: str, measure: Measure) -> Mean | None:
        """The mean of a measure over seeds, with the interval."""
        key = (setting, method, measure.name)
        if key not in self._means:
            # Charts and tables ask for the same means, and a bootstrap is slow.
            values = [*self.values(Pool((setting,)), method, measure).values()]
            if measure.is_flag or not values:
                self._means[key] = share(values)
            else:
                low, high = self._bounds(setting, measure)
                # The range is that of all methods; centred on this mean, it bounds what seeds may
                # hide.
                middle, reach = fmean(values), (high - low) / 2
                self._means[key] = mean(values, max(low, middle - reach), min(high, middle + reach))
        return self._means[key]

    def difference(self, pool: Pool, pair: tuple[str, str], measure: Measure) -> list[float]:
        """The difference of two methods for each seed: the mean over the settings of a pool.

        Args:
            pool: The settings; of each only the seeds count that have a value with both methods.
            pair: The method, and the one whose value is subtracted.
            measure: The measure.
        """
        differences = defaultdict[int, list[float]](list)
        for setting in pool.settings:
            alone = Pool((setting,))
            values, reference = (self.values(alone, method, measure) for method in pair)
            # In pairs: the same seed poses the same problem to both methods.
            for seed in values.keys() & reference.keys():
                differences[seed].append(values[seed] - reference[seed])
        return [fmean(differences[seed]) for seed in sorted(differences)]

    def mean_difference(
        self, pool: Pool, differences: Sequence[float], measure: Measure
    ) -> Mean | None:
        """The mean of the differences of two methods, with the interval.

        How far a difference can be from 0 bounds the interval: 1 for flags; for other measures
        half of the range of their values with all methods and team sizes.

        Args:
            pool: The settings.
            differences: From `difference`.
            measure: The measure.
        """
        if measure.is_flag:
            most = 1.0
        else:
            bounds = [self._bounds(setting, measure) for setting in pool.settings]
            most = fmean((high - low) / 2 for low, high in bounds)
        return mean_difference(differences, most, len(pool.settings))

    def _bounds(self, setting: GridSetting, measure: Measure) -> tuple[float, float]:
        """The least and the greatest value of the same problems, with any method and team."""
        key = (setting.task, setting.level, measure.name)
        if key not in self._ranges:
            values = [
                value
                for setting in self._same_problems(setting)
                for method in self.methods
                for value in self.values(Pool((setting,)), method, measure).values()
            ]
            self._ranges[key] = min(values, default=0.0), max(values, default=0.0)
        return self._ranges[key]

    def _same_problems(self, setting: GridSetting) -> list[GridSetting]:
        problem = (setting.task, setting.level)
        return [setting for setting in self.settings if (setting.task, setting.level) == problem]

    def relative_rmse(self) -> Measure:
        """RMSE as a part of the mean RMSE of all runs with the same task and level.

        Without it, the task with the largest numbers would decide alone about several tasks.
        """
        scales: dict[tuple[str, str], tuple[float, float]] = {}
        for each in self.settings:
            same = self._same_problems(each)
            ours = [
                row.rmse
                for setting in same
                for method in self.methods
                for row in self.runs(setting, method)
                if row.rmse is not None
            ]
            figures = [RMSE.figure(setting, method) for setting in same for method in self.methods]
            theirs = [figure for figure in figures if figure is not None]
            scales[each.task, each.level] = _scale(ours), _scale(theirs)
        return replace(RMSE, name="RMSE, relative", scales=scales)


def _scale(values: Sequence[float]) -> float:
    return (fmean(values) if values else 0.0) or 1.0
