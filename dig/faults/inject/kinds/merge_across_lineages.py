"""An agent puts solutions together that do not belong together."""

from __future__ import annotations

from dig.faults.inject.injector import Moment, OnTurn, is_solution, solutions
from dig.runtime.agents import Decision, EventFate, NewEvent, View


class MergeAcrossLineages(OnTurn):
    """Heaps all solutions in front of it and its own into one, which goes to one agent.

    What is in several of them is counted several times, as if it were something else each time.
    """

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """The same with all solutions as one."""
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
