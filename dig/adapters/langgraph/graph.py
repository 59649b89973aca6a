"""A compiled graph that tells a session of its runs: a copy, with its nodes tapped in each run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from copy import copy as shallow
from functools import cache, wraps
from typing import Any

from langgraph.errors import GraphRecursionError

from dig.adapters.base import ADAPTER_FAILED

from .messages import GraphTeam, release_now
from .node import PatchedNode
from .routes import plain
from .run import GraphRequest, StopConditions


def monitored(graph: Any, team: GraphTeam) -> Any:
    """A copy of a graph that is monitored; the graph itself is not touched."""
    twin, kind = shallow(graph), graph.__class__
    twin.__class__ = _kind(kind)
    twin.dig_team = team
    return twin


def restore(twin: Any) -> None:
    """Have a monitored copy run like its original from now on."""
    twin.dig_team = None


@cache
def _kind(kind: Any) -> Any:
    """A class of graphs that are monitored; whatever runs a graph comes through these two."""

    class Monitored(kind):  # type: ignore[misc]
        dig_team: GraphTeam | None

        @wraps(kind.copy)
        def copy(self, update: dict[str, Any] | None = None) -> Any:
            bare = shallow(self)
            bare.__dict__.pop("dig_team", None)
            twin = kind.copy(bare, update)
            twin.dig_team = self.dig_team
            return twin

        @wraps(kind.stream)
        def stream(self, input: Any, config: Any = None, **more: Any) -> Iterator[Any]:
            if self.dig_team is None:
                yield from kind.stream(self, input, config, **more)
                return
            with GraphCall(self, self.dig_team, input, config, more) as asked:
                while asked.goes_on:
                    with asked.running():
                        yield from kind.stream(asked.graph, *asked.given, **asked.more)
                    asked.submit_now()

        @wraps(kind.astream)
        async def astream(self, input: Any, config: Any = None, **more: Any) -> AsyncIterator[Any]:
            if self.dig_team is None:
                async with aclosing(kind.astream(self, input, config, **more)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            with GraphCall(self, self.dig_team, input, config, more) as asked:
                while asked.goes_on:
                    stream = kind.astream(asked.graph, *asked.given, **asked.more)
                    with asked.running():
                        async with aclosing(stream) as pieces:
                            async for piece in pieces:
                                yield piece
                    await asked.submit()

    Monitored.__name__, Monitored.__qualname__ = kind.__name__, kind.__qualname__
    Monitored.__module__ = kind.__module__
    Monitored._dig_kind = kind
    return Monitored


class GraphCall:
    """A request from outside, from the call of a graph to its return; a context manager.

    Attributes:
        graph: A copy of the graph for this request alone, so that its nodes know their request.
        given: The input of the graph, and the config.
        more: The further arguments of the call.
        goes_on: Whether the graph is to run, for the first time or once more.
    """

    def __init__(
        self, twin: Any, team: GraphTeam, given: Any, config: Any, more: Mapping[str, Any]
    ) -> None:
        """Begin, with what the graph is called with."""
        self._session = team.session
        stops = StopConditions(twin, config, more)
        self._request = GraphRequest(team, given, stops)
        self.graph = shallow(twin)
        self.graph.__class__ = twin._dig_kind
        self.graph.nodes = {
            name: tapped(node, plain(name), self._request) for name, node in twin.nodes.items()
        }
        self.given: tuple[Any, Any] = (given, config)
        self.more = stops.arguments
        self.goes_on = True
        self._is_again = False

    def __enter__(self) -> GraphCall:
        """The graph is called."""
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """The call returns, or raises, which goes on."""
        if error is not None:
            self._session.guard.run(self._request.abort, error, default=None)

    @contextmanager
    def running(self) -> Iterator[None]:
        """The graph runs; once more it may not need more steps than the request has left."""
        try:
            yield
        except GraphRecursionError:
            if not self._is_again:
                raise
            self._request.step(self._request.cut_short, default=None)

    async def submit(self) -> None:
        """The graph has run to its end; its answer is handed over when nothing keeps it."""
        await self._session.released(*self._request.last_words)
        self._request.step(self._request.submit, default=None)
        await self._session.released(*self._request.answers)
        self._go_on()

    def submit_now(self) -> None:
        """The same at once, even if a gate would wait: on a thread none can decide."""
        release_now(self._session, self._request.last_words)
        self._request.step(self._request.submit, default=None)
        release_now(self._session, self._request.answers)
        self._go_on()

    def _go_on(self) -> None:
        again = self._request.step(self._request.again, default=None)
        self.goes_on = self._is_again = again is not None
        self.given = again or self.given
        if self._request.has_failed:
            self._session.guard.run(self._request.abort, ADAPTER_FAILED, default=None)


def tapped(node: Any, name: str, request: GraphRequest) -> Any:
    """A copy of a node that tells a request of its work."""
    inner = node.node
    if inner is None:
        return node
    twin = shallow(node)
    twin.__dict__["node"] = PatchedNode(request, name, inner)  # in place of the cached property
    return twin
