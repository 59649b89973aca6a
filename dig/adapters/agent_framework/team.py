"""The executors of a workflow, and what is between them; one run, with its end.

Each method is made in one step of the session, so whatever fails in here stays in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from agent_framework import Workflow, WorkflowMessage
from agent_framework._workflows._const import INTERNAL_SOURCE_ID

from dig.adapters.base import AdapterState, Session, Turn, current_turn
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
    shown,
)

DROPPED = RuntimeError("the stream was dropped before its end, and another run has begun")
"""Reason in a trace for a run whose caller is gone; it is never raised."""


class WorkflowRun:
    """One run, from the call of `Workflow.run` to its end; used inside steps of the session.

    Attributes:
        has_begun: Whether the run's first step has begun.
        is_asked: Whether something has come from outside.
        given: The latest input of each executor.
        said: The outputs of executors, in order.
        asks: The questions of executors to a person; the run is over then, and another one goes on.
        lost: The messages that executors have sent without a recipient.
        caller: The turn that has called the workflow, if it is within another one: it asks in
            place of the outside, and gets the answer, which never comes back.
    """

    def __init__(self, team: WorkflowTeam) -> None:
        """Begin."""
        self.caller = current_turn(team.session) if team.is_inner else None
        self.has_begun = False
        self.is_asked = False
        self.given: dict[str, WorkflowMessage] = {}
        self.said: list[tuple[str, Any]] = []
        self.asks: list[Any] = []
        self.lost: list[str] = []
        self._team = team
        self._session = team.session
        self._is_over = False
        self._came_back: Any = None  # the answer that did, in words
        self._turn: Turn | None = None  # of the end, while it is not known whether it is accepted
        self._answer = ""  # of that turn

    @property
    def answer(self) -> str:
        """The answer that was submitted and has not been accepted yet."""
        return self._answer if self._turn is not None else ""

    def ask(self, payload: Any, to: str) -> str:
        """The event of a question to an agent of this workflow, from outside of it."""
        self.is_asked = True
        if self.caller is not None:
            return self.caller.call(payload, to)
        return self._session.request(payload, to)

    def last_words(self) -> tuple[str, ...]:
        """The input of the end, a part of which a gate may keep."""
        state = self._session.monitor.graph.agents[self._team.end]
        return (*state.buffer, *state.incoming)

    def note_pending(self, requests: list[Any]) -> None:
        """Executors wait for these answers from outside, whether they asked in this run or not."""
        self.asks = [shown(data) for data in requests]

    def submit(self) -> None:
        """The workflow has nothing left to do: its end submits what it has come to."""
        self._team.settle_all()
        if not self.is_asked:
            return
        if self.asks:
            self._hand_to_end()
        turn = self._turn = self._session.begin(self._team.end)
        if self.caller is not None:
            self._answer = turn.reply(self._told(), self.caller.address)
        else:
            self._answer = turn.submit(self._told(), bounces=bool(self._submitters(turn)))

    def again(self) -> list[WorkflowMessage]:
        """The input that the workflow is to be given once more, for its answer came back."""
        turn, self._turn = self._turn, None
        if turn is None or not self._comes_back(turn):
            return []
        submitters = self._submitters(turn)
        self._came_back = self._told()
        turn.forward(map(self._team.agent, submitters), (self._answer,))
        self.said = [one for one in self.said if one[0] not in submitters]
        return [self._once_more(name, self._answer) for name in submitters]

    def _comes_back(self, turn: Turn) -> bool:
        """Hand over the answer, which is not held any more, unless it comes back."""
        if self.caller is None:
            return turn.was_bounced(self._answer)
        self.caller.receive(self._answer)
        return False

    def give_in(self, error: BaseException) -> None:
        """There are no iterations left to look at an answer that came back: it stands."""
        self._session.guard.incident("bounce failed", {"why": repr(error)})
        self.abort(error, self._came_back)

    def abort(self, error: BaseException, answer: Any = None) -> None:
        """The workflow has raised, or its caller is gone; an `answer` stands anyway."""
        if self._is_over:
            return
        self._is_over = True
        session, end = self._session, self._team.end
        if self._turn is not None:  # the task that waited for the answer was cancelled
            session.release(self.answer)
            self._comes_back(self._turn)
            return
        self._team.give_up(error)
        deliveries = self._team.put_away()
        # All of them first, since some wait for others.
        session.release(*(event for delivery in deliveries for event in delivery.events))
        for delivery in deliveries:
            turn = session.begin(self._team.agent(delivery.executor), delivery.events)
            turn.fail(error, end)
        if self.is_asked:
            session.release(*self.last_words())
            turn = session.begin(end)
            if self.caller is not None:
                self.caller.receive(turn.abandon(error, self.caller.address))
            elif answer is None:
                turn.fail(error, submits=True)
            else:
                turn.was_bounced(turn.submit(answer, bounces=False))

    def _told(self) -> Any:
        if self.asks:
            return {"$asks": self.asks}
        said = [words for _, words in self.said]
        return said[0] if len(said) == 1 else said

    def _submitters(self, turn: Turn) -> list[str]:
        """The executors that are asked again: the silent ones, or else those that answered."""
        team = self._team
        if self.asks or team.has_failed or not team.has_iterations_left:
            return []
        ended = [event for event in turn.events if team.executor(event.sender) in self.given]
        silent = [event for event in ended if event.type == "notice"]
        names = dict.fromkeys(team.executor(event.sender) for event in silent or ended)
        return [name for name in names if team.inner(name) is not None]

    def _once_more(self, name: str, event: str) -> WorkflowMessage:
        message = replace(self.given[name], source_id=INTERNAL_SOURCE_ID(name), target_id=name)
        return self._team.send_back(event, message)

    def _hand_to_end(self) -> None:
        """Wait in this run for no input of a later one, and call nothing lost."""
        for delivery in self._team.put_aside():
            turn = self._session.begin(self._team.agent(delivery.executor), delivery.events)
            turn.forward(self._team.end, delivery.events)
        for event in self.lost:
            if not self._session.recipients_of(event):
                self._session.redirect(event, self._team.end)


NEVER_RAN = RuntimeError(
    "the workflow was unwrapped before this executor had all that it waits for"
)
"""Reason in a trace for a join that never ran; it is never raised."""


Handoff = Callable[[Any, Any], bool]
"""Whether an executor that was given the first has only handed it on, by sending the second."""


class WorkflowTeam(AdapterState):
    """The executors of a workflow, and what is between them.

    Attributes:
        is_inner: Whether it is within another workflow.
        end: The agent that stands for the end of the workflow.
        run: The run in progress, if one is.
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
        self.run: WorkflowRun | None = None
        self.moved: set[str] = set()
        self._executors = workflow.executors
        self._runner = workflow._runner
        self._edges: dict[str, list[Edges]] = workflow._runner._edge_runner_map
        self._handoff = handoff
        self._works: dict[Turn, HandlerRun] = {}
        # By executor, what its edges have to decide about; the messages of that, by their ids.
        self._undecided: dict[str, HandlerRun] = {}
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
        if not events:  # no executor has sent it, so it has come from outside
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
        event = delivery.events[0]
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
        """Joins may wait from one run to the next; after unwrapping no run will follow."""
        for delivery in self.put_aside():
            agent = self.agent(delivery.executor)
            turn = self.session.begin(agent, delivery.events, at_once=True)
            for event in delivery.events:
                turn.discard(event)
            turn.fail(NEVER_RAN)

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

    # --- handlers ---

    def begin(self, delivery: ExecutorDelivery) -> HandlerRun | None:
        """A handler begins."""
        if self.run is None:
            return None
        self.settle(self._undecided.get(delivery.executor))
        agent = self.agent(delivery.executor)
        if not self.session.monitor.graph.agents[agent].incoming:
            self._bring(delivery)  # else it would wait behind what is kept, and come too late
        turn = self.session.begin(agent, delivery.events)
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
        if self.run is None or is_for_one or not messages:
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
        work.turn.fail(error, self.end)

    def give_up(self, error: BaseException) -> None:
        """No edge will decide any more, since the run has failed."""
        for work in self._undecided.values():
            work.turn.fail(error, self.end)
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
        if work.is_last:
            self._say_last_words(work)
        if handed_on is not None:
            self._hand_on(work, handed_on)
        made = self._end(work)
        for one, event in zip(sent, made, strict=False):
            self.route(one.routes, event)
        for outgoing, event in zip(waiting, made[len(sent) :], strict=False):
            outgoing.event = event
            if outgoing.is_undeliverable and self.run is not None:
                self.run.lost.append(event)

    def _end(self, work: HandlerRun) -> tuple[str, ...]:
        """End a turn, during which what it sends may go elsewhere; gives what it generated."""
        before, self._settling = len(work.turn.outputs), work
        try:
            work.turn.end()
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
