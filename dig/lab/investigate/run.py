"""A recorded run as a world: the entities are agents and the outcome, the evidence is signs.

`blame_by_beliefs` is behind the suspect `beliefs`. A sign that a neighbour's earlier one explains
makes an agent a symptom of that neighbour; any other strong sign makes it an origin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import sha256

from dig._util.text import one_line
from dig.diagnosis.attribution.structural import SignGroup, StructuralAnswer, prefer_mechanism
from dig.diagnosis.case import Case
from dig.diagnosis.causes import OUTCOME
from dig.diagnosis.components import blamed_agents
from dig.diagnosis.signs.table import ROWS, SignRow
from dig.diagnosis.suspects import BySigns
from dig.show.document import Status
from dig.traces.run import RecordedEvent

from .beliefs import Alert, Claim, Fact, LocalJudgement, Message, Neighbour, Packet, Window
from .investigation import investigate

STRONG = 0.5
"""The score from which on a sign that nothing explains makes an agent an origin."""
LESS = 0.3
"""The part of its weight that an agent keeps which is no origin."""

WORKS_FOR, ENDS_IN = "works for", "ends in"
SPOILT, MISSING = "its work is wrong", "its work is missing"
_ROWS: Mapping[str, SignRow] = {row.name: row for row in ROWS}


class RunWorld:
    """A run as a world; times are record numbers, and fact ids begin with them.

    Attributes:
        case: The run.
        groups: The signs by the id of their facts.
    """

    def __init__(self, case: Case) -> None:
        """Find the signs."""
        self.case = case
        self.groups: dict[str, SignGroup] = {}
        self._structure = StructuralAnswer(case)
        self._facts: dict[str, list[Fact]] = {agent: [] for agent in case.run.agents}
        groups = self._structure.groups
        for group in sorted(groups, key=lambda group: (group.first.t, group.first.name)):
            for fact in self._facts_of(group):
                self.groups[fact.id] = group
                self._facts[group.agent].append(fact)
        shown = [(row, failure.kind) for failure in case.failures for row in failure.evidence]
        self._facts[OUTCOME] = [
            Fact(f"{row.t or 0}.{kind}.{n}", float(row.t or 0), "failure", text=row.says)
            for n, (row, kind) in enumerate(shown)
        ]

    @property
    def name(self) -> str:
        """The name of the source."""
        return self.case.name

    @cached_property
    def sha256(self) -> str:
        """A checksum of the records."""
        return sha256(repr(self.case.run.records).encode()).hexdigest()

    @property
    def window(self) -> Window:
        """The whole run."""
        return 0.0, float(self.case.run.last.t)

    def alerts(self) -> Sequence[Alert]:
        """The failures, and the findings about agents."""
        alerts = [Alert(OUTCOME, fact.ts, fact.text) for fact in self._facts[OUTCOME]]
        alerts += [
            Alert(agent, float(row.t), str(row.pattern))
            for row, agents in blamed_agents(self.case.run)
            for agent in agents
        ]
        return sorted(alerts, key=lambda alert: (alert.ts, alert.entity, alert.name))

    def suspects(self, window: Window) -> Sequence[str]:
        """The agents with signs, by the time of the first."""
        return sorted(
            (entity for entity, facts in self._facts.items() if facts and entity != OUTCOME),
            key=lambda entity: (self._facts[entity][0].ts, entity),
        )

    def entities(self) -> Sequence[str]:
        """The agents and the outcome."""
        return [*self._facts]

    def kind(self, entity: str) -> str:
        """`agent` or `outcome`."""
        return OUTCOME if entity == OUTCOME else "agent"

    def evidence(self, entity: str, window: Window) -> Sequence[Fact]:
        """The signs of an agent; the failures of the run."""
        return [fact for fact in self._facts.get(entity, ()) if window[0] <= fact.ts <= window[1]]

    def neighbours(self, entity: str) -> Sequence[Neighbour]:
        """The senders and recipients of work, and the outcome."""
        return self._neighbours.get(entity, ())

    @cached_property
    def _neighbours(self) -> Mapping[str, Sequence[Neighbour]]:
        pairs = {(agent, OUTCOME, ENDS_IN) for agent in self.case.run.agents}
        for event in self.case.run.events.values():
            if event.agent is not None and event.is_work:
                pairs |= {(event.agent, to, WORKS_FOR) for to in _recipients(event)}
        neighbours: dict[str, list[Neighbour]] = {}
        for source, target, relation in sorted(pairs):
            if source != target and target in self._facts and source in self._facts:
                row = Neighbour(target, self.kind(target), relation, False)
                neighbours.setdefault(source, []).append(row)
                row = Neighbour(source, self.kind(source), relation, True)
                neighbours.setdefault(target, []).append(row)
        return neighbours

    def other_signs(self, group: SignGroup) -> list[SignGroup]:
        """The other signs of an agent, the strongest first."""
        own = (other for other in self._structure.groups if other.agent == group.agent)
        groups = (other for other in own if other.first.name != group.first.name)
        return sorted(groups, key=lambda other: (-other.score, other.first.t))

    def _facts_of(self, group: SignGroup) -> Iterator[Fact]:
        """A fact for each component that the signs of a row affect, at least one."""
        first = group.first
        affected: dict[str | None, None] = {}
        for sign in group.signs:
            for event in self.case.analysis.events_of(sign):
                affected |= dict.fromkeys(self._agents_after(group.agent, event))
        # An agent never explains itself.
        affected.pop(group.agent, None)
        if group.status != "recovered":
            affected[OUTCOME] = None
        # One fact even without an effect: the agent must have evidence to be judged by.
        for n, about in enumerate(affected or {None: None}):
            yield Fact(
                f"{first.t}.{first.name}.{group.agent}.{n}", float(first.t), first.name, about,
                one_line(first.says, 200), max(0.0, group.score),
            )  # fmt: skip

    def _agents_after(self, agent: str, event: RecordedEvent) -> list[str]:
        """The agents that wait for an event, or for the result of an event from outside."""
        agents = self.case.run.agents
        parts = self.case.analysis.parts
        waiting: list[str | None] = [*_recipients(event)]
        if event.agent != agent:
            waiting = [event.agent, parts.report_to(event) if parts is not None else None]
        return [name for name in waiting if name is not None and name in agents]


def _recipients(event: RecordedEvent) -> list[str]:
    return [*dict.fromkeys([*event.to, *(agent for agent, _ in event.arrivals)])]


class RunRules:
    """Judges agents by signs, and the outcome by messages of agents."""

    name = "rules for runs"

    def judge(self, packet: Packet) -> LocalJudgement:
        """An origin, a symptom of a neighbour that explains the signs, `healthy` or `defer`."""
        if packet.kind == OUTCOME:
            return _outcome(packet)
        facts = [fact for fact in packet.evidence if _strength(fact) > 0]
        if not facts:
            return LocalJudgement("healthy", weight=0.0, why="no sign")
        causes = {fact.id: _explaining(fact, packet) for fact in facts}
        free = [fact for fact in facts if causes[fact.id] is None]
        best = max(free, key=_strength, default=None)
        # A strong sign that nobody explains outweighs any number of explained ones.
        if best is not None and _strength(best) >= STRONG:
            return _origin(packet, facts, best)
        explained = max(
            (fact for fact in facts if causes[fact.id] is not None), key=_strength, default=None
        )
        if explained is not None:
            cause = causes[explained.id]
            reason = f"{explained.text}; {cause} explains it"
            weight = LESS * min(1.0, _strength(explained))
            claims: tuple[Claim, ...] = (
                Claim(str(cause), packet.entity, MISSING, explained.type, (explained.id,)),
            )
            claims += _claims(packet, [fact for fact in facts if fact.about != cause], explained)
            return LocalJudgement("symptom", cause, weight, (explained.id,), reason, claims)
        weakest = max(facts, key=_strength)
        weight = LESS * min(1.0, _strength(weakest))
        return LocalJudgement("defer", None, weight, (weakest.id,), weakest.text)


def _strength(fact: Fact) -> float:
    return fact.value or 0.0


def _origin(packet: Packet, facts: Sequence[Fact], best: Fact) -> LocalJudgement:
    shown = [fact for fact in facts if fact.type == best.type] or [best]
    ids = tuple(fact.id for fact in shown)
    claims = _claims(packet, shown, best)
    return LocalJudgement("origin", None, min(1.0, _strength(best)), ids, best.text, claims)


def _claims(packet: Packet, facts: Sequence[Fact], sign: Fact) -> tuple[Claim, ...]:
    """The effects of a sign on other agents."""
    condition = SPOILT if _ROWS[sign.type].spoils else MISSING
    return tuple(
        Claim(packet.entity, fact.about, condition, "", (fact.id,))
        for fact in facts
        if fact.about is not None and fact.about != packet.entity and fact.type == sign.type
    )


def _explaining(fact: Fact, packet: Packet) -> str | None:
    """The neighbour whose earlier trouble explains a sign; ``None`` if there is none."""
    row = _ROWS[fact.type]
    if not row.may_follow:
        return None
    for message in packet.inbox:
        for claim in _about_me(packet, message):
            # Missing work explains waiting, but never wrong work.
            is_like = claim.condition == SPOILT or not row.spoils
            if is_like and _began(claim) < fact.ts:
                return message.sender
    return None


def _about_me(packet: Packet, message: Message) -> Iterator[Claim]:
    """The claims of a neighbour in trouble about effects on this agent."""
    if message.belief.label in ("origin", "symptom"):
        for claim in message.belief.claims:
            if (claim.source, claim.target) == (message.sender, packet.entity):
                yield claim


def _began(claim: Claim) -> float:
    # The id of a fact begins with its time, so a claim needs no time of its own.
    times = (float(fact_id.partition(".")[0]) for fact_id in claim.evidence)
    return min(times, default=float("inf"))


def _outcome(packet: Packet) -> LocalJudgement:
    """Judge the outcome as a symptom of the surest origin."""
    origins = [message for message in packet.inbox if message.belief.label == "origin"]
    messages = [message for message in origins if any(_about_me(packet, message))]
    if not (messages and packet.evidence):
        return LocalJudgement("defer", None, 0.0, (), "no agent has told of trouble of its own")
    messages.sort(key=lambda message: (-message.belief.weight, message.sender))
    ids = (packet.evidence[0].id,)
    claims = tuple(
        Claim(message.sender, packet.entity, MISSING, "it failed", ids) for message in messages
    )
    return LocalJudgement("symptom", messages[0].sender, 0.0, ids, "the run failed", claims)


def blame_by_beliefs(case: Case) -> list[list[SignGroup]]:
    """The signs of each agent by an investigation of a run, the agents of the frontier first.

    The first signs of an agent are those that its belief rests on; their score is its weight.
    """
    world = RunWorld(case)
    investigation = investigate(world, RunRules())
    judged = {entity.name: entity for entity in investigation.entities}
    agents: list[list[SignGroup]] = []
    for ranked_entity in investigation.ranked:
        belief = judged[ranked_entity.entity]
        facts = [fact for fact in belief.evidence if fact in world.groups]
        if facts:
            status: Status = "propagated" if belief.label in ("origin", "symptom") else "open"
            status = "origin" if ranked_entity.entity in investigation.frontier else status
            # The weight of the belief replaces the score of the sign: it knows the neighbours too.
            first = replace(world.groups[facts[0]], score=ranked_entity.weight, status=status)
            agents.append(prefer_mechanism([first, *world.other_signs(first)]))
    return sorted(agents, key=lambda groups: (-groups[0].score, groups[0].first.t, groups[0].agent))


BELIEFS = BySigns("beliefs", blame_by_beliefs)
"""The suspects that an investigation of a run names."""
