"""One agent calls another, or somebody outside calls an agent, and waits for what it returns.

The call is an event to the callee, what it returns an event back (a final one, to the outside);
docs/wrapping.md has the rules, and what an exception or a cancellation leaves behind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from .payload import as_payload
from .running import current, inside
from .session import Session
from .turn import Turn

Work = Callable[[str, tuple[str, ...]], Awaitable[Any]]
"""Calls an agent itself, by its name, with the notes that stand beside what it is called with.

It is the agent that was asked, unless healing has sent the call to another.
"""

MOST_SENT = 64
"""How many messages of a turn are remembered, to know one again."""


class Sent:
    """What a turn was called with and has sent on, to know a message again.

    Attributes:
        received: The event that the turn was called with, and its payload.
    """

    def __init__(self, event: str, payload: Any) -> None:
        """Begin with what the turn was called with."""
        self.received = (event, payload)
        self._sent: list[tuple[str, Any, set[str]]] = []  # event, payload, the agents asked

    def add(self, event: str, payload: Any, agent: str) -> None:
        """The turn has sent a message to an agent."""
        self._sent.append((event, payload, {agent}))
        del self._sent[:-MOST_SENT]

    def again(self, payload: Any, agent: str) -> str | None:
        """The message that is now sent to a further agent, if it was sent before."""
        for event, before, agents in self._sent:
            if before == payload and agent not in agents:
                agents.add(agent)
                return event
        return None

    def forget(self, event: str) -> None:
        """A message has failed: sending it again is another attempt."""
        self._sent = [one for one in self._sent if one[0] != event]


class Call:
    """One call, from before the callee runs until its result is handed over."""

    def __init__(
        self, session: Session, agent: str, payload: Any, *,
        tell: Callable[[Any], Any] = as_payload, bounces: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        """Tell the monitor of the call; it is held and released in here, unless it is kept.

        Args:
            session: Of the team.
            agent: Who is called.
            payload: What it is called with, as plain JSON.
            tell: Makes plain JSON of what it returns.
            bounces: Whether an answer to the outside can come back at this moment.
        """
        self._tell = tell
        self._bounces = bounces
        self._session = session
        self._agent = agent
        self._payload = payload
        self._caller = calling(session)
        self._turn: Turn | None = None
        self._answer = ""
        self.event, self._seat = session.step(self._place, otherwise=("", agent))

    async def through(self, work: Work) -> Any:
        """Have the agent work, and hand over what it returns or raises."""
        try:
            await self._session.released(self.event)
            turn = self._begin()
            with inside(turn):
                result = await work(self._agent, turn.notes)
                while await self._is_handed_back(turn, result):
                    result = await work(self._agent, turn.notes)
        except BaseException as error:
            self._session.step(self._fail, error, otherwise=None)
            raise
        return result

    async def _is_handed_back(self, turn: Turn, result: Any) -> bool:
        """Hand over what an agent returned; says whether it has to look at that again."""
        payload, caller = self._session.guard(self._tell, result, otherwise=None), self._caller
        if caller is None:
            self._answer = turn.submit(payload, bounces=self._bounces())
            await self._session.released(self._answer)
            return turn.came_back(self._answer)
        kind = "notice" if payload is None else "message"
        self._answer = turn.end(payload, _seats(caller), kind)
        await self._session.released(self._answer)
        caller.receive(self._answer)
        return False

    def _place(self) -> tuple[str, str]:
        """Make the event of the call: a problem, a message, or one that is passed on."""
        session, caller = self._session, self._caller
        seat = session.reserve(self._agent)
        if caller is None:
            return session.request(self._payload, (seat,)), seat
        sent = caller.sent
        if sent is None or self._payload is None:
            return caller.send(self._payload, (seat,)), seat
        again = sent.again(self._payload, self._agent)
        if again is not None:
            caller.wait_for()
            session.redirect(again, (seat,), self._payload)
            return again, seat
        event, received = sent.received
        if received == self._payload and event and caller.holds(event):
            caller.pass_on(event, (seat,))
            caller.wait_for()
        else:
            event = caller.send(self._payload, (seat,))
        sent.add(event, self._payload, self._agent)
        return event, seat

    def _begin(self) -> Turn:
        return self._session.step(self._begun, otherwise=None) or Turn(self._session, "", ())

    def _begun(self) -> Turn:
        elsewhere = self._session.seats_of(self.event)
        if elsewhere and self._seat not in elsewhere:
            self._session.unreserve(self._seat)
            self._agent = self._seat = elsewhere[0]
        turn = self._turn = self._session.begin(self._seat, (self.event,))
        # What came from outside is not passed on, but put to others in its agent's own name.
        turn.sent = Sent(self.event if self._caller else "", self._payload)
        return turn

    def _fail(self, error: BaseException) -> None:
        """The agent has raised, or its caller waits no more: nothing may stay open."""
        session, caller = self._session, self._caller
        session.let_go(self._answer or self.event)
        turn = self._turn or self._begin()
        if caller is None:
            if not (self._answer and session.monitor.graph.is_accepted(self._answer)):
                turn.fail(error, submits=True)
            turn.came_back(self._answer)
            return
        if caller.sent is not None:
            caller.sent.forget(self.event)
        caller.receive(turn.fail(error, _seats(caller)) or self._answer)


def calling(session: Session) -> Turn | None:
    """The turn of a session that the running code belongs to, if it goes on."""
    turn = current.get()
    while turn is not None and not (turn.session is session and turn.is_open):
        turn = turn.outer
    return turn


def _seats(caller: Turn) -> tuple[str, ...]:
    """Where an answer goes: to the caller, unless its turn is over."""
    return (caller.seat,) if caller.is_open else ()
