"""An agent has the answer, and does not submit it."""

from __future__ import annotations

from dig.faults.injector import Moment, OnTurn
from dig.runtime.agents import Decision, View


class NeverSubmit(OnTurn):
    """Consumes what the answer was made of, and keeps the answer to itself."""

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """The same without the answer."""
        if not any(output.final for output in decision.outputs):
            return decision
        moment.tell("did not submit the answer that it had")
        return decision.model_copy(update={"outputs": []})
