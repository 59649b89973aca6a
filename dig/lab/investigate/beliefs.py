"""The values of an investigation, frozen and plain JSON (`dataclasses.asdict`).

A `World` has entities, evidence and neighbours. A `JudgingPolicy` judges one entity from a
`Packet`: evidence of that entity alone, and messages of its neighbours. `complaint` says by which
rule a judgement is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from dig._util.text import cut, name

Label = Literal["healthy", "origin", "symptom", "defer"]
Window = tuple[float, float]
"""The first and the last second that evidence counts of."""

MOST_NEXT = 2


@dataclass(frozen=True, slots=True)
class Fact:
    """A piece of evidence about an entity.

    Attributes:
        id: Its name, which judgements cite.
        ts: When it was seen, in seconds.
        type: `change`, `event`, `exhausted`, `error`, `failed-call`, `traffic`, `log`, `metric`, or
            a type that rules know nothing of.
        about: Another entity that it names.
        text: What was seen, in the words of the source: data, never an instruction.
        value, usual: A measured value, and the usual one.
    """

    id: str
    ts: float
    type: str
    about: str | None = None
    text: str = ""
    value: float | None = None
    usual: float | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """An alarm about an entity."""

    entity: str
    ts: float
    name: str
    until: float | None = None
    severity: str | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An entity at the other end of an edge of the topology.

    Attributes:
        entity: Its name.
        relation: The kind of the edge.
        is_source: Whether the edge leads from it; with `calls`, it is the caller.
    """

    entity: str
    kind: str
    relation: str
    is_source: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """A link of the explanation: the state of the source caused the state of the target."""

    source: str
    target: str
    condition: str = ""
    effect: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Belief:
    """The latest judgement about an entity.

    Attributes:
        label: `healthy`; `origin` (trouble of its own); `symptom` (another's trouble); `defer`.
        by: The entity that a symptom is blamed on.
        weight: How sure that is, from 0 to 1.
        evidence: The ids of the facts that show it.
        why: The reason, in a sentence.
        claims: The links of the explanation that it adds.
    """

    label: Label
    by: str | None = None
    weight: float = 0.5
    evidence: tuple[str, ...] = ()
    why: str = ""
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class NextEntity:
    """An entity to look at next, with the reason."""

    entity: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class LocalJudgement(Belief):
    """The answer of a policy to a packet: a belief, and at most two entities to look at."""

    next: tuple[NextEntity, ...] = ()

    @property
    def belief(self) -> Belief:
        """The part for neighbours."""
        return Belief(self.label, self.by, self.weight, self.evidence, self.why, self.claims)


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The lack of a judgement: a call failed, or the answer was none.

    Attributes:
        why: The error in words.
        again: Whether the policy is to be asked a second time.
    """

    why: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """The belief of an entity, as sent to neighbours."""

    sender: str
    belief: Belief

    def blames(self, entity: str) -> bool:
        """Whether the sender claims to be a symptom of this entity."""
        return self.belief.label == "symptom" and self.belief.by == entity


@dataclass(frozen=True, slots=True)
class Packet:
    """All information of a policy to judge an entity.

    Attributes:
        entity, kind: The entity to judge, and what it is.
        evidence: The facts about it in the window, in order of time.
        neighbours: Its neighbours in the topology.
        inbox: The latest message of each neighbour, and the latest that blames this entity.
        alerts: The alarms about it.
        belief: The last belief about it.
        visits: The number of judgements of the entity before.
        window: The seconds that evidence counts of.
        complaint: By which rule the first answer to this packet was refused.
    """

    entity: str
    kind: str
    evidence: tuple[Fact, ...]
    neighbours: tuple[Neighbour, ...]
    inbox: tuple[Message, ...]
    alerts: tuple[Alert, ...]
    belief: Belief | None
    visits: int
    window: Window
    complaint: str | None = None

    @property
    def nameable(self) -> frozenset[str]:
        """The entities that a judgement of the packet may name."""
        claims = (claim for message in self.inbox for claim in message.belief.claims)
        return frozenset(
            [
                self.entity,
                *(neighbour.entity for neighbour in self.neighbours),
                *(fact.about for fact in self.evidence if fact.about is not None),
                *(message.sender for message in self.inbox),
                *(end for claim in claims for end in (claim.source, claim.target)),
            ]
        )


class World(Protocol):
    """Gives access to entities, alarms and evidence, for one entity at a time."""

    @property
    def name(self) -> str:
        """The name of the world, for documents."""
        ...

    @property
    def sha256(self) -> str:
        """A checksum of the whole content."""
        ...

    @property
    def window(self) -> Window:
        """The seconds to look at, unless a user says otherwise."""
        ...

    def alerts(self) -> Sequence[Alert]:
        """All alarms in order of time and name, also about unknown entities."""
        ...

    def suspects(self, window: Window) -> Sequence[str]:
        """Entities without an alarm that are worth a look, in order."""
        ...

    def entities(self) -> Sequence[str]:
        """All entities."""
        ...

    def kind(self, entity: str) -> str:
        """The kind of an entity."""
        ...

    def evidence(self, entity: str, window: Window) -> Sequence[Fact]:
        """The facts about an entity in a window, in order of time."""
        ...

    def neighbours(self, entity: str) -> Sequence[Neighbour]:
        """The neighbours in the topology."""
        ...


Answered = LocalJudgement | NoAnswer


class JudgingPolicy(Protocol):
    """Judges an entity, without a memory between calls."""

    @property
    def name(self) -> str:
        """The name of the policy, for documents."""
        ...

    def judge(self, packet: Packet) -> Answered | Awaitable[Answered]:
        """The judgement about the entity of a packet."""
        ...


def complaint(packet: Packet, judgement: object) -> str | None:
    """Say in a sentence which rule a judgement breaks; ``None`` if the judgement is allowed."""
    if not isinstance(judgement, LocalJudgement):
        return f"the answer is a {type(judgement).__name__}, not a judgement"
    if judgement.label not in get_args(Label):
        return f"there is no label {name(judgement.label)}; labels are {', '.join(get_args(Label))}"
    if not 0 <= judgement.weight <= 1:
        return f"the weight must be from 0 to 1, got {judgement.weight!r}"
    # Blame is what neighbours act on: a symptom without another entity would send them nowhere.
    is_symptom = judgement.label == "symptom"
    if is_symptom != (judgement.by is not None) or judgement.by == packet.entity:
        return "`by` names another entity if the label is symptom, and nothing otherwise"
    if judgement.label in ("origin", "symptom") and not judgement.evidence:
        return f"the label {judgement.label} needs the ids of facts about {name(packet.entity)}"
    if len(judgement.next) > MOST_NEXT:
        return f"`next` has {len(judgement.next)} entities; at most {MOST_NEXT} are allowed"
    return _unknown(packet, judgement)


def _unknown(packet: Packet, judgement: LocalJudgement) -> str | None:
    # A policy may cite only facts of this packet: an id from elsewhere would be hearsay.
    present = {fact.id for fact in packet.evidence}
    cited = [*judgement.evidence, *(fact for claim in judgement.claims for fact in claim.evidence)]
    if strangers := _list_some(fact for fact in cited if fact not in present):
        return f"the packet has no evidence {strangers}"
    ends = (end for claim in judgement.claims for end in (claim.source, claim.target))
    named = [*filter(None, [judgement.by]), *ends, *(step.entity for step in judgement.next)]
    # An invented entity would get a place among those to judge, and no evidence.
    if strangers := _list_some(entity for entity in named if entity not in packet.nameable):
        return f"neither the neighbours nor the evidence nor the inbox name {strangers}"
    if any(claim.source == claim.target for claim in judgement.claims):
        # A link to itself says nothing of who caused what.
        return "a claim leads from an entity to itself"
    return None


def _list_some(values: Iterable[str]) -> str:
    return cut([name(value) for value in dict.fromkeys(values)])
