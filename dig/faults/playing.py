"""A run with faults, in memory and in virtual time; without faults it is the twin.

Nothing in the trace tells of a fault: what was injected is told beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dig.codec import encode
from dig.records import Emit, End, Leave, Record, Start
from dig.runtime.result import RunResult
from dig.tasks.runs import TeamRun
from dig.tasks.task import Score

from .fault import Fault
from .injecting import Injected
from .injector import Touch
from .payloads import payloads_of


@dataclass(frozen=True, slots=True)
class Injection:
    """One act of a fault.

    Attributes:
        fault: The fault's place in the list of faults.
        t: The number of the first record that may be another one because of it: the `start` of
            an activation that takes longer, the `emit` of a message that was changed, the `end`
            of an activation that decides otherwise, a `leave`.
        ts: That record's time, in seconds since the run began.
        agent: Whose act it was.
        activation: In which activation, if in one.
        what: What was done, in words.
    """

    fault: int
    t: int
    ts: float
    agent: str
    activation: str | None
    what: str

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Played:
    """A run that was played.

    Attributes:
        run: Its configuration.
        faults: What was injected; none: it is a twin, or a run of the baseline.
        records: Its trace.
        result: How it ended.
        score: How good its answer is; ``None`` if nobody can tell.
        injections: What the faults did, in order of `t`.
    """

    run: TeamRun
    faults: tuple[Fault, ...]
    records: tuple[Record, ...]
    result: RunResult
    score: Score | None
    injections: tuple[Injection, ...]


def play(run: TeamRun, faults: Sequence[Fault] = ()) -> Played:
    """Play a run in virtual time.

    Args:
        run: Its configuration; the same one gives the same bytes.
        faults: What is injected; none: its twin.

    Raises:
        SettingsError: There is no such task or team, or a target is not in it.
    """
    task = run.make_task()
    arranged = run.arranged(task)
    injected = Injected(arranged.team, faults, run.seed, payloads_of(task.name))
    records: list[Record] = []
    simulation = run.simulation(
        task, records.append, arranged=replace(arranged, team=injected.team)
    )
    for at_s, happening in injected.happenings():
        simulation.plan(at_s, happening)
    result = simulation.run()
    trace = tuple(map(without_policy, records))
    score = task.score(result.answer)
    return Played(run, tuple(faults), trace, result, score, placed(injected.touches, trace))


def without_policy(record: Record) -> Record:
    """A record that does not name a delivery policy, which would tell of the fault behind it."""
    if isinstance(record, Emit) and record.policy is not None:
        return replace(record, policy=None)
    return record


def lines(records: Iterable[Record]) -> bytes:
    """Records as the bytes of a trace."""
    return "".join(f"{encode(record)}\n" for record in records).encode()


def placed(touches: Iterable[Touch], records: Sequence[Record]) -> tuple[Injection, ...]:
    """Where in a trace faults have acted.

    Args:
        touches: What they did. What came to nothing, since the run was over, is left out.
        records: The trace.
    """
    places = _Places(records)
    found = [places.of(touch) for touch in touches]
    return tuple(sorted(filter(None, found), key=lambda one: (one.t, one.fault)))


class _Places:
    """The records of a trace by what they are about."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._starts: dict[str, list[Start]] = defaultdict(list)
        self._leaves: dict[str, list[Leave]] = defaultdict(list)
        self._ends: dict[str, End] = {}
        self._emits: dict[str, Emit] = {}
        for record in records:
            if isinstance(record, Start):
                self._starts[record.agent].append(record)
            elif isinstance(record, Leave):
                self._leaves[record.agent].append(record)
            elif isinstance(record, End):
                self._ends[record.activation] = record
            elif isinstance(record, Emit):
                self._emits[record.event] = record

    def of(self, touch: Touch) -> Injection | None:
        if touch.turn == 0:
            return _injection(touch, self._leaves[touch.agent].pop(0), None)
        start = self._starts[touch.agent][touch.turn - 1]
        end = self._ends.get(start.activation)
        if touch.since_start:
            return _injection(touch, start, start.activation)
        if end is None:
            return None
        place = end if touch.place is None else self._emits[end.outputs[touch.place]]
        return _injection(touch, place, start.activation)


def _injection(touch: Touch, place: Record, activation: str | None) -> Injection:
    return Injection(touch.fault, place.t, place.ts, touch.agent, activation, touch.what)
