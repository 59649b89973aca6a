"""Replays: forks of a failed run, each made once, kept beside the run, and judged.

A fork lies in a directory whose name is a checksum of all that it follows from: the parent's bytes
before the fork, the changes, the team, the repeat, and the version of dig. It is made in a hidden
directory and renamed when it is whole.

A run from someone else may contain forged forks. So a fork is trusted only if its checksum is in
this user's cache, as the name of a small file; otherwise it is made again.
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
from dig._util.json_values import dumps
from dig._util.text import counted, names, one_line
from dig._version import __version__
from dig.adapters.plain.served import Served, check_change
from dig.adapters.wrapping import unwrap
from dig.diagnosis.case import RunSource
from dig.diagnosis.goal import Goal
from dig.diagnosis.interventions.proposing import ask_again
from dig.errors import DigError, ReplayError, SettingsError
from dig.graph.codec import encode
from dig.runtime.checkpoint import is_deterministic
from dig.runtime.driver.recorded_requests import check_edition
from dig.tasks.run import run_fork as forking
from dig.tasks.run.arrange import Disturbance
from dig.tasks.run.crew import Crew, model_crew, named_crew, simulated_crew, task_crew
from dig.tasks.run.execute import INTERRUPTED
from dig.tasks.run.methods import Arrangement
from dig.tasks.run.teams import models
from dig.tasks.user_objects import load
from dig.traces.journal.durable_files import write_file
from dig.traces.journal.journal import RESULT
from dig.traces.journal.segments import segments, trace_path
from dig.traces.replay.kinds import read_interventions
from dig.traces.replay.tape import read_requests
from dig.traces.run import RecordedRun
from dig.traces.usage import Costs

if TYPE_CHECKING:
    from dig.runtime.llm import ModelSettings  # slow to import

Disturb = Callable[[Arrangement], Disturbance]
Row = Mapping[str, Any]
Origin = Literal["made", "made again", "found"]


@dataclass(frozen=True)
class TrialBudget:
    """The bounds on the cost of experiments.

    Attributes:
        replays: The number of replays that may be made, controls included; ``None``: any number.
        seconds: The seconds that replays may take; ``None``: any time.
        usd: US dollars that they may cost; ``None``: any amount.
    """

    replays: int | None = 60
    seconds: float | None = 600.0
    usd: float | None = None


@dataclass(frozen=True)
class Trying:
    """The settings of experiments.

    Attributes:
        tries: The number of changes proposed by rules that are tried.
        repeat: The number of repeats of each that are to count.
        per_attempt: The number of changes about one attempt.
        budget: The bounds on the cost of all of it.
        jobs: The number of processes that work at once; the document does not depend on it.
        runs: The directory of the forks; ``None``: beside the run.
        team: The team that goes on, as `module:team`; ``None``: simulated agents, if the run had
            them.
        task: The task of the run, if it is not one of this package.
        crew: Makes the team that goes on, in place of a name.
        entry: For the run of a wrapped team of plain callables: what makes and runs that again, as
            `module:function`.
        detectors: The user's detectors, as `module:object`.
        disturb: Makes the disturbance that the run had, such as injected faults.
        is_fresh: Whether forks that are there already are made again.
        has_controls: Whether replays without the change are made.
        same_model: The settings of the model that the run's team asked, named again by the user:
            it goes on.
    """

    tries: int = 5
    repeat: int = 3
    per_attempt: int = 2
    budget: TrialBudget = field(default_factory=TrialBudget)
    jobs: int = 1
    runs: Path | None = None
    team: str | None = None
    task: str | None = None
    crew: Callable[[], Crew] | None = None
    detectors: tuple[str, ...] = ()
    disturb: Disturb | None = None
    is_fresh: bool = False
    has_controls: bool = True
    entry: str | None = None
    same_model: ModelSettings | None = None

    def replayer(self, path: Path, goal: Goal) -> Replayer:
        """Return the maker of replays of a run.

        Raises:
            SettingsError: A link lies where the forks of the run belong.
        """
        source = read_source(path, self.detectors)
        # A run from somebody else could make us write anywhere through such a link.
        if self.runs is None and source.forks.is_symlink():
            raise SettingsError(
                f"{source.forks} is a link, and no fork is written through it: remove the link, or "
                "name another folder for the forks with --runs"
            )
        return Replayer(path, goal, source.forks if self.runs is None else self.runs, self)


@dataclass(frozen=True)
class Replayer:
    """The maker of replays of a run, for several processes.

    Attributes:
        path: The run directory or trace.
        goal: Says when a replay is good.
        forks: The directory of the forks.
        trying: The settings: who goes on, and with which detectors and faults.
    """

    path: Path
    goal: Goal
    forks: Path
    trying: Trying

    @property
    def source(self) -> RunSource:
        """The run, read once in a process."""
        return read_source(self.path, self.trying.detectors)

    def make_crew(self) -> Crew:
        """Make the team for replays.

        Raises:
            ReplayError: The findings of the run are of another edition of the patterns.
            SettingsError: There is no such team, or the run was not one of simulated agents.
        """
        trying, source = self.trying, self.source
        if trying.crew is not None:
            return trying.crew()
        if source.wrapped is not None or trying.entry is not None:
            self._check_entry(source)
            return Crew({})  # it has no agents of ours: its own code runs again
        recorded = read_requests(source.trace, payloads=False)
        check_edition(recorded.run)
        if gates := (recorded.header or {}).get("gates"):
            raise SettingsError(
                f"{source.name} had {counted(len(gates), 'gate')}, and what they decided is not "
                "recorded: it cannot be continued, so no change of it can be tried"
            )
        if not source.side and trying.team is None:
            raise SettingsError(
                f"{source.name} is a plain trace, which says neither who goes on nor what tools "
                "they have: name a team that brings its Setup, with --team module:team"
            )
        if trying.same_model is not None:
            return model_crew(source.side, trying.same_model, trying.task, trying.detectors)
        if trying.task is not None:
            return task_crew(source.side, trying.task, trying.team, trying.detectors)
        if trying.team is not None:
            return named_crew(trying.team)
        return simulated_crew(source.side, trying.detectors)

    def _check_entry(self, source: RunSource) -> None:
        """Refuse wrapped teams without replays, and an entry without use."""
        subject = f"{source.name} is a run of {one_line(source.wrapped or '', 60)}"
        if source.wrapped is None:
            raise SettingsError(f"{source.name} is no run of a wrapped team: it needs no --entry")
        if not source.is_plain_team:
            raise SettingsError(
                f"{subject}, whose code ran outside of dig-monitor: it cannot be continued, since "
                "its framework keeps state that is not in the journal; that can be done with teams "
                "of plain callables alone. `digmon why` without --try says what its records show"
            )
        trying = self.trying
        if trying.entry is None or trying.team is not None or trying.task is not None:
            raise SettingsError(
                f"{subject}, whose code ran outside of dig-monitor: it cannot be continued unless "
                "you name the function that makes and runs the team again, and nothing else that "
                "goes on (--entry module:function)"
            )
        load(trying.entry, "entry")

    def can_change(self, run: RecordedRun, row: Row) -> bool:
        """Whether a change can be made in replays of a run; in runs of our own agents, any can."""
        if self.trying.entry is None:
            return True
        (change,) = read_interventions([row])
        try:
            check_change(run, change, change.at)
        except ReplayError:
            return False
        return True

    @property
    def without_seats(self) -> str:
        """The reason in words why no agent can take the seat of another."""
        if self.trying.entry is None:
            return "no agent can take the seat of another one"
        agents = [*dict.fromkeys(agent.partition("#")[0] for agent in self.source.run.agents)]
        stateful = [agent for agent in agents if agent not in self.source.side.get("stateless", ())]
        if not stateful:
            return ""
        return (
            f"{names(stateful)} cannot be asked again: declare the agents that keep nothing "
            "between calls, dig.wrap(team, stateless={...}), and record the run again"
        )

    def retries(self, run: RecordedRun, agent: str) -> Iterator[Row]:
        """Yield changes to ask a stateless agent of a wrapped team once more."""
        stateless = self.source.side.get("stateless", ())
        if self.trying.entry is not None and agent.partition("#")[0] in stateless:
            for act in run.activations.values():
                if act.agent == agent and act.end is not None and not act.has_failed:
                    yield ask_again(act.id, act.t)

    def fork_path(self, request: ReplayRequest) -> Path:
        """Return the directory of the fork of a request."""
        trying, source = self.trying, self.source
        digests = _digests(source.path, source.detectors)
        key = blake2b(digests[min(request.at, len(digests) - 1)], digest_size=16)
        crew = {
            "team": f"entry {trying.entry}" if trying.entry else trying.team or "simulated",
            "task": trying.task,
            "faults": source.side.get("faults"),
        }
        if trying.same_model is not None:
            crew["team"] = f"model {trying.same_model.model} at {trying.same_model.where}"
        origin = [request.at, [*request.changes], crew, [*trying.detectors], request.repeat]
        key.update(dumps([*origin, __version__]).encode())
        return self.forks / key.hexdigest()

    def has_fork(self, request: ReplayRequest) -> bool:
        """Whether the fork of a request is there, as made by the user."""
        # The name of a fork says nothing about a crew that a function makes, so none is believed.
        may_exist = not self.trying.is_fresh and self.trying.crew is None
        return may_exist and _has_receipt(self.fork_path(request))

    @cached_property
    def manner(self) -> Manner:
        """The manner of the team's work in replays.

        Raises:
            SettingsError: There is no such team.
        """
        team = self.make_crew().team
        if self.trying.entry is not None:
            return Manner(is_paired=False, is_deterministic=False)
        virtual = forking.goes_on_virtually(team, self.source.side, False)
        names = tuple(model.settings.model for model in models(team))
        return Manner(virtual, virtual and is_deterministic(team), names)


@dataclass(frozen=True)
class Manner:
    """The manner of a team's work.

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
    """A replay to be made.

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
class Replay:
    """A replay and a judgement about it.

    Attributes:
        fork: Its directory; ``None``, if it could not be made.
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
    """Read a source, once in a process."""
    return RunSource.read(path, detectors)


