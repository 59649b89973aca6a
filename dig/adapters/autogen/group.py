"""The taps of a group chat: at its manager, and at what holds each of its participants.

AutoGen makes both when a team runs for the first time, so they are found where its runtime gets
its agents. Their handlers run inside their own lock, which keeps the order for each of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import GraphFlow, MagenticOneGroupChat
from autogen_agentchat.teams._group_chat._events import (
    GroupChatAgentResponse,
    GroupChatRequestPublish,
    GroupChatStart,
    GroupChatTeamResponse,
)
from autogen_core import SingleThreadedAgentRuntime

from dig.adapters import Attached, Plan, Session, Turn
from dig.adapters.base.holds import OnLoop
from dig.adapters.base.patching import Taps
from dig.adapters.base.running import inside
from dig.errors import SettingsError

from .chat import Chat, IsHandoff
from .ending import Ending, has_turns_left, is_pause, is_said
from .taps import Deliver, Messenger, must_have

RUNTIME = ("_get_agent", "_instantiated_agents")
TEAM = (
    "_runtime", "_participants", "_participant_names", "_participant_topic_types", "_team_id",
    "_group_chat_manager_name", "_group_chat_manager_topic_type",
)  # fmt: skip

CAN = frozenset({"annotate", "tell", "hold", "bounce"})

NOTE = "[monitor] {}"
SOURCE = "monitor"

Whole = Callable[..., Awaitable[Any]]


def plan(team: Any, handoff: IsHandoff | None, deliver: Deliver | None) -> Plan:
    """Look at a team of AgentChat.

    Raises:
        SettingsError: It runs on another runtime than the one that was tested.
    """
    must_have(team, TEAM)
    if not isinstance(team._runtime, SingleThreadedAgentRuntime):
        kind = type(team._runtime).__name__
        raise SettingsError(f"this team runs on a {kind}; only SingleThreadedAgentRuntime will do")
    must_have(team._runtime, RUNTIME)
    messenger, names = Messenger(deliver), tuple(team._participant_names)

    def attach(session: Session) -> Attached:
        chat = messenger.teller = Chat(session, team, handoff)
        return Attached(team, Group(team, chat, messenger.loop).restore)

    can = CAN | ({"wake"} if deliver else set())
    return Plan("an AutoGen team", names, attach, can, on_note=messenger.bring)


class Group:
    """The taps of one team."""

    def __init__(self, team: Any, chat: Chat, loop: OnLoop) -> None:
        """Put them in place; the rest follows when the team runs for the first time."""
        self._team = team
        self._chat = chat
        self._taps = Taps()
        self._loop = loop
        names = zip(team._participant_topic_types, team._participant_names, strict=True)
        self._participants = dict(names)
        self._known: set[int] = set()
        self._may_go_on = not isinstance(team, GraphFlow | MagenticOneGroupChat)
        self._taps.tap(team._runtime, "_get_agent", self._get_agent)
        self._taps.tap(team._runtime, "stop_when_idle", self._stop)
        for agent_id, agent in team._runtime._instantiated_agents.items():
            self._know(agent_id, agent)

    def restore(self) -> Any:
        """Take them away again; returns the team."""
        self._taps.restore()
        self._chat.step(self._chat.close, otherwise=None)
        return self._team

    # --- finding them ---

    async def _get_agent(self, whole: Whole, agent_id: Any) -> Any:
        agent = await whole(agent_id)
        self._know(agent_id, agent)
        return agent

    async def _stop(self, whole: Whole) -> None:
        """The runtime has nothing to do any more; AutoGen may have stopped in the midst of it."""
        try:
            await whole()
        finally:
            self._chat.step(self._chat.end_request, otherwise=None)

    def _know(self, agent_id: Any, agent: Any) -> None:
        if agent_id.key != self._team._team_id or id(agent) in self._known:
            return
        if agent_id.type in self._participants:
            self._handle(agent, {GroupChatRequestPublish: self._speak})
        elif agent_id.type == self._team._group_chat_manager_topic_type:
            self._manage(agent)
        self._known.add(id(agent))

    def _manage(self, manager: Any) -> None:
        answers = dict.fromkeys((GroupChatAgentResponse, GroupChatTeamResponse), self._hear)
        self._handle(manager, {GroupChatStart: self._start, **answers})
        tap = partial(self._taps.tap, manager)
        tap("publish_message", self._publish)
        tap("_signal_termination", self._end)
        tap("_signal_termination_with_error", self._fail)
        condition = manager._termination_condition
        if condition is not None and self._chat.session.mode == "heal":
            ending = Ending(condition, partial(self._comes_back, manager))
            self._taps.put(manager, "_termination_condition", ending)

    def _handle(self, agent: Any, stand_ins: dict[type, Callable[..., Any]]) -> None:
        handlers = defaultdict(list, agent._handlers)
        for kind, stand_in in stand_ins.items():
            handlers[kind] = [self._taps.around(one, stand_in) for one in agent._handlers[kind]]
        self._taps.put(agent, "_handlers", handlers)

    # --- the manager ---

    async def _start(self, whole: Whole, manager: Any, message: Any, ctx: Any) -> Any:
        self._loop.is_here()
        self._chat.step(self._chat.begin_request, message.messages, otherwise=None)
        return await self._decide(whole, manager, message, ctx)

    async def _hear(self, whole: Whole, manager: Any, message: Any, ctx: Any) -> Any:
        self._chat.step(self._chat.hear, message, otherwise=None)
        return await self._decide(whole, manager, message, ctx)

    async def _decide(self, whole: Whole, manager: Any, message: Any, ctx: Any) -> Any:
        try:
            result = await whole(manager, message, ctx)
        except BaseException as error:
            self._chat.step(self._chat.fail_request, error, otherwise=None)
            raise
        self._chat.step(self._chat.place, otherwise=None)
        return result

    async def _publish(self, whole: Whole, message: Any, topic_id: Any, **more: Any) -> None:
        if isinstance(message, GroupChatRequestPublish) and topic_id.type in self._participants:
            name = self._participants[topic_id.type]
            self._chat.step(self._chat.ask, name, otherwise=None)
        await whole(message, topic_id, **more)

    async def _comes_back(self, manager: Any, stop: Any) -> bool:
        may_go_on = self._may_go_on and is_said(stop) and has_turns_left(manager)
        is_back = await self._submits(bounces=may_go_on, pauses=is_pause(stop))
        if is_back:
            _choose(manager, self._chat.again)
        return is_back

    async def _end(self, whole: Whole, message: Any) -> None:
        if await self._submits(bounces=False, pauses=is_pause(message)):
            self._chat.is_lost = True  # nothing can be sent back here
        self._chat.step(self._chat.end_request, otherwise=None)
        await whole(message)

    async def _fail(self, whole: Whole, error: Any) -> None:
        text = f"{error.error_type}: {error.error_message}"
        self._chat.step(self._chat.end_request, text, otherwise=None)
        await whole(error)

    async def _submits(self, *, bounces: bool, pauses: bool) -> bool:
        """Submit the last word; says whether it came back."""
        answer = self._chat.step(self._chat.submit, bounces, pauses, otherwise="")
        if not answer:
            return False
        await self._chat.session.released(answer)
        return self._chat.step(self._chat.has_back, answer, otherwise=False)

    # --- a participant ---

    async def _speak(self, whole: Whole, container: Any, message: Any, ctx: Any) -> None:
        chat, name = self._chat, container._agent.name
        none: tuple[str, ...] = ()
        try:
            for event in chat.step(chat.mail_of, name, otherwise=none):
                await self._released(event, ctx)
        except BaseException as error:
            chat.step(chat.give_up, name, error, otherwise=None)
            raise
        turn = chat.step(chat.begin, name, otherwise=None)
        if turn is None:
            await whole(container, message, ctx)
            return
        chat.step(chat.wait_for_person, name, turn, otherwise=None)
        notes = chat.step(self._show, container, turn, otherwise=())
        try:
            with inside(turn):
                await whole(container, message, ctx)
        except BaseException as error:
            container._message_buffer[:] = [m for m in container._message_buffer if m not in notes]
            chat.step(chat.fail, name, error, otherwise=None)
            raise
        chat.step(chat.spoken, name, otherwise=None)

    async def _released(self, event: str, ctx: Any) -> None:
        """Wait while an event is held; whoever cancels the run waits no more."""
        chat = self._chat
        if chat.step(chat.session.is_held, event, otherwise=False):
            ctx.cancellation_token.add_callback(
                lambda: chat.step(chat.session.let_go, event, otherwise=None)
            )
            await chat.session.released(event)

    def _show(self, container: Any, turn: Turn) -> tuple[Any, ...]:
        """Put notes behind what a participant has heard, as if somebody had told it alone."""
        notes = tuple(
            TextMessage(content=NOTE.format(note), source=SOURCE)
            for note in self._chat.notes_for(turn)
        )
        container._message_buffer.extend(notes)
        return notes


def _choose(manager: Any, participant: str | None) -> None:
    """Have a manager choose a participant next, whom it would not choose itself."""
    before = vars(manager).get("select_speaker")

    async def once(thread: Any) -> Any:
        del manager.select_speaker
        if before is not None:
            manager.select_speaker = before
        return [participant]

    manager.select_speaker = once
