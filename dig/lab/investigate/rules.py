"""A policy of rules for services and what they run on.

They look at the types of facts, and never at the words of a text. The rules stand in an order; the
first one that answers decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from dig._util.text import name

from .beliefs import Claim, Fact, LocalJudgement, NextEntity, Packet

MORE = 1.1
"""So many times the usual value is more traffic."""
UNUSUAL = 2.0
"""So many times the usual value, or a part as small, is an unusual metric."""

MORE_TRAFFIC, FAILED_CALLS, FAILED_PART = "more traffic", "calls fail", "it fails"
UNKNOWN_LINK = "no evidence of its own"


class ServiceRules:
    """Judges by eight rules."""

    name = "rules"

    def judge(self, packet: Packet) -> LocalJudgement:
        """The answer of the first rule that has one; else the entity is healthy."""
        seen = _Seen(packet)
        for rule in RULES:
            judgement = rule(seen)
            if judgement is not None:
                return judgement
        return LocalJudgement("healthy", weight=0.6, why="no sign of trouble in the window")


class _Seen:
    """The facts of a packet, by what they mean."""

    def __init__(self, packet: Packet) -> None:
        self.packet = packet
        self.me = packet.entity

    def of(self, *types: str) -> list[Fact]:
        """The facts of some types, the earliest first."""
        return [fact for fact in self.packet.evidence if fact.type in types]

    @cached_property
    def calls(self) -> list[Fact]:
        """The calls of others that failed."""
        return [fact for fact in self.of("failed-call") if fact.about not in (None, self.me)]

    @cached_property
    def parts(self) -> list[Fact]:
        """The errors that name another entity as the part that fails."""
        return [fact for fact in self.of("error", "event") if fact.about not in (None, self.me)]

    @cached_property
    def own(self) -> list[Fact]:
        """The trouble that names no other entity."""
        return [
            fact for fact in self.of("error", "event", "exhausted") if fact.about in (None, self.me)
        ]

    @cached_property
    def traffic(self) -> list[Fact]:
        """The facts that show more traffic than usual."""
        return [
            fact
            for fact in self.of("traffic")
            if fact.value is None or fact.usual is None or fact.value > MORE * fact.usual
        ]

    @cached_property
    def unusual(self) -> list[Fact]:
        """The metrics that are far from their usual value."""
        return [fact for fact in self.of("metric") if _is_unusual(fact)]

    @cached_property
    def blamed_for_traffic(self) -> set[str]:
        """The neighbours that are in trouble since this entity sends them more."""
        return self._blaming(MORE_TRAFFIC)

    @cached_property
    def blamed(self) -> set[str]:
        """The neighbours that are in trouble since this entity fails."""
        return self._blaming(FAILED_CALLS) | self._blaming(FAILED_PART)

    def _blaming(self, condition: str) -> set[str]:
        return {
            message.sender
            for message in self.packet.inbox
            for claim in message.belief.claims
            if (claim.source, claim.target) == (self.me, message.sender)
            and claim.condition == condition
        }

    @cached_property
    def labels(self) -> dict[str, str]:
        """The latest label that each neighbour has told of itself."""
        found: dict[str, str] = {}
        for message in self.packet.inbox:
            found.setdefault(message.sender, message.belief.label)
        return found

    @cached_property
    def callers(self) -> list[str]:
        """The entities that may send more: those that facts name, else those of the topology."""
        named = [fact.about for fact in self.traffic if fact.about not in (None, self.me)]
        known = [
            one.entity
            for one in self.packet.neighbours
            if one.is_source and one.relation == "calls"
        ]
        found = [*dict.fromkeys(filter(None, named))] or known
        return [one for one in found if one not in self.blamed_for_traffic]

    def symptom(
        self, causes: list[str], condition: str, effect: str, shown: list[Fact], weight: float
    ) -> LocalJudgement:
        """A symptom of the first of some causes; each of them is claimed.

        Args:
            causes: The entities to blame.
            condition: Their state.
            effect: The state of this entity.
            shown: The facts that show it.
            weight: The certainty of the symptom.
        """
        ids = tuple(fact.id for fact in shown)
        claims = tuple(Claim(one, self.me, condition, effect, ids) for one in causes)
        why = f"{effect}, since {name(causes[0])}: {condition}"
        asked = tuple(NextEntity(one, condition) for one in causes[:2])
        return LocalJudgement("symptom", causes[0], weight, ids, why, claims, asked)

    def origin(self, shown: list[Fact], weight: float, why: str) -> LocalJudgement:
        """An origin, with the earliest facts that show it."""
        ids = tuple(fact.id for fact in shown[:3])
        asked = tuple(NextEntity(one, "it is called") for one in _about(self.calls)[:2])
        return LocalJudgement("origin", None, weight, ids, why, (), asked)


def _is_unusual(fact: Fact) -> bool:
    if fact.value is None or fact.usual is None or fact.value == fact.usual:
        return False
    low, high = sorted((abs(fact.value), abs(fact.usual)))
    return high >= UNUSUAL * low


def _about(facts: list[Fact]) -> list[str]:
    return [*dict.fromkeys(filter(None, (fact.about for fact in facts)))]


# --- the rules, in their order ---


def own_change(seen: _Seen) -> LocalJudgement | None:
    """A change of its own comes before its trouble: it is an origin, whatever traffic came.

    While nobody blames it and it has no trouble, nothing tells that the change had an effect.
    """
    trouble = [fact for fact in seen.packet.evidence if fact.type in TROUBLE]
    first = min(
        [*(fact.ts for fact in trouble), *(one.ts for one in seen.packet.alerts)],
        default=float("inf"),
    )
    changes = [fact for fact in seen.of("change") if fact.ts <= first]
    if not changes:
        return None
    if trouble or seen.packet.alerts:
        return seen.origin([*changes, *trouble], 0.9, "a change of its own came before its trouble")
    if seen.blamed or seen.blamed_for_traffic:
        return seen.origin(changes, 0.8, "it was changed, and others blame it")
    ids = tuple(fact.id for fact in changes[:3])
    return LocalJudgement("defer", None, 0.3, ids, "it was changed; no effect of that is known")


def failed_part(seen: _Seen) -> LocalJudgement | None:
    """An error names a part: a symptom of that part."""
    if not seen.parts:
        return None
    return seen.symptom(_about(seen.parts), FAILED_PART, "an error names it", seen.parts, 0.8)


def own_trouble_first(seen: _Seen) -> LocalJudgement | None:
    """Trouble of its own is earlier than the first failed call: an origin."""
    own = [fact for fact in seen.own if fact.type != "exhausted" or not seen.traffic]
    if own and seen.calls and own[0].ts < seen.calls[0].ts:
        return seen.origin(own, 0.7, "its own trouble came before its calls failed")
    return None


def exhausted_by_traffic(seen: _Seen) -> LocalJudgement | None:
    """Something is used up and more traffic came: a symptom of the sender, once it tells of itself.

    Until then nothing is known of the sender: being exhausted is trouble of its own, and the sender
    is worth a look.
    """
    used_up = seen.of("exhausted")
    if not (used_up and seen.traffic and seen.callers):
        return None
    shown = [*used_up, *seen.traffic]
    senders = [one for one in seen.callers if one in seen.labels]
    if senders:
        return seen.symptom(senders, MORE_TRAFFIC, "it was overloaded", shown, 0.8)
    asked = seen.symptom(seen.callers, MORE_TRAFFIC, "it was overloaded", shown, 0.6)
    return replace(asked, label="origin", by=None, why="it was overloaded; no sender has told")


def blamed_for_traffic(seen: _Seen) -> LocalJudgement | None:
    """Blamed for traffic: a symptom of its caller if it was sent more itself, else an origin."""
    if not seen.blamed_for_traffic:
        return None
    if seen.traffic and seen.callers:
        return seen.symptom(seen.callers, MORE_TRAFFIC, "it passes traffic on", seen.traffic, 0.7)
    shown = [*seen.traffic, *seen.own, *seen.unusual, *seen.of("log", "change")]
    if shown:
        return seen.origin(shown, 0.7, "it sends more traffic, and no caller of it does")
    return _gap(seen, "it is blamed for traffic, and nothing was recorded about it")


def failed_call(seen: _Seen) -> LocalJudgement | None:
    """Its calls fail: a symptom of the callee."""
    callees = [one for one in _about(seen.calls) if seen.labels.get(one) != "healthy"]
    if callees:
        return seen.symptom(callees, FAILED_CALLS, "its calls fail", seen.calls, 0.7)
    if seen.calls:
        return seen.origin(
            [*seen.own, *seen.calls], 0.4, "its calls fail, and all that it calls is healthy"
        )
    return None


def own_trouble(seen: _Seen) -> LocalJudgement | None:
    """Trouble of its own that nothing explains: an origin."""
    if seen.own:
        return seen.origin(seen.own, 0.6, "trouble of its own that no neighbour explains")
    if seen.unusual and (seen.blamed or seen.packet.alerts):
        return seen.origin(seen.unusual, 0.5, "it behaves unlike usual, and others notice")
    return None


def nothing_recorded(seen: _Seen) -> LocalJudgement | None:
    """Blamed or alarmed without evidence of its own: not decided."""
    if seen.blamed or seen.packet.alerts:
        return _gap(seen, "others notice it, and nothing was recorded about it")
    return None


def _gap(seen: _Seen, why: str) -> LocalJudgement:
    """Not decided; what it depends on is worth a look, and explains it if it is in trouble."""
    ahead = [one.entity for one in seen.packet.neighbours if not one.is_source]
    ill = [one for one in ahead if seen.labels.get(one) in ("origin", "symptom")]
    claims = tuple(Claim(one, seen.me, FAILED_CALLS, UNKNOWN_LINK) for one in ill)
    asked = tuple(NextEntity(one, why) for one in ahead if one not in seen.labels)[:2]
    return LocalJudgement("defer", None, 0.4, (), why, claims, asked)


TROUBLE = ("error", "event", "exhausted", "failed-call")
RULES: tuple[Callable[[_Seen], LocalJudgement | None], ...] = (
    own_change, failed_part, own_trouble_first, exhausted_by_traffic, blamed_for_traffic,
    failed_call, own_trouble, nothing_recorded,
)  # fmt: skip
