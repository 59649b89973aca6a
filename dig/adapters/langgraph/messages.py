"""What waits for a node to run, and what a node that has run sends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraph.graph import END

from dig.adapters import Session

from .notes import Annotate
from .routes import BRANCH, Route, is_handoff


@dataclass
class Team:
    """What all requests to a wrapped graph share.

    Attributes:
        nodes: The nodes that are agents, with the nodes that their static edges lead to.
        has_joins: Whether nodes wait for several others.
        cached: Nodes whose result LangGraph may take from a cache, without running them.
        retried: Nodes that LangGraph may run again when they fail.
        handlers: The node that is run when another fails, by that one.
        annotate: Puts notes into what a node is given.
        handoff: Whether a node that wrote this has only handed on what it was given.
        session: The session, from when it is attached.
        is_lost: Whether track was lost of any of them: what that has left lying about may concern
            others, so that none is healed any more.
        ending: Activations that are about to end, and what they hand on: it may go elsewhere.
    """

    nodes: Mapping[str, frozenset[str]]
    has_joins: bool
    cached: frozenset[str]
    retried: frozenset[str]
    handlers: Mapping[str, str]
    annotate: Annotate
    handoff: Callable[[Mapping[str, Any]], bool] = is_handoff
    session: Session = field(init=False)
    is_lost: bool = False
    ending: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Mail:
    """What one turn of a node will be started with.

    Attributes:
        node: The node.
        seat: The seat that is reserved for the turn.
        events: The events, by id.
        packet: What `Send` gives it instead of the state.
        is_sent: Whether the turn comes from a `Send`.
        waits: Whether only joins lead to it, so that it may wait for others.
    """

    node: str
    seat: str
    events: list[str] = field(default_factory=list)
    packet: Any = None
    is_sent: bool = False
    waits: bool = True


@dataclass(eq=False)
class Parcel:
    """What a finished node sends: events, and the routes that they go.

    Attributes:
        routes: The writes that start the recipients, with their mail.
        payload: What a new event carries.
        type: The type of a new event.
        events: The events, by id; several, if the node hands on what it was given.
        before: Who had one of them before, and has it still: it was sent to them as well.
    """

    routes: list[tuple[Route, Mail]]
    payload: Any = None
    type: str = "message"
    events: list[str] = field(default_factory=list)
    before: frozenset[str] = frozenset()

    @property
    def seats(self) -> list[str]:
        """The recipients' seats."""
        return [mail.seat for _, mail in self.routes]


class Mailbox:
    """All that waits in one run of a graph; used inside steps of the session."""

    def __init__(self, team: Team) -> None:
        """Begin empty."""
        self._team = team
        self._session = team.session
        self._mail: list[Mail] = []

    def __iter__(self) -> Iterator[Mail]:
        """What waits, oldest first; it may be taken meanwhile."""
        return iter(tuple(self._mail))

    def take(self, mail: Mail) -> Mail:
        """Something does not wait any more."""
        self._mail.remove(mail)
        return mail

    def find(self, node: str, given: Any, is_sent: bool) -> Mail | None:
        """What waits for a node that is started with something now."""
        mine = [mail for mail in self._mail if mail.node == node and mail.is_sent == is_sent]
        same = [mail for mail in mine if mail.packet is given]
        return next(iter(same or mine), None)

    def new(self, node: str) -> Mail:
        """Mail that nobody waits for: its node is there already."""
        return Mail(node, self._session.reserve(node))

    def address(self, route: Route) -> Mail:
        """The mail of the turn that a route starts; what is sent to the same node is joined."""
        if route.node != END and route.node not in self._team.nodes:
            return Mail(route.node, route.node)  # nobody: the event is lost, and that will show
        mail = None if route.is_send else self.find(route.node, None, False)
        if mail is None:
            seat = self._session.reserve(route.node)
            mail = Mail(route.node, seat, [], route.packet, route.is_send)
            self._mail.append(mail)
        mail.waits = mail.waits and route.is_join
        return mail

    def reserve(self, node: str) -> Mail:
        """The mail of a node that is to run once more."""
        return self.address(Route(node, BRANCH + node, None))

    def holders(self, event: str) -> set[str]:
        """In front of whom an event lies, or will when a gate lets it go."""
        state = self._session.monitor.graph.event(event)
        return {*state.copies, *state.flight}

    def deliver(self, parcel: Parcel) -> list[Route]:
        """Put events where they have arrived, which is not where they were sent if healing says so.

        Returns:
            The routes that LangGraph shall go.
        """
        going: dict[int, Route] = {}
        for event in parcel.events:
            arrived = self.holders(event)
            for route, mail in parcel.routes:
                if mail.seat in arrived or mail not in self._mail:
                    mail.events.append(event)
                    going[id(route)] = route
            for seat in sorted(arrived.difference(parcel.seats, parcel.before)):
                route = parcel.routes[0][0].to(seat)
                self._put(seat, event, route)
                going[id(route)] = route
        for _, mail in parcel.routes:
            if not mail.events and mail in self._mail:
                self._session.unreserve(self.take(mail).seat)
        return list(going.values())

    def _put(self, seat: str, event: str, route: Route) -> None:
        """Give a node something that was sent to another one."""
        mail = next((one for one in self._mail if one.seat == seat), None)
        if mail is None:
            taken = self._session.reserve(seat)
            if taken != seat:
                self._session.unreserve(taken)
            mail = Mail(seat, seat, [], route.packet, route.is_send)
            self._mail.append(mail)
        mail.waits = False
        mail.events.append(event)
