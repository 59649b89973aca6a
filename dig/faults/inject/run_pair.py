"""A run with faults, in memory and in virtual time; without faults it is the twin.

The trace does not mention the faults; `Played` has them beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dig.graph.codec import encode
from dig.graph.records import DISTURBANCE, Emit, FindingRow, Record, Run
from dig.runtime.result import RunResult
from dig.tasks.accounting import PAYLOADS, ReferenceAccounting, TaskParts
from dig.tasks.frequency import FrequencyTask
from dig.tasks.ranges import Range
from dig.tasks.run.arrange import arrange, make_simulation, make_task
from dig.tasks.run.team_run import TeamRun
from dig.tasks.task import Score
from dig.traces.run import RecordedRun

from .fault import Fault
from .faulty_team import Injected
from .injections import Injection, Places

BESIDE = "CLA beside"
"""In sessions: CLA about an event that came to an agent beside events of another problem."""


@dataclass(frozen=True)
class Played:
    """A run that was played.

    Attributes:
        run: Its configuration.
        faults: The injected faults; none: it is a twin, or a run of the baseline.
        records: Its trace.
        result: The result of the run.
        score: The score of its answer; ``None`` if the task does not score.
        injections: The acts of the faults, in order of `t`; none: they had no occasion to act.
        problem: The part that its problem is about, if it is one of several; all else is that of
            the run.
    """

    run: TeamRun
    faults: tuple[Fault, ...]
    records: tuple[Record, ...]
    result: RunResult
    score: Score | None
    injections: tuple[Injection, ...]
    problem: Range | None = None

    @cached_property
    def parts(self) -> TaskParts:
        """Its record, with the parts of its task."""
        run = RecordedRun(self.records)
        accounting = ReferenceAccounting(run) if self.run.remembers else PAYLOADS
        return TaskParts(run, accounting, self.problem)

    @cached_property
    def problems(self) -> tuple[Played, ...]:
        """The run as seen from each of its problems, with the end of that one."""
        if self.run.problems == 1 or self.problem is not None:
            return (self,)
        return tuple(map(self._of_problem, filter(None, self.run.asked)))

    def _of_problem(self, asked: Range) -> Played:
        it = replace(self, problem=asked)
        answer = it.parts.answer
        if answer is None:
            how = "timeout" if self.result.outcome == "timeout" else "stopped"
            return replace(it, score=None, result=replace(self.result, outcome=how, answer=None))
        given, task = answer.payload, make_task(self.run)
        assert isinstance(task, FrequencyTask)
        seconds = self.records[answer.t].ts
        result = replace(self.result, outcome="submitted", answer=given, seconds=seconds)
        return replace(it, result=result, score=task.score(given, asked))

    @property
    def raised(self) -> dict[str, int]:
        """The number of findings, by pattern as `pattern_of` tells it."""
        if self.run.problems == 1:
            return self.result.raised()
        rows = (one for one in self.records if isinstance(one, FindingRow))
        return dict(Counter(pattern_of(row, is_session=True) for row in rows))

    @property
    def rmse(self) -> float | None:
        """The error of its answer, if that is known."""
        return self.score.rmse if self.score else None


def play(run: TeamRun, faults: Sequence[Fault] = ()) -> Played:
    """Play a run in virtual time.

    Args:
        run: Its configuration; the same one gives the same bytes.
        faults: The faults to inject; none: its twin.

    Raises:
        SettingsError: There is no such task or team, or a target is not in it.
    """
    task = make_task(run)
    arranged = arrange(run, task)
    injected = Injected.into(arranged, faults)
    records: list[Record] = []
    result = make_simulation(run, task, records.append, None, arranged, injected).run()
    trace = tuple(map(without_policy, records))
    injections = Places(trace).of(injected.touches)
    return Played(run, injected.faults, trace, result, task.score(result.answer), injections)


def pattern_of(row: FindingRow, *, is_session: bool) -> str:
    """The pattern of a finding; in a session, CLA about what nobody has put together is apart.

    There every agent that works for several problems has events of theirs side by side.

    Args:
        row: The finding.
        is_session: Whether the finding was raised in a session.
    """
    return BESIDE if is_session and (row.pattern, row.stage) == ("CLA", "delivery") else row.pattern


def without_policy(record: Record) -> Record:
    """A record that names no delivery policy: only faults have them here."""
    if isinstance(record, Emit) and record.policy is not None:
        return replace(record, policy=None)
    return record


def published(records: Iterable[Record], name: str) -> tuple[Record, ...]:
    """The records of a run that say nothing about how it can be played again.

    The header has a neutral name and no seed. Every message of an agent bears the mark of a
    disturbed delivery, so that the mark does not tell which ones a fault has disturbed; a
    continuation delivers such messages as recorded.

    Args:
        records: The records, as `Played` has them.
        name: The neutral name of the run.
    """
    return tuple(_neutral(record, name) for record in records)


def _neutral(record: Record, name: str) -> Record:
    if isinstance(record, Run):
        return replace(record, run=name, seed=None)
    if isinstance(record, Emit) and record.by is not None and not record.final:
        return replace(record, policy=DISTURBANCE)
    return record


def lines(records: Iterable[Record]) -> bytes:
    """Records as the bytes of a trace."""
    return "".join(f"{encode(record)}\n" for record in records).encode()
