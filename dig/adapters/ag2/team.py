"""The state of a hub for its session: which event lies in front of which agent, and the turns.

Each method is made in one step of the session, so whatever fails in here stays in here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dig.adapters.base import AdapterState, Session, Turn, as_payload, current_turn, enclosing

from .routes import EnvelopeRoute, forecast, has_floor, is_here


@dataclass(eq=False)
class AgentRun:
    """A turn of an agent, from the message that it was given to the end of its handler.

    Attributes:
        client: Its `AgentClient`.
        envelope: The envelope that the agent was given; ``None``, if it was asked directly.
        turn: The turn.
        event: The event of what it was given; empty, if it was asked directly.
        error: The error that its handler has reported.
        comes_again: Whether the agent's answer came back, and it has to look at the message once
            more.
        said: The words of the agent to the outside while its turn goes on.
        is_limit: Whether its channel has ended at a limit by what it said.
    """

    client: Any
    envelope: Any
    turn: Turn
    event: str = ""
    error: BaseException | None = None
    comes_again: bool = False
    said: Any = None
    is_limit: bool = False


MAX_TURNS = RuntimeError("the workflow has had its max_turns")
"""The reason in a trace for a channel that has come to its limit; it is never raised."""


@dataclass(eq=False)
class OutgoingEnvelope:
    """A message on its way into the hub.

    Attributes:
        envelope: The message.
        route: The way of the envelope.
        work: The turn that sends it; ``None``: it comes from outside.
        is_last: Whether the envelope is the one that AG2's own handler posts at the end of a turn.
        answer: The event of it, if it is an answer and was submitted.
    """

    envelope: Any
    route: EnvelopeRoute
    work: AgentRun | None
    is_last: bool
    answer: str = ""

    @property
    def payload(self) -> Any:
        """The words of the envelope."""
        return as_payload(self.envelope.event_data)


class HubTeam(AdapterState):
    """The agents of a hub, and what is between them."""

    def __init__(
        self, hub: Any, session: Session, handoff: Callable[[Mapping[str, Any]], bool]
    ) -> None:
        """Begin with nothing on its way."""
        super().__init__(session)
        self.handoff = handoff
        self._hub = hub
        # (envelope, agent) -> event, and the instance that takes it up
        self._events: dict[tuple[str, str], tuple[str, str]] = {}
        # (channel, agent) -> the event that it has worked on, and the channel still waits for it
        self._unanswered: dict[tuple[str, str], str] = {}
        self._works: dict[Turn, AgentRun] = {}
        self._awaiting: dict[str, Turn] = {}  # channel -> the turn that has delegated over it
        self._asked: set[str] = set()  # channels over which a question came from outside

    # --- a message is sent ---

    def look_at(self, envelope: Any) -> OutgoingEnvelope | None:
        """An envelope is to be posted; ``None``: it is no message that an agent acts on."""
        work = self._work_of(envelope.sender_id)
        awaiting = self._awaiting.get(envelope.channel_id)
        awaited = self._works[awaiting].client.agent_id if awaiting in self._works else None
        route = forecast(self._hub, envelope, None if work and work.turn is awaiting else awaited)
        if route is not None and work is None:
            self._asked.add(envelope.channel_id)
        elif route is not None and route.is_answer and not self._is_asked(envelope.channel_id):
            route = self._to_creator(envelope)
        if route is None or (work is None and not route.agents):
            return None
        is_last = work is not None and self._is_last(envelope, work)
        sending = OutgoingEnvelope(envelope, route, work, is_last)
        if route.is_answer and work is not None:
            if route.is_limit:
                work.is_limit = True
            elif not is_last:
                work.said = sending.payload
            else:
                may_bounce = not (self.has_failed or route.asks)
                sending.answer = work.turn.submit(sending.payload, bounces=may_bounce)
        return sending

    def is_back(self, sending: OutgoingEnvelope) -> bool:
        """Whether an answer was sent back, once it is not held any more; else its turn is over."""
        work = sending.work
        if work is None:
            return False
        work.comes_again = self.has_back(work, sending.answer)
        return work.comes_again

    def has_back(self, work: AgentRun, answer: str) -> bool:
        """Whether a turn has its answer back, to look at its message again."""
        if not work.turn.was_bounced(answer):
            return False
        if self.has_failed:
            work.turn.end()
        return not self.has_failed

    def deliver(self, sending: OutgoingEnvelope) -> None:
        """The hub has accepted a message, and no agent has it yet."""
        envelope, route, work = sending.envelope, sending.route, sending.work
        if route.is_answer:
            return
        to = tuple(self._instance(id, envelope.channel_id) for id in route.agents)
        waits = bool(work and envelope.channel_id in work.client._handler_suppressed_channels)
        if work is None:
            event = self.session.request(sending.payload, to)
        elif not route.agents and waits:
            return work.turn.wait_for()
        elif sending.is_last:
            event = self._end(work, sending, to)
        else:
            event = work.turn.call(sending.payload, to, awaits=waits)
        for id, instance in zip(route.agents, to, strict=True):
            self._events[envelope.envelope_id, id] = event, instance
        if work is not None and waits:
            self._awaiting[envelope.channel_id] = work.turn

    def _end(self, work: AgentRun, sending: OutgoingEnvelope, to: tuple[str, ...]) -> str:
        """A turn ends with what it says, or hands on what it was given."""
        given = (work.event,) if to and self._is_from_agent(work) else ()

        def is_silent() -> bool:
            said = sending.envelope.event_data
            return self.session.guard.call(self.handoff, said, default=False)

        handed = work.turn.hand_over(to, sending.payload, silent=is_silent, available=given)
        return handed.events[-1] if handed.events else ""

    # --- a message is received ---

    def event_for(self, client: Any, envelope: Any) -> tuple[str, str]:
        """The event that an agent is to act on, and its instance; empty: there is none."""
        return self._events.pop((envelope.envelope_id, client.agent_id), ("", ""))

    def takes_up(self, client: Any, envelope: Any, event: str) -> bool:
        """Whether a message is what a turn of the agent waits for, which now goes on."""
        channel = envelope.channel_id
        turn = self._awaiting.get(channel)
        if turn is None or channel not in client._handler_suppressed_channels:
            return False
        del self._awaiting[channel]
        turn.receive(event)
        return True

    def begin(self, client: Any, envelope: Any, event: str, instance: str) -> AgentRun:
        """An agent begins to work on a message."""
        turn = self.session.begin(instance, (event,) if event else ())
        work = self.adopt(client, envelope, turn)
        work.event = event
        return work

    def has_note(self, client: Any, channel_id: str) -> bool:
        """Whether a note waits for an agent about the request that a channel waits for it with."""
        event = self._unanswered.get((channel_id, client.agent_id), "")
        monitor = self.session.monitor
        return monitor.graph.knows(event) and monitor.has_note(client.passport.name, event)

    def look_again(self, client: Any, envelope: Any) -> AgentRun | None:
        """An agent begins to work on a message once more that its channel still waits for."""
        name, graph = client.passport.name, self.session.monitor.graph
        event = self._unanswered.get((envelope.channel_id, client.agent_id), "")
        is_busy = any(work.client is client and work.envelope for work in self._works.values())
        # Notes lie in front of the agent's first instance, so that must be the one to look again.
        if is_busy or not graph.knows(event) or not self.session.instances.is_free(name):
            return None
        if not self._is_awaited(client, envelope):
            return None
        # The message again, so that the turn is for its request: it must be shown no other's notes.
        self.session.redirect(event, name, as_payload(envelope.event_data))
        return self.begin(client, envelope, event, name)

    def adopt(self, client: Any, envelope: Any, turn: Turn) -> AgentRun:
        """Know the agent and the message of a turn."""
        work = self._works[turn] = AgentRun(client, envelope, turn)
        return work

    def finish(self, work: AgentRun) -> str:
        """A handler has returned; gives the answer of its agent, if that is one."""
        turn = work.turn
        if not turn.is_open:
            return ""
        if work.error is not None:
            turn.fail(work.error)
        elif work.is_limit:
            turn.fail(MAX_TURNS, submits=True, kind="limit")
        elif work.said is not None:
            return turn.submit(work.said, bounces=False)
        elif not turn.outputs and self._is_silence(work):
            return turn.submit(as_payload(work.envelope.event_data), bounces=not self.has_failed)
        else:
            turn.end()
        return ""

    def give_up(self, event: str, instance: str, error: BaseException) -> None:
        """The task that waited for a held message is cancelled."""
        turn = self.session.begin(instance, (event,), at_once=True)
        turn.fail(error)

    def forget(self, work: AgentRun) -> None:
        """A handler is done, whatever became of its turn."""
        self._works.pop(work.turn, None)
        if work.envelope is not None:
            key = work.envelope.channel_id, work.client.agent_id
            self._unanswered.pop(key, None)
            if self._is_awaited(work.client, work.envelope):
                self._unanswered[key] = work.event
        for channel in [one for one, turn in self._awaiting.items() if turn is work.turn]:
            del self._awaiting[channel]

    def _is_awaited(self, client: Any, envelope: Any) -> bool:
        """Whether a channel waits for what an agent says to a message."""
        return has_floor(self._hub, envelope.channel_id, client.agent_id, envelope.envelope_id)

    # --- turns ---

    def report(self, agent_id: str, error: BaseException) -> None:
        """A handler says that its turn has failed."""
        work = self._work_of(agent_id)
        if work is not None:
            work.error = error

    def work_on(self, agent: Any) -> AgentRun | None:
        """The turn that the running code belongs to, if it is one of this agent."""
        turn = current_turn(self.session)
        work = self._works.get(turn) if turn else None
        return work if work is not None and work.client.agent is agent else None

    def _work_of(self, agent_id: str) -> AgentRun | None:
        mine = (self._works[turn] for turn in enclosing() if turn in self._works and turn.is_open)
        return next((work for work in mine if work.client.agent_id == agent_id), None)

    def _is_last(self, envelope: Any, work: AgentRun) -> bool:
        client, given = work.client, work.envelope
        is_default = client._on_envelope == client._run_default_handler
        return given is not None and is_default and envelope.causation_id == given.envelope_id

    def _is_asked(self, channel_id: str) -> bool:
        creator = self._hub._channels[channel_id].creator_id
        return channel_id in self._asked or not is_here(self._hub, creator)

    def _to_creator(self, envelope: Any) -> EnvelopeRoute | None:
        """The route of a result that ends a channel: to the agent that opened it for its work."""
        creator = self._hub._channels[envelope.channel_id].creator_id
        return None if creator == envelope.sender_id else EnvelopeRoute((creator,), is_answer=False)

    def _is_from_agent(self, work: AgentRun) -> bool:
        """Whether what a turn was given has come from another agent, not from outside."""
        graph = self.session.monitor.graph
        return (
            work.turn.holds(work.event) and graph.history.by(graph.event(work.event).n) is not None
        )

    def _is_silence(self, work: AgentRun) -> bool:
        """Whether an agent that says nothing ends something; else the others wait for it."""
        given = work.envelope
        if given is None:
            return False
        metadata = self._hub._channels.get(given.channel_id)
        if metadata is None or metadata.is_terminal() or not self._is_asked(given.channel_id):
            return False
        return not has_floor(self._hub, given.channel_id, work.client.agent_id)

    def _instance(self, agent_id: str, channel_id: str) -> str:
        turn = self._awaiting.get(channel_id)
        if turn is not None and turn.is_open and self._works[turn].client.agent_id == agent_id:
            return turn.instance
        # AG2 gives a model the history of one channel only, so messages of other channels that wait
        # for the same agent must not lie in front of one instance: a note would speak of them.
        return self.session.reserve_instance(self._hub.name_for(agent_id))
