"""Conditions for a stop of LangGraph: breakpoints, the limit of steps, a drain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langgraph import errors
from langgraph._internal import _constants as constants
from langgraph._internal._config import DEFAULT_RECURSION_LIMIT

from dig.adapters.base import CalledOffError

Thread = tuple[str, str]
"""A thread of a checkpointer, and the place of a graph in it."""

TIMEOUTS = (TimeoutError, getattr(errors, "NodeTimeoutError", TimeoutError))
"""The errors of a step, or since LangGraph 1.2 of a node, that takes too long."""

RESUMES = "invoke the graph with Command(resume=...) on the same thread"
"""The way to answer an interrupt."""

CALLED_OFF = CalledOffError("the graph ended before this node did")
"""The recorded error of nodes that were at work when another node failed."""


PASSED_OVER = CalledOffError("the thread went on without an answer of the person who was asked")
"""The recorded error of nodes that waited for a person, and are not run any more."""

FORGOTTEN = CalledOffError("too many threads wait for a person, and this one waits longest")
"""The recorded error of nodes whose person is not waited for any more."""

MOST_PAUSED = 1_000
"""The greatest number of threads of a session that wait for a person."""


def keep(paused: dict[Thread, Any], thread: Thread, request: Any) -> None:
    """Keep a request until a person has answered; the oldest of too many is given up."""
    paused[thread] = request
    if len(paused) > MOST_PAUSED:
        paused.pop(next(iter(paused))).abort(FORGOTTEN)


class Breakpoints:
    """The breakpoints before or after nodes, with a sign of LangGraph's stop.

    LangGraph asks `nodes == "*"`, else `node in nodes`, only when it is about to stop, and leaves
    no other sign of its stop.

    Attributes:
        is_hit: Whether LangGraph has stopped at one of the nodes.
    """

    __hash__ = None  # type: ignore[assignment]  # it is equal to "*", which has a hash

    def __init__(self, nodes: Any) -> None:
        """Begin with the user's names, or `"*"` for all nodes."""
        self._nodes = nodes
        self.is_hit = False

    def __contains__(self, node: object) -> bool:
        is_breakpoint = self.has(node)
        self.is_hit = self.is_hit or is_breakpoint
        return is_breakpoint

    def __eq__(self, other: object) -> bool:
        is_all = bool(self._nodes == other)
        self.is_hit = self.is_hit or is_all
        return is_all

    def has(self, node: object) -> bool:
        """Whether a node is a breakpoint, without a sign of a stop."""
        return self._nodes == "*" or node in self._nodes


class StopConditions:
    """The conditions for a stop of a request to a graph.

    Attributes:
        arguments: The arguments of the call, with breakpoints that note a stop.
        step: LangGraph's number of the current step.
        thread: The thread that can go on after a stop; ``None``: no checkpointer keeps the state.
    """

    def __init__(self, graph: Any, config: Any, arguments: Mapping[str, Any]) -> None:
        """Begin a request, with the config and the further arguments of the call."""
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
        """Note the run of a node with a config: LangGraph has not stopped before the node.

        Returns:
            Whether the node is the first of the request.
        """
        self._before.is_hit = self._after.is_hit = False
        conf, self.step = config[constants.CONF], config["metadata"]["langgraph_step"]
        is_first = self._first is None
        if is_first:
            self._first = self.step
            if self._keeps and conf.get(constants.CONFIG_KEY_CHECKPOINTER) is not None:
                place = conf[constants.CONFIG_KEY_CHECKPOINT_NS].rpartition(constants.NS_SEP)[0]
                self.thread = str(conf.get(constants.CONFIG_KEY_THREAD_ID)), place
            self._limit = config.get("recursion_limit", DEFAULT_RECURSION_LIMIT)
            self._is_nested = constants.NS_SEP in conf[constants.CONFIG_KEY_CHECKPOINT_NS]
            # Since LangGraph 1.2.
            self._control = getattr(
                conf[constants.CONFIG_KEY_RUNTIME], "control", None
            )  # since 1.2
        return is_first

    @property
    def is_at_breakpoint(self) -> bool:
        """Whether LangGraph has stopped at a breakpoint."""
        return self._before.is_hit or self._after.is_hit

    @property
    def _steps_left(self) -> int:
        """The recursion limit of a further run, by the rest of the request's limit."""
        return self._limit - (self.step - (self._first or 0)) - 2

    def allow(self, nodes: Iterable[str]) -> bool:
        """Whether nodes may run once more; not past a breakpoint, which a new run would pass."""
        is_drained = self._control is not None and self._control.drain_requested
        is_over = is_drained or self._is_nested or self._steps_left < 1
        return not is_over and not any(map(self._before.has, nodes))

    def config_of_rest(self) -> dict[str, Any]:
        """The config of a further run, from the end of the last run."""
        config = {**(self._config or {}), "recursion_limit": self._steps_left}
        config.pop("run_id", None)  # the first run has used it
        conf = dict(config.get(constants.CONF) or {})
        conf[constants.CONFIG_KEY_CHECKPOINT_ID] = None  # it is where the first run began
        return {**config, constants.CONF: conf}
