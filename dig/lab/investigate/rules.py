"""Rules for services and for the hosts, queues and stores below.

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
SOON_S = 60.0
"""So many seconds before its errors a change of a part below is taken for their cause."""
UNUSUAL = 2.0
"""So many times the usual value, or a part as small, is an unusual metric."""

MORE_TRAFFIC, FAILED_CALLS, FAILED_PART = "more traffic", "calls fail", "it fails"
UNKNOWN_LINK = "no evidence of its own"


class ServiceRules:
    """Judges by nine rules."""

    name = "rules"

    def judge(self, packet: Packet) -> LocalJudgement:
        """The answer of the first rule that applies; otherwise healthy."""
        view = _Seen(packet)
        for rule in RULES:
            judgement = rule(view)
            if judgement is not None:
                return judgement
        return LocalJudgement("healthy", weight=0.6, why="no sign of trouble in the window")


class _Seen:
    """The facts of a packet, sorted by meaning."""

    def __init__(self, packet: Packet) -> None:
        self.packet = packet
        self.me = packet.entity

    def of(self, *types: str) -> list[Fact]:
        """The facts of some types, the earliest first."""
        return sorted(
            (fact for fact in self.packet.evidence if fact.type in types), key=lambda fact: fact.ts
        )

    @cached_property
    def calls(self) -> list[Fact]:
        return [fact for fact in self.of("failed-call") if fact.about not in (None, self.me)]

    @cached_property
    def parts(self) -> list[Fact]:
        """The errors that name another entity as the failed part."""
        return [fact for fact in self.of("error", "event") if fact.about not in (None, self.me)]

    @cached_property
    def own(self) -> list[Fact]:
        """The trouble without the name of another entity."""
        return [
            fact for fact in self.of("error", "event", "exhausted") if fact.about in (None, self.me)
        ]

    @cached_property
    def changes(self) -> list[Fact]:
        return [fact for fact in self.of("change") if fact.about in (None, self.me)]

    @cached_property
    def traffic(self) -> list[Fact]:
        return [
            fact
            for fact in self.of("traffic")
            if fact.value is None or fact.usual is None or fact.value > MORE * fact.usual
        ]

    @cached_property
    def unusual(self) -> list[Fact]:
        """The metrics far from their usual value."""
        return [fact for fact in self.of("metric") if _is_unusual(fact)]

    @cached_property
    def blamed_for_traffic(self) -> set[str]:
        """The neighbours in trouble because of extra traffic from this entity."""
        return self._blaming(MORE_TRAFFIC)

    @cached_property
    def blamed(self) -> set[str]:
        """The neighbours in trouble because this entity fails."""
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
        """The latest label of each neighbour."""
        labels: dict[str, str] = {}
        for message in self.packet.inbox:
            labels.setdefault(message.sender, message.belief.label)
        return labels

    @cached_property
    def callers(self) -> list[str]:
        """The possible senders of traffic: from the facts, otherwise from the topology."""
        # Recorded traffic names the real caller; the topology only says who could call.
        callers = _about([fact for fact in self.traffic if fact.about != self.me])
        if not callers:
            sources = [row for row in self.packet.neighbours if row.is_source]
            callers = [row.entity for row in sources if row.relation == "calls"]
        # A caller that blames this entity for traffic cannot be the source of that traffic.
        return [caller for caller in callers if caller not in self.blamed_for_traffic]

    def symptom(
        self, causes: list[str], condition: str, effect: str, shown: list[Fact], weight: float
    ) -> LocalJudgement:
        """A symptom of the first cause, with a claim for each cause.

        Args:
            causes: The entities to blame.
            condition: Their state.
            effect: The state of this entity.
            shown: The facts that show it.
            weight: The certainty of the symptom.
        """
        ids = tuple(fact.id for fact in shown)
        claims = tuple(Claim(cause, self.me, condition, effect, ids) for cause in causes)
        reason = f"{effect}, since {name(causes[0])}: {condition}"
        steps = tuple(NextEntity(cause, condition) for cause in causes[:2])
        return LocalJudgement("symptom", causes[0], weight, ids, reason, claims, steps)

    def origin(self, shown: list[Fact], weight: float, reason: str) -> LocalJudgement:
        """An origin, with the earliest facts as evidence."""
        ids = tuple(fact.id for fact in shown[:3])
        steps = tuple(NextEntity(callee, "it is called") for callee in _about(self.calls)[:2])
        return LocalJudgement("origin", None, weight, ids, reason, (), steps)


def _is_unusual(fact: Fact) -> bool:
    if fact.value is None or fact.usual is None or fact.value == fact.usual:
        return False
    # A metric is unusual in both directions: a rate that drops is trouble as well.
    low, high = sorted((abs(fact.value), abs(fact.usual)))
    return high >= UNUSUAL * low


def _about(facts: list[Fact]) -> list[str]:
    return [*dict.fromkeys(filter(None, (fact.about for fact in facts)))]


# --- the rules, in their order ---


def own_change(view: _Seen) -> LocalJudgement | None:
    """A change of the entity before trouble: an origin, whatever traffic came.

    While nobody blames it and it has no trouble, nothing tells that the change had an effect.
    """
    trouble = [fact for fact in view.packet.evidence if fact.type in TROUBLE]
    first = min(
        [*(fact.ts for fact in trouble), *(alert.ts for alert in view.packet.alerts)],
        default=float("inf"),
    )
    changes = [fact for fact in view.changes if fact.ts <= first]
    if not changes:
        return None
    if trouble or view.packet.alerts:
        return view.origin([*changes, *trouble], 0.9, "a change of its own came before its trouble")
    if view.blamed or view.blamed_for_traffic:
        return view.origin(changes, 0.8, "it was changed, and others blame it")
    ids = tuple(fact.id for fact in changes[:3])
    return LocalJudgement("defer", None, 0.3, ids, "it was changed; no effect of that is known")


def failed_part(view: _Seen) -> LocalJudgement | None:
    """An error with the name of a part: a symptom of the part."""
    if not view.parts:
        return None
    return view.symptom(_about(view.parts), FAILED_PART, "an error names it", view.parts, 0.8)


def changed_part(view: _Seen) -> LocalJudgement | None:
    """Errors of its own, soon after a part below was changed: a symptom of the part."""
    errors = [fact for fact in view.own if fact.type == "error"]
    if not errors or view.unusual or (view.calls and view.calls[0].ts <= errors[0].ts):
        return None
    return _change_below(view, errors[0].ts - SOON_S, errors[0].ts)


def _change_below(view: _Seen, since: float, until: float) -> LocalJudgement | None:
    """A symptom of the part below that was changed last in a time."""
    changes = [
        fact for fact in view.of("change") if fact not in view.changes and since <= fact.ts <= until
    ]
    if not changes:
        return None
    part = str(changes[-1].about)
    return view.symptom([part], FAILED_PART, "a part below it was changed", changes[-1:], 0.6)


def own_trouble_first(view: _Seen) -> LocalJudgement | None:
    """Own trouble earlier than the first failed call: an origin."""
    # Being exhausted by more traffic is not trouble of its own.
    own = [fact for fact in view.own if fact.type != "exhausted" or not view.traffic]
    if own and view.calls and own[0].ts < view.calls[0].ts:
        return view.origin(own, 0.7, "its own trouble came before its calls failed")
    return None


def exhausted_by_traffic(view: _Seen) -> LocalJudgement | None:
    """Exhausted after more traffic: a symptom of the sender, once the sender is judged.

    Until then nothing is known of the sender: being exhausted is trouble of its own, and the sender
    is worth a look.
    """
    used_up = view.of("exhausted")
    if not (used_up and view.traffic and view.callers):
        return None
    shown = [*used_up, *view.traffic]
    senders = [caller for caller in view.callers if caller in view.labels]
    if senders:
        return view.symptom(senders, MORE_TRAFFIC, "it was overloaded", shown, 0.8)
    judgement = view.symptom(view.callers, MORE_TRAFFIC, "it was overloaded", shown, 0.6)
    return replace(judgement, label="origin", by=None, why="it was overloaded; no sender has told")


def blamed_for_traffic(view: _Seen) -> LocalJudgement | None:
    """Blamed for traffic: a symptom of the caller after more traffic, otherwise an origin."""
    if not view.blamed_for_traffic:
        return None
    if view.traffic and view.callers:
        return view.symptom(view.callers, MORE_TRAFFIC, "it passes traffic on", view.traffic, 0.7)
    shown = [*view.traffic, *view.own, *view.unusual, *view.of("log"), *view.changes]
    if shown:
        return view.origin(shown, 0.7, "it sends more traffic, and no caller of it does")
    return _gap(view, "it is blamed for traffic, and nothing was recorded about it")


def failed_call(view: _Seen) -> LocalJudgement | None:
    """Failed calls: a symptom of the callee."""
    # A callee without a label was not judged yet: it is suspect until it says otherwise.
    callees = [callee for callee in _about(view.calls) if view.labels.get(callee) != "healthy"]
    if callees:
        return view.symptom(callees, FAILED_CALLS, "its calls fail", view.calls, 0.7)
    if view.calls:
        return view.origin(
            [*view.own, *view.calls], 0.4, "its calls fail, and all that it calls is healthy"
        )
    return None


def own_trouble(view: _Seen) -> LocalJudgement | None:
    """Unexplained own trouble: an origin."""
    if view.own:
        return view.origin(view.own, 0.6, "trouble of its own that no neighbour explains")
    if view.unusual and (view.blamed or view.packet.alerts):
        return view.origin(view.unusual, 0.5, "it behaves unlike usual, and others notice")
    return None


def nothing_recorded(view: _Seen) -> LocalJudgement | None:
    """Blamed or alarmed without own evidence: undecided."""
    if not view.blamed and not view.packet.alerts:
        return None
    gap = _gap(view, "others notice it, and nothing was recorded about it")
    if gap.claims or gap.next:
        return gap
    # Nothing else below explains it, and when its trouble began is not known.
    since, until = view.packet.window
    return _change_below(view, since, until) or gap


def _gap(view: _Seen, reason: str) -> LocalJudgement:
    """Undecided: look at the dependencies, and blame a dependency in trouble."""
    ahead = [neighbour.entity for neighbour in view.packet.neighbours if not neighbour.is_source]
    ill = [entity for entity in ahead if view.labels.get(entity) in ("origin", "symptom")]
    claims = tuple(Claim(entity, view.me, FAILED_CALLS, UNKNOWN_LINK) for entity in ill)
    steps = tuple(NextEntity(entity, reason) for entity in ahead if entity not in view.labels)[:2]
    return LocalJudgement("defer", None, 0.4, (), reason, claims, steps)


TROUBLE = ("error", "event", "exhausted", "failed-call")
RULES: tuple[Callable[[_Seen], LocalJudgement | None], ...] = (
    own_change, failed_part, changed_part, own_trouble_first, exhausted_by_traffic,
    blamed_for_traffic, failed_call, own_trouble, nothing_recorded,
)  # fmt: skip
