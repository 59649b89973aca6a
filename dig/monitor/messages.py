"""Inputs and results of the monitor: outputs, pending events, gates, effects.

A host (the bus, the simulator, a wrapper, your own loop) calls the monitor and carries out the
effects that it returns, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dig._util.frozen import frozen
from dig.detectors.finding import Finding
from dig.detectors.interventions import Intervention
from dig.detectors.policy import Otherwise
from dig.graph.graph import InteractionGraph
from dig.graph.records import HealRow


@frozen
class Output:
    """An event that an activation, or the environment, wants to generate.

    Attributes:
        payload: Plain JSON; it is copied.
        to: The agents that it should go to. Not looked at for a final event.
        type: `problem`, `solution`, `raw_data`, `message`, `notice`, or a type of your own.
        final: Whether the output submits an answer.
        policy: Decides the recipients instead of `to`, now and later; if it fails at once, `to`
            is what counts.
        traceparent: The W3C trace context of its sender, if that is traced; it stands beside
            the payload, and exports link to it.
    """

    payload: Any
    to: tuple[str, ...] = ()
    type: str = "message"
    final: bool = False
    policy: DeliveryPolicy | None = None
    traceparent: str | None = None


@frozen
class About:
    """The subject of a note of healing, as data, for agents that do not read its words.

    Attributes:
        pattern: The pattern of the finding: `ET`, or `judge:ET` if a judge reported it.
        events: The events that the finding names.
        agents: The agents that it names, or that made what it names.
        work: The payloads of those of its events that are still open or lost, by id.
        lost: The lost events: no agent has them, and they are on their way to none.
        without: The agents that the recipients are to do without: their part is to be done by
            others.
        more: Whether the note has only the first of many events or agents.
    """

    pattern: str
    events: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    work: Mapping[str, Any] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    more: bool = False

    def row(self) -> dict[str, Any]:
        """The subject in a trace, as plain JSON."""
        named = {"pattern": self.pattern, "events": [*self.events], "agents": [*self.agents]}
        named |= {"without": [*self.without]} if self.without else {}
        return {**named, "more": True} if self.more else named


@frozen
class Pending:
    """An event as it lies in front of an agent.

    Attributes:
        id: Its id.
        type: Its type.
        sender: The agent that generated it, ``None`` (it came from outside) or ``"system"``.
        payload: The payload of the event.
        notes: The notes of the system beside the payload for this recipient.
        final: Whether the event is a submitted answer that came back.
        about: The subject of the notes beside it, as data; of a system event: its own subject.
    """

    id: str
    type: str
    sender: str | None
    payload: Any
    notes: tuple[str, ...] = ()
    final: bool = False
    about: tuple[About, ...] = ()


@frozen
class Situation:
    """The view that a delivery policy is given.

    Attributes:
        graph: The graph as it stands.
        sender: The agent that generates the event, or ``None``.
        event: The event's id; ``None`` when its first recipients are asked for.
    """

    graph: InteractionGraph
    sender: str | None
    event: str | None = None

    def load(self, agent: str) -> int:
        """The number of events that lie in front of an agent or are on their way to it."""
        state = self.graph.agents[agent]
        return len(state.buffer) + len(state.incoming)

    @property
    def is_consumed(self) -> bool:
        """Whether an agent has consumed the event already."""
        return self.event is not None and self.graph.event(self.event).consumed


@frozen
class Step:
    """The decision of a delivery policy at one moment (paper, eq. 3: recipients, and a rest).

    Attributes:
        to: The agents that the event is on its way to from now on; ``None``: no change.
        arrives: Whether the event arrives now; else it stays on its way.
        then: The policy left over; ``None``: nothing more will be asked.
        in_s: Seconds until `then` is asked.
        in_t: Records until `then` is asked, or less, when nothing else can happen before.
        expires: The policy is used up: the event is on its way to no agent any more.
        also: Further policies left over, each asked in its own time.
    """

    to: tuple[str, ...] | None = None
    arrives: bool = True
    then: DeliveryPolicy | None = None
    in_s: float | None = None
    in_t: int | None = None
    expires: bool = False
    also: tuple[Later, ...] = ()


@frozen
class Later:
    """A delivery policy, and when it is asked, as in `Step`.

    In a run that repeats a recorded one, `at` has the number of the record at which it was asked
    then, and the moment in microseconds.
    """

    then: DeliveryPolicy
    in_s: float | None = None
    in_t: int | None = None
    at: tuple[int, int] | None = None


class DeliveryPolicy(Protocol):
    """Decides the recipients of an event, and when; what is left over of it is `Step.then`."""

    def step(self, now: Situation) -> Step:
        """Decide the recipients at this moment, and what to ask later."""
        ...


# --- gates ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hold:
    """A gate wants to keep an event held: for how long, and what happens when time is up.

    Attributes:
        seconds: The seconds that the gate may take.
        otherwise: The change to the event if the gate takes longer; nothing: it is just released.
    """

    seconds: float
    otherwise: tuple[Intervention, ...] = ()


class Gate(Protocol):
    """Keeps some events held for longer: a person's approval, a check that takes its time."""

    name: str

    def hold(self, graph: InteractionGraph, event: Pending) -> Hold | None:
        """Whether this gate wants to decide about an event that is about to be released."""
        ...

    async def decide(self, event: Pending) -> Iterable[Intervention]:
        """Decide; what it returns is done to the event before its release.

        `Reroute` to no agent withholds the event: it is orphaned, which a detector may raise.
        """
        ...


