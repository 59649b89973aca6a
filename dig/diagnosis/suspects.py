"""Suspects: methods to name the candidates of a case.

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
from dig._util.text import counted, name, names, one_line
from dig.detectors.headline import is_framework_node
from dig.errors import SettingsError
from dig.graph.records import NEVER_RAN, REQUEST_FAILED, End
from dig.show.document import Candidate, Evidence
from dig.show.gate.checked import runs_in
from dig.tasks.accounting import PAYLOADS, Accounting
from dig.tasks.user_objects import load
from dig.traces.run import RecordedActivation, RecordedRun

from .attribution.structural import SignGroup, StructuralAnswer
from .case import Case, RunSource
from .components import blamed_agents
from .goal import Goal
from .signs.analysis import Sign
from .signs.table import learn_habits

LEAST = 0.01
"""The weight of an agent with nothing against it."""
BLAMED = 0.1
"""The weight added by findings about an agent."""
MOST_EVIDENCE = 3
RAISED = 0.9
"""The share of the activation that raised the error of a failed request."""
CERTAIN = 0.9
"""The least weight of a certain sign."""


class Suspects(Protocol):
    """A method to name the candidates of a case."""

    def candidates(self, case: Case) -> Sequence[Candidate]:
        """Name the candidates, the likeliest first."""
        ...


@dataclass(frozen=True)
class BySigns:
    """Names the agents with odd records, by explanations of the failure.

    Attributes:
        by_agent: Finds what speaks against each agent, the likeliest agent first.
    """

    name: str
    by_agent: Callable[[Case], Sequence[Sequence[SignGroup]]]

    def candidates(self, case: Case) -> Sequence[Candidate]:
        """Name a candidate for each agent, at the place of the first sign."""
        agents = self.by_agent(case)
        weights = [max(groups[0].score, LEAST) for groups in agents]
        candidates = [
            self._candidate(case, groups, weight / sum(weights))
            for groups, weight in zip(agents, weights, strict=True)
        ]
        return _number(candidates) or EveryAgent().first_blamed(case, self.name)

    def _candidate(self, case: Case, groups: Sequence[SignGroup], share: float) -> Candidate:
        """An agent as a candidate.

        Args:
            case: The run.
            groups: The suspicions about the agent, the likeliest first.
            share: Its share.
        """
        first = groups[0].first
        activation = case.run.activations.get(first.activation or "")
        event = case.run.events.get(first.event or "")
        is_message = event is not None and activation is not None and event.by == activation.id
        # Two rows of the table may say the same about the same record.
        signs = {(sign.t, sign.says): sign for group in groups for sign in group.signs}
        return Candidate(
            id="c0", agent=first.agent, share=share, by=(self.name,),
            evidence=tuple(_evidence(case, sign) for sign in [*signs.values()][:MOST_EVIDENCE]),
            mechanism=first.mechanism, status=groups[0].status,
            step=case.steps.get(first.activation or ""),
            t=event.t if event and is_message else activation.t if activation else first.t,
            until=activation.end.t if activation and activation.end and not is_message else None,
            activation=first.activation, event=first.event if is_message else None,
            is_certain=first.weight >= CERTAIN and groups[0].status == "origin",
        )  # fmt: skip


def _evidence(case: Case, sign: Sign) -> Evidence:
    step = case.steps.get(sign.activation or "")
    return Evidence(sign.t, one_line(sign.says, 200), step=step)


class EveryAgent:
    """Names every active agent; agents in findings are likelier."""

    name = "agents"

    def candidates(self, case: Case) -> Sequence[Candidate]:
        """Name a candidate for each agent; the place is the first activation."""
        accused = {agent for _, agents in blamed_agents(case.run) for agent in agents}
        acts: dict[str, list[RecordedActivation]] = {}
        for activation in case.run.activations.values():
            acts.setdefault(activation.agent, []).append(activation)
        weights = {agent: LEAST + BLAMED * (agent in accused) for agent in acts}
        total, candidates = sum(weights.values()), list[Candidate]()
        for agent, (first, *more) in acts.items():
            count, step = counted(1 + len(more), "time"), case.steps[first.id]
            says = f"{name(agent)} acted {count}, first in {name(first.id)}"
            candidates.append(
                Candidate(
                    id="c0", agent=agent, share=weights[agent] / total, by=(self.name,), t=first.t,
                    step=step, evidence=(Evidence(first.t, says, step=step),), activation=first.id,
                )
            )  # fmt: skip
        return rank_candidates(candidates)

    def first_blamed(self, case: Case, by: str) -> Sequence[Candidate]:
        """Name the agent of the first finding, if there is one.

        Args:
            case: The run.
            by: The suspect that has found no sign.
        """
        for finding, agents in blamed_agents(case.run):
            for candidate in self.candidates(case):
                if candidate.agent in agents:
                    says = f"the first finding, {finding.pattern}, is about {name(candidate.agent)}"
                    evidence = (Evidence(finding.t, says),)
                    return [replace(candidate, id="c1", share=1.0, by=(by,), evidence=evidence)]
        return []


SUSPECTS: Mapping[str, Suspects] = Registry(
    "suspects",
    {
        "attribution": BySigns("attribution", lambda case: StructuralAnswer(case).by_agent),
        # Without an accounting nobody knows which parts of the task a payload is about.
        "attribution_blind": BySigns(
            "attribution_blind",
            lambda case: StructuralAnswer(replace(case, accounting=None)).by_agent,
        ),
        # The strongest sign comes first, whatever it led to.
        "signs": BySigns("signs", lambda case: StructuralAnswer(case, explains=False).by_agent),
        "agents": EveryAgent(),
    },
)
"""The suspects by name."""
USUAL_SUSPECTS = ("attribution",)
"""The suspects asked by default."""


def load_suspects(suspect_name: str) -> Suspects:
    """Return the suspects of a name, or load a user's own as `module:object`.

    Raises:
        SettingsError: There are no such suspects.
    """
    if suspect_name in SUSPECTS:
        return SUSPECTS[suspect_name]
    if ":" not in suspect_name:
        raise SettingsError(
            f"there is no suspect {suspect_name!r}; known are: {', '.join(SUSPECTS)}, and your own "
            "as module:object"
        )
    loaded = load(suspect_name, "suspect")
    suspects: Suspects = loaded() if isinstance(loaded, type) else loaded
    if not callable(getattr(suspects, "candidates", None)):
        raise SettingsError(f"{suspect_name} has no method `candidates(case)`")
    return suspects


@dataclass(frozen=True)
class Together:
    """Several suspects with merged candidates.

    Attributes:
        names_all: Whether agents are named, too, against which nothing speaks.
    """

    suspects: tuple[Suspects, ...]
    names_all: bool = False

    def candidates(self, case: Case) -> Sequence[Candidate]:
        """Name the candidates of all, merged by agent and place."""
        candidates = merge_candidates([each.candidates(case) for each in self.suspects])
        if not self.names_all:
            return candidates
        # So that experiments may try each agent: a sign is no proof, and none is no acquittal.
        accused = {candidate.agent for candidate in candidates}
        unsuspected = [
            replace(candidate, share=LEAST)
            for candidate in EveryAgent().candidates(case)
            if candidate.agent not in accused
        ]
        total = 1 + LEAST * len(unsuspected) if candidates else LEAST * len(unsuspected)
        return _number(
            replace(each, share=each.share / total) for each in [*candidates, *unsuspected]
        )


def merge_candidates(named: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Merge the candidates of several suspects by place, with the evidence of all.

    Args:
        named: The candidates of each, the likeliest first.
    """
    places: dict[tuple[str, str | None], list[Candidate]] = {}
    for candidates in named:
        for each in candidates:
            places.setdefault((each.agent, each.activation or each.event), []).append(each)
    if len(named) == 1 and all(len(group) == 1 for group in places.values()):
        return [*named[0]]
    # Shares are merged as if suspects erred independently; then they add up to 1 again.
    weights = [1 - prod(1 - each.share for each in group) for group in places.values()]
    total = sum(weights) or 1.0
    merged = []
    for group, weight in zip(places.values(), weights, strict=True):
        first = max(group, key=lambda each: each.share)
        merged.append(
            replace(
                first, share=weight / total,
                by=tuple(dict.fromkeys(by for each in group for by in each.by)),
                evidence=tuple(dict.fromkeys(row for each in group for row in each.evidence)),
                mechanism=next((c.mechanism for c in [first, *group] if c.mechanism), None),
                is_certain=any(each.is_certain for each in group),
            )
        )  # fmt: skip
    return rank_candidates(merged)


