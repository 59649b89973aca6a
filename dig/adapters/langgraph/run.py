"""One request to a graph: who was started by whom, told to the session, and what comes of it.

The graph's own `__start__` and `__end__` are agents too: the first gets what comes from outside
and starts the entry nodes, the second gets what the last nodes wrote and submits it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.graph import END, START

from dig.adapters import Turn
from dig.adapters.base.patching import Teller
from dig.detectors.interventions import Reroute

from .held import let_go
from .messages import Mail, Mailbox, Parcel, Team
from .node import Work
from .payloads import shown
from .routes import Route, update
from .stops import Stops


class Run(Teller):
    """One request to a wrapped graph; everything but `step` is used inside steps of the session.

    A team must not be healed for what only the wrapper has got wrong: after a step that failed,
    nothing but the end is told.

    Attributes:
        team: The wrapped graph.
        mailbox: What waits for nodes to run.
        works: Nodes at work, and those that failed and may be run again.
        is_asked: Whether something has come from outside.
        is_paused: Whether LangGraph has stopped: a node asks somebody outside, for instance.
        stops: Where LangGraph stops.
    """

    tells_on = False

    def __init__(self, team: Team, asked: Any, stops: Stops) -> None:
        """Begin; `asked` is what the graph was called with."""
        super().__init__(team.session)
        self.team = team
        self.mailbox = Mailbox(team)
        self.works: dict[Work, None] = {}
        self.is_asked = False
        self.is_paused = False
        self.stops = stops
        self._asked = asked

    def lose_track(self) -> None:
        """Its end is told when the graph has ended."""
        self.team.is_lost = True

    # --- a node begins ---

    def expect(self, work: Work) -> None:
        """LangGraph runs a node: find what it was started by; it begins, if that is not held."""
        self.stops.runs(work.config)
        again = next((one for one in self.works if one.task == work.task), None)
        if again is not None:  # LangGraph tries again, and the turn goes on
            del self.works[again]
            work.mail, work.turn = again.mail, again.turn
        else:
            work.mail = self._mail_of(work)
        self.works[work] = None
        if not any(map(self.session.is_held, work.mail.events if work.mail else ())):
            self.begin(work)

    def begin(self, work: Work) -> None:
        """The node's turn begins, with what has been released by now."""
        if work.mail is not None and work.turn is None:
            work.turn = self.session.begin(work.mail.seat, work.mail.events)

    def _mail_of(self, work: Work) -> Mail:
        found = self.mailbox.find(work.node, work.given, work.is_sent)
        if found is not None:
            return self.mailbox.take(found)
        return self._from_failed(work) or self._from_cache(work.node) or self._from_outside(work)

    def _from_outside(self, work: Work) -> Mail:
        """Nobody in the team has started this node, so what came from outside has."""
        mail = self.mailbox.new(work.node)
        mail.events.append(self.session.request(shown(self._asked), (mail.seat,)))
        self.is_asked = True
        return mail

    def _from_failed(self, work: Work) -> Mail | None:
        """A node that failed has started this one, which takes care of the error."""
        for failed in self.works:
            if self.team.handlers.get(failed.node) == work.node and failed.error is not None:
                mail = self.mailbox.new(work.node)
                self.give_up(failed, failed.error, mail)
                return mail
        return None

    def _from_cache(self, node: str) -> Mail | None:
        """A node whose result came from a cache has started this one."""
        cached = [mail for mail in self.mailbox if mail.node in self.team.cached]
        if not cached:
            return None
        mail = self.mailbox.new(node)
        for turn in map(self.turn_instead, cached):
            mail.events.append(turn.end({"$from": "cache"}, (mail.seat,)))
        return mail

    def turn_instead(self, mail: Mail) -> Turn:
        """The turn of a node that LangGraph will not run for what waits there."""
        let_go(self.session, mail.events)
        return self.session.begin(self.mailbox.take(mail).seat, mail.events)

    # --- a node ends ---

    def finish(self, work: Work) -> list[Route]:
        """A node has returned; gives the routes that LangGraph shall go now."""
        del self.works[work]
        turn, written = work.turn, update(work.writes)
        if turn is None:
            return work.routes
        if self._is_handoff(work, turn, written):
            legs = [(route, self.mailbox.address(route)) for route in work.routes]
            parcels = [self._pass_on(turn, legs)]
        else:
            parcels = self._parcels(work, written)
            for parcel in parcels:
                turn.emit(parcel.payload, parcel.seats, parcel.type)
            for parcel, event in zip(parcels, self._end(turn), strict=True):
                parcel.events = [event]
        going = [route for parcel in parcels for route in self.mailbox.deliver(parcel)]
        as_written = {id(route): place for place, route in enumerate(work.routes)}
        going.sort(key=lambda route: as_written.get(id(route), len(as_written)))
        return [route for route in going if route.node != END]

    def fail(self, work: Work, error: BaseException) -> None:
        """A node has raised, and may be run again; what it was given is not lost."""
        work.error = error
        turn, mail = work.turn, work.mail
        if work not in self.works:
            return  # an attempt that timed out, and comes to its end when another goes on already
        if turn is None or mail is None or work.node not in self.team.retried:
            return
        if mail.seat == work.node:  # an instance would leave, so its turn goes on
            turn.fail(error, retried=True)
            work.turn, mail.seat = None, self.session.reserve(work.node)

    def give_up(self, work: Work, error: BaseException, mail: Mail) -> None:
        """A node has failed for good; who gets the mail is told."""
        self.works.pop(work, None)
        if work.mail is not None:
            let_go(self.session, work.mail.events)
            self.begin(work)
        if work.turn is not None:
            mail.events.append(work.turn.fail(error, (mail.seat,)))

    def pause(self, work: Work, asked: list[Any]) -> None:
        """A node asks somebody outside, and will be run again with what that says."""
        self.works.pop(work, None)
        self.is_paused = True
        if work.turn is not None:
            mail = self.end_mail()
            mail.events.append(work.turn.end({"$asks": shown(asked)}, (mail.seat,)))

    def end_mail(self) -> Mail:
        """The mail of who submits."""
        return self.mailbox.address(Route(END, END, None))

    def _is_handoff(self, work: Work, turn: Turn, written: Mapping[str, Any]) -> bool:
        """Whether a node decided who is next, and nothing else."""
        static = self.team.nodes.get(work.node, frozenset())
        targets = {route.node for route in work.routes}
        return (
            work.node != START
            and bool(turn.events)
            and bool(targets - static)
            and targets <= self.team.nodes.keys()
            and not any(route.is_send for route in work.routes)
            and self.session.guard(self.team.handoff, written, otherwise=False)
        )

    def _pass_on(self, turn: Turn, legs: list[tuple[Route, Mail]]) -> Parcel:
        """A node hands on all that it was given."""
        events = [event.id for event in turn.events]
        before = set().union(*map(self.mailbox.holders, events)) - {turn.seat}
        parcel = Parcel(legs, events=events, before=frozenset(before))
        for event in events:
            turn.pass_on(event, parcel.seats)
        self._end(turn)
        return parcel

    def _parcels(self, work: Work, written: Mapping[str, Any]) -> list[Parcel]:
        """What a node sends; the same thing sent twice to one node is one event."""
        parcels: list[Parcel] = []
        for route in work.routes:
            payload = shown(route.packet if route.is_send else written)
            leg = (route, self.mailbox.address(route))
            same = (one for one in parcels if route.is_same_work(one.routes[0][0]))
            parcel = next((one for one in same if one.payload == payload), None)
            if parcel is None:
                parcels.append(Parcel([leg], payload))
            else:
                parcel.routes.append(leg)
        end = [(Route(END, END, None), self.end_mail())]
        if not any(route.node in self.team.nodes for route in work.routes):
            parcels.append(Parcel(end, shown(written)))
        elif work.node == START and self.team.has_joins:
            # A join that never runs may leave `__end__` nothing else that says what was asked.
            parcels.append(Parcel(end, None, "notice"))
        return parcels

    def _end(self, turn: Turn) -> tuple[str, ...]:
        """End a turn, during which its events may be sent elsewhere; gives those it generated."""
        leaving = {str(turn.activation), *(event.id for event in turn.events)}
        self.team.ending |= leaving
        try:
            turn.end()
        finally:
            self.team.ending -= leaving
        return turn.outputs


def veto(team: Team, wish: Reroute) -> str | None:
    """Why an event cannot be sent elsewhere at this moment."""
    if team.is_lost:
        return "the wrapper has failed, and may be wrong about who runs next"
    unknown = [name for name in wish.to if name not in team.nodes]
    if unknown:
        return f"{unknown[0]} is no node"
    history = team.session.monitor.graph.history
    event = history.event(wish.event)
    maker = None if event is None else history.by(event)
    if team.ending.isdisjoint({wish.event, maker}):
        return "LangGraph has planned already who runs next"
    return None
