"""Scripts around the calls that a chat goes through, awaited or not (`play`)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple

from autogen.exception_utils import NoEligibleSpeakerError

from dig.adapters.base import AdapterState, Session, Turn, inside

from .chat import Chat, Handoff, NotedMessages, as_message, is_agent

Script = Generator[str, Any, Any]

CALL = ""
RAISE = object()
"""A script cannot raise it itself: `StopIteration` may be among what an agent raises."""


async def play(script: Script, call: Callable[[], Any], session: Session) -> Any:
    """Carry out a script around a call that is awaited."""
    part = _Part(script)
    while not part.is_over:
        try:
            got = await (session.released(part.asked) if part.asked else call())
        except BaseException as error:
            part.failed(error)
        else:
            part.got(got)
    return part.result()


def play_now(script: Script, call: Callable[[], Any], session: Session) -> Any:
    """Carry out a script around a call that is not awaited."""
    part = _Part(script)
    while not part.is_over:
        try:
            got = None if part.asked else call()
            session.wait_released(part.asked)
        except BaseException as error:
            part.failed(error)
        else:
            part.got(got)
    return part.result()


class _Part:
    """The progress of a script; `asked` is what it returns, once it is over."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._error: BaseException | None = None
        self.is_over = False
        self.asked: Any = next(script)

    def got(self, value: Any) -> None:
        self._go_on(self._script.send, value)

    def failed(self, error: BaseException) -> None:
        self._error = error
        self._go_on(self._script.throw, error)

    def _go_on(self, tell: Callable[[Any], Any], what: Any) -> None:
        try:
            self.asked = tell(what)
        except StopIteration as end:
            self.is_over, self.asked = True, end.value

    def result(self) -> Any:
        error, self._error = self._error, None
        if self.asked is RAISE and error is not None:
            try:
                raise error
            finally:
                del error  # which holds this frame
        return self.asked


class ChatContext(NamedTuple):
    """The chat that the running code belongs to.

    Attributes:
        chat: The chat.
        speaker: The agent whose code it is; ``None``: AG2's own, between two turns.
        turn: The turn of that agent.
    """

    chat: Chat
    speaker: Any = None
    turn: Turn | None = None


NOWHERE: Mapping[object, ChatContext] = {}

_here: ContextVar[Mapping[object, ChatContext]] = ContextVar(
    "dig_ag2_classic_here", default=NOWHERE
)
"""The chat that the running code belongs to, for each team: an agent may be in several."""


class ChatScripts(AdapterState):
    """The scripts for the agents of one team; it has failed once one of its chats has."""

    def __init__(self, session: Session, handoff: Handoff | None) -> None:
        """Begin with no chat."""
        super().__init__(session)
        self._handoff = handoff

    @property
    def here(self) -> ChatContext | None:
        """The chat that the running code belongs to, if that is in this team."""
        return _here.get().get(self)

    def chatting(self) -> Script:
        """A chat, from its beginning to what it gives back."""
        chat = self._new(is_direct=False)
        try:
            with self._at(ChatContext(chat)):
                result = yield CALL
        except BaseException as error:
            chat.close(error)
            result = RAISE
        return (yield from self._closed(chat, result))

    def speaking(self, agent: Any, messages: Any, sender: Any) -> Script:
        """A turn of an agent: the next one in a chat, or one that it is asked for directly."""
        here = self.here
        if here is not None and here.speaker is None and sender is not None:
            return (yield from self._turn(here.chat, agent, messages, sender))
        chat = self._new(is_direct=True)
        with self._at(ChatContext(chat)):
            reply = yield from self._turn(chat, agent, messages, sender)
        return (yield from self._closed(chat, reply))

    def selecting(self) -> Script:
        """A group chat selects the next speaker; if there is none, it is over."""
        try:
            return (yield CALL)
        except NoEligibleSpeakerError:
            here = self.here
            if here is None or not here.chat.ends():
                return RAISE
        except BaseException:
            return RAISE
        try:
            yield from here.chat.held([here.chat.answer])
        except BaseException as error:
            here.chat.fail(error)
            return RAISE
        return here.chat.last if here.chat.has_back() else RAISE

    def told(self, agent: Any, messages: Any) -> Any:
        """The messages that an agent replies to, with the notes of its turn beside them."""
        here = self.here
        if self.has_failed or here is None or here.speaker is not agent or here.turn is None:
            return messages
        return NotedMessages(messages, partial(here.chat.notes, here.turn))

    def asks_person(self, agent: Any) -> None:
        """An agent asks the person that it stands for."""
        here = self.here
        if here is not None and here.speaker is agent:
            here.chat.wait_for_person()

    def asks_for_next(self) -> None:
        """A person is to say who is next, while the last speaker still has the floor."""
        here = self.here
        if here is not None and here.speaker is None:
            here.chat.wait_for_person()

    def _new(self, *, is_direct: bool) -> Chat:
        here = self.here
        caller = here.turn if here is not None else None
        chat = Chat(self, self._handoff, caller, is_direct=is_direct)
        chat.has_failed = here is not None and here.speaker is not None and here.chat.has_failed
        return chat

    def _turn(self, chat: Chat, agent: Any, messages: Any, sender: Any) -> Script:
        if chat.is_answered:
            reply = yield CALL
            if reply is not None:
                chat.go_on()
            return reply
        chat.give(agent, _last(agent, messages, sender), sender)
        try:
            yield from chat.held(chat.deliveries)
            chat.begin()
            reply = yield from self._words(chat, agent)
            while chat.answers(reply, is_end=_is_end(sender, reply, agent.name)):
                yield from chat.held([chat.answer])
                if not chat.has_back():
                    return reply
                reply = yield from self._words(chat, agent)
        except BaseException as error:
            chat.fail(error)
            return RAISE
        chat.say(reply, agent.name)
        return reply

    def _closed(self, chat: Chat, result: Any) -> Script:
        """A chat is over; gives what it gives back."""
        chat.close()
        try:
            yield from chat.held([chat.answer] if result is not RAISE else [])
        except BaseException as error:
            chat.fail(error)
            result = RAISE
        chat.hand()
        return result

    def _words(self, chat: Chat, agent: Any) -> Script:
        """The words of an agent that has the floor."""
        turn = chat.turn
        with self._at(ChatContext(chat, agent, turn)), inside(turn) if turn else nullcontext():
            return (yield CALL)

    @contextmanager
    def _at(self, here: ChatContext) -> Iterator[None]:
        """While a block lasts, the running code, and the tasks that it makes, belong there."""
        token = _here.set({**_here.get(), self: here})
        try:
            yield
        finally:
            _here.reset(token)


def _last(agent: Any, messages: Any, sender: Any) -> Any:
    """The last message that an agent is given to reply to, if there is one."""
    with suppress(Exception):  # then AG2 will raise it
        shown = agent.chat_messages.get(sender, ()) if messages is None else messages
        return shown[-1] if shown else None
    return None


def _is_end(sender: Any, reply: Any, name: str) -> bool:
    """Whether the recipient of a reply will take it as the end; AG2 asks it later.

    It is none where a person is asked first, since that may go on.
    """
    with suppress(Exception):  # then AG2 will raise it
        if is_agent(sender) and sender.human_input_mode != "NEVER":
            return False
        return reply is not None and bool(sender._is_termination_msg(as_message(reply, name)))
    return False
