"""Forks a run: a directory of its own, the recorded beginning, one change, and a new end."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dig._util.text import one_line
from dig.errors import ReplayError, SettingsError, TraceError
from dig.monitor.messages import Output
from dig.monitor.sinks import FanOut
from dig.runtime.agents import Tool
from dig.runtime.driver.recorded_requests import UNNAMED
from dig.runtime.group_commit import Durability
from dig.runtime.setup import Setup
from dig.tasks.catalogue import TASKS
from dig.tasks.task import Score
from dig.tasks.user_objects import call, load
from dig.traces.journal.journal import SIDE, Keeping, RunDirectory, read_side
from dig.traces.journal.reader import trace_path
from dig.traces.replay.changes import EditRecord, RunChange
from dig.traces.replay.rerun import setup_of
from dig.traces.replay.rewind import earliest_of, phases_with, rewind
from dig.traces.replay.tape import read_requests

from .arrange import Disturbance, arrange, make_problems, make_task
from .execute import Execution, remove_on_error, resume
from .measures import Counts
from .methods import Arrangement
from .team_run import MODEL, OWN, SIMULATED, TeamRun
from .teams import Team, in_virtual_time, models

if TYPE_CHECKING:
    from dig.runtime.llm import ModelSettings  # slow to import

# The side file of a fork has its own values of these; all others are its parent's.
_NOT_INHERITED = ("forked_from", "execution", "began", "durability", "dig", "python", "platform")


@dataclass(frozen=True)
class Crew:
    """The team of a run that goes on, with a setup, a scorer, and the problems of its task."""

    team: Team
    setup: Setup | None = None
    score: Callable[[object], Score | None] = lambda answer: None
    agents_are: str = OWN
    problems: Callable[[], Sequence[tuple[float, Output]]] = tuple


def fork(
    parent: Path,
    at: int,
    runs: Path,
    *,
    edit: Mapping[str, Any] | None = None,
    changes: Sequence[RunChange] = (),
    repeat: int = 0,
    crew: Crew | None = None,
    detectors: Collection[str] = (),
    disturb: Callable[[Arrangement], Disturbance] | None = None,
    durability: Durability = "process",
    real_time: bool = False,
) -> Execution:
    """Let a recorded run go on from record `at` in a directory of its own.

    The new trace is that of the parent, byte for byte, before `at`. The parent is only read.

    Args:
        parent: The run directory, or the trace in it.
        at: The first record that may differ from the recorded one.
        runs: The folder in which the new directory is made.
        edit: The new values in record `at`; see `dig.runtime.driver.edits.RecordEdit`.
        changes: Further changes; see `dig.traces.replay.changes`.
        repeat: The random numbers that are drawn from `at` on: 0 those of the parent, any other
            number those of that repeat. In virtual time, the same repeat gives the same bytes.
        crew: The team that goes on; ``None``: simulated agents, if the run had them. A plain trace
            needs one with a setup. It goes on in virtual time if all its agents have a `plan`, or
            if the parent did and no agent asks a language model; else in real time.
        detectors: The user's detectors that the run had, as `module:object`.
        disturb: Makes the disturbance that the run had (`disturbance_of`); ``None``: it had none.
        durability: The records that are synced before they take effect.
        real_time: Whether agents without a `plan` go on in real time in any case.

    Raises:
        ReplayError: The run cannot be forked there, or not with these changes; or it had faults,
            and no `disturb` is given. Nothing is left.
        SettingsError: The run needs a team, or an agent cannot work in virtual time.
        JournalError: The new directory cannot be written.
    """
    start, path = time.monotonic(), trace_path(parent)
    header, side = _header(path, crew), _read_side(path, required=crew is None)
    if disturb is None and side.get("faults"):
        raise ReplayError(
            f"{path.parent} is a run with faults, and a fork without them would be another run; "
            "hand in `disturb=dig.faults.inject.faulty_team.disturbance_of(side)`"
        )
    crew = crew or simulated_crew(side, detectors, f"digmon fork {parent} --at {at}")
    changes = [*changes] if edit is None else [EditRecord(at, edit), *changes]
    setup = setup_of(read_requests(path), crew.setup)
    if crew.setup is None:
        setup = replace(setup, tools=task_tools(side))
    is_virtual = goes_on_virtually(crew.team, side, real_time)
    team = in_virtual_time(crew.team) if is_virtual else crew.team
    disturbance = (disturb or Disturbance)(Arrangement(setup, team))
    clock, counts = "virtual" if is_virtual else "real time x 1", Counts()
    about = {
        **{key: value for key, value in side.items() if key not in _NOT_INHERITED},
        "clock": clock,
        "agents_are": crew.agents_are,
        **disturbance.about(),
        "forked_from": _origin(path, side, at, changes, repeat),
    }
    directory = RunDirectory(runs, about, header=header, keeping=Keeping(durability=durability))
    with closing(directory.journal) as journal:
        sink = FanOut(journal, counts, disturbance.follow)
        # A prefix that cannot be driven, or Ctrl-C, leaves no directory; later Ctrl-C ends the run.
        with remove_on_error(directory.path, BaseException):
            checkpoint = rewind(path, at, changes=changes, repeat=repeat, setup=setup, sink=sink)
        with remove_on_error(directory.path, (ReplayError, TraceError, SettingsError)):
            result = resume(checkpoint, disturbance, journal, is_virtual=is_virtual)
    execution = Execution(
        result, counts.check_evidence(crew.score(result.answer)), directory.path, clock,
        time.monotonic() - start,
        directory.journal.unreplayable_from, crew.agents_are, side.get("data_are"), counts,
        disturbance.outcome(),
    )  # fmt: skip
    directory.write_result(execution.to_json())
    return execution


def _origin(
    path: Path, side: Mapping[str, Any], at: int, changes: Sequence[RunChange], repeat: int
) -> dict[str, Any]:
    """The parent and the changes of a fork, for the side file."""
    return {
        "run": str(path),
        "execution": side.get("execution"),
        "at": at,
        "changes": [change.to_json() for change in changes],
        "repeat": repeat,
        "phases": [asdict(phase) for phase in phases_with(side, at, changes, repeat)],
        "earliest": earliest_of(side, at, changes, repeat),
    }


def task_tools(side: Mapping[str, Any]) -> Mapping[str, Tool]:
    """The tools of a task of this package; a user's team brings its tools otherwise."""
    if side.get("task") not in [*TASKS]:
        return {}
    try:
        return make_task(TeamRun.read(side)).tools()
    except SettingsError:  # the data are on another machine, for instance
        return {}


def _read_side(path: Path, *, required: bool) -> dict[str, Any]:
    """The content of the side file of a run; empty without a file, unless a file is required."""
    if (path.parent / SIDE).exists():
        return read_side(path.parent)
    if required:
        raise SettingsError(f"beside {path} is no {SIDE}; say who goes on (--team)")
    return {}


def goes_on_virtually(team: Team, side: Mapping[str, Any], real_time: bool) -> bool:
    """Whether a fork goes on in virtual time."""
    if all(hasattr(agent, "plan") for agent in team.values()):
        return True
    return side.get("clock") == "virtual" and not models(team) and not real_time


def _header(parent: Path, crew: Crew | None) -> Mapping[str, Any]:
    """The header for the journal of a fork: from the parent, or from the crew's setup."""
    header = read_requests(parent, payloads=False).header
    if header is None:
        if crew is None or crew.setup is None:
            raise ReplayError(
                f"{parent} is a plain trace; only a journal can be forked without a team and its "
                "`Setup`, which can be handed in from Python"
            )
        return {**crew.setup.header(), UNNAMED: True}
    return {key: value for key, value in header.items() if key != "version"}


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
    return Crew(arrangement.team, arrangement.setup, task.score, spec.agents_are, problems)


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
