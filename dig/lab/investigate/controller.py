"""The loop of an investigation, and all state of the loop.

It has no I/O, no clock and no random numbers, and calls no policy:

    controller = Controller(world, Course())
    while (packet := controller.next()) is not None:
        controller.take(policy.judge(packet))

So rules, awaited models and tests drive the same object, and a run of it is a function of the world
and of the answers it was given. That is why the answers are all that a checkpoint holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

from dig.errors import RequestError, SettingsError

from .beliefs import (
    Alert,
    Belief,
    Claim,
    Fact,
    LocalJudgement,
    Message,
    NextEntity,
    NoAnswer,
    Packet,
    Window,
    World,
    complaint,
)

Ended = Literal["converged", "budget", "stopped"]

MOST_VISITS = 5
COOLDOWN = 2
"""So many other entities are judged before the same one is judged again, if there are others."""
MOST_FLIPS = 3
"""An entity whose label changes more often gets the label `defer`, for good."""
MOST_STEPS = 300
STEPS_PER_ENTITY = 10
CALLS = "calls"
"""The relation of services; an entity stands on what it has any other relation to."""
DEPTH = 3
"""So far below an entity a changed part may lie: a service's pod, and that one's node."""
MOST_FAILURES = 3
"""So many calls of a policy may fail in a row; then the investigation stops."""


@dataclass(frozen=True, slots=True)
class Course:
    """The course of an investigation, apart from world and policy.

    Attributes:
        window: The seconds that evidence counts of; ``None``: those of the world.
        has_messages: Whether neighbours are told of beliefs.
        order: A seed that permutes the entities with alarms at the start; ``None``: by time.
        budget: The most judgements; ``None``: ten for each entity, at most 300.
    """

    window: Window | None = None
    has_messages: bool = True
    order: int | None = None
    budget: int | None = None

    def __post_init__(self) -> None:
        """Refuse an empty window and a budget below 1.

        Raises:
            SettingsError: The window is empty, or the budget is not positive.
        """
        if self.window is not None and not self.window[0] <= self.window[1]:
            raise SettingsError(
                f"a window begins before it ends; got {self.window[0]:g}..{self.window[1]:g}"
            )
        if self.budget is not None and self.budget < 1:
            raise SettingsError(f"the budget must be at least 1 step, got {self.budget}")


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """A step of an investigation.

    Attributes:
        step: Its number, from 1.
        entity: The entity that was judged.
        visit: How often it has been judged, with this time.
        belief: The belief from here on.
        next: The entities that the policy wanted to be looked at.
        flips: How often its label has changed.
        is_frozen: Whether it is not judged any more, since its label has changed too often.
        told: The neighbours that were sent the belief.
        added: The entities that are to be judged for this reason.
        active: How many are to be judged after this step.
    """

    step: int
    entity: str
    visit: int
    belief: Belief
    next: tuple[NextEntity, ...]
    flips: int
    is_frozen: bool
    told: tuple[str, ...]
    added: tuple[str, ...]
    active: int


class Inbox:
    """The valid messages to an entity."""

    def __init__(self, entity: str) -> None:
        """Begin without a message."""
        self.entity = entity
        self._latest: dict[str, Message] = {}
        self._blame: dict[str, Message] = {}

    def receive(self, message: Message) -> None:
        """Keep the latest message of each sender, and the latest one with blame for this entity."""
        # Without the pop an update would keep its old place; the inbox is in order of arrival.
        self._latest.pop(message.sender, None)
        self._latest[message.sender] = message
        if message.blames(self.entity):
            self._blame[message.sender] = message
        # Only an explicit all-clear takes blame back; `defer` or other blame leaves it standing.
        elif message.belief.label in ("healthy", "origin"):
            self._blame.pop(message.sender, None)

    def __iter__(self) -> Iterator[Message]:
        for sender, message in self._latest.items():
            yield message
            blame = self._blame.get(sender)
            # The newest message of a sender may hide older blame that still stands: both are sent.
            if blame is not None and blame is not message:
                yield blame


@dataclass(slots=True)
class _State:
    inbox: Inbox
    belief: Belief | None = None
    visits: int = 0
    flips: int = 0
    last_step: int = 0
    is_frozen: bool = False


class Controller:
    """Chooses the entity to judge next, and sends new beliefs to neighbours.

    Attributes:
        world: The world that is investigated.
        course: The course of the investigation.
        window: The seconds that evidence counts of.
        budget: The most steps.
        alerts: The alarms in the window.
        ledger: The steps so far.
        answers: Every answer so far, also refused ones.
        ended: `converged`, `budget` or `stopped`; ``None`` while it goes on.
    """

    def __init__(self, world: World, course: Course | None = None) -> None:
        """Get ready; nothing is judged yet.

        Args:
            world: The world that is investigated.
            course: Its course; ``None``: the defaults.
        """
        course = course or Course()
        self.world = world
        self.course = course
        self.window = course.window or world.window
        entities = frozenset(world.entities())
        self.budget = course.budget or min(MOST_STEPS, STEPS_PER_ENTITY * max(1, len(entities)))
        self.alerts = tuple(alert for alert in world.alerts() if _is_within(alert, self.window))
        self.ledger: list[LedgerLine] = []
        self.answers: list[LocalJudgement | NoAnswer] = []
        self.ended: Ended | None = None
        self._states: dict[str, _State] = {}
        self._alerts: dict[str, list[Alert]] = {}
        for alert in self.alerts:
            if alert.entity in entities:
                self._alerts.setdefault(alert.entity, []).append(alert)
        # Alarms before suspects; a seed permutes both.
        start = dict.fromkeys([*self._alerts, *world.suspects(self.window)])
        # A dict is an ordered set: entities wait in order, and none waits twice.
        self._active = dict.fromkeys(_permute([*start], course.order))
        self._packet: Packet | None = None
        self._failures = 0

    @property
    def beliefs(self) -> dict[str, Belief]:
        """The latest belief about each judged entity, in the order of the first judgements."""
        return {name: state.belief for name, state in self._states.items() if state.belief}

    @property
    def claims(self) -> list[Claim]:
        """The claims of all beliefs."""
        return [claim for belief in self.beliefs.values() for claim in belief.claims]

    def next(self) -> Packet | None:
        """The packet to judge, unchanged until `take`; ``None`` at the end."""
        # The packet is kept until `take`, so that asking twice changes nothing.
        if self._packet is None and self.ended is None:
            self._drop_finished()
            if not self._active:
                self.ended = "converged"
            elif len(self.ledger) >= self.budget:
                self.ended = "budget"
            else:
                self._packet = self._packet_of(self._choose())
        return self._packet

    def take(self, answer: object) -> LedgerLine | None:
        """Take the judgement about the packet of `next`.

        Args:
            answer: A `LocalJudgement`, or `NoAnswer`. One that breaks a rule is asked for a second
                time, then it counts as `defer`.

        Returns:
            The step; ``None`` if the policy is asked once more about the same packet.

        Raises:
            RequestError: There is no packet to be judged.
        """
        packet = self._packet
        if packet is None:
            raise RequestError("no packet is to be judged now; next() gives the packet")
        if not isinstance(answer, LocalJudgement | NoAnswer):
            answer = NoAnswer(complaint(packet, answer) or "", again=True)
        # Refused answers are kept as well: a resumed controller must refuse them again.
        self.answers.append(answer)
        wrong = answer.why if isinstance(answer, NoAnswer) else complaint(packet, answer)
        is_refused = wrong is not None and (isinstance(answer, LocalJudgement) or answer.again)
        if is_refused and packet.complaint is None:
            # The policy gets one chance to correct itself, with the rule it broke.
            self._packet = replace(packet, complaint=wrong)
            return None
        # Refused answers show that the policy is reachable, so only failed calls add up.
        self._failures = self._failures + 1 if wrong is not None and not is_refused else 0
        if isinstance(answer, NoAnswer) or wrong is not None:
            answer = LocalJudgement("defer", weight=0.0, why=f"no judgement: {wrong}")
        self._packet = None
        line = self._step(packet.entity, answer)
        if self._failures >= MOST_FAILURES:
            self.ended = "stopped"
        return line

    # --- a step ---

    def _drop_finished(self) -> None:
        for entity in [*self._active]:
            if not self._may_be_judged(entity):
                del self._active[entity]
            elif not self._is_cooling(entity):
                return  # enough is known: there is one to judge

    def _may_be_judged(self, entity: str) -> bool:
        state = self._states.get(entity)
        return state is None or not (state.is_frozen or state.visits >= MOST_VISITS)

    def _is_cooling(self, entity: str) -> bool:
        state = self._states.get(entity)
        if state is None or not state.last_step:
            return False
        return len(self.ledger) - state.last_step < COOLDOWN

    def _choose(self) -> str:
        """Take the first entity that does not cool down; skipped entities go to the end."""
        for entity in [*self._active]:
            del self._active[entity]
            if not self._may_be_judged(entity):
                continue
            if not self._is_cooling(entity):
                return entity
            self._active[entity] = None
        first = next(iter(self._active))  # all of them are cooling down
        del self._active[first]
        return first

    def _packet_of(self, entity: str) -> Packet:
        state = self._state(entity)
        return Packet(
            entity=entity,
            kind=self.world.kind(entity),
            evidence=(*self.world.evidence(entity, self.window), *self._changed_parts(entity)),
            neighbours=tuple(self.world.neighbours(entity)),
            inbox=tuple(state.inbox),
            alerts=tuple(self._alerts.get(entity, ())),
            belief=state.belief,
            visits=state.visits,
            window=self.window,
        )

    def _changed_parts(self, entity: str) -> Iterator[Fact]:
        """The changes of the parts below an entity, as facts about the parts."""
        # A pod, its node, its configuration: nobody calls them, so no error has to name them.
        depths = {entity: 0}
        pending = [entity]
        for current in pending:
            for row in self.world.neighbours(current) if depths[current] < DEPTH else ():
                if row.relation != CALLS and not row.is_source and row.entity not in depths:
                    depths[row.entity] = depths[current] + 1
                    pending.append(row.entity)
        for part in pending[1:]:
            for fact in self.world.evidence(part, self.window):
                if fact.type == "change":
                    yield replace(fact, about=part)

    def _step(self, entity: str, judgement: LocalJudgement) -> LedgerLine:
        # `_packet_of` has made the state.
        state = self._states[entity]
        before, belief = state.belief, _with_its_cause(entity, judgement.belief)
        state.visits += 1
        state.last_step = len(self.ledger) + 1
        if before is not None and before.label != belief.label:
            state.flips += 1
        # Neighbours may convince each other in turn for ever; a frozen label ends that.
        if state.flips > MOST_FLIPS:
            belief, state.is_frozen = replace(belief, label="defer", by=None), True
        state.belief = belief
        ends = [end for claim in belief.claims for end in (claim.source, claim.target)]
        proposed = [*ends, *(step.entity for step in judgement.next)]
        # Weight and reason may change without news; else beliefs would circulate without end.
        is_news = before is None or (before.label, before.by) != (belief.label, belief.by)
        recipients = self._tell(entity, belief) if is_news and self.course.has_messages else ()
        # A neighbour that was never judged is not judged because of a message alone.
        again = [name for name in recipients if self._has_belief(name)]
        added = [name for name in proposed if not self._has_belief(name)]
        added += [name for name in again if self._may_be_judged(name)]
        # A policy that names its own entity gives no reason to judge that entity again.
        waiting = {*self._active, entity}
        added = [name for name in dict.fromkeys(added) if name not in waiting]
        self._active |= dict.fromkeys(added)
        line = LedgerLine(
            step=state.last_step, entity=entity, visit=state.visits, belief=belief,
            next=judgement.next, flips=state.flips, is_frozen=state.is_frozen,
            told=recipients, added=tuple(added), active=len(self._active),
        )  # fmt: skip
        self.ledger.append(line)
        return line

    def _has_belief(self, entity: str) -> bool:
        state = self._states.get(entity)
        return state is not None and state.belief is not None

    def _tell(self, entity: str, belief: Belief) -> tuple[str, ...]:
        """Send the belief to neighbours in the topology, and to neighbours by a claim."""
        # The topology may lack edges; claims connect entities as well.
        recipients = dict.fromkeys(row.entity for row in self.world.neighbours(entity))
        for claim in self.claims:
            if entity in (claim.source, claim.target):
                recipients |= {claim.source: None, claim.target: None}
        recipients.pop(entity, None)
        for other in recipients:
            self._state(other).inbox.receive(Message(entity, belief))
        return (*recipients,)

    def _state(self, entity: str) -> _State:
        return self._states.setdefault(entity, _State(Inbox(entity)))


def _with_its_cause(entity: str, belief: Belief) -> Belief:
    """Add the link from cause to symptom to the claims of a belief, if missing."""
    cause = belief.by
    if cause is None or any(
        claim.source == cause and claim.target == entity for claim in belief.claims
    ):
        return belief
    claim = Claim(cause, entity, evidence=belief.evidence)
    return replace(belief, claims=(*belief.claims, claim))


def _is_within(alert: Alert, window: Window) -> bool:
    until = alert.ts if alert.until is None else alert.until
    return alert.ts <= window[1] and until >= window[0]


def _permute(entities: Sequence[str], seed: int | None) -> list[str]:
    if seed is None:
        return [*entities]
    # A hash, not `random`: the order of an entity does not depend on which others there are.
    return sorted(entities, key=lambda name: sha256(f"{seed}/{name}".encode()).digest())
