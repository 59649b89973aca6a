"""STALL, stalled activation: an agent takes far longer than the team's turns do.

Not in the paper: a fixed limit is wrong for teams that think long and unevenly, so the limit is
learned from the turns of the agent, or of the team, as they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Any

from dig._util.text import name, names
from dig.detectors.finding import Finding
from dig.detectors.interventions import Create, Intervention, Replace, Reroute
from dig.detectors.ladder import LadderStep, Progress, open_work
from dig.detectors.notes import quote, quote_all
from dig.detectors.paths import PathFinder, Proof
from dig.detectors.protocols import Detector, Healer
from dig.detectors.turn_lengths import ENOUGH_OF_TEAM, TurnLengths
from dig.graph.graph import InteractionGraph
from dig.graph.records import WAITING, End, IncidentRow, Leave, Record, Start, base_name, micros
from dig.graph.state import ActivationState, by_number

GIVE_UP = 4
"""The multiple of its limit that an activation lasts when its agent is taken out."""

ENOUGH_OF_AGENT = 5
"""The number of turns of an agent from which on they tell a limit."""


class _Agent:
    """An agent with all instances.

    Attributes:
        lengths: The lengths of its turns.
        running: The activations for which STALL can be raised, in order of their start.
        alarm: The time of its entry in the heap of alarms, if it has one.
    """

    __slots__ = ("alarm", "lengths", "running")

    def __init__(self) -> None:
        self.lengths = TurnLengths()
        self.running: dict[str, ActivationState] = {}
        self.alarm: int | None = None


class StalledActivation(Detector):
    """Raises STALL for an activation much longer than nine of ten earlier turns."""

    pattern = "STALL"
    recorded_as = "dig.detectors.patterns.stalled_activation.StalledActivation"
    kinds = (Start, End, Leave, WAITING)

    def __init__(self) -> None:
        """Begin with no turn."""
        self._team = TurnLengths()
        self._agents: dict[str, _Agent] = {}  # by name; an instance is its agent
        # An alarm goes off as soon as STALL may come due, and is then set to when it will, by what
        # is known. Of these agents, the long ones, it may come earlier by what is learned later.
        self._alarms: list[tuple[int, int, _Agent]] = []
        self._order = count()
        self._long: dict[_Agent, None] = {}
        self._factor: float | None = None
        self._least = self._team_least = 0

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        """Learn from the end of a turn; raise STALL for activations past the new limit."""
        if self._factor is None:
            limits = graph.run.limits
            if limits.stall_factor is None:
                return ()
            self._factor, self._least = limits.stall_factor, micros(limits.stall_min_s)
            self._team_least = max(self._least, micros(limits.activation_limit_s))
        if type(record) is Start:
            activation = graph.running[record.activation]
            agent = self._agent(activation.agent)
            agent.running[activation.id] = activation
            self._set_alarm(agent, activation.us_start + self._least)
        elif type(record) is End:
            agent = self._drop(graph.ended)
            if graph.ended.is_progress and not (record.error or graph.ended.waits):
                us = record.us - graph.ended.us_start
                agent.lengths.add(us)
                self._team.add(us)
                for long in self._long:
                    self._set_alarm(long, self._due_of(long))
        elif type(record) is Leave:
            running = self._agent(record.agent).running.values()
            # An instance that leaves may be one of several, and dropping changes the dictionary.
            for activation in [a for a in running if a.agent == record.agent]:
                self._drop(activation)
        elif type(record) is IncidentRow and record.detail.get("activation") is not None:
            self._drop(graph.running[record.detail["activation"]])
        if self.due is None or self.due > record.us:
            return ()
        return self._raise(graph, record.us)

    def expire(self, graph: InteractionGraph, us: int) -> Iterable[Finding]:
        """Raise STALL for the activations at their limit."""
        return self._raise(graph, us)

    def settle_due(self) -> None:
        """Set `due` to the next alarm, moving early alarms to their true moment."""
        alarms = self._alarms
        while alarms:
            moment, _, agent = alarms[0]
            is_current = agent.alarm == moment
            due = self._due_of(agent) if is_current else None
            if due == moment:
                break
            heappop(alarms)
            if is_current:
                agent.alarm = None
                if agent.running:
                    self._long[agent] = None
                    self._set_alarm(agent, due)
        self.due = alarms[0][0] if alarms else None

    def _agent(self, name: str) -> _Agent:
        agent = self._agents.get(name)
        if agent is None:
            agent = self._agents.setdefault(base_name(name), _Agent())
            self._agents[name] = agent
        return agent

    def _drop(self, activation: ActivationState) -> _Agent:
        """Stop to watch an activation; return the agent."""
        agent = self._agent(activation.agent)
        agent.running.pop(activation.id, None)
        if self._long and not agent.running:
            self._long.pop(agent, None)
        return agent

    def _limit(self, agent: _Agent) -> int | None:
        """The longest time, in microseconds, for a turn of an agent."""
        lengths, least = agent.lengths, self._least
        # An agent's own turns tell more than the team's, as soon as there are enough of them.
        if len(lengths) < ENOUGH_OF_AGENT:  # others may think for a shorter time than this one does
            lengths, least = self._team, self._team_least
            if len(lengths) < ENOUGH_OF_TEAM:
                return None
        assert self._factor is not None
        return max(least, round(self._factor * lengths.percentile))

    def _due_of(self, agent: _Agent) -> int | None:
        """The moment of STALL for an agent's first activation in progress."""
        limit = self._limit(agent)
        if limit is None:
            return None
        for first in agent.running.values():
            return first.us_start + limit
        return None

    def _set_alarm(self, agent: _Agent, due: int | None) -> None:
        """Set an alarm for an agent, unless there is an earlier alarm."""
        if due is not None and (agent.alarm is None or due < agent.alarm):
            agent.alarm = due
            heappush(self._alarms, (due, next(self._order), agent))
            self.due = self._alarms[0][0]

    def _raise(self, graph: InteractionGraph, us: int) -> Iterator[Finding]:
        """Raise STALL for activations due by a moment, in order of the starts."""
        ready: list[ActivationState] = []
        self.settle_due()
        while self.due is not None and self.due <= us:
            activation = next(iter(self._alarms[0][2].running.values()))
            self._drop(activation)
            if activation.id in graph.running:  # else its end was missed, by a failure
                ready.append(activation)
            self.settle_due()
        for activation in sorted(ready, key=lambda activation: activation.n):
            limit = self._limit(self._agent(activation.agent)) or 0
            work = sorted((event for event in activation.inputs if event.work), key=by_number)
            evidence = {
                "agent": activation.agent,
                "limit_s": limit / 1_000_000,
                "inputs": [event.id for event in work],
            }
            subject = {"activation": activation.id}
            yield Finding(self.pattern, graph.t, us, subject, evidence, severity="error")


