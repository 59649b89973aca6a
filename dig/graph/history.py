"""The history of a run: closed events and activations, in flat arrays.

A run may pass a million events. As objects they would cost the garbage collector a pause that
grows with the run, so closed history is numbers in arrays, a few dozen bytes an event; only what
can still change is an object (`dig.graph.state`). Events and activations are numbered in order of
appearance, each from 0. An activation's delivery edges stand together, in the order of its
inputs, and so do the events it generated.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from dig._util.ranges import RangeSet

from .records import FATES, NOTICE, SYSTEM, Emit

FROM_OUTSIDE, BY_SYSTEM = -1, -2
NO_FATE = -1
CONSUME = FATES.index("consume")

_CHUNK_BITS = 10
_CHUNK = 1 << _CHUNK_BITS
SHARDS = 256

FINAL, NOTICE_TYPE, CONSUMED, ACCEPTED, BOUNCED, EVICTED = 1, 2, 4, 8, 16, 32


class Names:
    """An append-only list of ids.

    Ids are in tuples, because the garbage collector does not look into a tuple of strings: a list
    of a million of them would cost it a pause each time.
    """

    __slots__ = ("_full", "_last")

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._full: list[tuple[str, ...]] = []
        self._last: list[str] = []
        for name in names:
            self.append(name)

    def append(self, name: str) -> None:
        """Add an id."""
        self._last.append(name)
        if len(self._last) == _CHUNK:
            self._full.append(tuple(self._last))
            self._last = []

    def __len__(self) -> int:
        return len(self._full) * _CHUNK + len(self._last)

    def __getitem__(self, n: int) -> str:
        chunk = n >> _CHUNK_BITS
        # A negative number (the last id) has a negative chunk, and is in the last list.
        return (self._full[chunk] if 0 <= chunk < len(self._full) else self._last)[n % _CHUNK]

    def __iter__(self) -> Iterator[str]:
        for chunk in (*self._full, self._last):
            yield from chunk


class Codes(dict[str, int]):
    """The codes of names; a new name that is looked up gets the next code.

    Attributes:
        names: The names, by code.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = [*names]
        super().__init__((name, code) for code, name in enumerate(self.names))

    def __missing__(self, name: str) -> int:
        code = self[name] = len(self.names)
        self.names.append(name)
        return code


Lineage = tuple[RangeSet, RangeSet]
"""The roots and the sources of an event or an activation."""


class DeliveryEdge(NamedTuple):
    """A delivery edge: an event in front of an activation; `fate` indexes `FATES`, or -1."""

    event: int
    fate: int


