"""The executors of a workflow, and what is between them.

The session calls each method inside a guard, so an exception here never reaches the team.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from agent_framework import Workflow, WorkflowMessage
from agent_framework._workflows._const import INTERNAL_SOURCE_ID

from dig.adapters import base
from dig.detectors.interventions import Reroute

from . import handlers

CALLED_OFF = base.CalledOffError("the workflow has ended, or is not waited for any more")
"""Reason in a trace for turns that were open when a run failed; it is never raised."""

RESUMES = "run the workflow with responses={request_id: ...}"
"""The way to answer a question."""

Handoff = Callable[[Any, Any], bool]
"""Whether an executor that was given the first has only handed it on, by sending the second."""


class WorkflowTeam(base.AdapterState):
    """The executors of a workflow, and what is between them.

    Attributes:
        is_inner: Whether it is within another workflow.
        end: The agent that stands for the end of the workflow.
        run: The run in progress (`run.WorkflowRun`), if one is.
        moved: The messages that healing has sent to another executor, and that have not reached it
            yet.
    """

    def __init__(
        self, workflow: Workflow, prefix: str, session: base.Session, handoff: Handoff,
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
        self.end = self.agent(handlers.END)
        self.run: Any = None
        self.moved: set[str] = set()
        self._workflow = workflow
        self._executors = workflow.executors
        self._runner = workflow._runner
        self._edges: dict[str, list[handlers.Edges]] = workflow._runner._edge_runner_map
        self._handoff = handoff
        self._works: dict[base.Turn, handlers.HandlerRun] = {}
        # Messages are known by their ids: the framework passes them on without a copy.
        self._undecided: dict[str, handlers.HandlerRun] = {}  # by executor, until edges decide
        self._outgoing: dict[int, handlers.OutgoingMessage] = {}  # by id, of undecided runs
        self._waiting: dict[str, base.Turn] = {}  # by request: the turn that waits for a person
        self._questions: dict[str, Any] = {}  # by request
        self._settling: handlers.HandlerRun | None = None  # its turn ends just now
        # (id, edges, executor) -> message, event
        self._routed: dict[tuple[int, handlers.Edges, str], tuple[Any, str]] = {}
        self._joining: dict[handlers.Edges, list[str]] = {}  # events that a join has by now
        self._selected: dict[handlers.Edges, list[str]] = {}
        self._due: dict[tuple[int, str], handlers.ExecutorDelivery] = {}  # by id, executor

    def on_failure(self) -> None:
        """Stop healing in all workflows: the events left open may concern others."""
        for team in self._teams:
            team.has_failed = True

    def agent(self, executor: str) -> str:
        """The agent name of an executor."""
        return f"{self._prefix}{executor}"

    def executor(self, agent: str | None) -> str:
        """The executor of an agent name."""
        return str(agent).removeprefix(self._prefix)

    @property
    def has_iterations_left(self) -> bool:
        """Whether the run may go on: the framework counts the steps of a run."""
        return bool(self._runner._iteration < self._runner._max_iterations)

    # --- edges decide ---

    def select(self, edges: handlers.Edges, executors: list[str]) -> None:
        """Note the executors selected by a group's function for the current message."""
        self._selected[edges] = executors

    def reach(self, edges: handlers.Edges, message: WorkflowMessage) -> tuple[str, ...]:
        """Give a message to edges; a join keeps messages until all sources have sent.

        Returns:
            What is held of it: the join gets it when that is released.
        """
        if not handlers.is_join(edges):
            return ()
        takers = handlers.foreseen(edges, message) or ()
        events = [event for name in takers if (event := self._event(edges, name, message))]
        self._joining.setdefault(edges, []).extend(events)
        return tuple(filter(self.session.is_held, events))

    def pass_by(self, edges: handlers.Edges, message: WorkflowMessage) -> None:
        """Note the end of edges' work with a message, maybe without a taker."""
        self._selected.pop(edges, None)
        outgoing = self._outgoing.get(id(message))
        if outgoing is not None and outgoing.takers.get(edges, ()) is None:
            self._decide(outgoing, edges, ())

    def arrive(
        self, edges: handlers.Edges, executor: str, message: WorkflowMessage
    ) -> handlers.ExecutorDelivery | None:
        """Deliver a message to an executor; ``None``: no run is going on."""
        if self.run is None:
            return None
        if handlers.is_join(edges):
            events = tuple(dict.fromkeys(self._joining.pop(edges, ())))
        else:
            event = self._event(edges, executor, message)
            events = (event,) if event else ()
        if handlers.request_of(message) in self._waiting:  # a turn goes on with it
            self.run.is_asked = True
        elif not events:  # no executor has sent it, so it has come from outside
            events = (self.run.ask(handlers.shown(message.data), self.agent(executor)),)
        delivery = handlers.ExecutorDelivery(executor, message, events)
        self._due[id(message), executor] = delivery
        self._bring(delivery)
        delivery.is_held = any(map(self.session.is_held, events))
        return delivery

    def _bring(self, delivery: handlers.ExecutorDelivery) -> None:
        """Put a delivery in front of an executor, if an equal message was used up before."""
        agent = self.agent(delivery.executor)
        for event in delivery.events:
            is_there = agent in self.session.recipients_of(event)
            if not is_there and not self.session.is_held(event):
                self.session.redirect(event, (agent,), handlers.shown(delivery.message.data))

    def readdress(self, delivery: handlers.ExecutorDelivery) -> str:
        """The executor of a delivery, wherever healing has sent the message."""
        event = next(iter(delivery.events), "")
        recipients = self.session.recipients_of(event) if event in self.moved else ()
        if recipients:
            self.moved.remove(event)
            del self._due[id(delivery.message), delivery.executor]
            delivery.executor = self.executor(recipients[0])
            self._due[id(delivery.message), delivery.executor] = delivery
        return delivery.executor

    def take(self, message: Any, executor: str) -> handlers.ExecutorDelivery | None:
        """Take the delivery in front of an executor."""
        return self._due.pop((id(message), executor), None)

    def _event(self, edges: handlers.Edges, executor: str, message: WorkflowMessage) -> str:
        """The event of a delivered message; empty: sent by no executor."""
        outgoing = self._outgoing.get(id(message))
        if outgoing is not None:
            takers = handlers.can_take(edges, message)
            selected = dict.fromkeys(self._selected.get(edges, [executor]))
            self._decide(outgoing, edges, tuple(name for name in selected if name in takers))
        routed = self._routed.pop((id(message), edges, executor), None)
        if routed is not None:
            return routed[1]
        if outgoing is None:
            return ""
        if outgoing.event:  # it was decided after its turn was over
            self.session.redirect(outgoing.event, (self.agent(executor),), outgoing.payload)
        return outgoing.event

    def _decide(
        self, outgoing: handlers.OutgoingMessage, edges: handlers.Edges, takers: handlers.Takers
    ) -> None:
        work = outgoing.work
        if outgoing.takers.get(edges, ()) is None:
            outgoing.takers[edges] = takers
        is_clear = takers or all(other.is_decided for other in work.outgoing)
        if is_clear and self._undecided.get(work.executor) is work:
            self.settle(work)
        if outgoing.is_decided:
            self._outgoing.pop(id(outgoing.message), None)
            if outgoing.event and not outgoing.routes:  # it is not lost: the team is made so
                self.session.redirect(outgoing.event, self.end)

    def route(self, routes: list[handlers.MessageRoute], event: str) -> None:
        """Note the ways of an event."""
        for outgoing, edges, executor in routes:
            outgoing.event = event
            self._routed[id(outgoing.message), edges, executor] = (outgoing.message, event)

    def knows(self, agents: Iterable[str]) -> bool:
        """Whether some agents are all executors of the workflow."""
        return all(
            agent.startswith(self._prefix) and self.executor(agent) in self._executors
            for agent in agents
        )

    def veto(self, wish: Reroute) -> str | None:
        """Why a message cannot go to another executor at this moment."""
        if self.has_failed:
            return "the wrapper has failed, and may be wrong about who gets it"
        ways = [(key[1], message) for key, (message, event) in self._routed.items()
                if event == wish.event]  # fmt: skip
        if not ways and self._settling is not None:
            outgoing = self._settling.outgoing
            ways = [(edges, sent.message) for sent in outgoing for edges, _ in sent.routes]
        ways += [
            (None, delivery.message)
            for delivery in self._due.values()
            if wish.event in delivery.events
        ]
        if len(wish.to) != 1 or not self.knows(wish.to):
            return "a message goes to one executor"
        if not ways or any(edges is not None and handlers.is_join(edges) for edges, _ in ways):
            return "it has reached its executor, or a join waits for it"
        if len(self.session.monitor.graph.event(wish.event).flight) != 1:
            return "several executors are given it"
        taker = self._executors[self.executor(wish.to[0])]
        if not all(taker.can_handle(message) for _, message in ways):
            return f"{wish.to[0]} cannot take it"
        self.moved.add(wish.event)
        return None

    # --- a run ends ---

    def inner(self, executor: str) -> handlers.Edges | None:
        """The framework's inner edge to an executor, for messages from outside."""
        return next(iter(self._edges.get(INTERNAL_SOURCE_ID(executor), ())), None)

    def send_back(self, event: str, message: WorkflowMessage) -> WorkflowMessage:
        """Route a message to be put into the workflow once more, after a bounced answer."""
        executor = str(message.target_id)
        self._routed[id(message), self.inner(executor), executor] = (message, event)
        return message

    def forget_joins(self) -> None:
        """Joins and persons may be waited for from run to run; after unwrapping none follows."""
        self.call_off()
        self.withdraw(self.put_aside())
        if events := self.last_words():
            turn = self.session.begin(self.end, events, at_once=True)
            turn.end()

    def last_words(self) -> tuple[str, ...]:
        """The input of the end; a gate may keep a part."""
        state = self.session.monitor.graph.agents[self.end]
        return (*state.buffer, *state.incoming)

    def withdraw(
        self, deliveries: Collection[handlers.ExecutorDelivery], to: str = ""
    ) -> list[str]:
        """Move the events of undelivered messages to an agent, or the end; return the events."""
        events = [event for delivery in deliveries for event in delivery.events]
        self.session.release(*events)  # all of them first, since some wait for others
        for delivery in deliveries:
            instance = self.session.reserve_instance(self.agent(delivery.executor))
            self.session.withdraw(instance, delivery.events, to or self.end)
        return events

    def put_aside(self) -> list[handlers.ExecutorDelivery]:
        """Take the messages waiting in joins, at the end of a run."""
        joining, self._joining = self._joining, {}
        return self._in_front(
            handlers.ExecutorDelivery(edges._edge_group.edges[0].target_id, None, tuple(events))
            for edges, events in joining.items()
        )

    def put_away(self) -> list[handlers.ExecutorDelivery]:
        """Take all undelivered messages of a failed run."""
        due, self._due = self._due, {}
        routed, self._routed = self._routed, {}
        sent = (
            handlers.ExecutorDelivery(executor, message, (event,))
            for (_, _, executor), (message, event) in routed.items()
        )
        return [*self._in_front([*due.values(), *sent]), *self.put_aside()]

    def _in_front(
        self, deliveries: Iterable[handlers.ExecutorDelivery]
    ) -> list[handlers.ExecutorDelivery]:
        """The deliveries still in front of executors."""
        undelivered: list[handlers.ExecutorDelivery] = []
        counted: set[tuple[str, str]] = set()  # equal messages are one event, taken up once
        for delivery in deliveries:
            executor, session = delivery.executor, self.session
            events = tuple(
                event
                for event in dict.fromkeys(delivery.events)
                if (event, executor) not in counted
                and (session.is_held(event) or self.agent(executor) in session.recipients_of(event))
            )
            counted.update((event, executor) for event in events)
            if events:
                undelivered.append(handlers.ExecutorDelivery(executor, delivery.message, events))
        return undelivered

    # --- persons ---

    @property
    def waits(self) -> bool:
        """Whether turns wait for a person."""
        return bool(self._waiting)

    def ask(self, request: str, question: Any) -> None:
        """Note a handler's question to a person: the turn stays open until the response."""
        turn = base.current_turn(self.session)
        if turn is not None and turn in self._works:
            self._waiting[request] = turn
            still_open = {r: asked for r, asked in self._questions.items() if r in self._waiting}
            self._questions = {**still_open, request: handlers.shown(question)}

    def call_off(self, besides: Collection[str] = ()) -> None:
        """Fail turns waiting for a person, `besides` the turns of some requests."""
        for request in [request for request in self._waiting if request not in besides]:
            turn = self._waiting.pop(request)
            if turn not in self._waiting.values():
                turn.fail(CALLED_OFF, self.end)

    def _resume(self, delivery: handlers.ExecutorDelivery) -> base.Turn | None:
        """Resume the executor's turn waiting for this message, or for a person."""
        agent, message = self.agent(delivery.executor), delivery.message
        turn = self._waiting.pop(handlers.request_of(message), None)
        if turn is not None:
            turn.resumes(handlers.shown(message.data))
            return turn
        turn = next((turn for turn in self._waiting.values() if turn.instance == agent), None)
        if turn is not None:
            turn.resumes()
            turn.wait_for(len(delivery.events))
            for event in delivery.events:
                turn.receive(event)
        return turn

    # --- handlers ---

    @property
    def hides_notes(self) -> bool:
        """Whether executors are shown no notes; the note of a last turn is shown in any mode."""
        return self.only_observes and not (self.run is not None and self.run.stopped)

    def refuse(self, delivery: handlers.ExecutorDelivery) -> bool:
        """Refuse the turn of a handler at a limit of the budget; its events go elsewhere."""
        run = self.run
        if run is None or (run.refused and run.refused in delivery.events):
            return False
        account = self.session.refuses(*delivery.events)
        if account is None:
            return False
        run.stopped, to = account, self.end
        if not run.refused and self.executor(account.entry) in run.inputs:
            run.refused, to = delivery.events[0], account.entry
        if to != self.agent(delivery.executor):  # else it lies there already
            self.withdraw([delivery], to)
        return True

    def begin(self, delivery: handlers.ExecutorDelivery) -> handlers.HandlerRun | None:
        """A handler begins."""
        if self.run is None:
            return None
        self.settle(self._undecided.get(delivery.executor))
        agent = self.agent(delivery.executor)
        if not self.session.monitor.graph.agents[agent].incoming:
            self._bring(delivery)  # else it would wait behind what is kept, and come too late
        turn = self._resume(delivery) or self.session.begin(agent, delivery.events)
        work = self._works[turn] = handlers.HandlerRun(delivery, turn)
        self.run.inputs[delivery.executor] = delivery.message
        if self.run.refused and self.run.refused in delivery.events:
            turn.notebook.texts.append(self.run.stopped.note)
        return work

    def send(self, message: WorkflowMessage) -> None:
        """Note a message sent by a handler."""
        turn = base.current_turn(self.session)
        work = self._works.get(turn) if turn is not None else None
        if work is not None and message.source_id == work.executor:
            work.sent.append(message)

    def finish(self, work: handlers.HandlerRun, outputs: list[Any]) -> None:
        """End a handler's work, with outputs for the outside."""
        del self._works[work.turn]
        if outputs:
            work.output = handlers.answer(outputs)
            if self.run is not None:
                self.run.outputs.append((work.executor, work.output))
        self._send_out(work)

    def take_up(self, messages: list[WorkflowMessage]) -> None:
        """Begin a run with messages from outside; several are handed out by the end.

        So what a checkpoint had on its way, or what a person has replied to several questions,
        is one problem. While turns wait, a checkpoint goes back in the problem of those.
        """
        messages = [it for it in messages if handlers.request_of(it) not in self._waiting]
        if self.run is None or not messages:
            return
        waiting = self._waiting.values() if self._workflow._restored_checkpoint_id else ()
        if len(messages) == 1 and not waiting:
            source = INTERNAL_SOURCE_ID(str(messages[0].target_id))
            if messages[0].source_id == source:
                return
        payload = [handlers.shown(message.data) for message in messages]
        event = self.run.ask(payload, self.end, next(iter(waiting), None))
        delivery = handlers.ExecutorDelivery(handlers.END, None, (event,))
        self._send_out(
            handlers.HandlerRun(delivery, self.session.begin(self.end, delivery.events), messages)
        )

    def _send_out(self, work: handlers.HandlerRun) -> None:
        """Put messages in front of edges, for a decision now or in the next step."""
        for message in work.sent:
            edges_of = self._edges.get(message.source_id, ())
            takers = {edges: handlers.foreseen(edges, message) for edges in edges_of}
            kind = "notice" if handlers.is_notice(message.data) else "message"
            payload = handlers.shown(message.data)
            outgoing = handlers.OutgoingMessage(work, message, payload, kind, takers)
            work.outgoing.append(outgoing)
        if all(outgoing.is_decided for outgoing in work.outgoing):
            self.settle(work)
            return
        self._undecided[work.executor] = work
        self._outgoing.update({id(outgoing.message): outgoing for outgoing in work.outgoing})

    def fail(self, work: handlers.HandlerRun, error: BaseException) -> None:
        """A handler has raised, or was cancelled."""
        self._works.pop(work.turn, None)
        self._waiting = {
            request: turn for request, turn in self._waiting.items() if turn is not work.turn
        }
        work.turn.fail(error, self.end)

    def fail_edges(self, message: WorkflowMessage, error: BaseException) -> None:
        """Fail the executor before edges with a raising condition."""
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
        """End all undecided turns at the end of a run."""
        for work in tuple(self._undecided.values()):
            self.settle(work)
        self._outgoing.clear()

    def settle(self, work: handlers.HandlerRun | None) -> None:
        """End a turn with all messages, as far as edges have decided."""
        if work is None:
            return
        if self._undecided.get(work.executor) is work:
            del self._undecided[work.executor]
        turn, handed_on = work.turn, self._handed_on(work)
        messages = [outgoing for outgoing in work.outgoing if outgoing is not handed_on]
        sent = handlers.events_of(messages, same_work=self.session.same_work)
        waiting = [
            outgoing
            for outgoing in work.outgoing
            if outgoing.is_undeliverable or not (outgoing.is_decided or outgoing.routes)
        ]
        for message in sent:
            turn.emit(message.payload, map(self.agent, message.recipients), message.type)
        for outgoing in waiting:  # events without a recipient, until edges decide about them
            turn.emit(outgoing.payload, (), outgoing.type)
        asks = [self._questions.get(r) for r, asking in self._waiting.items() if asking is turn]
        if work.is_last and work.output is not None:
            turn.emit(work.output, self.end)
        elif work.is_last and not asks and any(event.type != "notice" for event in turn.events):
            turn.emit(
                None, (self.end,), "notice"
            )  # the end hears of silence: it may be asked again
        if handed_on is not None:
            event = work.delivery.events[0]
            turn.pass_on(event, [self.agent(executor) for _, executor in handed_on.routes])
            self.route([(handed_on, *way) for way in handed_on.routes], event)
        events = self._end(work, asks)
        for message, event in zip(sent, events, strict=False):
            self.route(message.routes, event)
        for outgoing, event in zip(waiting, events[len(sent) :], strict=False):
            outgoing.event = event

    def _end(self, work: handlers.HandlerRun, asks: list[Any]) -> tuple[str, ...]:
        """End a turn, or leave the turn waiting for a person; gives the generated events.

        If it asks a person, the turn goes on when that has answered.
        """
        before, self._settling = len(work.turn.outputs), work
        try:
            if not asks:
                work.turn.end()
            else:
                if work.outgoing or work.output is not None:
                    work.turn.wait_for(0)
                work.turn.waits(asks[0] if len(asks) == 1 else asks, RESUMES)
        finally:
            self._settling = None
        return work.turn.outputs[before:]

    def _handed_on(self, work: handlers.HandlerRun) -> handlers.OutgoingMessage | None:
        """The message by which an executor hands on another executor's message."""
        outgoing = [outgoing for outgoing in work.outgoing if outgoing.type != "notice"]
        graph, events = self.session.monitor.graph, work.delivery.events
        if len(outgoing) != 1 or len(outgoing[0].routes) != 1 or len(events) != 1:
            return None
        if work.executor == handlers.END:  # it hands out what a checkpoint had on its way
            return None
        event = graph.event(events[0])
        if event.final or graph.history.by(event.n) is None or not work.turn.holds(events[0]):
            return None
        taken, sent = work.delivery.message.data, outgoing[0].message.data
        is_handoff = self.session.guard.call(self._handoff, taken, sent, default=False)
        return outgoing[0] if is_handoff else None
