"""The executors of a workflow, and what is between them.

Each method is made in one step of the session, so whatever fails in here stays in here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from agent_framework import Workflow, WorkflowMessage
from agent_framework._workflows._const import INTERNAL_SOURCE_ID

from dig.adapters.base import AdapterState, CalledOffError, Session, Turn, current_turn
from dig.detectors.interventions import Reroute

from .messages import (
    END,
    Edges,
    ExecutorDelivery,
    HandlerRun,
    MessageRoute,
    OutgoingMessage,
    Takers,
    answer,
    chosen,
    events_of,
    foreseen,
    is_join,
    is_notice,
    request_of,
    shown,
)

CALLED_OFF = CalledOffError("the workflow has ended, or is not waited for any more")
"""Reason in a trace for turns that were open when a run failed; it is never raised."""


Handoff = Callable[[Any, Any], bool]
"""Whether an executor that was given the first has only handed it on, by sending the second."""


class WorkflowTeam(AdapterState):
    """The executors of a workflow, and what is between them.

    Attributes:
        is_inner: Whether it is within another workflow.
        end: The agent that stands for the end of the workflow.
        run: The run in progress (`run.WorkflowRun`), if one is.
        moved: The messages that healing has sent to another executor, and that have not reached it
            yet.
    """

    def __init__(
        self, workflow: Workflow, prefix: str, session: Session, handoff: Handoff,
        teams: list[WorkflowTeam],
    ) -> None:  # fmt: skip
        """Begin with nothing on its way.

        Args:
            workflow: The workflow.
            prefix: The beginning of its agents' names; empty in the wrapped workflow.
            session: The session.
            handoff: Whether an executor has only handed on what it was given.
            teams: The workflows of the session, to which it is added.
        """
        super().__init__(session)
        self._prefix = prefix
        self._teams = teams
        teams.append(self)
        self.is_inner = bool(prefix)
        self.end = self.agent(END)
        self.run: Any = None
        self.moved: set[str] = set()
        self._executors = workflow.executors
        self._runner = workflow._runner
        self._edges: dict[str, list[Edges]] = workflow._runner._edge_runner_map
        self._handoff = handoff
        self._works: dict[Turn, HandlerRun] = {}
        # By executor, what its edges have to decide about; the messages of that, by their ids.
        self._undecided: dict[str, HandlerRun] = {}
        self._asked: dict[str, Turn] = {}  # by the id of its request: the turn that waits for it
        self._outgoing: dict[int, OutgoingMessage] = {}
        self._settling: HandlerRun | None = None  # the turn of this one ends just now
        self._routed: dict[tuple[int, Edges, str], tuple[Any, str]] = {}  # ... -> message, event
        self._joining: dict[Edges, list[str]] = {}  # what a join has of its sources
        self._selected: dict[Edges, list[str]] = {}
        self._due: dict[tuple[int, str], ExecutorDelivery] = {}  # by message's id, and executor

    def on_failure(self) -> None:
        """Heal no workflow any more: the events that this one has left open may concern others."""
        for team in self._teams:
            team.has_failed = True

    def agent(self, executor: str) -> str:
        """The name of the agent that an executor is."""
        return f"{self._prefix}{executor}"

    def executor(self, agent: str | None) -> str:
        """The executor that an agent of this workflow is."""
        return str(agent).removeprefix(self._prefix)

    @property
    def has_iterations_left(self) -> bool:
        """Whether the run may go on: the framework counts its steps."""
        return bool(self._runner._iteration < self._runner._max_iterations)

    # --- edges decide ---

    def select(self, edges: Edges, executors: list[str]) -> None:
        """A group's function has selected executors for the message that it is asked about."""
        self._selected[edges] = executors

    def reach(self, edges: Edges, message: WorkflowMessage) -> tuple[str, ...]:
        """A group of edges is given a message; a join keeps it until it has all.

        Returns:
            What is held of it: the join gets it when that is released.
        """
        if not is_join(edges):
            return ()
        takers = foreseen(edges, message) or ()
        found = [self._event(edges, executor, message) for executor in takers]
        events = tuple(filter(None, found))
        self._joining.setdefault(edges, []).extend(events)
        return tuple(filter(self.session.is_held, events))

    def pass_by(self, edges: Edges, message: WorkflowMessage) -> None:
        """A group of edges is done with a message; it may have given it to no executor."""
        self._selected.pop(edges, None)
        outgoing = self._outgoing.get(id(message))
        if outgoing is not None and outgoing.takers.get(edges, ()) is None:
            self._decide(outgoing, edges, ())

    def arrive(
        self, edges: Edges, executor: str, message: WorkflowMessage
    ) -> ExecutorDelivery | None:
        """Edges give a message to an executor; ``None``: that is no part of a run."""
        if self.run is None:
            return None
        if is_join(edges):
            events = tuple(dict.fromkeys(self._joining.pop(edges, ())))
        else:
            event = self._event(edges, executor, message)
            events = (event,) if event else ()
        if request_of(message) in self._asked:  # a turn goes on with it
            self.run.is_asked = True
        elif not events:  # no executor has sent it, so it has come from outside
            events = (self.run.ask(shown(message.data), self.agent(executor)),)
        delivery = self._due[id(message), executor] = ExecutorDelivery(executor, message, events)
        self._bring(delivery)
        delivery.is_held = any(map(self.session.is_held, events))
        return delivery

    def _bring(self, delivery: ExecutorDelivery) -> None:
        """See to it that an executor has what it is given: of equal messages it had one already."""
        agent = self.agent(delivery.executor)
        for event in delivery.events:
            is_there = agent in self.session.recipients_of(event)
            if not is_there and not self.session.is_held(event):
                self.session.redirect(event, (agent,), shown(delivery.message.data))

    def readdress(self, delivery: ExecutorDelivery) -> str:
        """Give the executor of a delivery, which healing may have sent to another one."""
        event = next(iter(delivery.events), "")
        recipients = self.session.recipients_of(event) if event in self.moved else ()
        if recipients:
            self.moved.remove(event)
            del self._due[id(delivery.message), delivery.executor]
            delivery.executor = self.executor(recipients[0])
            self._due[id(delivery.message), delivery.executor] = delivery
        return delivery.executor

    def take(self, message: Any, executor: str) -> ExecutorDelivery | None:
        """The input that an executor takes up now."""
        return self._due.pop((id(message), executor), None)

    def _event(self, edges: Edges, executor: str, message: WorkflowMessage) -> str:
        """The event of a message that edges give to an executor; empty: no executor has sent it."""
        outgoing = self._outgoing.get(id(message))
        if outgoing is not None:
            selected = self._selected.get(edges, [executor])
            self._decide(outgoing, edges, chosen(edges, message, selected))
        routed = self._routed.pop((id(message), edges, executor), None)
        if routed is not None:
            return routed[1]
        if outgoing is None:
            return ""
        if outgoing.event:  # it was decided after its turn was over
            self.session.redirect(outgoing.event, (self.agent(executor),), outgoing.payload)
        return outgoing.event

    def _decide(self, outgoing: OutgoingMessage, edges: Edges, takers: Takers) -> None:
        """A group of edges has decided about a message."""
        work = outgoing.work
        if outgoing.takers.get(edges, ()) is None:
            outgoing.takers[edges] = takers
        is_clear = takers or all(one.is_decided for one in work.outgoing)
        if is_clear and self._undecided.get(work.executor) is work:
            self.settle(work)
        if outgoing.is_decided:
            self._outgoing.pop(id(outgoing.message), None)
            if outgoing.event and not outgoing.routes:  # it is not lost: the team is made so
                self.session.redirect(outgoing.event, self.end)

    def route(self, routes: list[MessageRoute], event: str) -> None:
        """An event is to go these ways."""
        for outgoing, edges, executor in routes:
            outgoing.event = event
            self._routed[id(outgoing.message), edges, executor] = (outgoing.message, event)

    def knows(self, agents: Iterable[str]) -> bool:
        """Whether all these agents are executors of this workflow."""
        return all(one.startswith(self._prefix) and self.executor(one) in self._executors
                   for one in agents)  # fmt: skip

    def veto(self, wish: Reroute) -> str | None:
        """Why a message cannot go to another executor at this moment."""
        if self.has_failed:
            return "the wrapper has failed, and may be wrong about who gets it"
        ways = [(key[1], message) for key, (message, event) in self._routed.items()
                if event == wish.event]  # fmt: skip
        if not ways and self._settling is not None:
            ways = [(leg[0], one.message) for one in self._settling.outgoing for leg in one.routes]
        ways += [
            (None, delivery.message)
            for delivery in self._due.values()
            if wish.event in delivery.events
        ]
        if len(wish.to) != 1 or not self.knows(wish.to):
            return "a message goes to one executor"
        if not ways or any(edges is not None and is_join(edges) for edges, _ in ways):
            return "it has reached its executor, or a join waits for it"
        if len(self.session.monitor.graph.event(wish.event).flight) != 1:
            return "several executors are given it"
        taker = self._executors[self.executor(wish.to[0])]
        if not all(taker.can_handle(message) for _, message in ways):
            return f"{wish.to[0]} cannot take it"
        self.moved.add(wish.event)
        return None

    # --- a run ends ---

    def inner(self, executor: str) -> Edges | None:
        """The edge from an executor to itself, on which the framework brings it what is for it."""
        return next(iter(self._edges.get(INTERNAL_SOURCE_ID(executor), ())), None)

    def send_back(self, event: str, message: WorkflowMessage) -> WorkflowMessage:
        """A message, as it is to be put into the workflow once more, for an answer came back."""
        executor = str(message.target_id)
        self._routed[id(message), self.inner(executor), executor] = (message, event)
        return message

    def forget_joins(self) -> None:
        """Joins and persons may be waited for from run to run; after unwrapping none follows."""
        self.call_off()
        self.withdraw(self.put_aside())
        if left := self.last_words():
            turn = self.session.begin(self.end, left, at_once=True)
            turn.end()

    def last_words(self) -> tuple[str, ...]:
        """The input of the end, a part of which a gate may keep."""
        state = self.session.monitor.graph.agents[self.end]
        return (*state.buffer, *state.incoming)

    def withdraw(self, deliveries: Collection[ExecutorDelivery]) -> list[str]:
        """Have the end take what executors that never ran were given; gives these events."""
        events = [event for delivery in deliveries for event in delivery.events]
        self.session.release(*events)  # all of them first, since some wait for others
        for delivery in deliveries:
            instance = self.session.reserve_instance(self.agent(delivery.executor))
            self.session.withdraw(instance, delivery.events, self.end)
        return events

    def put_aside(self) -> list[ExecutorDelivery]:
        """The sources' messages that joins have, and will not be given in this run."""
        joining, self._joining = self._joining, {}
        return self._in_front(
            ExecutorDelivery(edges._edge_group.edges[0].target_id, None, tuple(events))
            for edges, events in joining.items()
        )

    def put_away(self) -> list[ExecutorDelivery]:
        """All that no executor will take up any more, since the run has failed."""
        due, self._due = self._due, {}
        routed, self._routed = self._routed, {}
        sent = (
            ExecutorDelivery(executor, message, (event,))
            for (_, _, executor), (message, event) in routed.items()
        )
        return [*self._in_front([*due.values(), *sent]), *self.put_aside()]

    def _in_front(self, deliveries: Iterable[ExecutorDelivery]) -> list[ExecutorDelivery]:
        """The messages still in front of their executor: equal ones are one event, used up once."""
        kept: list[ExecutorDelivery] = []
        seen: set[tuple[str, str]] = set()
        for delivery in deliveries:
            mine = [
                event
                for event in dict.fromkeys(delivery.events)
                if (event, delivery.executor) not in seen
                and (
                    self.session.is_held(event)
                    or self.agent(delivery.executor) in self.session.recipients_of(event)
                )
            ]
            seen.update((event, delivery.executor) for event in mine)
            if mine:
                kept.append(ExecutorDelivery(delivery.executor, delivery.message, tuple(mine)))
        return kept

    # --- persons ---

    @property
    def waits(self) -> bool:
        """Whether turns wait for a person."""
        return bool(self._asked)

    def ask(self, request: str) -> None:
        """A handler asks a person: its turn stays open until that has answered."""
        turn = current_turn(self.session)
        if turn is not None and turn in self._works:
            self._asked[request] = turn

    def call_off(self, besides: Collection[str] = ()) -> None:
        """Nobody answers the requests of open turns any more, `besides` these."""
        for request in [request for request in self._asked if request not in besides]:
            turn = self._asked.pop(request)
            if turn not in self._asked.values():
                turn.fail(CALLED_OFF, self.end)

    def _resumed(self, delivery: ExecutorDelivery) -> Turn | None:
        """The turn that goes on with a message: it has asked for it, or waits for an answer."""
        agent, message = self.agent(delivery.executor), delivery.message
        turn = self._asked.pop(request_of(message), None)
        if turn is not None:
            turn.resumes(shown(message.data))
            return turn
        turn = next((one for one in self._asked.values() if one.instance == agent), None)
        if turn is not None:
            turn.resumes()
            turn.wait_for(len(delivery.events))
            for event in delivery.events:
                turn.receive(event)
        return turn

    # --- handlers ---

    def begin(self, delivery: ExecutorDelivery) -> HandlerRun | None:
        """A handler begins."""
        if self.run is None:
            return None
        self.settle(self._undecided.get(delivery.executor))
        agent = self.agent(delivery.executor)
        if not self.session.monitor.graph.agents[agent].incoming:
            self._bring(delivery)  # else it would wait behind what is kept, and come too late
        turn = self._resumed(delivery) or self.session.begin(agent, delivery.events)
        work = self._works[turn] = HandlerRun(delivery, turn)
        self.run.given[delivery.executor] = delivery.message
        return work

    def send(self, message: WorkflowMessage) -> None:
        """A message is put into the workflow; what no handler has sent is not looked at."""
        turn = current_turn(self.session)
        work = self._works.get(turn) if turn is not None else None
        if work is not None and message.source_id == work.executor:
            work.sent.append(message)

    def finish(self, work: HandlerRun, outputs: list[Any]) -> None:
        """A handler has returned, and has put out these things for the outside."""
        del self._works[work.turn]
        if outputs:
            work.said = answer(outputs)
            if self.run is not None:
                self.run.said.append((work.executor, work.said))
        self._send_out(work)

    def take_up(self, messages: list[WorkflowMessage]) -> None:
        """A run begins with these; if not with one for one executor, the workflow gives them out.

        So what a checkpoint had on its way, or what a person has replied to several questions,
        is one problem.
        """
        one = messages[0] if len(messages) == 1 else None
        is_for_one = one is not None and one.source_id == INTERNAL_SOURCE_ID(str(one.target_id))
        is_reply = all(request_of(message) in self._asked for message in messages)
        if self.run is None or is_for_one or is_reply:
            return
        event = self.run.ask([shown(message.data) for message in messages], self.end)
        delivery = ExecutorDelivery(END, None, (event,))
        self._send_out(
            HandlerRun(delivery, self.session.begin(self.end, delivery.events), messages)
        )

    def _send_out(self, work: HandlerRun) -> None:
        """Put the messages of a turn before its edges, which decide now or in the next step."""
        work.outgoing = [self._make_outgoing(work, message) for message in work.sent]
        if all(outgoing.is_decided for outgoing in work.outgoing):
            self.settle(work)
            return
        self._undecided[work.executor] = work
        self._outgoing.update({id(outgoing.message): outgoing for outgoing in work.outgoing})

    def fail(self, work: HandlerRun, error: BaseException) -> None:
        """A handler has raised, or was cancelled."""
        self._works.pop(work.turn, None)
        self._asked = {one: turn for one, turn in self._asked.items() if turn is not work.turn}
        work.turn.fail(error, self.end)

    def fail_edges(self, message: WorkflowMessage, error: BaseException) -> None:
        """Code of a condition has raised: the executor that the edges begin at has failed."""
        outgoing = self._outgoing.get(id(message))
        if outgoing is not None and self._undecided.pop(outgoing.work.executor, None) is not None:
            outgoing.work.turn.fail(error, self.end)

    def give_up(self) -> None:
        """No edge will decide any more and nobody answers, since the run has failed."""
        self.call_off()
        for work in self._undecided.values():
            work.turn.fail(CALLED_OFF, self.end)
        for outgoing in self._outgoing.values():
            if outgoing.event and not outgoing.routes:
                self.session.redirect(outgoing.event, self.end)
        self._undecided.clear()
        self._outgoing.clear()

    def settle_all(self) -> None:
        """Nothing is decided any more in this run."""
        for work in tuple(self._undecided.values()):
            self.settle(work)
        self._outgoing.clear()

    def settle(self, work: HandlerRun | None) -> None:
        """End a turn with all that it has sent, as far as edges have decided about that."""
        if work is None:
            return
        if self._undecided.get(work.executor) is work:
            del self._undecided[work.executor]
        turn, handed_on = work.turn, self._handed_on(work)
        rest = [outgoing for outgoing in work.outgoing if outgoing is not handed_on]
        sent = events_of(rest, same_work=self.session.same_work)
        waiting = [
            one
            for one in work.outgoing
            if one.is_undeliverable or not (one.is_decided or one.routes)
        ]
        for one in sent:
            turn.emit(one.payload, map(self.agent, one.recipients), one.type)
        for outgoing in waiting:
            turn.emit(outgoing.payload, (), outgoing.type)
        asks = turn in self._asked.values()
        if work.is_last and not (asks and work.said is None):
            self._say_last_words(work)
        if handed_on is not None:
            self._hand_on(work, handed_on)
        made = self._end(work, asks=asks)
        for one, event in zip(sent, made, strict=False):
            self.route(one.routes, event)
        for outgoing, event in zip(waiting, made[len(sent) :], strict=False):
            outgoing.event = event

    def _end(self, work: HandlerRun, *, asks: bool) -> tuple[str, ...]:
        """End a turn, during which what it sends may go elsewhere; gives what it generated.

        If it asks a person, the turn goes on when that has answered.
        """
        before, self._settling = len(work.turn.outputs), work
        try:
            if not asks:
                work.turn.end()
            else:
                if work.outgoing or work.said is not None:
                    work.turn.wait_for(0)
                work.turn.waits()
        finally:
            self._settling = None
        return work.turn.outputs[before:]

    def _make_outgoing(self, work: HandlerRun, message: WorkflowMessage) -> OutgoingMessage:
        takers = {one: foreseen(one, message) for one in self._edges.get(message.source_id, ())}
        kind = "notice" if is_notice(message.data) else "message"
        return OutgoingMessage(work, message, shown(message.data), kind, takers)

    def _say_last_words(self, work: HandlerRun) -> None:
        """Add the messages that no executor is given to the answer."""
        if work.said is not None:
            work.turn.emit(work.said, self.end)
        elif any(event.type != "notice" for event in work.turn.events):
            work.turn.emit(None, (self.end,), "notice")

    def _hand_on(self, work: HandlerRun, outgoing: OutgoingMessage) -> None:
        event = work.delivery.events[0]
        work.turn.pass_on(event, [self.agent(executor) for _, executor in outgoing.routes])
        self.route([(outgoing, *leg) for leg in outgoing.routes], event)

    def _handed_on(self, work: HandlerRun) -> OutgoingMessage | None:
        """The message with which an executor hands on what it was given by another one."""
        outgoing = [outgoing for outgoing in work.outgoing if outgoing.type != "notice"]
        graph, events = self.session.monitor.graph, work.delivery.events
        if len(outgoing) != 1 or len(outgoing[0].routes) != 1 or len(events) != 1:
            return None
        event = graph.event(events[0])
        if event.final or graph.history.by(event.n) is None or not work.turn.holds(events[0]):
            return None
        given, sent = work.delivery.message.data, outgoing[0].message.data
        is_handoff = self.session.guard.call(self._handoff, given, sent, default=False)
        return outgoing[0] if is_handoff else None
