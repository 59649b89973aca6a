"""Forks a run: a directory of its own, the recorded beginning, one change, and a new end."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dig.errors import ReplayError, SettingsError, TraceError
from dig.monitor.sinks import FanOut
from dig.runtime.group_commit import Durability
from dig.runtime.host import Setup
from dig.tasks.task import Score
from dig.tasks.user_objects import call, load
from dig.traces.journal.journal import SIDE, Keeping, RunDirectory, read_side
from dig.traces.journal.reader import trace_path
from dig.traces.replay.fork import rewind
from dig.traces.replay.requests import RecordedRequests

from .arrange import arrange, make_task
from .execute import Execution, nothing_left, resume
from .measures import Counts
from .team_run import OWN, SIMULATED, TeamRun
from .teams import Team, models

_OF_ITS_OWN = ("execution", "began", "durability", "dig", "python", "platform")


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
    crew: Crew | None = None,
    detectors: Collection[str] = (),
    durability: Durability = "process",
    real_time: bool = False,
) -> Execution:
    """Let a recorded run go on from record `at` in a directory of its own.

    The new trace is that of the parent, byte by byte, before `at`. The parent is only read.

    Args:
        parent: The run directory, or the journal in it.
        at: The first record that may differ from the recorded one.
        runs: The folder in which the new directory is made.
        edit: The new values in record `at`; see `dig.traces.replay.edits.Change`.
        crew: The team that goes on; ``None``: simulated agents, if the run had them. It goes on in
            virtual time if all its agents have a `plan`, or if the parent ran in virtual time and
            no agent asks a language model; else in real time.
        detectors: The user's detectors that the run had, as `module:object`.
        durability: The records that are synced before they take effect.
        real_time: Whether agents without a `plan` go on in real time in any case.

    Raises:
        ReplayError: The run cannot be forked at `at`, or not with this edit; nothing is left.
        SettingsError: No team is given, and the run was not one of simulated agents; or an agent
            cannot work in virtual time.
        JournalError: The new directory cannot be written.
    """
    began, path = time.monotonic(), trace_path(parent)
    header, has_side = _header(path), (path.parent / SIDE).exists()
    if crew is None and not has_side:
        raise SettingsError(f"beside {path} is no {SIDE}; say who goes on (--team)")
    side = read_side(path.parent) if has_side else {}
    crew = crew or simulated_crew(side, detectors)
    is_virtual = _is_virtual(crew.team, side, real_time)
    clock = "virtual" if is_virtual else "real time x 1"
    origin = {"run": str(path), "execution": side.get("execution"), "at": at, "edit": edit}
    side |= {"clock": clock, "forked_from": origin, "agents_are": crew.agents_are}
    about = {key: value for key, value in side.items() if key not in _OF_ITS_OWN}
    keeping, counts = Keeping(durability=durability), Counts()
    directory = RunDirectory(runs, about, header=header, keeping=keeping)
    with closing(directory.journal) as journal:
        sink = FanOut(journal, counts)
        with nothing_left(directory.path, BaseException):  # Ctrl-C, too
            moment = rewind(path, at, edit=edit, setup=crew.setup, sink=sink)
        with nothing_left(directory.path, (ReplayError, TraceError, SettingsError)):
            result = resume(moment, crew.team, journal, is_virtual=is_virtual)
    execution = Execution(
        result, crew.score(result.answer), directory.path, clock, time.monotonic() - began,
        directory.journal.unreplayable_from, crew.agents_are, side.get("data_are"), counts,
    )  # fmt: skip
    directory.write_result(execution.to_json())
    return execution


def _is_virtual(team: Team, side: Mapping[str, Any], real_time: bool) -> bool:
    """Whether a fork goes on in virtual time."""
    if all(hasattr(agent, "plan") for agent in team.values()):
        return True
    return side.get("clock") == "virtual" and not models(team) and not real_time


def _header(parent: Path) -> Mapping[str, Any]:
    """The header of the journal, for the journal of a fork."""
    header = RecordedRequests(parent, payloads=False).header
    if header is None:
        raise ReplayError(f"{parent} is a plain trace; only a journal can be forked")
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
