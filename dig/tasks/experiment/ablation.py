"""The contribution of each means of healing: runs with all of them, all but one, and none.

Every difference is taken seed by seed, and under several habits of the agents, so that a
conclusion comes with the range of habits over which it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dig.detectors.interventions import MEANS, Means
from dig.detectors.patterns import NAMES as PATTERNS
from dig.tasks.simulated.profile import Profile

from .grid import Cell, Grid
from .intervals import Mean, mean
from .paper import MEASURES, Measure, count_of, shown_patterns
from .results import Row
from .run import ExecutionOptions, Outcome, Progress, carry_out_cells
from .table import SIMULATED_AGENTS, Table, TableCell, Value, settings_notes

COMPLIANCES = (0.0, 0.3, 0.6, 0.9, 1.0)
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)

BAD = (
    "wait", "pass_on", "discard", "discard_double", "broadcast", "duplicate", "misaddress",
    "merge", "hand_over", "submit_early", "fail",
)  # fmt: skip
"""The bad habits that are multiplied."""

NAMES: Mapping[Means, str] = {
    "bounce": "returning early answers",
    "redirect": "sending lost work elsewhere",
    "create": "new events",
    "note": "notes",
}

WHOLE = frozenset(MEANS)
SHOWN = ("valid", "RMSE", "seconds", "errors", "warnings", "notices")
COMPARED: dict[str, Measure] = {name: MEASURES[name] for name in SHOWN} | {
    pattern: count_of(pattern) for pattern in PATTERNS
}

READING = (
    "Each cell: the mean of (healing with all means) - (without this one), seed by seed [95 % "
    "bootstrap interval]. RMSE and seconds only of seeds in which both have a valid answer."
)


@dataclass(frozen=True)
class Habits:
    """A change of the agents' habits.

    Attributes:
        name: The habit that was changed: `compliance`, or `bad habits` all together.
        value: The new compliance, or the factor of the bad habits.
    """

    name: str
    value: float

    def profile(self, usual: Profile) -> Profile:
        """The profile of agents with these habits."""
        if self.name == "compliance":
            return replace(usual, compliance=self.value)
        return replace(usual, **{name: min(1.0, getattr(usual, name) * self.value) for name in BAD})


def all_habits(usual: Profile) -> list[Habits]:
    """The usual habits first, then each change of them."""
    compliances = dict.fromkeys((usual.compliance, *COMPLIANCES))
    factors = [Habits("bad habits", factor) for factor in FACTORS if factor != 1.0]
    return [*(Habits("compliance", value) for value in compliances), *factors]


class Ablation:
    """The runs of an ablation, and their results."""

    def __init__(self, grid: Grid) -> None:
        """Take the hardest size and the largest team of a grid."""
        self.grid = grid
        self.tasks = [one.task for one in grid.tasks]
        self.habits = all_habits(grid.profile)
        self.means = [WHOLE, *(WHOLE - {one} for one in MEANS), frozenset[Means]()]
        self._cells = dict(self._all_cells())
        self._rows: dict[str, Row] = {}

    def _all_cells(self) -> Iterator[tuple[tuple[str, Habits, frozenset[Means], int], Cell]]:
        hardest = [replace(one, sizes=one.sizes[-1:]) for one in self.grid.tasks]
        most = replace(self.grid, tasks=tuple(hardest), agents=(max(self.grid.agents),))
        for cell in replace(most, methods=("dig",)).cells():
            for habits in self.habits:
                for means in self.means:
                    run = replace(
                        cell.run,
                        method="dig" if means else "mas",
                        means=tuple(one for one in MEANS if one in means),
                        profile=habits.profile(self.grid.profile),
                    )
                    key = (run.task, habits, means, run.seed)
                    yield key, replace(cell, run=run)

    def carry_out(self, out: Path, jobs: int, progress: Progress) -> Outcome:
        """Carry out the runs that are not there yet."""
        cells = list(self._cells.values())
        outcome = carry_out_cells(cells, out, ExecutionOptions(), jobs=jobs, progress=progress)
        self._rows = {row.run: row for row in outcome.rows}
        return outcome

    def gain(self, task: str, habits: Habits, without: frozenset[Means], name: str) -> Mean | None:
        """The mean difference of a measure between all means of healing and some of them.

        Args:
            task: The task's name.
            habits: The agents' habits.
            without: The means of the runs that those with all means are compared with.
            name: The measure's name, which seeds the interval.
        """
        pairs, measure = [], COMPARED[name]
        for seed in self.grid.seeds:
            rows = [self._row(task, habits, means, seed) for means in (WHOLE, without)]
            if rows[0] and rows[1]:
                pairs.append((measure(rows[0]), measure(rows[1])))
        label = f"{task} {habits} {sorted(without)} {name}"
        return mean([a - b for a, b in pairs if a is not None and b is not None], label)

    @property
    def shown(self) -> list[str]:
        """The measures that are compared: of the patterns only those that a table shows."""
        return [*SHOWN, *shown_patterns([*self._rows.values()])]

    def _row(self, task: str, habits: Habits, means: frozenset[Means], seed: int) -> Row | None:
        return self._rows.get(self._cells[task, habits, means, seed].run.name)


def ablate(
    grid: Grid, out: Path, *, jobs: int, progress: Progress = lambda done, total: None
) -> tuple[Outcome, list[Table]]:
    """Run a grid without each means of healing in turn, and compare with all of them.

    Args:
        grid: The hardest size of its tasks and its largest team are looked at.
        out: Where results go, and where they are taken up.
        jobs: How many processes work at once.
        progress: Takes how many runs are done, and how many there are.

    Raises:
        SettingsError: As for `carry_out`.
        KeyboardInterrupt: It was interrupted; what is done is kept.
    """
    ablation = Ablation(grid)
    outcome = ablation.carry_out(out, jobs, progress)
    settings = {**grid.settings(), "judge": "none", "team": f"{max(grid.agents)} agents"}
    notes = [READING, *settings_notes(settings, outcome.rows)]
    return outcome, [_contributions(ablation, notes), _ranges(ablation, notes)]


def _taken(ablation: Ablation) -> Iterator[tuple[str, frozenset[Means], str]]:
    """Each task with each choice of means that is compared with all of them."""
    for task in ablation.tasks:
        for means in ablation.means[1:]:
            gone = WHOLE - means
            yield task, means, NAMES[min(gone)] if len(gone) == 1 else "healing as a whole"


def _contributions(ablation: Ablation, notes: Sequence[str]) -> Table:
    usual = ablation.habits[0]
    rows: list[list[TableCell]] = [
        [task, name, *(Value(ablation.gain(task, usual, means, one)) for one in ablation.shown)]
        for task, means, name in _taken(ablation)
    ]
    title = f"What each means of healing contributes ({SIMULATED_AGENTS})"
    return Table("contributions", title, ["task", "means", *ablation.shown], rows, notes)


def _ranges(ablation: Ablation, notes: Sequence[str]) -> Table:
    """For each sign at the usual habits: at which others it is the same."""
    rows: list[list[TableCell]] = []
    for task, means, name in _taken(ablation):
        for one in ablation.shown:
            signs = {h: _sign(ablation.gain(task, h, means, one)) for h in ablation.habits}
            sign = signs[ablation.habits[0]]
            if sign:
                same = [habits for habits in ablation.habits if signs[habits] == sign]
                shown = [_listed(same, kind) for kind in ("compliance", "bad habits")]
                rows.append([task, name, one, "more" if sign > 0 else "less", *shown])
    title = f"Over which habits each of these signs holds ({SIMULATED_AGENTS})"
    columns = ["task", "means", "measure", "with it", "compliance", "bad habits, times"]
    usual = ablation.grid.profile.compliance
    read = (
        f"Only differences whose interval leaves zero out at the usual habits (compliance {usual:g}"
        f"); looked at were compliance {_numbers(COMPLIANCES)} and bad habits times "
        f"{_numbers(FACTORS)}, one changed at a time."
    )
    return Table("ranges", title, columns, rows, [read, *notes])


def _sign(gain: Mean | None) -> int:
    return gain.sign if gain else 0


def _listed(same: Sequence[Habits], kind: str) -> str:
    """The values of one habit, the usual one among them."""
    usual = [1.0] if kind == "bad habits" else []
    return _numbers(sorted([*usual, *(habits.value for habits in same if habits.name == kind)]))


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
