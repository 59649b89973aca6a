"""Seats: one member of a team decides in place of another; and what follows from one that helps.

A seat that helps says which agent is at fault. From its forks come the first record that differs,
the last moment at which it still helps, and the one decision that would have been enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from dig.diagnosis.case import Case
from dig.diagnosis.components import blamed
from dig.diagnosis.interventions.recorded import decision_of
from dig.graph.codec import encode
from dig.graph.records import End, Join, Leave, Record, Run, Start
from dig.show.document import Candidate, Hypothesis
from dig.traces.run import RecordedRun

from .arms import Trials, Tried, first_of, moved
from .fulfilment import Compared, differing, is_other

DRAWS = 2
"""The number of other decisions of an activation that are looked at."""


def seat(case: Case, team: Mapping[str, object], candidate: Candidate) -> Hypothesis | None:
    """A hypothesis: with another member in its seat the run is good; ``None``: there is none.

    Args:
        case: The run.
        team: The agents that go on, by name. Only agents of the same class, with the same tools,
            can do each other's work.
        candidate: The candidate; the seat is taken from the agent's first activation on.
    """
    first = (one.t for one in case.run.activations.values() if one.agent == candidate.agent)
    at = next(first, candidate.t or 0)
    blame = Counter(agent for _, agents in blamed(case.run.records) for agent in agents)
    like = [
        name
        for name in present(case.run.records, at)
        if name != candidate.agent and name in team and candidate.agent in team
        and _are_alike(team[name], team[candidate.agent])
    ]  # fmt: skip
    if not like:
        return None
    by = min(like, key=lambda name: (blame[name], name))
    row = {"kind": "seat", "at": at, "agent": candidate.agent, "by": by}
    attempt = case.attempt_of(candidate.activation)
    return Hypothesis(id="h0", candidate=candidate.id, interventions=(row,), attempt=attempt)


def present(records: list[Record], at: int) -> list[str]:
    """The agents that are present just before a record."""
    found: dict[str, None] = {}
    for record in records[: max(at, 1)]:
        match record:
            case Run(agents=agents):
                found.update(dict.fromkeys(agents))
            case Join(agent=agent):
                found[agent] = None
            case Leave(agent=agent):
                found.pop(agent, None)
            case _:
                pass
    return [*found]


def _are_alike(one: object, other: object) -> bool:
    same = type(one) is type(other)
    return same and getattr(one, "tools", None) == getattr(other, "tools", None)


def first_difference(fork: RecordedRun, control: RecordedRun) -> int | None:
    """The first record of a fork that is otherwise in its control; ``None``: there is none.

    Where an activation ends sooner than in the control, its agent was late from its start on: then
    it is that start.
    """
    for one, other in zip(fork.records, control.records, strict=False):
        if encode(one) != encode(other):
            return _late_from(one, control) or one.t
    short = min(len(fork.records), len(control.records))
    return None if len(fork.records) == len(control.records) else short


def _late_from(record: Record, control: RecordedRun) -> int | None:
    """The start of the activation that a record ends, if it ended later in the control."""
    late = control.activations.get(record.activation) if isinstance(record, End) else None
    is_late = late is not None and (late.end is None or late.end.us > record.us)
    return late.t if late is not None and is_late else None


def starts_of(run: RecordedRun, agent: str, at: int) -> list[int]:
    """The starts of the activations of an agent from a record on."""
    return [
        record.t
        for record in run.records[at:]
        if isinstance(record, Start) and record.agent == agent
    ]


def last_help(case: Case, trials: Trials, hypothesis: Hypothesis) -> int | None:
    """The latest activation of its agent from which a seat still helps: its start.

    The activations are bisected, each tried once: what helps from one helps from all before it.

    Args:
        case: The run.
        trials: Makes the replays.
        hypothesis: A seat that helps.
    """
    starts = starts_of(case.run, _agent(hypothesis), first_of(hypothesis))
    helps, fails = 0, len(starts)
    while fails - helps > 1:
        middle = (helps + fails) // 2
        tried = trials.once(moved(hypothesis, starts[middle], "h0"))
        if tried.reason == "budget":
            return None
        helps, fails = (middle, fails) if tried.verdict == "validated" else (helps, middle)
    return starts[helps] if starts else None


def better_decisions(case: Case, trials: Trials, tried: Tried) -> Iterator[Hypothesis]:
    """Single decisions of a seat that helps, each in place of the recorded one.

    Args:
        case: The run.
        trials: Made the replays of the seat.
        tried: The seat, and what came of it.
    """
    fork = trials.fork_of(tried.hypothesis)
    if fork is None:
        return
    compared = Compared(case.run, fork, case.run)
    pair = next(differing(_agent(tried.hypothesis), tried.at, compared), None)
    if pair is None or pair[1] is None or pair[1].end is None or pair[1].id != pair[0].id:
        return
    row = {"kind": "edit", "at": pair[1].end.t, "edit": decision_of(fork, pair[0])}
    yield Hypothesis(
        id="h0", candidate=tried.hypothesis.candidate, interventions=(row,),
        attempt=case.attempt_of(pair[1].id),
    )  # fmt: skip


def redrawn_decision(
    case: Case, trials: Trials, candidate: str, activation: str
) -> Hypothesis | None:
    """Another decision that the same agent might have made, in place of the recorded one.

    It comes from a replay with other random numbers: for a habit that an agent gives in to now and
    then, this is what it does otherwise.

    Args:
        case: The run.
        trials: Makes the replays.
        candidate: The candidate that the hypothesis is about.
        activation: The activation.
    """
    recorded = case.run.activations[activation]
    if recorded.end is None or not trials.manner.is_paired:
        return None
    for k in range(1, DRAWS + 1):
        other = trials.repeated(recorded.t, k)
        new = other.activations.get(activation) if other else None
        if other is None or new is None or new.inputs != recorded.inputs:
            continue
        if is_other(other, new, case.run, recorded):
            row = {"kind": "edit", "at": recorded.end.t, "edit": decision_of(other, new)}
            return Hypothesis(
                id="h0", candidate=candidate, interventions=(row,),
                attempt=case.attempt_of(activation),
            )  # fmt: skip
    return None


def _agent(hypothesis: Hypothesis) -> str:
    return str(hypothesis.interventions[0]["agent"])
