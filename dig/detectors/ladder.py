"""Ladders: the common part of healers with several steps.

A healer that has a ladder says in `escalate` what its first, second and third step are, and in
`progress` whether the step before has helped. `dig.monitor.ladders` knows when the next one is due.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dig._util.ranges import NOTHING, union
from dig.graph.graph import InteractionGraph
from dig.graph.history import History
from dig.graph.lineage import ancestors
from dig.graph.state import EventState, Problem, by_number

from .finding import Finding
from .interventions import Intervention, Replace, Reroute
from .notes import describe_events, quote_all
from .siblings import NO_SHAPE, WORDS, Deviation, Shape, find_deviations

Progress = Literal["made", "untold", "under way", "none"]
"""The effect of a step so far. `made`: it has helped, and what is raised again begins a new ladder;
`untold`: if it has not, its detector raises the finding again; `under way`: an agent is at work on
it; `none`: it is time for the next step."""

Trouble = Literal["failed", "kept", "swallowed"]
"""The fault of an agent's latest turn with work: it failed, it consumed none of it, or it
consumed some and generated nothing."""


@dataclass(frozen=True, slots=True)
class LadderStep:
    """A step about a subject.

    Attributes:
        number: The number of the step, counted from 1.
        earlier_helpers: The agents that earlier steps have turned to, in order.
        troubles: By agent: the fault of its latest turn.
        stand_ins: By agent: the agent that earlier steps, about any subject, have put in its
            place, so that work that belongs together comes together.
        patience: The time for a step to help, in microseconds.
        now: The present moment, in microseconds.
        shapes: By event: the shape of its payload.
        renewed: By part or problem: the agents that were asked to do it again, and when.
        suspects: By agent: the signs against it, each as the ends of the hand-out and of the turn.
    """

    number: int = 1
    earlier_helpers: tuple[str, ...] = ()
    troubles: Mapping[str, Trouble] = field(default_factory=dict)
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    patience: int = 0
    now: int = 0
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    renewed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    suspects: dict[str, set[tuple[int, int]]] = field(default_factory=dict)

    def signs(self, graph: InteractionGraph, finding: Finding) -> list[Deviation]:
        """The signs against agents with parts of the problem behind a finding."""
        sources = graph.sources_about(finding.subject)
        signs = [*find_deviations(graph, lambda e: self.shapes.get(e, NO_SHAPE), sources)]
        h = graph.history
        for sign in signs:
            if sign.mechanism != "kept":  # it may merely wait for others
                ends = h.t_end[h.generator[sign.part]], h.t_end[sign.activation]
                self.suspects.setdefault(sign.agent, set()).add(ends)
        return signs

    def take_out(self, graph: InteractionGraph, agents: Iterable[str]) -> Iterator[Replace]:
        """Take out agents with two independent signs: of two hand-outs, and in two turns."""
        for agent in agents:
            signs = self.suspects.get(agent, set())
            hand_outs, turns = {hand_out for hand_out, _ in signs}, {turn for _, turn in signs}
            if min(len(hand_outs), len(turns)) > 1 and agent in graph.agents:
                yield Replace(agent, f"{len(hand_outs)} times its work was unlike the others'")

    def helper(self, graph: InteractionGraph, without: Collection[str] = ()) -> str | None:
        """Choose an agent to turn to: new to the ladder, working, with little to do.

        Args:
            graph: The graph as it stands.
            without: Agents that are chosen only if there are no others.
        """
        stand_ins = {self.stand_ins.get(agent) for agent in without}

        def hangs(name: str) -> bool:
            activation = graph.agents[name].activation
            return activation is not None and self.now - activation.us_start > self.patience

        def rank(name: str) -> tuple[int, ...]:
            state = graph.agents[name]
            load = len(state.buffer) + len(state.incoming)
            is_bad, was_asked = name in self.troubles, name in self.earlier_helpers
            is_new, is_busy = name not in stand_ins, state.activation is not None
            is_suspect = name in self.suspects
            flaws = hangs(name), name in without, is_suspect, was_asked, is_bad, is_new, is_busy
            return *flaws, load

        # False sorts before True: a hanging agent is the last resort, a load the mildest flaw.
        ranked = sorted(graph.agents, key=rank)
        free = [agent for agent in ranked if agent not in without and not hangs(agent)] or ranked
        return free[0] if free else None


def problems_of(graph: InteractionGraph, subject: Mapping[str, str]) -> list[str]:
    """The problems from outside behind a finding."""
    if graph.run.session:
        return graph.unanswered_sources(graph.sources_about(subject) or NOTHING)
    h = graph.history
    return [h.event_ids[n] for n in h.source_events if h.is_work(n)]


def open_work(graph: InteractionGraph, events: Iterable[str]) -> list[EventState]:
    """The open work among some events, in order."""
    states = map(graph.event, filter(graph.knows, events))
    return [event for event in states if graph.is_open(event.n)]


def open_problem(graph: InteractionGraph, finding: Finding) -> Problem | None:
    """The problem, or the whole run, behind a finding; ``None``: answered already."""
    sources = graph.sources_about(finding.subject) or NOTHING
    return next((p for p in graph.problems.touching(sources) if not p.is_over), None)


def open_about(graph: InteractionGraph, finding: Finding) -> list[EventState]:
    """The open work on the problem, or of the run, behind a finding, in order."""
    problem = open_problem(graph, finding)
    return [] if problem is None else sorted(problem.open.values(), key=by_number)


def is_worked_on(graph: InteractionGraph, problem: Problem, step: LadderStep) -> bool:
    """Whether an agent is at work on a problem, or was asked and is at work.

    An agent that has been at work for longer than a step has to help does not count.
    """
    return any(
        step.now - activation.us_start < step.patience
        for activation in graph.running.values()
        if activation.id in problem.running or activation.agent in step.earlier_helpers
    )


def renew(graph: InteractionGraph, finding: Finding, step: LadderStep) -> Iterator[Intervention]:
    """Hand out spoilt parts again, to another agent."""
    signs = [sign for sign in step.signs(graph, finding) if sign.agent != sign.giver]
    suspects = {sign.agent: None for sign in signs}
    helpers, spoilers = dict[str, str | None](), dict[str, None]()
    for sign in {sign.part: sign for sign in signs}.values():
        part = graph.history.event_ids[sign.part]
        without = {*suspects, *step.renewed.get(part, ())}
        helper = helpers.setdefault(sign.agent, step.helper(graph, without))
        if helper is None or helper in without or not graph.knows(part):
            continue
        if helper in graph.event(part).copies:
            continue
        note = f"{quote_all([sign.agent])} had this, and {WORDS[sign.mechanism]}. Do it yourself."
        yield Reroute(part, note, (helper,), action="reassign", without=(sign.agent,))
        spoilers[sign.agent] = None
    yield from step.take_out(graph, spoilers)


def redo(graph: InteractionGraph, finding: Finding, step: LadderStep) -> list[Intervention]:
    """Hand out spoilt parts again; if the giver swallows returns, the whole problem."""
    signs = [sign for sign in step.signs(graph, finding) if sign.agent == sign.giver]
    sources = union([graph.sources_of(sign.part) for sign in signs])
    anew = [name for name in graph.unanswered_sources(sources) if name not in step.renewed]
    again = list(restart(graph, finding, step, problems=anew)) if anew else []
    return [*dict.fromkeys([*again, *renew(graph, finding, step)])]


def agents_behind(history: History, event: int) -> set[str]:
    """The agents behind an event, by number."""
    v = history.generator[event]
    return {history.agent(w) for w in ancestors(history, v)} if v >= 0 else set()


MOST_STEPS = 20
"""The number of steps of its own that an agent may take from a part to the return."""


def part_behind(graph: InteractionGraph, event: str) -> str | None:
    """The part of a problem behind an event, back through the sender's own steps."""
    h = graph.history
    n = h.event_number(event)
    for _ in range(MOST_STEPS):
        v = h.generator[n]
        inputs = [] if v < 0 else [e for e in h.inputs(v) if h.is_work(e)]
        if not inputs:
            return None
        # An agent that works on several parts at once makes one output of each, in order.
        outputs = h.outputs(v)
        if len(inputs) > 1 and len(inputs) != len(outputs):
            return None
        n = inputs[outputs.index(n) if len(inputs) > 1 else 0]
        if h.is_part(n) or h.generator[n] < 0:
            return h.event_ids[n] if h.is_part(n) else None
    return None


