"""Options of the commands that start runs."""

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dig.errors import SettingsError

from .options import Config, Further, Given, Habit, Judge, UsualFile, further, policy

if TYPE_CHECKING:
    from dig.tasks.run.team_run import TeamRun

Method = StrEnum("Method", ["mas", "watchdog", "retry", "judge", "dig", "dig+"])
"""The methods against failures."""


Recipients = StrEnum("Recipients", ["one", "all"])
"""The agents that get the problem."""


@dataclass(frozen=True)
class RunOptions:
    """A team, the data of its problem, and what is done about failures."""

    team: Annotated[
        str | None, typer.Option(help="The team: `module:team`; else simulated agents.")
    ] = None
    agents: Annotated[int, typer.Option(min=1, help="How many agents there are.")] = 6
    size: Annotated[
        int | None,
        typer.Option(min=1, max=10_000_000, help="How many numbers, or posts, there are."),
    ] = None
    data: Annotated[
        Path | None, typer.Option(help="The folder of the newsgroups, else DIG_NEWSGROUPS.")
    ] = None
    to: Annotated[Recipients, typer.Option(help="The problem's recipients.")] = Recipients.one
    seed: Annotated[int, typer.Option(help="The seed of all random numbers.")] = 1
    method: Annotated[
        Method,
        typer.Option(
            help="mas: only find failures. watchdog: after 10 s of silence, tell all agents to "
            "continue. retry: give an idle one the problem again. judge: a judge reads along. "
            "dig: heal what is found, as in the paper. dig+: heal step by step, until it helps."
        ),
    ] = Method["dig+"]
    judge: Judge = None
    habit: Habit = None
    limit: Annotated[float, typer.Option(help="Seconds after which the run is ended.")] = 120.0
    given: Given = None
    config: Config = None
    detector: Further = None
    usual: UsualFile = None

    def of_task(self, task: str, asked: dict[str, Any]) -> "TeamRun":
        """The run of a task.

        Args:
            task: The task's name.
            asked: The return value of `ModelOptions.of_run`.

        Raises:
            SettingsError: An option is wrong; the message names it.
        """
        from dig.detectors.settings_file import find_settings
        from dig.detectors.team_usual import TeamUsual
        from dig.detectors.thresholds import Thresholds
        from dig.tasks.run.arrange import make_run, make_task, members
        from dig.tasks.run.judging import Judging
        from dig.tasks.simulated.profile import Profile

        if asked and self.team is not None:
            raise SettingsError("--team and --model both say who works on it; leave one out")
        config, detectors = find_settings(self.config), further(self.detector)
        run = make_run(
            task,
            Thresholds.load(self.given or (), config),
            policy=policy(config, detectors),
            size=self.size,
            data=str(self.data) if self.data else None,
            agents=self.agents,
            seed=self.seed,
            method=self.method.value,
            limit_s=self.limit,
            detectors=detectors,
            to=self.to.value,
            judging=Judging.of(self.judge or ()),
            profile=Profile.of(self.habit or ()),
            **(asked or {"agents_are": self.team}),
        )
        if self.usual is None:
            return run
        team = members(run, make_task(run))
        return replace(run, usual=TeamUsual.read(self.usual).of_team(team, run.limits))
