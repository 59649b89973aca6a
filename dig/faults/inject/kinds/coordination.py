"""Faults of the family `coordination`: work, or results, shared in a wrong way."""

from __future__ import annotations

from dig.faults.inject.injector import Occasion, OnTurn, is_solution, parts_of, solutions
from dig.runtime.agents import Decision, EventFate, NewEvent, View


class SplitTwice(OnTurn):
    """The agent hands out each part of a problem twice, the second time to the next agent."""

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """Add a copy of each part."""
        parts = parts_of(decision)
        if not parts:
            return decision
        names = view.others or view.team

        def next_name(name: str) -> str:
            return names[(names.index(name) + 1) % len(names)] if name in names else names[0]

        copies = [
            part.model_copy(update={"to": [next_name(name) for name in part.to]}) for part in parts
        ]
        occasion.add_act(f"handed {len(parts)} parts out twice", output=copies[0])
        return decision.model_copy(update={"outputs": [*decision.outputs, *copies]})


class WorkOnOthersPart(OnTurn):
    """The agent keeps a copy of each part of a problem that goes to others."""

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """Add the agent to the recipients of each part."""
        parts = [part for part in parts_of(decision) if view.agent not in part.to]
        if not parts:
            return decision
        shared = {
            id(part): part.model_copy(update={"to": [*part.to, view.agent]}) for part in parts
        }
        occasion.add_act(f"kept {len(parts)} parts of others", output=shared[id(parts[0])])
        outputs = [shared.get(id(output), output) for output in decision.outputs]
        return decision.model_copy(update={"outputs": outputs})


class MergeAcrossLineages(OnTurn):
    """The agent merges all solutions, received and own, and sends the result to one agent.

    An element that several solutions cover is counted several times.
    """

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """Replace all solutions by a merged solution."""
        payloads = solutions(view, decision)
        if len(payloads) < 2 or any(output.final for output in decision.outputs):
            return decision
        own = [output for output in decision.outputs if output.type == "solution"]
        to = next((name for output in own for name in output.to), view.agent)
        merged = NewEvent(payload=occasion.payloads.heaped(payloads, to), to=[to], type="solution")
        occasion.add_act(f"put {len(payloads)} solutions into one", output=merged)
        merged_ids = [event.id for event in view.events if is_solution(event)]
        fates = [fate for fate in decision.fates if fate.event not in merged_ids]
        fates += [EventFate(event=event, fate="consume") for event in merged_ids]
        outputs = [output for output in decision.outputs if output.type != "solution"]
        return decision.model_copy(update={"fates": fates, "outputs": [*outputs, merged]})
