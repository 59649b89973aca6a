"""One request to a graph: which node was started by which, and what comes of it.

The graph's own `__start__` and `__end__` are agents too: the first gets what comes from outside
and starts the entry nodes, the second gets what the last nodes wrote and submits it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from langgraph.errors import GraphBubbleUp, GraphInterrupt, GraphRecursionError
from langgraph.graph import END
from langgraph.types import Command, Interrupt

from dig.adapters.base import (
    RELIEVING,
    AdapterState,
    ToolCalls,
    Turn,
    is_whole,
)
from dig.detectors.interventions import Reroute
from dig.graph.records import Failure

from .messages import GraphTeam, NodeDelivery, NodeWork, OutgoingUpdate, PendingDeliveries
from .routes import NodeRoute, answer_to, new_in, shown, update
from .stops import CALLED_OFF, PASSED_OVER, TIMEOUTS, StopConditions, Thread, keep


class Within(NamedTuple):
    """The place of a call of a graph within another one.

    Attributes:
        request: The request to the outer graph.
        node: Its node that is the inner graph.
        caller: The turn of that node.
    """

    request: GraphRequest
    node: str
    caller: Turn


class GraphRequest(AdapterState):
    """One request to a graph; everything but `step` is used inside steps of the session.

    A team must not be healed for what only the wrapper has got wrong: after a step that failed,
    nothing but the end is told.

    Attributes:
        team: The graph.
        within: The place of its call, if the graph is a node of another one: the turn of that node
            asks in place of the outside, and gets the answer, which never comes back.
        pending: The deliveries that wait for nodes to run.
        works: Nodes at work, and those that failed and may be run again.
        is_asked: Whether something has come from outside.
        is_paused: Whether LangGraph has stopped: a node asks a person, for instance.
        stops: The conditions on which LangGraph stops.
        tools: The tools that nodes call, if they are shown.
        paused: The requests to graphs within this one that wait for a person, by thread.
    """

    reports_after_failure = False

    def __init__(
        self, team: GraphTeam, asked: Any, stops: StopConditions, within: Within | None = None
    ) -> None:
        """Begin; `asked` is what the graph was called with."""
        super().__init__(team.shared.session)
        self.team = team
        self.within = within
        self.pending = PendingDeliveries(team)
        self.works: dict[NodeWork, None] = {}
        self.is_asked = False
        self.is_paused = False
        self.stops = stops
        self.tools = ToolCalls(self.session)
        self.paused: dict[Thread, GraphRequest] = {}
        self._asked = asked
        self._resumed: Turn | None = None  # of `__start__`, if nodes go on without it
        self._cached: list[Turn] = []  # of nodes whose results came from a cache
        self._turn: Turn | None = None  # of `__end__`, while its answer is not accepted
        self._answer = ""  # of that turn
        self._over: list[GraphRequest] = []  # within this one, with nodes that never ran
        self._next: Sequence[str] = ()  # the nodes that run if the answer is not accepted

    def on_failure(self) -> None:
        """Its end is told when the graph has ended."""
        self.team.shared.has_failed = True

    # --- a node begins ---

    def expect(self, work: NodeWork) -> None:
        """LangGraph runs a node: find what it was started by; it begins, if that is not held."""
        if self.stops.runs(work.config):
            self._go_on_from_stop(work)
        self.pending.step = self.stops.step
        again = self._work_before(work)
        if again is not None:  # LangGraph tries again, or a person has answered: the turn goes on
            del self.works[again]
            work.delivery, work.turn = again.delivery, again.turn
            if again.stopped is not None:
                self._resume(work, again.questions)
        else:
            work.delivery = self._delivery_of(work)
        self.works[work] = None
        if not any(map(self.session.is_held, work.delivery.events if work.delivery else ())):
            self.begin(work)

    def begin(self, work: NodeWork) -> None:
        """The node's turn begins, with what has been released by now."""
        if work.delivery is not None and work.turn is None:
            work.turn = self._begin_turn(work.delivery)

    def _begin_turn(self, delivery: NodeDelivery, *, at_once: bool = False) -> Turn:
        turn = self.session.begin(delivery.instance, delivery.events, at_once=at_once)
        turn.notebook.for_others = delivery.node in self.team.deaf
        turn.notebook.inherit(delivery.unread_notes)
        return turn

    def _work_before(self, work: NodeWork) -> NodeWork | None:
        """The work that goes on; somebody who changes the state gives its task another id."""
        same = [one for one in self.works if one.task == work.task]
        like = [
            one for one in self.works
            if one.stopped is not None and (one.node, one.is_sent) == (work.node, work.is_sent)
        ]  # fmt: skip
        return next(iter(same or like), None)

    def _go_on_from_stop(self, work: NodeWork) -> None:
        """Take up what waits for a person in this thread, unless LangGraph runs something else."""
        before = self._paused.pop(self.stops.thread, None) if self.stops.thread else None
        if before is None:
            return
        if not any(one.node == work.node and one.stopped is not None for one in before.works):
            before.abort(PASSED_OVER)
            return
        self.pending, self.works, self.paused = before.pending, before.works, before.paused
        self._over, self.is_asked = before._over, True

    def _resume(self, work: NodeWork, questions: Sequence[str]) -> None:
        """A person has answered; a node that is a graph goes on in there."""
        if work.turn is None or self._waits_inside(work):
            return
        outer = self
        while outer.within is not None:
            outer = outer.within.request
        work.turn.resumes(answer_to(questions, outer._asked))

    @property
    def _paused(self) -> dict[Thread, GraphRequest]:
        return (self.within.request if self.within else self.team.shared).paused

    def _delivery_of(self, work: NodeWork) -> NodeDelivery:
        found = self.pending.find(work.node, work.given, work.is_sent)
        if found is not None:
            return self.pending.take(found)
        return self._from_failed(work) or self._from_cache(work.node) or self._from_outside(work)

    def _from_outside(self, work: NodeWork) -> NodeDelivery:
        """The request from outside has started this node, since no node of the team has.

        If that is not the beginning of the graph, `__start__` gives it to all nodes that go on: it
        is one problem, so that what they make of it belongs together.
        """
        delivery, asked = self.pending.new(work.node), shown(self._asked)
        self.is_asked = True
        if work.node == self.team.start:
            delivery.events.append(self._ask(asked, delivery.instance))
            return delivery
        turn = self._resumed
        if turn is None:
            instance = self.session.reserve_instance(self.team.start)
            event = self._ask(asked, instance)
            turn = self._resumed = self.session.begin(instance, (event,), at_once=True)
        delivery.events.append(turn.send(asked, (delivery.instance,), awaits=False))
        return delivery

    def _ask(self, asked: Any, instance: str) -> str:
        """The event of a question to the graph, from outside or from the node that it is."""
        if self.within is not None:
            return self.within.caller.call(asked, instance)
        return self.session.request(asked, (instance,))

    def _end_resumed(self) -> None:
        """No further node goes on where an earlier request has stopped, or a cache was read."""
        self._end_cached()
        turn, self._resumed = self._resumed, None
        if turn is not None:
            turn.end()

    def _from_failed(self, work: NodeWork) -> NodeDelivery | None:
        """A node that failed has started this one, which takes care of the error and the work."""
        for failed in self.works:
            if self.team.handlers.get(failed.node) == work.node and failed.error is not None:
                delivery, turn = self.pending.new(work.node), failed.turn
                for event in turn.events if turn is not None else ():
                    if turn is not None and turn.holds(event.id):
                        turn.pass_on(event.id, delivery.instance)
                        delivery.events.append(event.id)
                self.give_up(failed, failed.error, delivery)
                return delivery
        return None

    def _from_cache(self, node: str) -> NodeDelivery | None:
        """Nodes whose results came from a cache have started this one, and maybe others yet."""
        cached = [delivery for delivery in self.pending if delivery.node in self.team.cached]
        if cached:
            self._end_cached()
            self._cached = [self.turn_instead(delivery) for delivery in cached]
        if not self._cached:
            return None
        delivery = self.pending.new(node)
        for turn in self._cached:
            shown = turn.send({"$from": "cache"}, (delivery.instance,), awaits=False)
            delivery.events.append(shown)
        return delivery

    def _end_cached(self) -> None:
        """No further node is started by results from a cache, as far as these go."""
        cached, self._cached = self._cached, []
        for turn in cached:
            turn.end()

    def turn_instead(self, delivery: NodeDelivery) -> Turn:
        """The turn of a node that LangGraph will not run for what waits there."""
        instance = self.pending.take(delivery).instance
        return self.session.begin(instance, delivery.events, at_once=True)

    # --- a node ends ---

    def finish(self, work: NodeWork) -> list[NodeRoute]:
        """A node has returned; gives the routes that LangGraph shall go now."""
        del self.works[work]
        turn, written = work.turn, update(work.writes)
        if turn is None:
            return work.routes
        if self._is_handoff(work, turn, written):
            routes = [(route, self.pending.address(route)) for route in work.routes]
            updates = [self._pass_on(turn, routes)]
        else:
            updates, before = self._updates(work, written), len(turn.outputs)
            for outgoing in updates:
                turn.emit(outgoing.payload, outgoing.instances, outgoing.type)
            with self._leaving(turn):
                turn.end()
            for outgoing, event in zip(updates, turn.outputs[before:], strict=True):
                outgoing.events = [event]
        self._hand_on_notes(work, turn, [leg for outgoing in updates for leg in outgoing.routes])
        going = [route for outgoing in updates for route in self.pending.deliver(outgoing)]
        as_written = {id(route): place for place, route in enumerate(work.routes)}
        going.sort(key=lambda route: as_written.get(id(route), len(as_written)))
        return [route for route in going if route.node != self.team.end]

    def _hand_on_notes(
        self, work: NodeWork, turn: Turn, legs: Iterable[tuple[NodeRoute, NodeDelivery]]
    ) -> None:
        """Have the next nodes read the notes that were too late for this one, or that it cannot."""
        if not turn.notebook.unread:
            return
        readers = [delivery for _, delivery in legs if delivery.node in self.team.nodes]
        for delivery in readers:
            delivery.unread_notes.append(turn.notebook)
        if not readers:
            why = "no node comes after this one, which had begun, or reads no notes"
            detail = {"node": work.node, "why": why, "notes": len(turn.notebook.unread)}
            self.session.guard.incident("note not shown", detail)

    def fail(self, work: NodeWork, error: BaseException) -> None:
        """A node has raised, and may be run again; what it was given is not lost."""
        work.error = error
        turn, delivery = work.turn, work.delivery
        if work not in self.works:
            return  # an attempt that timed out, and comes to its end when another goes on already
        if turn is None or delivery is None or work.node not in self.team.retried:
            return
        keeps = all(map(turn.holds, delivery.events))  # not if it has called tools
        if keeps and delivery.instance == work.node:  # an instance would leave, so its turn goes on
            turn.fail(error, retried=True)
            work.turn, delivery.instance = None, self.session.reserve_instance(work.node)

    def give_up(self, work: NodeWork, error: BaseException, delivery: NodeDelivery) -> None:
        """A node has failed for good; the node of the delivery is told."""
        self.works.pop(work, None)
        for thread, inner in tuple(self.paused.items()):
            if inner.within is not None and inner.within.caller is work.turn:
                self.paused.pop(thread).abort(error)
        if work.turn is not None:
            delivery.events.append(work.turn.fail(error, (delivery.instance,)))
        elif work.delivery is not None:  # it has not begun, or its last attempt has ended
            self._withdraw(work.delivery, delivery)

    def pause(self, work: NodeWork, asked: Sequence[Interrupt]) -> None:
        """A node asks a person, and will be run again with the answer.

        Its turn stays open, unless no thread is kept with which somebody can go on. A node that is
        a graph awaits that as before, while the nodes in there wait.
        """
        self.is_paused = True
        if self.stops.thread is None:
            self.works.pop(work, None)
            if work.turn is not None:
                delivery = self.end_delivery()
                question = {"$asks": shown([one.value for one in asked])}
                delivery.events.append(work.turn.end(question, (delivery.instance,)))
            return
        work.stopped, work.given, work.questions = self.stops, None, [one.id for one in asked]
        if work.turn is not None and not self._waits_inside(work):
            work.turn.waits()

    def _waits_inside(self, work: NodeWork) -> bool:
        return any(one.within and one.within.caller is work.turn for one in self.paused.values())

    def _stays_open(self) -> bool:
        """Whether LangGraph has stopped for a person: what waits is open until the thread goes on.

        At a breakpoint the nodes that come next wait.
        """
        thread, end = self.stops.thread, self.end_delivery()
        if thread is None:
            return False
        for delivery in self.pending.due() if self.stops.is_at_breakpoint else ():
            work = NodeWork(delivery.node, "", delivery.is_sent, None, {})
            work.delivery, work.stopped = self.pending.take(delivery), self.stops
            work.turn = self._begin_turn(delivery, at_once=True)
            work.turn.waits()
            self.works[work] = None
        for work in [one for one in self.works if one.stopped not in (None, self.stops)]:
            self.give_up(work, PASSED_OVER, end)
        if not any(work.stopped is self.stops for work in self.works):
            return False
        self.is_paused = True
        keep(self._paused, thread, self)
        return True

    @property
    def _to_end(self) -> NodeRoute:
        return NodeRoute(self.team.end, END, None)

    def end_delivery(self) -> NodeDelivery:
        """The delivery of the agent that submits."""
        return self.pending.address(self._to_end)

    def _is_handoff(self, work: NodeWork, turn: Turn, written: Mapping[str, Any]) -> bool:
        """Whether a node decided which node is next, and nothing else."""
        static = self.team.nodes.get(work.node, frozenset())
        targets = {route.node for route in work.routes}
        return (
            work.node != self.team.start
            and bool(turn.events)
            and all(turn.holds(event.id) for event in turn.events)
            and bool(targets - static)
            and targets <= self.team.nodes.keys()
            and not any(route.is_send for route in work.routes)
            and self.session.guard.call(self.team.shared.handoff, written, default=False)
        )

    def _pass_on(self, turn: Turn, routes: list[tuple[NodeRoute, NodeDelivery]]) -> OutgoingUpdate:
        """A node hands on all that it was given."""
        events = [event.id for event in turn.events]
        before = set().union(*map(self.pending.holders, events)) - {turn.instance}
        outgoing = OutgoingUpdate(routes, events=events, before=frozenset(before))
        with self._leaving(turn):
            turn.forward(outgoing.instances)
        return outgoing

    def _updates(self, work: NodeWork, written: Mapping[str, Any]) -> list[OutgoingUpdate]:
        """The events of a node: one for each route, or one for equal sends if that is declared."""
        updates: list[OutgoingUpdate] = []
        wrote = shown(new_in(written, work.given))
        for route in work.routes:
            payload = shown(route.packet) if route.is_send else wrote
            leg = (route, self.pending.address(route))
            may_be_same = self.session.same_work and route.is_send and is_whole(payload)
            sends = (one for one in updates if may_be_same and one.routes[0][0].is_send)
            outgoing = next((one for one in sends if one.payload == payload), None)
            if outgoing is None:
                updates.append(OutgoingUpdate([leg], payload))
            else:
                outgoing.routes.append(leg)
        end = [(self._to_end, self.end_delivery())]
        if not any(route.node in self.team.nodes for route in work.routes):
            updates.append(OutgoingUpdate(end, wrote))
        elif work.node == self.team.start and self.team.joins:
            # A join that never runs may leave `__end__` nothing else that says what was asked.
            updates.append(OutgoingUpdate(end, None, "notice"))
        return updates

    @contextmanager
    def _leaving(self, turn: Turn) -> Iterator[None]:
        """A turn ends in the block, while its events may be sent elsewhere."""
        leaving = {str(turn.activation), *(event.id for event in turn.events)}
        ending = self.team.shared.ending
        ending.update(dict.fromkeys(leaving, self.team))
        try:
            yield
        finally:
            for one in leaving:
                ending.pop(one, None)

    # --- the end of the request ---

    @property
    def answers(self) -> tuple[str, ...]:
        """The answer, if one was submitted and has not been accepted yet."""
        return (self._answer,) if self._turn and self._answer else ()

    @property
    def last_words(self) -> tuple[str, ...]:
        """The words that `__end__` will put together, a part of which a gate may keep."""
        return tuple(
            event
            for delivery in self.pending
            if delivery.node == self.team.end
            for event in delivery.events
        )

    def submit(self) -> None:
        """The graph has nothing left to run: `__end__` submits what the last nodes wrote."""
        self._end_resumed()
        if not self.is_asked or self._stays_open():
            return
        is_late = any(not delivery.waits for delivery in self._deliveries_of_nodes())
        if is_late or self.stops.is_at_breakpoint:
            self.is_paused = True
        if self.is_paused:
            self._withdraw_to(self.end_delivery())
        self._turn = self.turn_instead(self.end_delivery())
        self._say(self._turn)

    def _say(self, turn: Turn) -> None:
        told = [event.payload for event in turn.events if event.type != "notice"]
        payload = told[0] if len(told) == 1 else told
        if self.within is not None:
            self._answer = turn.reply(payload, self.within.caller.address)
            return
        stays = self.team.shared.has_failed or self.is_paused
        self._next = [] if stays else self._who_goes_on(turn)
        bounces = bool(self._next) and self.stops.allow(self._next)
        self._answer = turn.submit(payload, bounces=bounces)

    def _who_goes_on(self, turn: Turn) -> list[str]:
        """The nodes that run if the answer comes back: those that wait, else those that spoke."""
        said = {str(event.sender).partition("#")[0] for event in turn.events}
        waiting = {delivery.node for delivery in self._deliveries_of_nodes()}
        waiting |= {one.within.node for one in self._over if one.within is not None}
        return sorted(waiting or self.team.nodes.keys() & said)

    def again(self) -> tuple[Command[str], dict[str, Any]] | None:
        """The input of the graph for an answer that came back, with the config for that.

        Returns:
            ``None``, if the answer was accepted.
        """
        turn, self._turn = self._turn, None
        if turn is None:
            return None
        if self._comes_back(turn):
            self._forget_over()  # a node that is a graph runs from its beginning
            return self._send_back(turn, self._next), self.stops.config_of_rest()
        if self.within is None:
            self._forget_who_waits()
        elif self._over or self._deliveries_of_nodes():
            self.within.request._over.append(self)  # open until the outer graph answers: ET
        return None

    def _comes_back(self, turn: Turn) -> bool:
        """Hand over the answer, which is not held any more, unless it comes back."""
        if self.within is None:
            return turn.was_bounced(self._answer)
        self.within.caller.receive(self._answer)
        return False

    def cut_short(self) -> None:
        """The graph ran once more, and the steps that the request had left were not enough."""
        self.is_paused = True
        detail = {"why": "the recursion limit of the request is reached; its answer stands"}
        self.session.guard.incident("bounce failed", detail)

    def _send_back(self, turn: Turn, nodes: Iterable[str]) -> Command[str]:
        """Have nodes run once more, with the answer that came back in front of them."""
        deliveries = [self.pending.reserve(node) for node in nodes]
        turn.forward([delivery.instance for delivery in deliveries], (self._answer,))
        for delivery in deliveries:
            delivery.events.append(self._answer)
            delivery.waits = False
        return Command(goto=[self.team.key(delivery.node) for delivery in deliveries])

    def abort(self, error: BaseException) -> bool:
        """The graph has raised, or its caller does not wait for its end.

        Returns:
            ``True``: its end is told.
        """
        self._end_resumed()
        if isinstance(error, GraphInterrupt) and self._stays_open():
            return True
        if self._turn is not None:  # the task that waited for the answer was cancelled
            self.session.release(*self.answers)
            self._comes_back(self._turn)
        self._forget_over()
        if self._turn is not None or not self.is_asked:
            return True
        end = self.end_delivery()
        how, called_off = self._ending(error), CALLED_OFF if isinstance(error, Exception) else error
        for work in sorted(self.works, key=lambda work: work.error is None):
            self.give_up(work, work.error or called_off, end)
        if isinstance(error, GraphBubbleUp):
            self._end_for_outer()
            return True
        self._withdraw_to(end)
        turn = self.turn_instead(end)
        if self.within is None:
            turn.fail(error, submits=True, how=how)
        else:
            caller = self.within.caller
            caller.receive(turn.abandon(error, caller.address))
        return True

    def _ending(self, error: BaseException) -> Failure:
        """The end of the request: LangGraph's own limits are errors of no node."""
        if isinstance(error, GraphRecursionError):
            return "limit"
        is_of_node = any(isinstance(work.error, Exception) for work in self.works)
        return "timeout" if isinstance(error, TIMEOUTS) and not is_of_node else "error"

    def _end_for_outer(self) -> None:
        """The graph that this one is a node of has to know something, and decides what is next."""
        self.is_paused = True
        self.submit()
        if self._turn is not None:
            self.session.release(*self.answers)
            self._comes_back(self._turn)

    def _deliveries_of_nodes(self) -> list[NodeDelivery]:
        return [delivery for delivery in self.pending if delivery.node != self.team.end]

    def _forget_over(self) -> None:
        """The same of the graphs within this one, whose requests are over already."""
        over, self._over = self._over, []
        for request in over:
            request._forget_who_waits()

    def _forget_who_waits(self) -> None:
        """The request is over: no node will run any more."""
        self._forget_over()
        if self._deliveries_of_nodes():
            end = self.end_delivery()
            self._withdraw_to(end)
            self.turn_instead(end).end()

    def _withdraw_to(self, end: NodeDelivery) -> None:
        """Nodes that never ran are no turns: what they were to be given goes to `__end__`."""
        for delivery in self._deliveries_of_nodes():
            self._withdraw(self.pending.take(delivery), end)

    def _withdraw(self, delivery: NodeDelivery, to: NodeDelivery) -> None:
        self.session.withdraw(delivery.instance, delivery.events, to.instance)
        to.events.extend(delivery.events)


