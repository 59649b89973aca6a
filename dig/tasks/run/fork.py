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
from dig.monitor.sinks import FanOut
from dig.runtime.agents import Tool
from dig.runtime.checkpoint import Checkpoint
from dig.runtime.group_commit import Durability
from dig.runtime.host import Setup
from dig.runtime.result import RunResult
from dig.tasks.catalogue import TASKS
from dig.tasks.task import Score
from dig.tasks.user_objects import call, load
from dig.traces.journal.journal import SIDE, Keeping, RunDirectory, read_side
from dig.traces.journal.reader import trace_path
from dig.traces.replay.changes import EditRecord, RunChange
from dig.traces.replay.recorded_requests import UNNAMED, RecordedRequests
from dig.traces.replay.rerun import setup_of
from dig.traces.replay.rewind import earliest_of, phases_with, rewind

from .arrange import Disturbance, arrange, make_task
from .execute import Execution, nothing_left, resume
from .measures import Counts
from .methods import Arrangement
from .team_run import MODEL, OWN, SIMULATED, TeamRun
from .teams import Team, in_virtual_time, models

if TYPE_CHECKING:
    from dig.runtime.llm import ModelSettings  # slow to import

_OF_ITS_OWN = ("forked_from", "execution", "began", "durability", "dig", "python", "platform")


@dataclass(frozen=True)
class Crew:
    """The team that a fork goes on with, its setup, and the scorer of its answer."""

    team: Team
    setup: Setup | None = None
    score: Callable[[object], Score | None] = lambda answer: None
    agents_are: str = OWN


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
        edit: The new values in record `at`; see `dig.traces.replay.edits.RecordEdit`.
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
    began, path = time.monotonic(), trace_path(parent)
    header, side = _header(path, crew), _side(path, needed=crew is None)
    disturb = disturb or _undisturbed(side, path)
    crew = crew or simulated_crew(side, detectors)
    changes = [*changes] if edit is None else [EditRecord(at, edit), *changes]
    setup, is_virtual = _setup(path, side, crew), goes_on_virtually(crew.team, side, real_time)
    disturbance = disturb(_arranged(setup, crew.team, is_virtual))
    origin = _origin(path, side, at, changes, repeat)
    about = {**_about(side, crew, is_virtual), **disturbance.about(), "forked_from": origin}
    rewound = partial(rewind, path, at, changes=changes, repeat=repeat, setup=setup)
    keeping, counts = Keeping(durability=durability), Counts()
    directory = RunDirectory(runs, about, header=header, keeping=keeping)
    result = _go_on(rewound, disturbance, directory, counts, is_virtual)
    execution = Execution(
        result, crew.score(result.answer), directory.path, about["clock"],
        time.monotonic() - began, directory.journal.unreplayable_from, crew.agents_are,
        side.get("data_are"), counts, disturbance.outcome(),
    )  # fmt: skip
    directory.write_result(execution.to_json())
    return execution


def _go_on(
    rewound: Callable[..., Checkpoint], disturbance: Disturbance, directory: RunDirectory,
    counts: Counts, is_virtual: bool,
) -> RunResult:  # fmt: skip
    """Rewind a run into a directory, and go on; if that cannot be, nothing is left."""
    with closing(directory.journal) as journal:
        with nothing_left(directory.path, BaseException):  # Ctrl-C, too
            moment = rewound(sink=FanOut(journal, counts, disturbance.follow))
        with nothing_left(directory.path, (ReplayError, TraceError, SettingsError)):
            return resume(moment, disturbance, journal, is_virtual=is_virtual)


def _setup(path: Path, side: Mapping[str, Any], crew: Crew) -> Setup:
    """The setup of a fork; a team that brings none has the tools of the parent's task."""
    setup = setup_of(RecordedRequests(path), crew.setup)
    return setup if crew.setup else replace(setup, tools=_tools(side))


def _arranged(setup: Setup, team: Team, is_virtual: bool) -> Arrangement:
    return Arrangement(setup, in_virtual_time(team) if is_virtual else team)


def _about(side: Mapping[str, Any], crew: Crew, is_virtual: bool) -> dict[str, Any]:
    """The side file of a fork, as far as it is its parent's."""
    clock = "virtual" if is_virtual else "real time x 1"
    about = {key: value for key, value in side.items() if key not in _OF_ITS_OWN}
    return about | {"clock": clock, "agents_are": crew.agents_are}


def _origin(
    path: Path, side: Mapping[str, Any], at: int, changes: Sequence[RunChange], repeat: int
) -> dict[str, Any]:
    """The parent and the changes, as the side file of a fork names them."""
    return {
        "run": str(path),
        "execution": side.get("execution"),
        "at": at,
        "changes": [change.to_json() for change in changes],
        "repeat": repeat,
        "phases": [asdict(phase) for phase in phases_with(side, at, changes, repeat)],
        "earliest": earliest_of(side, at, changes, repeat),
    }


