"""A node at work, between LangGraph and the session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langgraph._internal._constants import (
    CONF,
    CONFIG_KEY_READ,
    CONFIG_KEY_SEND,
    CONFIG_KEY_TASK_ID,
)
from langgraph.errors import GraphBubbleUp, GraphInterrupt, ParentCommand
from langgraph.types import Command

from dig.adapters.base import CalledOffError, Turn, inside

from .messages import NodeWork, release_now
from .routes import HANDS_OVER, Write, as_words, without_ids, without_notes, writes_of
from .run import GraphRequest

IN_CALLBACK = "LangGraph tells of a tool in a callback, which waits for nobody"
"""The reason for a call or a result of a tool that was not held."""

_END = object()


NEVER_TOLD = CalledOffError("the node ended before this tool returned")
"""The recorded error of tools that did not return; never raised."""


def _tool_error(error: BaseException | None) -> BaseException:
    """The recorded error of a tool; after asking a person, a tool is called again."""
    return NEVER_TOLD if error is None or isinstance(error, GraphBubbleUp) else error


class NodeWatcher(BaseCallbackHandler):  # type: ignore[misc]
    """Reports tools and usage of a node to the session, also of graphs within the node.

    LangChain calls a handler where the tool runs, and cannot wait for a gate. Tools that hand over
    to another node are not reported.
    """

    run_inline = True

    def __init__(self, work: NodeRun) -> None:
        self._work = work
        self._run, self._tools = work.run, work.run.tools

    def add_to(self, callbacks: Any) -> Any:
        """Add the watcher to callbacks, in place of the watcher of an outer node."""

        def is_outer(handler: BaseCallbackHandler) -> bool:
            return isinstance(handler, NodeWatcher) and handler._run.session is self._run.session

        if isinstance(callbacks, BaseCallbackManager):
            callbacks = callbacks.copy()
            for outer in filter(is_outer, callbacks.handlers):
                callbacks.remove_handler(outer)
            callbacks.add_handler(self, inherit=True)
            return callbacks
        return [*(handler for handler in callbacks or () if not is_outer(handler)), self]

    def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: Any, inputs: Any = None, **more: Any
    ) -> None:
        """Report the call of a tool."""
        name = str((serialized or {}).get("name") or "")
        is_shown = self._run.team.shared.shows_tools and not name.startswith(HANDS_OVER)
        if self._work.turn is not None and name and is_shown:
            arguments = input_str if inputs is None else inputs
            self._run.step(self._call, run_id, self._work.turn, name, arguments, default=None)

    def on_tool_end(self, output: Any, *, run_id: Any, **more: Any) -> None:
        """Report the result of a tool."""
        result = without_ids(getattr(output, "content", output))
        self._run.step(self._complete, run_id, as_words(result), default=None)

    def on_tool_error(self, error: BaseException, *, run_id: Any, **more: Any) -> None:
        """Report the exception of a tool."""
        self._run.step(self._tools.fail, run_id, _tool_error(error), default=None)

    def on_llm_end(self, response: Any, **more: Any) -> None:
        """Report the usage of a model."""
        for message in [getattr(it, "message", None) for row in response.generations for it in row]:
            usage = getattr(message, "usage_metadata", None)
            if usage and self._work.turn is not None:
                cached = (usage.get("input_token_details") or {}).get("cache_read", 0)
                model = getattr(message, "response_metadata", {}).get("model_name")
                self._work.turn.spend({**usage, "cached_tokens": cached, "model": model})

    def _call(self, key: Any, caller: Turn, name: str, arguments: Any) -> None:
        event = self._tools.call(key, caller, name, arguments)
        release_now(self._run.session, (event,), IN_CALLBACK)
        self._tools.begin(key)

    def _complete(self, key: Any, result: Any) -> None:
        release_now(self._run.session, (self._tools.complete(key, result),), IN_CALLBACK)
        self._tools.receive(key)


class NodeRun(NodeWork):
    """An execution of a node, as a context manager."""

    def __init__(self, run: GraphRequest, node: str, input: Any, config: Any) -> None:
        conf = config[CONF]
        # LangGraph tells only by the path of a task whether a `Send` has started the node.
        is_sent = config["metadata"].get("langgraph_path", ("",))[0] == "__pregel_push"
        config = {**config, CONF: {**conf, CONFIG_KEY_SEND: self._write}}
        self.run = run
        budget = run.session.budget
        if run.team.shared.shows_tools or (budget is not None and budget.is_metered):
            config["callbacks"] = NodeWatcher(self).add_to(config.get("callbacks"))
        super().__init__(node, str(conf.get(CONFIG_KEY_TASK_ID)), is_sent, input, config)
        self._session = run.session
        self._heals = self._session.mode == "heal"
        self._send = conf[CONFIG_KEY_SEND]
        self._has_notes = False
        self._entry: Any = None  # the runnable of the entry node, in its last turn

    def __enter__(self) -> NodeRun:
        self.run.step(self.run.expect, self, default=None)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.config = {}  # it leads back here, and to the state of the whole run
        if self.turn is not None and self.run.team.shared.shows_tools:
            self.run.step(self.run.tools.give_up, _tool_error(error), self.turn, default=None)
        if error is None:
            routes = self.run.step(self.run.finish, self, default=self.routes)
            if self._heals and routes:
                self._send([route.write for route in routes])
        elif isinstance(error, ParentCommand):
            self._take_command(error)
        elif isinstance(error, GraphInterrupt):
            self.run.step(self.run.pause, self, error.args[0] if error.args else (), default=None)
        else:
            self.run.step(self.run.fail, self, error, default=None)

    async def wait_until_released(self) -> None:
        """Wait until no event of the delivery is held any more, and begin."""
        if self.turn is None and self.delivery is not None:
            await self._session.wait_until_released(*self.delivery.events)
        self._begin()

    def release(self) -> None:
        """Begin without waiting, since no gate can decide on a thread."""
        if self.turn is None and self.delivery is not None:
            release_now(self._session, self.delivery.events)
        self._begin()

    async def run_until_relieved(self, run: Callable[[], Awaitable[Any]]) -> tuple[Any, str]:
        """Run the node, until a substitute is asked (`Relief.run`)."""
        relief = self._session.relief
        if not relief.is_used or self.turn is None or self.delivery is None:
            return await run(), ""
        return await relief.run(self.turn.instance, self.delivery.events, run)

    def hand_to(self, substitute: str) -> Any:
        """Return the substitute's function with the edges of this node."""
        assert self.turn is not None and self.delivery is not None
        self.run.step(self.turn.relieve, default=None)
        self.turn, self.delivery.instance = None, substitute
        nodes, key = self.run.team.graph.nodes, self.run.team.key
        return nodes[key(self.node)].copy({"bound": nodes[key(substitute)].bound}).node

    def runnable(self, inner: Any) -> Any:
        """The runnable of the node, or of the entry node; ``None``: there is no budget left."""
        return inner if self.refused is None else self._entry

    def in_turn(self) -> Any:
        """A context for the code of the node: the node's turn."""
        return nullcontext() if self.turn is None else inside(self.turn)

    # --- in between ---

    def _begin(self) -> None:
        if self.turn is None:
            self.run.step(self.run.begin, self, default=None)
        if self.turn is not None and self.refused is not None:
            self.run.step(self._stand_in, default=None)
        if self.turn is None or self.run.team.shared.has_failed or self.node in self.run.team.deaf:
            return
        if notes := self.turn.notebook.read():
            self.run.step(self._annotate, notes, default=None)

    def _stand_in(self) -> None:
        """Take the runnable of the entry node, and the state for it as it stands now."""
        entry = self.run.team.graph.nodes[self.run.team.key(self.node)]
        state = self.config[CONF][CONFIG_KEY_READ](entry.channels, False)
        self.input = state if entry.mapper is None else entry.mapper(state)
        self._entry = entry.node

    def _annotate(self, notes: tuple[str, ...]) -> None:
        annotate = self.run.team.shared.annotate
        annotated = self._session.guard.call(annotate, self.input, notes, default=None)
        if annotated is None:
            detail = {"node": self.node, "why": "annotate gave none back", "notes": len(notes)}
            self._session.guard.incident("note not shown", detail)
        else:
            self.input, self._has_notes = annotated, True

    def _write(self, writes: Sequence[Write]) -> None:
        """Take the writes of the node; with healing, routes are kept until the node is done."""
        if self._session.relief.is_used and self.delivery is not None:
            answers, events = self._session.relief.answers, self.delivery.events
            if not all(self.run.step(answers, event, default=True) for event in events):
                return
        if self._has_notes:
            writes = [(channel, without_notes(value)) for channel, value in writes]
        routes, others = self.run.team.split(writes)
        self.writes.extend(others)
        if self.refused is None:  # else no node comes after this one
            self.routes.extend(routes)
        self._send(others if self._heals or self.refused is not None else writes)

    def _take_command(self, error: ParentCommand) -> None:
        """Take a command from a graph inside the node, given before the end of the graph."""
        command: Command[Any] = error.args[0]
        if command.graph == Command.PARENT:  # it is for the graph above this one
            self.run.step(self.run.finish, self, default=None)
            return
        routes, others = self.run.team.split(writes_of(command))
        self.writes.extend(others)
        if self.refused is None:
            self.routes.extend(routes)
        routes = self.run.step(self.run.finish, self, default=self.routes)
        if self._has_notes or self.refused or (self._heals and routes != self.routes):
            update = [(key, without_notes(value)) for key, value in command._update_as_tuples()]
            key = self.run.team.key
            goto = [route.value if route.is_send else key(route.node) for route in routes]
            error.args = (replace(command, goto=goto, update=update),)