# A search goes back and forth between a run and its forks.
@lru_cache(maxsize=64)
def read_fork(path: Path) -> RecordedRun:
    """Read the records of a fork, once in a process."""
    return RecordedRun.read(path, payloads=True)


def make_replay(replayer: Replayer, request: ReplayRequest) -> Replay:
    """Make or find a replay, and judge the fork; after a failure, say why.

    Raises:
        KeyboardInterrupt: The user interrupted the replay; nothing is left of it.
    """
    began = time.process_time()
    path = replayer.fork_path(request)
    is_found, exists = replayer.has_fork(request), os.path.lexists(path)
    result: dict[str, Any] = {}
    if not is_found:
        try:
            result = _make_fork(replayer, request, path)
        except DigError as error:
            return Replay(None, why=one_line(error), cpu_s=time.process_time() - began)
        except Exception as error:  # a user's own code
            reason = one_line(f"{type(error).__name__}: {error}")
            return Replay(None, why=reason, cpu_s=time.process_time() - began)
    run = read_fork(path)
    if is_found:
        result = json.loads(read_file(path / RESULT))
        if result.get("score"):  # a better scorer judges a stored fork anew
            score = replayer.make_crew().score(run.answer.payload if run.answer else None)
            result["score"] = asdict(score) if score else None
    judged = replayer.goal(replayer.source.finished(request.at, run, result))
    cpu_s, costs = 0.0 if is_found else time.process_time() - began, Costs()
    for record in () if is_found else run.records[request.at :]:
        costs(record)
    origin: Origin = "found" if is_found else "made"
    if exists and not (is_found or replayer.trying.is_fresh or replayer.trying.crew):
        origin = "made again"
    return Replay(path, judged.good, judged.progress, judged.why, cpu_s, costs.sums, origin)


