"""A conversation as a run: infers the activations and fates between its messages.

A message log knows neither. The rules by which they are supplied are in docs/interchange.md, and
each that was needed is told as a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from dig.graph.records import Fate, Record, Run

from .scribe import Guesses, Scribe


@dataclass(frozen=True)
class ChatMessage:
    """One message of a log.

    Attributes:
        line: The line on which the message stands, counted from 1.
        id: Its id.
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


def as_run(path: Path, messages: Sequence[ChatMessage], guesses: Guesses) -> list[Record]:
    """The records of a conversation; every inferred detail is added to the guesses.

    Args:
        path: The path that the conversation was read from; gives the run its name.
        messages: In order of time, with ids that are used once.
        guesses: Gets what was guessed.
    """
    chat = _Chat(path.stem, messages, guesses)
    for _, turn in groupby(messages, _turn_of):
        chat.take(list(turn))
    return chat.finish(path.name)


def _turn_of(message: ChatMessage) -> object:
    """The key of a message; messages in a row with equal keys come from one activation."""
    alone = message.id if None in message.to else None  # an answer is its activation's sole output
    return message.sender, message.us, message.reply_to, alone


class _Chat:
    """Writes one turn after the other."""

    def __init__(self, name: str, messages: Iterable[ChatMessage], guesses: Guesses) -> None:
        messages = list(messages)
        people = dict.fromkeys(
            name for m in messages for name in (m.sender, *m.to) if name is not None
        )
        guesses.note("all agents were there from the beginning to the end")
        guesses.note("the run is a session, and its agents remember what they have seen")
        guesses.note("a message reached everybody it was for as soon as it was sent")
        run = Run(0, 0, name, tuple(people), session=True, memory=True)
        self._scribe = Scribe(run, guesses)
        self._guesses = guesses
        self._taken = {message.id for message in messages}
        self._turns = 0

    def take(self, turn: Sequence[ChatMessage]) -> None:
        """Write one or several messages that were sent together."""
        self._scribe.at(turn[0].us)
        if turn[0].sender is None:
            for message in turn:
                self._emit(message, None)
                self._deliver(message)
            return
        wanted = self._wanted(turn[0])
        activation = self._new_id()
        inputs = self._scribe.start(activation, turn[0].sender)
        if wanted is None:
            if inputs:
                self._guesses.note(
                    "a message that does not say what it replies to used all that had reached "
                    "its sender and was not used yet", turn[0].id,
                )  # fmt: skip
            wanted = list(inputs)
        fates = [Fate(event, "consume") for event in inputs if event in wanted]
        self._guesses.note("an activation began and ended when its message was sent")
        if len(turn) > 1:
            self._guesses.note(
                "messages sent at the same time in reply to the same come from one activation",
                "+".join(message.id for message in turn),
            )
        self._scribe.end(activation, fates, [message.id for message in turn])
        for message in turn:
            self._emit(message, activation)
        for message in turn:
            self._deliver(message)

    def finish(self, source: str) -> list[Record]:
        """The whole trace."""
        self._guesses.note("the run ended with its last message")
        h = self._scribe.graph.history
        has_answer = any(self._scribe.graph.is_accepted(event) for event in h.event_ids)
        return self._scribe.finish("submitted" if has_answer else "stopped", source)

    def _emit(self, message: ChatMessage, by: str | None) -> None:
        is_answer = _is_answer(message)
        if None in message.to and not is_answer:
            self._guesses.note(
                "a message to the outside is an answer only if an agent sent it to nobody else",
                message.id,
            )
        to = () if is_answer else _agents(message)
        more = {} if message.payload is None else {"payload": message.payload}
        self._scribe.emit(message.id, by, to, message.type, final=is_answer, **more)

    def _deliver(self, message: ChatMessage) -> None:
        if _is_answer(message):
            self._guesses.note("a message to the outside is an answer, and was accepted")
            self._scribe.deliver(message.id, None)
        for name in _agents(message):
            self._scribe.deliver(message.id, name)

    def _wanted(self, message: ChatMessage) -> list[str] | None:
        """The event that a message replies to, in its sender's buffer; ``None``: unknown."""
        if message.reply_to is None or message.sender is None:
            return None
        known = [event for event in message.reply_to if self._can_see(event, message)]
        return known or None

    def _can_see(self, event: str, message: ChatMessage) -> bool:
        graph = self._scribe.graph
        if graph.history.event(event) is None:
            self._guesses.note(
                "a reply to what was not sent before was taken for one that says nothing",
                message.id,
            )
            return False
        sender = message.sender or ""
        if event in graph.agents[sender].buffer:
            return True
        if graph.event(event).final:
            self._guesses.note(
                "a reply to an answer was taken for one that says nothing", message.id
            )
            return False
        self._guesses.note(
            "what a sender replied to but did not have (any more) was shown to it again",
            f"{event} for {message.id}",
        )
        self._scribe.redirect(event, [*graph.event(event).flight, sender])
        self._scribe.deliver(event, sender)
        return True

    def _new_id(self) -> str:
        while True:
            self._turns += 1
            name = f"turn-{self._turns}"
            if name not in self._taken:
                return name


def _agents(message: ChatMessage) -> tuple[str, ...]:
    return tuple(name for name in message.to if name is not None)


def _is_answer(message: ChatMessage) -> bool:
    return message.sender is not None and message.to == (None,)
