"""The options that say what is run: who works on what, what is done about failures, how fast."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dig.errors import SettingsError

from .options import Config, Further, Given, Judge, further

if TYPE_CHECKING:
    from dig.tasks.run.team_run import TeamRun


class Method(StrEnum):
    """What is done about failures."""

    mas = "mas"
    judge = "judge"
    dig = "dig"


class Recipients(StrEnum):
    """Who is given the problem."""

    one = "one"
    all = "all"


@dataclass(frozen=True)
class Choosing:
    """A team, the data of its problem, and what is done about failures."""

    team: Annotated[
        str | None, typer.Option(help="Who works on it: `module:team`; else simulated agents.")
    ] = None
    agents: Annotated[int, typer.Option(min=1, help="How many agents there are.")] = 6
    size: Annotated[
        int | None,
        typer.Option(min=1, max=10_000_000, help="How many numbers, or posts, there are."),
    ] = None
    data: Annotated[
        Path | None, typer.Option(help="The folder of the newsgroups, else DIG_NEWSGROUPS.")
    ] = None
    to: Annotated[Recipients, typer.Option(help="Who is given the problem.")] = Recipients.one
    seed: Annotated[int, typer.Option(help="Of everything that is random.")] = 1
    method: Annotated[
        Method,
        typer.Option(help="mas: only find failures. judge: a judge reads along. dig: heal them."),
    ] = Method.dig
    judge: Judge = None
    limit: Annotated[float, typer.Option(help="Seconds after which the run is ended.")] = 120.0
    given: Given = None
    config: Config = None
    detector: Further = None

    def of_task(self, task: str, asked: dict[str, Any]) -> TeamRun:
        """The run of a task.

        Args:
            task: Its name.
            asked: What a language model adds to it, if one decides for the agents.

        Raises:
            SettingsError: Something makes no sense; the message says what.
        """
        from dig.detectors.thresholds import Thresholds
        from dig.tasks.judge.judge import Judging
        from dig.tasks.run.arrange import make_run

        if asked and self.team is not None:
            raise SettingsError("--team and --model both say who works on it; leave one out")
        return make_run(
            task,
            Thresholds.load(self.given or (), self.config),
            size=self.size,
            data=str(self.data) if self.data else None,
            agents=self.agents,
            seed=self.seed,
            method=self.method.value,
            limit_s=self.limit,
            detectors=further(self.detector),
            to=self.to.value,
            judging=Judging.of(self.judge or ()),
            **(asked or {"agents_are": self.team}),
        )


@dataclass(frozen=True)
class Pacing:
    """How fast time goes."""

    speed: Annotated[
        float, typer.Option(help="How many times faster than real time its clock goes.")
    ] = 1.0
    virtual: Annotated[
        bool, typer.Option("--virtual", help="Run in virtual time: the same seed, the same bytes.")
    ] = False

    @property
    def clock(self) -> float | None:
        """How fast the clock goes; ``None``: in virtual time.

        Raises:
            SettingsError: No clock goes so fast.
        """
        if not 0 < self.speed <= 1000:
            raise SettingsError(f"a clock cannot go {self.speed:g} times as fast; try 1 to 1000")
        return None if self.virtual else self.speed
