"""Siblings: agents with like work, and the agents among them whose work went otherwise.

An activation that gives like work to several agents wants the same kind of return from each. So
where nearly all agree, they say how a return should have been: types, shape, recipient, number.
Nothing is known of the task, and of a payload no more than the shape.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dig._util.ranges import RangeSet
from dig.graph.graph import InteractionGraph
from dig.graph.history import CONSUME, FINAL
from dig.graph.records import FATES
from dig.graph.state import BUFFERED

DISCARD = FATES.index("discard")

LEAST_AGREEING = 2
"""The number of other agents that have to agree before an agent is unlike them."""
MOST = 2 / 3
"""The share of the other agents that has to agree."""
FEWER = 1.5
"""An agent makes too little if all others make so many times as much of each input."""

LONGEST = 30
"""The most activations of a part's course: what lies further on is no longer about this part."""

WORDS = {
    "unlike": "made something else of it than the others of theirs",
    "nothing": "made nothing of it",
    "kept": "has not begun, though the others have",
    "discarded": "threw it away",
    "unread": "what came of it was thrown away",
    "swallowed": "made nothing of what came back",
}
"""The mechanisms of deviations, in words that follow the agent's name and the work."""

Shape = frozenset[str]
"""The shape of a payload: its kind, and the keys of an object."""
NO_SHAPE: Shape = frozenset()
"""The shape of a payload that is not to be read; it is like all others."""


def shape_of(payload: Any) -> Shape:
    """Describe the shape of a payload; a cut or masked payload has none."""
    if type(payload) is dict:
        is_whole = "$" not in [key[:1] for key in payload]
        return frozenset(["{}", *payload]) if is_whole else NO_SHAPE
    return frozenset([type(payload).__name__ if payload else "nothing"])


class Deviation(NamedTuple):
    """A sign against an agent: work unlike the work of the siblings.

    Attributes:
        agent: The agent.
        mechanism: A key of `WORDS`.
        part: The work that was given out, and is to be done again, by number.
        giver: The agent that gave the work, and waits for the return.
        activation: The activation that shows the sign, by number.
        doer: The agent whose work is spoilt: the agent, or another one.
    """

    agent: str
    mechanism: str
    part: int
    giver: str
    activation: int
    doer: str


_Kind = tuple[str, str]
"""The type of an output and the recipient: `giver`, `itself` or `others`."""


class _Step(NamedTuple):
    agent: str
    activation: int
    part: int
    outputs: Mapping[_Kind, Shape]
    rate: float  # outputs for each input


def find_deviations(
    graph: InteractionGraph, shapes: Callable[[str], Shape], sources: RangeSet | None = None,
    *, settled: bool = False,
) -> Iterator[Deviation]:  # fmt: skip
    """Find the deviations in a graph, in order of the hand-outs.

    Args:
        graph: The graph as it stands.
        shapes: Gives the shape of an event's payload.
        sources: The sources of the problems that are looked at; ``None``: all.
        settled: Whether hand-outs behind accepted answers are looked at, too.
    """
    h = graph.history
    for v in range(len(h.agent_of)):
        by_type = defaultdict[int, list[int]](list)
        if h.t_end[v] >= 0 and (settled or not h.settled[v]):
            for n in filter(h.is_part, h.outputs(v)):
                by_type[h.type_of[n]].append(n)
        for parts in by_type.values():
            is_meant = sources is None or not graph.sources_of(parts[0]).isdisjoint(sources)
            if len(parts) >= LEAST_AGREEING and is_meant:
                yield from _HandOut(graph, shapes, h.agent(v), parts).deviations()


