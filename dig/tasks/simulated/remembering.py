"""Simulated agents with a memory: messages name references instead of parts.

A problem that is handed out has a reference (`ref`), and a solution names the references that it
answers (`answers`) instead of the ranges that it covers. What a reference stands for is known to
the agents that have sent or got the problem, and to nobody who reads one message alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dig.monitor.messages import Pending
from dig.runtime.agents import Decision, NewEvent, Plan, View
from dig.runtime.checkpoint import PastActivation
from dig.tasks.accounting import ANSWERS, REFERENCE, WHOLE
from dig.tasks.number_ranges import Range, merge, missing, range_of

from .simulated_agent import SimulatedAgent


class RememberingAgent:
    """A simulated agent with a memory of the parts behind references.

    Attributes:
        agent: Decides, as if each message said which parts it is about.
        parts: Its memory: the part that each reference stands for.
    """

    plans_alike = True
    """If it plans for the same views again, from the first on, it comes to the same memory."""

    def __init__(self, agent: SimulatedAgent) -> None:
        """Begin with an empty memory."""
        self.agent = agent
        self.parts: dict[str, Range] = {}

    def reseeded(self, repeat: int) -> RememberingAgent:
        """The same agent with the same memory, and the random numbers of a repeat."""
        other = RememberingAgent(self.agent.reseeded(repeat))
        other.parts = dict(self.parts)
        return other

    def plan(self, view: View) -> Plan:
        """Decide by the view and the memory."""
        self._remember(event.payload for event in view.events)
        events = tuple(map(self._understood, view.events))
        plan = self.agent.plan(replace(view, events=events))
        if isinstance(plan.decision, str):
            return plan
        outputs = [
            self._with_references(output, f"{view.agent}.{view.turn}.{number}")
            for number, output in enumerate(plan.decision.outputs)
        ]
        return Plan(plan.think_s, Decision(fates=plan.decision.fates, outputs=outputs))

    def restore(self, past: Sequence[PastActivation]) -> None:
        """Rebuild the memory from past activations."""
        self.parts = {}
        for activation in past:
            self._remember(event.payload for event in activation.view.events)
            self._remember(output.payload for output in activation.outputs)

    def _remember(self, payloads: Iterable[Any]) -> None:
        for payload in payloads:
            fields = payload if isinstance(payload, Mapping) else {}
            part, reference = range_of(fields.get("part")), fields.get(REFERENCE, WHOLE)
            if part is not None and isinstance(reference, str):
                self.parts.setdefault(reference, part)

    def _understood(self, event: Pending) -> Pending:
        """Add the remembered parts to an event."""
        about = tuple(
            replace(note, work={name: self._covering(work) for name, work in note.work.items()})
            for note in event.about
        )
        return replace(event, payload=self._covering(event.payload), about=about)

    def _covering(self, payload: Any) -> Any:
        answers = payload.get(ANSWERS) if isinstance(payload, Mapping) else None
        if not isinstance(answers, list):
            return payload
        ranges = merge(self.parts[reference] for reference in answers if reference in self.parts)
        fields = {key: value for key, value in payload.items() if key != ANSWERS}
        return {**fields, "covers": [[*part] for part in ranges]}

    def _with_references(self, output: NewEvent, reference: str) -> NewEvent:
        """A message with references instead of ranges.

        Args:
            output: The message.
            reference: Its own reference, if it hands out a part.
        """
        payload = output.payload
        if output.type == "problem":
            payload = {**payload, REFERENCE: reference}
            self._remember([payload])
        elif output.type == "raw_data":
            references = self._references([payload["part"]])
            payload = {**payload, REFERENCE: references[0]} if references else payload
        elif isinstance(payload, Mapping) and "covers" in payload:
            fields = {key: value for key, value in payload.items() if key != "covers"}
            payload = {**fields, ANSWERS: self._references(payload["covers"])}
        return output.model_copy(update={"payload": payload})

    def _references(self, covers: Sequence[Sequence[int]]) -> list[str]:
        """The fewest remembered references for some ranges, in the order of the parts."""
        uncovered = merge((start, stop) for start, stop in covers)
        references: dict[Range, str] = {}
        for reference, part in sorted(self.parts.items(), key=lambda item: item[1][0] - item[1][1]):
            if not missing(part, uncovered):
                references[part] = reference
                uncovered = tuple(rest for gap in uncovered for rest in missing(gap, [part]))
        return [references[part] for part in sorted(references)]