class History:
    """Append-only arrays of the events, activations and delivery edges of one run.

    A session may evict closed history (`dig.graph.retention`). The remaining rows are then numbered
    anew: a number is valid during one call of the monitor, an id for ever.
    """

    def __init__(self) -> None:
        # id -> 2 * number, + 1 for an activation. In many small dicts: when a dict grows, all of
        # it is moved, and with a million ids in one dict the run would have to wait for that.
        self.forget_ids()
        self.event_ids = Names()
        self.activation_ids = Names()
        self.agents, self.types = Codes(), Codes()
        # Events.
        self.generator = array("i")  # an activation, FROM_OUTSIDE or BY_SYSTEM
        self.t_gen = array("i")
        self.type_of = array("i")
        self.flags = bytearray()
        self.first_solver = array("i")  # the first activation that solved it, or -1
        self.further_solvers: dict[int, list[int]] = {}  # the others, where there are any
        self.root_activations = array("i")  # root number -> activation
        self.source_events = array("i")  # source number -> environment event
        # Activations; the delivery edges of number v are at first_edge[v] : first_edge[v + 1].
        self.agent_of = array("i")
        self.t_start = array("i")
        self.t_end = array("i")  # -1: not ended
        self.first_output = array("i")
        self.output_count = array("i")
        self.root_number = array("i")  # -1: not a root
        self.settled = bytearray()
        self.failed = bytearray()  # ended with an error
        # agent -> its ended activations, in order
        self.ended_by: defaultdict[int, array[int]] = defaultdict(partial(array, "i"))
        self.first_edge = array("i", [0])
        self.edge_event = array("i")
        self.edge_fate = array("b")
        # History that a session has evicted.
        self.cut: dict[int, Lineage] = {}  # of activations without their edges
        self.whole_from = 0  # nothing that came at this logical time or later was evicted
        self.gone_events = 0
        self.gone_activations = 0
        # An index for explanations, made up to where it is asked for: the latest edge of each
        # event, and of each edge the earlier one of the same event.
        self.forget_sightings()

    # --- ids ---

    def is_taken(self, name: str) -> bool:
        """Whether an event or an activation has the id already."""
        return name in self.codes[hash(name) % SHARDS]

    def forget_ids(self) -> None:
        """Forget all ids, because the numbers have changed."""
        self.codes: list[dict[str, int]] = [{} for _ in range(SHARDS)]

    def add_code(self, name: str, code: int) -> None:
        """Note the code of an id: twice the number, and one more for an activation."""
        self.codes[hash(name) % SHARDS][name] = code

    def event(self, name: str) -> int | None:
        """The number of an event, by id; ``None`` for an unknown id."""
        code = self.codes[hash(name) % SHARDS].get(name)
        return None if code is None or code & 1 else code >> 1

    def activation(self, name: str) -> int | None:
        """The number of an activation, by id; ``None`` for an unknown id."""
        code = self.codes[hash(name) % SHARDS].get(name)
        return code >> 1 if code is not None and code & 1 else None

    def event_number(self, name: str) -> int:
        """The number of an event, by id; an unknown id raises `KeyError`."""
        n = self.event(name)
        if n is None:
            raise KeyError(name)
        return n

    def activation_number(self, name: str) -> int:
        """The number of an activation, by id; an unknown id raises `KeyError`."""
        v = self.activation(name)
        if v is None:
            raise KeyError(name)
        return v

    @property
    def rows(self) -> int:
        """The number of events and activations."""
        return len(self.generator) + len(self.agent_of)

    # --- writing ---

    def add_event(self, record: Emit, generator: int) -> int:
        """Append an event; an event from outside becomes a source."""
        n = len(self.generator)
        if generator == FROM_OUTSIDE:
            self.source_events.append(n)
        self.add_code(record.event, n << 1)
        self.event_ids.append(record.event)
        self.generator.append(generator)
        self.t_gen.append(record.t)
        self.type_of.append(self.types[record.type])
        self.first_solver.append(-1)
        self.flags.append(FINAL * record.final | NOTICE_TYPE * (record.type == NOTICE))
        return n

    def add_activation(self, name: str, agent: str, t: int, inputs: list[int]) -> int:
        """Append an activation with input events, the fates still open.

        Args:
            name: Its id.
            agent: The name of its agent.
            t: The logical time of its start.
            inputs: The numbers of its input events.
        """
        v = len(self.agent_of)
        self.add_code(name, v << 1 | 1)
        self.activation_ids.append(name)
        self.agent_of.append(self.agents[agent])
        self.t_start.append(t)
        self.t_end.append(-1)
        self.first_output.append(0)
        self.output_count.append(0)
        self.root_number.append(-1)
        self.settled.append(0)
        self.failed.append(0)
        self.edge_event.extend(inputs)
        self.edge_fate.extend([NO_FATE] * len(inputs))
        self.first_edge.append(len(self.edge_event))
        return v

    def end_activation(self, v: int, t: int, fates: list[int], outputs: int) -> None:
        """Write down an activation's end: a fate for each input, in order.

        Args:
            v: Its number.
            t: The logical time of its end.
            fates: An index of `FATES` for each input.
            outputs: The number of its outputs, which are appended next.
        """
        self.t_end[v] = t
        self.ended_by[self.agent_of[v]].append(v)
        self.first_output[v] = len(self.generator)
        self.output_count[v] = outputs
        self.edge_fate[self.first_edge[v] : self.first_edge[v + 1]] = array("b", fates)

    def solve(self, v: int, events: Iterable[int]) -> bool:
        """Note that activation `v` consumed some events and reduced the problem by an output.

        Returns:
            Whether another activation had solved one of them before.
        """
        again = False
        for n in events:
            if self.first_solver[n] < 0:  # an array for the usual case, a dict for the others
                self.first_solver[n] = v
            else:
                self.further_solvers.setdefault(n, []).append(v)
                again = True
        return again

    def new_root(self, v: int) -> RangeSet:
        """Make activation `v` a root; return the set of `v` alone."""
        self.root_number[v] = len(self.root_activations)
        self.root_activations.append(v)
        return RangeSet.single(self.root_number[v])

    # --- reading ---

    def is_work(self, n: int) -> bool:
        """Whether event `n` is work: no system event, no final event, no notice."""
        return self.generator[n] != BY_SYSTEM and not self.flags[n] & (FINAL | NOTICE_TYPE)

    def is_part(self, n: int) -> bool:
        """Whether event `n` is work that its generator handed out together with other events."""
        v = self.generator[n]
        return v >= 0 and self.output_count[v] > 1 and self.is_work(n)

    def ended_before(self, v: int) -> list[int]:
        """The unsettled activations that the agent of activation `v` ended before `v`."""
        agent = self.agent_of[v]
        ended = [w for w in self.ended_by.get(agent, ()) if not self.settled[w]]
        self.ended_by[agent] = array("i", ended)  # settled ones are never asked for again
        return [w for w in ended if w < v]

    def edges(self, v: int) -> Iterator[DeliveryEdge]:
        """The delivery edges of activation `v` in the order of its inputs."""
        for i in range(self.first_edge[v], self.first_edge[v + 1]):
            yield DeliveryEdge(self.edge_event[i], self.edge_fate[i])

    def inputs(self, v: int) -> list[int]:
        """The events that activation `v` consumed, system events left out."""
        span, generator = slice(self.first_edge[v], self.first_edge[v + 1]), self.generator
        edges = zip(self.edge_event[span], self.edge_fate[span], strict=True)
        return [e for e, fate in edges if fate == CONSUME and generator[e] != BY_SYSTEM]

    def solvers(self, n: int) -> list[int]:
        """The activations that consumed event `n` with an output, in order of end."""
        first = self.first_solver[n]
        return [] if first < 0 else [first, *self.further_solvers.get(n, ())]

    def sightings(self, n: int) -> Sequence[int]:
        """The activations with event `n` as an input, in order of start."""
        latest, earlier = self._latest_edge, self._earlier_edge
        latest.extend([-1] * (len(self.generator) - len(latest)))
        for i in range(len(earlier), len(self.edge_event)):
            event = self.edge_event[i]
            earlier.append(latest[event])
            latest[event] = i
        edges, edge = deque[int](), latest[n]
        while edge >= 0:
            edges.appendleft(edge)
            edge = earlier[edge]
        return [bisect_right(self.first_edge, edge) - 1 for edge in edges]

    def forget_sightings(self) -> None:
        """Drop the index of `sightings`, because the numbers have changed."""
        self._latest_edge: array[int] = array("i")
        self._earlier_edge: array[int] = array("i")

    def outputs(self, v: int) -> range:
        """The events generated by activation `v` up to now."""
        first = self.first_output[v]
        return range(first, min(first + self.output_count[v], len(self.generator)))

    def agent(self, v: int) -> str:
        """The name of the agent of activation `v`."""
        return self.agents.names[self.agent_of[v]]

    def sender(self, n: int) -> str | None:
        """The agent behind event `n`; ``None`` for an event of no agent."""
        generator = self.generator[n]
        return self.agent(generator) if generator >= 0 else None

    def by(self, n: int) -> str | None:
        """The generator of event `n` as in a trace: the field `by` of the event's record."""
        generator = self.generator[n]
        if generator == FROM_OUTSIDE:
            return None
        return SYSTEM if generator == BY_SYSTEM else self.activation_ids[generator]