def _tools(side: Mapping[str, Any]) -> Mapping[str, Tool]:
    """The tools of a task of this package; a team of a user's own brings its tools otherwise."""
    if side.get("task") not in [*TASKS]:
        return {}
    try:
        return make_task(TeamRun.read(side)).tools()
    except SettingsError:  # its data are not here, for instance
        return {}


def _side(path: Path, *, needed: bool) -> dict[str, Any]:
    """The content of the side file of a run; empty if there is none, and none is needed."""
    if (path.parent / SIDE).exists():
        return read_side(path.parent)
    if needed:
        raise SettingsError(f"beside {path} is no {SIDE}; say who goes on (--team)")
    return {}


def _undisturbed(side: Mapping[str, Any], path: Path) -> type[Disturbance]:
    if side.get("faults"):
        raise ReplayError(
            f"{path.parent} is a run with faults, and a fork without them would be another run; "
            "hand in `disturb=dig.faults.inject.faulty_team.disturbance_of(side)`"
        )
    return Disturbance


def goes_on_virtually(team: Team, side: Mapping[str, Any], real_time: bool) -> bool:
    """Whether a fork goes on in virtual time."""
    if all(hasattr(agent, "plan") for agent in team.values()):
        return True
    return side.get("clock") == "virtual" and not models(team) and not real_time


def _header(parent: Path, crew: Crew | None) -> Mapping[str, Any]:
    """The header for the journal of a fork: its parent's, or that of the setup handed in."""
    header = RecordedRequests(parent, payloads=False).header
    if header is None:
        if crew is None or crew.setup is None:
            raise ReplayError(
                f"{parent} is a plain trace; only a journal can be forked without a team and its "
                "`Setup`, which can be handed in from Python"
            )
        return {**crew.setup.described(), UNNAMED: True}
    return {key: value for key, value in header.items() if key != "version"}


def simulated_crew(side: Mapping[str, Any], detectors: Collection[str] = ()) -> Crew:
    """The simulated agents of a run, from what its side file says.

    Args:
        side: The side file.
        detectors: The user's detectors, as `module:object`. A detector that only the file names is
            not imported.

    Raises:
        SettingsError: The run was not one of simulated agents on a task of this package.
    """
    try:
        spec = TeamRun.read_simulated(side, detectors)
    except SettingsError as error:
        raise SettingsError(
            f"{error}; or name its task (--task) and who goes on (--team)"
        ) from None
    return task_crew(side, spec.task, detectors=detectors)


def task_crew(
    side: Mapping[str, Any], task: str, team: str | None = None, detectors: Collection[str] = ()
) -> Crew:
    """The team, tools and scorer of a run on a task that the caller names again.

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
    made = make_task(spec)
    arranged = arrange(spec, made)
    return Crew(arranged.team, arranged.setup, made.score, spec.agents_are)


def model_crew(
    side: Mapping[str, Any],
    settings: ModelSettings,
    task: str | None = None,
    detectors: Collection[str] = (),
) -> Crew:
    """The team of a run that a language model decided for, if the caller names that model again.

    Args:
        side: The side file. It decides neither what model is asked nor where, nor for how much.
        settings: The model.
        task: The run's task, if it is none of this package.
        detectors: The user's detectors, as `module:object`.

    Raises:
        SettingsError: Another model decided, or it was asked elsewhere, or there was none.
    """
    from dig.runtime.llm.settings import OPENAI

    given = side.get("options")
    options = dict(given) if isinstance(given, Mapping) else {}
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
    asked = {key: value for key, value in asdict(settings).items() if key != "model"}
    spec = replace(
        TeamRun.read(side).with_named(detectors, settings.model), options={**asked, **brief}
    )
    made = make_task(spec)
    arranged = arrange(spec, made)
    return Crew(arranged.team, arranged.setup, made.score, spec.agents_are)


def named_crew(name: str) -> Crew:
    """The team that a name such as `my_module:team` stands for.

    It is a mapping from names to agents; that, and a `Setup`, in a tuple; or a function that
    returns one of these.

    Raises:
        SettingsError: There is no such thing.
    """
    found = load(name, "team")
    if callable(found) and not isinstance(found, Mapping):
        found = call(found, name)
    team, setup = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
    if not isinstance(team, Mapping) or not isinstance(setup, Setup | None):
        raise SettingsError(f"{name!r} is no mapping from names to agents (and no Setup with it)")
    return Crew(team, setup, agents_are=name)
