"""A node at work: what stands between LangGraph and it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langgraph._internal._constants import CONF, CONFIG_KEY_SEND, CONFIG_KEY_TASK_ID
from langgraph.errors import GraphBubbleUp, GraphInterrupt, ParentCommand
from langgraph.types import Command

from dig.adapters.base import CalledOffError, Turn, inside

from .messages import NodeWork, release_now
from .routes import HANDS_OVER, Write, route_of, shown, without_ids, without_notes, writes_of
from .run import GraphRequest

_END = object()


NEVER_TOLD = CalledOffError("the node ended before this tool returned")
"""The error that a trace tells of such a tool; it is never raised."""


def _told(error: BaseException) -> BaseException:
    """The error of a tool as a trace tells it: one that asks a person will be called again."""
    return NEVER_TOLD if isinstance(error, GraphBubbleUp) else error


class ToolWatcher(BaseCallbackHandler):  # type: ignore[misc]
    """Tells the session of the tools that a node calls, also in graphs within the node.

    LangChain calls it where the tool runs, and cannot wait for a gate. Tools that hand over to
    another node are none.
    """

    run_inline = True

    def __init__(self, work: NodeRun) -> None:
        """Begin with no tool."""
        self._work = work
        self._run, self._tools = work.run, work.run.tools

    def replaces(self, handler: BaseCallbackHandler) -> bool:
        """Whether a handler is that of a node of the same session, in which this node is."""
        return isinstance(handler, ToolWatcher) and handler._run.session is self._run.session

    def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: Any, inputs: Any = None, **more: Any
    ) -> None:
        """A tool begins."""
        name = str((serialized or {}).get("name") or "")
        if self._work.turn is not None and name and not name.startswith(HANDS_OVER):
            given = input_str if inputs is None else inputs
            self._run.step(self._call, run_id, self._work.turn, name, given, default=None)

    def on_tool_end(self, output: Any, *, run_id: Any, **more: Any) -> None:
        """A tool has returned."""
        result = without_ids(getattr(output, "content", output))
        self._run.step(self._tools.complete, run_id, shown(result), default=None)

    def on_tool_error(self, error: BaseException, *, run_id: Any, **more: Any) -> None:
        """A tool has raised."""
        self._run.step(self._tools.fail, run_id, _told(error), default=None)

    def _call(self, key: Any, asker: Turn, name: str, arguments: Any) -> None:
        release_now(self._run.session, (self._tools.call(key, asker, name, arguments),))
        self._tools.begin(key)


def _with(watcher: ToolWatcher, callbacks: Any) -> Any:
    """The callbacks of a config, with one more handler; a node around this one is told no more."""
    if isinstance(callbacks, BaseCallbackManager):
        callbacks = callbacks.copy()
        for outer in filter(watcher.replaces, callbacks.handlers):
            callbacks.remove_handler(outer)
        callbacks.add_handler(watcher, inherit=True)
        return callbacks
    return [*(one for one in callbacks or () if not watcher.replaces(one)), watcher]


class NodeRun(NodeWork):
    """One execution of a node; a context manager around it."""

    def __init__(self, run: GraphRequest, node: str, given: Any, config: Any) -> None:
        """Prepare."""
        conf = config[CONF]
        is_sent = config["metadata"].get("langgraph_path", ("",))[0] == "__pregel_push"
        config = {**config, CONF: {**conf, CONFIG_KEY_SEND: self._write}}
        self.run = run
        if run.team.shared.shows_tools:
            config["callbacks"] = _with(ToolWatcher(self), config.get("callbacks"))
        super().__init__(node, str(conf.get(CONFIG_KEY_TASK_ID)), is_sent, given, config)
        self._session = run.session
        self._heals = self._session.mode == "heal"
        self._send = conf[CONFIG_KEY_SEND]
        self._has_notes = False

    def __enter__(self) -> NodeRun:
        """LangGraph runs the node."""
        self.run.step(self.run.expect, self, default=None)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """The node has returned or raised; what it raised is raised on."""
        self.config = {}  # it leads back here, and to the state of the whole run
        if self.turn is not None and self.run.team.shared.shows_tools:
            called_off = NEVER_TOLD if error is None else _told(error)
            self.run.step(self.run.tools.give_up, called_off, self.turn, default=None)
        if error is None:
            self._finish()
        elif isinstance(error, ParentCommand):
            self._step_aside(error)
        elif isinstance(error, GraphInterrupt):
            self.run.step(self.run.pause, self, error.args[0] if error.args else (), default=None)
        else:
            self.run.step(self.run.fail, self, error, default=None)

    async def wait_until_released(self) -> None:
        """Wait until what it is started by is not held any more, and begin."""
        if self.turn is None and self.delivery is not None:
            await self._session.wait_until_released(*self.delivery.events)
        self._begin()

    def release(self) -> None:
        """Begin without waiting: on a thread no gate can decide about what is held."""
        if self.turn is None and self.delivery is not None:
            release_now(self._session, self.delivery.events)
        self._begin()

    async def relieved(self, run: Callable[[], Awaitable[Any]]) -> tuple[Any, str]:
        """Run the node, until another one is asked in its place (`Relief.run`)."""
        relief = self._session.relief
        if not relief.is_used or self.turn is None or self.delivery is None:
            return await run(), ""
        return await relief.run(self.turn.instance, self.delivery.events, run)

    def hand_to(self, other: str) -> Any:
        """Another node is asked: its function runs here, and this node's edges go on from it."""
        assert self.turn is not None and self.delivery is not None
        self.run.step(self.turn.relieve, default=None)
        self.turn, self.delivery.instance = None, other
        return self.run.team.in_place(self.node, other)

    def inside(self) -> Any:
        """Around what the node does: it belongs to the node's turn."""
        return nullcontext() if self.turn is None else inside(self.turn)

    # --- in between ---

    def _begin(self) -> None:
        if self.turn is None:
            self.run.step(self.run.begin, self, default=None)
        if self.turn is None or self.run.team.shared.has_failed or self.node in self.run.team.deaf:
            return
        if notes := self.turn.notebook.read():
            self.given = self.run.step(self._annotated, notes, default=self.given)

    def _annotated(self, notes: tuple[str, ...]) -> Any:
        annotate = self.run.team.shared.annotate
        given = self._session.guard.call(annotate, self.given, notes, default=None)
        if given is None:
            detail = {"node": self.node, "why": "annotate gave none back", "notes": len(notes)}
            self._session.guard.incident("note not shown", detail)
            return self.given
        self._has_notes = True
        return given

    def _write(self, writes: Sequence[Write]) -> None:
        """The node writes; what starts others is kept until it is done, if that may be changed."""
        if self._session.relief.is_used and self.delivery is not None:
            answers = self._session.relief.answers
            if not all(
                self.run.step(answers, event, default=True) for event in self.delivery.events
            ):
                return
        if self._has_notes:
            writes = [(channel, without_notes(value)) for channel, value in writes]
        self.writes.extend(writes)
        routes = self.run.team.routes(writes)
        self.routes.extend(routes)
        if routes and self._heals:
            writes = [write for write in writes if route_of(write) is None]
        self._send(writes)

    def _finish(self) -> None:
        going = self.run.step(self.run.finish, self, default=self.routes)
        if self._heals and going:
            self._send([one.write for one in going])

    def _step_aside(self, error: ParentCommand) -> None:
        """A graph inside the node has sent a command to this graph, past its own end."""
        command: Command[Any] = error.args[0]
        if command.graph == Command.PARENT:  # it is for the graph above this one
            self.run.step(self.run.finish, self, default=None)
            return
        self.writes.extend(writes_of(command))
        self.routes.extend(self.run.team.routes(self.writes))
        going = self.run.step(self.run.finish, self, default=self.routes)
        if self._has_notes or (self._heals and going != self.routes):
            kept = [(key, without_notes(value)) for key, value in command._update_as_tuples()]
            error.args = (replace(command, goto=self.run.team.goto(going), update=kept),)


