"""The team that goes on with a recorded run, with the setup and the scorer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dig._util.text import one_line
from dig.errors import SettingsError
from dig.monitor.messages import Output
from dig.runtime.agents import Tool
from dig.runtime.setup import Setup
from dig.tasks.catalogue import TASKS
from dig.tasks.task import Score
from dig.tasks.user_objects import call, load

from .arrange import arrange, make_problems, make_task
from .team_run import MODEL, OWN, SIMULATED, TeamRun
from .teams import Team

if TYPE_CHECKING:
    from dig.runtime.llm import ModelSettings  # slow to import


@dataclass(frozen=True)
class Crew:
    """The team of a run that goes on, with a setup, a scorer, and the problems of its task."""

    team: Team
    setup: Setup | None = None
    score: Callable[[object], Score | None] = lambda answer: None
    agents_are: str = OWN
    problems: Callable[[], Sequence[tuple[float, Output]]] = tuple
    mistakes: Callable[..., Any] | None = None


def task_tools(side: Mapping[str, Any]) -> Mapping[str, Tool]:
    """The tools of a task of this package; a user's team brings its tools otherwise."""
    if side.get("task") not in [*TASKS]:
        return {}
    try:
        return make_task(TeamRun.read(side)).tools()
    except SettingsError:  # the data are on another machine, for instance
        return {}


def simulated_crew(
    side: Mapping[str, Any], detectors: Collection[str] = (), command: str = "call it with"
) -> Crew:
    """The simulated agents of a run, from the side file.

    Args:
        side: The side file.
        detectors: The user's detectors, as `module:object`. A detector that only the file names is
            not imported.
        command: The beginning of the command that an error shows.

    Raises:
        SettingsError: The run was not one of simulated agents on a task of this package.
    """
    try:
        spec = TeamRun.read_simulated(side, detectors)
    except SettingsError as error:
        team, reason = one_line(side.get("agents_are"), 80), str(error)
        if team.partition(" ")[0] == MODEL:
            reason = f"a language model decided in the run ({team!r})"
        task = one_line(side.get("task") or "TASK", 80)
        raise SettingsError(
            f"{reason}; name who goes on: {command} --task {task} --team MODULE:TEAM"
        ) from None
    return task_crew(side, spec.task, detectors=detectors)


def task_crew(
    side: Mapping[str, Any], task: str, team: str | None = None, detectors: Collection[str] = ()
) -> Crew:
    """The team, tools and scorer of a run, with the task named again by the caller.

    Args:
        side: The side file.
        task: The run's task; a module that only the file names is not imported.
        team: The team, as `module:object`; ``None``: the one that the task brings, or simulated
            agents.
        detectors: The user's detectors, as `module:object`.

    Raises:
        SettingsError: The run had another task, or a team that is not named here.
    """
    if side.get("task") != task:
        raise SettingsError(f"the run's task was {side.get('task')!r:.100}, not {task!r}")
    spec = TeamRun.read(side).with_named(detectors)
    if team is None and spec.agents_are not in (OWN, SIMULATED):
        raise SettingsError(f"the run's team was {spec.agents_are!r:.100}; name it with --team")
    spec = replace(spec, agents_are=team or spec.agents_are)
    return _make_crew(spec)


def _make_crew(spec: TeamRun) -> Crew:
    task = make_task(spec)
    arrangement = arrange(spec, task)
    problems = partial(make_problems, spec, task)
    mistakes = getattr(task, "mistakes", None)
    return Crew(
        arrangement.team, arrangement.setup, task.score, spec.agents_are, problems, mistakes
    )


def model_crew(
    side: Mapping[str, Any],
    settings: ModelSettings,
    task: str | None = None,
    detectors: Collection[str] = (),
) -> Crew:
    """The team of a run with a language model, with the model named again by the caller.

    Args:
        side: The side file. It decides neither what model is asked nor where, nor for how much.
        settings: The model.
        task: The run's task, if it is none of this package.
        detectors: The user's detectors, as `module:object`.

    Raises:
        SettingsError: Another model decided, or it was asked elsewhere, or there was none.
    """
    from dig.runtime.llm.settings import OPENAI

    options = side.get("options")
    options = dict(options) if isinstance(options, Mapping) else {}
    had = f"{side.get('agents_are')} at {options.get('base_url', OPENAI)}"
    named = f"{MODEL} {settings.model} at {settings.base_url}"
    if had != named:
        raise SettingsError(
            f"the run's team was {one_line(had, 120)!r}, not {named!r}: name the same model with "
            "--model and --base-url, or the team that goes on with --team"
        )
    if task is None and side.get("task") not in [*TASKS]:
        raise SettingsError(f"name the run's task with --task: {one_line(side.get('task'), 80)}")
    brief = {key: options[key] for key in ("roles", "instructions") if key in options}
    # The budget, the server and the prices are the caller's; the file decides none of them.
    own = {key: value for key, value in asdict(settings).items() if key != "model"}
    spec = TeamRun.read(side).with_named(detectors, settings.model)
    return _make_crew(replace(spec, options={**own, **brief}))


def named_crew(name: str) -> Crew:
    """Load a team by a name such as `my_module:team`.

    The object is a mapping from names to agents; a tuple of such a mapping and a `Setup`; or a
    function that returns a mapping or a tuple.

    Raises:
        SettingsError: There is no such object.
    """
    team = load(name, "team")
    if callable(team) and not isinstance(team, Mapping):
        team = call(team, name)
    team, setup = team if isinstance(team, tuple) and len(team) == 2 else (team, None)
    if not isinstance(team, Mapping) or not isinstance(setup, Setup | None):
        raise SettingsError(f"{name!r} is no mapping from names to agents (and no Setup with it)")
    return Crew(team, setup, agents_are=name)
