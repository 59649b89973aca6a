"""Replacements of a workflow's methods, until restored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from itertools import chain
from typing import Any

import agent_framework as af

from dig.adapters import base

from .handlers import Edges, ExecutorDelivery, HandlerRun, decides, is_join, usage_of
from .run import DROPPED, WorkflowRun
from .team import WorkflowTeam

Annotate = Callable[[Any, tuple[str, ...]], Any]
"""Puts notes into what an executor's handler is given: `(data, notes) -> data`, a copy."""


NO_EVENTS: tuple[str, ...] = ()
NO_MESSAGES: list[af.WorkflowMessage] = []


class WorkflowPatches:
    """The patches of a workflow."""

    def __init__(
        self, workflow: af.Workflow, team: WorkflowTeam, annotate: Annotate | None
    ) -> None:
        self._team = team
        self._session = team.session
        self._annotate = annotate
        self._order = base.RecipientOrder()
        self._context = workflow._runner.context
        self._send = self._context.send_message
        self._step = team.step
        self._patches = base.Patches()
        patch = self._patches.patch
        patch(workflow._runner, "run_until_convergence", self.run)
        patch(self._context, "send_message", self.send_message)
        patch(self._context, "drain_messages", self.drain_messages)
        patch(self._context, "add_request_info_event", self.ask)
        for edges in workflow._runner._edge_runners:
            patch(edges, "_execute_on_target", self.execute, edges)
            if is_join(edges) or decides(edges):
                patch(edges, "send_message", self.reach, edges)
            if getattr(edges, "_selection_func", None) is not None:
                patch(edges, "_selection_func", self.select, edges)
        for executor in workflow.get_executors_list():
            patch(executor, "_find_handler", self.find_handler, executor)
            if isinstance(executor, af.AgentExecutor):
                for name in ("_run_agent", "_run_agent_streaming"):
                    patch(executor, name, self.run_agent, executor)

    def restore(self) -> None:
        """Restore the methods."""
        self._step(self._team.forget_joins, default=None)
        self._patches.restore()

    # --- a run ---

    async def run(self, original: Callable[[], Any]) -> AsyncIterator[Any]:
        """Run the workflow, and again as long as the answer comes back."""
        if self._team.run is not None:
            self._step(self._team.run.abort, DROPPED, default=None)
        run = self._team.run = WorkflowRun(self._team)
        # Events of a stream cannot be taken back; without one, outputs wait until they are final.
        keeps = self._session.mode == "heal" and run.caller is None
        keeps = keeps and not self._context.is_streaming()
        pending: list[Any] = []  # the first output and all events after it
        bounced: list[Any] | None = None  # the same, of an answer that came back
        try:
            while True:
                try:
                    async with aclosing(original()) as events:
                        async for event in events:
                            if keeps and (pending or event.type == "output"):
                                pending.append(event)
                            else:
                                yield event
                except af.WorkflowConvergenceException as error:
                    if bounced is None:
                        raise
                    self._step(run.give_in, error, default=None)
                    pending = bounced
                    break
                last = self._step(run.last_round, default=NO_MESSAGES)
                for message in last:
                    await self._send(message)
                if last:
                    continue
                run.check_budget()
                messages = await self._submit(run)
                if not messages:
                    break
                repeated, bounced = {message.target_id for message in messages}, pending
                pending = [
                    event
                    for event in pending
                    if event.type != "output" or event.executor_id not in repeated
                ]
                for message in messages:
                    await self._send(message)
            for event in pending:
                yield event
        except BaseException as error:
            self._step(run.abort, error, default=None)
            raise
        finally:
            if self._team.run is run:
                self._team.run = None

    async def _submit(self, run: WorkflowRun) -> list[af.WorkflowMessage]:
        """Submit the answer of a finished workflow; gives the messages of another round."""
        pending = await self._context.get_pending_request_info_events()
        self._step(run.note_pending, pending, default=None)
        await self._session.wait_until_released(
            *self._step(self._team.last_words, default=NO_EVENTS)
        )
        self._step(run.submit, default=None)
        await self._session.wait_until_released(run.answer)
        return self._step(run.next_round, default=[])

    async def send_message(self, original: Callable[..., Any], message: af.WorkflowMessage) -> None:
        """Somebody puts a message into the workflow: a handler, mostly."""
        self._step(self._team.send, message, default=None)
        await original(message)

    async def drain_messages(
        self, original: Callable[[], Any]
    ) -> Mapping[str, Sequence[af.WorkflowMessage]]:
        """Begin a step with all messages in the workflow."""
        messages: Mapping[str, Sequence[af.WorkflowMessage]] = await original()
        run = self._team.run
        if run is not None and not run.has_begun:
            run.has_begun = True
            self._step(self._team.take_up, [*chain(*messages.values())], default=None)
        return messages

    async def ask(self, original: Callable[..., Any], event: Any) -> None:
        """A handler asks a person."""
        self._step(self._team.ask, event.request_id, event.data, default=None)
        await original(event)

    # --- edges ---

    def select(
        self, original: Callable[..., Any], edges: Edges, data: Any, executors: list[str]
    ) -> Any:
        """The function of a group of edges selects executors."""
        selected = original(data, executors)
        self._step(self._team.select, edges, selected, default=None)
        return selected

    async def reach(
        self, original: Callable[..., Any], edges: Edges, message: af.WorkflowMessage, *more: Any
    ) -> Any:
        """A group of edges is given a message."""
        await self._session.wait_until_released(
            *self._step(self._team.reach, edges, message, default=NO_EVENTS)
        )
        try:
            delivered = await original(message, *more)
        except BaseException as error:
            self._step(self._team.fail_edges, message, error, default=None)
            raise
        self._step(self._team.pass_by, edges, message, default=None)
        return delivered

    async def execute(
        self, original: Callable[..., Any], edges: Edges, executor: str, sources: list[str],
        message: af.WorkflowMessage, *more: Any,
    ) -> None:  # fmt: skip
        """Edges give a message to an executor."""
        delivery = self._step(self._team.arrive, edges, executor, message, default=None)
        if delivery is not None:
            events = delivery.events

            async def wait() -> None:
                await self._session.wait_until_released(*events)

            await self._order.wait_turn(executor, wait if delivery.is_held else None)
            if self._team.moved:
                executor = self._step(self._team.readdress, delivery, default=executor)
        await original(executor, sources, message, *more)

    # --- executors ---

    def find_handler(
        self, original: Callable[[Any], Any], executor: af.Executor, message: Any
    ) -> Callable[..., Awaitable[Any]]:
        """An executor is about to work on a message."""
        handler = original(message)
        delivery = self._step(self._team.take, message, executor.id, default=None)
        return handler if delivery is None else partial(self.handle, handler, delivery)

    async def handle(
        self, handler: Callable[..., Any], delivery: ExecutorDelivery, data: Any, context: Any
    ) -> Any:
        """A handler works on a message."""
        if self._step(self._team.refuse, delivery, default=False):
            return None
        work = self._step(self._team.begin, delivery, default=None)
        if work is None:
            return await handler(data, context)
        notes = () if self._team.hides_notes else work.turn.notes
        if self._annotate is not None and notes:
            data = self._session.guard.call(self._annotate, data, notes, default=data)
        try:
            with base.inside(work.turn):
                result = await handler(data, context)
        except BaseException as error:
            self._step(self._team.fail, work, error, default=None)
            raise
        self._step(self._finish, work, context, default=None)
        return result

    def _finish(self, work: HandlerRun, context: Any) -> None:
        is_output = self._context.classify_yielded_output(work.executor) == "output"
        self._team.finish(work, context.get_yielded_outputs() if is_output else [])

    def run_agent(
        self, original: Callable[..., Any], executor: af.AgentExecutor, context: Any,
        *, messages: list[af.Message] | None = None,
    ) -> Any:  # fmt: skip
        """Call an agent with notes beside the conversation."""
        turn = base.current.get()
        is_ours = turn is not None and turn.guard is self._session.guard
        if turn is not None and is_ours and turn.notes and not self._team.hides_notes:
            notes = [
                af.Message("user", [base.NOTE.format(note)], author_name="monitor")
                for note in turn.notes
            ]
            messages = [*(executor._cache if messages is None else messages), *notes]
        response = original(context, messages=messages)
        if turn is None or self._session.budget is None:
            return response

        async def metered() -> Any:
            answer = await response
            turn.spend(usage_of(executor, answer))
            return answer

        return metered()
