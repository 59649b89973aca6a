"""`digmon run --resume RUN`: goes on with a run after the end of the process."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
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
    from dig.tasks.run.crew import Crew
    from dig.tasks.run.execute import Execution
    from dig.tasks.run.methods import Arrangement
    from dig.traces.journal.journal import Keeping


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


def check_options(path: Path, chosen: RunOptions, clock: ClockOptions, *extras: object) -> None:
    """Refuse options of a new run.

    Args:
        path: The run that goes on.
        chosen: The options of the run. Its files name code, and no code is imported because a file
            names it: so the user names team and detectors.
        clock: The options of its clock.
        *extras: Further options.

    Raises:
        SettingsError: One of them is given.
    """
    named = RunOptions(team=chosen.team, detector=chosen.detector, config=chosen.config)
    if chosen != named or clock != ClockOptions() or any(extras):
        raise SettingsError(
            f"{path} goes on as it was made: of the options of a new run leave all out but --team, "
            "--detector, --config, those of the model, and where and how it is told and kept"
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
    """Make the team of the run: named by the user, or simulated agents."""
    from dig.tasks.run.crew import model_crew, named_crew, simulated_crew, task_crew
    from dig.tasks.run.team_run import SIMULATED

    if values := models.model_values():
        from dig.runtime.llm import ModelSettings

        return model_crew(side, ModelSettings(values.pop("model"), **values), task, detectors)
    if task is not None:
        return task_crew(side, task, team, detectors)
    if team is not None:
        return named_crew(team)
    if (agents_are := side.get("agents_are")) == SIMULATED:
        return simulated_crew(side, detectors)
    if agents_are is None:
        raise SettingsError("no `digmon run` made this run, so no team of it can go on here")
    raise SettingsError(
        f"the run's team was {agents_are!r:.60}; no code is imported and no model asked because a "
        "file names it, so name task and team (digmon run TASK --team module:team --resume RUN), "
        "or the same model (--model, --base-url)"
    )


def _live_view(side: Mapping[str, Any]) -> "LiveView":
    from rich.console import Console

    from dig.show.page.about import clock_speed
    from dig.show.terminal.live import LiveView

    return LiveView(Console(stderr=True), title=str(side.get("run")), speed=clock_speed(side))
