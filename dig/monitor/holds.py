"""Holds: the events between generation and delivery.

`Holds` alone knows which events are held, which wait behind an event that a gate keeps, and which
answers were sent elsewhere. What a call holds is released at its end, in the order in which it
was held. A gate may keep an event longer; later events for the same recipient then wait behind it,
so that each recipient gets them in the order in which they were held, and no other agent waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from dig._util.ranges import union
from dig.detectors.policy import Policy
from dig.graph.records import NOTICE, SYSTEM, WAITS, Deliver, Emit, Expire, Redirect

from .late_work import LateWork
from .messages import About, Answered, Delivered, Output, Over, Started, Wake
from .recorder import Recorder
from .relevance import Scope

LEFT = "The agent that was to get this back has left: it is taken as it is."


class Holds:
    """All events generated and not yet delivered, and the agents with mail.

    Attributes:
        held: The events that the call in progress is to release, in order.
        waiting: By agent: what waits behind a gate, oldest first: events, and their numbers in
            `flight`.
        diverted: The answers that were sent elsewhere, so that they cannot be accepted.
        ready: The agents that wait to be started.
        payloads: The payloads of the events.
        new_id: Makes an id from the prefix `e` (event) or `a` (activation).
        late_work: The activations in progress whose requests have ended.
    """

    def __init__(self, recorder: Recorder, new_id: Callable[[str], str], policy: Policy) -> None:
        """Begin with nothing held."""
        self._policy = policy
        self.held: dict[str, None] = {}
        self.waiting: dict[str, deque[tuple[str, int]]] = {}
        self.diverted: set[str] = set()
        self.ready: dict[str, None] = {}
        self.payloads = recorder.payloads
        self.new_id = new_id
        self.late_work = LateWork(recorder)
        self._recorder = recorder
        self._graph = recorder.graph
        self._relevance = recorder.relevance
        self._arrived: dict[str, None] = {}  # agents with a new event since their latest start

    # --- from generation to the hold ---

    def emit(
        self, name: str, by: str | None, sender: str | None, output: Output, to: tuple[str, ...],
        *, hold: bool = True, about: About | None = None, scope: Scope | None = None,
    ) -> None:  # fmt: skip
        """Generate and hold an event.

        Args:
            name: Its id.
            by: The activation that generates it, ``None`` (from outside) or ``"system"``.
            sender: The agent that generates it, ``None`` or ``"system"``.
            output: The output that becomes the event; the payload is a copy of the monitor's own.
            to: Its recipients.
            hold: Whether the event is to arrive now; if not, it is on its way.
            about: Of a system event: what it is about, as data.
            scope: Of a system event: the turns that it is for; ``None``: all.
        """
        if (
            self._policy.notices
            and by != SYSTEM
            and not output.final
            and self._policy.is_notice(to)
        ):
            output = replace(output, type=NOTICE)
        self.payloads.put(name, sender, output, about, scope)
        policy: str | None = None
        if output.policy is not None and not output.final:
            policy = getattr(output.policy, "recorded_as", type(output.policy).__name__)
        self._recorder.write(Emit(
            self._graph.t + 1, self._recorder.now, name, by, to, output.type, output.final,
            output.payload, policy, output.traceparent,
        ))  # fmt: skip
        if hold:
            self.held[name] = None

    def emit_notice(
        self, note: str, to: tuple[str, ...], name: str | None = None, about: About | None = None,
        scope: Scope | None = None,
    ) -> None:  # fmt: skip
        """Make and hold a system event with a note.

        Args:
            note: The words.
            to: Its recipients.
            name: Its id; ``None``: a new one.
            about: The subject of the note, as data.
            scope: The turns that it is for; ``None``: all.
        """
        name = name or self.new_id("e")
        self.emit(name, SYSTEM, SYSTEM, Output(note, to, SYSTEM), to, about=about, scope=scope)

    def redirect(self, event: str, to: tuple[str, ...], *, hold: bool = True) -> None:
        """Replace the recipients of an event, and hold it, unless it is to arrive later."""
        if self._graph.event(event).final:
            self.diverted.add(event)
        self._recorder.write(Redirect(*self._recorder.moment, event, to))
        if hold:
            self.held[event] = None
        else:
            self.held.pop(event, None)

    def hold(self, event: str) -> None:
        """Hold an event, to be released by the call in progress."""
        self.held[event] = None

    def expire(self, event: str) -> None:
        """Call an event back for good."""
        self._recorder.write(Expire(*self._recorder.moment, event))

    def take_as_it_is(self, event: str) -> None:
        """Hold an answer of a submitter who left during its return: the answer counts after all."""
        if event in self.payloads and not self._graph.event(event).flight:
            self.diverted.discard(event)
            self.payloads.add_note(event, LEFT, None)
            self.held[event] = None

    # --- from the hold to delivery ---

    def take(self) -> list[str]:
        """Take the events to release, in order; later ones are for the next round."""
        # A new dict: healing during this round may hold further events, for the next round.
        held, self.held = self.held, {}
        return list(held)

    def wait_behind(self, event: str) -> None:
        """Let later events for the recipients of a kept event wait."""
        for agent, number in self._graph.event(event).flight.items():
            line = self.waiting.setdefault(agent, deque())
            if (event, number) not in line:
                line.append((event, number))

    def deliver(self, event: str, flight: Mapping[str, int]) -> list[str]:
        """Deliver a released event, or queue it behind waiting ones.

        Args:
            event: Its id.
            flight: Its recipients, each with the event's number in `flight`.

        Returns:
            The agents that it was delivered to.
        """
        # Order of delivery is kept per recipient: a gate delays no other agent.
        reached, behind = [], []
        for agent, number in tuple(flight.items()):
            line = self.waiting.get(agent)
            if not line:
                self._deliver(event, agent)
                reached.append(agent)
            elif (event, number) not in line:  # else it keeps its place
                line.append((event, number))
                behind.append(line[0][0])
        if behind and self._graph.event(event).work:
            self._recorder.incident(WAITS, {"event": event, "behind": behind[0]})
        return reached

    def deliver_waiting(self, gated: Collection[str]) -> None:
        """Deliver the events that waited behind released ones (`gated`: still kept)."""
        for agent, line in tuple(self.waiting.items()):
            while line and line[0][0] not in gated:
                event, number = line.popleft()
                if event not in self.payloads:  # consumed or called back while it waited
                    continue
                # The number tells whether it is still the same sending, not a later one.
                if self._graph.event(event).flight.get(agent) == number:
                    self._deliver(event, agent)
            if not line:
                self.waiting.pop(agent, None)

    def accept(self, event: str) -> bool:
        """Hand an answer to the environment, unless it was accepted or diverted before.

        Returns:
            Whether it was accepted.
        """
        if self._graph.is_accepted(event) or event in self.diverted:
            return False
        # Read before the record: acceptance drops the payload, and settles the problems.
        recorder, shown = self._recorder, self.payloads.pending(event)
        answered = Answered(event, shown.payload, self._graph.asked_problems(event), shown.notes)
        recorder.write(Deliver(*recorder.moment, event, None))
        recorder.effects.append(answered)
        self.late_work.note(self._graph.running.values())
        if self._graph.is_over:
            recorder.is_over = True
            recorder.effects.append(Over("submitted"))
        return True

    def _deliver(self, event: str, agent: str) -> None:
        """Put an event into an agent's buffer, and have the agent started."""
        recorder = self._recorder
        recorder.write(Deliver(self._graph.t + 1, recorder.now, event, agent))
        recorder.effects.append(Delivered(agent, event))
        if self._graph.present[agent].activation is None:
            self._wake(agent)
        else:
            self._arrived[agent] = None

    # --- the agents that have mail ---

    def show_buffer(self, activation: str, agent: str, buffer: Sequence[str]) -> Started:
        """Start an agent in front of the buffer: return the visible events."""
        self.ready.pop(agent, None)
        self._arrived.pop(agent, None)
        problems = self._graph.running[activation].problems
        if not problems or problems[0].is_failed:
            self.late_work.note([self._graph.running[activation]])
        pending = self.payloads.pending
        if not self._relevance.is_used:  # the usual case: no notes that some turn must not see
            return Started(activation, agent, tuple([pending(event, agent) for event in buffer]))
        graph = self._graph
        concerned = union([graph.event(event).sources for event in buffer])
        shown, postponed = [], []
        for event in buffer:
            scope = self.payloads.scope(event)
            showing = "now" if scope is None else scope.when_shown(graph, concerned)
            if showing == "now":
                shown.append(pending(event, agent, concerned))
            elif showing == "later":
                postponed.append(event)
        return Started(activation, agent, tuple(shown), tuple(postponed))

    def has_note(self, agent: str, event: str) -> bool:
        """Whether a turn of an agent about an event would be shown a system event."""
        graph, scope_of = self._graph, self.payloads.scope
        concerned = graph.sources_of(graph.history.event_number(event))
        scopes = [scope_of(e) for e in graph.agents[agent].buffer if graph.event(e).by == SYSTEM]
        return any(s is None or s.when_shown(graph, concerned) == "now" for s in scopes)

    def after_end(self, agent: str, inputs: Collection[str], *, retry: bool) -> None:
        """Have an agent started again after an activation, if there is reason to work.

        Args:
            agent: Its name.
            inputs: The events that the activation saw.
            retry: The host starts the agent again by itself.
        """
        if retry:
            self.ready[agent] = None
            return
        # Else an agent that only waits would be started again and again for the same events.
        buffer = self._graph.present[agent].buffer
        remaining = sum([event in buffer for event in inputs]) if buffer else 0
        if buffer and (agent in self._arrived or 0 < remaining < len(inputs)):
            self._wake(agent)

    def agent_left(self, agent: str) -> None:
        """Drop all waiting events and the start of an agent that has left."""
        self.ready.pop(agent, None)
        self.waiting.pop(agent, None)

    def forget(self) -> None:
        """Forget evicted diverted answers."""
        self.diverted = {event for event in self.diverted if event in self.payloads}

    def _wake(self, agent: str) -> None:
        if agent not in self.ready:
            self.ready[agent] = None
            self._recorder.effects.append(Wake(agent))
