"""Deliveries to future nodes, and the updates of finished nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langgraph._internal._constants import TASKS
from langgraph.graph import END, START
from langgraph.types import Send

from dig.adapters.base import Session, Turn, TurnNotes

from .routes import BRANCH, JOIN, Annotate, NodeRoute, Write, branch, is_handoff, plain
from .stops import StopConditions, Thread

if TYPE_CHECKING:
    from dig.runtime.spending import Account


ON_THREAD = "the graph is called on a thread, where nobody can wait for a gate"
"""The reason for an event that was not held."""


def release_now(session: Session, events: Iterable[str], reason: str = ON_THREAD) -> None:
    """Release held events at once, with an incident: nobody can wait for a gate.

    Args:
        session: The session.
        events: The events, held or not.
        reason: Why nobody can.
    """

    def release() -> None:
        for event in filter(session.is_held, events):
            session.guard.incident("not held", {"event": event, "why": reason})
            session.release(event)

    session.guard.run(release, default=None)


@dataclass
class SharedState:
    """The shared state of the wrapped graph and the graphs within.

    Attributes:
        annotate: Puts notes into the input of a node.
        handoff: Whether a node that wrote this has only handed on its input.
        shows_tools: Whether the tools that nodes call are agents.
        session: The session, once it is attached.
        has_failed: Whether the adapter has failed in any request: the open events of that request
            may concern others, so that no request is healed any more.
        paused: The requests that wait for a person, by thread.
        ending: Activations that are about to end, and the events that they hand on, by session and
            id, each with the graph in which the events may go elsewhere.
    """

    annotate: Annotate
    handoff: Callable[[Mapping[str, Any]], bool] = is_handoff
    shows_tools: bool = False
    session: Session = field(init=False)
    has_failed: bool = False
    paused: dict[Thread, Any] = field(default_factory=dict)
    ending: dict[tuple[Session, str], GraphTeam] = field(default_factory=dict)


@dataclass
class GraphTeam:
    """The structure of the wrapped graph, or of a graph inside.

    Attributes:
        prefix: The beginning of the agents' names; empty in the wrapped graph.
        nodes: The nodes that are agents, with the nodes at the end of their static edges.
        joins: The keys of the nodes that a node waits for, by the channel of the join.
        cached: Nodes whose result LangGraph may take from a cache, without running them.
        deferred: Nodes that LangGraph runs when nothing else is left, like the end.
        retried: Nodes that LangGraph may run again when they fail.
        handlers: The error handler of each node that has one.
        keys: The key of each node in the graph, which may be a member of an enum.
        shared: The state that is shared with the other graphs of the session.
        inner: The nodes that are graphs whose nodes are agents, too.
        deaf: Nodes that read no notes, since they only run tools.
    """

    prefix: str
    nodes: Mapping[str, frozenset[str]]
    joins: Mapping[str, frozenset[str]]
    cached: frozenset[str]
    deferred: frozenset[str]
    retried: frozenset[str]
    handlers: Mapping[str, str]
    keys: Mapping[str, str]
    graph: Any
    shared: SharedState
    inner: Mapping[str, GraphTeam]
    deaf: frozenset[str]

    def __post_init__(self) -> None:
        # Names of channels contain the key as `str` has it, also if it is a member of an enum.
        self._of_channel = {f"{key}": node for node, key in self.keys.items()}
        self.start, self.end = f"{self.prefix}{START}", f"{self.prefix}{END}"

    def graphs(self) -> Iterator[GraphTeam]:
        """The graph itself, and the graphs within."""
        yield self
        for team in self.inner.values():
            yield from team.graphs()

    def split(self, writes: Iterable[Write]) -> tuple[list[NodeRoute], list[Write]]:
        """Part the writes whose channels start nodes, as routes, from the other writes."""
        routes: list[NodeRoute] = []
        others: list[Write] = []
        for channel, value in writes:
            if channel.startswith(BRANCH):
                key = channel.removeprefix(BRANCH)
            elif channel.startswith(JOIN):
                key = channel.rpartition(":")[2]
            elif channel == TASKS and isinstance(value, Send):
                key = plain(value.node)
            else:
                others.append((channel, value))
                continue
            node = self._of_channel.get(key) or f"{self.prefix}{key}"
            routes.append(NodeRoute(node, channel, value))
        return routes, others

    def key(self, node: str) -> str:
        """The key of a node in the graph; of other names the name itself."""
        return self.keys.get(node, node.removeprefix(self.prefix))


@dataclass(eq=False)
class NodeDelivery:
    """The input of a turn of a node.

    Attributes:
        node: The node.
        instance: The instance that is reserved for the turn.
        events: The events, by id.
        packet: The value that `Send` gives the node instead of the state.
        is_sent: Whether the turn comes from a `Send`.
        waits: Whether only joins lead to the turn, so that it may wait for others.
        step: The step in which the first event was sent; the node runs in the next step.
        joined: The keys of the nodes that have written to a join before the node, by channel.
        unread_notes: The notes for earlier turns that were not read there.
    """

    node: str
    instance: str
    events: list[str] = field(default_factory=list)
    packet: Any = None
    is_sent: bool = False
    waits: bool = True
    step: int = 0
    joined: dict[str, set[Any]] = field(default_factory=dict)
    unread_notes: list[TurnNotes] = field(default_factory=list)

    def awaited(self, team: GraphTeam) -> list[str]:
        """List the nodes that the joins before the turn still wait for."""
        keys = (key for name, nodes in self.joined.items() for key in team.joins[name] - nodes)
        return sorted(f"{team.prefix}{plain(key)}" for key in keys)


@dataclass(eq=False)
class NodeWork:
    """An execution of a node.

    Attributes:
        node: The node.
        task: LangGraph's id of the task, the same for each attempt.
        is_sent: Whether a `Send` has started the node.
        input: The input of the node.
        config: The config of the node; its writes pass this object.
        writes: The values that the node has written, without the routes.
        routes: The writes that start nodes.
        delivery: The delivery that started the node, once it is known.
        turn: The turn of the node, once it has begun.
        error: The error that the node raised, if the node may be run again.
        stopped: The call of the graph in which LangGraph has stopped at the node, for a person.
        questions: The ids of the questions to that person.
        refused: The account of a request without budget for the node: `node` is then the entry
            node, for its last turn, or nothing runs.
    """

    node: str
    task: str
    is_sent: bool
    input: Any
    config: Any
    writes: list[Write] = field(default_factory=list)
    routes: list[NodeRoute] = field(default_factory=list)
    delivery: NodeDelivery | None = None
    turn: Turn | None = None
    error: BaseException | None = None
    stopped: StopConditions | None = None
    questions: Sequence[str] = ()
    refused: Account | None = None


@dataclass(eq=False)
class OutgoingUpdate:
    """An update of a finished node: events, and the routes to recipients.

    Attributes:
        routes: The writes that start the recipients, with their delivery.
        payload: The payload of a new event.
        type: The type of a new event.
        events: The events, by id; several, if the node hands on its input.
        before: The nodes that have one of the events already, since it was sent to them as well.
    """

    routes: list[tuple[NodeRoute, NodeDelivery]]
    payload: Any = None
    type: str = "message"
    events: list[str] = field(default_factory=list)
    before: frozenset[str] = frozenset()

    @property
    def instances(self) -> list[str]:
        """The recipients' instances."""
        return [delivery.instance for _, delivery in self.routes]