def _make_fork(replayer: Replayer, request: ReplayRequest, path: Path) -> dict[str, Any]:
    """Fork into a hidden directory, rename the whole fork, and return the result."""
    hidden = replayer.forks / f".{path.name}-{os.getpid()}-{secrets.token_hex(2)}"
    try:
        make = _continue_run if replayer.trying.entry is None else _run_again
        fork, result = make(replayer, request, hidden)
        result = {**result, "directory": str(path)}
        write_file(fork / RESULT, f"{json.dumps(result, indent=2)}\n".encode())
        if path.is_dir() and not path.is_symlink():
            rmtree(path)
        else:
            path.unlink(missing_ok=True)  # of a link, what it leads to stays
        read_fork.cache_clear()  # the fork that lay at this path may be in it
        fork.rename(path)
        # Without a cache there is no receipt, and the fork is made again next time.
        with suppress(OSError, RuntimeError):
            receipt = _receipt_path(path)
            receipt.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_file(receipt, f"{path}\n".encode("utf-8", "surrogateescape"))
        return result
    finally:
        rmtree(hidden, ignore_errors=True)


def _continue_run(replayer: Replayer, request: ReplayRequest, runs: Path) -> tuple[Path, Row]:
    """Fork a run; returns the directory and the result of the fork."""
    trying = replayer.trying
    is_named = trying.team or trying.crew or trying.task or trying.same_model
    fork = forking.fork(
        replayer.path, request.at, runs, changes=_read_changes(request), repeat=request.repeat,
        crew=replayer.make_crew() if is_named else None, detectors=trying.detectors,
        disturb=trying.disturb,
    )  # fmt: skip
    if fork.result.reason == INTERRUPTED:
        raise KeyboardInterrupt
    return fork.directory, fork.to_json()


