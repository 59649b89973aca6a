"""The monitor: hold, detect, heal, release, inside one synchronous call.

`Monitor` has no clock, ids, randomness, threads or await of its own. Requests go in (`inject`,
`start`, `end`, ...); records go to the sink that was handed in, and the effects that a host has
to carry out come out. Because a call does everything between the end of an activation and the
release of its outputs, no schedule can get between.

What happens in a call, in order: what clocks raise up to now, and its healing; the request's own
records, each looked at by the detectors; healing of what was found; release of what was held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dig.detectors.interventions import Budget, Fit, Intervention
from dig.detectors.protocols import Detector, Healer
from dig.errors import RequestError
from dig.graph import records
from dig.graph.records import OUTCOMES, SYSTEM, Fate, Limits, Outcome

from .gates import Gates
from .healing import Treatment
from .messages import Effect, Gate, Output, Started, are_names, check_decision
from .recorder import Ledger, Numbered
from .release import Release
from .sanitize import Entrance
from .schedule import Policies
from .sinks import Sink
from .sweeping import Sweeper


class Monitor:
    """Holds every new event of one run while detectors look at it, heals, and releases.

    Every request returns the effects that the host has to carry out, in order. A request that
    cannot be fulfilled raises before anything of it happened; effects that its call had already
    brought about by then come with the next one.

    Args:
        agents: Who is present from the beginning.
        clock: Seconds since the run began.
        run: The name of the run's configuration.
        task: What the run is about, for readers of the trace.
        seed: What the run was seeded with, for readers of the trace.
        session: Whether the run goes on with further problems after an answer.
        memory: Whether agents remember what they have seen, as chat agents do.
        limits: The thresholds of the patterns.
        detectors: Fresh ones, in the order in which simultaneous findings are listed.
        healers: By pattern; none: the monitor only observes.
        gates: Asked about every agent-made event before its release.
        budget: How much healing there may be.
        fit: What the host can do of an intervention; ``None``: all that there are.
        sink: Is given every record, before its effect happens.
        ids: Makes a new id from the prefix `e` (event) or `a` (activation).
        stopwatch: A clock in seconds that times detectors; ``None`` for repeatable runs.
        fail_closed: End the run when a detector, healer, gate or policy fails.
        redacts: Mask what looks like a secret in all that comes in (see `dig._util.redaction`).
        keep: How many records of closed history a session keeps (`dig.graph.retention`); ``None``: all.

    Raises:
        SettingsError: `keep` is no number of records.
        RuleError: Two agents have the same name, or one is called `system`.

    Attributes:
        graph: The graph of the run, read-only for everybody but the monitor.
        detector_seconds: How long each detector has looked, by pattern, if there is a stopwatch.
    """

    def __init__(
        self,
        agents: Iterable[str],
        *,
        clock: Callable[[], float],
        run: str = "run",
        task: Any = None,
        seed: Any = None,
        session: bool = False,
        memory: bool = False,
        limits: Limits | None = None,
        detectors: Sequence[Detector] = (),
        healers: Mapping[str, Healer] | None = None,
        gates: Sequence[Gate] = (),
        budget: Budget | None = None,
        fit: Fit | None = None,
        sink: Sink = lambda record: None,
        ids: Callable[[str], str] | None = None,
        stopwatch: Callable[[], float] | None = None,
        fail_closed: bool = False,
        redacts: bool = True,
        keep: int | None = None,
    ) -> None:
        """Begin a run; its first record goes to the sink at once."""
        ids = ids or Numbered()
        self._take = Entrance(redacts)
        self._ledger = Ledger(tuple(detectors), clock, sink, ids, stopwatch, fail_closed)
        self._policies = Policies(self._ledger)
        self._treatment = Treatment(
            self._ledger, self._policies, healers or {}, budget or Budget(), fit
        )
        self._gates = Gates(self._ledger, self._treatment, gates)
        parts = (self._ledger, self._treatment, self._gates, self._policies)
        self._release = Release(*parts)
        self._sweeper = Sweeper(keep, *parts)
        self.graph = self._ledger.graph
        self.detector_seconds = self._ledger.detector_seconds
        limits, names = limits or Limits(), tuple(agents)
        self._ledger.write(records.Run(0, 0, run, names, task, seed, session, memory, limits))

    def follow(self, sink: Sink) -> None:
        """Have every record given to somebody else too, after it was written.

        Raises:
            RequestError: It is too late: more than the first record was written already.
        """
        self._ledger.follow(sink)

    # --- requests ---

    def inject(self, output: Output) -> list[Effect]:
        """An event comes from outside, a problem for instance.

        Raises:
            DecisionError: It is final, or not put together right.
            PayloadError: The payload is not plain JSON.
            RequestError: The run is over.
        """
        self._enter()
        check_decision((), (), (output,), outside=True)
        copy = self._take.output(output)  # before it gets an id: what is refused uses none up
        self._policies.emit(self._ledger.new_id("e"), None, None, copy)
        return self._leave_call()

    def start(self, agent: str) -> list[Effect]:
        """Activate an idle agent; the effect `Started` shows it its whole buffer.

        Raises:
            RequestError: The agent is not present or busy, or the run is over.
        """
        self._enter()
        ledger, state = self._ledger, self.graph.agents.get(agent)
        if state is None or state.activation is not None:
            why = "is busy" if state else "is not present"
            raise RequestError(f"agent {agent!r} {why}; it cannot be started")
        activation, inputs = ledger.new_id("a"), tuple(state.buffer)
        ledger.write(records.Start(*ledger.stamp(), activation, agent, inputs))
        ledger.ready.pop(agent, None)
        ledger.arrived.pop(agent, None)
        events = tuple(ledger.post.pending(event, agent) for event in inputs)
        ledger.effect(Started(activation, agent, events))
        return self._leave_call()

    def end(
        self,
        activation: str,
        fates: Iterable[Fate] = (),
        outputs: Iterable[Output] = (),
        *,
        usage: Any = None,
        error: str | None = None,
        retry: bool = False,
    ) -> list[Effect]:
        """An activation ends: what it did with its inputs, and what it generates.

        Args:
            activation: The activation's id.
            fates: A fate for each input; one that is not named is delayed, a note is read.
            outputs: The events that it generates, in order; a final one must be the only one.
            usage: What the activation cost (tokens and the like), plain JSON.
            error: What went wrong, if it failed.
            retry: The host will start the agent again by itself, after a back-off for instance.

        Raises:
            DecisionError: The fates or outputs do not fit the activation, which goes on.
            PayloadError: A payload is not plain JSON; the activation goes on.
            RequestError: There is no such activation in progress, or the run is over.
        """
        self._enter()
        ledger, current = self._ledger, self.graph.activations.get(activation)
        if current is None:
            raise RequestError(f"{activation!r} is no activation in progress")
        fates, outputs, inputs = tuple(fates), tuple(outputs), [e.id for e in current.inputs]
        check_decision(inputs, fates, outputs)
        copies = [self._take.output(output) for output in outputs]
        usage, error = self._take(usage, "usage"), self._take.error(error)
        names = tuple(ledger.new_id("e") for _ in outputs)
        ledger.write(records.End(*ledger.stamp(), activation, fates, names, usage, error))
        ledger.held.update((fate.event, None) for fate in fates if fate.fate == "reroute")
        for name, output in zip(names, copies, strict=True):
            self._policies.emit(name, activation, current.agent, output)
        if retry:
            ledger.ready[current.agent] = None
        elif ledger.wants_again(current.agent, inputs):
            ledger.wake(current.agent)
        return self._leave_call()

    def join(self, agent: str) -> list[Effect]:
        """An agent comes, or comes back, with an empty buffer.

        Raises:
            RequestError: It is present already, or is called `system`; or the run is over.
        """
        self._enter()
        if not isinstance(agent, str) or agent in self.graph.agents or agent == SYSTEM:
            raise RequestError(f"agent {agent!r} cannot join: the name is taken, or is none")
        self._ledger.write(records.Join(*self._ledger.stamp(), agent))
        return self._leave_call()

    def leave(self, agent: str) -> list[Effect]:
        """An agent goes; its buffer, its activation and what was on its way to it are gone.

        Raises:
            RequestError: It is not present, or the run is over.
        """
        self._enter()
        if agent not in self.graph.agents:
            raise RequestError(f"agent {agent!r} is not present; it cannot leave")
        answers = [e.id for e in self.graph.agents[agent].incoming.values() if e.final]
        self._ledger.write(records.Leave(*self._ledger.stamp(), agent))
        self._ledger.ready.pop(agent, None)
        self._release.forget(agent)
        self._policies.abandon(agent)
        for event in answers:
            self._ledger.take_as_it_is(event)
        return self._leave_call()

    def redirect(self, event: str, to: Sequence[str], again: Any = None) -> list[Effect]:
        """Replace whom an event is on its way to, and deliver it there.

        Args:
            event: Its id.
            to: The agents.
            again: What it carries; only needed if it was used up, and so forgotten.

        Raises:
            PayloadError: `again` is not plain JSON.
            RequestError: There is no such event, or it is used up; `to` is no list of names; or
                the run is over.
        """
        self._enter()
        if not are_names(to):
            raise RequestError(f"{to!r} is no list of agents' names")
        if again is not None:
            self._ledger.post.renew(event, self._take(again))
        if event not in self._ledger.post:
            raise RequestError(f"event {event!r} does not exist, is used up or let go of")
        self._ledger.redirect(event, tuple(to))
        return self._leave_call()

    def resolve(
        self,
        gate: Gate,
        event: str,
        decided: Iterable[Intervention] | None,
        error: str | None = None,
    ) -> list[Effect]:
        """A gate has decided about an event that it holds, or failed; too late is no error."""
        self._catch_up()
        if not self.is_over:
            self._gates.resolve(gate, event, decided, error)
        return self._leave_call()

    def tick(self) -> list[Effect]:
        """Do what time has made due; call it at `next_deadline`."""
        self._catch_up()
        return self._ledger.drain()

    def incident(self, what: str, detail: Any) -> list[Effect]:
        """Write down what changes no graph but must not be silent."""
        detail = self._take(detail, "detail")
        self._catch_up()
        if self._ledger.can_write:
            self._ledger.incident(what, detail)
        return self._ledger.drain()

    def finish(self, outcome: Outcome, answer: Any = None, usage: Any = None) -> list[Effect]:
        """End the run with its last record, whatever state it is in; twice does no harm.

        Raises:
            PayloadError: The answer or the usage is not plain JSON.
            RequestError: There is no such outcome.
        """
        ledger = self._ledger
        if outcome not in OUTCOMES:
            raise RequestError(f"{outcome!r} is no outcome; choose one of {', '.join(OUTCOMES)}")
        if ledger.can_write:
            answer, usage = self._take(answer, "answer"), self._take(usage, "usage")
            ledger.look_at_clock()
            ledger.write(records.Finish(*ledger.stamp(), outcome, answer, usage))
        return ledger.drain()

    # --- what a host may ask ---

    @property
    def is_over(self) -> bool:
        """Whether nothing may be asked any more but `finish`."""
        return self._ledger.is_over

    @property
    def is_quiet(self) -> bool:
        """Whether no agent is at work or waits to be started, and no gate is deciding."""
        return self._release.is_quiet

    @property
    def now(self) -> float:
        """The time of the latest call, in seconds since the run began."""
        return self._ledger.now / 1_000_000

    def next_deadline(self) -> float | None:
        """When to `tick` next, in seconds on the monitor's clock; ``None``: nothing is due."""
        if self.is_over:
            return None
        due, other = self._ledger.deadline(), self._release.deadline()
        if due is None or (other is not None and other < due):
            due = other
        return None if due is None else due / 1_000_000

    # --- inside a call ---

    def _enter(self) -> None:
        """Begin a request."""
        self._ledger.must_be_open()
        self._catch_up()
        self._ledger.must_be_open()

    def _catch_up(self) -> None:
        """Do what time has made due, which may end the run."""
        if not self.is_over:
            self._sweeper.sweep()
            if self._policies.are_planned:
                self._policies.begin_call(self.is_quiet)
            self._ledger.look_at_clock()
            self._settle()

    def _leave_call(self) -> list[Effect]:
        self._settle()
        return self._ledger.drain()

    def _settle(self) -> None:
        """Heal what was found and release what is held, until there is neither."""
        ledger = self._ledger
        while not ledger.is_over:
            if ledger.found:
                found, ledger.found = ledger.found, []
                self._treatment.treat(found)
            self._release.all()
            if not (ledger.found or ledger.held):
                break