class PendingDeliveries:
    """The waiting deliveries of a run of a graph; used inside steps of the session.

    Attributes:
        step: The current step of the graph.
    """

    def __init__(self, team: GraphTeam, session: Session) -> None:
        self._team = team
        self._session = session
        self._waiting: list[NodeDelivery] = []
        self.step = 0

    def __iter__(self) -> Iterator[NodeDelivery]:
        """The waiting deliveries, oldest first; `take` may be called meanwhile."""
        return iter(tuple(self._waiting))

    def take(self, delivery: NodeDelivery) -> NodeDelivery:
        """Remove a delivery."""
        self._waiting.remove(delivery)
        return delivery

    def find(self, node: str, input: Any, is_sent: bool) -> NodeDelivery | None:
        """The waiting delivery of a node from an earlier step, if possible with the same input."""
        kind = node, is_sent
        mine = [it for it in self._waiting if (it.node, it.is_sent) == kind and it.step < self.step]
        return next((it for it in mine if it.packet is input), mine[0] if mine else None)

    def new(self, node: str) -> NodeDelivery:
        """Make a delivery for a running node, without waiting in here."""
        return NodeDelivery(node, self._session.instances.reserve(node))

    def address(self, route: NodeRoute) -> NodeDelivery:
        """The delivery at the end of a route; edges to the same node share a turn."""
        if route.node != self._team.end and route.node not in self._team.nodes:
            return NodeDelivery(route.node, route.node)  # the event is lost, as the trace will show
        same = (it for it in self._waiting if it.node == route.node and not it.is_sent)
        later = (delivery for delivery in same if not self._is_due(delivery))
        delivery = None if route.is_send else next(later, None)
        if delivery is None:
            instance = self._session.instances.reserve(route.node)
            delivery = NodeDelivery(route.node, instance, [], route.packet, route.is_send)
            delivery.step = self.step
            self._waiting.append(delivery)
        delivery.waits = delivery.waits and route.is_join
        if route.is_join:
            delivery.joined.setdefault(route.channel, set()).add(route.value)
        return delivery

    def _is_due(self, delivery: NodeDelivery) -> bool:
        """Whether a node begins in the current step, and new events are for a later turn."""
        comes_last = delivery.node == self._team.end or delivery.node in self._team.deferred
        return delivery.step < self.step and not (delivery.waits or comes_last)

    def due(self) -> list[NodeDelivery]:
        """The deliveries of the nodes that come next; a join must be complete."""
        joins = self._team.joins
        return [
            delivery
            for delivery in self._waiting
            if delivery.events and delivery.node != self._team.end
            if not delivery.waits
            or any(nodes == joins[channel] for channel, nodes in delivery.joined.items())
        ]

    def reserve(self, node: str) -> NodeDelivery:
        """Make the delivery of a further run of a node."""
        return self.address(branch(node, self._team.key(node)))

    def holders(self, event: str) -> set[str]:
        """The instances with an event in front, now or after the release by a gate."""
        state = self._session.monitor.graph.event(event)
        return {*state.copies, *state.flight}

    def deliver(self, outgoing: OutgoingUpdate) -> list[NodeRoute]:
        """Put events where they have arrived, maybe elsewhere than sent, because of healing.

        Returns:
            The routes for LangGraph.
        """
        routes: dict[int, NodeRoute] = {}
        for event in outgoing.events:
            arrived = self.holders(event)
            for route, delivery in outgoing.routes:
                if delivery.instance in arrived or delivery not in self._waiting:
                    delivery.events.append(event)
                    routes[id(route)] = route
            for instance in sorted(arrived.difference(outgoing.instances, outgoing.before)):
                route = outgoing.routes[0][0].to(instance, self._team.key(instance))
                self._put(instance, event, route)
                routes[id(route)] = route
        for _, delivery in outgoing.routes:
            if not delivery.events and delivery in self._waiting:
                self._session.release_instance(self.take(delivery).instance)
        return list(routes.values())

    def _put(self, instance: str, event: str, route: NodeRoute) -> None:
        """Give a node an event sent to another node."""
        delivery = next((it for it in self._waiting if it.instance == instance), None)
        if delivery is None:
            reserved = self._session.instances.reserve(instance)
            if reserved != instance:
                self._session.release_instance(reserved)
            delivery = NodeDelivery(instance, instance, [], route.packet, route.is_send)
            self._waiting.append(delivery)
        delivery.waits = False
        delivery.events.append(event)
