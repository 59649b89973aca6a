"""Faults of the family `coordination`: agents share the work, or its results, in a wrong way."""

from __future__ import annotations

from dig.faults.inject.injector import Moment, OnTurn, is_solution, parts_of, solutions
from dig.runtime.agents import Decision, EventFate, NewEvent, View


class SplitTwice(OnTurn):
    """The agent hands out each part of a problem twice, the second time to the next agent."""

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """The same decision with a copy of each part."""
        parts = parts_of(decision)
        if not parts:
            return decision
        names = view.others or view.team
        again = [
            part.model_copy(update={"to": [_after(names, name) for name in part.to]})
            for part in parts
        ]
        moment.tell(f"handed {len(parts)} parts out twice", output=again[0])
        return decision.model_copy(update={"outputs": [*decision.outputs, *again]})


def _after(names: tuple[str, ...], name: str) -> str:
    """The next agent in turn."""
    return names[(names.index(name) + 1) % len(names)] if name in names else names[0]


class WorkOnOthersPart(OnTurn):
    """The agent sends itself a copy of each part of a problem that it hands out."""

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """The same decision, with the agent itself among the recipients of each part."""
        parts = [part for part in parts_of(decision) if view.agent not in part.to]
        if not parts:
            return decision
        shared = {
            id(part): part.model_copy(update={"to": [*part.to, view.agent]}) for part in parts
        }
        moment.tell(f"kept {len(parts)} parts of others", output=shared[id(parts[0])])
        outputs = [shared.get(id(output), output) for output in decision.outputs]
        return decision.model_copy(update={"outputs": outputs})


class MergeAcrossLineages(OnTurn):
    """The agent puts all solutions, received and its own, into one, which goes to one agent.

    An element that several solutions cover is counted several times, as if it were several ones.
    """

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """The same decision with all solutions as one."""
        found = solutions(view, decision)
        if len(found) < 2 or any(output.final for output in decision.outputs):
            return decision
        own = [output for output in decision.outputs if output.type == "solution"]
        to = next((name for output in own for name in output.to), view.agent)
        merged = NewEvent(payload=moment.payloads.heaped(found, to), to=[to], type="solution")
        moment.tell(f"put {len(found)} solutions into one", output=merged)
        used = [event.id for event in view.events if is_solution(event)]
        fates = [fate for fate in decision.fates if fate.event not in used]
        fates += [EventFate(event=event, fate="consume") for event in used]
        outputs = [output for output in decision.outputs if output.type != "solution"]
        return decision.model_copy(update={"fates": fates, "outputs": [*outputs, merged]})
