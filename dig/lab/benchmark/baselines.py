"""Baseline attributors: name a failure's root cause from the trace alone.

Real attributors must score higher. No baseline follows causes. Beside a trace they know the public
part of a set: which kinds of faults there are with which first error, and the runs without a fault.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType

from dig.diagnosis.case import Case
from dig.diagnosis.causes import OUTCOME
from dig.diagnosis.signs.analysis import UsualTeam
from dig.diagnosis.signs.table import find_signs, learn_habits
from dig.errors import SettingsError
from dig.faults.inject.fault_catalogue import KINDS
from dig.graph.records import Emit, End, HealRow, Record, Run, Start
from dig.tasks.accounting import PAYLOADS

from .answer_file import Answer, CausalStep, RootCause
from .instances import BASELINE, FaultSet
from .rules import Found
from .set_reading import read_run, step_at

Baseline = Callable[[Case], Answer]
"""Names the causes of a run's failure, by its trace; none, if nothing went wrong."""


def random_agent(fault_set: FaultSet) -> Baseline:
    """Any agent, any kind; the same for the same run."""

    def attribute(case: Case) -> Answer:
        run = case.run.records
        first = _header(run)
        # Seeded by the run, so that the floor stands at the same height each time.
        chance = random.Random(f"random/{first.run}/{len(run)}")
        return blame(run, chance.choice(first.agents), chance.choice([*KINDS]), len(run) - 1)

    return attribute


def by_surface(name: Callable[[Sequence[Record]], Found | None], _: FaultSet) -> Baseline:
    """Name agent and kind by the signs of a page of rules, written from the catalogue alone.

    Args:
        name: Chooses among the signs: `rules` or `learned`.
    """

    def attribute(case: Case) -> Answer:
        run = case.run.records
        accusation = name(run)
        return blame(run, *accusation) if accusation else Answer()

    return attribute


def earliest_deviation(fault_set: FaultSet) -> Baseline:
    """Blame the agent of the first sign with few like it in runs without a fault."""
    peers = Peers(fault_set)

    def attribute(case: Case) -> Answer:
        usual = peers.usual(case.run.records)
        rare = [
            sign
            for sign in find_signs(replace(case, usual=usual).analysis)
            # A sign without a mechanism blames no agent.
            if sign.mechanism is not None and usual.share(sign.name) <= RARE
        ]
        first = min(rare, key=lambda sign: sign.t, default=None)
        if first is None:
            return Answer()
        return blame(case.run.records, first.agent, kind_of_mechanism(first.mechanism), first.t)

    return attribute


class Peers:
    """The runs without a fault of a set, as the measure for the signs of others."""

    def __init__(self, fault_set: FaultSet) -> None:
        """Read nothing yet."""
        self._set = fault_set
        # Learning reads all runs of a sort, so each sort is learned once.
        self._learned: dict[tuple[object, ...], UsualTeam] = {}

    @cached_property
    def _runs(self) -> Mapping[tuple[object, ...], Sequence[Sequence[Record]]]:
        runs: dict[tuple[object, ...], list[Sequence[Record]]] = {}
        for path in sorted((self._set.path / BASELINE).glob("*/*.dig.jsonl")):
            run = read_run(path)
            task, problem, *more = _sort(run)
            # A trace without contents names no task, and not how large its problem is.
            for sort in {(task, problem, *more), (None, (), *more)}:
                runs.setdefault((*sort, _is_healed(run)), []).append(run)
        return runs

    def usual(self, records: Sequence[Record]) -> UsualTeam:
        """The habits of the runs of the same sort as a run; of none, if there is no such run."""
        sort = (*_sort(records), _is_healed(records))
        if sort not in self._learned:
            self._learned[sort] = learn_habits(self._runs.get(sort, ()), PAYLOADS)
        return self._learned[sort]


KIND_OF: Mapping[str, str] = MappingProxyType(
    {
        "lost": "drop", "late": "delay", "misaddressed": "address_nobody", "astray": "misaddress",
        "failed": "crash", "left": "leave", "hung": "stall", "slow": "slow", "silent": "silent",
        "waiting": "hoard", "passed-on": "pass_on", "discarded": "discard_needed",
        "dealt-twice": "split_twice", "kept": "work_on_others_part", "stale": "replay_stale",
        "damaged": "corrupt", "early": "submit_early", "withheld": "never_submit",
    }
)  # fmt: skip
"""The kind of fault that each mechanism looks like."""
UNKNOWN = "unknown"
"""The kind of a candidate that names no mechanism."""
RARE = 0.02
"""The share of runs without a fault that may have a sign which still counts as rare."""


def kind_of_mechanism(mechanism: str | None) -> str:
    """The kind of fault that resembles a mechanism; else the name of the mechanism."""
    return KIND_OF.get(mechanism, mechanism) if mechanism is not None else UNKNOWN


def _header(run: Sequence[Record]) -> Run:
    first = run[0]
    if not isinstance(first, Run):
        raise SettingsError("a trace begins with a record of kind `run`")
    return first


def _sort(run: Sequence[Record]) -> tuple[object, ...]:
    """The configuration of a run, as far as the trace shows the settings."""
    first = _header(run)
    # The first event is the problem, which tells how large the task is.
    posed = next((record for record in run if isinstance(record, Emit)), None)
    problem, to = (PAYLOADS.about(posed), len(posed.to)) if posed is not None else ((), 0)
    return (first.task, problem, first.agents, to, first.session)


def _is_healed(run: Sequence[Record]) -> bool:
    return any(isinstance(record, HealRow) for record in run)


def _last(run: Sequence[Record]) -> Start | None:
    """The start of the activation with the last end."""
    starts = {record.activation: record for record in run if isinstance(record, Start)}
    ends = [record for record in run if isinstance(record, End)]
    return starts[ends[-1].activation] if ends else None


def blame(run: Sequence[Record], agent: str, kind: str, t: int) -> Answer:
    """Blame an agent for a failure; the path goes over the last agent at work to the outcome.

    Args:
        run: The records.
        agent: The agent.
        kind: The kind of its fault.
        t: The record that shows it.
    """
    # The agent with the last word gave the answer, or kept it from being given.
    last = _last(run)
    route = [agent, last.agent, OUTCOME] if last and last.agent != agent else [agent, OUTCOME]
    return Answer(
        root_causes=(RootCause(component=agent, kind=kind, evidence=(t,)),),
        propagation=tuple(
            CausalStep(source=source, target=target, evidence=(len(run) - 1,))
            for source, target in pairwise(route)
        ),
        step=step_at(run, t),
        onset=t,
    )
