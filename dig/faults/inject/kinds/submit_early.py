"""An agent submits what it has, although it is not everything."""

from __future__ import annotations

from typing import ClassVar

from dig.faults.inject.injector import ONCE, Moment, OnTurn, Parameters, solutions
from dig.runtime.agents import Decision, View


class SubmitEarly(OnTurn):
    """Submits the solutions that it has, put together, in place of what it would do."""

    parameters: ClassVar[Parameters] = {"at_most": ONCE}

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """To submit, as soon as there is a solution."""
        found = solutions(view, decision)
        if not found or any(output.final for output in decision.outputs):
            return decision
        moment.tell("submitted what it had")
        return Decision.submit(view, moment.payloads.joined(found, view.agent))
