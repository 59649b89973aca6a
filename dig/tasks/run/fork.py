"""Forks a run: a directory of its own, the recorded beginning, one change, and a new end."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
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
from dig.traces.replay.rerun import setup_of

from .arrange import arrange, make_task
from .execute import Disturbance, Execution, resume
from .measures import Counts
from .methods import Arrangement
from .team_run import OWN, SIMULATED, TeamRun
from .teams import Team, works_in_virtual_time

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
    disturb: Callable[[Arrangement], Disturbance] | None = None,
    durability: Durability = "process",
) -> Execution:
    """Let a recorded run go on from record `at` in a directory of its own.

    The new trace is that of the parent, byte by byte, before `at`. The parent is only read.

    Args:
        parent: The run directory, or the journal in it.
        at: The first record that may differ from the recorded one.
        runs: The folder in which the new directory is made.
        edit: The new values in record `at`; see `dig.traces.replay.edits.Change`.
        crew: The team that goes on; ``None``: simulated agents, if the run had them. A team whose
            agents all have a `plan` goes on in virtual time, any other in real time.
        detectors: The user's detectors that the run had, as `module:object`.
        disturb: Makes the disturbance that the run had, such as
            `dig.faults.inject.faulty_team.disturbance_of(side)`; ``None``: it had none.
        durability: The records that are synced before they take effect.

    Raises:
        ReplayError: The run cannot be forked at `at`, or not with this edit; or it had faults, and
            no `disturb` is given. Nothing is left.
        SettingsError: No team is given, and the run was not one of simulated agents.
        JournalError: The new directory cannot be written.
    """
    began, path = time.monotonic(), trace_path(parent)
    header, side = _header(path), _side(path, needed=crew is None)
    disturb = disturb or _undisturbed(side, path)
    crew = crew or simulated_crew(side, detectors)
    clock = "virtual" if works_in_virtual_time(crew.team) else "real time x 1"
    origin = {"run": str(path), "execution": side.get("execution"), "at": at, "edit": edit}
    side |= {"clock": clock, "forked_from": origin, "agents_are": crew.agents_are}
    about = {key: value for key, value in side.items() if key not in _OF_ITS_OWN}
    setup = setup_of(RecordedRequests(path), crew.setup)
    disturbance = disturb(Arrangement(setup, crew.team))
    keeping, counts = Keeping(durability=durability), Counts()
    directory = RunDirectory(runs, about, header=header, keeping=keeping)
    with closing(directory.journal) as journal:
        sink = FanOut(journal, counts, disturbance.follow)
        with _removing(directory.path, BaseException):  # Ctrl-C, too: nothing has come of it
            moment = rewind(path, at, edit=edit, setup=crew.setup, sink=sink)
        with _removing(directory.path, ReplayError, TraceError, SettingsError):
            result = resume(moment, disturbance, journal)
    execution = Execution(
        result, crew.score(result.answer), directory.path, clock, time.monotonic() - began,
        directory.journal.unreplayable_from, crew.agents_are, side.get("data_are"), counts,
        disturbance.outcome(),
    )  # fmt: skip
    directory.write_result(execution.to_json())
    return execution


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


@contextmanager
def _removing(directory: Path, *errors: type[BaseException]) -> Iterator[None]:
    """Remove a directory if one of these errors is raised."""
    try:
        yield
    except errors:
        shutil.rmtree(directory, ignore_errors=True)
        raise


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
        raise SettingsError(f"{error}; or say who goes on (--team)") from None
    task = make_task(spec)
    arranged = arrange(spec, task)
    return Crew(arranged.team, arranged.setup, task.score, SIMULATED)


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
