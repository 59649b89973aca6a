"""Suspects: what names the candidates of a case.

    for candidate in SUSPECTS["attribution"].candidates(case):
        print(candidate.agent, candidate.mechanism, candidate.evidence)

`SUSPECTS` is the table; a user's own is named `module:object`. Several are asked together by
`Together`, which merges what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Protocol

from dig._util.registry import Registry
from dig._util.text import counted, name, one_line
from dig.errors import SettingsError
from dig.graph.records import End
from dig.show.document import Candidate, Evidence
from dig.show.gate.checked import runs_in
from dig.tasks.accounting import PAYLOADS, Accounting
from dig.tasks.user_objects import load
from dig.traces.run import RecordedActivation

from .attribution.structural import SignGroup, StructuralAnswer
from .case import Case, RunSource
from .components import blamed
from .goal import Goal
from .signs.analysis import Sign, UsualTeam
from .signs.table import learn_habits

LEAST = 0.01
"""The weight of an agent against which nothing speaks."""
BLAMED = 0.1
"""The weight that findings add which are about an agent."""
MOST_EVIDENCE = 3
RAISED = 0.9
"""The share of the activation that raised the error of a failed request."""
CERTAIN = 0.9
"""The weight from which on a sign is certain."""


class Suspects(Protocol):
    """Names the candidates of a case."""

    def candidates(self, case: Case) -> Sequence[Candidate]:
        """The candidates, the likeliest first."""
        ...


@dataclass(frozen=True)
class BySigns:
    """The agents about which records show something odd, by what explains the failure.

    Attributes:
        by_agent: Finds what speaks against each agent, the likeliest agent first.
    """

    name: str
    by_agent: Callable[[Case], Sequence[Sequence[SignGroup]]]

    def candidates(self, case: Case) -> Sequence[Candidate]:
        """A candidate for each agent; its place is where its first sign is."""
        found = self.by_agent(case)
        weights = [max(some[0].score, LEAST) for some in found]
        made = [
            self._candidate(case, some, weight / sum(weights))
            for some, weight in zip(found, weights, strict=True)
        ]
        return [replace(one, id=f"c{number}") for number, one in enumerate(made, 1)] or (
            EveryAgent().blamed(case, self.name)
        )

    def _candidate(self, case: Case, some: Sequence[SignGroup], share: float) -> Candidate:
        """An agent as a candidate.

        Args:
            case: The run.
            some: The suspicions about the agent, the likeliest first.
            share: Its share.
        """
        first = some[0].first
        activation = case.run.activations.get(first.activation or "")
        event = case.run.events.get(first.event or "")
        is_message = event is not None and activation is not None and event.by == activation.id
        told = {(one.t, one.says): one for suspicion in some for one in suspicion.signs}
        return Candidate(
            id="c0", agent=first.agent, share=share, by=(self.name,),
            evidence=tuple(_evidence(case, one) for one in [*told.values()][:MOST_EVIDENCE]),
            mechanism=first.mechanism, status=some[0].status,
            step=case.steps.get(first.activation or ""),
            t=event.t if event and is_message else activation.t if activation else first.t,
            until=activation.end.t if activation and activation.end and not is_message else None,
            activation=first.activation, event=first.event if is_message else None,
            is_certain=first.weight >= CERTAIN and some[0].status == "origin",
        )  # fmt: skip


def _evidence(case: Case, sign: Sign) -> Evidence:
    step = case.steps.get(sign.activation or "")
    return Evidence(sign.t, one_line(sign.says, 200), step=step)


class EveryAgent:
    """Every agent that did something; likelier those that findings are about."""

    name = "agents"

    def candidates(self, case: Case) -> Sequence[Candidate]:
        """A candidate for each agent; its place is its first activation."""
        told = {agent for _, agents in blamed(case.run.records) for agent in agents}
        first: dict[str, RecordedActivation] = {}
        for activation in case.run.activations.values():
            first.setdefault(activation.agent, activation)
        weights = {agent: LEAST + BLAMED * (agent in told) for agent in first}
        whole = sum(weights.values())
        return ranked(
            self._candidate(case, one, weights[agent] / whole) for agent, one in first.items()
        )

    def blamed(self, case: Case, by: str) -> Sequence[Candidate]:
        """The agent that the first finding is about, if there is one.

        Args:
            case: The run.
            by: The suspect that has found no sign.
        """
        for finding, agents in blamed(case.run.records):
            for one in self.candidates(case):
                if one.agent in agents:
                    says = f"the first finding, {finding.pattern}, is about {name(one.agent)}"
                    shown = Evidence(finding.t, says)
                    return [replace(one, id="c1", share=1.0, by=(by,), evidence=(shown,))]
        return []

    def _candidate(self, case: Case, first: RecordedActivation, share: float) -> Candidate:
        """An agent as a candidate.

        Args:
            case: The run.
            first: Its first activation.
            share: Its share.
        """
        did = sum(one.agent == first.agent for one in case.run.activations.values())
        says = f"{name(first.agent)} acted {counted(did, 'time')}, first in {name(first.id)}"
        step = case.steps[first.id]
        return Candidate(
            id="c0", agent=first.agent, share=share, by=(self.name,), t=first.t, step=step,
            evidence=(Evidence(first.t, says, step=step),), activation=first.id,
        )  # fmt: skip


def _explained(case: Case) -> Sequence[Sequence[SignGroup]]:
    """The shares that ways from signs to the failure and to one another leave."""
    return StructuralAnswer(case).by_agent


def _explained_blind(case: Case) -> Sequence[Sequence[SignGroup]]:
    """The same, without knowing what payloads are about."""
    return _explained(replace(case, accounting=None))


def _strongest(case: Case) -> Sequence[Sequence[SignGroup]]:
    """The strongest sign first, whatever it led to."""
    return StructuralAnswer(case, explains=False).by_agent


SUSPECTS: Mapping[str, Suspects] = Registry(
    "suspects",
    {
        "attribution": BySigns("attribution", _explained),
        "attribution_blind": BySigns("attribution_blind", _explained_blind),
        "signs": BySigns("signs", _strongest),
        "agents": EveryAgent(),
    },
)
"""The suspects by name."""
USUAL_SUSPECTS = ("attribution",)
"""The suspects that are asked unless a user names others."""


def suspects_of(name_: str) -> Suspects:
    """The suspects with a name, or a user's own as `module:object`.

    Raises:
        SettingsError: There are no such suspects.
    """
    if name_ in SUSPECTS:
        return SUSPECTS[name_]
    if ":" not in name_:
        raise SettingsError(
            f"there is no suspect {name_!r}; known are: {', '.join(SUSPECTS)}, and your own as "
            "module:object"
        )
    found = load(name_, "suspect")
    made: Suspects = found() if isinstance(found, type) else found
    if not callable(getattr(made, "candidates", None)):
        raise SettingsError(f"{name_} has no method `candidates(case)`")
    return made


@dataclass(frozen=True)
class Together:
    """Several suspects, whose candidates are merged.

    Attributes:
        of: The suspects.
        names_all: Whether agents are named, too, against which nothing speaks.
    """

    of: tuple[Suspects, ...]
    names_all: bool = False

    def candidates(self, case: Case) -> Sequence[Candidate]:
        """The candidates of all: the same agent at the same place is one candidate."""
        found = merged([one.candidates(case) for one in self.of])
        if not self.names_all:
            return found
        named = {one.agent for one in found}
        others = [one for one in EveryAgent().candidates(case) if one.agent not in named]
        whole = 1 + LEAST * len(others) if found else LEAST * len(others)
        rest = [replace(one, share=LEAST) for one in others]
        return [
            replace(one, share=one.share / whole, id=f"c{number}")
            for number, one in enumerate([*found, *rest], 1)
        ]


def merged(found: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """The candidates of several suspects; of the same place those with all evidence are one.

    Args:
        found: The candidates of each, the likeliest first.
    """
    places: dict[tuple[str, str | None], list[Candidate]] = {}
    for some in found:
        for one in some:
            places.setdefault((one.agent, one.activation or one.event), []).append(one)
    if len(found) == 1 and all(len(some) == 1 for some in places.values()):
        return [*found[0]]
    weights = [1 - prod(1 - one.share for one in some) for some in places.values()]
    whole = sum(weights) or 1.0
    return ranked(
        _one(some, weight / whole) for some, weight in zip(places.values(), weights, strict=True)
    )


def _one(some: Sequence[Candidate], share: float) -> Candidate:
    """Candidates of the same place as one; the likeliest of them is asked first."""
    first = max(some, key=lambda one: one.share)
    return replace(
        first,
        share=share,
        by=tuple(dict.fromkeys(by for one in some for by in one.by)),
        evidence=tuple(dict.fromkeys(shown for one in some for shown in one.evidence)),
        mechanism=next((one.mechanism for one in [first, *some] if one.mechanism), None),
        is_certain=any(one.is_certain for one in some),
    )


def led_by_error(case: Case, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, first of them the activation that raised the error of the headline.

    Args:
        case: The run.
        candidates: The candidates by other reasons, the likeliest first.
    """
    headline = case.headline
    one = case.run.activations.get((headline and headline.activation) or "")
    if headline is None or one is None or one.end is None:
        return [*candidates]
    says = f"{name(one.id)} of {name(one.agent)} ended with an error{_others(case, one)}"
    step = case.steps[one.id]
    first = Candidate(
        id="c0", agent=one.agent, share=RAISED, by=("errors",), t=one.t, until=one.end.t,
        activation=one.id, step=step, evidence=(Evidence(one.end.t, says, step=step),),
        mechanism="failed", status="origin", is_certain=headline.stage == "request",
    )  # fmt: skip
    others = [
        replace(one, share=one.share * (1 - RAISED), status="open", is_certain=False)
        for one in candidates
        if one.agent != first.agent
    ]
    return [replace(one, id=f"c{number}") for number, one in enumerate([first, *others], 1)]


