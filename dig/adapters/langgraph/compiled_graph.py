"""A monitored copy of a compiled graph, with other nodes for each run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from copy import copy as shallow
from functools import cache, wraps
from typing import Any

from langgraph.errors import GraphRecursionError

from dig.adapters.base import ADAPTER_FAILED, current_turn

from .messages import GraphTeam, release_now
from .node import PatchedNode
from .routes import plain
from .run import GraphRequest, Within
from .stops import StopConditions


def monitor(graph: Any, team: GraphTeam, outer: tuple[GraphRequest, str] | None = None) -> Any:
    """Make a monitored copy of a graph; the graph itself is not touched.

    Args:
        graph: The graph.
        team: The structure of the graph.
        outer: The request to the graph around this one, and the node there that is this graph.
    """
    # A class of its own, since a copy of this copy (`with_config`) is to be monitored, too.
    twin, kind = shallow(graph), graph.__class__
    twin.__class__ = _kind(kind)
    twin.dig_team, twin.dig_outer = team, outer
    return twin


def restore(twin: Any) -> None:
    """Make a monitored copy run like the original from now on."""
    twin.dig_team = None


@cache
def _kind(kind: Any) -> Any:
    """The class of monitored graphs: all ways to run a graph pass `stream` or `astream`."""

    class Monitored(kind):  # type: ignore[misc]
        dig_team: GraphTeam | None
        dig_outer: tuple[GraphRequest, str] | None

        @wraps(kind.copy)
        def copy(self, update: dict[str, Any] | None = None) -> Any:
            bare = shallow(self)
            for mine in ("dig_team", "dig_outer"):
                bare.__dict__.pop(mine, None)
            twin = kind.copy(bare, update)
            twin.dig_team, twin.dig_outer = self.dig_team, self.dig_outer
            return twin

        @wraps(kind.stream)
        def stream(self, input: Any, config: Any = None, **more: Any) -> Iterator[Any]:
            call = _call(self, input, config, more)
            if call is None:
                yield from kind.stream(self, input, config, **more)
                return
            with call:
                while call.goes_on:
                    with call.running():
                        yield from kind.stream(call.graph, *call.input, **call.more)
                    call.submit_now()

        @wraps(kind.astream)
        async def astream(self, input: Any, config: Any = None, **more: Any) -> AsyncIterator[Any]:
            call = _call(self, input, config, more)
            if call is None:
                async with aclosing(kind.astream(self, input, config, **more)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            with call:
                while call.goes_on:
                    stream = kind.astream(call.graph, *call.input, **call.more)
                    with call.running():
                        async with aclosing(stream) as pieces:
                            async for piece in pieces:
                                yield piece
                    await call.submit()

    Monitored.__name__, Monitored.__qualname__ = kind.__name__, kind.__qualname__
    Monitored.__module__ = kind.__module__
    Monitored._dig_kind = kind
    return Monitored


def _call(twin: Any, input: Any, config: Any, more: Mapping[str, Any]) -> GraphCall | None:
    """A call of a monitored copy; ``None``: the copy is not monitored any more."""
    team, within = twin.dig_team, None
    if team is not None and twin.dig_outer is not None:
        request, node = twin.dig_outer
        caller = current_turn(request.session)
        if caller is None:  # the session has ended, or its node is given up
            return None
        within = Within(request, node, caller)
    return None if team is None else GraphCall(twin, team, input, config, more, within)


class GraphCall:
    """A request, from the call of a graph to the return; a context manager.

    Attributes:
        graph: A copy of the graph for this request alone, so that its nodes know their request.
        input: The input of the graph, and the config.
        more: The further arguments of the call.
        goes_on: Whether the graph is to run, for the first time or once more.
    """

    def __init__(
        self, twin: Any, team: GraphTeam, input: Any, config: Any, more: Mapping[str, Any],
        within: Within | None,
    ) -> None:  # fmt: skip
        """Begin a request to a graph, with the arguments of the call."""
        stops = StopConditions(twin, config, more)
        self._request = GraphRequest(team, input, stops, within)
        self._session = self._request.session
        self.graph = shallow(twin)
        self.graph.__class__ = twin._dig_kind
        self.graph.nodes = {
            key: _patch(node, f"{team.prefix}{plain(key)}", self._request)
            for key, node in twin.nodes.items()
        }
        self.input: tuple[Any, Any] = (input, config)
        self.more = stops.arguments
        self.goes_on = True
        self._is_again = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._abort(error)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the graph; a further run ends quietly where the request's own limit would end it."""
        try:
            yield
        except Exception as error:
            if (exceeded := self._request.exceeded()) is not None:
                raise exceeded from error
            if not (isinstance(error, GraphRecursionError) and self._is_again):
                raise
            self._request.step(self._request.cut_short, default=None)
        if (exceeded := self._request.exceeded()) is not None:
            raise exceeded

    async def submit(self) -> None:
        """Submit the answer of an ended graph, and wait until no gate keeps the answer."""
        await self._session.wait_until_released(*self._request.last_words)
        self._request.step(self._request.submit, default=None)
        await self._session.wait_until_released(*self._request.answers)
        self._go_on()

    def submit_now(self) -> None:
        """Submit the answer at once, even if a gate would wait: on a thread no gate can decide."""
        release_now(self._session, self._request.last_words)
        self._request.step(self._request.submit, default=None)
        release_now(self._session, self._request.answers)
        self._go_on()

    def _go_on(self) -> None:
        again = self._request.step(self._request.next_run, default=None)
        self.goes_on = self._is_again = again is not None
        self.input = again or self.input
        if self._request.has_failed:
            self._abort(ADAPTER_FAILED)

    def _abort(self, error: BaseException) -> None:
        """Report the end of a failed request, as far as the state is known."""
        if not self._session.guard.run(self._request.abort, error, default=False):
            self._request.on_failure()  # a graph around this one is not healed for what is left


def _patch(node: Any, name: str, request: GraphRequest) -> Any:
    """Make a copy of a node with reports to a request; an inner graph is monitored."""
    team = request.team.inner.get(name)
    bound = None if team is None else monitor(node.bound, team, (request, name))
    inner = node.node if bound is None else node.copy({"bound": bound}).node
    if inner is None:
        return node
    twin = shallow(node)
    # `node` is a cached property, so the value in `__dict__` stands in its place.
    twin.__dict__["node"] = PatchedNode(request, name, inner)
    return twin
