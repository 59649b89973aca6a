"""`digmon run --resume RUN`: goes on with a run whose process ended."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dig.errors import SettingsError

from .app import warn
from .options import ClockOptions, further
from .run_options import ModelOptions, RunOptions

if TYPE_CHECKING:
    from dig.runtime.alerts import Alerts
    from dig.show.terminal.live import LiveView
    from dig.tasks.run.arrange import Disturbance
    from dig.tasks.run.execute import Execution
    from dig.tasks.run.methods import Arrangement
    from dig.tasks.run.run_fork import Crew
    from dig.traces.journal.journal import Keeping

_ALLOWED = ("team", "detector", "config")
"""The options of a new run that one which goes on takes, too: its files name code, and no code is
imported because a file names it."""


def resume(
    path: Path,
    task: str | None,
    chosen: RunOptions,
    models: ModelOptions,
    *,
    keeping: "Keeping",
    alerts: "Alerts | None",
    is_shown: bool,
    on_directory: Callable[[Path], None],
) -> "Execution":
    """Go on with a run.

    Args:
        path: The run directory.
        task: The task, if the user names it.
        chosen: The options of the run; only those of the team, the detectors and the settings file.
        models: The language model, if one decided.
        keeping: The settings of the journal.
        alerts: The destinations of alarms.
        is_shown: Whether there may be a live view.
        on_directory: Takes the run's directory before the run goes on.

    Raises:
        DigError: The run cannot go on; the message says why.
    """
    from dig.tasks.run.arrange import Disturbance
    from dig.tasks.run.resumed_run import resume_run
    from dig.traces.journal.journal import read_side
    from dig.traces.journal.reader import read_lines, trace_path

    next(read_lines(path))  # which says what is no run
    folder = trace_path(path).parent
    side, detectors = read_side(folder), further(chosen.detector)
    with _live_view(side) if is_shown and side.get("clock") != "virtual" else nullcontext() as live:
        return resume_run(
            folder, _crew(side, task, chosen.team, models, detectors),
            disturb=disturbance(folder, None) or Disturbance, keeping=keeping,
            on_directory=on_directory, follow=live or (lambda record: None),
            tell=live.tell if live else warn,
            alarms=[] if alerts is None else [alerts.sink()],
        )  # fmt: skip


def check_options(path: Path, chosen: RunOptions, clock: ClockOptions, **others: object) -> None:
    """Refuse options of a new run.

    Args:
        path: The run that goes on.
        chosen: The options of the run.
        clock: The options of its clock.
        **others: Further options, by name.

    Raises:
        SettingsError: One of them is given.
    """
    given = [name for name, value in others.items() if value]
    for group in (chosen, clock):
        given += [
            option.name
            for option in fields(group)
            if getattr(group, option.name) != option.default and option.name not in _ALLOWED
        ]
    if given:
        option = {"given": "set"}.get(given[0], given[0]).replace("_", "-")
        raise SettingsError(
            f"--{option} is for a new run, and {path} goes on as it was made: leave it out"
        )


def disturbance(
    parent: Path, kinds: Sequence[str] | None
) -> "Callable[[Arrangement], Disturbance] | None":
    """Return a function to inject the faults of a run again; ``None``: the run had no faults.

    Args:
        parent: The run.
        kinds: The user's own kinds of faults that it may have, as `module:object`.
    """
    from dig.faults.inject.faulty_team import disturbance_of
    from dig.traces.journal.journal import SIDE, read_side
    from dig.traces.journal.reader import trace_path

    folder = trace_path(parent).parent
    return disturbance_of(read_side(folder), kinds or ()) if (folder / SIDE).exists() else None


def _crew(
    side: Mapping[str, Any],
    task: str | None,
    team: str | None,
    models: ModelOptions,
    detectors: Sequence[str],
) -> "Crew":
    """The team that goes on; simulated agents, if no other is named."""
    from dig.tasks.run.run_fork import model_crew, named_crew, simulated_crew, task_crew
    from dig.tasks.run.team_run import MODEL

    if values := models.model_values():
        from dig.runtime.llm import ModelSettings

        return model_crew(side, ModelSettings(values.pop("model"), **values), task, detectors)
    if str(side.get("agents_are")).startswith(f"{MODEL} ") and team is None:
        raise SettingsError(
            "a language model decided in this run, and no model is asked because a file names it: "
            "name the same with --model and --base-url"
        )
    if task is not None:
        return task_crew(side, task, team, detectors)
    return named_crew(team) if team else simulated_crew(side, detectors)


def _live_view(side: Mapping[str, Any]) -> "LiveView":
    from rich.console import Console

    from dig.show.page.about import clock_speed
    from dig.show.terminal.live import LiveView

    return LiveView(Console(stderr=True), title=str(side.get("run")), speed=clock_speed(side))