def _others(case: Case, raising: RecordedActivation) -> str:
    """The number of turns that passed an error on, and of those that were called off for it."""
    passing, called_off = {raising.id}, 0
    for end in case.run.records[raising.t :]:
        if isinstance(end, End):
            passing |= {end.activation} if end.because in passing else set()
            called_off += end.cancelled
    counts = {"passed it on": len(passing) - 1, "called off": called_off}
    told = [f"{counted(n, 'turn')} {what}" for what, n in counts.items() if n]
    return f"; {', '.join(told)}" if told else ""


def ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates by falling share, ties by agent, with ids in this order."""
    found = sorted(candidates, key=lambda one: (-one.share, one.agent))
    return [replace(one, id=f"c{number}") for number, one in enumerate(found, 1)]


@dataclass(frozen=True)
class Asking:
    """The suspects that are asked, and their knowledge.

    Attributes:
        by: The names of the suspects; a user's own as `module:object`.
        top: The number of candidates that are listed.
        peers: A directory with good runs of the same sort, as the measure for signs; ``None``: the
            other agents of the run are the measure.
        accounting: Reads the payloads, as `module:object`; ``None``: as the task of the run does.
    """

    by: tuple[str, ...] = USUAL_SUSPECTS
    top: int = 10
    peers: Path | None = None
    accounting: str | None = None

    def case(self, source: RunSource, goal: Goal) -> Case:
        """The case that the suspects are given about a run.

        Raises:
            SettingsError: There is no such accounting, or no good run among the peers.
        """
        reads: Accounting | None = None
        if self.accounting is not None:
            reads = load(self.accounting, "accounting")
        return source.case(goal, reads, self._usual(goal, reads))

    def _usual(self, goal: Goal, accounting: Accounting | None) -> UsualTeam | None:
        if self.peers is None:
            return None
        sources = map(RunSource.read, runs_in([self.peers]))
        good = [one.run.records for one in sources if one.judged(goal).good]
        if not good:
            raise SettingsError(f"{self.peers} has no run that is good ({goal.text})")
        return learn_habits(good, accounting or PAYLOADS)
