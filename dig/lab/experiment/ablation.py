"""The contribution of each part of healing: of the means, the words, and each healed pattern.

Each arm heals with something taken away, on the same seeds. Blank notes carry out all
interventions without words or data, so they tell what waking, redirects and returned answers do
by themselves; what healing does beyond that, its words do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dig.detectors.interventions import MEANS, Means
from dig.detectors.policy import HEAL_ALL, Policy, Rule
from dig.tasks.run.team_run import LADDER
from dig.tasks.simulated.profile import Profile

from . import effects
from .experiment_report import HEADLINE, NO_BETTER, NOTHING, RELATIVE, Words
from .grid import Cell, Grid
from .markdown_table import Table, settings_notes
from .paper_figures import PAPER_PATTERNS
from .results import Row
from .row_measures import BASELINE, CALLS, COMPLETE, OURS, RIVALS, RMSE, SECONDS, VALID
from .run import ExecutionOptions, Outcome, Progress, carry_out_cells
from .samples import Pool, Samples

COMPLIANCES = (0.0, 0.3, 0.6, 0.9, 1.0)
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)

BAD = (
    "wait", "pass_on", "unwanted", "discard", "discard_double", "broadcast", "chat", "duplicate",
    "misaddress", "merge", "hand_over", "count_twice", "mix", "submit_early", "announce", "fail",
)  # fmt: skip
"""The bad habits that are multiplied."""

NAMES: Mapping[Means, str] = {
    "bounce": "returning early answers",
    "redirect": "sending lost work elsewhere",
    "create": "new events",
    "note": "notes",
}

BLANK, WORDS_ALONE = "dig, blank notes", "dig, notes alone"
WORDS = "Where blank notes do as well as words"
COMPARED = (VALID, COMPLETE, RMSE, SECONDS, CALLS)


@dataclass(frozen=True)
class Arm:
    """A way of healing.

    Attributes:
        name: Its name in tables.
        means: The means that healing may use.
        policy: The policy about findings to heal.
    """

    name: str
    method: str = OURS
    means: tuple[Means, ...] = MEANS
    policy: Policy = field(default=HEAL_ALL)


def _all_but(means: Means) -> tuple[Means, ...]:
    return tuple(kind for kind in MEANS if kind != means)


def _only(pattern: str) -> Policy:
    # The rule that names the pattern goes before the general one.
    rules = (Rule(action="heal", pattern=pattern), Rule(action="observe"))
    return Policy(rules=rules, heal="all")


SWEPT = (
    Arm(BASELINE, BASELINE),
    Arm(OURS),
    Arm(BLANK, means=_all_but("note")),
    Arm(WORDS_ALONE, means=("note",)),
)
"""The arms that are run with other habits, too."""

ARMS = (
    *SWEPT,
    *(
        Arm(f"dig without {NAMES[means]}", means=_all_but(means))
        for means in MEANS
        if means != "note"
    ),
    *(Arm(f"{pattern} alone", policy=_only(pattern)) for pattern in PAPER_PATTERNS),
    *(
        Arm(f"{pattern} alone, blank notes", means=_all_but("note"), policy=_only(pattern))
        for pattern in PAPER_PATTERNS
    ),
    *(Arm(rival, rival) for rival in RIVALS),
    Arm(LADDER, LADDER),
)

CONTRIBUTIONS: tuple[effects.Pair, ...] = (
    *effects.pairs([arm.name for arm in ARMS if arm.name in (BASELINE, OURS, *RIVALS)]),
    (BLANK, BASELINE),
    (WORDS_ALONE, BASELINE),
    (OURS, BLANK),
    (LADDER, OURS),
    *((OURS, f"dig without {NAMES[means]}") for means in MEANS if means != "note"),
)
PATTERNS: tuple[effects.Pair, ...] = tuple(
    pair
    for pattern in PAPER_PATTERNS
    for blank in [f"{pattern} alone, blank notes"]
    for pair in ((f"{pattern} alone", BASELINE), (blank, BASELINE), (f"{pattern} alone", blank))
)
BLANKS = ((OURS, BLANK), *PATTERNS[2::3])
"""Pairs whose difference is what words contribute."""

SWEEP: tuple[effects.Pair, ...] = (
    (OURS, BASELINE),
    (BLANK, BASELINE),
    (WORDS_ALONE, BASELINE),
    (OURS, BLANK),
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

    def __str__(self) -> str:
        return f"{self.name}{' x' if self.name == 'bad habits' else ''} {self.value:g}"

    def profile(self, usual: Profile) -> Profile:
        """Change the profile of agents to these habits."""
        if self.name == "compliance":
            return replace(usual, compliance=self.value)
        # Habits are probabilities, which no factor may carry beyond 1.
        return replace(usual, **{name: min(1.0, getattr(usual, name) * self.value) for name in BAD})


def all_habits(usual: Profile) -> list[Habits]:
    """The usual habits first, then each change."""
    # The usual one may be among them, and must be run once.
    compliances = dict.fromkeys((usual.compliance, *COMPLIANCES))
    factors = [Habits("bad habits", factor) for factor in FACTORS if factor != 1.0]
    return [*(Habits("compliance", value) for value in compliances), *factors]


class Ablation:
    """The runs of an ablation, and the results."""

    def __init__(self, grid: Grid) -> None:
        """Take the hardest size and the largest team of a grid."""
        self.grid = grid
        self.habits = all_habits(grid.profile)
        self._cells = [*self._all_cells()]
        self._rows: dict[str, Row] = {}

    def _all_cells(self) -> Iterator[tuple[Habits, Arm, Cell]]:
        # Where failures are most frequent, fewest runs show what a part contributes.
        hardest = [replace(task, sizes=task.sizes[-1:]) for task in self.grid.tasks]
        most = replace(self.grid, tasks=tuple(hardest), agents=(max(self.grid.agents),))
        levels = {task.task: task.level(len(task.sizes) - 1) for task in self.grid.tasks}
        for cell in replace(most, methods=(OURS,)).cells():
            for habits in self.habits:
                profile = habits.profile(self.grid.profile)
                # All arms with all habits would be too many runs.
                for arm in ARMS if habits == self.habits[0] else SWEPT:
                    run = replace(
                        cell.run, method=arm.method, means=arm.means, policy=arm.policy,
                        profile=profile,
                    )  # fmt: skip
                    yield habits, arm, Cell(level=levels[run.task], run=run)

    def carry_out(self, out: Path, jobs: int, progress: Progress) -> Outcome:
        """Carry out the missing runs."""
        cells = [cell for _, _, cell in self._cells]
        outcome = carry_out_cells(cells, out, ExecutionOptions(), jobs=jobs, progress=progress)
        self._rows = {row.run: row for row in outcome.rows}
        return outcome

    def usual(self) -> Samples:
        """The runs with the usual habits; the arm takes the place of the method."""
        return Samples([
            replace(row, method=arm.name)
            for habits, arm, row in self._play()
            if habits == self.habits[0]
        ])  # fmt: skip

    def swept(self) -> Samples:
        """The runs with all habits; the habits take the place of the level."""
        return Samples([
            replace(row, method=arm.name, level=f"{habits}")
            for habits, arm, row in self._play()
            if arm in SWEPT
        ])  # fmt: skip

    def _play(self) -> Iterator[tuple[Habits, Arm, Row]]:
        for habits, arm, cell in self._cells:
            if row := self._rows.get(cell.run.name):
                yield habits, arm, row


def ablate(
    grid: Grid, out: Path, *, jobs: int, progress: Progress = lambda finished, total: None
) -> tuple[Outcome, list[Table], Words]:
    """Run a grid with parts of healing taken away, and compare with the whole and with nothing.

    Args:
        grid: The hardest size of its tasks and its largest team are looked at.
        out: The directory of the results, where they are taken up again.
        jobs: The number of processes that work at once.
        progress: Takes how many runs are done, and how many there are.

    Returns:
        The results, their tables, and what these say in words.

    Raises:
        SettingsError: As for `carry_out`.
        KeyboardInterrupt: The user interrupted the experiment; finished runs are kept.
    """
    ablation = Ablation(grid)
    outcome = ablation.carry_out(out, jobs, progress)
    settings = {**grid.settings(), "team": f"{max(grid.agents)} agents"}
    notes = [*effects.quick_note(len(grid.seeds)), *settings_notes(settings, outcome.rows)]
    usual = ablation.usual()
    together = _compare(usual, usual.pools(), CONTRIBUTIONS)
    by_pattern = _compare(usual, usual.pools(), PATTERNS)
    alone = [Pool((setting,)) for setting in usual.settings]
    by_task = effects.compare(usual, alone, (*CONTRIBUTIONS, *PATTERNS), COMPARED)

    def table(name: str, heading: str, compared: Sequence[effects.Contrast], *more: str) -> Table:
        heading += grid.agents_note
        return effects.effects_table(name, heading, compared, [*more, *notes], names=str)

    tables = [
        table("contributions", "What each part of healing contributes", together, RELATIVE),
        table("patterns", "What healing one pattern alone contributes", by_pattern, RELATIVE),
        _sweep(ablation, notes),
        table("by-task", "The same for each task", by_task),
    ]
    rivals = [(OURS, rival) for rival in RIVALS]
    words = {
        HEADLINE: effects.headline(usual, (BASELINE, OURS)),
        NO_BETTER: effects.shortcomings(together, rivals) or [NOTHING],
        WORDS: effects.shortcomings([*together, *by_pattern], BLANKS),
    }
    return outcome, tables, {heading: lines for heading, lines in words.items() if lines}


def _compare(
    samples: Samples, pools: Sequence[Pool], pairs: Sequence[effects.Pair]
) -> list[effects.Contrast]:
    """Compare arms over all tasks together."""
    relative = samples.relative_rmse()
    measures = [relative if measure is RMSE else measure for measure in COMPARED]
    return effects.compare(samples, pools, pairs, measures)


def _sweep(ablation: Ablation, notes: Sequence[str]) -> Table:
    """The main contributions with other habits, each change alone."""
    samples = ablation.swept()
    pools = [
        Pool(tuple(setting for setting in samples.settings if setting.level == level))
        for level in map(str, ablation.habits)
        if level in samples.levels
    ]
    compared = _compare(samples, pools, SWEEP)
    heading = f"The same with other habits{ablation.grid.agents_note}"
    usual = (
        f"The usual compliance is {ablation.grid.profile.compliance:g}, that of bad habits x 1; "
        "one is changed at a time."
    )
    return effects.effects_table("habits", heading, compared, [usual, RELATIVE, *notes], names=str)