@dataclass
class PatchedNode:
    """Runs a node with its writers, in the place of the node, for one request."""

    _run: GraphRequest
    _node: str
    _inner: Any

    def invoke(self, input: Any, config: Any = None, **more: Any) -> Any:
        """Run the node."""
        with NodeRun(self._run, self._node, input, config) as work:
            work.release()
            inner = work.runnable(self._inner)
            with work.in_turn():
                return inner and inner.invoke(work.input, work.config, **more)

    async def ainvoke(self, input: Any, config: Any = None, **more: Any) -> Any:
        """Run the node."""
        inner = self._inner
        with NodeRun(self._run, self._node, input, config) as work:
            while True:
                await work.wait_until_released()
                inner = work.runnable(inner)
                if inner is None:
                    return None
                with work.in_turn():
                    run = partial(inner.ainvoke, work.input, work.config, **more)
                    result, substitute = await work.run_until_relieved(run)
                if not substitute:
                    return result
                inner = work.hand_to(substitute)

    def stream(self, input: Any, config: Any = None, **more: Any) -> Iterator[Any]:
        """Run the node, piece by piece."""
        with NodeRun(self._run, self._node, input, config) as work:
            work.release()
            inner = work.runnable(self._inner)
            pieces = inner.stream(work.input, work.config, **more) if inner else iter(())
            while True:
                with work.in_turn():  # the caller's context is its own while it has a piece
                    piece = next(pieces, _END)
                if piece is _END:
                    return
                yield piece

    async def astream(self, input: Any, config: Any = None, **more: Any) -> AsyncIterator[Any]:
        """Run the node, piece by piece."""
        with NodeRun(self._run, self._node, input, config) as work:
            await work.wait_until_released()
            inner = work.runnable(self._inner)
            if inner is None:
                return
            async with aclosing(inner.astream(work.input, work.config, **more)) as pieces:
                while True:
                    with work.in_turn():
                        piece = await anext(pieces, _END)
                    if piece is _END:
                        return
                    yield piece
