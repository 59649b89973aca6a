"""Forks a run: a directory of its own, the recorded beginning, one change, and a new end."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dig.errors import ReplayError, SettingsError, TraceError
from dig.monitor.sinks import FanOut
from dig.runtime.driver.recorded_requests import UNNAMED
from dig.runtime.group_commit import Durability
from dig.traces.journal.journal import SIDE, Keeping, RunDirectory, read_side
from dig.traces.journal.reader import trace_path
from dig.traces.replay.changes import EditRecord, RunChange
from dig.traces.replay.rerun import setup_of
from dig.traces.replay.rewind import earliest_of, phases_with, rewind
from dig.traces.replay.tape import read_requests

from .arrange import Disturbance
from .crew import Crew, simulated_crew, task_tools
from .execute import Execution, remove_on_error, resume
from .measures import Counts, with_mistakes
from .methods import Arrangement
from .teams import Team, in_virtual_time, models

# The side file of a fork has its own values of these; all others are its parent's.
_NOT_INHERITED = ("forked_from", "execution", "began", "durability", "dig", "python", "platform")


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
    score = counts.check_evidence(crew.score(result.answer))
    score = with_mistakes(score, crew.mistakes, directory.path)
    execution = Execution(
        result, score, directory.path, clock,
        time.monotonic() - start,
        directory.journal.unreplayable_from, crew.agents_are, side.get("data_are"), counts,
        disturbance.outcome(), method=str(side.get("method")),
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
