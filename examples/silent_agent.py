"""A detector of your own: an agent that was silent while the others worked.

It works live on the bus, in the simulator, and on any stored trace:

    digmon check runs/ID --detector silent_agent:Silent     # in this directory
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio

from dig import Create, Detector, Finding, Healer, InteractionGraph, Watch, explain
from dig.detectors import standard, standard_healers
from dig.graph.records import End, Record
from dig.runtime import Bus, Decision, NewEvent, Plan, Setup, View, simulate


class Silent(Detector):
    """Raises SILENT for an agent when the others have ended k activations since its last one."""

    pattern = "SILENT"
    kinds = (End,)  # the records that it wants to see; all, if this is left out

    def __init__(self, k: int = 4) -> None:
        self.k, self.ended, self.seen = k, 0, dict[str, int]()

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        self.ended += 1
        self.seen[graph.ended.agent] = self.ended
        for agent in graph.agents:
            if self.ended - self.seen.setdefault(agent, self.ended - 1) == self.k:
                about = {"agent": agent}, {"activations": self.k}
                yield Finding(self.pattern, record.t, record.us, *about, severity="error")


class Nudge(Healer):
    """Heals it: says to the agent that it may speak."""

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Create]:
        yield Create("You have not said anything for a while.", (finding.subject["agent"],))


def decide(view: View) -> Decision:
    """Ada and Bob count to ten together; Cyd wakes up when she is told that she may speak."""
    if view.agent == "cyd":
        return Decision.respond(view, NewEvent(payload="Sorry!", to=["ada"], type="notice"))
    numbers = [e.payload for e in view.events if isinstance(e.payload, int)]
    if not numbers:
        return Decision.wait()
    count = max(numbers) + 1
    if count == 10:
        return Decision.submit(view, count)
    return Decision.respond(
        view, NewEvent(payload=count, to=["bob" if view.agent == "ada" else "ada"])
    )


async def act(view: View) -> Decision:
    return decide(view)


class Quick:
    """The same agent for the simulator: it says how long it thinks."""

    def plan(self, view: View) -> Plan:
        return Plan(1.0, decide(view))


TEAM = ("ada", "bob", "cyd")


def main() -> list[list[dict[str, Any]]]:
    """Find it live, in virtual time, and in the records of the live run."""
    setup = Setup(
        detectors=lambda: [*standard(), Silent()],
        healers=lambda: {**standard_healers(), "SILENT": Nudge()},
    )
    records: list[Record] = []
    live = anyio.run(Bus(dict.fromkeys(TEAM, act), setup, sink=records.append).run, 0)
    virtual = simulate(dict.fromkeys(TEAM, Quick()), 0, setup=setup)
    watch = Watch([Silent()])
    stored = [finding for record in records for finding in watch.feed(record)]
    for finding in stored:
        print(finding.pattern, explain(watch.graph, finding))
    return [[f.row() for f in found] for found in (live.findings, virtual.findings, stored)]


if __name__ == "__main__":
    main()
