"""Replays: forks of a failed run, each made once, kept beside the run, and judged.

A fork lies in a directory whose name is a checksum of all that it follows from: the parent's bytes
before the fork, the changes, the team, the repeat, and the version of dig. It is made in a hidden
directory and renamed when it is whole.

Whoever sends a run can send forks with it. So the checksum of each fork that is made is kept in the
user's own cache, as the name of a small file, and a fork without one is made again.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from hashlib import blake2b, file_digest
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Literal

import anyio

from dig._util.files import open_file, read_file
from dig._util.text import counted, one_line
from dig._version import __version__
from dig.adapters.plain.served import Served, check_change
from dig.adapters.wrapping import unwrap
from dig.diagnosis.case import RunSource
from dig.diagnosis.goal import Goal
from dig.diagnosis.interventions.proposing import again
from dig.errors import DigError, ReplayError, SettingsError
from dig.graph.codec import dumps, encode
from dig.runtime.checkpoint import is_deterministic
from dig.tasks.run.arrange import Disturbance
from dig.tasks.run.execute import INTERRUPTED
from dig.tasks.run.fork import (
    Crew,
    fork,
    goes_on_virtually,
    model_crew,
    named_crew,
    simulated_crew,
    task_crew,
)
from dig.tasks.run.methods import Arrangement
from dig.tasks.run.teams import models
from dig.tasks.user_objects import load
from dig.traces.journal.files import write_file
from dig.traces.journal.journal import RESULT
from dig.traces.journal.segments import segments, trace_path
from dig.traces.replay.kinds import read_interventions
from dig.traces.replay.requests import RecordedRequests
from dig.traces.run import RecordedRun
from dig.traces.usage import Costs

if TYPE_CHECKING:
    from dig.runtime.llm import ModelSettings  # slow to import

Disturb = Callable[[Arrangement], Disturbance]
Row = Mapping[str, Any]
Origin = Literal["made", "made again", "found"]


@dataclass(frozen=True)
class Lab:
    """All that a process needs to make replays of one run.

    Attributes:
        source: The run directory or trace.
        goal: Says when a replay is good.
        forks: The directory of the forks.
        team: The team that goes on, as `module:team`; ``None``: the simulated agents of the run.
        task: The task of the run, if it is not one of this package.
        crew: Makes the team that goes on, in place of a name.
        detectors: The user's detectors, as `module:object`.
        disturb: Makes the disturbance that the run had, such as injected faults.
        is_fresh: Whether forks that are there already are made again.
        same_model: The model that the run's team asked, named again by the user: it goes on.
        entry: Makes and runs the wrapped team of the run again, as `module:function`.
    """

    source: Path
    goal: Goal
    forks: Path
    team: str | None = None
    task: str | None = None
    crew: Callable[[], Crew] | None = None
    detectors: tuple[str, ...] = ()
    disturb: Disturb | None = None
    is_fresh: bool = False
    entry: str | None = None
    same_model: ModelSettings | None = None

    def made_crew(self) -> Crew:
        """The team that goes on.

        Raises:
            ReplayError: Healing has acted in the run by another edition of the patterns.
            SettingsError: There is no such team, or the run was not one of simulated agents.
        """
        if self.crew is not None:
            return self.crew()
        source = read_source(self.source, self.detectors)
        if source.wrapped is not None or self.entry is not None:
            self._check_entry(source)
            return Crew({})  # it has no agents of ours: its own code runs again
        recorded = RecordedRequests(source.trace, payloads=False)
        recorded.check_edition()
        if gates := (recorded.header or {}).get("gates"):
            raise SettingsError(
                f"{source.name} had {counted(len(gates), 'gate')}, and what they decided is not "
                "recorded: it cannot be continued, so no change of it can be tried"
            )
        if not source.side and self.team is None:
            raise SettingsError(
                f"{source.name} is a plain trace, which says neither who goes on nor what tools "
                "they have: name a team that brings its Setup, with --team module:team"
            )
        if self.same_model is not None:
            return model_crew(source.side, self.same_model, self.task, self.detectors)
        if self.task is not None:
            return task_crew(source.side, self.task, self.team, self.detectors)
        if self.team is not None:
            return named_crew(self.team)
        return simulated_crew(source.side, self.detectors)

    def _check_entry(self, source: RunSource) -> None:
        """Refuse a wrapped team that cannot run again, and an entry that is none or not needed."""
        who = f"{source.name} is a run of {one_line(source.wrapped or '', 60)}"
        if source.wrapped is None:
            raise SettingsError(f"{source.name} is no run of a wrapped team: it needs no --entry")
        if not source.is_plain_team:
            raise SettingsError(
                f"{who}, whose code ran outside of dig-monitor: it cannot be continued, since its "
                "framework keeps state that is not in the journal; that can be done with teams of "
                "plain callables alone. `digmon why` without --try says what its records show"
            )
        if self.entry is None or self.team is not None or self.task is not None:
            raise SettingsError(
                f"{who}, whose code ran outside of dig-monitor: it cannot be continued unless you "
                "name the function that makes and runs the team again, and nothing else that goes "
                "on (--entry module:function)"
            )
        load(self.entry, "entry")

    def is_possible(self, run: RecordedRun, row: Row) -> bool:
        """Whether a change can be made in replays of a run; in runs of our own agents, any can."""
        if self.entry is None:
            return True
        (change,) = read_interventions([row])
        try:
            check_change(run, change, change.at)
        except ReplayError:
            return False
        return True

    def asked_again(self, run: RecordedRun, agent: str) -> Iterator[Row]:
        """The changes that have a stateless agent of a wrapped team answer once more."""
        stateless = read_source(self.source, self.detectors).side.get("stateless", ())
        if self.entry is not None and agent.partition("#")[0] in stateless:
            for one in run.activations.values():
                if one.agent == agent and one.end is not None and not one.has_failed:
                    yield again(one.id, one.t)

    def place(self, request: ReplayRequest) -> Path:
        """The directory of the fork of a request."""
        source = read_source(self.source, self.detectors)
        key = blake2b(_prefix(source, request.at), digest_size=16)
        crew = {
            "team": f"entry {self.entry}" if self.entry else self.team or "simulated",
            "task": self.task,
            "faults": source.side.get("faults"),
        }
        if self.same_model is not None:
            crew["team"] = f"model {self.same_model.model} at {self.same_model.where}"
        said = [request.at, [*request.changes], crew, [*self.detectors], request.repeat]
        key.update(dumps([*said, __version__]).encode())
        return self.forks / key.hexdigest()

    def is_made(self, request: ReplayRequest) -> bool:
        """Whether the fork of a request is there, and counts: it is as this user has made it."""
        return not self.is_fresh and self.crew is None and _is_as_made(self.place(request))

    @cached_property
    def manner(self) -> Manner:
        """The manner in which the team works that goes on.

        Raises:
            SettingsError: There is no such team.
        """
        team = self.made_crew().team
        if self.entry is not None:
            return Manner(is_paired=False, is_deterministic=False)
        side = read_source(self.source, self.detectors).side
        virtual = goes_on_virtually(team, side, False)
        names = tuple(one.settings.model for one in models(team))
        return Manner(virtual, virtual and is_deterministic(team), names)


@dataclass(frozen=True)
class Manner:
    """The manner in which a team works.

    Attributes:
        is_paired: Whether replays with the same repeat draw the same random numbers.
        is_deterministic: Whether repeats would be the same.
        models: The language models that it asks.
    """

    is_paired: bool
    is_deterministic: bool
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReplayRequest:
    """One replay that is to be made.

    Attributes:
        at: The first record that may differ.
        changes: The changes, as plain JSON; none: a control.
        repeat: The random numbers that are drawn from there on; 0: those of the run.
        is_control: Whether the changes are none, or an edit that changes nothing.
    """

    at: int
    changes: tuple[Row, ...] = ()
    repeat: int = 0
    is_control: bool = False


@dataclass(frozen=True)
class MadeReplay:
    """One replay, judged.

    Attributes:
        fork: Its directory; ``None``, if it could not be made.
        good: Whether the replay is good.
        progress: The progress of the replay.
        why: The lack of the replay, or the reason why it could not be made.
        cpu_s: The processor time that it took; 0, if it was there already.
        costs: The cost of models in it: calls, tokens, US dollars.
        origin: How it came about: a fork that was there is `found`, or `made again` if it was not
            as it had been made.
    """

    fork: Path | None
    good: bool = False
    progress: float | None = None
    why: str = ""
    cpu_s: float = 0.0
    costs: Mapping[str, float] = field(default_factory=dict)
    origin: Origin = "made"


@lru_cache(maxsize=4)
def read_source(path: Path, detectors: tuple[str, ...] = ()) -> RunSource:
    """A source, read once in a process."""
    return RunSource.read(path, detectors)


@lru_cache(maxsize=64)
def read_fork(path: Path) -> RecordedRun:
    """The records of a fork, read once in a process."""
    return RecordedRun.read(path, payloads=True)


def make_replay(lab: Lab, request: ReplayRequest) -> MadeReplay:
    """Make a replay or find it, and judge it; one that cannot be made says why.

    Raises:
        KeyboardInterrupt: The user interrupted the replay; nothing is left of it.
    """
    began = time.process_time()
    place = lab.place(request)
    is_found, is_there = lab.is_made(request), os.path.lexists(place)
    result: dict[str, Any] = {}
    if not is_found:
        try:
            result = _make(lab, request, place)
        except DigError as error:
            return MadeReplay(None, why=one_line(error), cpu_s=time.process_time() - began)
        except Exception as error:  # a user's own code
            why = one_line(f"{type(error).__name__}: {error}")
            return MadeReplay(None, why=why, cpu_s=time.process_time() - began)
    run = read_fork(place)
    if is_found:
        result = json.loads(read_file(place / RESULT))
        if result.get("score"):
            result["score"] = _score(lab, run)
    source, costs = read_source(lab.source, lab.detectors), Costs()
    judged = lab.goal(source.finished(request.at, run, result))
    took = 0.0 if is_found else time.process_time() - began
    for record in () if is_found else run.records[request.at :]:
        costs(record)
    origin: Origin = "found" if is_found else "made"
    if is_there and not (is_found or lab.is_fresh or lab.crew):
        origin = "made again"
    return MadeReplay(place, judged.good, judged.progress, judged.why, took, costs.sums, origin)


def _score(lab: Lab, run: RecordedRun) -> Row | None:
    """The score of the answer in the trace of a fork, computed anew."""
    score = lab.made_crew().score(run.answer.payload if run.answer else None)
    return asdict(score) if score else None


def _make(lab: Lab, request: ReplayRequest, place: Path) -> dict[str, Any]:
    """Fork into a hidden directory, and give it its name when it is whole; gives the result."""
    hidden = lab.forks / f".{place.name}-{os.getpid()}-{secrets.token_hex(2)}"
    try:
        make = _forked if lab.entry is None else _served
        made, result = make(lab, request, hidden)
        result = {**result, "directory": str(place)}
        write_file(made / RESULT, f"{json.dumps(result, indent=2)}\n".encode())
        if place.is_dir() and not place.is_symlink():
            rmtree(place)
        else:
            place.unlink(missing_ok=True)  # of a link, what it leads to stays
        read_fork.cache_clear()
        made.rename(place)
        _keep_checksum(place)
        return result
    finally:
        rmtree(hidden, ignore_errors=True)


def _forked(lab: Lab, request: ReplayRequest, runs: Path) -> tuple[Path, Row]:
    """Fork a run; gives the directory of the fork, and its result."""
    is_named = lab.team or lab.crew or lab.task or lab.same_model
    crew = lab.made_crew() if is_named else None
    made = fork(
        lab.source, request.at, runs, changes=read_changes(request), repeat=request.repeat,
        crew=crew, detectors=lab.detectors, disturb=lab.disturb,
    )  # fmt: skip
    if made.result.reason == INTERRUPTED:
        raise KeyboardInterrupt
    return made.directory, made.to_json()


def _served(lab: Lab, request: ReplayRequest, runs: Path) -> tuple[Path, Row]:
    """Run a wrapped team again; gives the directory of the new run, and its result."""
    changes = read_changes(request)
    origin = {
        "run": str(lab.source), "at": request.at, "repeat": request.repeat,
        "changes": [*request.changes],
    }  # fmt: skip
    source = read_source(lab.source, lab.detectors)
    served = Served(source.run, request.at, runs, changes=changes, about={"forked_from": origin})
    with redirect_stdout(sys.stderr):  # it may print
        anyio.run(served.run, load(lab.entry or "", "entry"), unwrap)
    assert served.directory is not None
    return served.directory, json.loads(read_file(served.directory / RESULT))


def read_changes(request: ReplayRequest) -> Any:
    """The changes of a request, as the fork takes them."""
    return read_interventions(request.changes) if request.changes else ()


def _prefix(source: RunSource, at: int) -> bytes:
    """A checksum of the records before one."""
    digests = _digests(source.path, source.detectors)
    return digests[min(at, len(digests) - 1)]


@lru_cache(maxsize=4)
def _digests(path: Path, detectors: tuple[str, ...]) -> list[bytes]:
    """For each number of records, a checksum of so many records of a source."""
    found, sums = blake2b(digest_size=16), [b""]
    for record in read_source(path, detectors).run.records:
        found.update(encode(record).encode())
        sums.append(found.digest())
    return sums


# --- which of the forks that are there are believed ---


def cache_folder() -> Path:
    """The folder of this program in the user's cache, by the convention of the platform.

    Raises:
        RuntimeError: The user has no home directory.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():  # a relative one could lie beside a run; the convention ignores it
        return named / "dig-monitor"
    where = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
    return Path.home() / where / "dig-monitor"


def _keep_checksum(fork: Path) -> None:
    """Keep the checksum of a fork that was just made; without a cache it is made again next time.

    Args:
        fork: Its directory.
    """
    with suppress(OSError, RuntimeError):
        kept = _kept(fork)
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_file(kept, f"{fork}\n".encode("utf-8", "surrogateescape"))


def _is_as_made(fork: Path) -> bool:
    """Whether a directory is a fork that this user has made, with the same trace and result."""
    try:
        return not fork.is_symlink() and _kept(fork).is_file()
    except (OSError, RuntimeError):
        return False


def _kept(fork: Path) -> Path:
    """The file in the cache that the checksum of a fork names.

    The fork's name is part of it: one fork in the place of another is not believed either.
    """
    found = blake2b(fork.name.encode("utf-8", "surrogateescape"), digest_size=32)
    for path in (fork / RESULT, *segments(trace_path(fork))):
        with open_file(path) as file:
            found.update(file_digest(file, "sha256").digest())
    return cache_folder() / "forks" / found.hexdigest()
