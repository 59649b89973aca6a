"""Puts the nodes of a stored graph into the order of a trace.

The source keeps times with its nodes, a trace is an order of records with rules of its own: an
activation is shown its agent's whole buffer, and what it generates appears at its end. Where the
two do not fit, the graph (who was shown what, and did what with it) is kept and the time is not;
each such change is told as a guess.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from dig.detectors.thresholds import Thresholds
from dig.graph.records import SYSTEM, Fate, Limits, Record, Run, micros
from dig.traces.interchange.scribe import Guesses, Scribe

from .record_order import Schedule, natural
from .reference_nodes import Diversion, SourceActivation, SourceEvent, SourceGraph

Key = tuple[float, int, int]
"""The sort key of a happening: its time, the place of the activation it follows, the phase."""

_EMIT, _START, _END, _DIVERT, _REMARK, _DELIVER = range(6)


def reconstruct(source: SourceGraph, run: str, file: str, guesses: Guesses) -> list[Record]:
    """The records of a run whose graph is the stored graph.

    Args:
        source: The graph.
        run: The name that the run shall have.
        file: The file that the graph was read from.
        guesses: Gets what had to be guessed.

    Raises:
        RecordError: The graph contradicts itself.
    """
    return _Reconstruction(source, guesses).records(run, file)


class _Reconstruction:
    """Collects all happenings with sort keys, then writes the records in order."""

    def __init__(self, source: SourceGraph, guesses: Guesses) -> None:
        self._source = source
        self._guesses = guesses
        self._plan = Schedule(source, guesses)
        self._happenings: list[tuple[Key, int, Callable[[], None]]] = []
        self._outputs: dict[str, list[SourceEvent]] = defaultdict(list)
        self._answers: dict[str, SourceEvent] = {}  # by activation
        self._scribe: Scribe

    def records(self, run: str, file: str) -> list[Record]:
        for event in sorted(self._source.events.values(), key=lambda e: (e.at or 0, natural(e.id))):
            if self._plan.is_agents(event):
                self._outputs[event.by or ""].append(event)
            self._add_event(event)
        for activation in self._plan.order:
            self._add_activation(activation)
        # The number breaks ties: the third element is a function, and cannot be compared.
        self._happenings.sort(key=lambda happening: happening[:2])
        self._scribe = Scribe(self._run(run), self._guesses)
        for (at, _, _), _, happen in self._happenings:
            self._scribe.at(micros(at - self._plan.base))
            happen()
        self._guesses.note("the run ended with what was stored last")
        return self._scribe.finish("submitted" if self._answers else "stopped", file)

    def _run(self, name: str) -> Run:
        agents = tuple(self._source.agents())
        self._guesses.note("all agents were there from the beginning to the end")
        answers = {v.id: self._answer(v) for v in self._plan.order}
        self._answers = {v: answer for v, answer in answers.items() if answer is not None}
        last = self._happenings[-1][0] if self._happenings else None
        session = bool(self._answers) and last != self._end_key(next(iter(self._answers)))
        if session:
            self._guesses.note("something came after an accepted answer, so the run is a session")
        return Run(0, 0, name, agents, limits=self._limits(), session=session)

    def _limits(self) -> Limits:
        """The default limits; STALL and LATE are off if times are missing."""
        limits, order = Thresholds().limits, self._plan.order
        if any(v.began is None or v.ended is None for v in order):
            self._guesses.note("STALL is off, as activations without a time have no duration")
            limits = replace(limits, stall_factor=None)
        if any(v.agent not in self._source.events[e].delivered for v in order for e in v.fates):
            self._guesses.note("LATE is off, as events without a time of delivery came late")
            limits = replace(limits, late_window_s=None)
        return limits

    def _add(self, at: float, place: int, phase: int, happen: Callable[[], None]) -> None:
        self._happenings.append(((at, place, phase), len(self._happenings), happen))

    def _end_key(self, v: str) -> Key:
        return self._plan.end[v], self._plan.place[v], _END

    # --- activations ---

    def _add_activation(self, activation: SourceActivation) -> None:
        v, plan = activation.id, self._plan
        self._add(plan.start[v], plan.place[v], _START, partial(self._start, activation))
        self._add(*self._end_key(v), partial(self._end, activation))

    def _start(self, activation: SourceActivation) -> None:
        for event in self._scribe.start(activation.id, activation.agent):
            if event not in activation.fates:
                self._guesses.note(
                    "an activation was shown what lay in its buffer though the source does not "
                    "list it, and delayed it", f"{event} for {activation.id}",
                )  # fmt: skip

    def _end(self, activation: SourceActivation) -> None:
        v = activation.id
        shown = [event.id for event in self._scribe.graph.activations[v].inputs]
        fates = [self._fate(activation, event) for event in shown]
        outputs = self._outputs[v]
        self._scribe.end(v, fates, [event.id for event in outputs], activation.error)
        answer = self._answers.get(v)
        for event in outputs:
            if event.at is not None and event.at > self._plan.end[v]:
                self._guesses.note(
                    "what was attached to an activation after its end came at its end", event.id
                )
            is_final = event is answer
            self._scribe.emit(
                event.id, v, event.to, event.label, final=is_final, payload=event.payload
            )
        if answer is not None:
            self._guesses.note("a submitted answer was accepted", answer.id)
            self._scribe.deliver(answer.id, None)

    def _fate(self, activation: SourceActivation, event: str) -> Fate:
        fate = activation.fates.get(event) or "delay"
        if fate != "reroute":
            return Fate(event, fate)
        diversions = self._source.events[event].diversions
        own = [diversion for diversion in diversions if diversion.by == activation.id]
        to = [recipient for diversion in own for recipient in diversion.new]
        if not to:
            self._guesses.note("a reroute that names no new recipient went to nobody", event)
        return Fate(event, fate, tuple(to))

    def _answer(self, activation: SourceActivation) -> SourceEvent | None:
        """The final event of a submitting activation; ``None`` if no output can be final."""
        outputs = self._outputs[activation.id]
        if not activation.submits or activation.error is not None:
            return None
        if len(outputs) == 1 and not self._plan.receivers(outputs[0]):
            return outputs[0]
        guess = "a submission with several outputs, or to agents, is taken for ordinary work"
        self._guesses.note(guess, activation.id)
        return None

    # --- events ---

    def _add_event(self, event: SourceEvent) -> None:
        plan = self._plan
        at, place = plan.generation(event)
        if not plan.is_agents(event):
            self._add(at, place, _EMIT, partial(self._emit, event))
        for diversion in event.diversions:
            by = plan.place.get(diversion.by or "", -1)
            time = max(diversion.at, at)
            self._add(time, max(place, by), _DIVERT, partial(self._divert, event, diversion))
        for remark in event.remarks:
            remark_step = partial(self._remark, event.id, remark.pattern, remark.note)
            self._add(max(remark.at, at), place, _REMARK, remark_step)
        for recipient in plan.receivers(event):
            for time, after, is_shown in self._arrivals(event, recipient):
                arrive = partial(self._deliver, event.id, recipient, is_shown)
                self._add(time, max(place, after), _DELIVER, arrive)

    def _emit(self, event: SourceEvent) -> None:
        maker = self._source.activations.get(event.by or "")
        if maker is None:
            self._scribe.emit(event.id, None, event.to, event.label, payload=event.payload)
            return
        pattern = event.intervention or maker.intervention or "intervention"
        note, to = event.note or "", tuple(event.to)
        self._scribe.heal(pattern, {}, "create", event.id, to=to, note=note)
        self._scribe.emit(event.id, SYSTEM, event.to, SYSTEM, payload=event.payload or note)

    def _remark(self, event: str, pattern: str, note: str) -> None:
        self._scribe.heal(pattern, {"event": event}, "inject", event, note=note)

    def _divert(self, event: SourceEvent, diversion: Diversion) -> None:
        flight = self._scribe.graph.event(event.id).flight
        by = self._source.activations.get(diversion.by or "")
        if by is not None and by.fates.get(event.id) == "reroute":  # its fate says where to
            remaining = [name for name in flight if name not in diversion.lost_recipients]
            if len(remaining) < len(flight):
                self._scribe.redirect(event.id, remaining)
        else:
            self._scribe.redirect(event.id, diversion.pending)

    def _deliver(self, name: str, recipient: str, is_shown: bool) -> None:
        event = self._scribe.graph.event(name)
        # A trace has one copy of an event in a buffer; a second delivery changes nothing.
        if recipient in event.copies:
            return
        if recipient not in event.flight:
            if not is_shown:
                return
            self._guesses.note(
                "an event that was not on its way to an agent was sent to it, as it was shown it",
                f"{name} to {recipient}",
            )
            self._scribe.redirect(name, [*event.flight, recipient])
        self._scribe.deliver(name, recipient)

    def _arrivals(self, event: SourceEvent, recipient: str) -> Iterator[tuple[float, int, bool]]:
        """The sort key of each arrival at an agent, and whether an activation saw the event."""
        plan = self._plan
        turns = plan.turns[recipient]
        stamps = sorted(event.delivered.get(recipient, ()))
        # A delayed event stays in the buffer: only a copy no longer held can arrive again.
        held, since = False, float("-inf")
        for number, turn in enumerate(turns):
            if event.id not in turn.fates:
                continue
            start = plan.start[turn.id]
            if not held:
                stamp = next((at for at in stamps if at > since), None)
                before = turns[number - 1] if number else None
                low = plan.start[before.id] if before else float("-inf")
                self._tell_moved(event, recipient, stamp, low, start)
                # Not before the earlier turn, which was not shown the event; not after this
                # one, which was.
                arrival = max(start if stamp is None else stamp, low, plan.generation(event)[0])
                yield min(arrival, start), plan.place[before.id] if before else -1, True
            held = turn.fates[event.id] in (None, "delay")
            since = plan.end[turn.id]
        losses = [row.at for row in event.diversions if recipient in row.lost_recipients]
        is_gone = any(at >= since for at in losses)
        if held and is_gone:
            self._guesses.note("a copy that was taken back from a buffer stays there",
                               f"{event.id} at {recipient}")  # fmt: skip
        later = [at for at in stamps if at > since]
        if not held and later and not is_gone:
            low = plan.start[turns[-1].id] if turns else float("-inf")
            self._tell_moved(event, recipient, later[0], low, float("inf"))
            after = plan.place[turns[-1].id] if turns else -1
            yield max(later[0], low, plan.generation(event)[0]), after, False

    def _tell_moved(
        self, event: SourceEvent, recipient: str, stamp: float | None, low: float, high: float
    ) -> None:
        example = f"{event.id} to {recipient}"
        if stamp is None or stamp > high:
            self._guesses.note("an event was delivered when the activation began that was shown it",
                               example)  # fmt: skip
        elif stamp < low:
            self._guesses.note("an event was delivered later than stored, as an activation between "
                               "was not shown it", example)  # fmt: skip