class _HandOut:
    """Like parts, given out by an agent at once."""

    def __init__(
        self, graph: InteractionGraph, shapes: Callable[[str], Shape], giver: str,
        parts: Sequence[int],
    ) -> None:  # fmt: skip
        self._graph, self._h, self._shapes = graph, graph.history, shapes
        self._giver, self._parts = giver, parts
        self._steps = defaultdict[Shape, list[_Step]](list)  # by the types of the inputs
        self._returns = defaultdict[int, list[int]](list)  # by part: what came back to the giver
        # By part: the agents that consumed it, each with the activation.
        self._doers = defaultdict[int, dict[str, int]](dict)
        self._open_parts = set[int]()  # those of which something is open
        for part in parts:
            self._follow(part)

    def deviations(self) -> Iterator[Deviation]:
        """The deviations; a part has none once another agent has done the part well."""
        deviations = [*self._unlike(), *self._untouched()]
        for find in (self._unreturned, self._lost_returns):
            deviations += [*find({deviation.part for deviation in deviations})]
        spoilt = {(deviation.part, deviation.doer) for deviation in deviations}
        doers = self._doers
        done = {part for part in doers if any((part, a) not in spoilt for a in doers[part])}
        yield from (deviation for deviation in deviations if deviation.part not in done)

    def _follow(self, part: int) -> None:
        """Follow a part through activations, until something goes back to the giver."""
        h, giver = self._h, self._giver
        # The nearest first: a course that never comes back would take quadratic time.
        queue, seen = deque([part]), set[int]()
        while queue and len(seen) < LONGEST:
            n = queue.popleft()
            if self._graph.is_open(n):
                self._open_parts.add(part)
            for v in h.sightings(n):
                inputs, agent = h.inputs(v), h.agent(v)
                if v in seen or h.t_end[v] < 0 or n not in inputs:
                    continue
                seen.add(v)
                if n == part:
                    self._doers[part][agent] = v
                # Where the giver has something of others before it, parts are put together.
                elif agent == giver and any(h.sender(e) not in (agent, None) for e in inputs):
                    continue
                outputs: dict[_Kind, Shape] = {}
                for y in h.outputs(v):
                    to, shape = self._recipients(y), self._shapes(h.event_ids[y])
                    places = {"itself": to == {agent}, "giver": giver in to}
                    for place in [place for place in places if places[place]] or ["others"]:
                        outputs[self._type(y), place] = shape
                    if agent == giver or giver not in to:
                        queue.append(y)
                    else:
                        self._returns[part].append(y)
                step = _Step(agent, v, part, outputs, h.output_count[v] / len(inputs))
                self._steps[frozenset(map(self._type, inputs))].append(step)

    def _unlike(self) -> Iterator[Deviation]:
        """Steps without an output of nearly all other agents' steps."""
        for alike in self._steps.values():
            by_agent = defaultdict[str, dict[_Kind, Shape]](dict)
            for step in alike:
                by_agent[step.agent] |= step.outputs
            for agent in by_agent if len(by_agent) > LEAST_AGREEING else ():
                peers = [kinds for peer, kinds in by_agent.items() if peer != agent]
                wanted = defaultdict[_Kind, list[Shape]](list)
                for kinds in peers:
                    for kind, shape in kinds.items():
                        wanted[kind].append(shape)
                least = max(LEAST_AGREEING, MOST * len(peers))
                # A word to a third agent is no return: whoever does not chat is not odd.
                agreed = {
                    kind: shapes
                    for kind, shapes in wanted.items()
                    if len(shapes) >= least and kind[1] != "others"
                }
                fewest = min(step.rate for step in alike if step.agent != agent) / FEWER
                for step in alike:
                    is_like = all(_has(step.outputs, *wish) for wish in agreed.items())
                    if step.agent == agent and agreed and not (is_like and step.rate >= fewest):
                        mechanism = "unlike" if step.outputs else "nothing"
                        yield self._deviation(agent, mechanism, step.part, step.activation)

    def _unreturned(self, unlike: set[int]) -> Iterator[Deviation]:
        """Parts without a return like the other agents', and without anything open."""
        senders = defaultdict[str, set[str]](set)
        for events in self._returns.values():
            for n in events:
                senders[self._type(n)].add(self._h.sender(n) or "")
        for part in [part for part in self._doers if part not in self._open_parts | unlike]:
            came = {self._type(n) for n in self._returns.get(part, ())}
            for agent, v in self._doers[part].items():
                wanted = [k for k, by in senders.items() if len(by - {agent}) >= LEAST_AGREEING]
                if agent != self._giver and wanted and came.isdisjoint(wanted):
                    yield self._deviation(agent, "nothing", part, v)

    def _untouched(self) -> Iterator[Deviation]:
        """Parts, kept or thrown away by an agent, where other agents have done parts."""
        h, doers = self._h, self._doers
        if len({agent for by_agent in doers.values() for agent in by_agent}) < LEAST_AGREEING:
            return
        for part in (part for part in self._parts if part not in doers):
            event = self._graph.event(h.event_ids[part])
            for v in h.sightings(part):
                agent, fate = h.agent(v), self._fate(part, v)
                if fate == DISCARD or (event.place & BUFFERED and agent in event.copies):
                    mechanism = "discarded" if fate == DISCARD else "kept"
                    if h.t_end[v] >= 0:
                        yield self._deviation(agent, mechanism, part, v)

    def _lost_returns(self, unlike: set[int]) -> Iterator[Deviation]:
        """Returns, thrown away by the giver, or consumed without an output."""
        h, giver, fates = self._h, self._giver, dict[int, tuple[int, int, int]]()
        for part, events in self._returns.items():
            for n in events if part not in unlike else ():
                for v in h.sightings(n):
                    fate = self._fate(n, v)
                    if h.agent(v) == giver and fate in (CONSUME, DISCARD):
                        fates[part] = max(fates.get(part, (-1, 0, 0)), (v, fate, n))
        thrown = [h.sender(n) or "" for _, fate, n in fates.values() if fate == DISCARD]
        kept_count = len(fates) - len(thrown)
        for part, (v, fate, n) in fates.items():
            doer = h.sender(n) or ""
            if fate == CONSUME:
                if not any(h.is_work(y) or h.flags[y] & FINAL for y in h.outputs(v)):
                    yield Deviation(giver, "swallowed", part, giver, v, doer)
            # A giver that throws away the returns of several agents is at fault, not these agents.
            elif len({*thrown}) >= LEAST_AGREEING and len(thrown) > kept_count:
                yield Deviation(giver, "discarded", part, giver, v, doer)
            elif kept_count >= LEAST_AGREEING:
                yield self._deviation(doer, "unread", part, h.generator[n])

    def _deviation(self, agent: str, mechanism: str, part: int, v: int) -> Deviation:
        return Deviation(agent, mechanism, part, self._giver, v, agent)

    def _fate(self, n: int, v: int) -> int:
        return next(edge.fate for edge in self._h.edges(v) if edge.event == n)

    def _type(self, n: int) -> str:
        return self._h.types.names[self._h.type_of[n]]

    def _recipients(self, n: int) -> set[str]:
        """The recipients of an event, as far as known: all agents with the event at some time."""
        h = self._h
        event = self._graph.live.get(h.event_ids[n])
        to = {h.agent(v) for v in h.sightings(n)}
        return to if event is None else to.union(event.copies, event.flight, event.sent_to)


def _has(outputs: Mapping[_Kind, Shape], kind: _Kind, shapes: Sequence[Shape]) -> bool:
    """Report whether a step has an output of a kind, in the common shape of others."""
    shape = outputs.get(kind)
    readable = [shape for shape in shapes if shape]
    common = frozenset.intersection(*readable) if readable else NO_SHAPE
    return shape is not None and (shape == NO_SHAPE or common <= shape)
