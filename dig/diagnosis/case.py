"""A recorded run with the files beside it, and the case for suspects.

A `RunSource` knows the side file and the result, since experiments and goals need them. A `Case` is
what suspects are given: it has neither seeds, nor faults, nor the true answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from dig._util.files import checksum, read_json
from dig.adapters.plain.adapter import PLAIN_TEAM
from dig.detectors import plugins, standard
from dig.detectors.headline import Headline
from dig.detectors.protocols import Detector
from dig.errors import RuleError, SettingsError, TraceError
from dig.graph.records import STOPPED_FROM_OUTSIDE, Finish
from dig.show.document import Attempt, Failure, forks_beside
from dig.tasks.accounting import PAYLOADS, Accounting
from dig.tasks.catalogue import TASKS
from dig.tasks.run.arrange import make_task
from dig.tasks.run.execute import INTERRUPTED
from dig.tasks.run.team_run import TeamRun
from dig.tasks.task import Task
from dig.traces.journal.journal import RESULT, SIDE, read_side
from dig.traces.journal.reader import trace_path
from dig.traces.run import RecordedRun

from .attempts import find_attempts
from .failures import failures
from .goal import Finished, Goal, Judgement, Standing, milestones
from .signs.analysis import RunAnalysis, Sign, UsualTeam
from .signs.table import find_signs

SourceKind = Literal["run", "trace"]


@dataclass(frozen=True)
class Case:
    """The knowledge of a suspect.

    Attributes:
        name: The name of the source.
        kind: `run`, or `trace` for one without a side file.
        run: Its records, as events and activations.
        failures: Why it is not good.
        attempts: The parts of it that try to solve the problem by one plan.
        accounting: Reads the payloads of its events; ``None``: nothing does.
        usual: The usual habits in good runs of its sort, as the measure for signs; without any, the
            other agents of the run are.
        headline: The failed request, or the answer that lacks an agent's work; ``None``: none.
    """

    name: str
    kind: SourceKind
    run: RecordedRun
    failures: tuple[Failure, ...]
    attempts: tuple[Attempt, ...]
    accounting: Accounting | None = PAYLOADS
    usual: UsualTeam = field(default_factory=UsualTeam)
    headline: Headline | None = None

    @cached_property
    def steps(self) -> Mapping[str, int]:
        """The number of each activation, counted from 0 in the order of starts."""
        return {name: number for number, name in enumerate(self.run.activations)}

    @cached_property
    def analysis(self) -> RunAnalysis:
        """The analysis of the run, for signs."""
        return RunAnalysis(self.run, self.accounting, self.usual)

    @cached_property
    def signs(self) -> Sequence[Sign]:
        """The signs about the agents of the run."""
        return find_signs(self.analysis)

    @cached_property
    def attempt_of(self) -> Mapping[str | None, str]:
        """The attempt of each activation."""
        attempts = reversed(self.attempts)  # of several, the first one counts
        return {name: attempt.id for attempt in attempts for name in attempt.activations}


@dataclass(frozen=True)
class RunSource:
    """A recorded run to explain.

    Attributes:
        path: The run directory or trace.
        side: The content of the side file; empty if there is none.
        result: The content of `result.json`; empty if there is none.
        run: Its records, with payloads.
        standing: Its errors, by the detectors of the run.
        detectors: The user's detectors, as `module:object`.
    """

    path: Path
    trace: Path
    side: Mapping[str, Any]
    result: Mapping[str, Any]
    run: RecordedRun
    standing: Standing
    detectors: tuple[str, ...] = ()
    _finished: dict[int, Finished] = field(default_factory=dict)
    _judged: dict[tuple[str, int], Judgement] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, detectors: Sequence[str] = ()) -> RunSource:
        """Read a run directory or a trace.

        Args:
            path: The run directory or trace.
            detectors: The user's detectors, as `module:object`.

        Raises:
            TraceError: The trace cannot be read or breaks a rule.
            SettingsError: A file beside it is damaged.
        """
        trace = trace_path(path)
        standing = Standing(_detectors(detectors))
        run = RecordedRun.read(path, payloads=True, detectors=standing, stored=True)
        if not run.records:
            raise TraceError(trace, None, "has no record")
        side = read_side(trace.parent) if (trace.parent / SIDE).exists() else {}
        return cls(path, trace, side, _result(trace.parent), run, standing, tuple(detectors))

    @property
    def name(self) -> str:
        """The name of the run directory, or of the file without endings."""
        return self.trace.parent.resolve().name if self.side else self.trace.name.split(".")[0]

    @property
    def kind(self) -> SourceKind:
        """`run`, or `trace` without a side file."""
        return "run" if self.side else "trace"

    @property
    def sha256(self) -> str:
        """The checksum of the trace."""
        return checksum(self.trace)

    @property
    def is_whole(self) -> bool:
        """Whether the run was neither cut off nor interrupted."""
        is_halted = any(row.what == STOPPED_FROM_OUTSIDE for row in self.run.incidents)
        is_interrupted = is_halted or self.result.get("reason") == INTERRUPTED  # of an older run
        return self.run.finish is not None and not is_interrupted

    @property
    def wrapped(self) -> str | None:
        """The wrapped team, if the run has one: code outside of dig."""
        return str(self.side.get("team")) if "capabilities" in self.side else None

    @property
    def is_plain_team(self) -> bool:
        """Whether the wrapped team is one of plain callables: it can run again."""
        return self.wrapped == PLAIN_TEAM

    @property
    def forks(self) -> Path:
        """The directory of the forks, unless a user names another."""
        return forks_beside(self.trace)

    @cached_property
    def task(self) -> Task | None:
        """The task of the run, if this package has it."""
        # No other code is imported because a file, which may come from anybody, names it.
        if self.side.get("task") not in [*TASKS]:
            return None
        try:
            return make_task(TeamRun.read(self.side))
        except SettingsError:  # its data are not here, for instance
            return None

    def finished(
        self, since: int = 0, run: RecordedRun | None = None, result: Any = None
    ) -> Finished:
        """Prepare the run, or a fork, for a goal.

        Args:
            since: The first record whose findings count.
            run: The fork; ``None``: the run itself.
            result: The result of the fork.
        """
        # Judging goes through all records with all detectors, and experiments ask again and again.
        if run is None and since in self._finished:
            return self._finished[since]
        recorded = run or self.run
        records, finish = recorded.records, recorded.last
        result = self.result if result is None else result
        # Beside a plain trace there is no result; its last record tells the outcome all the same.
        if not result and isinstance(finish, Finish):
            result = {"outcome": finish.outcome}
        try:
            finished = Finished.of(
                records, result, self.standing if run is None else _detectors(self.detectors),
                since=since, task=self.task, name=self.name, run=recorded,
            )  # fmt: skip
        except RuleError as error:
            raise TraceError(self.trace, None, str(error)) from None
        if run is None:
            self._finished[since] = finished
        return finished

    def judged(self, goal: Goal, since: int = 0) -> Judgement:
        """Judge the run, with the progress; findings before `since` do not count."""
        key = (goal.text, since)
        if key not in self._judged:
            self._judged[key] = goal(self.finished(since))
        return self._judged[key]

    def milestones(self, goal: Goal) -> int:
        """Return the number of milestones."""
        return len(milestones(self.finished(), self.judged(goal)))

    def case(
        self, goal: Goal, accounting: Accounting | None = None, usual: UsualTeam | None = None
    ) -> Case:
        """Make the case for suspects.

        Args:
            goal: When the run is good.
            accounting: Reads its payloads; ``None``: as its task does.
            usual: The usual habits in good runs of its sort, if they are known.
        """
        attempts = (each for group in find_attempts(self.run).values() for each in group)
        accounting = accounting or getattr(self.task, "accounting", PAYLOADS)
        finished = self.finished()
        return Case(
            self.name, self.kind, self.run, failures(finished, goal), tuple(attempts), accounting,
            usual or UsualTeam(), finished.headline,
        )  # fmt: skip


def read_case(path: Path, goal: Goal | None = None) -> Case:
    """Read the case of a recorded run, for suspects.

    Args:
        path: The run directory or trace.
        goal: When it is good; ``None``: the default.

    Raises:
        TraceError: The trace cannot be read or breaks a rule.
        SettingsError: A file beside it is damaged, or the goal cannot be judged.
    """
    return RunSource.read(path).case(goal or Goal.parse("default"))


def _detectors(names: Sequence[str]) -> list[Detector]:
    return [*standard(), *plugins.detectors(names)]


def _result(folder: Path) -> Mapping[str, Any]:
    path = folder / RESULT
    if not path.exists():
        return {}
    result = read_json(path)
    if not isinstance(result, dict):
        raise SettingsError(f"{path} is no JSON object")
    return result
