"""Turns of wrapped agents: chains of activations, from the call to the return.

A turn that sends before it ends goes on in a next activation, which consumes a *continuation*: a
notice of the agent to itself, or an answer of its own that came back (docs/wrapping.md). In a run
that is no session each activation is a turn.
"""

from __future__ import annotations

from .history import BOUNCED, NOTICE_TYPE, History
from .records import TOOL, Emit, End, Start

MOST_ONWARD = 1_000
"""The number of continuations that are remembered until an activation takes them up."""


def takes_turns(agent: str) -> bool:
    """Tell if an agent has turns; tools (`tool:NAME`) and parts of wrappers have none."""
    return not agent.rpartition("/")[2].startswith(("__", TOOL))


class TurnStarts:
    """Follows the activations of a run, and finds the start of each turn."""

    def __init__(self, is_session: bool) -> None:
        """Begin before the first activation."""
        self._is_session = is_session
        self._ended = "", ""  # the latest ended activation, and its agent
        self._onward: dict[str, str] = {}  # what a turn goes on with -> its agent

    def start(self, record: Start) -> bool:
        """Take a start into account; returns whether a turn starts with it."""
        onward = [self._onward.pop(event, None) for event in record.inputs]
        is_same = self._is_session and (record.agent in onward or not takes_turns(record.agent))
        return not is_same

    def end(self, record: End, agent: str) -> None:
        """Take the end of an activation of an agent into account; empty: the agent is not known."""
        self._ended = record.activation, agent
        # A turn that reads news of the monitor begins its activation anew, with all it had.
        if not (record.outputs or record.error) and all(f.fate == "delay" for f in record.fates):
            for fate in record.fates:
                self._remember(fate.event)

    def emit(self, record: Emit) -> None:
        """Take a final event or a notice into account."""
        if record.by == self._ended[0] and (record.final or record.to == self._ended[1:]):
            self._remember(record.event)

    def accept(self, answer: str) -> None:
        """Take an accepted answer into account: it ends its turn."""
        self._onward.pop(answer, None)

    def _remember(self, event: str) -> None:
        self._onward[event] = self._ended[1]
        if len(self._onward) > MOST_ONWARD:
            del self._onward[next(iter(self._onward))]


def starts_turn(h: History, v: int) -> bool:
    """Tell if an activation of a session starts a turn, as far as the history knows."""
    inputs = h.edge_event[h.first_edge[v] : h.first_edge[v + 1]]
    returned = (n for n in inputs if h.flags[n] & (NOTICE_TYPE | BOUNCED))
    return takes_turns(h.agent(v)) and all(h.sender(n) != h.agent(v) for n in returned)
