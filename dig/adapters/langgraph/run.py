"""A request to a graph: which node started each node, and the answer at the end.

The graph's own `__start__` and `__end__` are agents too: the first gets the event from outside and
starts the entry nodes, the second gets the updates of the last nodes and submits them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph.errors import GraphBubbleUp, GraphInterrupt, GraphRecursionError
from langgraph.graph import END
from langgraph.types import Command, Interrupt

from dig.adapters.base import RELIEVING, AdapterState, ToolCalls, Turn, draw_session, is_whole
from dig.detectors.interventions import Reroute
from dig.errors import BudgetExceeded
from dig.graph.records import SYSTEM, Failure
from dig.monitor.messages import Pending

from .messages import GraphTeam, NodeDelivery, NodeWork, OutgoingUpdate, PendingDeliveries
from .routes import NodeRoute, answer_to, as_words, new_in, spoken, update
from .stops import CALLED_OFF, PASSED_OVER, RESUMES, TIMEOUTS, StopConditions, Thread, keep

if TYPE_CHECKING:
    from dig.runtime.spending import Account


class Within(NamedTuple):
    """The place of a call of a graph within another graph.

    Attributes:
        request: The request to the outer graph.
        node: The outer node that is the inner graph.
        caller: The turn of that node.
    """

    request: GraphRequest
    node: str
    caller: Turn


class GraphRequest(AdapterState):
    """A request to a graph; everything but `step` is used inside steps of the session.

    A team must not be healed for a mistake of the wrapper: after a failed step, nothing but the end
    is reported.

    Attributes:
        team: The graph.
        within: The place of the call, if the graph is a node of another graph: then the
            turn of that node sends the request and gets the answer, which healing never sends back.
        pending: The deliveries that wait for nodes to run.
        works: Nodes at work, and failed nodes that may be run again.
        is_asked: Whether an event has come from outside.
        is_paused: Whether LangGraph has stopped: a node asks a person, for instance.
        stops: The conditions on which LangGraph stops.
        tools: The tools that nodes call, if tools are shown.
        paused: The requests to graphs within this one that wait for a person, by thread.
        refused: The account of the request, once it is stopped at a limit of the budget.
    """

    reports_after_failure = False

    def __init__(
        self, team: GraphTeam, input: Any, stops: StopConditions, within: Within | None = None
    ) -> None:
        self.team, self.within = team, within
        before = self._paused.get(stops.thread) if stops.thread else None
        around = within.request if within else before
        super().__init__(draw_session(team.shared.session, around))
        self.pending = PendingDeliveries(team, self.session)
        self.works: dict[NodeWork, None] = {}
        self.is_asked = self.is_paused = False
        self.stops = stops
        self.tools = ToolCalls(self.session)
        self._to_end = NodeRoute(team.end, END, None)
        self.paused: dict[Thread, GraphRequest] = {}
        self.refused: Account | None = None
        self._has_answer = False  # of the last turn
        self._input = input
        self._resumed: Turn | None = None  # of `__start__`, if nodes go on without it
        self._stopped_at: list[Pending] = []  # in front of nodes at which LangGraph had stopped
        self._cached: list[Turn] = []  # of nodes whose results came from a cache
        self._turn: Turn | None = None  # of `__end__`, while its answer is not accepted
        self._answer = ""  # of that turn
        self._ended: list[GraphRequest] = []  # within this one, with nodes that never ran
        self._next: Sequence[str] = ()  # the nodes that run if the answer is not accepted

    def on_failure(self) -> None:
        """Heal no graph of the session any more; the end is reported when the graph has ended."""
        self.team.shared.has_failed = True

    # --- a node begins ---

    def expect(self, work: NodeWork) -> None:
        """Find the delivery for a starting node; the node begins unless an event is held."""
        if self.stops.runs(work.config):
            self._go_on_from_stop(work)
        self.pending.step = self.stops.step
        again = self._earlier_try(work) if self.works else None
        if again is not None:  # LangGraph tries again, or a person has answered: the turn goes on
            del self.works[again]
            work.delivery, work.turn = again.delivery, again.turn
            if again.stopped is not None and work.turn is not None and not self._waits_inside(work):
                outer = self
                while outer.within is not None:
                    outer = outer.within.request
                work.turn.resumes(answer_to(again.questions, outer._input))
        elif (waiting := self.pending.find(work.node, work.input, work.is_sent)) is not None:
            work.delivery = self.pending.take(waiting)
        else:
            delivery = self._from_failed(work) or self._from_cache(work.node)
            work.delivery = delivery or self._from_outside(work)
        self.works[work] = None
        if not any(map(self.session.holds.is_held, work.delivery.events if work.delivery else ())):
            self.begin(work)

    def _earlier_try(self, work: NodeWork) -> NodeWork | None:
        """The open work of the same task; or that of a node at which LangGraph had stopped."""
        same = [other for other in self.works if other.task == work.task]
        # An update of the state by hand gives the task of a stopped node another id.
        stopped = [other for other in self.works if other.stopped is not None]
        like = [it for it in stopped if (it.node, it.is_sent) == (work.node, work.is_sent)]
        return next(iter(same or like), None)

    def begin(self, work: NodeWork) -> None:
        """Begin the turn of a node, with the events released by now."""
        if work.delivery is None or work.turn is not None:
            return
        budget = self.session.budget if work.node in self.team.nodes else None
        account = None if budget is None else budget.refuse(work.delivery.events)
        if account is None:
            work.turn = self._begin_turn(work.delivery)
        else:
            self._refuse(work, account)

    def _refuse(self, work: NodeWork, account: Account) -> None:
        """Run the entry node once in place of a node without budget; later nodes do nothing."""
        delivery, work.delivery, outer = work.delivery, None, self
        while outer.within is not None:
            outer = outer.within.request
        outer.refused = work.refused = account
        assert delivery is not None
        if account.entry not in self.team.nodes or not self.session.hand_back(account):
            self._withdraw(delivery, self.end_delivery())
            return
        work.node, work.delivery = account.entry, self.pending.new(account.entry)
        self._withdraw(delivery, work.delivery)
        work.turn = self._begin_turn(work.delivery, at_once=True)
        work.turn.notebook.texts.append(account.note)

    def exceeded(self) -> BudgetExceeded | None:
        """The exception for the caller, if a stopped request has no answer."""
        is_over = self.within is None and self.refused is not None and not self._has_answer
        return self.refused.exceeded() if is_over and self.refused is not None else None

    def _begin_turn(self, delivery: NodeDelivery, *, at_once: bool = False) -> Turn:
        turn = self.session.begin(delivery.instance, delivery.events, at_once=at_once)
        turn.notebook.for_others = delivery.node in self.team.deaf
        turn.notebook.inherit(delivery.unread_notes)
        return turn

    def _go_on_from_stop(self, work: NodeWork) -> None:
        """Take up the waiting request of the thread, unless LangGraph runs another node."""
        before = self._paused.pop(self.stops.thread, None) if self.stops.thread else None
        if before is None:
            return
        stopped = [other for other in before.works if other.stopped is not None]
        is_sent_on = isinstance(self._input, Command) and self._input.goto
        if not is_sent_on and work.node not in {other.node for other in stopped}:
            before.abort(PASSED_OVER)
            return
        self.pending, self.works, self.paused = before.pending, before.works, before.paused
        self._ended, self.is_asked = before._ended, True
        events = [event for other in stopped if other.turn for event in other.turn.events]
        self._stopped_at = [it for it in events if it.sender != SYSTEM and it.payload is not None]

    @property
    def _paused(self) -> dict[Thread, GraphRequest]:
        return (self.within.request if self.within else self.team.shared).paused

    def _from_outside(self, work: NodeWork) -> NodeDelivery:
        """Make the delivery of a node started by the request from outside, and by no node.

        In the middle of a graph, `__start__` gives the request to all nodes that go on: it is one
        problem, so that their outputs belong together.
        """
        delivery, input = self.pending.new(work.node), as_words(self._input)
        self.is_asked = True
        if work.node == self.team.start:
            delivery.events.append(self._ask(input, delivery.instance))
            return delivery
        turn = self._resumed
        if turn is None:
            instance = self.session.reserve_instance(self.team.start)
            event = self._ask(input, instance)
            turn = self._resumed = self.session.begin(instance, (event,), at_once=True)
        delivery.events.append(turn.send(input, (delivery.instance,), awaits=False))
        return delivery

    def _ask(self, input: Any, instance: str) -> str:
        """Find the event of the request, from outside, from the outer node, or from before a stop.

        What LangGraph stopped at is given to `__start__` too: a resumed request goes on with its
        problem, so that outputs from before and after the stop have a common root.
        """
        for event in self._stopped_at[:1]:
            self.session.redirect(event.id, instance, event.payload)
            return event.id
        if self.within is not None:
            return self.within.caller.call(input, instance)
        return self.session.request(spoken(input), instance)

    def _end_resumed(self) -> None:
        """End the turns behind nodes started in the middle of the graph."""
        self._end_cached()
        turn, self._resumed = self._resumed, None
        if turn is not None:
            turn.end()

    def _from_failed(self, work: NodeWork) -> NodeDelivery | None:
        """Make the delivery of an error handler: the failed node's events and error."""
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
        """Make the delivery of a node started by results from a cache."""
        cached = [delivery for delivery in self.pending if delivery.node in self.team.cached]
        if cached:
            self._end_cached()
            self._cached = [self.turn_instead(delivery) for delivery in cached]
        if not self._cached:
            return None
        delivery = self.pending.new(node)
        for turn in self._cached:
            event = turn.send({"$from": "cache"}, (delivery.instance,), awaits=False)
            delivery.events.append(event)
        return delivery

    def _end_cached(self) -> None:
        cached, self._cached = self._cached, []
        for turn in cached:
            turn.end()

    def turn_instead(self, delivery: NodeDelivery) -> Turn:
        """Begin a turn for a delivery whose node LangGraph will not run."""
        instance = self.pending.take(delivery).instance
        return self.session.begin(instance, delivery.events, at_once=True)

    # --- a node ends ---

    def finish(self, work: NodeWork) -> list[NodeRoute]:
        """End the turn of a finished node; returns the routes for LangGraph."""
        del self.works[work]
        turn, written = work.turn, update(work.writes)
        if turn is None:
            return work.routes
        if work.refused is not None:
            is_handoff = self.session.guard.call(self.team.shared.handoff, written, default=False)
            self._has_answer = not is_handoff
        if self._is_handoff(work, turn, written):
            routes = [(route, self.pending.address(route)) for route in work.routes]
            events = [event.id for event in turn.events]
            holders = set().union(*map(self.pending.holders, events)) - {turn.instance}
            updates = [OutgoingUpdate(routes, events=events, before=frozenset(holders))]
            self._leave(turn, partial(turn.forward, updates[0].instances))
        else:
            updates, before = self._updates(work, written), len(turn.outputs)
            for outgoing in updates:
                turn.emit(outgoing.payload, outgoing.instances, outgoing.type)
            self._leave(turn, turn.end)
            for outgoing, event in zip(updates, turn.outputs[before:], strict=True):
                outgoing.events = [event]
        if turn.notebook.unread:
            self._hand_on_notes(work, turn, updates)
        going = [route for outgoing in updates for route in self.pending.deliver(outgoing)]
        if len(going) > 1:
            # LangGraph applies writes in order, so routes that are not new keep their places.
            places = {id(route): place for place, route in enumerate(work.routes)}
            going.sort(key=lambda route: places.get(id(route), len(places)))
        return [route for route in going if route.node != self.team.end]

    def _hand_on_notes(self, work: NodeWork, turn: Turn, updates: list[OutgoingUpdate]) -> None:
        """Have the next nodes read the unread notes of a node."""
        deliveries = [delivery for outgoing in updates for _, delivery in outgoing.routes]
        readers = [delivery for delivery in deliveries if delivery.node in self.team.nodes]
        for delivery in readers:
            delivery.unread_notes.append(turn.notebook)
        if not readers:
            reason = "no node comes after this one, which had begun, or reads no notes"
            detail = {"node": work.node, "why": reason, "notes": len(turn.notebook.unread)}
            self.session.guard.incident("note not shown", detail)

    def fail(self, work: NodeWork, error: BaseException) -> None:
        """Note the error of a node; for another attempt, the node keeps the events."""
        work.error = error
        turn, delivery = work.turn, work.delivery
        if work not in self.works:
            return  # an attempt that timed out, and ends when another goes on already
        if turn is None or delivery is None or work.node not in self.team.retried:
            return
        keeps = all(map(turn.holds, delivery.events))  # not if it has called tools
        if keeps and delivery.instance == work.node:  # an instance would leave, so its turn goes on
            turn.fail(error, retried=True)
            work.turn, delivery.instance = None, self.session.reserve_instance(work.node)

    def give_up(self, work: NodeWork, error: BaseException, delivery: NodeDelivery) -> None:
        """End the work of a failed node for good, with a notice for a delivery."""
        self.works.pop(work, None)
        for thread, inner in tuple(self.paused.items()):
            if inner.within is not None and inner.within.caller is work.turn:
                self.paused.pop(thread).abort(error)
        if work.turn is not None:
            delivery.events.append(work.turn.fail(error, (delivery.instance,)))
        elif work.delivery is not None:  # the node has not begun, or its last attempt has ended
            self._withdraw(work.delivery, delivery)

    def pause(self, work: NodeWork, questions: Sequence[Interrupt]) -> None:
        """Pause a node until a person has answered; then LangGraph runs the node again.

        The turn stays open, unless no checkpointer keeps a thread to go on with. A node that is a
        graph goes on waiting for its own nodes.
        """
        self.is_paused = True
        if self.stops.thread is None:
            self.works.pop(work, None)
            if work.turn is not None:
                delivery = self.end_delivery()
                payload = {"$asks": as_words([question.value for question in questions])}
                delivery.events.append(work.turn.end(payload, (delivery.instance,)))
            return
        work.stopped, work.input = self.stops, None
        work.questions = [question.id for question in questions]
        if work.turn is not None and not self._waits_inside(work):
            work.turn.waits(as_words([question.value for question in questions]), RESUMES)

    def _waits_inside(self, work: NodeWork) -> bool:
        inner = (request.within for request in self.paused.values())
        return any(within and within.caller is work.turn for within in inner)

    def _stays_open(self) -> bool:
        """Whether LangGraph has stopped for a person: waiting turns stay open with the thread.

        At a breakpoint the next nodes wait.
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
        for work in [work for work in self.works if work.stopped not in (None, self.stops)]:
            self.give_up(work, PASSED_OVER, end)
        if not any(work.stopped is self.stops for work in self.works):
            return False
        self.is_paused = True
        keep(self._paused, thread, self)
        return True

    def end_delivery(self) -> NodeDelivery:
        """The delivery of the agent `__end__`, the submitter of the answer."""
        return self.pending.address(self._to_end)

    def _is_handoff(self, work: NodeWork, turn: Turn, written: Mapping[str, Any]) -> bool:
        """Whether a node has chosen the next nodes, and done nothing else."""
        static = self.team.nodes.get(work.node, frozenset())
        targets = {route.node for route in work.routes}
        return (
            work.node != self.team.start
            and bool(targets - static)
            and targets <= self.team.nodes.keys()
            and not any(route.is_send for route in work.routes)
            and self.session.guard.call(self.team.shared.handoff, written, default=False)
            and bool(turn.events)
            and all(turn.holds(event.id) for event in turn.events)
        )

    def _updates(self, work: NodeWork, written: Mapping[str, Any]) -> list[OutgoingUpdate]:
        """The updates of a node: one event for each route; with `same_work` for equal sends."""
        updates: list[OutgoingUpdate] = []
        wrote = as_words(new_in(written, work.input))
        for route in work.routes:
            payload = as_words(route.packet) if route.is_send else wrote
            leg = (route, self.pending.address(route))
            may_be_same = self.session.same_work and route.is_send and is_whole(payload)
            sends = (update for update in updates if may_be_same and update.routes[0][0].is_send)
            outgoing = next((update for update in sends if update.payload == payload), None)
            if outgoing is None:
                updates.append(OutgoingUpdate([leg], payload))
            else:
                outgoing.routes.append(leg)
        if not any(route.node in self.team.nodes for route in work.routes):
            updates.append(OutgoingUpdate([(self._to_end, self.end_delivery())], wrote))
        elif work.node == self.team.start and self.team.joins:
            # A join that never runs may leave `__end__` nothing else that says what was asked.
            end = (self._to_end, self.end_delivery())
            updates.append(OutgoingUpdate([end], None, "notice"))
        return updates

    def _leave(self, turn: Turn, end: Callable[[], object]) -> None:
        """End a turn; meanwhile, healing may send the events of the turn elsewhere."""
        # Before and after, LangGraph has planned already which nodes run next.
        keys = [(self.session, id) for id in (str(turn.activation), *(e.id for e in turn.events))]
        self.team.shared.ending.update(dict.fromkeys(keys, self.team))
        try:
            end()
        finally:
            for key in keys:
                self.team.shared.ending.pop(key, None)

    # --- the end of the request ---

    @property
    def answers(self) -> tuple[str, ...]:
        """The submitted answer, if not accepted yet."""
        return (self._answer,) if self._turn and self._answer else ()

    @property
    def last_words(self) -> tuple[str, ...]:
        """The events for `__end__`; a gate may keep some of them."""
        ends = (delivery for delivery in self.pending if delivery.node == self.team.end)
        return tuple(event for delivery in ends for event in delivery.events)

    def submit(self) -> None:
        """Submit the updates of the last nodes as the answer of `__end__`."""
        self._end_resumed()
        if not self.is_asked or self._stays_open():
            return
        is_late = any(not delivery.waits for delivery in self._deliveries_of_nodes())
        if is_late or self.stops.is_at_breakpoint:
            self.is_paused = True
        if self.is_paused:
            self._withdraw_to(self.end_delivery())
        turn = self._turn = self.turn_instead(self.end_delivery())
        updates = [event.payload for event in turn.events if event.type != "notice"]
        payload = updates[0] if len(updates) == 1 else updates
        if self.within is not None:
            self._answer = turn.reply(payload, self.within.caller.address)
            return
        # If the answer comes back, the nodes that wait run, else those that spoke last.
        speakers = {str(event.sender).partition("#")[0] for event in turn.events}
        waiting = {delivery.node for delivery in self._deliveries_of_nodes()}
        waiting |= {inner.within.node for inner in self._ended if inner.within is not None}
        stays = self.team.shared.has_failed or self.is_paused or self.refused is not None
        self._next = [] if stays else sorted(waiting or self.team.nodes.keys() & speakers)
        bounces = bool(self._next) and self.stops.allow(self._next)
        self._answer = turn.submit(spoken(payload), bounces=bounces)

    def next_run(self) -> tuple[Command[str], dict[str, Any]] | None:
        """Return the input and config of a further run of the graph; ``None``: no further run."""
        turn, self._turn = self._turn, None
        if turn is None:
            return None
        if self._comes_back(turn):
            self._close_ended()  # a node that is a graph runs from its beginning
            deliveries = [self.pending.reserve(node) for node in self._next]
            turn.forward([delivery.instance for delivery in deliveries], (self._answer,))
            for delivery in deliveries:
                delivery.events.append(self._answer)
                delivery.waits = False
            goto = [self.team.key(delivery.node) for delivery in deliveries]
            return Command(goto=goto), self.stops.config_of_rest()
        if self.within is None:
            self._close()
        elif self._ended or self._deliveries_of_nodes():
            self.within.request._ended.append(self)  # open until the outer graph answers: ET
        return None

    def _comes_back(self, turn: Turn) -> bool:
        """Hand over the released answer; returns whether the answer has come back."""
        if self.within is None:
            return turn.was_bounced(self._answer)
        self.within.caller.receive(self._answer)
        return False

    def cut_short(self) -> None:
        """Let the first answer stand, since the remaining steps of the request were too few."""
        self.is_paused = True
        detail = {"why": "the recursion limit of the request is reached; its answer stands"}
        self.session.guard.incident("bounce failed", detail)

    def abort(self, error: BaseException) -> bool:
        """End a request after an exception, or after the caller has stopped waiting.

        Returns:
            ``True``: the end is recorded.
        """
        self._end_resumed()
        if isinstance(error, GraphInterrupt) and self._stays_open():
            return True
        if self._turn is not None:  # the task that waited for the answer was cancelled
            self.session.release(*self.answers)
            self._comes_back(self._turn)
        self._close_ended()
        if self._turn is not None or not self.is_asked:
            return True
        end = self.end_delivery()
        is_of_node = any(isinstance(work.error, Exception) for work in self.works)
        kind: Failure = "error"
        if isinstance(error, GraphRecursionError | BudgetExceeded):
            kind = "limit"
        elif isinstance(error, TIMEOUTS) and not is_of_node:  # else a node's own error
            kind = "timeout"
        called_off = CALLED_OFF if isinstance(error, Exception) else error
        for work in sorted(self.works, key=lambda work: work.error is None):
            self.give_up(work, work.error or called_off, end)
        if isinstance(error, GraphBubbleUp):  # the outer graph decides about the next nodes
            self.is_paused = True
            self.submit()
            if self._turn is not None:
                self.session.release(*self.answers)
                self._comes_back(self._turn)
            return True
        self._withdraw_to(end)
        turn = self.turn_instead(end)
        if self.within is None:
            turn.fail(error, submits=True, kind=kind)
        else:
            caller = self.within.caller
            caller.receive(turn.abandon(error, caller.address))
        return True

    def _deliveries_of_nodes(self) -> list[NodeDelivery]:
        return [delivery for delivery in self.pending if delivery.node != self.team.end]

    def _close_ended(self) -> None:
        ended, self._ended = self._ended, []
        for request in ended:
            request._close()

    def _close(self) -> None:
        """Close an ended request, and requests within: no node will run any more."""
        self._close_ended()
        if self._deliveries_of_nodes():
            end = self.end_delivery()
            self._withdraw_to(end)
            self.turn_instead(end).end()

    def _withdraw_to(self, end: NodeDelivery) -> None:
        """Give the events of nodes without a turn to `__end__`."""
        for delivery in self._deliveries_of_nodes():
            self._withdraw(self.pending.take(delivery), end)

    def _withdraw(self, it: NodeDelivery, to: NodeDelivery) -> None:
        self.session.withdraw(it.instance, it.events, to.instance, it.awaited(self.team))
        to.events.extend(it.events)


def veto(graphs: Sequence[GraphTeam], wish: Reroute) -> str | None:
    """Return why an event cannot be sent elsewhere at the moment; ``None``: possible."""
    shared = graphs[0].shared
    if shared.has_failed:
        return "the wrapper has failed, and may be wrong about who runs next"
    unknown = [name for name in wish.to if not any(name in team.nodes for team in graphs)]
    if unknown:
        return f"{unknown[0]} is no node"
    if wish.action in RELIEVING:
        return _veto_relief(graphs, wish)
    session, history = shared.session, shared.session.monitor.graph.history
    event = history.event(wish.event)
    maker = None if event is None else history.by(event)
    team = shared.ending.get((session, wish.event)) or shared.ending.get((session, maker or ""))
    if team is None:
        return "LangGraph has planned already who runs next"
    far = [name for name in wish.to if name not in team.nodes]
    return f"{far[0]} is a node of another graph" if far else None


def _veto_relief(graphs: Sequence[GraphTeam], wish: Reroute) -> str | None:
    """Return why a node's function cannot be run in place of another node's."""
    (other,), session = wish.to, graphs[0].shared.session
    worker, team = session.relief.find(wish.event), next(t for t in graphs if other in t.nodes)
    if other in team.handlers.values():
        return f"{other} takes errors"
    node, specs = "", team.graph.builder.nodes
    if worker is not None:
        node = session.instances.agent_of(worker.agent)
    if (
        worker is None
        or node not in team.nodes
        or (specs[team.key(node)].input_schema is not specs[team.key(other)].input_schema)
    ):
        return f"{other} takes another state"
    return None if session.instances.is_free(other, worker.events) else f"{other} is at work"
