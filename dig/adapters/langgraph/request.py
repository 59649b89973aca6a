"""The end of a request: what the graph has come to is submitted, or goes back once more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langgraph.errors import GraphBubbleUp
from langgraph.graph import END
from langgraph.types import Command

from dig.adapters import Turn

from .held import let_go
from .messages import Mail
from .run import Run

NEVER_RAN = RuntimeError("the graph ended before this node ran")
"""What a trace says of turns that nobody will end; it is never raised."""


class Request(Run):
    """One request to a wrapped graph, with its end."""

    _turn: Turn | None = None  # of `__end__`, while it is not known whether its answer is accepted
    _next: Sequence[str] = ()  # the nodes that run if it is not

    @property
    def answers(self) -> tuple[str, ...]:
        """The answer, if one was submitted and has not been accepted yet."""
        return (self._turn.submitted,) if self._turn and self._turn.submitted else ()

    @property
    def last_words(self) -> tuple[str, ...]:
        """What `__end__` will put together, a part of which a gate may keep."""
        return tuple(event for mail in self.mailbox if mail.node == END for event in mail.events)

    def submit(self) -> None:
        """The graph has nothing left to run: `__end__` submits what the last nodes wrote."""
        if not self.is_asked:
            return
        late = [mail for mail in self.mailbox if mail.node != END and not mail.waits]
        if late or self.stops.is_at_breakpoint:
            self.is_paused = True
        if self.is_paused:
            self._hand_to_end(self.mailbox)
        self._turn = self.turn_instead(self.end_mail())
        self._say(self._turn)

    def _say(self, turn: Turn) -> None:
        told = [event.payload for event in turn.events if event.type != "notice"]
        stays = self.team.is_lost or self.is_paused
        self._next = [] if stays else self._who_goes_on(turn)
        bounces = bool(self._next) and self.stops.allow(self._next)
        turn.submit(told[0] if len(told) == 1 else told, bounces=bounces)

    def _who_goes_on(self, turn: Turn) -> list[str]:
        """The nodes that run if the answer comes back: those that wait, else those that spoke."""
        said = {str(event.sender).partition("#")[0] for event in turn.events}
        waiting = {mail.node for mail in self._mail_of_nodes()}
        return sorted(waiting or self.team.nodes.keys() & said)

    def again(self) -> tuple[Command[str], dict[str, Any]] | None:
        """What the graph is to run for an answer that came back, with the config for that.

        Returns:
            ``None``, if the answer was accepted.
        """
        turn, self._turn = self._turn, None
        if turn is None:
            return None
        if turn.came_back(turn.submitted):
            return self._send_back(turn, self._next), self.stops.config_of_rest()
        self._forget_who_waits()
        return None

    def cut_short(self) -> None:
        """The graph ran once more, and the steps that the request had left were not enough."""
        self.is_paused = True
        detail = {"why": "the recursion limit of the request is reached; its answer stands"}
        self.session.incident("bounce failed", detail)

    def _send_back(self, turn: Turn, nodes: Iterable[str]) -> Command[str]:
        """Have nodes run once more, with the answer that came back in front of them."""
        mails = [self.mailbox.reserve(node) for node in nodes]
        turn.pass_on(turn.submitted, [mail.seat for mail in mails])
        turn.end()
        for mail in mails:
            mail.events.append(turn.submitted)
            mail.waits = False
        return Command(goto=[mail.node for mail in mails])

    def abort(self, error: BaseException) -> None:
        """The graph has raised, or nobody wants to know how it ends."""
        if self._turn is not None:  # who waited for the answer was cancelled
            let_go(self.session, self.answers)
            self._turn.came_back(self._turn.submitted)
        if self._turn is not None or not self.is_asked:
            return
        end = self.end_mail()
        for work in tuple(self.works):
            self.give_up(work, work.error or error, end)
        if isinstance(error, GraphBubbleUp):
            self._end_for_outer()
            return
        for turn in map(self.turn_instead, self._mail_of_nodes()):
            end.events.append(turn.fail(error, (end.seat,)))
        self.turn_instead(end).fail(error, submits=True)

    def _end_for_outer(self) -> None:
        """The graph that this one is a node of has to know something, and decides what is next."""
        self.is_paused = True
        self.submit()
        if self._turn is not None:
            self._turn.came_back(self._turn.submitted)

    def _mail_of_nodes(self) -> list[Mail]:
        return [mail for mail in self.mailbox if mail.node != END]

    def _hand_to_end(self, mails: Iterable[Mail]) -> None:
        """What waits for a later request is not waited for in this one."""
        end = self.end_mail()
        for mail in mails:
            if mail is not end:
                turn = self.turn_instead(mail)
                for event in mail.events:
                    turn.pass_on(event, (end.seat,))
                turn.end()
                end.events.extend(mail.events)

    def _forget_who_waits(self) -> None:
        """The request is over: nobody will run any more."""
        for turn in map(self.turn_instead, self._mail_of_nodes()):
            turn.fail(NEVER_RAN)
