"""An agent passes all work on to others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dig.faults.inject.calls import Call, Go
from dig.faults.inject.injector import Moment, OnTurn, is_work
from dig.runtime.agents import Decision, EventFate, View


class PassOn(OnTurn):
    """Reroutes each event to another agent, chosen at random, and generates nothing."""

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """To pass on what is work; the rest stays."""
        work = [event for event in view.events if is_work(event)]
        if not work or not view.others:
            return decision
        moment.tell("passed all work on")
        to = [moment.choice(view.others, "to", i) for i in range(len(work))]
        return Decision(
            fates=[
                EventFate(event=event.id, fate="reroute", to=[name])
                for event, name in zip(work, to, strict=True)
            ]
        )

    async def answers(self, call: Call, go: Go, moment: Moment) -> Any:
        """It has another agent answer."""
        if not call.others or not self.happens(moment):
            return await go(call)
        to = moment.choice(call.others, "to")
        moment.tell(f"had {to} answer")
        return await go(replace(call, agent=to))
