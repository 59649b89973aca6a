"""From signs to an answer: explain the failure, and signs by other signs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dig.diagnosis.case import Case
from dig.diagnosis.signs.analysis import Sign
from dig.diagnosis.signs.table import UNLIKE, UNUSABLE
from dig.show.document import Status
from dig.traces.run import RecordedEvent

from .work import WorkDone

USUAL = 3.0
"""Score x (1 - `USUAL` x share of good runs that have the sign), where the factor is at least 0."""
EARLY = 0.25
"""The amount subtracted from the score of a sign at the end of the run; earlier, less."""
ASIDE = 0.1
"""The part of the score that a sign keeps if no way leads from there to the failure."""
AGAIN = 0.05
"""The gain of a sign for each repetition; at most four count."""
FOLLOWS = 0.3
"""The part of the score that a sign keeps if an earlier sign of another agent explains it."""
COPIES = ("dealt-twice", "kept")
"""Mechanisms without harm unless the same work is used twice."""
WRONG_PART = 0.55
"""The part of the score that damage keeps if there is no answer, or parts are missing: alone it
leaves no part of an answer out."""
FIRST = 0.5
"""The least score of the first cause: with less the cause is not decided."""
SECOND = 0.55
"""The least score of a second cause."""


@dataclass(frozen=True)
class SignGroup:
    """All signs of a row about an agent.

    Attributes:
        signs: The signs, those first that matter to the failure.
        score: The sum of their scores.
        status: Their place in the explanation.
        by: The agent whose sign explains them, if one does.
    """

    signs: tuple[Sign, ...]
    score: float
    status: Status = "open"
    by: str | None = None

    @property
    def agent(self) -> str:
        """The agent."""
        return self.signs[0].agent

    @property
    def first(self) -> Sign:
        """The sign of the beginning."""
        return self.signs[0]


class StructuralAnswer:
    """The suspicions about a failed run, the likeliest first.

    Attributes:
        explains: Whether ways from signs to the failure and to one another are followed; else the
            strongest sign wins.
    """

    def __init__(self, case: Case, *, explains: bool = True) -> None:
        """Find the signs; nothing is explained yet."""
        self.analysis, self.signs, self.explains = case.analysis, case.signs, explains
        self._work = WorkDone(case.analysis)

    @cached_property
    def groups(self) -> list[SignGroup]:
        """The signs of each row about each agent, not explained by others yet."""
        groups: dict[tuple[str, str], list[Sign]] = {}
        for sign in self.signs:
            groups.setdefault((sign.agent, sign.name), []).append(sign)
        return [self._group(signs) for signs in groups.values()]

    @cached_property
    def suspicions(self) -> list[SignGroup]:
        """Everything against an agent, by falling score."""
        groups = [self._explain(group) for group in self.groups]
        groups.sort(key=lambda group: (-group.score, group.first.t, group.agent))
        second = next((group for group in groups if self._is_second(group, groups[0])), None)
        causes = [group for group in groups[:1] if group.score > FIRST]
        causes += [second] if second else []
        return [
            replace(group, status="origin") if group.status == "open" and group in causes else group
            for group in groups
        ]

    @cached_property
    def by_agent(self) -> list[list[SignGroup]]:
        """The suspicions of each agent, the likeliest agent first.

        The first of an agent names a mechanism, if one at the same place does.
        """
        agents: dict[str, list[SignGroup]] = {}
        for group in self.suspicions:
            agents.setdefault(group.agent, []).append(group)
        return [prefer_mechanism(groups) for groups in agents.values()]

    def _group(self, signs: Sequence[Sign]) -> SignGroup:
        harmful = [sign for sign in signs if self.matters(sign)]
        chosen = harmful or signs
        last = max(self.analysis.run.last.t, 1)
        weight = max(sign.weight for sign in chosen) * (1 + AGAIN * min(len(chosen) - 1, 4))
        # The weight of a general sign has its rarity in it already.
        often = self.analysis.usual.share(signs[0].name) if signs[0].mechanism else 0.0
        usual = max(0.0, 1 - USUAL * often)
        score = weight * usual - EARLY * chosen[0].t / last
        if not harmful:
            score *= ASIDE
        elif signs[0].spoils and self._work.is_short and signs[0].mechanism == "damaged":
            # A return that nobody takes leaves parts out, as if it had never been sent.
            refusals = self.analysis.refusals if signs[0].name == UNLIKE else ()
            score *= 1 if any(sign.activation in refusals for sign in chosen) else WRONG_PART
        return SignGroup(tuple(chosen), score, "open" if harmful else "recovered")

    def matters(self, sign: Sign) -> bool:
        """Whether a way leads from a sign to the failure."""
        if not self.explains:
            return True
        events = self.analysis.events_of(sign)
        if any(event.final for event in events):
            return True
        used = self._work.used
        if sign.mechanism in COPIES or (sign.spoils and sign.event in self.analysis.originals):
            is_used_twice = any(map(self._is_used_twice, events))
            # Where parts are missing, counting others twice is not what the failure is made of.
            return sign.mechanism == "stale" or (is_used_twice and not self._work.is_short)
        if sign.spoils and any(event.id in used for event in events):
            return True
        if sign.spoils and sign.mechanism is None and sign.activation is not None:
            activation = self.analysis.run.activations[sign.activation]
            return self._work.is_undone(self.analysis.run.inputs(activation))
        if sign.spoils:
            return False
        return any(map(self._work.is_lost, events))

    def _is_used_twice(self, event: RecordedEvent) -> bool:
        """Whether an event and the repeated event, or two copies, were both used."""
        first = self.analysis.originals.get(event.id)
        used = [*event.consumed_by, *(first.consumed_by if first is not None else ())]
        return len({*used}) > 1

    def _explain(self, group: SignGroup) -> SignGroup:
        """Add the agent behind a suspicion, if an earlier sign of another agent is the reason."""
        if not self.explains or not group.first.may_follow or group.status == "recovered":
            return group
        sources = self._sources(group.first) if self._contents else frozenset()
        for by, names, t in self._contents:
            if by != group.agent and t <= group.first.t and not sources.isdisjoint(names):
                score = group.score * FOLLOWS
                return replace(group, score=score, status="propagated", by=by)
        return group

    @cached_property
    def _contents(self) -> list[tuple[str, tuple[str | None, ...], int]]:
        """Wrong contents by signs: the agent, the event or its activation, and the record."""
        # Only wrong content travels with events; a delay or a silence does not.
        return [
            (group.agent, (sign.event, sign.activation if sign.name in UNUSABLE else None), sign.t)
            for group in self.groups
            for sign in group.signs
            if group.status != "recovered" and sign.mechanism in ("damaged", "stale")
        ]

    def _sources(self, sign: Sign) -> frozenset[str]:
        """The events behind a sign's activation, through all agents; the maker of a discard."""
        run = self.analysis.run
        activation = run.activations.get(sign.activation or "")
        sources = set[str]()
        pending = activation.with_fate("consume") if activation else []
        while pending:
            name = pending.pop()
            if name not in sources:
                sources.add(name)
                by = run.activations.get(run.events[name].by or "")
                pending += by.with_fate("consume") if by is not None else ()
        discarded = run.events.get(sign.event or "") if sign.mechanism == "discarded" else None
        return frozenset(sources | {discarded.by or ""} if discarded else sources)

    def _is_second(self, group: SignGroup, first: SignGroup) -> bool:
        """Whether a group is about a second cause: of another agent, and of another sort."""
        return (
            group.status == "open" and group.score > SECOND and group.first.mechanism is not None
            and group.agent != first.agent and group.first.name != first.first.name
        )  # fmt: skip


def prefer_mechanism(groups: list[SignGroup]) -> list[SignGroup]:
    """Put a group with a mechanism first, if a first group without one is about the same place.

    Args:
        groups: The suspicions about an agent, the strongest first.
    """
    first = groups[0]
    if first.first.mechanism is not None:
        return groups
    place = {sign.activation for sign in first.signs}
    for group in groups:
        if group.first.mechanism is not None and place & {sign.activation for sign in group.signs}:
            better = replace(group, score=first.score, status=first.status, by=first.by)
            return [better, *(other for other in groups if other is not group)]
    return groups
