"""LIVELOCK, going round: a few agents hand on to each other for long.

Not in the paper: every turn is progress to the graph, so no idle window ever begins.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from dig._util.text import cut, name
from dig.detectors.finding import Finding, Severity
from dig.detectors.interventions import Create, Intervention
from dig.detectors.ladder import LadderStep, redo, restart
from dig.detectors.notes import into_outputs, quote
from dig.detectors.paths import PathFinder, Proof
from dig.detectors.protocols import Detector, Healer
from dig.graph.graph import InteractionGraph
from dig.graph.records import End, Record, base_name
from dig.graph.state import ActivationState, EventState, by_number

from .repeats import GRAVE, EventMemory, is_doubling

MOST_RAISED = 1000
"""The number of findings that are remembered, so that none is raised twice; the latest ones."""


class _Chain(NamedTuple):
    """The chain of an activation, as far as `turns` depends on it.

    Attributes:
        origin: The activation that it began with.
        length: The number of activations in it.
        latest: The agents that took part last, one more than may go round, the latest last; for
            each of them, the number of activations up to and with its latest one.
    """

    origin: str
    length: int
    latest: dict[str, int]

    def extend(self, agent: str, most: int) -> _Chain:
        """The chain with one more activation, of an agent; `most` agents may go round."""
        latest, length = self.latest.copy(), self.length + 1
        latest.pop(agent, None)
        latest[agent] = length
        if len(latest) > most + 1:
            del latest[next(iter(latest))]
        return _Chain(self.origin, length, latest)

    def turns(self, most: int) -> int:
        """The number of latest activations in which at most `most` agents take part."""
        return self.length - (next(iter(self.latest.values())) if len(self.latest) > most else 0)


class Livelock(Detector):
    """Follows for every event the chain of activations that led to it."""

    pattern = "LIVELOCK"
    recorded_as = "dig.detectors.patterns.livelock.Livelock"
    kinds = (End,)

    def __init__(self) -> None:
        """Begin with no chain."""
        self._chains: EventMemory[_Chain] = EventMemory()
        self._raised: OrderedDict[tuple[Any, ...], None] = OrderedDict()

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        """Raise LIVELOCK after `livelock_turns` turns, and at each doubling."""
        limits, ended = graph.run.limits, graph.ended
        limit = limits.livelock_turns
        if limit is None or not (isinstance(record, End) and record.outputs):
            return ()
        most = limits.livelock_agents
        agent = base_name(ended.agent)
        trigger = _trigger(graph, ended, agent)
        before = None if trigger is None else self._chains.get(trigger.id)
        chain = (before or _Chain(ended.id, 0, {})).extend(agent, most)
        for event in record.outputs:
            self._chains.put(graph, event, chain)
        turns = chain.turns(most)
        if turns < limit or not is_doubling(turns, limit):
            return ()
        agents = sorted([*chain.latest][-most:])
        key = (chain.origin, turns, *agents)
        # Several outputs of a turn continue the same chain, and each would raise it again.
        if len(agents) < 2 or key in self._raised:
            return ()
        self._raised[key] = None
        if len(self._raised) > MOST_RAISED:
            self._raised.popitem(last=False)
        severity: Severity = "warning" if turns >= GRAVE * limit else "notice"
        if turns >= GRAVE * GRAVE * limit:
            severity = "error"
        evidence = {"agents": agents, "turns": turns, "origin": chain.origin}
        subject = {"activation": ended.id}
        return [Finding(self.pattern, record.t, record.us, subject, evidence, severity=severity)]

    def forget(self, graph: InteractionGraph) -> None:
        """Forget events unknown to the graph."""
        self._chains.forget(graph)


def _trigger(graph: InteractionGraph, ended: ActivationState, agent: str) -> EventState | None:
    """The input behind an activation: the last of another agent's, else the last."""
    inputs = [event for event in ended.consumed if event.by is not None]
    if len(inputs) < 2:
        return inputs[0] if inputs else None
    inputs.sort(key=by_number)
    from_others = [e for e in inputs if base_name(graph.history.sender(e.n) or "") != agent]
    return from_others[-1] if from_others else inputs[-1]


def describe(subject: Any, evidence: Any, graph: InteractionGraph | None = None) -> str:
    """LIVELOCK in words; in the graph of the run, with the ring."""
    going = _going_text(subject, evidence, graph, name)
    return f"{going}, since activation {name(evidence['origin'])}"


def _going_text(
    subject: Any, evidence: Any, graph: InteractionGraph | None, written: Callable[[str], str]
) -> str:
    from dig.detectors.rings import ring_before  # only words need it

    turns = evidence["turns"]
    ring = None if graph is None else ring_before(graph, subject["activation"], turns)
    if ring is not None and ring.turns == turns:  # else the agents took turns in no one order
        return ring.text(written)
    agents = cut([written(agent) for agent in evidence["agents"]])
    return f"{agents} have handed on to each other {turns} times in a row"


def prove(paths: PathFinder, finding: Finding) -> Proof:
    """The path to the latest turn."""
    return "", (paths.path_to(finding.subject["activation"]),)


class HealLivelock(Healer):
    """Tells the agents about the circle; after long, asks for the answer."""

    recorded_as = "dig.detectors.patterns.livelock.HealLivelock"

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterator[Intervention]:
        """Inject the agents and the number of turns; of an error, ask for the answer as well."""
        evidence = finding.evidence
        going = _going_text(finding.subject, evidence, graph, quote)
        note = f"{going}. Do not hand this back: decide, and submit what there is."
        yield from into_outputs(graph, finding, note)
        present = [agent for agent in graph.agents if base_name(agent) in evidence["agents"]]
        if finding.severity == "error" and present:
            yield Create(f"{note} The answer is asked for now.", tuple(present))

    def escalate(
        self, graph: InteractionGraph, finding: Finding, step: LadderStep
    ) -> Iterator[Intervention]:
        """Tell; after long, begin the problem anew outside of the ring."""
        yield from self.heal(graph, finding)
        if finding.severity != "notice":
            going_round = finding.evidence["agents"]
            yield from redo(graph, finding, step) or restart(graph, finding, step, going_round)