def veto(graphs: Sequence[GraphTeam], wish: Reroute) -> str | None:
    """Why an event cannot be sent elsewhere at this moment, in the graphs of a session."""
    shared = graphs[0].shared
    if shared.has_failed:
        return "the wrapper has failed, and may be wrong about who runs next"
    unknown = [name for name in wish.to if not any(name in team.nodes for team in graphs)]
    if unknown:
        return f"{unknown[0]} is no node"
    if wish.action in RELIEVING:
        return _why_no_relief(graphs, wish)
    history = shared.session.monitor.graph.history
    event = history.event(wish.event)
    maker = None if event is None else history.by(event)
    team = shared.ending.get(wish.event) or shared.ending.get(maker or "")
    if team is None:
        return "LangGraph has planned already who runs next"
    far = [name for name in wish.to if name not in team.nodes]
    return f"{far[0]} is a node of another graph" if far else None


def _why_no_relief(graphs: Sequence[GraphTeam], wish: Reroute) -> str | None:
    """Why a node's function cannot be run in place of another node's."""
    (other,), session = wish.to, graphs[0].shared.session
    one, team = session.relief.find(wish.event), next(t for t in graphs if other in t.nodes)
    if other in team.handlers.values():
        return f"{other} takes errors"
    node = "" if one is None else session.instances.agent_of(one.agent)
    if one is None or node not in team.nodes or not team.takes_the_same(node, other):
        return f"{other} takes another state"
    is_free = session.instances.is_free(other, one.events)
    return None if is_free else f"{other} is at work"
