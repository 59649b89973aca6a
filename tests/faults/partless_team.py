"""A team of a user's own, in virtual time; no payload says which part of the task it is about."""

from __future__ import annotations

from dataclasses import dataclass

from dig.runtime.agents import Decision, NewEvent, Plan, View


@dataclass(frozen=True)
class Chief:
    """Asks two others, and submits the sum of what they say."""

    def plan(self, view: View) -> Plan:
        """Wait until both have answered."""
        if view.events[0].type == "problem":
            asked = [NewEvent(payload=n, to=[to]) for n, to in enumerate(("bob", "cyd"), 1)]
            return Plan(1.0, Decision.respond(view, *asked))
        if len(view.events) < 2:
            return Plan(0.5, Decision.wait())
        return Plan(1.0, Decision.submit(view, sum(event.payload for event in view.events)))


@dataclass(frozen=True)
class Helper:
    """Answers with ten times what it is told."""

    def plan(self, view: View) -> Plan:
        """At once."""
        said = [NewEvent(payload=10 * event.payload, to=["ada"]) for event in view.events]
        return Plan(2.0, Decision.respond(view, *said))


TASK = ({"ada": Chief(), "bob": Helper(), "cyd": Helper()}, "What is it?")
