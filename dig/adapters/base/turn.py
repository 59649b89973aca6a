"""The turn of an agent: a chain of activations from the call to the return.

An activation ends where something leaves the agent. So a turn that sends before it ends is a
chain: at the send the activation ends, with the message and a *continuation*, a notice to the
agent itself, as outputs; the next one consumes the continuation with the answers that have come
by then (docs/wrapping.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from dig._util.ranges import union
from dig.errors import DecisionError, PayloadError
from dig.graph.records import HANDOFF, SYSTEM, Failure, Fate
from dig.monitor.messages import About, Output, Pending, Started
from dig.runtime.agent_errors import stack_incident

from .call_errors import RaisedErrors, TurnFailure
from .guard import Guard, in_step
from .held_events import HoldWaiter
from .payload import as_small_payload, is_whole
from .relief import RELIEVED

MOST_SENT = 64
"""The number of messages of a turn that are remembered, to recognise equal ones."""


class TurnNotes:
    """The notes for a turn, oldest first.

    Attributes:
        texts: The texts of the notes.
        about: The content of the notes as data; a note of a gate has none.
        for_others: Whether the notes are for the next agent, since this agent itself reads none.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.about: list[About] = []
        self.for_others = False
        self._read = 0

    def take(self, event: Pending) -> None:
        """Add the notes beside an event, and the text of an event of the system."""
        if event.sender == SYSTEM:
            self.texts.append(str(event.payload))
        self.texts.extend(event.notes)
        self.about.extend(event.about)

    def read(self) -> tuple[str, ...]:
        """Return all notes, and count all as read from now on."""
        self._read = len(self.texts)
        return tuple(self.texts)

    @property
    def unread(self) -> tuple[str, ...]:
        """The notes unread by the agent."""
        return tuple(self.texts[0 if self.for_others else self._read :])

    def inherit(self, notes: Iterable[TurnNotes]) -> None:
        """Add the unread notes of other turns, each text once."""
        for other in notes:
            self.texts.extend(text for text in other.unread if text not in self.texts)
            self.about.extend(about for about in other.about if about not in self.about)


class HandedOver(NamedTuple):
    """The events of a turn whose agent handed over.

    Attributes:
        events: The events that the next agents are given.
        dropped: The events of the handoffs that the framework does not carry out.
        is_passed_on: Whether `events` are those that the turn was given.
    """

    events: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    is_passed_on: bool = False