class PatchedNode:
    """Stands where a node with its writers stood, and runs it as it was."""

    def __init__(self, run: GraphRequest, node: str, inner: Any) -> None:
        """Make one for one run."""
        self._run = run
        self._node = node
        self._inner = inner

    def invoke(self, input: Any, config: Any = None, **more: Any) -> Any:
        """Run the node."""
        with NodeRun(self._run, self._node, input, config) as work:
            work.release()
            with work.inside():
                return self._inner.invoke(work.given, work.config, **more)

    async def ainvoke(self, input: Any, config: Any = None, **more: Any) -> Any:
        """Run the node."""
        inner = self._inner
        with NodeRun(self._run, self._node, input, config) as work:
            while True:
                await work.wait_until_released()
                with work.inside():
                    run = partial(inner.ainvoke, work.given, work.config, **more)
                    result, other = await work.relieved(run)
                if not other:
                    return result
                inner = work.hand_to(other)

    def stream(self, input: Any, config: Any = None, **more: Any) -> Iterator[Any]:
        """Run the node, piece by piece."""
        with NodeRun(self._run, self._node, input, config) as work:
            work.release()
            pieces = self._inner.stream(work.given, work.config, **more)
            while True:
                with work.inside():  # the caller's context is its own while it has a piece
                    piece = next(pieces, _END)
                if piece is _END:
                    return
                yield piece

    async def astream(self, input: Any, config: Any = None, **more: Any) -> AsyncIterator[Any]:
        """Run the node, piece by piece."""
        with NodeRun(self._run, self._node, input, config) as work:
            await work.wait_until_released()
            async with aclosing(self._inner.astream(work.given, work.config, **more)) as pieces:
                while True:
                    with work.inside():
                        piece = await anext(pieces, _END)
                    if piece is _END:
                        return
                    yield piece