def restart(
    graph: InteractionGraph, finding: Finding, step: LadderStep, idle: Sequence[str] = (),
    problems: Sequence[str] = (),
) -> Iterator[Intervention]:  # fmt: skip
    """Give a problem to another agent, from the beginning, with the results so far.

    Agents against which there is a sign are left out; agents that merely wait for others are not.

    Args:
        graph: The graph as it stands.
        finding: The finding.
        step: The step.
        idle: Agents that were given work and did not act on it.
        problems: The problems; none: those that the finding is about.
    """
    open_events = [event.id for event in open_about(graph, finding)]
    # An agent that consumes work and makes nothing of it would swallow the problem again.
    swallowed = [agent for agent, trouble in step.troubles.items() if trouble == "swallowed"]
    step.signs(graph, finding)
    suspects = dict.fromkeys([*idle, *step.suspects, *swallowed])
    without = [agent for agent in suspects if agent in graph.agents]
    h, is_begun = graph.history, False
    for problem in problems or problems_of(graph, finding.subject):
        if not graph.knows(problem):
            continue
        holders = graph.event(problem).copies
        n = h.event_number(problem)
        # An agent that consumed the problem before has had its chance.
        had = [h.agent(v) for v in h.sightings(n) if n in h.inputs(v)]
        helper = step.helper(graph, {*without, *holders, *had})
        if helper is None or helper in holders:
            continue
        # Where an attempt without the suspects has failed, too, one agent needs no other.
        if len(step.renewed.get(problem, ())) % 2:
            without = [*graph.agents]
        excluded = [agent for agent in without if agent != helper]
        left_out = f", but not to {quote_all(excluded)}" if excluded else ""
        note = (
            f"This was given to others, and nobody has answered it. Begin anew: hand it out again"
            f"{left_out}, and submit the answer yourself. What is there already: "
            f"{describe_events(graph, open_events)}."
        )
        yield Reroute(problem, note, (helper,), action="restart", without=tuple(excluded))
        is_begun = True
    yield from step.take_out(graph, suspects if is_begun else ())