def blame_error_first(case: Case, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Put the activation behind the headline's error before all other candidates.

    Args:
        case: The run.
        candidates: The candidates by other reasons, the likeliest first.
    """
    candidates = [each for each in candidates if not is_framework_node(each.agent)]
    headline = case.headline
    first = _awaited(case.run) if headline is None else None
    by = (headline and headline.activation) or _at_work(case.run)
    act = case.run.activations.get(by or "")
    if act is not None and act.end is not None:
        is_certain = headline is not None and headline.stage == "request"
        says = f"{name(act.id)} of {name(act.agent)} ended with an error{_consequences(case, act)}"
        if headline is None or headline.activation is None:
            says, is_certain = f"{name(act.agent)} was working when the request ended", False
        step = case.steps[act.id]
        first = Candidate(
            id="c0", agent=act.agent, share=RAISED, by=("errors",), t=act.t, until=act.end.t,
            activation=act.id, step=step, evidence=(Evidence(act.end.t, says, step=step),),
            mechanism="failed", status="origin", is_certain=is_certain,
        )  # fmt: skip
    if first is None:
        return candidates
    unsuspected = [
        replace(each, share=each.share * (1 - RAISED), status="open", is_certain=False)
        for each in candidates
        if each.agent != first.agent
    ]
    return _number([first, *unsuspected])


def _at_work(run: RecordedRun) -> str | None:
    """The turn at work when the caller cancelled the request, or the time was over."""
    by = run.activations.get((run.answer and run.answer.by) or "")
    failed = [row.detail for row in run.incidents if row.what == REQUEST_FAILED]
    is_late = any(isinstance(row, Mapping) and row.get("how") == "timeout" for row in failed)
    if not is_late and not (by and by.end and by.end.cancelled):
        return None
    acts = [act for act in run.activations.values() if act.end and act.end.cancelled]
    ends = [act.end for act in acts if act.end and not is_framework_node(act.agent)]
    # Turns that waited for it end after it.
    return min(ends, key=lambda end: end.t).activation if ends else None


def _awaited(run: RecordedRun) -> Candidate | None:
    """The branch without a turn behind a join without a turn."""
    for row in run.incidents:
        detail = row.detail if isinstance(row.detail, Mapping) else {}
        awaited = detail.get("awaited")
        if row.what == NEVER_RAN and isinstance(awaited, list) and awaited:
            says = f"{name(detail.get('agent'))} never ran, since it waited for {names(awaited)}"
            return Candidate(
                id="c0", agent=str(awaited[0]), share=RAISED, by=("joins",), t=row.t,
                evidence=(Evidence(row.t, says),), mechanism="silent", status="origin",
            )  # fmt: skip
    return None


def _consequences(case: Case, raising: RecordedActivation) -> str:
    """The number of turns with a passed-on error, and of turns called off for an error."""
    passing, called_off = {raising.id}, 0
    for end in case.run.records[raising.t :]:
        if isinstance(end, End):
            passing |= {end.activation} if end.because in passing else set()
            called_off += end.cancelled
    counts = {"passed it on": len(passing) - 1, "called off": called_off}
    turns = [f"{counted(n, 'turn')} {end}" for end, n in counts.items() if n]
    return f"; {', '.join(turns)}" if turns else ""


def rank_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort candidates by falling share, ties by agent, and number all in order."""
    return _number(sorted(candidates, key=lambda each: (-each.share, each.agent)))


def _number(candidates: Iterable[Candidate]) -> list[Candidate]:
    return [replace(each, id=f"c{number}") for number, each in enumerate(candidates, 1)]


@dataclass(frozen=True)
class Asking:
    """The suspects to ask, and the knowledge for signs.

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
        """Make the case for the suspects of a run.

        Raises:
            SettingsError: There is no such accounting, or no good run among the peers.
        """
        accounting: Accounting | None = None
        if self.accounting is not None:
            accounting = load(self.accounting, "accounting")
        if self.peers is None:
            return source.case(goal, accounting)
        peers = map(RunSource.read, runs_in([self.peers]))
        good = [peer.run.records for peer in peers if peer.judged(goal).good]
        if not good:
            raise SettingsError(f"{self.peers} has no run that is good ({goal.text})")
        return source.case(goal, accounting, learn_habits(good, accounting or PAYLOADS))
