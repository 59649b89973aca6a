"""What stands in place of a workflow's methods while it is wrapped."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from itertools import chain
from typing import Any

from agent_framework import (
    AgentExecutor,
    Executor,
    Message,
    Workflow,
    WorkflowConvergenceException,
    WorkflowMessage,
)

from dig.adapters.base.lines import Lines
from dig.adapters.base.patching import Taps
from dig.adapters.base.running import current, inside

from .messages import Edges, Mail, Work
from .routes import decides, is_join
from .run import DROPPED, Run
from .team import Team

Annotate = Callable[[Any, tuple[str, ...]], Any]
"""Puts notes into what an executor's handler is given: `(data, notes) -> data`, a copy."""


class WorkflowTaps:
    """The taps of one workflow."""

    def __init__(self, workflow: Workflow, team: Team, annotate: Annotate | None) -> None:
        """Put them in place."""
        self._workflow = workflow
        self._team = team
        self._session = team.session
        self._annotate = annotate
        self._lines = Lines()
        self._context = workflow._runner.context
        self._send = self._context.send_message
        self._step = team.step
        self._taps = Taps()
        tap = self._taps.tap
        tap(workflow._runner, "run_until_convergence", self.run)
        tap(self._context, "send_message", self.send_message)
        tap(self._context, "drain_messages", self.drain_messages)
        for edges in workflow._runner._edge_runners:
            tap(edges, "_execute_on_target", self.execute, edges)
            if is_join(edges) or decides(edges):
                tap(edges, "send_message", self.reach, edges)
            if getattr(edges, "_selection_func", None) is not None:
                tap(edges, "_selection_func", self.select, edges)
        for executor in workflow.get_executors_list():
            tap(executor, "_find_handler", self.find_handler, executor)
            if isinstance(executor, AgentExecutor):
                for name in ("_run_agent", "_run_agent_streaming"):
                    tap(executor, name, self.run_agent, executor)

    def restore(self) -> Workflow:
        """Take them away again; returns the workflow."""
        self._step(self._team.forget_joins, otherwise=None)
        self._taps.restore()
        return self._workflow

    async def _released(self, events: Iterable[str]) -> None:
        """Wait until events are not held any more; where none is, nothing is awaited."""
        for event in events:
            await self._session.released(event)

    # --- a run ---

    async def run(self, whole: Callable[[], Any]) -> AsyncIterator[Any]:
        """The workflow runs, and once more for as long as its answer comes back."""
        if self._team.run is not None:
            self._step(self._team.run.abort, DROPPED, otherwise=None)
        run = self._team.run = Run(self._team)
        keeps = self._session.mode == "heal" and not self._context.is_streaming()
        kept: list[Any] = []  # what has been put out, while it may have to be taken back
        stands: list[Any] | None = None  # the same, of an answer that came back
        try:
            while True:
                try:
                    async with aclosing(whole()) as events:
                        async for event in events:
                            if keeps and (kept or event.type == "output"):
                                kept.append(event)
                            else:
                                yield event
                except WorkflowConvergenceException as error:
                    if stands is None:
                        raise
                    self._step(run.give_in, error, otherwise=None)
                    kept = stands
                    break
                messages = await self._submitted(run)
                if not messages:
                    break
                again, stands = {message.target_id for message in messages}, kept
                kept = [one for one in kept if one.type != "output" or one.executor_id not in again]
                for message in messages:
                    await self._send(message)
            for event in kept:
                yield event
        except BaseException as error:
            self._step(run.abort, error, otherwise=None)
            raise
        finally:
            if self._team.run is run:
                self._team.run = None

    async def _submitted(self, run: Run) -> list[WorkflowMessage]:
        """The workflow has come to its end; gives what it has to look at once more."""
        pending = await self._context.get_pending_request_info_events()
        self._step(run.note_pending, [one.data for one in pending.values()], otherwise=None)
        await self._released(self._step(run.last_words, otherwise=()))
        self._step(run.submit, otherwise=None)
        await self._released((run.answer,))
        return self._step(run.again, otherwise=[])

    async def send_message(self, whole: Callable[..., Any], message: WorkflowMessage) -> None:
        """Somebody puts a message into the workflow: a handler, mostly."""
        self._step(self._team.send, message, otherwise=None)
        await whole(message)

    async def drain_messages(
        self, whole: Callable[[], Any]
    ) -> Mapping[str, Sequence[WorkflowMessage]]:
        """A step begins, with all that is in the workflow."""
        messages: Mapping[str, Sequence[WorkflowMessage]] = await whole()
        run = self._team.run
        if run is not None and not run.has_begun:
            run.has_begun = True
            self._step(self._team.take_up, [*chain(*messages.values())], otherwise=None)
        return messages

    # --- edges ---

    def select(
        self, whole: Callable[..., Any], edges: Edges, data: Any, executors: list[str]
    ) -> Any:
        """The function of a group of edges selects executors."""
        selected = whole(data, executors)
        self._step(self._team.select, edges, selected, otherwise=None)
        return selected

    async def reach(
        self, whole: Callable[..., Any], edges: Edges, message: WorkflowMessage, *more: Any
    ) -> Any:
        """A group of edges is given a message."""
        await self._released(self._step(self._team.reach, edges, message, otherwise=()))
        delivered = await whole(message, *more)
        self._step(self._team.pass_by, edges, message, otherwise=None)
        return delivered

    async def execute(
        self, whole: Callable[..., Any], edges: Edges, executor: str, sources: list[str],
        message: WorkflowMessage, *more: Any,
    ) -> None:  # fmt: skip
        """Edges give a message to an executor."""
        mail = self._step(self._team.arrive, edges, executor, message, otherwise=None)
        if mail is not None:
            wait = partial(self._released, mail.events) if mail.is_held else None
            await self._lines.through(executor, wait)
            if self._team.moved:
                executor = self._step(self._team.readdress, mail, otherwise=executor)
        await whole(executor, sources, message, *more)

    # --- executors ---

    def find_handler(
        self, whole: Callable[[Any], Any], executor: Executor, message: Any
    ) -> Callable[..., Awaitable[Any]]:
        """An executor is about to work on a message."""
        handler = whole(message)
        mail = self._step(self._team.take, message, executor.id, otherwise=None)
        return handler if mail is None else partial(self.handle, handler, mail)

    async def handle(self, handler: Callable[..., Any], mail: Mail, data: Any, context: Any) -> Any:
        """A handler works on a message."""
        work = self._step(self._team.begin, mail, otherwise=None)
        if work is None:
            return await handler(data, context)
        notes = () if self._team.only_looks else work.turn.notes
        if self._annotate is not None and notes:
            data = self._session.guard(self._annotate, data, notes, otherwise=data)
        try:
            with inside(work.turn):
                result = await handler(data, context)
        except BaseException as error:
            self._step(self._team.fail, work, error, otherwise=None)
            raise
        self._step(self._finish, work, context, otherwise=None)
        return result

    def _finish(self, work: Work, context: Any) -> None:
        kind = self._context.classify_yielded_output(work.executor)
        self._team.finish(work, context.get_yielded_outputs() if kind == "output" else [])

    def run_agent(
        self, whole: Callable[..., Any], executor: AgentExecutor, context: Any,
        *, messages: list[Message] | None = None,
    ) -> Any:  # fmt: skip
        """An agent is called; notes go to it beside its conversation, and to nobody else."""
        turn = current.get()
        is_ours = turn is not None and turn.session is self._session
        if turn is not None and is_ours and turn.notes and not self._team.only_looks:
            given = executor._cache if messages is None else messages
            messages = [*given, *map(_as_message, turn.notes)]
        return whole(context, messages=messages)


def _as_message(note: str) -> Message:
    return Message("user", [f"[monitor] {note}"], author_name="monitor")
