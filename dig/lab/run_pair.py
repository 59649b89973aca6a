"""A run with faults, in memory and in virtual time, and the twin without faults.

The trace does not mention the faults; `Played` has them beside the trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dig.faults.inject.fault import Fault
from dig.faults.inject.faulty_team import FaultyTeam
from dig.faults.inject.injections import ActLocator, Injection
from dig.graph.codec import encode
from dig.graph.records import DISTURBANCE, Emit, FindingRow, Record, Run
from dig.runtime.result import RunResult
from dig.tasks.accounting import PAYLOADS, ReferenceAccounting, TaskParts
from dig.tasks.frequency import FrequencyTask
from dig.tasks.number_ranges import Range
from dig.tasks.run.arrange import arrange, make_simulation, make_task
from dig.tasks.run.team_run import TeamRun
from dig.tasks.task import Score
from dig.traces.run import RecordedRun

BESIDE = "CLA beside"
"""In sessions: CLA about an event delivered to an agent beside events of another problem."""


@dataclass(frozen=True)
class Played:
    """A finished run with faults and records.

    Attributes:
        run: The configuration.
        faults: The injected faults; a twin, or a run of the baseline, has none.
        score: The score of the answer; ``None`` if the task does not score.
        injections: The acts of the faults, in order of `t`.
        problem: The part that one problem of the run is about, to judge that problem alone;
            ``None``: the whole run.
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
        """The recorded run with the parts of the task."""
        run = RecordedRun(self.records)
        accounting = ReferenceAccounting(run) if self.run.remembers else PAYLOADS
        return TaskParts(run, accounting, self.problem)

    @cached_property
    def problems(self) -> tuple[Played, ...]:
        """The run from the view of each problem, to the end of the problem."""
        if self.run.problems == 1 or self.problem is not None:
            return (self,)
        return tuple(map(self._of_problem, filter(None, self.run.problem_parts)))

    def _of_problem(self, part: Range) -> Played:
        played = replace(self, problem=part)
        answer = played.parts.answer
        if answer is None:
            outcome = "timeout" if self.result.outcome == "timeout" else "stopped"
            result = replace(self.result, outcome=outcome, answer=None)
            return replace(played, score=None, result=result)
        task = make_task(self.run)
        assert isinstance(task, FrequencyTask)
        seconds = self.records[answer.t].ts
        result = replace(self.result, outcome="submitted", answer=answer.payload, seconds=seconds)
        return replace(played, result=result, score=task.score(answer.payload, part))

    @property
    def raised(self) -> dict[str, int]:
        """The number of findings, by pattern as in `pattern_of`."""
        if self.run.problems == 1:
            return self.result.raised()
        rows = (record for record in self.records if isinstance(record, FindingRow))
        return dict(Counter(pattern_of(row, is_session=True) for row in rows))

    @property
    def rmse(self) -> float | None:
        """The error of the answer, if known."""
        return self.score.rmse if self.score else None


def play(run: TeamRun, faults: Sequence[Fault] = ()) -> Played:
    """Play a run in virtual time.

    Args:
        run: The configuration; equal ones give equal bytes.
        faults: The faults to inject; none: the run is a twin.

    Raises:
        SettingsError: There is no such task or team, or a target is not in it.
    """
    task = make_task(run)
    arrangement = arrange(run, task)
    team = FaultyTeam.of_arrangement(arrangement, faults)
    records: list[Record] = []
    result = make_simulation(run, task, records.append, None, arrangement, team).run()
    # A policy would tell a reader of the trace which messages a fault has changed.
    trace = tuple(map(without_policy, records))
    injections = ActLocator(trace).locate(team.acts)
    return Played(run, team.faults, trace, result, task.score(result.answer), injections)


def pattern_of(row: FindingRow, *, is_session: bool) -> str:
    """The pattern of a finding; in a session, CLA at a delivery has a name of its own.

    An agent that works for several problems has their events side by side; CLA about a delivery
    says no more than that.

    Args:
        row: The finding.
        is_session: Whether the finding was raised in a session.
    """
    return BESIDE if is_session and (row.pattern, row.stage) == ("CLA", "delivery") else row.pattern


def without_policy(record: Record) -> Record:
    """Remove the delivery policy from a record: only faults have policies here."""
    if isinstance(record, Emit) and record.policy is not None:
        return replace(record, policy=None)
    return record


def publish_records(records: Iterable[Record], name: str) -> tuple[Record, ...]:
    """Remove from the records of a run all that tells how to play the run again.

    The header has a neutral name and no seed. Every message of an agent bears the mark of a
    disturbed delivery, so that the mark does not tell which messages a fault has disturbed; a
    continuation delivers such messages as recorded.

    Args:
        records: The records, as `Played` has them.
        name: The neutral name of the run.
    """

    def neutral(record: Record) -> Record:
        if isinstance(record, Run):
            return replace(record, run=name, seed=None)
        if isinstance(record, Emit) and record.by is not None and not record.final:
            return replace(record, policy=DISTURBANCE)
        return record

    return tuple(map(neutral, records))


def lines(records: Iterable[Record]) -> bytes:
    """Records as the bytes of a trace."""
    return "".join(f"{encode(record)}\n" for record in records).encode()
