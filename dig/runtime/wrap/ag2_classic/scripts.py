"""What happens around the calls that a chat goes through, awaited or not (`play`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

from autogen.exception_utils import NoEligibleSpeakerError

from dig.runtime.wrap import Session

from .chat import Chat, Handoff
from .notes import Told
from .play import CALL, RAISE, Script
from .talk import as_message

NONE: Mapping[object, Chat] = {}

_chats: ContextVar[Mapping[object, Chat]] = ContextVar("dig_ag2_classic_chats", default=NONE)
"""The chats that the running code belongs to: one of each team, for an agent may be in several."""


class Scripts:
    """The scripts for the agents of one team."""

    def __init__(self, session: Session, handoff: Handoff) -> None:
        """Begin with no chat."""
        self._session = session
        self._handoff = handoff

    @property
    def chat(self) -> Chat | None:
        """The chat that the running code belongs to, if it is one of this team."""
        return _chats.get().get(self)

    @property
    def begins(self) -> bool:
        """Whether what is said now begins a chat: outside of any, or in somebody's turn."""
        chat = self.chat
        return chat is None or chat.speaker is not None

    def chatting(self) -> Script:
        """A chat, from its beginning to what it gives back."""
        chat = self._new(is_direct=False)
        try:
            with self._entered(chat):
                result = yield CALL
        except BaseException as error:
            chat.close(error)
            chat.hand()
            return RAISE
        return RAISE if (yield from self._closed(chat)) is RAISE else result

    def speaking(self, agent: Any, messages: Any, sender: Any) -> Script:
        """A turn of an agent: the next one in a chat, or one that it is asked for directly."""
        if not self.begins and self.chat is not None:
            return (yield from self._turn(self.chat, agent, messages, sender))
        chat = self._new(is_direct=True)
        with self._entered(chat):
            reply = yield from self._turn(chat, agent, messages, sender)
        if reply is RAISE:
            chat.close()
            chat.hand()
            return RAISE
        return RAISE if (yield from self._closed(chat)) is RAISE else reply

    def selecting(self) -> Script:
        """A group chat looks for who is next; if there is nobody, it is over."""
        try:
            return (yield CALL)
        except NoEligibleSpeakerError:
            chat = self.chat
            if chat is None or not chat.ends():
                return RAISE
            yield from chat.held([chat.answer])
            return chat.last if chat.has_back() else RAISE
        except BaseException:
            return RAISE

    def told(self, agent: Any, messages: Any) -> Any:
        """The messages that an agent replies to, with the notes of its turn beside them."""
        chat = self.chat
        if chat is None or chat.speaker is not agent or chat.turn is None:
            return messages
        return Told(messages, partial(chat.notes, chat.turn))

    def _new(self, *, is_direct: bool) -> Chat:
        around = self.chat
        caller = around.turn if around is not None else None
        chat = Chat(self._session, self._handoff, caller, is_direct=is_direct)
        chat.is_lost = around is not None and around.is_lost
        return chat

    def _turn(self, chat: Chat, agent: Any, messages: Any, sender: Any) -> Script:
        if chat.is_answered:
            reply = yield CALL
            if reply is not None:
                chat.go_on()
            return reply
        chat.give(agent, _last(agent, messages, sender))
        try:
            yield from chat.held(chat.mail)
            chat.begin()
            reply = yield from _words(chat, agent)
            while chat.answers(reply, is_end=_is_end(sender, reply, agent.name)):
                yield from chat.held([chat.answer])
                if not chat.has_back():
                    return reply
                reply = yield from _words(chat, agent)
        except BaseException as error:
            chat.fail(error)
            return RAISE
        chat.say(reply, agent.name)
        return reply

    def _closed(self, chat: Chat) -> Script:
        chat.close()
        try:
            yield from chat.held([chat.answer])
        except BaseException as error:
            chat.fail(error)
            chat.hand()
            return RAISE
        chat.hand()
        return None

    @contextmanager
    def _entered(self, chat: Chat) -> Iterator[None]:
        """While a block lasts, the running code belongs to a chat."""
        token = _chats.set({**_chats.get(), self: chat})
        try:
            yield
        finally:
            _chats.reset(token)


def _words(chat: Chat, agent: Any) -> Script:
    """What an agent says when it has the floor."""
    with chat.floor(agent):
        return (yield CALL)


def _last(agent: Any, messages: Any, sender: Any) -> Any:
    """The last message that an agent is given to reply to, if there is one."""
    with suppress(Exception):  # then AG2 will raise it
        shown = agent.chat_messages.get(sender, ()) if messages is None else messages
        return shown[-1] if shown else None
    return None


def _is_end(sender: Any, reply: Any, name: str) -> bool:
    """Whether who gets a reply will take it as the end; the real question comes later."""
    with suppress(Exception):  # then AG2 will raise it
        return reply is not None and bool(sender._is_termination_msg(as_message(reply, name)))
    return False
