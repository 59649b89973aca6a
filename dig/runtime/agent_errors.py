"""Errors of activations in a trace, and the requests left without an answer by errors."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from dig._util.ranges import RangeSet, union
from dig._util.redaction import mask_secrets
from dig._util.text import one_line
from dig.graph.records import Failure, micros
from dig.monitor.messages import Effect
from dig.monitor.monitor import Monitor

MOST_IN_ERROR = 300
"""The number of characters of an exception's message that are kept, unless it is said."""

MOST_STACK = 8_000
"""The number of characters of a stack trace that are kept, from its end."""

STACK = "stack trace"
"""The incident with the stack trace of an activation that raised."""

RECORDED_STACK = "_dig_stack"
"""The attribute of an exception that a repeated run raises again: its recorded stack trace."""

_OURS = str(Path(__file__).parents[1])


def describe(error: BaseException, most: int = MOST_IN_ERROR) -> str:
    """Describe an exception in one line; the class alone, if the text cannot be had.

    A plain `BaseException` is a reason that nobody raises, so it is told without the class.
    """
    kind, text = type(error).__name__, ""
    with suppress(Exception):
        text = str(error)
    if type(error) is BaseException and text:
        kind, text = text, ""
    # Masked before it is cut: half a secret would not be known as one.
    return one_line(mask_secrets(f"{kind}: {text}" if text else kind), most)


def stack_of(error: BaseException) -> str:
    """The stack trace of an exception without values of variables; of a long trace the end.

    It begins where the code of others does. What is raised within this package has none: its
    message is to say enough, and its lines move with every version.
    """
    recorded = getattr(error, RECORDED_STACK, None)
    if recorded is not None:
        return str(recorded)
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OURS):
        frames = frames.tb_next
    if frames is None:
        return ""
    with suppress(Exception):  # the text of a user's exception may raise
        text = mask_secrets("".join(traceback.format_exception(type(error), error, frames)))
        return text if len(text) <= MOST_STACK else f"...{text[3 - MOST_STACK :]}"
    return ""


def stack_incident(activation: str, stack: str) -> tuple[str, Any]:
    """Make the incident with the stack trace of an activation."""
    return STACK, {"activation": activation, "text": stack}


class TeamRequests:
    """The requests to a team: open ones, and those lost with their agent.

    Attributes:
        abandoned: The events from outside for whose answers nobody waits any more.
        lost: By agent that failed for good, the latest last: the activation, and why in words.
    """

    def __init__(self, monitor: Monitor) -> None:
        """Begin, before the first request."""
        self.abandoned: set[str] = set()
        self.lost: dict[str, tuple[str, str]] = {}
        self._monitor = monitor

    def open(self, among: RangeSet | None = None) -> list[str]:
        """The events from outside with an open request, neither answered nor failed.

        A run that is no session has one request, that of its first event.

        Args:
            among: The source numbers that are looked at; ``None``: all.
        """
        graph, history = self._monitor.graph, self._monitor.graph.history
        waiting = RangeSet() if graph.is_over else graph.problems.waiting
        if graph.run.session and among is not None:
            waiting = waiting.common(among)
        requests = [
            history.event_ids[history.source_events[source]]
            for source in waiting
            if history.is_work(history.source_events[source])
            and not any(p.is_failed for p in graph.problems.touching(RangeSet.single(source)))
            and not self._is_lost(history.event_ids[history.source_events[source]])
        ]
        requests = requests if graph.run.session else requests[:1]
        return [event for event in requests if event not in self.abandoned]

    def _is_lost(self, request: str) -> bool:
        """Whether no agent of a session can ever reach a request, as OE has said.

        A session that evicts history gives such a request up, and cannot count it as open.
        """
        graph = self._monitor.graph
        event = graph.live.get(request) if graph.run.session else None
        if event is None or event.cause is None:
            return False
        return event.us_lost + micros(graph.run.limits.oe_window_s) <= graph.now

    def lost_work(self) -> Iterator[tuple[list[str], str, str]]:
        """The agents with work and without further attempts, the latest first.

        Yields:
            The events of the open requests that their work is about; the activation; and why.
        """
        graph = self._monitor.graph
        for agent, (activation, reason) in reversed(self.lost.items()):
            buffer = graph.agents[agent].buffer if agent in graph.agents else {}
            if held := [event.sources for event in buffer.values() if event.id in graph.open]:
                yield self.open(union(held)), activation, reason

    def fail(self, failure: str, events: Iterable[str], by: str | None, error: str) -> list[Effect]:
        """Some requests have ended without an answer, as `Monitor.request_failed` writes down."""
        failed = partial(self._monitor.request_failed, cast("Failure", failure), activation=by)
        return [effect for event in events for effect in failed(event=event, error=error)]
