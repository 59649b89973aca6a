"""Seats: a member of a team decides in place of another; and conclusions from a helpful seat.

A seat that helps says which agent is at fault. From its forks come the first record that differs,
the last moment at which it still helps, and the one decision that would have been enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from dig.diagnosis.case import Case
from dig.diagnosis.components import blamed_agents
from dig.diagnosis.interventions.recorded import decision_of
from dig.graph.codec import encode
from dig.graph.records import End, Join, Record, Run, Start
from dig.show.document import Candidate, Hypothesis
from dig.traces.run import RecordedRun

from .arms import Trials, Tried, first_record, move
from .fulfilment import ForkComparison, differing_decisions, is_other

DRAWS = 2
"""The number of other decisions of an activation to look at."""


def propose_seat(case: Case, team: Mapping[str, object], candidate: Candidate) -> Hypothesis | None:
    """Propose another member for the seat of a candidate; ``None``: nobody can take it.

    Args:
        case: The run.
        team: The agents that go on, by name. Only agents of the same class, with the same tools,
            can do each other's work.
        candidate: The candidate; the seat is taken from the agent's first activation on.
    """
    agent = candidate.agent
    starts = (act.t for act in case.run.activations.values() if act.agent == agent)
    at = next(starts, candidate.t or 0)
    blame = Counter(name for _, names in blamed_agents(case.run) for name in names)
    alike = [
        name
        for name in present_agents(case.run, at)
        if name != agent and name in team and agent in team and _are_alike(team[name], team[agent])
    ]
    if not alike:
        return None
    # The agent that is blamed least does it best; the name makes the choice repeatable.
    by = min(alike, key=lambda name: (blame[name], name))
    row = {"kind": "seat", "at": at, "agent": agent, "by": by}
    attempt = case.attempt_of.get(candidate.activation)
    return Hypothesis(id="h0", candidate=candidate.id, interventions=(row,), attempt=attempt)


def present_agents(run: RecordedRun, at: int) -> list[str]:
    """Return the agents present just before a record, in order of arrival."""
    first = run.records[0]
    present = dict.fromkeys(first.agents if isinstance(first, Run) else ())
    for record in run.membership:
        if record.t < at and isinstance(record, Join):
            present[record.agent] = None
        elif record.t < at:
            present.pop(record.agent, None)
    return [*present]


def _are_alike(agent: object, other: object) -> bool:
    is_same = type(agent) is type(other)
    return is_same and getattr(agent, "tools", None) == getattr(other, "tools", None)


def first_difference(fork: RecordedRun, control: RecordedRun) -> int | None:
    """Return the first different record of a fork and the control; ``None``: there is none.

    Where an activation ends sooner than in the control, its agent was late from its start on: then
    it is that start.
    """
    for record, other in zip(fork.records, control.records, strict=False):
        if encode(record) != encode(other):
            return _late_from(record, control) or record.t
    short = min(len(fork.records), len(control.records))
    return None if len(fork.records) == len(control.records) else short


def _late_from(record: Record, control: RecordedRun) -> int | None:
    """The start of the activation ended by a record, if the end was later in the control."""
    late = control.activations.get(record.activation) if isinstance(record, End) else None
    is_late = late is not None and (late.end is None or late.end.us > record.us)
    return late.t if late is not None and is_late else None


def starts_of(run: RecordedRun, agent: str, at: int) -> list[int]:
    """Return the starts of the activations of an agent from a record on."""
    return [
        record.t
        for record in run.records[at:]
        if isinstance(record, Start) and record.agent == agent
    ]


def last_help(case: Case, trials: Trials, hypothesis: Hypothesis) -> int | None:
    """Return the start of the latest activation with a helpful seat.

    The activations are bisected, each tried once: what helps from one helps from all before it.

    Args:
        case: The run.
        trials: Makes the replays.
        hypothesis: A seat that helps.
    """
    agent = str(hypothesis.interventions[0]["agent"])
    starts = starts_of(case.run, agent, first_record(hypothesis))
    helps, fails = 0, len(starts)
    while fails - helps > 1:
        middle = (helps + fails) // 2
        trial = trials.verify_once(move(hypothesis, starts[middle]))
        if trial.reason == "budget":
            return None
        helps, fails = (middle, fails) if trial.verdict == "validated" else (helps, middle)
    return starts[helps] if starts else None


def better_decisions(case: Case, trials: Trials, trial: Tried) -> Iterator[Hypothesis]:
    """Propose the first new decision of a helpful seat, in place of the recorded decision.

    Args:
        case: The run.
        trials: Made the replays of the seat.
        trial: The seat, and what came of it.
    """
    fork = trials.fork_of(trial.hypothesis)
    if fork is None:
        return
    agent = str(trial.hypothesis.interventions[0]["agent"])
    decisions = differing_decisions(agent, trial.at, ForkComparison(case.run, fork, case.run))
    new, old = next(decisions, (None, None))
    # Another activation has other inputs, so only the same one can take over the decision.
    if new is None or old is None or old.end is None or old.id != new.id:
        return
    row = {"kind": "edit", "at": old.end.t, "edit": decision_of(fork, new)}
    yield Hypothesis(
        id="h0", candidate=trial.hypothesis.candidate, interventions=(row,),
        attempt=case.attempt_of.get(old.id),
    )  # fmt: skip


def redrawn_decision(
    case: Case, trials: Trials, candidate: str, activation: str
) -> Hypothesis | None:
    """Propose another decision of the same agent, in place of the recorded decision.

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
        other = trials.repeat_of(recorded.t, k)
        new = other.activations.get(activation) if other else None
        if other is None or new is None or new.inputs != recorded.inputs:
            continue
        if is_other(other, new, case.run, recorded):
            row = {"kind": "edit", "at": recorded.end.t, "edit": decision_of(other, new)}
            return Hypothesis(
                id="h0", candidate=candidate, interventions=(row,),
                attempt=case.attempt_of.get(activation),
            )  # fmt: skip
    return None
