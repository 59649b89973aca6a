"""The patches of a group chat: of the manager, and of each participant's container.

AutoGen makes both when a team runs for the first time, so they are found where its runtime gets
its agents. Their handlers run inside their own lock, which keeps the order for each of them.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any

from autogen_agentchat.base import AndTerminationCondition, OrTerminationCondition
from autogen_agentchat.messages import StopMessage, TextMessage
from autogen_agentchat.teams import GraphFlow, MagenticOneGroupChat
from autogen_agentchat.teams._group_chat import _events as chat_events
from autogen_agentchat.teams._group_chat._events import SerializableException
from autogen_core import DefaultTopicId, SingleThreadedAgentRuntime

from dig.adapters import base
from dig.detectors.interventions import Reroute
from dig.detectors.spending_limits import limit_text
from dig.errors import SettingsError
from dig.graph.records import Failure

from .chat import GroupChatState, IsHandoff

SAID = frozenset({
    "FunctionCallTermination", "FunctionalTermination", "SourceMatchTermination",
    "StopMessageTermination", "TextMentionTermination", "TextMessageTermination",
})  # fmt: skip
"""Conditions by which a participant ends the chat; the others are limits, or hand over to you."""

PERSONS = frozenset({"HandoffTermination", "ExternalTermination"})
"""Conditions by which a chat stops for a person: it is asked, or has stopped the chat itself."""

LIMITS: dict[str, Failure] = {
    "MaxMessageTermination": "limit", "TimeoutTermination": "timeout",
    "TokenUsageTermination": "limit",
}  # fmt: skip
"""Conditions that guard a chat which has another end; a chat with these alone is to end so."""

Asks = Callable[[Any], Awaitable[bool]]
"""Told of a stop message; says whether the answer came back, so that the chat goes on."""


def is_pause(stop: Any) -> bool:
    """Whether a chat pauses for the answer of a person."""
    return not PERSONS.isdisjoint(stop.source.split(", "))


def limit_of(manager: Any, condition: Any, stop: Any, *, ends_itself: bool) -> Failure | None:
    """The limit at the end of a chat, if the chat could end otherwise; ``None``: an answer.

    Args:
        manager: The manager of the chat.
        condition: Its termination condition, if it has one.
        stop: Its stop message.
        ends_itself: Whether the chat can end without a condition.
    """
    ends = {*_names_in(condition)} - LIMITS.keys() - {"ExternalTermination"}
    if not (ends or ends_itself):
        return None
    if stop.source == manager._name:
        is_limit = stop.content.startswith("Maximum number of turns")
        return "limit" if is_limit else None
    limits = {LIMITS.get(source) for source in stop.source.split(", ")}
    if None in limits:
        return None
    return "limit" if "limit" in limits else "timeout"


def _names_in(condition: Any) -> Iterator[str]:
    """The names of the parts of a condition."""
    if isinstance(condition, AndTerminationCondition | OrTerminationCondition):
        for part in condition._conditions:
            yield from _names_in(part)
    elif condition is not None:
        yield type(condition).__name__


class BounceableTermination:
    """Stands in place of a manager's termination condition."""

    def __init__(self, original: Any, asks: Asks) -> None:
        """Ask `asks` whenever the condition is met."""
        self._original = original
        self._asks = asks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    async def __call__(self, messages: Any) -> Any:
        """The reason for the end of the chat; ``None``: no end."""
        stop = await self._original(messages)
        if stop is None or not await self._asks(stop):
            return stop
        await _go_on(self._original)
        return None


async def _go_on(condition: Any) -> None:
    """Reset a condition, so that the chat goes on; limits beside go on counting."""
    if isinstance(condition, OrTerminationCondition):
        for part in condition._conditions:
            if part.terminated:
                await _go_on(part)
    else:
        await condition.reset()


RUNTIME = ("_get_agent", "_instantiated_agents")
TEAM = (
    "_runtime", "_participants", "_participant_names", "_participant_topic_types", "_team_id",
    "_group_chat_manager_name", "_group_chat_manager_topic_type",
)  # fmt: skip

CAN = frozenset({"annotate", "tell", "hold", "bounce"})
BUDGET = frozenset({"stop", "meter", "hand_back"})

PLANNED = (GraphFlow, MagenticOneGroupChat)
"""Teams in which it is planned who speaks, so that no other participant can."""

