"""Simulated agents with a memory of their own: messages do not say which parts they are about.

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
from dig.tasks.ranges import Range, merged, missing, range_of

from .agent import SimulatedAgent


class RememberingAgent:
    """A simulated agent that remembers which parts the references of messages stand for.

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
        """Decide by what it is shown and what it remembers."""
        self._remember(event.payload for event in view.events)
        known = tuple(map(self._understood, view.events))
        plan = self.agent.plan(replace(view, events=known))
        if isinstance(plan.decision, str):
            return plan
        outputs = [
            self._worded(output, f"{view.agent}.{view.turn}.{number}")
            for number, output in enumerate(plan.decision.outputs)
        ]
        return Plan(plan.think_s, Decision(fates=plan.decision.fates, outputs=outputs))

    def restore(self, past: Sequence[PastActivation]) -> None:
        """Remember what was seen and generated in these activations, and nothing else."""
        self.parts = {}
        for one in past:
            self._remember(event.payload for event in one.view.events)
            self._remember(output.payload for output in one.outputs)

    def _remember(self, payloads: Iterable[Any]) -> None:
        for payload in payloads:
            said = payload if isinstance(payload, Mapping) else {}
            part, reference = range_of(said.get("part")), said.get(REFERENCE, WHOLE)
            if part is not None and isinstance(reference, str):
                self.parts.setdefault(reference, part)

    def _understood(self, event: Pending) -> Pending:
        """An event with the parts that it is about, as far as it knows them."""
        about = tuple(
            replace(one, work={name: self._covering(work) for name, work in one.work.items()})
            for one in event.about
        )
        return replace(event, payload=self._covering(event.payload), about=about)

    def _covering(self, payload: Any) -> Any:
        answers = payload.get(ANSWERS) if isinstance(payload, Mapping) else None
        if not isinstance(answers, list):
            return payload
        ranges = merged(self.parts[one] for one in answers if one in self.parts)
        rest = {key: value for key, value in payload.items() if key != ANSWERS}
        return {**rest, "covers": [[*one] for one in ranges]}

    def _worded(self, output: NewEvent, reference: str) -> NewEvent:
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
            known = self._references([payload["part"]])
            payload = {**payload, REFERENCE: known[0]} if known else payload
        elif isinstance(payload, Mapping) and "covers" in payload:
            rest = {key: value for key, value in payload.items() if key != "covers"}
            payload = {**rest, ANSWERS: self._references(payload["covers"])}
        return output.model_copy(update={"payload": payload})

    def _references(self, covers: Sequence[Sequence[int]]) -> list[str]:
        """The fewest references that it remembers for some ranges, in the order of the parts."""
        left = merged((start, stop) for start, stop in covers)
        found: dict[Range, str] = {}
        for reference, part in sorted(self.parts.items(), key=lambda item: -_length(item[1])):
            if not missing(part, left):
                found[part] = reference
                left = tuple(gap for one in left for gap in missing(one, [part]))
        return [found[part] for part in sorted(found)]


def _length(part: Range) -> int:
    return part[1] - part[0]
