"""What happens around the calls that a chat goes through, awaited or not (`play`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from dig.runtime.wrap import Session

from .chat import Chat, Handoff
from .notes import noted
from .play import AS_IT_IS, Script
from .talk import as_message

_chat: ContextVar[tuple[object, Chat] | None] = ContextVar("dig_ag2_classic_chat", default=None)


class Scripts:
    """The scripts for the agents of one team."""

    def __init__(self, session: Session, handoff: Handoff) -> None:
        """Begin with no chat."""
        self.session = session
        self._handoff = handoff

    @property
    def chat(self) -> Chat | None:
        """The chat that the running code belongs to, if it is one of this team."""
        found = _chat.get()
        return found[1] if found is not None and found[0] is self else None

    def opens(self) -> bool:
        """Whether what is said now begins a chat: outside of any, or in somebody's turn."""
        chat = self.chat
        return chat is None or chat.speaker is not None

    def chatting(self) -> Script:
        """A chat, from its beginning to what it gives back."""
        chat = self._new(is_direct=False)
        try:
            with _entered(self, chat):
                result = yield AS_IT_IS
        except BaseException as error:
            chat.close(error)
            chat.hand()
            return None
        yield from self._closed(chat)
        return result

    def speaking(self, agent: Any, messages: Any, sender: Any) -> Script:
        """A turn of an agent: the next one in a chat, or one that it is asked for directly."""
        chat = self.chat
        if chat is not None and chat.speaker is None:
            return (yield from self._turn(chat, agent, messages, sender))
        chat = self._new(is_direct=True)
        with _entered(self, chat):
            reply = yield from self._turn(chat, agent, messages, sender)
        yield from self._closed(chat)
        return reply

    def _new(self, *, is_direct: bool) -> Chat:
        around = self.chat
        caller = around.turn if around is not None and around.speaker is not None else None
        chat = Chat(self.session, self._handoff, caller, is_direct=is_direct)
        chat.is_lost = around is not None and around.is_lost
        return chat

    def _turn(self, chat: Chat, agent: Any, messages: Any, sender: Any) -> Script:
        if chat.is_answered:
            reply = yield AS_IT_IS
            if reply is not None:
                chat.go_on()
            return reply
        shown = _shown(agent, messages, sender)
        chat.give(agent.name, shown[-1] if shown else None)
        try:
            yield from chat.held(chat.mail)
            chat.begin()
            reply = yield from self._words(chat, agent, shown)
            while chat.answers(reply, _is_end(sender, reply, agent.name)):
                yield from chat.held([chat.answer])
                if not chat.has_back():
                    return reply
                reply = yield from self._words(chat, agent, shown)
        except BaseException as error:
            chat.fail(error)
            return None
        chat.say(reply, agent.name)
        return reply

    def _words(self, chat: Chat, agent: Any, shown: Sequence[Any]) -> Script:
        """What an agent says, once its model is shown the notes of its turn."""
        notes = chat.notes()
        told = {"messages": noted(shown, notes)} if shown and notes else AS_IT_IS
        with chat.floor(agent):
            return (yield told)

    def _closed(self, chat: Chat) -> Script:
        chat.close()
        try:
            yield from chat.held([chat.answer])
        except BaseException as error:
            chat.fail(error)
        chat.hand()
        return None


@contextmanager
def _entered(owner: object, chat: Chat) -> Iterator[None]:
    """While a block lasts, the running code belongs to a chat."""
    token = _chat.set((owner, chat))
    try:
        yield
    finally:
        _chat.reset(token)


def _shown(agent: Any, messages: Any, sender: Any) -> Sequence[Any]:
    """What an agent is given to reply to; it may be nothing."""
    if messages is not None:
        return list(messages)
    return list(agent.chat_messages.get(sender, ()))


def _is_end(sender: Any, reply: Any, name: str) -> bool:
    """Whether who gets a reply will take it as the end; the real question comes later."""
    with suppress(Exception):  # then AG2 will raise it
        return reply is not None and bool(sender._is_termination_msg(as_message(reply, name)))
    return False