SOURCE = "monitor"

RESPONSES = (chat_events.GroupChatAgentResponse, chat_events.GroupChatTeamResponse)

Original = Callable[..., Awaitable[Any]]


def plan(
    team: Any, handoff: IsHandoff | None, deliver: base.Deliver | None, allow: Iterable[str],
    *, tools: bool,
) -> base.WrapPlan:  # fmt: skip
    """Look at a team of AgentChat.

    Raises:
        SettingsError: The team runs on another runtime than the one that was tested; or an option
            does not fit.
    """
    chooses_by_plan = isinstance(team, PLANNED)
    allowed = base.allowing(allow, set() if chooses_by_plan else {"reassign"})
    base.need_attributes("AutoGen", (team,), TEAM)
    if not isinstance(team._runtime, SingleThreadedAgentRuntime):
        kind = type(team._runtime).__name__
        raise SettingsError(f"this team runs on a {kind}; only SingleThreadedAgentRuntime will do")
    base.need_attributes("AutoGen", (team._runtime,), RUNTIME)
    delivery, names = base.NoteDelivery(deliver), tuple(team._participant_names)

    def attach(session: base.Session) -> base.Attached:
        chat = delivery.state = GroupChatState(session, team, handoff)
        return base.Attached(team, GroupPatches(team, chat, delivery.loop, tools=tools).restore)

    def veto(wish: Reroute) -> str | None:
        chat = delivery.state
        return chat.why_not(wish) if isinstance(chat, GroupChatState) else "it is not attached"

    can = CAN | allowed | ({"wake"} if deliver else set())
    can |= set() if chooses_by_plan else BUDGET
    return base.WrapPlan("an AutoGen team", names, attach, can, veto, on_note=delivery.on_note)


