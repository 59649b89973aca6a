"""Spans of `digmon export` or of a wrapped team, as a run.

They name events and fates, so little is guessed; a span below another is not inside it.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from dig.detectors.thresholds import Thresholds
from dig.graph.records import OUTCOMES, SYSTEM, Fate, Record, Run
from dig.traces.otel import conventions

from . import span_words
from .scribe import Guesses, Scribe
from .span_rows import SpanRow

_FATES: dict[str, Any] = {mark: fate for fate, mark in conventions.MARKS.items()}


class _Activation:
    """The span of an activation."""

    def __init__(self, row: SpanRow) -> None:
        self.row, self.about = row, row.attributes
        self.id = str(self.about[conventions.ACTIVATION])
        # In older exports the name of the conventions is that of an instance (`NAME#2`), too.
        self.agent = str(self.about.get(conventions.AGENT) or self.about[conventions.AGENT_NAME])
        consumed = self.about.get(conventions.IN_EVENTS, ())
        self.fates = [Fate(str(event), "consume") for event in consumed]
        for name, mark in row.events:
            if name in _FATES:
                to = tuple(map(str, mark.get(conventions.TARGET, ())))
                self.fates.append(Fate(str(mark[conventions.EVENT]), _FATES[name], to))
        self.inputs = [fate.event for fate in self.fates]
        self.outputs = [str(event) for event in self.about.get(conventions.OUT_EVENTS, ())]
        self.order = row.start, self.about.get("dig.depth", 0)
        self.is_begun = self.is_over = False

    def payloads(self, key: str, events: Sequence[str]) -> dict[str, Any]:
        """The payloads of inputs or outputs by event; none, unless all were exported."""
        messages = json.loads(self.about.get(key) or "[]")
        texts = [message["parts"][0]["content"] for message in messages]
        payloads = [None if text == "null" else span_words.payload_of(str(text)) for text in texts]
        return dict(zip(events, payloads, strict=True)) if len(texts) == len(events) else {}


def is_own(row: SpanRow) -> bool:
    """Whether a span is of an activation of ours."""
    return conventions.ACTIVATION in row.attributes


def own_run(name: str, source: str, rows: Sequence[SpanRow]) -> tuple[list[Record], Guesses]:
    """The records of the run behind our own spans, and the guesses.

    Args:
        name: The name of the run, if no span has it.
        source: The names of the files.
        rows: The spans.
    """
    guesses, limits = Guesses(), Thresholds().limits
    limits = guesses.leave_out(limits, ("LATE", "FAIL request"), "spans tell neither when a "
                               "message arrived nor which request failed")  # fmt: skip
    if not any(conventions.INPUT_MESSAGES in row.attributes for row in rows):
        limits = guesses.leave_out(limits, ("LOOP", "VOID"), "no words were exported")
    guesses.note("all agents were there from the beginning to the end")
    guesses.note("an event reached an agent at once, unless the agent's next turn did not see it")
    root = next((row.attributes for row in rows if "dig.run" in row.attributes), {})
    activations = [_Activation(row) for row in rows if is_own(row)]
    agents = [*root.get("dig.agents", ()), *(activation.agent for activation in activations)]
    is_session = bool(root.get("dig.session", True))
    run = Run(
        0, 0, str(root.get("dig.run") or name), tuple(dict.fromkeys(map(str, agents))),
        limits=limits, session=is_session, memory=is_session,
    )  # fmt: skip
    writer = _Writer(Scribe(run, guesses), activations)
    # Healing names the answers that it sent back; some were never read again.
    writer.bounced = {row.attributes.get(conventions.EVENT) for row in rows
                      if "dig.heal.target" in row.attributes}  # fmt: skip
    writer.write()
    outcome: Any = root.get("dig.outcome")
    outcome = outcome if outcome in OUTCOMES else "stopped"
    return writer.scribe.finish(outcome, source), guesses


class _Writer:
    """Writes activations in order of time, each after the makers of the events in front of it."""

    def __init__(self, scribe: Scribe, activations: list[_Activation]) -> None:
        self.scribe, self.bounced = scribe, set[Any]()
        self._all = sorted(activations, key=lambda activation: activation.order)
        self._makers = {event: activation for activation in self._all
                        for event in activation.outputs}  # fmt: skip
        self._next: defaultdict[str, deque[_Activation]] = defaultdict(deque)
        self._readers: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for activation in self._all:
            self._next[activation.agent].append(activation)
            for event in activation.inputs:
                self._readers[event][activation.agent] = None

    def write(self) -> None:
        """Write all activations."""
        steps: list[tuple[Any, Any, int, int]] = []
        for number, activation in enumerate(self._all):
            steps.append((*activation.order, 0, number))
            if "dig.unfinished" not in activation.about:
                steps.append((activation.row.end, activation.order[1], 1, number))
        for at, _, is_end, number in sorted(steps):
            self.scribe.at((at - self._all[0].row.start) // 1000)
            (self._end if is_end else self._start)(self._all[number])

    def _start(self, activation: _Activation) -> None:
        self._next[activation.agent].popleft()
        about, graph = activation.about, self.scribe.graph
        consumed = about.get(conventions.IN_EVENTS, ())
        payloads = activation.payloads(conventions.INPUT_MESSAGES, consumed)
        makers = dict(zip(consumed, about.get(conventions.IN_PRODUCERS, ()), strict=False))
        for event in activation.inputs:
            if event in self._makers:
                self._end(self._makers[event])
            elif not graph.knows(event):
                by, type = (SYSTEM,) * 2 if makers.get(event) == SYSTEM else (None, "problem")
                self._emit(event, by, list(self._readers[event]), type, payloads)
            if event not in graph.agents[activation.agent].buffer:
                flight = graph.event(event).flight
                if activation.agent not in flight:
                    self.scribe.redirect(event, [*flight, activation.agent])
                self.scribe.deliver(event, activation.agent)
        self.scribe.start(activation.id, activation.agent)
        activation.is_begun = True

    def _end(self, activation: _Activation) -> None:
        if activation.is_over or not activation.is_begun:
            return
        activation.is_over = True
        about, outputs = activation.about, activation.outputs
        self.scribe.end(
            activation.id, activation.fates, outputs, activation.row.message or None,
            because=span_words.first(about, [conventions.BECAUSE]) or None,
            cancelled=bool(about.get(conventions.CANCELLED)),
            usage=span_words.tokens([about]) or None,
        )  # fmt: skip
        payloads = activation.payloads(conventions.OUTPUT_MESSAGES, outputs)
        types, to = about.get(conventions.OUT_TYPES, ()), about.get(conventions.OUT_TO, ())
        final = bool(about.get(conventions.FINAL))
        for event, type, agents in zip_longest(outputs, types, to):  # an older export lacks `to`
            readers = self._readers[event] if agents is None else json.loads(agents)
            self._emit(event, activation.id, [*map(str, readers)], str(type or "message"), payloads,
                       final=final)  # fmt: skip
        for event in outputs:
            if final and not self._readers[event] and event not in self.bounced:
                self.scribe.deliver(event, None)
            for agent in list(self.scribe.graph.event(event).flight):
                if not self._next[agent] or event in self._next[agent][0].inputs:
                    self.scribe.deliver(event, agent)

    def _emit(
        self, event: str, by: str | None, to: Sequence[str], type: str, payloads: dict[str, Any],
        *, final: bool = False,
    ) -> None:  # fmt: skip
        more = {} if payloads.get(event) is None else {"payload": payloads[event]}
        self.scribe.emit(event, by, to, type, final=final, **more)
