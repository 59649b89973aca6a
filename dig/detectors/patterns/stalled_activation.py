"""STALL, stalled activation: an agent takes far longer than the team's turns do.

Not in the paper: a fixed limit is wrong for teams that think long and unevenly, so the limit is
learned from the turns of the agent, or of the team, as they come.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Any

from dig._util.text import name, names
from dig.detectors.finding import Explanation, Finding
from dig.detectors.interventions import Create, Intervention
from dig.detectors.notes import listed, quoted
from dig.detectors.paths import PathFinder
from dig.detectors.protocols import Detector, Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import WAITS, End, IncidentRow, Leave, Record, Start, base_name, micros
from dig.graph.state import ActivationState, by_number

LATEST = 99
"""The number of latest turns that a limit is learned from."""

ENOUGH_OF_AGENT, ENOUGH_OF_TEAM = 5, 10
"""The number of turns of an agent, and of the whole team, from which on they tell a limit."""


class _Durations:
    """The durations of the latest turns, in microseconds."""

    def __init__(self) -> None:
        self._latest: deque[int] = deque()
        self._sorted: list[int] = []

    def __len__(self) -> int:
        return len(self._latest)

    def add(self, us: int) -> None:
        """Add a duration; the oldest of more than 99 goes."""
        if len(self._latest) == LATEST:
            del self._sorted[bisect_left(self._sorted, self._latest.popleft())]
        self._latest.append(us)
        insort(self._sorted, us)

    @property
    def percentile(self) -> int:
        """The 90th percentile, by nearest rank."""
        return self._sorted[-(-9 * len(self._sorted) // 10) - 1]


class StalledActivation(Detector):
    """Raises STALL for an activation that lasts much longer than nine of ten turns before it."""

    pattern = "STALL"
    recorded_as = "dig.detectors.patterns.stalled_activation.StalledActivation"
    kinds = (Start, End, Leave, IncidentRow)

    def __init__(self) -> None:
        """Begin with no turn."""
        self._team = _Durations()
        self._agents: dict[str, _Durations] = {}
        # Those for which STALL can be raised, by agent. Agents in `_new` have the team's limit.
        self._running: dict[str, dict[str, ActivationState]] = {}
        self._new: dict[str, None] = {}
        self._due: dict[str, int] = {}  # of those that have a limit: when STALL is raised
        # The entries whose moment is not that of `_due` are out of date.
        self._queue: list[tuple[int, int, ActivationState]] = []
        self._order = count()

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        """Learn from a turn that ends; raise STALL for those that last too long by that."""
        if graph.run.limits.stall_factor is None:
            return
        if isinstance(record, Start):
            self._begin(graph, graph.activations[record.activation])
        elif isinstance(record, Leave):
            running = self._running.get(base_name(record.agent), {}).values()
            for one in [one for one in running if one.agent == record.agent]:
                self._drop(one)
        elif isinstance(record, End):
            assert graph.ended is not None
            self._drop(graph.ended)
            if graph.ended.is_progress and not record.error:
                self._learn(graph, graph.ended, record.us)
        elif isinstance(record, IncidentRow) and record.what == WAITS:
            waits = record.detail.get("activation") if isinstance(record.detail, dict) else None
            if isinstance(waits, str) and waits in graph.activations:
                self._drop(graph.activations[waits])
        yield from self._raise(graph, record.us)

    def expire(self, graph: InteractionGraph, us: int) -> Iterator[Finding]:
        """Raise STALL for the activations whose limit is reached at `us`."""
        yield from self._raise(graph, us)

    def _begin(self, graph: InteractionGraph, activation: ActivationState) -> None:
        agent = base_name(activation.agent)
        self._running.setdefault(agent, {})[activation.id] = activation
        if not self._knows(agent):
            self._new[agent] = None
        self._set_due(graph, agent)

    def _drop(self, activation: ActivationState) -> None:
        """STALL cannot be raised for an activation any more."""
        agent = base_name(activation.agent)
        running = self._running.get(agent, {})
        running.pop(activation.id, None)
        self._due.pop(activation.id, None)
        if not running:
            self._running.pop(agent, None)
            self._new.pop(agent, None)

    def _learn(self, graph: InteractionGraph, ended: ActivationState, us: int) -> None:
        """Add the duration of a turn, and set the limits anew that depend on it."""
        agent = base_name(ended.agent)
        own = self._agents.setdefault(agent, _Durations())
        own.add(us - ended.us_start)
        self._team.add(us - ended.us_start)
        if len(own) == ENOUGH_OF_AGENT:
            self._new.pop(agent, None)
        for one in {agent: None, **self._new}:
            self._set_due(graph, one)

    def _knows(self, agent: str) -> bool:
        own = self._agents.get(agent)
        return own is not None and len(own) >= ENOUGH_OF_AGENT

    def _limit(self, graph: InteractionGraph, agent: str) -> int | None:
        """The longest time, in microseconds, that a turn of an agent may last."""
        limits = graph.run.limits
        known = self._agents[agent] if self._knows(agent) else self._team
        if limits.stall_factor is None or (known is self._team and len(known) < ENOUGH_OF_TEAM):
            return None
        return max(micros(limits.stall_min_s), round(limits.stall_factor * known.percentile))

    def _set_due(self, graph: InteractionGraph, agent: str) -> None:
        """Set when STALL is raised for the activations in progress of an agent."""
        limit = self._limit(graph, agent)
        if limit is None:
            return
        for activation in self._running.get(agent, {}).values():
            due = activation.us_start + limit
            if due != self._due.get(activation.id):
                self._due[activation.id] = due
                heappush(self._queue, (due, next(self._order), activation))

    def _raise(self, graph: InteractionGraph, us: int) -> Iterator[Finding]:
        """Raise STALL for what is due at a moment or before it, in order of the starts."""
        ready: list[ActivationState] = []
        while self._next() is not None and self._queue[0][0] <= us:
            activation = heappop(self._queue)[2]
            self._drop(activation)
            ready.append(activation)
        self.due = self._next()
        for activation in sorted(ready, key=lambda one: one.n):
            limit = self._limit(graph, base_name(activation.agent)) or 0
            work = sorted((event for event in activation.inputs if event.work), key=by_number)
            evidence = {
                "agent": activation.agent,
                "limit_s": limit / 1_000_000,
                "inputs": [event.id for event in work],
            }
            subject = {"activation": activation.id}
            yield Finding(self.pattern, graph.t, us, subject, evidence, severity="error")

    def _next(self) -> int | None:
        """The moment at which STALL is raised next if nothing happens before."""
        while self._queue:
            due, _, activation = self._queue[0]
            if self._due.get(activation.id) == due:
                return due
            heappop(self._queue)
        return None


def describe(subject: Any, evidence: Any) -> str:
    """STALL in words."""
    held = f", with {names(evidence['inputs'])} in front of it" if evidence["inputs"] else ""
    return (
        f"activation {name(subject['activation'])} of {name(evidence['agent'])} is still at work "
        f"after {evidence['limit_s']:g} s, far longer than other turns{held}"
    )


def explain(graph: InteractionGraph, finding: Finding) -> Explanation:
    """The way to the work that the activation holds."""
    paths = PathFinder(graph, finding)
    text = f"{describe(finding.subject, finding.evidence)}."
    inputs = finding.evidence["inputs"]
    return Explanation(text, paths.to_all(inputs or [finding.subject["activation"]]))


class HealStalledActivation(Healer):
    """Tells the agents that are free what a stalled agent holds."""

    recorded_as = "dig.detectors.patterns.stalled_activation.HealStalledActivation"

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Create a system event for the other agents."""
        stalled, inputs = finding.evidence["agent"], finding.evidence["inputs"]
        others = tuple(agent for agent in graph.agents if agent != stalled)
        if inputs and others:
            limit_s = finding.evidence["limit_s"]
            note = (
                f"{quoted(stalled)} has been at work for longer than {limit_s:g} s and does not "
                f"answer. It holds {listed(inputs)}. Do not wait for it: do its part yourselves if "
                "you can."
            )
            yield Create(note, others)