class GroupPatches:
    """The patches of a team."""

    def __init__(
        self, team: Any, chat: GroupChatState, loop: base.LoopCaller, *, tools: bool
    ) -> None:
        """Patch the runtime; the other patches follow with the team's first run."""
        self._team = team
        self._chat = chat
        self._patches = base.Patches()
        self._loop = loop
        self._tools = tools
        names = zip(team._participant_topic_types, team._participant_names, strict=True)
        self._participants = dict(names)
        self._patched: set[int] = set()
        self._manager: Any = None
        self._condition: Any = None
        self._may_go_on = not isinstance(team, PLANNED)
        self._patches.patch(team._runtime, "_get_agent", self._get_agent)
        self._patches.patch(team._runtime, "stop_when_idle", self._stop)
        if chat.session.budget is not None:
            self._patches.patch(team, "run_stream", self._run_stream)
        for agent_id, agent in team._runtime._instantiated_agents.items():
            self._know(agent_id, agent)

    def restore(self) -> None:
        """Restore the methods."""
        self._patches.restore()
        self._chat.step(self._chat.close, default=None)

    # --- finding them ---

    async def _get_agent(self, original: Original, agent_id: Any) -> Any:
        agent = await original(agent_id)
        self._know(agent_id, agent)
        return agent

    async def _stop(self, original: Original) -> None:
        """Report the stop of the runtime, maybe in the midst of a chat."""
        try:
            await original()
        finally:
            self._chat.step(self._chat.stop, default=None)

    def _know(self, agent_id: Any, agent: Any) -> None:
        if agent_id.key != self._team._team_id or id(agent) in self._patched:
            return
        if agent_id.type in self._participants:
            self._handle(agent, {chat_events.GroupChatRequestPublish: self._speak})
            if self._chat.session.relief.is_used:
                self._patches.patch(agent, "publish_message", partial(self._answer, agent))
            if self._tools:
                self._patches.patch(agent, "_log_message", partial(self._log, agent))
        elif agent_id.type == self._team._group_chat_manager_topic_type:
            self._manage(agent)
        self._patched.add(id(agent))

    def _manage(self, manager: Any) -> None:
        self._manager = manager
        answers = dict.fromkeys(RESPONSES, self._hear)
        self._handle(manager, {chat_events.GroupChatStart: self._start, **answers})
        patch = partial(self._patches.patch, manager)
        patch("publish_message", self._publish)
        patch("_signal_termination", self._end)
        patch("_signal_termination_with_error", self._fail)
        if self._chat.session.budget is not None:
            patch("_transition_to_next_speakers", self._transition)
        condition = self._condition = manager._termination_condition
        if condition is not None and self._chat.session.mode == "heal":
            ending = BounceableTermination(condition, partial(self._comes_back, manager))
            self._patches.put(manager, "_termination_condition", ending)

    def _handle(self, agent: Any, replacements: dict[type, Callable[..., Any]]) -> None:
        handlers = defaultdict(list, agent._handlers)
        for kind, replacement in replacements.items():
            handlers[kind] = [
                self._patches.around(handler, replacement) for handler in agent._handlers[kind]
            ]
        self._patches.put(agent, "_handlers", handlers)

    # --- the manager ---

    async def _start(self, original: Original, manager: Any, message: Any, ctx: Any) -> Any:
        self._loop.bind_to_current_loop()
        self._chat.step(self._chat.begin_request, message.messages, default=None)
        return await self._decide(original, manager, message, ctx)

    async def _hear(self, original: Original, manager: Any, message: Any, ctx: Any) -> Any:
        self._chat.step(self._chat.hear, message, default=None)
        return await self._decide(original, manager, message, ctx)

    async def _decide(self, original: Original, manager: Any, message: Any, ctx: Any) -> Any:
        try:
            result = await original(manager, message, ctx)
        except BaseException as error:
            self._chat.step(self._chat.fail_request, error, default=None)
            raise
        self._chat.step(self._chat.place, default=None)
        return result

    async def _run_stream(self, original: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """Raise to the caller if a budget has stopped the request, and no answer came."""
        try:
            async for piece in original(*args, **more):
                yield piece
        except RuntimeError as error:  # AutoGen has put all errors into words
            account = self._chat.stopped
            if account is None or account.is_answered:
                raise
            raise account.exceeded() from error

    async def _transition(self, original: Original, cancellation: Any) -> None:
        """Select the next speakers, if there is budget for their turns."""
        chat, manager = self._chat, self._manager
        account = chat.step(chat.refuse, default=None)
        if account is not None and chat.step(chat.hands_back, account, default=False):
            _choose(manager, account.entry)
            account = None
        if account is None:
            await original(cancellation)
            return
        if self._condition is not None:
            await manager._termination_condition.reset()
        manager._current_turn = 0
        if chat.step(chat.has_answer, default=False):
            text = limit_text(account.reached)
            await manager._signal_termination(StopMessage(content=text, source=SOURCE))
            return
        error = account.exceeded()
        chat.step(chat.fail_request, error, "limit", default=None)
        await manager._signal_termination_with_error(SerializableException.from_exception(error))

    async def _publish(self, original: Original, message: Any, topic_id: Any, **more: Any) -> None:
        name = self._participants.get(topic_id.type)
        if isinstance(message, chat_events.GroupChatRequestPublish) and name is not None:
            self._chat.step(self._chat.ask, name, default=None)
        await original(message, topic_id, **more)

    async def _comes_back(self, manager: Any, stop: Any) -> bool:
        if self._limit(stop):
            return False
        # The manager has not counted the turn that has just ended.
        limit = manager._max_turns
        has_turns = limit is None or manager._current_turn + 1 < limit
        is_by_words = {*stop.source.split(", ")} <= SAID  # not at a limit, nor from outside
        may_go_on = self._may_go_on and is_by_words and has_turns
        is_back = await self._submits(bounces=may_go_on, pauses=is_pause(stop))
        if is_back:
            _choose(manager, self._chat.again)
        return is_back

    async def _end(self, original: Original, message: Any) -> None:
        limit = self._limit(message)
        if limit is not None:
            error = BaseException(message.content)  # a reason in the trace, which nobody raises
            self._chat.step(self._chat.fail_request, error, limit, default=None)
        runs_dry = message.source == self._manager._name
        if await self._submits(bounces=False, pauses=is_pause(message), runs_dry=runs_dry):
            self._chat.has_failed = True  # nothing can be sent back here
        self._chat.step(self._chat.end_request, default=None)
        await original(message)

    def _limit(self, stop: Any) -> Failure | None:
        return limit_of(self._manager, self._condition, stop, ends_itself=not self._may_go_on)

    async def _fail(self, original: Original, error: Any) -> None:
        """Report the end of a chat by an error of the manager or of a participant."""
        cause = sys.exception() or RuntimeError(error.error_message)
        self._chat.step(self._chat.fail_request, cause, default=None)
        await original(error)

    async def _submits(self, *, bounces: bool, pauses: bool, runs_dry: bool = False) -> bool:
        """Submit the last word; returns whether the answer came back."""
        answer = self._chat.step(self._chat.submit, bounces, pauses, runs_dry, default="")
        if not answer:
            return False
        await self._chat.session.wait_until_released(answer)
        return self._chat.step(self._chat.has_back, answer, default=False)

    # --- a participant ---

    async def _speak(self, original: Original, container: Any, message: Any, ctx: Any) -> None:
        chat, name = self._chat, container._agent.name
        none: tuple[str, ...] = ()
        try:
            for event in chat.step(chat.deliveries_for, name, default=none):
                await self._wait_until_released(event, ctx)
        except BaseException as error:
            chat.step(chat.fail_request, error, default=None)
            raise
        turn = chat.step(chat.begin, name, default=None)
        if turn is None:
            await original(container, message, ctx)
            return
        chat.step(chat.wait_for_person, name, turn, default=None)
        notes, other = chat.step(self._show, container, turn, default=()), ""
        run = partial(original, container, message, ctx)
        try:
            with base.inside(turn):
                if chat.session.relief.is_used:
                    events = [event.id for event in turn.events]
                    _, other = await chat.session.relief.run(name, events, run)
                else:
                    await run()
        except BaseException as error:
            _take_back(container, notes)
            chat.step(chat.fail, name, error, default=None)
            raise
        if other:
            _take_back(container, notes)
            await self._ask_instead(name, other, ctx)
        else:
            chat.step(chat.end_response, name, default=None)

    async def _ask_instead(self, name: str, other: str, ctx: Any) -> None:
        """Have the manager wait for another participant, after the same conversation."""
        self._chat.step(self._chat.relieve, name, other, default=None)
        active, topics = (
            self._manager._active_speakers,
            self._manager._participant_name_to_topic_type,
        )
        active[active.index(name)] = other
        await self._manager.publish_message(
            chat_events.GroupChatRequestPublish(), topic_id=DefaultTopicId(type=topics[other]),
            cancellation_token=ctx.cancellation_token,
        )  # fmt: skip
        self._chat.step(self._chat.place, default=None)

    async def _answer(
        self, container: Any, original: Original, message: Any, *args: Any, **more: Any
    ) -> None:
        """Publish a participant's words, unless another participant was asked."""
        is_response = isinstance(message, RESPONSES)
        chat, name = self._chat, container._agent.name
        if chat.step(chat.counts, name, is_response, default=True):
            await original(message, *args, **more)

    async def _log(self, container: Any, original: Original, message: Any) -> None:
        """Report a participant's tools: before the begin, and with the results."""
        chat, name = self._chat, container._agent.name
        none: tuple[str, ...] = ()
        if message.source == name:
            await chat.session.wait_until_released(
                *chat.step(chat.tell_tools, name, message, default=none)
            )
            chat.step(chat.go_on, name, message, default=None)
        await original(message)

    async def _wait_until_released(self, event: str, ctx: Any) -> None:
        """Wait while an event is held, until the run is cancelled at the latest."""
        chat = self._chat
        if chat.step(chat.session.is_held, event, default=False):
            ctx.cancellation_token.add_callback(
                lambda: chat.step(chat.session.release, event, default=None)
            )
            await chat.session.wait_until_released(event)

    def _show(self, container: Any, turn: base.Turn) -> tuple[Any, ...]:
        """Add notes to a participant's buffer, as private messages."""
        notes = tuple(
            TextMessage(content=base.NOTE.format(note), source=SOURCE)
            for note in self._chat.notes_for(turn)
        )
        container._message_buffer.extend(notes)
        return notes


def _take_back(container: Any, notes: Collection[Any]) -> None:
    """Take notes out of a participant's buffer."""
    container._message_buffer[:] = [
        message for message in container._message_buffer if message not in notes
    ]


def _choose(manager: Any, participant: str | None) -> None:
    """Have a manager select a certain participant next."""
    before = vars(manager).get("select_speaker")

    async def select_speaker(thread: Any) -> Any:
        del manager.select_speaker
        if before is not None:
            manager.select_speaker = before
        return [participant]

    manager.select_speaker = select_speaker
