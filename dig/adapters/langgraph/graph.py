"""A compiled graph that tells a session of its runs: a copy, with its nodes tapped in each run."""

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


def monitored(graph: Any, team: GraphTeam, outer: tuple[GraphRequest, str] | None = None) -> Any:
    """A copy of a graph that is monitored; the graph itself is not touched.

    Args:
        graph: The graph.
        team: Its structure, and what it shares with others.
        outer: The request to the graph that this one is a node of, and the name of that node.
    """
    twin, kind = shallow(graph), graph.__class__
    twin.__class__ = _kind(kind)
    twin.dig_team, twin.dig_outer = team, outer
    return twin


def restore(twin: Any) -> None:
    """Have a monitored copy run like its original from now on."""
    twin.dig_team = None


@cache
def _kind(kind: Any) -> Any:
    """A class of graphs that are monitored; whatever runs a graph comes through these two."""

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
            call = called(self, input, config, more)
            if call is None:
                yield from kind.stream(self, input, config, **more)
                return
            with call as asked:
                while asked.goes_on:
                    with asked.running():
                        yield from kind.stream(asked.graph, *asked.given, **asked.more)
                    asked.submit_now()

        @wraps(kind.astream)
        async def astream(self, input: Any, config: Any = None, **more: Any) -> AsyncIterator[Any]:
            call = called(self, input, config, more)
            if call is None:
                async with aclosing(kind.astream(self, input, config, **more)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            with call as asked:
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


def called(twin: Any, given: Any, config: Any, more: Mapping[str, Any]) -> GraphCall | None:
    """A call of a monitored copy; ``None``: it is not monitored any more."""
    team, within = twin.dig_team, None
    if team is not None and twin.dig_outer is not None:
        request, node = twin.dig_outer
        caller = current_turn(request.session)
        if caller is None:  # the session has ended, or its node is given up
            return None
        within = Within(request, node, caller)
    return None if team is None else GraphCall(twin, team, given, config, more, within)


class GraphCall:
    """A request, from the call of a graph to its return; a context manager.

    Attributes:
        graph: A copy of the graph for this request alone, so that its nodes know their request.
        given: The input of the graph, and the config.
        more: The further arguments of the call.
        goes_on: Whether the graph is to run, for the first time or once more.
    """

    def __init__(
        self,
        twin: Any,
        team: GraphTeam,
        given: Any,
        config: Any,
        more: Mapping[str, Any],
        within: Within | None,
    ) -> None:
        """Begin, with what the graph is called with, and where within another graph."""
        self._session = team.shared.session
        stops = StopConditions(twin, config, more)
        self._request = GraphRequest(team, given, stops, within)
        self.graph = shallow(twin)
        self.graph.__class__ = twin._dig_kind
        self.graph.nodes = {
            key: tapped(node, f"{team.prefix}{plain(key)}", self._request)
            for key, node in twin.nodes.items()
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
            self._abort(error)

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
        await self._session.wait_until_released(*self._request.last_words)
        self._request.step(self._request.submit, default=None)
        await self._session.wait_until_released(*self._request.answers)
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
            self._abort(ADAPTER_FAILED)

    def _abort(self, error: BaseException) -> None:
        """Tell the end of a request that came to nothing, as far as its state is known."""
        if not self._session.guard.run(self._request.abort, error, default=False):
            self._request.on_failure()  # a graph around this one is not healed for what is left


def tapped(node: Any, name: str, request: GraphRequest) -> Any:
    """A copy of a node that tells a request of its work, and if it is a graph, of its nodes'."""
    team = request.team.inner.get(name)
    bound = None if team is None else monitored(node.bound, team, (request, name))
    inner = node.node if bound is None else node.copy({"bound": bound}).node
    if inner is None:
        return node
    twin = shallow(node)
    twin.__dict__["node"] = PatchedNode(request, name, inner)  # in place of the cached property
    return twin
