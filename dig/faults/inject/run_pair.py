"""A run with faults, in memory and in virtual time; without faults it is the twin.

The trace does not mention the faults; `Played` has them beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dig.graph.codec import encode
from dig.graph.records import DISTURBANCE, Emit, Record, Run
from dig.runtime.result import RunResult
from dig.tasks.run.arrange import arrange, make_simulation, make_task
from dig.tasks.run.team_run import TeamRun
from dig.tasks.task import Score

from .fault import Fault
from .faulty_team import Injected
from .injections import Injection, Places


@dataclass(frozen=True)
class Played:
    """A run that was played.

    Attributes:
        run: Its configuration.
        faults: The injected faults; none: it is a twin, or a run of the baseline.
        records: Its trace.
        result: How it ended.
        score: The score of its answer; ``None`` if the task does not score.
        injections: The acts of the faults, in order of `t`; none: they had no occasion to act.
    """

    run: TeamRun
    faults: tuple[Fault, ...]
    records: tuple[Record, ...]
    result: RunResult
    score: Score | None
    injections: tuple[Injection, ...]

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
    arranged = replace(arranged, team=injected.team)
    simulation = make_simulation(run, task, records.append, arranged=arranged)
    for at_s, happening in injected.happenings():
        simulation.plan(at_s, happening)
    result = simulation.run()
    trace = tuple(map(without_policy, records))
    injections = Places(trace).of(injected.touches)
    return Played(run, injected.faults, trace, result, task.score(result.answer), injections)


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
