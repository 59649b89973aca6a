"""A conversation as a run, with activations and fates between the messages.

A message log knows neither. The rules by which they are supplied are in docs/files.md, and
each that was needed is told as a guess.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dig.graph.records import Limits, Record, Run

from .chat_turns import ChatMessage, ChatTurn, is_answer, plan_turns, receivers
from .scribe import Guesses, Scribe
from .turn_writer import ONWARD, TurnOutput, TurnWriter


def as_run(
    path: Path, messages: Sequence[ChatMessage], guesses: Guesses, limits: Limits
) -> list[Record]:
    """The records of a conversation; every inferred detail is added to the guesses.

    Args:
        path: The path that the conversation was read from; gives the run its name.
        messages: In order of time, with ids that are used once.
        guesses: Gets what was guessed.
        limits: The limits by which the run is judged.
    """
    chat = _Chat(path.stem, messages, guesses, limits)
    for number, turn in enumerate(chat.turns):
        chat.take(number, turn)
    return chat.finish(path.name)


@dataclass
class _Speaker:
    agent: str
    activation: str = ""  # in progress


class _Chat(TurnWriter):
    """Writes the turns in order.

    An activation lasts from the message that completes what it uses to its own messages, so that
    an agent that will answer is at work in between.
    """

    def __init__(
        self, name: str, messages: Sequence[ChatMessage], guesses: Guesses, limits: Limits
    ) -> None:
        people = dict.fromkeys(
            name for m in messages for name in (m.sender, *m.to) if name is not None
        )
        guesses.note("all agents were there from the beginning to the end")
        guesses.note("the run is a session, and its agents remember what they have seen")
        guesses.note("a message reached everybody it was for as soon as it was sent")
        run = Run(0, 0, name, tuple(people), limits=limits, session=True, memory=True)
        super().__init__(Scribe(run, guesses))
        self._guesses = guesses
        self._message_ids = {message.id for message in messages}
        self._speakers = {name: _Speaker(name) for name in people}
        self._onward: set[str] = set()  # continuations
        self.turns = plan_turns(messages, guesses)
        self._beginning: defaultdict[int, list[ChatTurn]] = defaultdict(list)
        for turn in self.turns:
            for number in turn.begins:
                self._beginning[number].append(turn)

    def take(self, number: int, turn: ChatTurn) -> None:
        """Write the messages of a turn, and begin the activations after it."""
        self._scribe.at(turn.messages[0].us)
        if turn.sender is None:
            for message in turn.messages:
                output = self._output(message)
                self.emit(output, None)
                self.deliver(output)
        else:
            if not turn.begins:
                self._show_again(turn)
                self._activate(turn)
            self._send(turn)
        for later in self._beginning[number]:
            self._activate(later)

    def finish(self, source: str) -> list[Record]:
        """The whole trace."""
        self._guesses.note("the run ended with its last message")
        h = self._scribe.graph.history
        has_answer = any(self._scribe.graph.is_accepted(event) for event in h.event_ids)
        return self._scribe.finish("submitted" if has_answer else "stopped", source)

    def _show_again(self, turn: ChatTurn) -> None:
        for event in turn.again:
            self._guesses.note(
                "what a sender replied to but did not have (any more) was shown to it again",
                f"{event} for {turn.messages[0].id}",
            )
            self._scribe.redirect(
                event, [*self._scribe.graph.event(event).flight, turn.sender or ""]
            )
            self._scribe.deliver(event, turn.sender)

    def _activate(self, turn: ChatTurn) -> None:
        """Activate a sender; a sender at work has read all inputs, and goes on."""
        speaker = self._speakers[turn.sender or ""]
        if speaker.activation:
            self._end(turn, (), goes_on=True)
        self.begin(speaker)

    def _send(self, turn: ChatTurn) -> None:
        if turn.goes_on and len(self._used(turn)) > len(turn.messages):
            self._activate(turn)  # it sends more than what it goes on from, so all is needed
        self._guesses.note("an activation began when what it used was there, and ended with its "
                           "message")  # fmt: skip
        if len(turn.messages) > 1:
            self._guesses.note(
                "messages sent at the same time in reply to the same come from one activation",
                "+".join(message.id for message in turn.messages),
            )
        self._end(turn, turn.messages, goes_on=turn.goes_on)

    def _used(self, turn: ChatTurn) -> list[str]:
        """The used inputs of the activation in progress, and a continuation."""
        activation = self._speakers[turn.sender or ""].activation
        inputs = self._scribe.graph.running[activation].inputs
        return [e.id for e in inputs if e.id in turn.uses or e.id in self._onward]

    def _end(self, turn: ChatTurn, messages: Sequence[ChatMessage], *, goes_on: bool) -> None:
        """End the activation in progress with messages and, if the turn goes on, a continuation."""
        outputs, used = [*map(self._output, messages)], self._used(turn)
        self.end(self._speakers[turn.sender or ""], *outputs, goes_on=goes_on, consumes=used)
        self.deliver(*outputs)

    def _output(self, message: ChatMessage) -> TurnOutput:
        to: tuple[str, ...] | None = receivers(message)
        if is_answer(message):
            self._guesses.note("a message to the outside is an answer, and was accepted")
            to = None
        elif None in message.to:
            self._guesses.note(
                "a message to the outside is an answer only if an agent sent it to nobody else",
                message.id,
            )
        return TurnOutput(message.id, to, message.type, message.payload)

    def new_id(self, stem: str) -> str:
        """Make an id beside those of the messages."""
        name = super().new_id(stem)
        while name in self._message_ids:
            name = super().new_id(stem)
        if stem == ONWARD:
            self._guesses.note("a sender that went on is told so by a notice to itself", name)
            self._onward.add(name)
        return name