class Turn:
    """An agent at work, from `Session.begin` to `end`, `submit` or `fail`.

    No method raises because of the monitor: if that has failed, they do nothing.

    Attributes:
        instance: The agent's name, or `NAME#2` if turns of the agent overlap.
        events: The events that the turn has taken up, in order.
        submitted: The latest answer that the turn has submitted; empty: none.
        bounces: Whether that answer can be sent back.
        awaited: The number of answers to come.
        received: The event of the call and its payload, to recognise the payload where it is passed
            on; the id is empty if the event must not be passed on.
        depth: The number of calls of the session around this one.
        outer: The turn in whose code this one was begun, of whatever session.
        notebook: The notes of the monitor for this turn.
        usage: The usage of models by the activation in progress, if there is a budget.
        spend, note_outputs: What `SessionBudget` does, if there is a budget.
    """

    def __init__(
        self, guard: Guard, holds: HoldWaiter, instance: str, events: Collection[str] | None,
        on_end: Callable[[Turn], object] = lambda turn: None, *, same_work: bool = False,
        errors: RaisedErrors | None = None,
    ) -> None:  # fmt: skip
        """Make a turn; `Session.begin` does.

        Args:
            guard: The guard of the session.
            holds: The held events of the session.
            instance: The agent's name, or an instance of the agent.
            events: The events that the turn takes up when it starts; ``None``: all in front of it.
            on_end: Called inside a step when the turn is over.
            same_work: Whether equal messages to several agents are one event.
            errors: The exceptions that agents of the session have raised.
        """
        self.guard, self._holds = guard, holds
        self._errors = errors or RaisedErrors()
        self._on_end = on_end
        self.instance = instance
        self.events: list[Pending] = []
        self._outputs: list[str] = []
        self.submitted, self.bounces, self.is_open = "", True, True
        self.outer: Turn | None = None
        self._mine = None if events is None else set(events)  # to be taken up at the next start
        self.depth, self.awaited, self._waits = 0, 0, list[tuple[Hashable, dict[str, Any]]]()
        self._activation: str | None = None
        self._inputs: dict[str, Fate] = {}  # of the activation in progress
        self._queue: list[Output] = []
        self.notebook = TurnNotes()
        self.received: tuple[str, Any] = ("", None)
        self.usage: dict[str, Any] = {}
        self.spend: Callable[[Mapping[str, Any]], object] = lambda usage: None
        self.note_outputs: Callable[[list[Output]], object] = lambda outputs: None
        # With same_work, the latest messages: event, payload, recipients.
        self._sent: list[tuple[str, Any, set[str]]] | None = [] if same_work else None

    @property
    def outputs(self) -> tuple[str, ...]:
        """The generated events, in order, continuations left out."""
        return tuple(self._outputs)

    @property
    def activation(self) -> str | None:
        """The id of the activation in progress; ``None``: there is none."""
        return self._activation

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the monitor for the turn, oldest first."""
        return tuple(self.notebook.texts)

    def listen(self) -> tuple[str, ...]:
        """Return the `notes`, with new notes of healing since the turn began."""
        self.guard.run(self._listen, default=None)
        return self.notes

    @property
    def address(self) -> tuple[str, ...]:
        """The address of answers to the turn: the instance, or nowhere after the end."""
        return (self.instance,) if self.is_open else ()

    # --- fates of events ---

    def discard(self, event: str) -> None:
        """Drop an event (fate `discard`)."""
        self.decide(Fate(event, "discard"))

    def pass_on(self, event: str, to: str | Iterable[str]) -> None:
        """Hand an event on to other agents, when the activation ends (fate `reroute`)."""
        self.decide(Fate(event, "reroute", recipients(to)))

    @in_step(None)
    def decide(self, fate: Fate) -> None:
        """Give an event a fate other than `consume`, the fate of all events without another."""
        self.act()
        inputs = self.guard.monitor.graph.activations[self._activation or ""].inputs
        if fate.event not in {event.id for event in inputs}:
            raise DecisionError(f"event {fate.event!r} is not in front of {self.instance!r}")
        self._inputs[fate.event] = fate

    def holds(self, event: str) -> bool:
        """Whether an event is in front of the activation in progress, and will be consumed."""
        fate = self._inputs.get(event)
        return self._activation is not None and fate is not None and fate.fate == "consume"

    # --- outputs ---

    def emit(self, payload: Any, to: str | Iterable[str], type: str = "message") -> None:
        """Generate an event when the activation ends; for agents without earlier words."""
        self._queue.append(Output(payload, recipients(to), type))

    def send(
        self, payload: Any, to: str | Iterable[str], type: str = "message", *, awaits: bool = True
    ) -> str:
        """Send now, and go on: the activation ends here, with the message and a continuation.

        Args:
            payload: Plain JSON (see `as_payload`).
            to: The recipients (see `Session.reserve_instance`).
            type: The event's type.
            awaits: Whether the turn will `receive` an answer.

        Returns:
            The event's id; empty, if the monitor has stopped.
        """
        output = Output(payload, recipients(to), type)
        return self.guard.run(self._send, [output], int(awaits), default=[""])[0]

    def wait_for(self, answers: int = 1) -> None:
        """End the activation with the queued events; a number of answers will be received."""
        self.guard.run(self._send, [], answers, default=[""])

    @in_step(None)
    def receive(self, event: str = "", *, at_once: bool = False) -> None:
        """Take an awaited answer, to be consumed by the next activation.

        Args:
            event: The event's id; empty: the awaited answer will never come.
            at_once: Whether to release the event first, since the framework has handed it over.
        """
        if at_once:
            self._holds.release(event)
        if not self.is_open:
            return
        if event:
            self._mine = {*(self._mine or ()), event}
        self.awaited -= 1
        if self.awaited <= 0:
            self.act()

    @in_step("")
    def call(
        self, payload: Any, to: str | Iterable[str],
        *, awaits: bool = True, traceparent: str | None = None,
    ) -> str:  # fmt: skip
        """Call another agent: a new event, also if a further agent was asked the same.

        The event that the turn was called with is passed on, if the payload is equal (`received`).
        In a session with `same_work`, an equal message to another instance is the same event.

        Args:
            payload: Plain JSON (see `as_payload`).
            to: The recipients (see `Session.reserve_instance`).
            awaits: Whether the turn will `receive` an answer.
            traceparent: The W3C trace context of a new event, if it has one.

        Returns:
            The event's id; empty, if the monitor has stopped.
        """
        to, answers, is_comparable = recipients(to), int(awaits), is_whole(payload)
        sent = self._sent if is_comparable and len(to) == 1 else None
        for event, earlier, instances in sent or ():
            if earlier == payload and to[0] not in instances:
                instances.add(to[0])
                self._send([], answers)
                self.guard.ask(self.guard.monitor.redirect, event, to, payload)
                return event
        event, received = self.received
        if event and is_comparable and received == payload and self.holds(event):
            self.pass_on(event, to)
            self._send([], answers)
        else:
            event = self._send([Output(payload, to, traceparent=traceparent)], answers)[0]
        if sent is not None:
            sent.append((event, payload, {to[0]}))
            del sent[:-MOST_SENT]
        return event

    def call_failed(self, event: str) -> None:
        """Note the failure of a call: an equal call is another attempt, not the same work."""
        if self._sent is not None:
            self._sent = [message for message in self._sent if message[0] != event]

    @in_step(None)
    def waits(self, asks: Any = None, answer: str = "", *, key: Hashable = None) -> None:
        """Wait on purpose, for a person for example, until the turn `resumes` or ends.

        The trace says so, with what it `asks`; nothing is overdue. A framework's own has no key.
        """
        self.act()
        parts = {"asks": as_small_payload(asks), "answer": answer}
        self._waits.append((key, {name: part for name, part in parts.items() if part}))
        self._tell_wait()

    @in_step(None)
    def resumes(self, answer: Any = None, *, key: Hashable = None) -> None:
        """Go on after the latest wait with a key, in a new activation with the answer."""
        ended = next((wait for wait in reversed(self._waits) if wait[0] == key), None)
        self._waits = [wait for wait in self._waits if wait is not ended]
        if self._activation is not None:
            self._go_on([], answer)
            self.act()

    # --- the end ---

    def end(
        self, payload: Any = None, to: str | Iterable[str] = (), type: str = "message",
        *, usage: Any = None,
    ) -> str:  # fmt: skip
        """End the turn with the queued events, and a last event if there are recipients.

        Returns:
            The id of that event; empty, if there is none.
        """
        to = recipients(to)
        last = [Output(payload, to, type)] if to else []
        return self.guard.run(self._end, last, usage, None, default="")

    def reply(self, payload: Any, to: str | Iterable[str]) -> str:
        """End the turn with a return value for the caller: a message, or a notice for ``None``."""
        return self.end(payload, to, "notice" if payload is None else "message")

    @in_step(None)
    def forward(self, to: str | Iterable[str], events: Iterable[str] | None = None) -> None:
        """Pass events on, by default all events of the turn, and end."""
        for event in [event.id for event in self.events] if events is None else events:
            self.pass_on(event, to)
        self._end([], None, None)

    @in_step(HandedOver())
    def hand_over(
        self, to: str | Iterable[str], payload: Any, type: str = "message", *,
        silent: bool | Callable[[], bool] = False, dropped: Iterable[Any] = (),
        available: Iterable[str] | None = None, split: bool = False,
    ) -> HandedOver:  # fmt: skip
        """End, and give the floor to others.

        A silent agent, which only names the next one, passes on the events of the turn. So handing
        over in a circle can be seen.

        Args:
            to: The next agents (see `Session.reserve_instance`).
            payload: The words of the agent, as plain JSON.
            type: The type of that event.
            silent: Whether the agent says nothing of its own, or a function that returns this; it
                is called only if there is something to pass on.
            dropped: The payloads of further handoffs, which the framework does not carry out.
            available: The events that can be passed on; by default all events of the turn.
            split: Whether each of the next agents gets an event of its own.
        """
        to = recipients(to)
        before, events = len(self._outputs) + len(self._queue), self._to_pass_on(available)
        if callable(silent):
            silent = bool(events) and self.guard.call(silent, default=False)
        if events and silent:
            self.forward(to, events)
            return HandedOver(events, is_passed_on=True)
        outputs = [Output(payload, agents, type) for agents in (zip(to) if split else (to,))]
        handoffs = [Output(handoff, (), HANDOFF) for handoff in dropped]
        self._end([*outputs, *handoffs], None, None)
        generated = tuple(self._outputs[before:])
        return HandedOver(generated[: len(outputs)], generated[len(outputs) :])

    @in_step("")
    def submit(
        self, answer: Any, *, error: TurnFailure | None = None, usage: Any = None,
        bounces: bool = True,
    ) -> str:  # fmt: skip
        """Submit an answer to the outside; the turn is over unless the answer comes back.

        Await `Session.wait_until_released(event)` if it `is_held`, then ask `was_bounced`.

        Args:
            answer: Plain JSON (see `as_payload`).
            error: The reason why there is no answer; such an answer never comes back.
            usage: The cost of the turn.
            bounces: Whether the answer can come back, at once or from a gate that keeps it.

        Returns:
            The final event's id.
        """
        if not self.is_open:
            return ""
        if self._queue:
            self._send([], 0)
        self.act()
        self.bounces = bounces and error is None
        final = Output(answer, (), "solution", final=True)
        self.submitted = self._close([final], usage, error)[0]
        self._outputs.append(self.submitted)
        return self.submitted

    @in_step(False)
    def was_bounced(self, answer: str) -> bool:
        """Whether an answer was bounced: then the turn goes on, else the turn is over."""
        if not self.is_open:
            return False
        if answer and answer in self.guard.monitor.graph.agents[self.instance].buffer:
            self._mine = {*(self._mine or ()), answer}
            self.act()
            return True
        self._close_turn()
        return False

    @in_step("")
    def fail(
        self, error: BaseException, to: str | Iterable[str] = (), *,
        submits: bool = False, retried: bool = False, kind: Failure = "error",
    ) -> str:  # fmt: skip
        """End because the agent raised, or passes on an error of another agent, or was called off.

        Args:
            error: The error that the agent raised; cancellation too.
            to: The recipients of a notice about it.
            submits: The request that the turn works for ends by it, without an answer. Only what
                was called off by its caller is answered, by the error: that never comes back.
            retried: Whether the host will start the agent again with the same events.
            kind: The end of that request; a limit, or a lack of time, is no error of this turn.

        Returns:
            The id of the notice or the answer; empty, if there is none.
        """
        failure = self._errors.failure(error, self.instance)
        if kind != "error":
            failure = TurnFailure(failure.error, cancelled=True)
        if submits and kind == "error" and failure.cancelled:
            answer = self.submit({"error": failure.error}, error=failure)
            self.was_bounced(answer)
            return answer
        self.act()
        to, activation = recipients(to), self._activation or ""
        consumed = [name for name, fate in self._inputs.items() if fate.fate == "consume"]
        events = {*consumed, *(event.id for event in self.events)}  # also the agent's own
        last = [Output({"error": failure.error}, to, "notice")] if to else []
        notice = self._end(last, None, failure, retried)
        if activation and not (failure.because or failure.cancelled):
            self._errors.add(error, activation, self.instance)
        if submits and activation:
            self._report_end(events, kind, failure, failure.because or activation)
        return notice

    def _report_end(
        self, events: Iterable[str], kind: Failure, failure: TurnFailure, activation: str
    ) -> None:
        """Report the end without an answer of the requests behind some events."""
        graph, monitor = self.guard.monitor.graph, self.guard.monitor
        numbers = [graph.history.event_number(event) for event in events]
        for request in graph.unanswered_sources(union([graph.sources_of(n) for n in numbers])):
            blamed = None if failure.cancelled else activation
            fields = {"event": request, "activation": blamed, "error": failure.error}
            self.guard.ask(monitor.request_failed, kind, **fields)

    @in_step(None)
    def relieve(self) -> None:
        """End because another agent was asked instead, and now has the events of the turn."""
        for event in self.events:
            if event.sender != SYSTEM and self.holds(event.id):
                self.discard(event.id)
        self.fail(RELIEVED)

    @in_step("")
    def abandon(
        self, error: BaseException, to: str | Iterable[str] | None = None, *, answer: str = "",
        kind: Failure = "error",
    ) -> str:  # fmt: skip
        """End because the agent raised, or because no caller waits for the answer any more.

        Args:
            error: The error that was raised; cancellation too.
            to: The recipients of a notice about it; ``None``: the request from outside ends by
                it, unless there is an accepted answer.
            answer: The answer that the agent has given, if there is one; it is released.
            kind: The end of the request, if there is no answer.

        Returns:
            The id of the notice or the answer; empty, if there is none.
        """
        self._holds.release(answer)
        if to is not None:
            return self.fail(error, to) or answer
        if not (answer and self.guard.monitor.graph.is_accepted(answer)):
            answer = self.fail(error, submits=True, kind=kind) or answer
        self.was_bounced(answer)
        return answer

    # --- inside a step ---

    def act(self) -> None:
        """Have an activation in progress with all events for the turn so far."""
        if not self.is_open:
            return
        if self._activation is not None:
            if not self._mine:
                return
            self._go_on([])  # an activation cannot see what came after its start
        effects = self.guard.ask(self.guard.monitor.start, self.instance)
        started = next(effect for effect in effects if type(effect) is Started)
        self._activation = started.activation
        self._tell_wait()
        for event in started.events:
            if self._mine is None or event.id in self._mine or event.sender == SYSTEM:
                self._inputs[event.id] = Fate(event.id, "consume")
                if event.notes or event.about or event.sender == SYSTEM:
                    self.notebook.take(event)
                if event.sender != self.instance or event.final:  # else it is a continuation
                    self.events.append(event)
        # Notes for another request of the agent stay in front of the agent.
        for name in started.kept:
            self._inputs[name] = Fate(name, "delay")
        self._mine = set()

    def _tell_wait(self) -> None:
        if self._waits and self._activation is not None:
            _, wait = self._waits[-1]
            self.guard.ask(self.guard.monitor.waits, activation=self._activation, **wait)

    def _listen(self) -> None:
        graph, queue = self.guard.monitor.graph, self._queue
        if self._activation and self._holds.has_news(self.instance, self._activation):
            # The events stay with the turn: an end that has done something may mend the finding.
            held = {id: fate for id, fate in self._inputs.items() if graph.event(id).by != SYSTEM}
            self._inputs |= {event: Fate(event, "delay") for event in held}
            self._close([])
            self.act()
            self._inputs, self._queue = {**self._inputs, **held}, queue

    def _close(
        self, outputs: list[Output], usage: Any = None, failure: TurnFailure | None = None
    ) -> list[str]:
        """End the activation in progress, in any case; returns the ids of the outputs."""
        ask, monitor, activation = self.guard.ask, self.guard.monitor, self._activation
        if activation is None:
            return []
        error = failure.fields if failure else {}
        fates = tuple(self._inputs.values())
        usage, self.usage = usage or self.usage or None, {}
        self._activation, self._inputs, self._queue = None, {}, []
        try:
            ask(monitor.end, activation, fates, outputs, usage=usage, **error)
        except PayloadError:  # too large, or no JSON: the adapter should have used `as_payload`
            outputs = [replace(out, payload=as_small_payload(out.payload)) for out in outputs]
            usage = as_small_payload(usage)
            ask(monitor.end, activation, fates, outputs, usage=usage, **error)
        except DecisionError as wrong:
            ask(monitor.end, activation, fates, error=str(wrong))
            raise
        if failure is not None and failure.stack:
            ask(monitor.incident, *stack_incident(activation, failure.stack))
        self.note_outputs(outputs)
        return [*monitor.graph.outputs]

    def go_on_as(self, instance: str) -> None:
        """Go on as another agent, with a notice to it: all that came is consumed before."""
        self.act()
        (notice,) = self._close([Output(None, (instance,), "notice")])
        self._holds.release(notice)  # no gate keeps a plan from its next step
        self.instance, self._mine = instance, {notice}
        self.act()

    def _send(self, outputs: list[Output], answers: int) -> list[str]:
        if not self.is_open:
            return [""] * len(outputs)
        self.act()
        self.awaited += answers
        return self._go_on(outputs)

    def _go_on(self, outputs: list[Output], answer: Any = None) -> list[str]:
        """End the activation, with a continuation; returns the ids of `outputs`."""
        queued, onward = len(self._queue), Output(answer, (self.instance,), "notice")
        *names, continuation = self._close([*self._queue, *outputs, onward])
        self._outputs += names
        self._mine = {*(self._mine or ()), continuation}
        return names[queued:]

    def _end(
        self, last: list[Output], usage: Any, failure: TurnFailure | None, retried: bool = False
    ) -> str:
        if not self.is_open:
            return ""
        self.act()
        if retried:
            self._inputs = {event: Fate(event, "delay") for event in self._inputs}
        try:
            names = self._close([*self._queue, *last], usage, failure)
        finally:
            self._close_turn()
        self._outputs += names
        return names[-1] if last else ""

    def _to_pass_on(self, events: Iterable[str] | None) -> tuple[str, ...]:
        """The events to pass on: none, if an event was consumed already, or is an answer."""
        if events is not None:
            return tuple(event for event in events if self.holds(event))
        mine = [event for event in self.events if event.sender != SYSTEM]
        if any(event.final or not self.holds(event.id) for event in mine):
            return ()
        return tuple(event.id for event in self.events if self.holds(event.id))

    def _close_turn(self) -> None:
        self.is_open = False
        self._on_end(self)


def recipients(to: str | Iterable[str]) -> tuple[str, ...]:
    """Recipients as a tuple; a single agent may go without a list."""
    return (to,) if isinstance(to, str) else tuple(to)