# --- effects: what a host has to do ---------------------------------------------------------


@frozen
class Delivered:
    """An event, by its id, is in an agent's buffer now; `Started` shows what it carries."""

    agent: str
    event: str


@frozen
class Wake:
    """An idle agent's buffer has changed: start it as soon as you can."""

    agent: str


@frozen
class Started:
    """An activation has begun, in front of its agent's whole buffer.

    Attributes:
        activation: Its id.
        agent: The agent.
        events: What the agent is shown of the buffer.
        kept: Notes of the system for turns about other requests: the host shows them to nobody
            and leaves them where they lie (fate `delay`).
    """

    activation: str
    agent: str
    events: tuple[Pending, ...]
    kept: tuple[str, ...] = ()


@frozen
class Raised:
    """A detector raised a finding."""

    finding: Finding


@frozen
class Healed:
    """Healing did something about a finding, or was refused."""

    row: HealRow


@frozen
class TakenOut:
    """Healing has taken an agent out of the team; what it still says is its host's to report.

    Attributes:
        agent: Its name.
        activation: Its activation in progress, if it had one.
    """

    agent: str
    activation: str | None


@frozen
class Asked:
    """A gate holds an event: run `gate.decide(event)`, then call `Monitor.resolve`."""

    gate: Gate
    event: Pending


@frozen
class Proposed:
    """A policy has a person decide about the healing of a finding; then call `Monitor.decide`.

    Attributes:
        row: The logical time of the finding's record.
        finding: The finding.
        interventions: The interventions that would be made.
        reason: Why a person is asked.
        seconds: The seconds that the person has, on the run's clock.
        otherwise: The decision after that.
        about: The subject of the proposal, as data.
    """

    row: int
    finding: Finding
    interventions: tuple[Intervention, ...]
    reason: str
    seconds: float
    otherwise: Otherwise
    about: About


@frozen
class Answered:
    """A final event was accepted.

    Attributes:
        event: Its id.
        payload: The answer.
        problems: The events from outside that it answers, as generated.
        notes: The notes of the system beside it.
    """

    event: str
    payload: Any
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()


@frozen
class ComponentFailed:
    """A part that was handed in has failed: a detector, healer, gate or follower, for instance."""

    component: str
    what: str


@frozen
class PartsSlow:
    """Slow looks of detectors and slow writes of the sink have added up to seconds; told once.

    Attributes:
        slow_s: The seconds of the slow ones.
        detectors: The share of the time since the run began that detectors took.
        sink: The same of the sink.
    """

    slow_s: float
    detectors: float
    sink: float


@frozen
class Over:
    """The run has ended; only `Monitor.finish` may still be called."""

    outcome: str


Effect = (
    Delivered
    | Wake
    | Started
    | Raised
    | Healed
    | TakenOut
    | ComponentFailed
    | PartsSlow
    | Asked
    | Proposed
    | Answered
    | Over
)
