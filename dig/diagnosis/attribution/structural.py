"""From signs to an answer: which of them explain the failure, and which explain one another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dig.diagnosis.case import Case
from dig.diagnosis.signs.seen import Sign
from dig.show.document import Status
from dig.traces.run import RecordedEvent

from .work import WorkDone

USUAL = 3.0
"""A sign that good runs have with a share of one third says nothing."""
EARLY = 0.25
"""The part of its score that a sign at the end of the run loses."""
ASIDE = 0.1
"""The part of its score that a sign keeps from which no way leads to the failure."""
AGAIN = 0.05
"""The gain of a sign for each time that it shows again; at most four times."""
FOLLOWS = 0.3
"""The part of its score that a sign keeps which an earlier one of another agent explains."""
COPIES = ("doubled", "dealt-twice", "kept")
"""Mechanisms that do harm only if the same work is used twice."""
WRONG = ("damaged", "mixed-up")
"""Mechanisms that make an answer wrong: by themselves they leave no part of it out."""
WRONG_PART = 0.55
"""The part of its score that such a sign keeps if there is no answer, or one that lacks parts."""
FIRST = 0.5
"""The least score of the first cause: with less it is not decided."""
SECOND = 0.55
"""The least score of a second cause."""


@dataclass(frozen=True)
class SignGroup:
    """All signs of one row about one agent.

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
        """The sign that shows where it began."""
        return self.signs[0]


class StructuralAnswer:
    """The suspicions about a failed run, the likeliest first.

    Attributes:
        seen: The run.
        explains: Whether ways from signs to the failure and to one another are followed; else the
            strongest sign wins.
    """

    def __init__(self, case: Case, *, explains: bool = True) -> None:
        """Find the signs; nothing is explained yet."""
        self.seen, self.signs, self.explains = case.seen, case.signs, explains
        self._work = WorkDone(case.seen)

    @cached_property
    def groups(self) -> list[SignGroup]:
        """The signs of each row about each agent; none is explained by another's yet."""
        groups: dict[tuple[str, str], list[Sign]] = {}
        for sign in self.signs:
            groups.setdefault((sign.agent, sign.name), []).append(sign)
        return [self._group(some) for some in groups.values()]

    @cached_property
    def suspicions(self) -> list[SignGroup]:
        """Everything that speaks against an agent, by falling score."""
        found = [self._explained(one, self.groups) for one in self.groups]
        found.sort(key=lambda one: (-one.score, one.first.t, one.agent))
        second = next((one for one in found if self._is_second(one, found[0])), None)
        causes = [one for one in found[:1] if one.score > FIRST] + ([second] if second else [])
        return [
            replace(one, status="origin") if one.status == "open" and one in causes else one
            for one in found
        ]

    @cached_property
    def by_agent(self) -> list[list[SignGroup]]:
        """The suspicions of each agent, the likeliest agent first.

        The first of an agent names a mechanism, if one at the same place does.
        """
        agents: dict[str, list[SignGroup]] = {}
        for one in self.suspicions:
            agents.setdefault(one.agent, []).append(one)
        return [named(some) for some in agents.values()]

    def _group(self, some: Sequence[Sign]) -> SignGroup:
        mattering = [one for one in some if self.matters(one)]
        chosen = mattering or some
        last = max(self.seen.run.last.t, 1)
        weight = max(one.weight for one in chosen) * (1 + AGAIN * min(len(chosen) - 1, 4))
        # A general sign says itself how rare it is.
        often = self.seen.usual.share(some[0].name) if some[0].mechanism else 0.0
        usual = max(0.0, 1 - USUAL * often)
        score = weight * usual - EARLY * chosen[0].t / last
        if not mattering:
            score *= ASIDE
        elif some[0].spoils and self._work.is_short and some[0].mechanism in WRONG:
            score *= WRONG_PART
        return SignGroup(tuple(chosen), score, "open" if mattering else "recovered")

    def matters(self, sign: Sign) -> bool:
        """Whether a way leads from a sign to the failure."""
        if not self.explains:
            return True
        events = self.seen.events_of(sign)
        if any(one.final for one in events):
            return True
        used = self._work.used
        if sign.mechanism in COPIES or (sign.spoils and sign.event in self.seen.first_said):
            is_used_twice = any(self._is_used_twice(one) for one in events)
            return sign.mechanism == "stale" or (is_used_twice and not self._work.is_short)
        if sign.spoils and any(one.id in used for one in events):
            return True
        if sign.spoils and sign.mechanism is None and sign.activation is not None:
            activation = self.seen.run.activations[sign.activation]
            return self._work.is_undone(self.seen.run.inputs(activation))
        if sign.spoils:
            return False
        return any(map(self._work.is_lost, events))

    def _is_used_twice(self, event: RecordedEvent) -> bool:
        """Whether an event and the one that it repeats, or two of its copies, were both used."""
        first = self.seen.first_said.get(event.id)
        used = [*event.consumed_by, *(first.consumed_by if first is not None else ())]
        return len({*used}) > 1

    def _explained(self, one: SignGroup, others: Iterable[SignGroup]) -> SignGroup:
        """A suspicion, with the agent whose earlier sign explains it, if one does."""
        if not self.explains or not one.first.may_follow or one.status == "recovered":
            return one
        before = self._sources(one.first)
        for other in others:
            if other.agent == one.agent or other.status == "recovered" or not other.first.mechanism:
                continue
            for sign in other.signs:
                is_content = sign.mechanism in (*WRONG, "stale")
                if sign.t <= one.first.t and sign.event in before and is_content:
                    score = one.score * FOLLOWS
                    return replace(one, score=score, status="propagated", by=other.agent)
        return one

    def _sources(self, sign: Sign) -> frozenset[str]:
        """The events that what a sign is about was made of, through all agents."""
        run = self.seen.run
        activation = run.activations.get(sign.activation or "")
        found = set[str]()
        ahead = activation.with_fate("consume") if activation else []
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                by = run.activations.get(run.events[name].by or "")
                ahead += by.with_fate("consume") if by is not None else ()
        return frozenset(found)

    def _is_second(self, one: SignGroup, first: SignGroup) -> bool:
        """Whether a group is about a second cause: of another agent, and of another sort."""
        return (
            one.status == "open" and one.score > SECOND and one.first.mechanism is not None
            and one.agent != first.agent and one.first.name != first.first.name
        )  # fmt: skip


def named(some: list[SignGroup]) -> list[SignGroup]:
    """Suspicions about an agent, those first that name how the first one went wrong."""
    first = some[0]
    place = {one.activation for one in first.signs}
    better = next(
        (
            one
            for one in some
            if one.first.mechanism is not None and place & {sign.activation for sign in one.signs}
        ),
        None,
    )
    if first.first.mechanism is not None or better is None:
        return some
    named = replace(better, score=first.score, status=first.status, by=first.by)
    return [named, *(one for one in some if one is not better)]
