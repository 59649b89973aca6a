"""An experiment: a grid of runs, for each task, size, team, method and seed.

All settings are fixed before anything is compared, and are the same for all methods. The paper's
grid (section 6) has two tasks, three sizes, teams of 1, 3 and 6, and the methods `mas`, `judge` and
`dig`; two rivals that know no graph, another draw, and healing with ladders stand beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.tasks.catalogue import kind
from dig.tasks.count_frequency import TASK as COUNT_FREQUENCY
from dig.tasks.run.arrange import make_run
from dig.tasks.run.judging import LIKE_TEAM, Judging
from dig.tasks.run.team_run import METHOD_NAMES, SIMULATED, Recipients, TeamRun
from dig.tasks.simulated.profile import Profile

from .markdown_table import SIMULATED_AGENTS

NEWSGROUPS = "newsgroups"
LEVELS = ("easy", "medium", "hard")

PAPER_SIZES: Mapping[str, tuple[int, ...]] = {
    COUNT_FREQUENCY: (1000, 5000, 10_000),
    NEWSGROUPS: (60, 100, 150),
}

SEEDS = 100
"""The number of seeds that each setting is run with, unless it is said."""

WINDOWS = Thresholds(
    mc_window_s=10.0, oe_window_s=5.0, dl_window_s=10.0, stall_min_s=20.0, activation_limit_s=30.0
)
"""Fit to runs of ten to fifty seconds, in which a turn takes two or three: a window is a few turns
in which nobody makes progress, and a part of a run in which healing can still be of use. A run that
ends after 120 s has no time to wait 300 s for an agent that has not had five turns."""


def on_windows(thresholds: Thresholds) -> Thresholds:
    """The thresholds of an experiment, replaced as far as thresholds are given."""
    return WINDOWS.model_copy(
        update={name: getattr(thresholds, name) for name in thresholds.model_fields_set}
    )


def paper_tasks(
    names: Sequence[str] = (), data: str | None = None, **settings: Any
) -> tuple[TaskGrid, ...]:
    """The paper's tasks with the paper's sizes.

    Args:
        names: The tasks that are wanted, others with their usual size; none: all of the paper's.
        data: The path of the data, for all but random numbers.
        settings: `agents_are` and `options` of each `TaskGrid`.

    Raises:
        SettingsError: There is no such task.
    """
    return tuple(
        TaskGrid(
            task=name,
            sizes=PAPER_SIZES.get(name) or (kind(name).size,),
            data=None if name == COUNT_FREQUENCY else data,
            **settings,
        )
        for name in names or PAPER_SIZES
    )


@dataclass(frozen=True, kw_only=True)
class TaskGrid:
    """A task of a grid.

    Attributes:
        task: Its name, as `digmon run` takes it.
        sizes: The sizes of the problems; the easiest first.
        data: The place of its data; ``None``: where the task looks for them.
        agents_are: The source of teams, such as `my_module:team`; see `dig.tasks.run.teams`.
            ``None``: simulated agents, or the task's own.
        options: Further arguments of that way, as plain JSON.
    """

    task: str
    sizes: tuple[int, ...]
    data: str | None = None
    agents_are: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def level(self, index: int) -> str:
        """The name of a size: `easy`, or `level 1`."""
        return LEVELS[index] if len(self.sizes) == len(LEVELS) else f"level {index + 1}"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A run of a grid.

    Attributes:
        level: The name of its size.
    """

    level: str
    run: TeamRun


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A grid of runs.

    Attributes:
        name: The name of the experiment.
        tasks: The tasks with their sizes.
        methods: The methods against failures.
        agents: The sizes of the teams.
        seeds: Of everything that is random; the same for all methods.
        thresholds: Of detection and healing.
        limit_s: Seconds after which a run is ended.
        to: The recipients of the problem: one agent, or all.
        judging: The settings of the method `judge`.
        profile: The habits of simulated agents.
        speed: The clock's speed in real time; ``None``: virtual time.
        max_tokens: Tokens that all of its runs together may take.
        max_usd: US dollars that all of its runs together may cost.
    """

    name: str = "paper"
    tasks: tuple[TaskGrid, ...]
    methods: tuple[str, ...] = METHOD_NAMES
    agents: tuple[int, ...] = (1, 3, 6)
    seeds: tuple[int, ...] = tuple(range(1, SEEDS + 1))
    thresholds: Thresholds = WINDOWS
    limit_s: float = 120.0
    to: Recipients = "one"
    judging: Judging = field(default_factory=Judging)
    profile: Profile = field(default_factory=Profile)
    speed: float | None = None
    max_tokens: int | None = None
    max_usd: float | None = None

    def __post_init__(self) -> None:
        """Refuse a grid without runs.

        Raises:
            SettingsError: The message says what is missing.
        """
        for part in ("tasks", "methods", "agents", "seeds"):
            values = getattr(self, part)
            if not values:
                raise SettingsError(f"the experiment has no {part}")
            # By text: tasks have options, which cannot be hashed.
            if len(set(map(repr, values))) < len(values):
                raise SettingsError(f"the experiment names one of its {part} twice")

    def cells(self) -> Iterator[Cell]:
        """All runs, each once; runs with the same problem follow each other.

        A team of the user's that has its own size is the same for all of `agents`.

        Raises:
            SettingsError: There is no such task, method or team.
        """
        named = set[str]()
        for task in self.tasks:
            # Size and seed make the problem. They vary slowest, so that runs can share it.
            cells = product(enumerate(task.sizes), self.seeds, self.agents, self.methods)
            for (index, size), seed, agents, method in cells:
                run = make_run(
                    task.task,
                    self.thresholds,
                    size=size,
                    data=task.data,
                    agents_are=task.agents_are,
                    options=task.options,
                    seed=seed,
                    agents=agents,
                    method=method,
                    limit_s=self.limit_s,
                    to=self.to,
                    judging=self.judging,
                    profile=self.profile,
                )
                # The name tells all settings, so a team with a size of its own comes once.
                if run.name not in named:
                    named.add(run.name)
                    yield Cell(level=task.level(index), run=run)

    @cached_property
    def is_simulated(self) -> bool:
        """Whether some of the agents are simulated."""
        return any(cell.run.agents_are == SIMULATED for cell in self.cells())

    @property
    def agents_note(self) -> str:
        """The addition to titles: ` (simulated agents)`, if some are simulated; else empty."""
        return f" ({SIMULATED_AGENTS})" if self.is_simulated else ""

    def settings(self) -> dict[str, str]:
        """The common settings of all methods, printed with every table."""
        judging, usual = self.judging, Profile()
        changed = {k: v for k, v in asdict(self.profile).items() if v != getattr(usual, k)}
        by = judging.by
        if by == LIKE_TEAM:
            by = SIMULATED if self.speed is None else "the agents' model"
        judge = f"{by}, reads every {judging.every} activations"
        if by == SIMULATED:
            judge += (
                f", recall {judging.recall:g}, precision {judging.precision:g}, "
                f"{judging.latency_s:g} s a reading"
            )
        return {
            "seeds": _list_seeds(self.seeds),
            "clock": "virtual" if self.speed is None else f"real time x {self.speed:g}",
            "agents": ", ".join(sorted({cell.run.agents_are for cell in self.cells()})),
            "first event to": "one agent" if self.to == "one" else "all agents",
            "limit_s": f"{self.limit_s:g}",
            **{name: f"{value}" for name, value in self.thresholds.model_dump().items()},
            "judge": judge if "judge" in self.methods else "none",
            "habits": ", ".join(f"{k} {v:g}" for k, v in changed.items()) or "the usual profile",
        }


def _list_seeds(seeds: tuple[int, ...]) -> str:
    if len(seeds) > 2 and seeds == tuple(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))
