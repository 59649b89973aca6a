"""A user's own team and problem: an adder, and somebody who asks it."""

from __future__ import annotations

from dig.runtime.agents import Decision, NewEvent, Plan, View


class Asker:
    """Asks the adder, and submits what it says."""

    def plan(self, view: View) -> Plan:
        event = view.events[0]
        if event.type == "problem":
            decision = Decision.respond(view, NewEvent(payload=event.payload, to=["adder"]))
        else:
            decision = Decision.submit(view, event.payload)
        return Plan(1.0, decision)


class Adder:
    """Adds."""

    def plan(self, view: View) -> Plan:
        total = sum(view.events[0].payload)
        return Plan(1.0, Decision.respond(view, NewEvent(payload=total, to=["asker"])))


TASK = ({"asker": Asker(), "adder": Adder()}, [1, 2])
