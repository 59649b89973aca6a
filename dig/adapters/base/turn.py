"""One turn of an agent: a chain of activations from what it was called with to what it returns.

An activation ends where something leaves the agent. So a turn that sends before it ends is a
chain: at the send the activation ends, with the message and a *continuation*, a notice to the
agent itself, as outputs; the next one consumes the continuation with the answers that have come
by then (docs/wrapping.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dig._util.text import one_line
from dig.errors import DecisionError, PayloadError
from dig.graph.records import SYSTEM, Fate
from dig.monitor.messages import Output, Pending, Started

from .payload import as_small_payload

if TYPE_CHECKING:
    from .calls import Sent
    from .session import Session

MOST_IN_ERROR = 300
NOTHING: tuple[str, ...] = ("",)


class Turn:
    """An agent at work, from `Session.begin` to `end`, `submit` or `fail`.

    No method raises because of the monitor: if that has failed, they do nothing.

    Attributes:
        seat: The agent's name, or that of the instance (`NAME#2`) that overlapping turns make.
        events: What lay in front of the turn and was taken up by it, in order.
        outputs: The events that it has generated, in order, continuations left out.
        submitted: The answer that it has submitted last, if it has.
        bounces: Whether that can be sent back.
        is_open: Whether it goes on.
        sent: What it has asked of others, where a turn is a call (`calls`).
        outer: The turn in whose code this one was begun, of whatever session.
    """

    def __init__(self, session: Session, seat: str, events: Collection[str] | None) -> None:
        """Make one; `Session.begin` does."""
        self.session = session
        self.seat = seat
        self.events: tuple[Pending, ...] = ()
        self.outputs: tuple[str, ...] = ()
        self.submitted = ""
        self.bounces = True
        self.is_open = True
        self.outer: Turn | None = None
        self._mine = None if events is None else set(events)  # to be taken up at the next start
        self._awaited = 0  # answers that have not come yet
        self._activation: str | None = None
        self._inputs: dict[str, Fate] = {}  # of the activation in progress, with their fates
        self._queue: list[Output] = []
        self._told: list[str] = []
        self.sent: Sent | None = None

    @property
    def activation(self) -> str | None:
        """The id of the activation in progress, if one is."""
        return self._activation

    @property
    def notes(self) -> tuple[str, ...]:
        """What the monitor has told this turn, oldest first."""
        return tuple(self._told)

    def listen(self) -> tuple[str, ...]:
        """Its `notes`, with what healing has said to the agent since it began."""
        self.session.step(self._listen, otherwise=None)
        return self.notes

    # --- what it does with what it was given ---

    def keep(self, event: str) -> None:
        """Leave an event in front of the agent, for another turn (fate `delay`)."""
        self.decide(Fate(event, "delay"))

    def discard(self, event: str) -> None:
        """Drop an event (fate `discard`)."""
        self.decide(Fate(event, "discard"))

    def pass_on(self, event: str, to: Iterable[str]) -> None:
        """Hand an event on to other agents, when the activation ends (fate `reroute`)."""
        self.decide(Fate(event, "reroute", seats(to)))

    def decide(self, fate: Fate) -> None:
        """Give an event a fate other than `consume`, which is that of all it was given."""
        self.session.step(self._decide, fate, otherwise=None)

    def holds(self, event: str) -> bool:
        """Whether an event is in front of the activation in progress, and will be consumed."""
        fate = self._inputs.get(event)
        return self._activation is not None and fate is not None and fate.fate == "consume"

    # --- what it generates ---

    def emit(self, payload: Any, to: Iterable[str], type: str = "message") -> None:
        """Generate an event when the activation ends; for agents that only speak at the end."""
        self._queue.append(Output(payload, seats(to), type))

    def send(
        self, payload: Any, to: Iterable[str], type: str = "message", *, awaits: bool = True
    ) -> str:
        """Send now, and go on: the activation ends here, with the message and a continuation.

        Args:
            payload: Plain JSON (see `as_payload`).
            to: The seats of the recipients (see `Session.reserve`).
            type: The event's type.
            awaits: Whether the turn will `receive` an answer.

        Returns:
            The event's id; empty, if the monitor has stopped.
        """
        output = Output(payload, seats(to), type)
        return self.session.step(self._send, [output], int(awaits), otherwise=NOTHING)[0]

    def wait_for(self, answers: int = 1) -> None:
        """The activation ends here with what it has queued, and answers will be received."""
        self.session.step(self._send, [], answers, otherwise=NOTHING)

    def receive(self, event: str = "") -> None:
        """An answer that the turn awaits is there: it is consumed by the next activation.

        Args:
            event: Its id; empty: the awaited answer will never come.
        """
        self.session.step(self._receive, event, otherwise=None)

    def waits(self) -> None:
        """Say in the trace (incident `waits`) that this activation waits for a person."""
        self.session.step(self._waits, otherwise=None)

    # --- how it ends ---

    def end(
        self, payload: Any = None, to: Iterable[str] = (), type: str = "message",
        *, usage: Any = None,
    ) -> str:  # fmt: skip
        """End, with what was queued, and one more event if it has recipients.

        Returns:
            The id of that event; empty, if there is none.
        """
        to = seats(to)
        last = [Output(payload, to, type)] if to else []
        return self.session.step(self._end, last, usage, None, otherwise="")

    def submit(
        self, answer: Any, *, error: str | None = None, usage: Any = None, bounces: bool = True
    ) -> str:
        """Submit an answer to the outside; the turn is over unless the answer comes back.

        Await `Session.released(event)` if `Session.is_held(event)`, then ask `came_back`.

        Args:
            answer: Plain JSON (see `as_payload`).
            error: Why there is none; such an answer never comes back.
            usage: What it took.
            bounces: Whether it can come back, at once or from a gate that keeps it.

        Returns:
            The final event's id.
        """
        return self.session.step(self._submit, answer, error, usage, bounces, otherwise="")

    def came_back(self, answer: str) -> bool:
        """Whether an answer was bounced: then the turn goes on with it, else it is over."""
        return self.session.step(self._came_back, answer, otherwise=False)

    def fail(
        self, error: BaseException, to: Iterable[str] = (), *,
        submits: bool = False, retried: bool = False,
    ) -> str:  # fmt: skip
        """End because the agent raised.

        Args:
            error: What it raised; cancellation too.
            to: The seats of those who are told, by a notice.
            submits: The error is the answer to the outside; it never comes back.
            retried: The host will start the agent again: it keeps what it was given.

        Returns:
            The id of the notice or the answer; empty, if there is none.
        """
        text = describe(error)
        step = self.session.step
        if submits:
            answer = step(self._submit, {"error": text}, text, None, otherwise="")
            step(self._came_back, answer, otherwise=False)
            return answer
        to = seats(to)
        last = [Output({"error": text}, to, "notice")] if to else []
        return step(self._end, last, None, text, retried, otherwise="")

    # --- inside a step ---

    def begin(self) -> None:
        """Start the first activation; `Session.begin` does."""
        self._act()

    def _act(self) -> None:
        """Have an activation in progress that has taken up all that has come for the turn."""
        if not self.is_open:
            return
        if self._activation is not None:
            if not self._mine:
                return
            self._go_on([])  # it cannot see what came after its start
        effects = self.session.ask(self.session.monitor.start, self.seat)
        started = next(effect for effect in effects if isinstance(effect, Started))
        self._activation = started.activation
        for event in started.events:
            is_ours = self._mine is None or event.id in self._mine
            if is_ours or event.sender == SYSTEM:
                self._take(event)
        self._mine = set()

    def _take(self, event: Pending) -> None:
        if event.sender == SYSTEM:
            self._told.append(str(event.payload))
        self._inputs[event.id] = Fate(event.id, "consume")
        self._told.extend(event.notes)
        if event.sender != self.seat or event.final:  # else it is a continuation
            self.events += (event,)

    def _listen(self) -> None:
        graph = self.session.monitor.graph
        begun = graph.activations.get(self._activation or "")
        if begun is not None:
            new = graph.agents[self.seat].buffer.keys() - {event.id for event in begun.inputs}
            if any(graph.event(event).by == SYSTEM for event in new):
                self._send([], 1)
                self._receive("")

    def _decide(self, fate: Fate) -> None:
        self._act()
        seen = self.session.monitor.graph.activations[self._activation or ""].inputs
        if fate.event not in {event.id for event in seen}:
            raise DecisionError(f"event {fate.event!r} is not in front of {self.seat!r}")
        self._inputs[fate.event] = fate

    def _close(
        self, outputs: list[Output], usage: Any = None, error: str | None = None
    ) -> tuple[str, ...]:
        """End the activation in progress, in any case; returns the ids of its outputs."""
        ask, monitor, activation = self.session.ask, self.session.monitor, self._activation
        if activation is None:
            return ()
        fates = tuple(self._inputs.values())
        self._activation, self._inputs, self._queue = None, {}, []
        try:
            ask(monitor.end, activation, fates, outputs, usage=usage, error=error)
        except PayloadError:  # too large, or what an adapter should have used `as_payload` for
            outputs = [replace(out, payload=as_small_payload(out.payload)) for out in outputs]
            usage = as_small_payload(usage)
            ask(monitor.end, activation, fates, outputs, usage=usage, error=error)
        except DecisionError as wrong:
            ask(monitor.end, activation, fates, error=str(wrong))
            raise
        history = monitor.graph.history
        made = history.outputs(history.activation(activation) or 0)
        return tuple(history.event_ids[n] for n in made)

    def _send(self, outputs: list[Output], answers: int) -> tuple[str, ...]:
        if not self.is_open:
            return ("",) * len(outputs)
        self._act()
        self._awaited += answers
        return self._go_on(outputs)

    def _go_on(self, outputs: list[Output]) -> tuple[str, ...]:
        """End the activation, with a continuation; returns the ids of `outputs`."""
        queued, onward = len(self._queue), Output(None, (self.seat,), "notice")
        *names, continuation = self._close([*self._queue, *outputs, onward])
        self.outputs += tuple(names)
        self._mine = {*(self._mine or ()), continuation}
        return tuple(names[queued:])

    def _receive(self, event: str) -> None:
        if not self.is_open:
            return
        if event:
            self._mine = {*(self._mine or ()), event}
        self._awaited -= 1
        if self._awaited <= 0:
            self._act()

    def _waits(self) -> None:
        self._act()
        if self._activation is not None:
            self.session.incident("waits", {"activation": self._activation})

    def _end(self, last: list[Output], usage: Any, error: str | None, retried: bool = False) -> str:
        if not self.is_open:
            return ""
        self._act()
        if retried:
            self._inputs = {event: Fate(event, "delay") for event in self._inputs}
        try:
            names = self._close([*self._queue, *last], usage, error)
        finally:
            self._over()
        self.outputs += names
        return names[-1] if last else ""

    def _submit(self, answer: Any, error: str | None, usage: Any, bounces: bool = True) -> str:
        if not self.is_open:
            return ""
        if self._queue:
            self._send([], 0)
        self._act()
        self.bounces = bounces and error is None
        final = Output(answer, (), "solution", final=True)
        self.submitted = self._close([final], usage, error)[0]
        self.outputs += (self.submitted,)
        return self.submitted

    def _came_back(self, answer: str) -> bool:
        graph = self.session.monitor.graph
        if not self.is_open:
            return False
        if answer and answer in graph.agents[self.seat].buffer:
            self._mine = {*(self._mine or ()), answer}
            self._act()
            return True
        self._over()
        return False

    def _over(self) -> None:
        self.is_open = False
        self.session.free(self)


def seats(to: str | Iterable[str]) -> tuple[str, ...]:
    """Recipients; one alone may go without a list."""
    return (to,) if isinstance(to, str) else tuple(to)


def describe(error: BaseException) -> str:
    """An exception in one line."""
    return one_line(f"{type(error).__name__}: {error}".removesuffix(": "), MOST_IN_ERROR)
