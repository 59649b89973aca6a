"""The state of a hub for the session: events in front of agents, and turns.

The session calls each method inside a guard, so an exception here never reaches the team.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dig.adapters import base

from .routes import EnvelopeRoute, forecast, has_floor, is_here

if TYPE_CHECKING:
    from dig.errors import BudgetExceeded
    from dig.runtime.spending import Account


@dataclass(eq=False)
class AgentRun:
    """A turn of an agent, from a message to the end of the agent's handler.

    Attributes:
        client: Its `AgentClient`.
        envelope: The envelope in front of the agent; ``None``, if it was asked directly.
        turn: The turn.
        event: The event of the envelope; empty, if the agent was asked directly.
        error: The error that its handler has reported.
        comes_again: Whether the agent's answer came back, so that the handler runs once more.
        answer: The words of the agent to the outside while its turn goes on.
        is_limit: Whether its last message made the channel reach its turn limit.
        last_of: The account of a stopped request whose last turn this is.
    """

    client: Any
    envelope: Any
    turn: base.Turn
    event: str = ""
    error: BaseException | None = None
    comes_again: bool = False
    answer: Any = None
    is_limit: bool = False
    last_of: Account | None = None


MAX_TURNS = BaseException("the workflow has had its max_turns")
"""The reason in a trace for a channel at its limit; it is never raised."""


@dataclass(eq=False)
class OutgoingEnvelope:
    """A message on its way into the hub.

    Attributes:
        envelope: The message.
        route: The way of the envelope.
        run: The run that sends it; ``None``: it comes from outside.
        is_last: Whether AG2's own handler posts it at the end of a turn.
        answer: The event of it, if it is an answer and was submitted.
        closes: Whether a budget has stopped its channel, which is closed after it.
    """

    envelope: Any
    route: EnvelopeRoute
    run: AgentRun | None
    is_last: bool
    answer: str = ""
    closes: Account | None = None

    @property
    def payload(self) -> Any:
        """The words of the envelope."""
        return base.as_payload(self.envelope.event_data)


class HubTeam(base.AdapterState):
    """The agents of a hub, and the messages between them."""

    def __init__(
        self, hub: Any, session: base.Session, handoff: Callable[[Mapping[str, Any]], bool]
    ) -> None:
        super().__init__(session)
        self.handoff = handoff
        self._hub = hub
        # (envelope, agent) -> event, and the instance that takes it up
        self._events: dict[tuple[str, str], tuple[str, str]] = {}
        # (channel, agent) -> the event that it has worked on, and the channel still waits for it
        self._unanswered: dict[tuple[str, str], str] = {}
        self._runs: dict[base.Turn, AgentRun] = {}
        self._awaiting: dict[str, base.Turn] = {}  # channel -> the turn that has delegated over it
        self._external: set[str] = set()  # channels over which a question came from outside
        self._last: dict[str, Account] = {}  # event -> the account whose last turn is about it
        # The channels that a budget has stopped, and what to raise if there is no answer.
        self.stopped: dict[str, BudgetExceeded | None] = {}

    # --- a message is sent ---

    def prepare(self, envelope: Any) -> OutgoingEnvelope | None:
        """Prepare an envelope for posting; ``None``: no agent acts on it."""
        run, channel = self._run_of(envelope.sender_id), envelope.channel_id
        awaiting = self._awaiting.get(channel)
        awaited = self._runs[awaiting].client.agent_id if awaiting in self._runs else None
        route = forecast(self._hub, envelope, None if run and run.turn is awaiting else awaited)
        if route is not None and run is None:
            self._external.add(channel)
        elif route is not None and route.is_answer and not self._is_external(channel):
            # A result that ends a channel goes to the agent that has opened it for its work.
            creator = self._hub._channels[channel].creator_id
            if creator == envelope.sender_id:
                return None
            route = EnvelopeRoute((creator,), is_answer=False)
        if route is None or (run is None and not route.agents):
            return None
        outgoing = OutgoingEnvelope(
            envelope, route, run, run is not None and _is_last(envelope, run)
        )
        if run is not None and run.last_of is not None and outgoing.is_last:
            self._hand_back(run, run.last_of, outgoing)
        elif route.is_answer and run is not None:
            if route.is_limit:
                run.is_limit = True
            elif not outgoing.is_last:
                run.answer = outgoing.payload
            else:
                may_bounce = not (self.has_failed or route.asks)
                outgoing.answer = run.turn.submit(outgoing.payload, bounces=may_bounce)
        return outgoing

    def _hand_back(self, run: AgentRun, account: Account, outgoing: OutgoingEnvelope) -> None:
        """Take the words of a last turn as the answer, unless the agent only hands over."""
        outgoing.route, outgoing.closes = EnvelopeRoute((), is_answer=True), account
        packet = outgoing.envelope.event_data
        if not self.session.guard.call(self.handoff, packet, default=False):
            outgoing.answer = run.turn.submit(outgoing.payload, bounces=False)
        else:
            self._fail(run.turn, outgoing.envelope, account)

    def _fail(self, turn: base.Turn, envelope: Any, account: Account) -> None:
        """End a request at a limit without an answer."""
        exceeded = self.stopped[envelope.channel_id] = account.exceeded()
        turn.fail(exceeded, submits=True, kind="limit")

    def refuse(self, client: Any, envelope: Any, event: str, instance: str) -> Account | None:
        """The account of a request without budget; ``None``: the agent may work on a message.

        The entry agent has the last turn, if the channel gives it the floor at the limit.
        """
        account = self.session.refuses(event)
        if account is None:
            return None
        if account.entry == client.passport.name and self.session.hand_back(account):
            self._last[event] = account
            return None
        self.stopped.setdefault(envelope.channel_id)
        if account.stage != "over":
            turn = self.session.begin(instance, (event,), at_once=True)
            self._fail(turn, envelope, account)
        return account

    def is_bounced(self, outgoing: OutgoingEnvelope) -> bool:
        """Whether an answer comes back after release; otherwise the turn is over."""
        run = outgoing.run
        if run is None:
            return False
        run.comes_again = self.takes_back(run, outgoing.answer)
        return run.comes_again

    def takes_back(self, run: AgentRun, answer: str) -> bool:
        """Whether a turn has an answer back, to look at the message again."""
        if not run.turn.was_bounced(answer):
            return False
        if self.has_failed:
            run.turn.end()
        return not self.has_failed

    def deliver(self, outgoing: OutgoingEnvelope) -> None:
        """Make the events of a message accepted by the hub, before any delivery."""
        envelope, route, run = outgoing.envelope, outgoing.route, outgoing.run
        if route.is_answer:
            return
        to = tuple(self._instance(id, envelope.channel_id) for id in route.agents)
        waits = bool(run and envelope.channel_id in run.client._handler_suppressed_channels)
        if run is None:
            event = self.session.request(outgoing.payload, to)
        elif not route.agents and waits:
            return run.turn.wait_for()
        elif outgoing.is_last:
            event = self._end(run, outgoing, to)
        else:
            event = run.turn.call(outgoing.payload, to, awaits=waits)
        for id, instance in zip(route.agents, to, strict=True):
            self._events[envelope.envelope_id, id] = event, instance
        if run is not None and waits:
            self._awaiting[envelope.channel_id] = run.turn

    def _end(self, run: AgentRun, outgoing: OutgoingEnvelope, to: tuple[str, ...]) -> str:
        """End a turn with words, or by passing the message on."""
        graph, event = self.session.monitor.graph, run.event
        # An agent does not pass on a message from outside: it sends one to others in its own name.
        is_from_agent = run.turn.holds(event) and graph.history.by(graph.event(event).n) is not None

        def is_silent() -> bool:
            packet = outgoing.envelope.event_data
            return self.session.guard.call(self.handoff, packet, default=False)

        handed = run.turn.hand_over(
            to,
            outgoing.payload,
            silent=is_silent,
            available=(event,) if to and is_from_agent else (),
        )
        return handed.events[-1] if handed.events else ""

    # --- a message is received ---

    def event_for(self, client: Any, envelope: Any) -> tuple[str, str]:
        """The event of an envelope for an agent, and the agent's instance; empty: there is none."""
        return self._events.pop((envelope.envelope_id, client.agent_id), ("", ""))

    def resume(self, client: Any, envelope: Any, event: str) -> bool:
        """Resume the agent's turn waiting for a message; returns whether there is such a turn."""
        channel = envelope.channel_id
        turn = self._awaiting.get(channel)
        if turn is None or channel not in client._handler_suppressed_channels:
            return False
        del self._awaiting[channel]
        turn.receive(event)
        return True

    def begin(self, client: Any, envelope: Any, event: str, instance: str) -> AgentRun:
        """Begin a turn on a message."""
        turn = self.session.begin(instance, (event,) if event else ())
        run = self.adopt(client, envelope, turn)
        run.event, run.last_of = event, self._last.pop(event, None)
        if run.last_of is not None:
            turn.notebook.texts.append(run.last_of.note)
            self.stopped[envelope.channel_id] = None  # nothing that follows it begins a turn
        return run

    def has_note(self, client: Any, channel_id: str) -> bool:
        """Whether a note waits for an agent about the request of a waiting channel."""
        event = self._unanswered.get((channel_id, client.agent_id), "")
        monitor = self.session.monitor
        return monitor.graph.knows(event) and monitor.has_note(client.passport.name, event)

    def look_again(self, client: Any, envelope: Any) -> AgentRun | None:
        """Begin a further turn on a message, if the channel still waits for the agent."""
        name, graph = client.passport.name, self.session.monitor.graph
        event = self._unanswered.get((envelope.channel_id, client.agent_id), "")
        is_busy = any(run.client is client and run.envelope for run in self._runs.values())
        # Notes lie in front of the agent's first instance, so that must be the one to look again.
        if is_busy or not graph.knows(event) or not self.session.instances.is_free(name):
            return None
        if not self._is_awaited(client, envelope):
            return None
        # The message again, so that the turn is for its request: it must be shown no other's notes.
        self.session.redirect(event, name, base.as_payload(envelope.event_data))
        return self.begin(client, envelope, event, name)

    def adopt(self, client: Any, envelope: Any, turn: base.Turn) -> AgentRun:
        """Remember the agent and the message of a turn."""
        run = self._runs[turn] = AgentRun(client, envelope, turn)
        return run

    def finish(self, run: AgentRun) -> str:
        """End the turn of a returned handler; gives the agent's answer, or nothing."""
        turn = run.turn
        if not turn.is_open:
            return ""
        if run.error is not None:
            turn.fail(run.error)
        elif run.is_limit:
            turn.fail(MAX_TURNS, submits=True, kind="limit")
        elif run.answer is not None:
            return turn.submit(run.answer, bounces=False)
        elif not turn.outputs and self._ends_by_silence(run):
            payload = base.as_payload(run.envelope.event_data)
            return turn.submit(payload, bounces=not self.has_failed)
        else:
            turn.end()
        return ""

    def give_up(self, event: str, instance: str, error: BaseException) -> None:
        """Fail the turn of a held message with a cancelled task."""
        turn = self.session.begin(instance, (event,), at_once=True)
        turn.fail(error)

    def forget(self, run: AgentRun) -> None:
        """Forget a run after the end of the handler."""
        self._runs.pop(run.turn, None)
        if run.envelope is not None:
            key = run.envelope.channel_id, run.client.agent_id
            self._unanswered.pop(key, None)
            if self._is_awaited(run.client, run.envelope):
                self._unanswered[key] = run.event
        self._awaiting = {
            channel: turn for channel, turn in self._awaiting.items() if turn is not run.turn
        }

    # --- turns ---

    def report(self, agent_id: str, error: BaseException) -> None:
        """Note the error of a turn, as the agent's handler reports it."""
        run = self._run_of(agent_id)
        if run is not None:
            run.error = error

    def current_run(self, agent: Any) -> AgentRun | None:
        """The run of the running code, if the run is of a certain agent."""
        turn = base.current_turn(self.session)
        run = self._runs.get(turn) if turn else None
        return run if run is not None and run.client.agent is agent else None

    def _run_of(self, agent_id: str) -> AgentRun | None:
        runs = (
            self._runs[turn] for turn in base.enclosing() if turn in self._runs and turn.is_open
        )
        return next((run for run in runs if run.client.agent_id == agent_id), None)

    def _is_awaited(self, client: Any, envelope: Any) -> bool:
        """Whether a channel waits for the agent's reply to a message."""
        return has_floor(self._hub, envelope.channel_id, client.agent_id, envelope.envelope_id)

    def _is_external(self, channel_id: str) -> bool:
        creator = self._hub._channels[channel_id].creator_id
        return channel_id in self._external or not is_here(self._hub, creator)

    def _ends_by_silence(self, run: AgentRun) -> bool:
        """Whether silence ends something; else the other agents wait for the silent agent."""
        if run.envelope is None:
            return False
        channel_id = run.envelope.channel_id
        metadata = self._hub._channels.get(channel_id)
        if metadata is None or metadata.is_terminal() or not self._is_external(channel_id):
            return False
        return not has_floor(self._hub, channel_id, run.client.agent_id)

    def _instance(self, agent_id: str, channel_id: str) -> str:
        turn = self._awaiting.get(channel_id)
        if turn is not None and turn.is_open and self._runs[turn].client.agent_id == agent_id:
            return turn.instance
        # AG2 gives a model the history of one channel only, so messages of other channels that wait
        # for the same agent must not lie in front of one instance: a note would speak of them.
        return self.session.reserve_instance(self._hub.name_for(agent_id))


def _is_last(envelope: Any, run: AgentRun) -> bool:
    """Whether AG2's own handler posts an envelope, at the end of a turn."""
    client = run.client
    is_default = client._on_envelope == client._run_default_handler
    is_reply = run.envelope is not None and envelope.causation_id == run.envelope.envelope_id
    return is_default and is_reply
