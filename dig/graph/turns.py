"""Turns of wrapped agents: chains of activations, from the call to the return.

A turn that sends before it ends goes on in a next activation, which consumes a *continuation*: a
notice of the agent to itself, or an answer of its own that came back (docs/wrapping.md). In a run
that is no session each activation is a turn.
"""

from __future__ import annotations

from .history import BOUNCED, NOTICE_TYPE, History
from .records import NOTICE, TOOL, Deliver, Emit, End, Record, Run, Start

MOST_ONWARD = 1_000
"""The number of continuations that are remembered until an activation takes them up."""


def takes_turns(agent: str) -> bool:
    """Tell if an agent has turns; tools (`tool:NAME`) and parts of wrappers have none."""
    return not agent.rpartition("/")[2].startswith(("__", TOOL))


class TurnStarts:
    """Follows the records of a run, and finds the start of each turn."""

    def __init__(self) -> None:
        """Begin before the first record."""
        self._is_session = False
        self._agents: dict[str, str] = {}  # activation in progress -> agent
        self._ended = "", ""  # the latest ended activation, and its agent
        self._onward: dict[str, str] = {}  # what a turn goes on with -> its agent

    def look(self, record: Record) -> bool:
        """Take a record into account; returns whether a turn starts with it."""
        if type(record) is Run:
            self._is_session = record.session
        if not self._is_session:
            return type(record) is Start
        if type(record) is Start:
            onward = [self._onward.pop(event, "") for event in record.inputs]
            self._agents[record.activation] = record.agent
            return record.agent not in onward and takes_turns(record.agent)
        if type(record) is End:
            agent = self._agents.pop(record.activation, "")
            self._ended = record.activation, agent
            # A turn that reads news of the monitor begins its activation anew, with all it had.
            is_quiet = not (record.outputs or record.error)
            if is_quiet and all(fate.fate == "delay" for fate in record.fates):
                self._onward |= {fate.event: agent for fate in record.fates}
        elif type(record) is Emit and record.by is not None and record.by == self._ended[0]:
            agent = self._ended[1]
            if (record.type, record.to) == (NOTICE, (agent,)) or record.final:
                self._onward[record.event] = agent
        elif type(record) is Deliver and record.to is None:
            self._onward.pop(record.event, None)  # the answer is accepted, so it ends its turn
        for kept in self._onward, self._agents:
            if len(kept) > MOST_ONWARD:
                del kept[next(iter(kept))]
        return False


def starts_turn(h: History, v: int) -> bool:
    """Tell if an activation of a session starts a turn, as far as the history knows."""
    inputs = h.edge_event[h.first_edge[v] : h.first_edge[v + 1]]
    returned = (n for n in inputs if h.flags[n] & (NOTICE_TYPE | BOUNCED))
    return takes_turns(h.agent(v)) and all(h.sender(n) != h.agent(v) for n in returned)