def describe(subject: Any, evidence: Any) -> str:
    """STALL in words."""
    held = f", with {names(evidence['inputs'])} in front of it" if evidence["inputs"] else ""
    return (
        f"activation {name(subject['activation'])} of {name(evidence['agent'])} is still at work "
        f"after {evidence['limit_s']:g} s, far longer than other turns{held}"
    )


def prove(paths: PathFinder, finding: Finding) -> Proof:
    """The paths to the work of the activation."""
    return "", paths.to_all(finding.evidence["inputs"] or [finding.subject["activation"]])


class HealStalledActivation(Healer):
    """Tells the free agents about the work of a stalled agent."""

    recorded_as = "dig.detectors.patterns.stalled_activation.HealStalledActivation"

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Create a system event for the other agents."""
        stalled, inputs = finding.evidence["agent"], finding.evidence["inputs"]
        free_agents = tuple(agent for agent in graph.agents if agent != stalled)
        if inputs and free_agents:
            limit_s = finding.evidence["limit_s"]
            note = (
                f"{quote(stalled)} has been at work for longer than {limit_s:g} s and does not "
                f"answer. It holds {quote_all(inputs)}. Do not wait for it: do its part "
                "yourselves if you can."
            )
            yield Create(note, free_agents)

    def escalate(
        self, graph: InteractionGraph, finding: Finding, step: LadderStep
    ) -> Iterator[Intervention]:
        """Give the agent's work to another; if no help, take the agent out as well."""
        stalled = finding.evidence["agent"]
        if finding.subject["activation"] not in graph.running:
            return
        held = open_work(graph, graph.agents[stalled].buffer)
        helper = step.helper(graph, (stalled,)) if held else None
        if helper in (None, stalled):
            return
        limit_s = finding.evidence["limit_s"]
        note = (
            f"{quote(stalled)} has been at work for longer than {limit_s:g} s and does not "
            f"answer. This lies in front of it. Do its part yourself, and do not wait for it."
        )
        for event in open_work(graph, graph.agents[stalled].buffer):
            if helper not in event.copies:
                yield Reroute(event.id, note, (helper,), action="reassign", without=(stalled,))
        if step.number > 1:
            reason = f"it has been at work for {GIVE_UP} times {limit_s:g} s, and holds work"
            yield Replace(stalled, reason)

    def progress(self, graph: InteractionGraph, finding: Finding, step: LadderStep) -> Progress:
        """Whether the activation is over, or is not to be given up yet."""
        activation = graph.running.get(finding.subject["activation"])
        if activation is None:
            return "made"
        # Taking an agent out cannot be undone, so it gets a multiple of its limit first.
        gives_up = activation.us_start + GIVE_UP * micros(finding.evidence["limit_s"])
        held = open_work(graph, graph.agents[finding.evidence["agent"]].buffer)
        return "none" if held and step.now >= gives_up else "under way"
