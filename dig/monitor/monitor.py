"""The monitor: hold, detect, heal, release, inside one synchronous call.

`Monitor` has no clock, ids, randomness, threads or await of its own. Requests go in (`inject`,
`start`, `end`, ...); records go to the sink that was handed in, and the effects that a host has
to carry out come out. Because a call does everything between the end of an activation and the
release of its outputs, no schedule can get between.

What happens in a call, in order: what clocks raise up to now, and its healing; the request's own
records, each looked at by the detectors; healing of what was found; release of what was held. The
steps and their functions are listed in `dig.monitor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from dig.detectors.interventions import Budget, Fit, Intervention
from dig.detectors.policy import Policy
from dig.detectors.protocols import Detector, Healer
from dig.detectors.watch import Timing
from dig.errors import DecisionError, RequestError, RuleError, SettingsError
from dig.graph import records
from dig.graph.records import OUTCOMES, SYSTEM, Fate, Limits, Outcome, Usual
from dig.graph.rules import check_cause

from .approvals import Approvals
from .gates import Gates
from .healing import Healing
from .holds import Holds
from .messages import Effect, Gate, Output, Proposed
from .recorder import Recorder
from .sanitize import Sanitizer, are_names, failure_detail, waiting_detail
from .schedule import DeliverySchedule
from .sinks import Sink

KEEP = 1_000
"""The number of records of closed history that a session keeps for inspection, by default."""

RELEASED = "released"
"""The incident recorded just before a person releases an event that a delivery policy kept."""

TOLD = "told"
"""The incident recorded just before the message of a person or host to agents: a system event."""

GROWTH = 3
"""History is evicted when it is about this many times as long as after the last eviction."""


class Numbered:
    """The default source of ids: `e1`, `e2`, ... for events, `a1`, `a2`, ... for activations."""

    def __init__(self) -> None:
        """Begin at one."""
        self._counts: dict[str, Iterator[int]] = {"e": count(1), "a": count(1)}

    def __call__(self, prefix: str) -> str:
        """The next id with a prefix: `e` or `a`."""
        return f"{prefix}{next(self._counts[prefix])}"


class Monitor:
    """Holds every new event of one run while detectors look at it, heals, and releases.

    Every request returns the effects that the host has to carry out, in order. A request that
    cannot be fulfilled raises before anything of it happened; effects that its call had already
    brought about by then come with the next one.

    Args:
        agents: The agents that are present from the beginning.
        clock: Seconds since the run began.
        run: The name of the run's configuration.
        task: The task of the run, for readers of the trace.
        seed: The seed of the run, for readers of the trace.
        session: Whether the run goes on with further problems after an answer.
        memory: Whether agents remember what they have seen, as chat agents do.
        limits: The thresholds of the patterns.
        usual: The usual findings in good runs of the team, by pattern, if they were learned.
        detectors: Fresh ones, in the order in which simultaneous findings are listed.
        healers: By pattern; none: the monitor only observes.
        gates: Asked about every agent-made event before its release.
        budget: The bounds on healing.
        ladder: Healing goes on step by step where a first step does not help.
        fit: The part of an intervention that the host can carry out; ``None``: all there are.
        policy: The policy about findings; ``None``: errors are healed with all means,
            warnings and RSP by notes alone.
        can_hold: Whether the host can keep an event while a person decides about healing.
        sink: Is given every record, before its effect happens.
        ids: Makes a new id from the prefix `e` (event) or `a` (activation).
        stopwatch: The clocks that time detectors, or one for all; ``None`` for repeatable runs.
        fail_closed: End the run when a detector, healer, gate or policy fails.
        redacts: Mask what looks like a secret in all that comes in (see `dig._util.redaction`).
        keep: The number of records of closed history that a session keeps (`dig.graph.retention`);
            ``None``: all.

    Raises:
        SettingsError: `keep` is not a non-negative number of records.
        RuleError: Two agents have the same name, or one is called `system`.

    Attributes:
        graph: The graph of the run, which only the monitor may change.
        detector_seconds: The seconds that each detector has looked, by pattern, if there is a
            stopwatch.
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
        usual: Usual | None = None,
        detectors: Sequence[Detector] = (),
        healers: Mapping[str, Healer] | None = None,
        gates: Sequence[Gate] = (),
        budget: Budget | None = None,
        ladder: bool = False,
        fit: Fit | None = None,
        policy: Policy | None = None,
        can_hold: bool = True,
        sink: Sink | None = None,
        ids: Callable[[str], str] | None = None,
        stopwatch: Timing | Callable[[], float] | None = None,
        fail_closed: bool = False,
        redacts: bool = True,
        keep: int | None = None,
    ) -> None:
        """Begin a run; its first record goes to the sink at once."""
        if keep is not None and (type(keep) is not int or keep < 0):
            raise SettingsError(
                "keep must be a non-negative number of records, or None to keep all; "
                f"got {keep!r:.60}"
            )
        self._new_id = ids or Numbered()
        self._sanitizer = Sanitizer(redacts)
        policy = policy or Policy()
        recorder = Recorder(
            tuple(detectors), clock, sink, stopwatch, fail_closed, policy, self._sanitizer
        )
        holds = Holds(recorder, self._new_id, policy)
        schedule = DeliverySchedule(recorder, holds)
        healing = Healing(
            recorder, holds, schedule, healers or {}, budget or Budget(), fit, policy,
            ladder=ladder,
        )  # fmt: skip
        self._recorder, self._holds = recorder, holds
        self._schedule, self._healing = schedule, healing
        self._gates = Gates(recorder, holds, healing, gates)
        self._approvals = Approvals(recorder, holds, self._gates, healing, can_hold=can_hold)
        self._later = (  # what is to happen later: the same objects as long as the run lasts
            holds.waiting, self._gates.deciding, self._approvals.open, healing.timed,
            schedule.timers, schedule.recorded, holds.late_work.due,
        )  # fmt: skip
        self._keep, self._next_collection = keep, keep or 0  # rows of history
        self.graph, self.detector_seconds = recorder.graph, recorder.watch.seconds
        recorder.write(records.Run(
            *recorder.moment, run, tuple(agents), task, seed, session, memory, limits or Limits(),
            usual, patterns=records.EDITION,
        ))  # fmt: skip
        recorder.begin()

    def follow(self, sink: Sink) -> None:
        """Add a sink for every record, after the others.

        Raises:
            RequestError: A request was made already.
        """
        self._recorder.follow(sink)

    def restrict_healing(self, fit: Fit) -> None:
        """Ask a host about each intervention, before the fit of the run."""
        self._healing.restrict(fit)

    # --- requests ---

    def inject(self, output: Output) -> list[Effect]:
        """An event comes from outside, a problem for instance.

        Raises:
            DecisionError: The output is final, or not put together right.
            PayloadError: The payload is not plain JSON.
            RequestError: The run is over.
        """
        self._enter()
        copy = self._sanitizer.external(output)  # before it gets an id: a refused one has none
        self._emit(self._new_id("e"), None, None, copy)
        return self._leave_call()

    def start(self, agent: str) -> list[Effect]:
        """Activate an idle agent; the effect `Started` has the whole buffer.

        Raises:
            RequestError: The agent is not present or busy, or the run is over.
        """
        self._enter()
        state = self.graph.present.get(agent)
        if state is None or state.activation is not None:
            reason = "is busy" if state else "is not present"
            raise RequestError(f"agent {agent!r} {reason}; it cannot be started")
        activation, inputs = self._new_id("a"), tuple(state.buffer)
        t, now = self.graph.t + 1, self._recorder.now
        self._recorder.write(records.Start(t, now, activation, agent, inputs))
        self._recorder.effects.append(self._holds.show_buffer(activation, agent, inputs))
        return self._leave_call()

    def end(
        self,
        activation: str,
        fates: Iterable[Fate] = (),
        outputs: Iterable[Output] = (),
        *,
        usage: Any = None,
        error: str | None = None,
        because: str | None = None,
        cancelled: bool = False,
        retry: bool = False,
    ) -> list[Effect]:
        """End an activation with the fates of the inputs and the outputs.

        Args:
            activation: The activation's id.
            fates: A fate for each input; one that is not named is delayed, a note is read.
            outputs: The events that it generates, in order; a final one must be the only one.
            usage: The cost of the activation (tokens and the like), plain JSON.
            error: The error's text, if the activation failed.
            because: The failed activation of another agent, or instance, whose error this is.
            cancelled: Whether the activation failed because it was called off.
            retry: The host will start the agent again by itself, after a back-off for instance.

        Raises:
            DecisionError: The decision, or the cause, does not fit the activation, which goes on.
            PayloadError: A payload is not plain JSON; the activation goes on.
            RequestError: There is no such activation in progress, or the run is over.
        """
        self._enter()
        current = self.graph.running.get(activation)
        if current is None:
            raise RequestError(f"{activation!r} is no activation in progress")
        fates, inputs = tuple(fates), current.by_id
        copies, usage, error = self._sanitizer.ending(inputs, fates, tuple(outputs), usage, error)
        if because is not None or cancelled:
            try:
                check_cause(self.graph, current.agent, error, because, cancelled)
            except RuleError as refused:
                raise DecisionError(str(refused)) from None
        # The end names its outputs; their records have to follow in this order.
        by_name = {self._new_id("e"): output for output in copies}
        t, now, names = self.graph.t + 1, self._recorder.now, tuple(by_name)
        self._recorder.write(
            records.End(t, now, activation, fates, names, usage, error, because, cancelled)
        )
        if self._healing.ladders is not None:
            self._healing.ladders.learn(current, self._recorder.now, error, by_name)
        for fate in fates:
            if fate.fate == "reroute":
                self._holds.hold(fate.event)
        for name, output in by_name.items():
            self._emit(name, activation, current.agent, output)
        self._holds.after_end(current.agent, inputs, retry=retry)
        return self._leave_call()

    def postpone(self, agent: str) -> None:
        """Leave an agent idle until a further event comes."""
        self._holds.ready.pop(agent, None)

    def join(self, agent: str) -> list[Effect]:
        """An agent joins, or joins again, with an empty buffer.

        Raises:
            RequestError: The agent is present already, or is called `system`; or the run is over.
        """
        self._enter()
        if not isinstance(agent, str) or agent == SYSTEM:
            raise RequestError(f"agent names must be strings other than 'system', got {agent!r}")
        if agent in self.graph.agents:
            raise RequestError(f"agent {agent!r} cannot join: an agent of that name is present")
        self._recorder.write(records.Join(*self._recorder.moment, agent))
        return self._leave_call()

    def leave(self, agent: str) -> list[Effect]:
        """Let an agent leave; the buffer, the activation and events on their way are lost.

        Raises:
            RequestError: The agent is not present, or the run is over.
        """
        self._enter()
        if agent not in self.graph.agents:
            raise RequestError(f"agent {agent!r} is not present; it cannot leave")
        self._schedule.take_out(agent)
        return self._leave_call()

    def redirect(self, event: str, to: Sequence[str], again: Any = None) -> list[Effect]:
        """Replace the recipients of an event on its way, and deliver the event to the new ones.

        Args:
            event: Its id.
            to: The agents.
            again: The payload of the event; only needed if it was used up, and so forgotten.

        Raises:
            PayloadError: `again` is not plain JSON.
            RequestError: There is no such event, or it is used up; `to` is no list of names; or
                the run is over.
        """
        self._enter()
        if not are_names(to):
            raise RequestError(f"{to!r} is no list of agents' names")
        payloads = self._holds.payloads
        if again is not None:
            payloads.restore(event, self._sanitizer.value(again))
        if event not in payloads or self.graph.is_accepted(event):
            raise RequestError(f"event {event!r} does not exist, is used up or was evicted")
        self._approvals.stop_holding(event)
        self._holds.redirect(event, tuple(to))
        return self._leave_call()

    def has_note(self, agent: str, event: str) -> bool:
        """Whether a turn of an agent about an event would be shown a system event."""
        return self._holds.has_note(agent, event)

    def tell(self, note: str, to: Sequence[str]) -> list[Effect]:
        """Send the note of a person or a host to some agents, as a system event.

        Raises:
            PayloadError: The note is not plain JSON.
            RequestError: One of them is not present, or the run is over.
        """
        self._enter()
        note = self._sanitizer.value(note, "note")
        absent = [agent for agent in to if agent not in self.graph.agents]
        if absent:
            raise RequestError(f"agent {absent[0]!r} is not present; it cannot be told anything")
        self._recorder.incident(TOLD, {"note": note, "to": list(to)})
        self._holds.emit_notice(note, tuple(to))
        return self._leave_call()

    def release(self, event: str) -> list[Effect]:
        """Deliver an event kept by a delivery policy.

        Raises:
            RequestError: No policy keeps it on its way, or the run is over.
        """
        self._enter()
        is_known = event in self._holds.payloads and event not in self._gates.deciding
        if not is_known or not self.graph.event(event).flight:
            raise RequestError(f"event {event!r} is kept by no delivery policy")
        self._recorder.incident(RELEASED, {"event": event})
        self._schedule.release(event)
        return self._leave_call()

    def resolve(
        self,
        gate: Gate,
        event: str,
        decided: Iterable[Intervention] | None,
        error: str | None = None,
    ) -> list[Effect]:
        """Take a gate's decision about a held event, or the gate's failure; too late is no error.

        Args:
            gate: The gate.
            event: The event's id.
            decided: The changes that are made to the event before its release.
            error: The error's text, if the gate failed.
        """
        self._catch_up()
        if not self.is_over:
            self._gates.resolve(gate, event, decided, error)
        return self._leave_call()

    def decide(self, row: int, heal: bool, error: str | None = None) -> list[Effect]:
        """A person has decided about healing (`Proposed`), or failed; too late is no error.

        Args:
            row: The logical time of the finding's record.
            heal: Whether the finding is to be healed.
            error: The error's text, if the person could not be asked; then the deadline decides.
        """
        self._catch_up()
        if not self.is_over:
            if error is not None:
                self._recorder.report_component_failure("approve", error)
            else:
                self._approvals.decide(row, heal)
        return self._leave_call()

    def tick(self) -> list[Effect]:
        """Do everything due by now; call it at `next_deadline`."""
        self._catch_up()
        return self._recorder.take_effects()

    def incident(self, kind: str, detail: Any) -> list[Effect]:
        """Write down an incident: a fact without a change of the graph."""
        detail = self._sanitizer.value(detail, "detail")
        self._catch_up()
        if self._recorder.can_write:
            self._recorder.incident(kind, detail)
        if kind == records.REQUEST_FAILED:
            self._holds.late_work.note(self.graph.running.values())
        return self._recorder.take_effects()

    def waits(
        self, *, activation: str | None = None, event: str | None = None, **question: Any
    ) -> list[Effect]:
        """Report a wait on purpose; `asks` is the question, `answer` the way to answer."""
        detail = waiting_detail(self.graph, activation, event)
        return self.incident(records.WAITS, detail | question)

    def request_failed(
        self, failure: records.Failure, *, event: str | None = None, activation: str | None = None,
        error: str | None = None,
    ) -> list[Effect]:  # fmt: skip
        """Report a request's end without an answer, so that no detector waits for the answer.

        Args:
            failure: By an `error`, at a `limit` (of turns, messages, recursion) or by a `timeout`.
            event: The event from outside that posed it; ``None``: it is not known.
            activation: The activation whose error has ended it, if one has.
            error: The error's text.

        Raises:
            RequestError: There is no such way to fail, or the event is not from outside.
        """
        error = error and self._sanitizer.error(error)
        detail = failure_detail(self.graph, failure, event, activation, error)
        return self.incident(records.REQUEST_FAILED, detail)

    def finish(self, outcome: Outcome, answer: Any = None, usage: Any = None) -> list[Effect]:
        """End the run with the last record, in any state; a second call does no harm.

        Args:
            outcome: The outcome of the run.
            answer: The team's answer, plain JSON.
            usage: The cost of the activations that the end cuts off, plain JSON.

        Raises:
            PayloadError: The answer or the usage is not plain JSON.
            RequestError: There is no such outcome.
        """
        if outcome not in OUTCOMES:
            raise RequestError(f"{outcome!r} is no outcome; choose one of {', '.join(OUTCOMES)}")
        recorder, copy = self._recorder, self._sanitizer.value
        if recorder.can_write:
            answer, usage = copy(answer, "answer"), copy(usage, "usage")
            recorder.look_at_clock()
            self._holds.late_work.look()
            recorder.report_left_out()
            recorder.write(records.Finish(*recorder.moment, outcome, answer, usage))
            recorder.is_over, recorder.can_write = True, False
        return self._recorder.take_effects()

    # --- what a host may ask ---

    @property
    def is_over(self) -> bool:
        """Whether only `finish` may still be called."""
        return self._recorder.is_over

    @property
    def is_quiet(self) -> bool:
        """Whether no agent is at work or waits to be started, and no gate is deciding."""
        return not (self.graph.running or self._holds.ready or self._gates.deciding)

    @property
    def proposals(self) -> list[Proposed]:
        """The questions to persons that are open, in order."""
        return [question.proposed for question in self._approvals.open.values()]

    @property
    def now(self) -> float:
        """The time of the latest call, in seconds since the run began."""
        return self._recorder.now / 1_000_000

    def shares(self) -> tuple[float, float]:
        """The shares of run time spent in detectors and in the sink; 0 without a stopwatch."""
        return self._recorder.shares()

    def next_deadline(self, *, exact: bool = True) -> float | None:
        """When to `tick` next, in seconds on the monitor's clock; ``None``: nothing is due.

        Args:
            exact: Whether something is due then. If not, it may be a moment before that, which
                costs less to tell; after a `tick` at that moment there is a later one.
        """
        if self._recorder.is_over:
            return None
        watch = self._recorder.watch
        due = watch.due if exact else watch.not_before
        if any(self._later):
            parts = (self._gates, self._approvals, self._holds.late_work, self._schedule)
            later = [part.deadline() for part in parts] + [it.due for it in self._healing.timed]
            due = min([us for us in (due, *later) if us is not None], default=None)
        return None if due is None else due / 1_000_000

    # --- inside a call, in order ---

    def _enter(self) -> None:
        """Begin a request, unless the run is over, or time ends the run now."""
        self._catch_up()
        if self._recorder.is_over:
            raise RequestError("the run is over")

    def _catch_up(self) -> None:
        """Do everything due by now, which may end the run."""
        recorder = self._recorder
        if recorder.is_over:
            return
        if self._keep is not None and self.graph.history.rows >= self._next_collection:
            self._collect(self._keep)
        is_later = any(self._later)
        recorder.look_at_clock()
        if is_later:
            self._holds.late_work.look()
            self._healing.poll()
        if is_later or recorder.new_findings or self._holds.held:
            self._settle()

    def _emit(self, name: str, by: str | None, sender: str | None, output: Output) -> None:
        """Generate and hold an event; the delivery policy may let it arrive later."""
        if output.policy is None or output.final:
            self._holds.emit(name, by, sender, output, output.to)
        else:
            self._schedule.emit(name, by, sender, output, output.policy)

    def _leave_call(self) -> list[Effect]:
        self._settle()
        return self._recorder.take_effects()

    def _settle(self) -> None:
        """Heal findings and release held events, until there are none."""
        recorder, holds = self._recorder, self._holds
        if not (recorder.new_findings or holds.held or any(self._later)):
            return
        # Deliveries raise findings, and their healing makes events to deliver: budgets end this.
        while not recorder.is_over:
            if recorder.new_findings or any(self._later):
                for proposal in self._healing.apply_healers() + self._healing.take_steps():
                    self._approvals.ask(proposal)
                holds.deliver_waiting(self._gates.deciding)
            if holds.held:
                self._release()
            if any(self._later):
                self._gates.overrule_late()
                self._approvals.overrule_late()
                self._schedule.run_recorded()
                self._schedule.run_timers()
            if not (recorder.new_findings or holds.held):
                break

    def _release(self) -> None:
        """Release the held events, in order."""
        holds, gates = self._holds, self._gates
        for event in holds.take():
            if self._recorder.is_over:  # an answer before it has ended the run
                return
            if event not in holds.payloads:  # called back or consumed since it was held
                continue
            if (gates.gates or gates.deciding) and gates.keep(event):
                holds.wait_behind(event)
            else:
                self._deliver(event)

    def _deliver(self, event: str) -> None:
        """Deliver a released event to the recipients; an answer without any is accepted."""
        state = self.graph.event(event)
        if state.final and not state.flight:
            if self._holds.accept(event):
                self._healing.renew_budget()
            return
        if len(state.flight) > 1:  # before delivery, so that the notes go with the event
            self._healing.add_preventive_notes(event)
        reached = self._holds.deliver(event, state.flight)
        if self._schedule.postponed:
            for agent in reached:
                self._schedule.deliver_with_next(agent)

    def _collect(self, keep: int) -> None:
        """Evict history without effect on verdicts, in a session.

        It happens between two calls, while nothing is held, and seldom enough that it costs each
        record little.
        """
        graph, holds = self.graph, self._holds
        if not graph.run.session:
            return
        # These events may still be sent to other agents, with all that is known about them.
        moving = holds.held, self._gates.deciding, self._schedule.events
        self._recorder.evict(keep, self._healing.awaited_ids().union(*moving))
        holds.forget()
        self._healing.forget()
        self._gates.forget()
        self._next_collection = max(1, GROWTH * graph.history.rows + keep)
