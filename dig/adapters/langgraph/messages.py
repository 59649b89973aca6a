"""Deliveries that wait for a node to run, and the messages of a node that has run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langgraph.graph import END, START

from dig.adapters.base import Session, Turn, TurnNotes

from .routes import Annotate, NodeRoute, Write, branch, is_handoff, route_of
from .stops import StopConditions, Thread


def release_now(session: Session, events: Iterable[str]) -> None:
    """Release events at once, and record it: on a thread no task can wait for a gate."""
    session.guard.run(_release_now, session, events, default=None)


def _release_now(session: Session, events: Iterable[str]) -> None:
    for event in filter(session.is_held, events):
        why = "the graph is called on a thread, where nobody can wait for a gate"
        session.guard.incident("not held", {"event": event, "why": why})
        session.release(event)


@dataclass
class SharedState:
    """The state that the graphs of a session share: of the wrapped one, and those within it.

    Attributes:
        annotate: Puts notes into what a node is given.
        handoff: Whether a node that wrote this has only handed on what it was given.
        shows_tools: Whether the tools that nodes call are agents.
        session: The session, from when it is attached.
        has_failed: Whether the adapter has failed in any request: events that this has left open
            may concern others, so that none is healed any more.
        paused: The requests that wait for a person, by thread.
        ending: Activations that are about to end, and the events that they hand on, with their
            graph: these may go elsewhere there.
    """

    annotate: Annotate
    handoff: Callable[[Mapping[str, Any]], bool] = is_handoff
    shows_tools: bool = False
    session: Session = field(init=False)
    has_failed: bool = False
    paused: dict[Thread, Any] = field(default_factory=dict)
    ending: dict[str, GraphTeam] = field(default_factory=dict)


@dataclass
class GraphTeam:
    """The state that all requests to one graph share: the wrapped one, or one that is a node.

    Attributes:
        prefix: The beginning of its agents' names; empty in the wrapped graph.
        nodes: The nodes that are agents, with the nodes that their static edges lead to.
        joins: The number of nodes that a node waits for, by the channel of the join.
        cached: Nodes whose result LangGraph may take from a cache, without running them.
        deferred: Nodes that LangGraph runs when nothing else is left, as it does the end.
        retried: Nodes that LangGraph may run again when they fail.
        handlers: The node that is run when another fails, by that one.
        keys: The key of each node in the graph, which may be a member of an enum.
        graph: The compiled graph.
        shared: The state that it shares with the other graphs of its session.
        inner: The nodes that are graphs whose nodes are agents, too.
        deaf: Nodes that read no notes, since they only run tools.
    """

    prefix: str
    nodes: Mapping[str, frozenset[str]]
    joins: Mapping[str, int]
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
        """Note how channels, which have the key as text, call the nodes."""
        self._in_channels = {f"{key}": node for node, key in self.keys.items()}
        self.start, self.end = f"{self.prefix}{START}", f"{self.prefix}{END}"

    def graphs(self) -> Iterator[GraphTeam]:
        """This graph, and those within it."""
        yield self
        for team in self.inner.values():
            yield from team.graphs()

    def routes(self, writes: Iterable[Write]) -> list[NodeRoute]:
        """The writes that start nodes, as routes."""
        found = [route for write in writes if (route := route_of(write)) is not None]
        return [replace(one, node=self._named(one.node)) for one in found]

    def _named(self, in_channels: str) -> str:
        return self._in_channels.get(in_channels, f"{self.prefix}{in_channels}")

    def goto(self, routes: Iterable[NodeRoute]) -> list[Any]:
        """Some routes, as a command has them."""
        return [one.value if one.is_send else self.key(one.node) for one in routes]

    def takes_the_same(self, node: str, other: str) -> bool:
        """Whether a node can be given what was meant for another: they have one input schema."""
        specs = self.graph.builder.nodes
        return specs[self.key(node)].input_schema is specs[self.key(other)].input_schema

    def in_place(self, node: str, other: str) -> Any:
        """The work of a node, with the writers, and so the edges, of another one."""
        does = self.graph.nodes[self.key(other)].bound
        return self.graph.nodes[self.key(node)].copy({"bound": does}).node

    def key(self, node: str) -> str:
        """The key of a node in the graph; of any other name that name."""
        return self.keys.get(node, node.removeprefix(self.prefix))


@dataclass(eq=False)
class NodeDelivery:
    """The delivery that one turn of a node will be started with.

    Attributes:
        node: The node.
        instance: The instance that is reserved for the turn.
        events: The events, by id.
        packet: The value that `Send` gives the node instead of the state.
        is_sent: Whether the turn comes from a `Send`.
        waits: Whether only joins lead to it, so that it may wait for others.
        step: The step in which the first of them was sent; the node runs in the next one.
        made: The nodes that joins which lead to it have heard from, by channel.
        unread_notes: The notes for earlier turns that were not read there.
    """

    node: str
    instance: str
    events: list[str] = field(default_factory=list)
    packet: Any = None
    is_sent: bool = False
    waits: bool = True
    step: int = 0
    made: dict[str, set[Any]] = field(default_factory=dict)
    unread_notes: list[TurnNotes] = field(default_factory=list)


@dataclass(eq=False)
class NodeWork:
    """One execution of a node, as its request knows it.

    Attributes:
        node: The node.
        task: LangGraph's id of the task, the same for each attempt.
        is_sent: Whether a `Send` has started it.
        given: The input of the node.
        config: The config that it is given; its writes pass this object.
        writes: The values that the node has written.
        routes: The routes of those writes that start nodes.
        delivery: The delivery that started the node, once that is known.
        turn: Its turn, once that has begun.
        error: The error that the node raised, if it may be run again.
        stopped: The call of the graph in which LangGraph has stopped at it, for a person.
        questions: The ids of what it asks that person.
    """

    node: str
    task: str
    is_sent: bool
    given: Any
    config: Any
    writes: list[Write] = field(default_factory=list)
    routes: list[NodeRoute] = field(default_factory=list)
    delivery: NodeDelivery | None = None
    turn: Turn | None = None
    error: BaseException | None = None
    stopped: StopConditions | None = None
    questions: Sequence[str] = ()


@dataclass(eq=False)
class OutgoingUpdate:
    """The messages of a finished node: events, and the routes that they go.

    Attributes:
        routes: The writes that start the recipients, with their delivery.
        payload: The payload of a new event.
        type: The type of a new event.
        events: The events, by id; several, if the node hands on what it was given.
        before: The nodes that have one of them already: it was sent to them as well.
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
    """All that waits in one run of a graph; used inside steps of the session.

    Attributes:
        step: The step of the graph that goes on.
    """

    def __init__(self, team: GraphTeam) -> None:
        """Begin empty."""
        self._team = team
        self._session = team.shared.session
        self._waiting: list[NodeDelivery] = []
        self.step = 0

    def __iter__(self) -> Iterator[NodeDelivery]:
        """The deliveries that wait, oldest first; they may be taken meanwhile."""
        return iter(tuple(self._waiting))

    def take(self, delivery: NodeDelivery) -> NodeDelivery:
        """Something does not wait any more."""
        self._waiting.remove(delivery)
        return delivery

    def find(self, node: str, given: Any, is_sent: bool) -> NodeDelivery | None:
        """The delivery that waits for a node that is started with something now."""
        mine = [
            delivery
            for delivery in self._waiting
            if delivery.node == node and delivery.is_sent == is_sent
        ]
        same = [delivery for delivery in mine if delivery.packet is given]
        return next(iter(same or mine), None)

    def new(self, node: str) -> NodeDelivery:
        """A delivery for a node that runs already, so that it is not kept in here."""
        return NodeDelivery(node, self._session.reserve_instance(node))

    def address(self, route: NodeRoute) -> NodeDelivery:
        """The delivery of the turn that a route starts; what is sent to the same node is joined."""
        if route.node != self._team.end and route.node not in self._team.nodes:
            return NodeDelivery(route.node, route.node)  # the event is lost, and that will show
        same = (one for one in self._waiting if one.node == route.node and not one.is_sent)
        later = (one for one in same if not self._is_due(one))
        delivery = None if route.is_send else next(later, None)
        if delivery is None:
            instance = self._session.reserve_instance(route.node)
            delivery = NodeDelivery(route.node, instance, [], route.packet, route.is_send)
            delivery.step = self.step
            self._waiting.append(delivery)
        delivery.waits = delivery.waits and route.is_join
        if route.is_join:
            delivery.made.setdefault(route.channel, set()).add(route.value)
        return delivery

    def _is_due(self, delivery: NodeDelivery) -> bool:
        """Whether a node begins in the step that goes on, so that what is sent now is for later."""
        comes_last = delivery.node == self._team.end or delivery.node in self._team.deferred
        return delivery.step < self.step and not (delivery.waits or comes_last)

    def due(self) -> list[NodeDelivery]:
        """What the nodes that come next would be given."""
        return [
            one for one in self._waiting
            if one.events and one.node != self._team.end and (not one.waits or self._is_made(one))
        ]  # fmt: skip

    def _is_made(self, delivery: NodeDelivery) -> bool:
        joins = self._team.joins
        return any(len(made) == joins[channel] for channel, made in delivery.made.items())

    def reserve(self, node: str) -> NodeDelivery:
        """The delivery of a node that is to run once more."""
        return self.address(branch(node, self._team.key(node)))

    def holders(self, event: str) -> set[str]:
        """The instances that an event lies in front of, or will when a gate releases it."""
        state = self._session.monitor.graph.event(event)
        return {*state.copies, *state.flight}

    def deliver(self, outgoing: OutgoingUpdate) -> list[NodeRoute]:
        """Put events where they have arrived, which is not where they were sent if healing says so.

        Returns:
            The routes that LangGraph shall go.
        """
        going: dict[int, NodeRoute] = {}
        for event in outgoing.events:
            arrived = self.holders(event)
            for route, delivery in outgoing.routes:
                if delivery.instance in arrived or delivery not in self._waiting:
                    delivery.events.append(event)
                    going[id(route)] = route
            for instance in sorted(arrived.difference(outgoing.instances, outgoing.before)):
                route = outgoing.routes[0][0].to(instance, self._team.key(instance))
                self._put(instance, event, route)
                going[id(route)] = route
        for _, delivery in outgoing.routes:
            if not delivery.events and delivery in self._waiting:
                self._session.release_instance(self.take(delivery).instance)
        return list(going.values())

    def _put(self, instance: str, event: str, route: NodeRoute) -> None:
        """Give a node something that was sent to another one."""
        delivery = next((one for one in self._waiting if one.instance == instance), None)
        if delivery is None:
            taken = self._session.reserve_instance(instance)
            if taken != instance:
                self._session.release_instance(taken)
            delivery = NodeDelivery(instance, instance, [], route.packet, route.is_send)
            self._waiting.append(delivery)
        delivery.waits = False
        delivery.events.append(event)
