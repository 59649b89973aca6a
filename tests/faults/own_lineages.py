"""A user's own team that keeps lineages apart: two who solve, and one who passes each on alone."""

from __future__ import annotations

from dig.runtime.agents import Decision, EventFate, NewEvent, Plan, View


class Solver:
    """Solves the problem in its own way."""

    def plan(self, view: View) -> Plan:
        solution = NewEvent(payload=view.agent, to=["clerk"], type="solution")
        return Plan(1.0, Decision.respond(view, solution))


class Clerk:
    """Handles one event at a time; a solution goes to the boss."""

    def plan(self, view: View) -> Plan:
        first = view.events[0]
        letter = NewEvent(payload=first.payload, to=["boss"], type="solution")
        outputs = [letter] if first.type == "solution" else []
        return Plan(
            5.0, Decision(fates=[EventFate(event=first.id, fate="consume")], outputs=outputs)
        )


class Boss:
    """Is content with anything."""

    def plan(self, view: View) -> Plan:
        if view.events[-1].type == "problem":
            return Plan(1.0, Decision.respond(view))
        return Plan(9.0, Decision.submit(view, view.events[-1].payload))


TASK = ({"ann": Solver(), "bob": Solver(), "clerk": Clerk(), "boss": Boss()}, "?")
