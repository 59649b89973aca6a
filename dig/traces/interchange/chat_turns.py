"""The turns of a conversation: inputs, beginning and continuation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from .scribe import Guesses


@dataclass(frozen=True)
class ChatMessage:
    """A message of a log.

    Attributes:
        line: The line on which the message stands, counted from 1.
        sender: The name of the sender; ``None``: the message came from outside.
        to: The names of the recipients; ``None`` among them: the outside.
        us: When, in microseconds since the first one.
        reply_to: The ids of what it answers; ``None``: the log does not say.
        type: The type of the message.
        payload: The contents of the message.
    """

    line: int
    id: str
    sender: str | None
    to: tuple[str | None, ...]
    us: int
    reply_to: tuple[str, ...] | None
    type: str
    payload: Any


@dataclass
class ChatTurn:
    """Messages of a sender, sent together.

    Attributes:
        uses: The ids of the messages that it used.
        again: Those of them that it did not have (any more).
        begins: The numbers of the turns after which its sender begins to work on it: the last one
            that brought something it uses, and earlier ones before a pause that somebody from
            outside ended; none: it begins with its messages.
        goes_on: Whether the sender's next turn is a part of the same work.
        roots: The numbers of the turns that its lineage goes back to.
        is_asked: Whether it goes back to what came from outside.
    """

    messages: list[ChatMessage]
    uses: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    goes_on: bool = False
    roots: frozenset[int] = frozenset()
    is_asked: bool = False

    @property
    def sender(self) -> str | None:
        """The agent of the turn; ``None``: the outside."""
        return self.messages[0].sender


def plan_turns(messages: Sequence[ChatMessage], guesses: Guesses) -> list[ChatTurn]:
    """The turns of a conversation in order.

    Args:
        messages: In order of time, with ids that are used once.
        guesses: Gets what was guessed.
    """
    desks: defaultdict[str, _Desk] = defaultdict(_Desk)
    turns: list[ChatTurn] = []
    sent: dict[str, ChatMessage] = {}
    unprompted = 0
    for _, group in groupby(messages, _turn_of):
        turn = ChatTurn(list(group))
        if turn.sender is not None:
            desks[turn.sender].plan(turn, _replies(turn.messages[0], sent, guesses), guesses)
            desks[turn.sender].number = len(turns)
            if turn.uses and not turn.roots:
                turn.roots = frozenset({len(turns)})
        turn.is_asked |= turn.sender is None
        unprompted += not turn.begins
        for message in turn.messages:
            sent[message.id] = message
            for name in receivers(message):
                arrival = _Arrival(len(turns), unprompted, message.us, turn)
                desks[name].lying[message.id] = arrival
        turns.append(turn)
    return turns


def receivers(message: ChatMessage) -> tuple[str, ...]:
    """The agents among the recipients of a message."""
    return tuple(name for name in message.to if name is not None)


def is_answer(message: ChatMessage) -> bool:
    """Whether a message is from an agent to the outside alone."""
    return message.sender is not None and message.to == (None,)


def _turn_of(message: ChatMessage) -> object:
    """The key of a message; neighbours with equal keys come from the same activation."""
    alone = message.id if None in message.to else None  # an answer is its activation's sole output
    return message.sender, message.us, message.reply_to, alone


def _replies(
    message: ChatMessage, sent: dict[str, ChatMessage], guesses: Guesses
) -> tuple[str, ...]:
    """The messages a message replies to, as far as possible."""
    replies = dict.fromkeys(message.reply_to or ())
    if any(event not in sent for event in replies):
        guesses.note(
            "a reply to what was not sent before was taken for one that says nothing", message.id
        )
    if any(event in sent and is_answer(sent[event]) for event in replies):
        guesses.note("a reply to an answer was taken for one that says nothing", message.id)
    return tuple(event for event in replies if event in sent and not is_answer(sent[event]))


class _Arrival(NamedTuple):
    """The arrival of a message: turn, unprompted turns before, and time."""

    number: int
    unprompted: int
    us: int
    turn: ChatTurn


class _Desk:
    """The unused messages of an agent, and the work in progress."""

    def __init__(self) -> None:
        self.lying: dict[str, _Arrival] = {}
        self.number = 0  # of its latest turn
        self._latest: ChatTurn | None = None  # unless it was unprompted, or gave an answer
        self._used: set[str] = set()  # the messages that its work has used
        self._called: set[str] = set()  # the agents that got a message of it that is no answer
        self._awaited: set[str] = set()  # those of them that have said nothing since
        self._newly_called: set[str] = set()  # those of them that its latest turn called

    def plan(self, turn: ChatTurn, replies: Sequence[str], guesses: Guesses) -> None:
        """Find the inputs and the beginning of a turn, and whether the turn before goes on."""
        lying, before = self.lying, self._latest
        called = {name for message in turn.messages for name in receivers(message)}
        turn.again = [event for event in replies if event not in lying]
        is_more = bool(before and turn.again and self._used.issuperset(replies)
                       and called.isdisjoint(self._called))  # fmt: skip
        if is_more:  # of what it has begun to answer: with what those say whom it called
            turn.again, replies = [], [e for e in lying if lying[e].turn.sender in self._called]
        elif not replies:
            replies = list(lying)
            if replies:
                guesses.note(
                    "a message that does not say what it replies to used all that had reached "
                    "its sender and was not used yet", turn.messages[0].id,
                )  # fmt: skip
        turn.uses = list(replies)
        arrivals = [lying.pop(event) for event in turn.uses if event in lying]
        senders = {arrival.turn.sender for arrival in arrivals}
        awaits_more = not (
            senders.isdisjoint(self._awaited) or senders.issuperset(self._newly_called)
        )
        if before and any(arrival.turn.roots.isdisjoint(before.roots) for arrival in arrivals):
            awaits_more = False  # it does not answer that call, and is of another origin
        goes_on = before is not None and (is_more or not turn.uses or awaits_more)
        if before is not None and goes_on:
            before.goes_on = True
        elif senders.isdisjoint(self._called):
            self._used, self._called, self._awaited = set(), set(), set()
        sources = [arrival.turn for arrival in arrivals] + ([before] if before and goes_on else [])
        turn.roots = frozenset().union(*(source.roots for source in sources))
        turn.is_asked = any(source.is_asked for source in sources)
        if not turn.again:
            turn.begins = self._begins(arrivals, goes_on=goes_on)
        self._used.update(turn.uses)
        self._newly_called = called - senders
        self._called |= self._newly_called
        self._awaited = (self._awaited - senders) | self._newly_called
        is_open = bool(turn.uses or goes_on) and not is_answer(turn.messages[0])
        self._latest = turn if is_open else None

    def _begins(self, arrivals: Collection[_Arrival], *, goes_on: bool) -> list[int]:
        """The numbers of the turns after which a turn with these inputs begins."""
        arrivals = sorted(arrivals, key=lambda arrival: arrival.number)
        begins = [
            earlier.number
            for earlier, later in pairwise(arrivals)
            if earlier.unprompted < later.unprompted
            and earlier.us < later.us
            and earlier.turn.is_asked  # only what somebody outside waits for can be a deadlock
        ]
        begins += [arrivals[-1].number] if arrivals else [self.number] if goes_on else []
        return sorted({max(number, self.number) for number in begins})
