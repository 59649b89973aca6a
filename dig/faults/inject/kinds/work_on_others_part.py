"""An agent does work itself that it has given to others."""

from __future__ import annotations

from dig.faults.inject.injector import Moment, OnTurn, pieces
from dig.runtime.agents import Decision, NewEvent, View


class WorkOnOthersPart(OnTurn):
    """Sends itself a copy of each part of a problem that it hands out."""

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """The same, with itself among the recipients."""
        parts = [part for part in pieces(decision) if view.agent not in part.to]
        if not parts:
            return decision
        shared = {id(part): _also_to(part, view.agent) for part in parts}
        moment.tell(f"kept {len(parts)} parts of others", output=shared[id(parts[0])])
        outputs = [shared.get(id(output), output) for output in decision.outputs]
        return decision.model_copy(update={"outputs": outputs})


def _also_to(part: NewEvent, agent: str) -> NewEvent:
    return part.model_copy(update={"to": [*part.to, agent]})