def _run_again(replayer: Replayer, request: ReplayRequest, runs: Path) -> tuple[Path, Row]:
    """Run a wrapped team again; returns the directory and the result of the new run."""
    origin = {
        "run": str(replayer.path), "execution": replayer.source.side.get("execution"),
        "at": request.at, "repeat": request.repeat, "changes": [*request.changes],
    }  # fmt: skip
    served = Served(
        replayer.source.run, request.at, runs, changes=_read_changes(request),
        about={"forked_from": origin},
    )  # fmt: skip
    with redirect_stdout(sys.stderr):  # it may print
        anyio.run(served.run, load(replayer.trying.entry or "", "entry"), unwrap)
    assert served.directory is not None
    return served.directory, json.loads(read_file(served.directory / RESULT))


def _read_changes(request: ReplayRequest) -> Any:
    return read_interventions(request.changes) if request.changes else ()


@lru_cache(maxsize=4)
def _digests(path: Path, detectors: tuple[str, ...]) -> list[bytes]:
    """The checksums of the first records of a source, for each number of records."""
    hasher, digests = blake2b(digest_size=16), [b""]
    for record in read_source(path, detectors).run.records:
        hasher.update(encode(record).encode())
        digests.append(hasher.digest())
    return digests


# --- receipts: which of the forks that are there are believed ---


def cache_folder() -> Path:
    """Return the folder of this program in the user's cache, by the convention of the platform.

    Raises:
        RuntimeError: The user has no home directory.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():  # a relative one could lie beside a run; the convention ignores it
        return named / "dig-monitor"
    folder = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")
    return Path.home() / folder / "dig-monitor"


def _has_receipt(fork: Path) -> bool:
    """Whether a directory is a fork made by the user, with the same trace and result."""
    try:
        return not fork.is_symlink() and _receipt_path(fork).is_file()
    except (OSError, RuntimeError):
        return False


def _receipt_path(fork: Path) -> Path:
    """The file in the cache, named by the checksum of a fork."""
    # The fork's name is part of it: one fork in the place of another is not believed either.
    hasher = blake2b(fork.name.encode("utf-8", "surrogateescape"), digest_size=32)
    for path in (fork / RESULT, *segments(trace_path(fork))):
        with open_file(path) as file:
            hasher.update(file_digest(file, "sha256").digest())
    return cache_folder() / "forks" / hasher.hexdigest()
