"""One chat as a session is told of it: which agent has the floor, and what becomes of its words.

In a chat one agent speaks at a time. The recipient of its words is known when the next agent has
the floor, or when the chat is over; so that is when its turn ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autogen import GroupChatManager
from autogen.agentchat.group.group_tool_executor import GroupToolExecutor

from dig.adapters.base import ADAPTER_FAILED, NOTE, AdapterState, Turn, as_payload

BY_CODE = "[Handing off to "
"""Words that AG2 gives to an agent that hands over because of a condition, without its model."""


def as_message(reply: Any, name: str) -> dict[str, Any]:
    """A reply in the form in which its recipient gets it."""
    said = dict(reply) if issubclass(type(reply), Mapping) else {"content": reply}
    return {"role": "user", "name": name, **said}


def words(message: Any) -> Any:
    """The content of a message without its role and sender: a text, if it is nothing else.

    It never raises, whatever an agent has made its reply of.
    """
    told = as_payload(message)
    if not isinstance(told, dict) or not issubclass(type(message), Mapping):
        return told
    said = {key: value for key, value in told.items() if key not in ("role", "name")}
    return said["content"] if said.keys() == {"content"} else said


def handoffs(message: Mapping[str, Any], agent: Any) -> list[Any]:
    """The calls by which an agent hands over in a message; AG2 carries out the last one."""
    conditions = agent.handoffs.llm_conditions
    tools = {condition.llm_function_name for condition in conditions}
    return [call for call in _calls(message) if _name(call) in tools]


def is_handoff(message: Mapping[str, Any], agent: Any) -> bool:
    """Whether an agent only hands over to the next one."""
    content, calls = message.get("content"), _calls(message)
    if calls:
        return not content and len(handoffs(message, agent)) == len(calls) == 1
    return isinstance(content, str) and content.startswith(BY_CODE)


def _calls(message: Mapping[str, Any]) -> list[Any]:
    calls: Any = message.get("tool_calls")
    # Not by `isinstance`: a proxy may raise when it is asked of what class it is.
    return list(calls) if issubclass(type(calls), list) else []


def _name(call: Any) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else ""


def is_agent(agent: Any) -> bool:
    """Whether the agent acts: managers only select speakers, and tools belong to their agents."""
    return not isinstance(agent, GroupChatManager | GroupToolExecutor)


def may_reply(agent: Any, to: Any) -> bool:
    """Whether AG2 has an agent reply once more: at its limit it is silent, or asks a person."""
    most = agent._max_consecutive_auto_reply_dict.get(to, agent.max_consecutive_auto_reply())
    return bool(agent._consecutive_auto_reply_counter.get(to, 0) < most)


Read = Callable[[], tuple[str, ...]]
"""Gives the notes of a turn, oldest first, as of now."""


class NotedMessages(list[Any]):
    """Messages with notes beside them, which stay there when a system message is put before."""

    def __init__(self, messages: Sequence[Any], read: Read) -> None:
        """Take the messages as they are."""
        super().__init__(messages)
        self.read = read

    def __radd__(self, before: list[Any]) -> NotedMessages:
        return NotedMessages([*before, *self], self.read)


def showing(
    original: Callable[..., Any], client: Any, messages: Any, *args: Any, **more: Any
) -> Any:
    """Ask a model, and show it the notes that stand beside its messages."""
    if isinstance(messages, NotedMessages):
        # Not the system's: a note quotes what agents have said.
        notes = [{"role": "user", "content": NOTE.format(note)} for note in messages.read()]
        messages = [*messages, *notes]
    return original(client, messages, *args, **more)


Handoff = Callable[[Mapping[str, Any]], bool]


class Chat(AdapterState):
    """One chat, from its beginning to its last word; after a failure nothing more is reported.

    Attributes:
        last: The agent that has spoken last, or is next.
        deliveries: The events that are in front of the agent that is next.
        answer: The event that its latest answer has become.
        is_answered: Whether the chat's answer has been accepted; what is said then comes from
            outside.
    """

    reports_after_failure = False

    def __init__(
        self, team: AdapterState, handoff: Handoff | None, caller: Turn | None, *, is_direct: bool
    ) -> None:
        """Begin with nothing said.

        Args:
            team: The state of all chats of its team; once that has failed, nothing is sent back.
            handoff: Whether a message only hands over; ``None``: if it calls nothing but one of
                its agent's handoffs.
            caller: The turn in whose code the chat was begun; ``None``: it comes from outside.
            is_direct: Whether the chat is one turn of one agent, whose reply no other agent gets.
        """
        super().__init__(team.session)
        self._team = team
        self.last: Any = None
        self.deliveries: list[str] = []
        self.is_answered = False
        self._handoff = handoff
        self._caller = caller
        self._is_asked = False  # whether the caller awaits an answer
        self._is_direct = is_direct
        self._turn: Turn | None = None  # of the agent that has spoken last, or is next
        self._sender: Any = None  # to whom the reply goes
        self._instance = ""
        self._said: Any = None
        self._reply: Mapping[str, Any] = {}
        self._error: BaseException | None = None
        self._is_persons = False  # whether a person speaks for the agent that has the floor
        self.answer = ""

    # --- one turn, in the order in which it happens ---

    def give(self, agent: Any, message: Any, sender: Any) -> None:
        """An agent is to have the floor: what was said last is for it, and came by the sender."""
        self._sender = sender
        self.step(self._give, agent, words(message), default=None)

    def begin(self) -> None:
        """Begin the chat, once its input is not held any more."""
        self.step(self._begin, default=None)

    @property
    def turn(self) -> Turn | None:
        """The turn of the agent that has the floor, unless the adapter has failed."""
        return None if self.has_failed else self._turn

    def notes(self, turn: Turn) -> tuple[str, ...]:
        """The notes for the agent that has the floor, as of now."""
        return self.step(turn.listen, default=())

    def wait_for_person(self) -> None:
        """A person is asked: by the agent that has the floor, or after it has spoken."""
        self.step(self._wait_for_person, default=None)

    def answers(self, reply: Any, *, is_end: bool) -> str:
        """Submit what an agent says, if it ends a chat that was begun from outside.

        Returns:
            The answer; empty, if it is none.
        """
        if self._caller is not None or reply is None or not (is_end or self._is_direct):
            return ""
        return self.step(self._submit, words(reply), default="")

    def ends(self) -> str:
        """Submit what was said last, if no agent is next and the chat was begun from outside."""
        if self._caller is not None or self._error is not None:
            return ""
        return self.step(self._submit, self._said, default="")

    def has_back(self) -> bool:
        """Whether the answer was sent back, so that its agent has the floor once more."""
        return self.step(self._has_back, default=False)

    def say(self, reply: Any, name: str) -> None:
        """An agent has spoken; ``None``: it has let the last word stand."""
        if reply is not None:
            self.step(self._say, reply, name, default=None)

    def fail(self, error: BaseException) -> None:
        """An agent has raised, or was cancelled before it could begin."""
        self.step(self._fail, error, default=None)

    # --- the end ---

    def close(self, error: BaseException | None = None) -> str:
        """The chat is over; gives the event that its last word has become, if it has."""
        return self.step(self._close, error, default="")

    def hand(self) -> None:
        """Its last word is handed over, since no gate keeps it any more."""
        self.step(self._hand, default=None)

    def go_on(self) -> None:
        """The chat goes on after its answer: what is said next comes from outside."""
        self.is_answered, self._turn = False, None

    def held(self, events: list[str]) -> list[str]:
        """The events among some that are on their way still."""
        return [one for one in events if self.step(self.session.is_held, one, default=False)]

    # --- steps ---

    def on_failure(self) -> None:
        """Drop the words so far, which may look as if an answer were too early."""
        self._team.has_failed = True
        self._fail(ADAPTER_FAILED)
        self._close(ADAPTER_FAILED)
        self._hand()

    def _give(self, agent: Any, payload: Any) -> None:
        turn = self._turn
        if turn is not None and self.last is agent and self._error is None:
            self.deliveries = [turn.send(payload, turn.instance)]  # it has the floor again
            return
        instance = self.session.reserve_instance(agent.name)
        if turn is None:
            self.deliveries = [self._first(agent.name, instance, payload)]
        elif self._error is not None:
            self.deliveries = [turn.fail(self._error, instance)]
        else:
            self.deliveries = self._handed(turn, instance, payload)
        self._instance, self.last, self._turn, self._error = instance, agent, None, None
        self._is_persons = False

    def _first(self, name: str, instance: str, payload: Any) -> str:
        """The first message, from outside or from the turn that has begun this chat."""
        caller, session = self._caller, self.session
        if caller is None or not caller.is_open:
            self._caller = None  # its turn is over, so that this comes from outside
            return session.request(payload, instance)
        self._is_asked = True
        return caller.call(payload, instance)

    def _say(self, reply: Any, name: str) -> None:
        self._said, self._reply = words(reply), as_message(reply, name)

    def _handed(self, turn: Turn, instance: str, payload: Any) -> list[str]:
        """A turn ends: what it was given goes on if it has only handed over, else its words do."""
        dropped = [words(lost) for lost in handoffs(self._reply, self.last)[:-1]]
        handed = turn.hand_over(instance, payload, silent=self._only_hands_over, dropped=dropped)
        return [*handed.events]

    def _only_hands_over(self) -> bool:
        if self._handoff is not None:
            return self._handoff(self._reply)
        return is_handoff(self._reply, self.last)

    def _begin(self) -> None:
        if self._turn is None:
            self._turn = self.session.begin(self._instance, self.deliveries)
        else:
            for event in self.deliveries:
                self._turn.receive(event)
        self.deliveries = []

    def _wait_for_person(self) -> None:
        self._is_persons = True
        if self._turn is not None:
            self._turn.waits()

    def _submit(self, payload: Any) -> str:
        turn = self._turn
        stays = self._team.has_failed or self._is_persons or not may_reply(self.last, self._sender)
        self.answer = turn.submit(payload, bounces=not stays) if turn is not None else ""
        return self.answer

    def _has_back(self) -> bool:
        turn = self._turn
        if turn is not None and turn.was_bounced(self.answer):
            return True
        self.is_answered, self._turn = True, None
        return False

    def _fail(self, error: BaseException) -> None:
        self.session.release(*self.deliveries, self.answer)
        if self.deliveries:
            self._begin()
        self._error = error

    def _close(self, error: BaseException | None) -> str:
        turn, caller, error = self._turn, self._caller, error or self._error
        if turn is None or not turn.is_open:
            return ""
        to = caller.address if caller is not None else ()
        if error is not None:
            self.answer = turn.fail(error, to, submits=caller is None)
        elif caller is None:
            self.answer = turn.submit(self._said, bounces=False)
        else:
            self.answer = turn.reply(self._said, to)
        return self.answer

    def _hand(self) -> None:
        if self._turn is not None and self._caller is None:
            self._turn.was_bounced(self.answer)
        if self._caller is not None and self._is_asked:
            self._caller.receive(self.answer)
        self._turn = None
