"""Conditions on which LangGraph stops a request: breakpoints, its limit of steps, a drain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langgraph import errors
from langgraph._internal._config import DEFAULT_RECURSION_LIMIT
from langgraph._internal._constants import (
    CONF,
    CONFIG_KEY_CHECKPOINT_ID,
    CONFIG_KEY_CHECKPOINT_NS,
    CONFIG_KEY_CHECKPOINTER,
    CONFIG_KEY_RUNTIME,
    CONFIG_KEY_THREAD_ID,
    NS_SEP,
)

from dig.adapters.base import CalledOffError

Thread = tuple[str, str]
"""A thread of a checkpointer, and the place of a graph in it."""

TIMEOUTS = (TimeoutError, getattr(errors, "NodeTimeoutError", TimeoutError))
"""The errors of a step, or since 1.2 of a node, that takes too long."""

CALLED_OFF = CalledOffError("the graph ended before this node did")
"""The reason in a trace for nodes that were at work when another one failed."""


PASSED_OVER = CalledOffError("the thread went on without an answer of the person who was asked")
"""The reason in a trace for nodes that waited for a person, and are not run any more."""

FORGOTTEN = CalledOffError("too many threads wait for a person, and this one waits longest")
"""The reason in a trace for nodes whose person is not waited for any more."""

MOST_PAUSED = 1_000
"""The number of threads that a session knows to wait for a person."""


def keep(paused: dict[Thread, Any], thread: Thread, request: Any) -> None:
    """Keep a request for as long as a person is waited for; the oldest of too many is given up."""
    paused[thread] = request
    if len(paused) > MOST_PAUSED:
        paused.pop(next(iter(paused))).abort(FORGOTTEN)


class Breakpoints:
    """The nodes that LangGraph stops before, or after.

    Attributes:
        is_hit: Whether LangGraph has stopped at one of them.
    """

    __hash__ = None  # type: ignore[assignment]  # it is equal to "*", which has a hash

    def __init__(self, nodes: Any) -> None:
        """Take what the user gave: names, or `"*"` for all nodes."""
        self._nodes = nodes
        self.is_hit = False

    def __contains__(self, node: object) -> bool:
        """Whether LangGraph stops at a node; it asks about those that it is about to stop at."""
        is_one = self.has(node)
        self.is_hit = self.is_hit or is_one
        return is_one

    def __eq__(self, other: object) -> bool:
        """Whether LangGraph stops at all nodes, those that run next included."""
        is_all = bool(self._nodes == other)
        self.is_hit = self.is_hit or is_all
        return is_all

    def has(self, node: object) -> bool:
        """Whether a node is one of them; for others than LangGraph."""
        return self._nodes == "*" or node in self._nodes


class StopConditions:
    """The conditions that stop one request to a graph.

    Attributes:
        arguments: The arguments of the call, with breakpoints that can be looked at.
        step: LangGraph's number of the step that goes on.
        thread: The thread that can be gone on with if LangGraph stops; ``None``: nothing is kept.
    """

    def __init__(self, graph: Any, config: Any, arguments: Mapping[str, Any]) -> None:
        """Begin, with what the graph is called with besides its input."""
        self.arguments = dict(arguments)
        self._config = config
        self._before = self._listen("interrupt_before", graph.interrupt_before_nodes)
        self._after = self._listen("interrupt_after", graph.interrupt_after_nodes)
        self._first: int | None = None
        self.step = 0
        self.thread: Thread | None = None
        self._keeps = graph.checkpointer is not False
        self._limit = 0
        self._is_nested = False
        self._control: Any = None

    def _listen(self, name: str, otherwise: Any) -> Breakpoints:
        nodes = self.arguments.get(name) or otherwise
        breakpoints = Breakpoints(nodes)
        if nodes:
            self.arguments[name] = breakpoints
        return breakpoints

    def runs(self, config: Mapping[str, Any]) -> bool:
        """A node runs, with this config: LangGraph has not stopped before it.

        Returns:
            Whether it is the first one of the request.
        """
        self._before.is_hit = self._after.is_hit = False
        conf, self.step = config[CONF], config["metadata"]["langgraph_step"]
        is_first = self._first is None
        if is_first:
            self._first = self.step
            if self._keeps and conf.get(CONFIG_KEY_CHECKPOINTER) is not None:
                place = conf[CONFIG_KEY_CHECKPOINT_NS].rpartition(NS_SEP)[0]
                self.thread = str(conf.get(CONFIG_KEY_THREAD_ID)), place
            self._limit = config.get("recursion_limit", DEFAULT_RECURSION_LIMIT)
            self._is_nested = NS_SEP in conf[CONFIG_KEY_CHECKPOINT_NS]
            self._control = getattr(conf[CONFIG_KEY_RUNTIME], "control", None)  # since 1.2
        return is_first

    @property
    def is_at_breakpoint(self) -> bool:
        """Whether LangGraph stands at a breakpoint."""
        return self._before.is_hit or self._after.is_hit

    @property
    def _steps_left(self) -> int:
        """The recursion limit of a run that ends where the request's own limit would end it."""
        return self._limit - (self.step - (self._first or 0)) - 2

    def allow(self, nodes: Iterable[str]) -> bool:
        """Whether nodes may run once more: LangGraph passes a breakpoint that a run begins at."""
        is_drained = self._control is not None and self._control.drain_requested
        is_over = is_drained or self._is_nested or self._steps_left < 1
        return not is_over and not any(map(self._before.has, nodes))

    def config_of_rest(self) -> dict[str, Any]:
        """The config of a run that goes on from where the last one has ended."""
        config = {**(self._config or {}), "recursion_limit": self._steps_left}
        config.pop("run_id", None)  # the first run has used it
        conf = dict(config.get(CONF) or {})
        conf[CONFIG_KEY_CHECKPOINT_ID] = None  # it is where the first run began
        return {**config, CONF: conf}
