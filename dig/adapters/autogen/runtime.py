"""The patches of a core runtime: where messages are sent, published and received."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from inspect import isclass
from typing import Any
from uuid import uuid4

from autogen_agentchat.teams._group_chat._base_group_chat_manager import BaseGroupChatManager
from autogen_agentchat.teams._group_chat._chat_agent_container import ChatAgentContainer
from autogen_core import AgentId, RoutedAgent

from dig.adapters.base import (
    AdapterState,
    Attached,
    Call,
    CalledOffError,
    Deliver,
    LoopCaller,
    NoteDelivery,
    Patches,
    RecipientOrder,
    Session,
    Turn,
    WrapPlan,
    allowing,
    current_turn,
    names_in,
    need_attributes,
)

from .messages import AtWork, PublishedDelivery, PublishedMessage, ended, told

RUNTIME = ("_get_agent", "_instantiated_agents", "_agent_factories", "_subscription_manager")

CHAT = (BaseGroupChatManager, ChatAgentContainer)
"""The classes of the agents that a group chat puts into its runtime; a wrapped team tells of it."""

CAN = frozenset({"annotate", "tell", "hold"})

Annotate = Callable[[Any, tuple[str, ...]], Any]
"""Puts notes into a message: `(message, notes) -> message`."""

Original = Callable[..., Awaitable[Any]]
Key = tuple[str, AgentId]


def plan(
    runtime: Any, outside: Iterable[str], allow: Iterable[str], annotate: Annotate | None,
    deliver: Deliver | None,
) -> WrapPlan:  # fmt: skip
    """Look at a runtime.

    Raises:
        SettingsError: An option does not fit.
    """
    need_attributes("AutoGen", (runtime,), RUNTIME)
    others, allowed = names_in(outside, "outside"), allowing(allow, {"bounce"})
    delivery = NoteDelivery(deliver)

    def attach(session: Session) -> Attached:
        delivery.state = state = AdapterState(session)
        patches = RuntimePatches(
            runtime, state, delivery.loop, others, annotate, may_bounce=bool(allowed)
        )
        return Attached(runtime, patches.restore)

    unseen = others | of_chats(runtime)
    agents = tuple(name for name in runtime._agent_factories if name not in unseen)
    can = CAN | allowed | ({"wake"} if deliver else set())
    return WrapPlan("an AutoGen runtime", agents, attach, can, on_note=delivery.on_note)


class RuntimePatches:
    """The patches of one runtime."""

    def __init__(
        self, runtime: Any, state: AdapterState, loop: LoopCaller, outside: frozenset[str],
        annotate: Annotate | None, *, may_bounce: bool,
    ) -> None:  # fmt: skip
        """Put them in place."""
        self._runtime = runtime
        self._state = state
        self._session = state.session
        self._patches = patches = Patches()
        self._loop = loop
        self._outside = outside
        self._may_bounce = may_bounce
        self._annotate = annotate
        self._deliveries: dict[Key, Call | PublishedDelivery] = {}  # by message and recipient
        self._asked: dict[Key, tuple[Any, Call]] = {}  # what is waited for, with its token
        self._at_work: AtWork = {}
        self._order = RecipientOrder()
        self._known: set[int] = set()
        self._of_chats = of_chats(runtime)
        patches.patch(runtime, "register_factory", self._register)
        patches.patch(runtime, "send_message", self._send)
        patches.patch(runtime, "publish_message", self._publish)
        patches.patch(runtime, "_get_agent", self._get_agent)
        for name in ("stop", "stop_when_idle"):
            patches.patch(runtime, name, self._stop)
        for agent in runtime._instantiated_agents.values():
            self._know(agent)

    def restore(self) -> None:
        """Take them away again."""
        self._patches.restore()

    async def _register(
        self, original: Original, type: Any, agent_factory: Any, *, expected_class: Any = None
    ) -> Any:
        if isclass(expected_class) and issubclass(expected_class, CHAT):
            self._of_chats.add(getattr(type, "type", type))
        return await original(type, agent_factory, expected_class=expected_class)

    # --- what is sent ---

    async def _send(
        self, original: Original, message: Any, recipient: AgentId, *,
        message_id: str | None = None, **more: Any,
    ) -> Any:  # fmt: skip
        self._loop.bind_to_current_loop()
        message_id, token = message_id or str(uuid4()), more.get("cancellation_token")
        original = partial(original, message, recipient, message_id=message_id, **more)
        if not self._is_seen(message_id, recipient):
            return await original()
        key, caller = (message_id, recipient), current_turn(self._session)
        call = self._deliveries[key] = Call(
            self._session, name_of(recipient), told(message), tell=told,
            bounces=lambda: self._may_bounce and not self._state.has_failed,
        )  # fmt: skip
        self._asked[key] = token, call
        try:
            return await original()
        except Exception as error:
            await self._fail(key, error)
            raise
        except BaseException as error:  # cancelled; the agent may take up the call in any case
            if caller is not None and token is not None and token.is_cancelled():
                self._take_back(key, token, error)
            elif caller is not None:
                self._state.step(caller.receive, default=None)
            raise
        finally:
            self._asked.pop(key, None)

    def _take_back(self, key: Key, token: Any, error: BaseException) -> None:
        """An agent waits no more: what was asked with its token since is over, the latest first.

        Those who were asked with it are cancelled too, but only after the agent.
        """
        mine = [one for one, (given, _) in self._asked.items() if given is token]
        since = mine[mine.index(key) :] if key in mine else []
        for one in reversed(since):
            self._deliveries.pop(one, None)
            self._asked.pop(one)[1].take_back(error)

    async def _publish(
        self, original: Original, message: Any, topic_id: Any, *, sender: Any = None,
        message_id: str | None = None, **more: Any,
    ) -> None:  # fmt: skip
        self._loop.bind_to_current_loop()
        message_id = message_id or str(uuid4())
        self._state.step(self._post, message, topic_id, sender, message_id, default=None)
        await original(message, topic_id, sender=sender, message_id=message_id, **more)

    def _post(self, message: Any, topic_id: Any, sender: Any, message_id: str) -> None:
        """Make the event of a message that is published, and one post for each recipient."""
        if sender is not None and sender.type in self._of_chats:
            return
        turn, payload = current_turn(self._session), told(message)
        to = [one for one in self._subscribed(topic_id) if one != sender]
        here = [one for one in to if self._is_seen(message_id, one)]
        if turn is not None and any(one.type in self._outside for one in to):
            self._answer(turn, payload)
        if to and not here:
            return
        instances = tuple(self._session.reserve_instance(name_of(one)) for one in here)
        event = self._event(turn, payload, instances)
        published = PublishedMessage(event, turn, len(here))
        for agent, instance in zip(here, instances, strict=True):
            received = (event if turn else "", payload)
            post = PublishedDelivery(self._state, published, instance, received, self._at_work)
            self._deliveries[message_id, agent] = post

    def _answer(self, turn: Turn, payload: Any) -> None:
        """Something is said to the outside: an answer, unless the sender waits for another one."""
        if turn in self._at_work:
            self._at_work[turn].answer = payload
        else:
            turn.send(payload, (), "notice", awaits=False)

    def _event(self, turn: Turn | None, payload: Any, instances: tuple[str, ...]) -> str:
        if turn is None:
            kind = "problem" if self._outside else "notice"  # else no agent can ever answer it
            return self._session.request(payload, instances, kind)
        return turn.call(payload, instances, awaits=bool(instances))

    def _subscribed(self, topic_id: Any) -> list[AgentId]:
        """The agents that get what is published, as the runtime finds out later."""
        subscriptions = self._runtime._subscription_manager.subscriptions
        found = (one.map_to_agent(topic_id) for one in subscriptions if one.is_match(topic_id))
        return [*dict.fromkeys(found)]

    def _is_seen(self, message_id: str, agent: AgentId) -> bool:
        """Whether a message is told of: not what the outside gets, nor two of the same id."""
        unseen = self._outside | self._of_chats
        is_here = agent.type in self._runtime._agent_factories and agent.type not in unseen
        return is_here and (message_id, agent) not in self._deliveries

    # --- what is received ---

    async def _get_agent(self, original: Original, agent_id: AgentId) -> Any:
        agent = await original(agent_id)
        self._know(agent)
        return agent

    def _know(self, agent: Any) -> None:
        if id(agent) in self._known or agent.id.type in self._outside | self._of_chats:
            return
        self._known.add(id(agent))
        self._patches.patch(agent, "on_message", partial(self._receive, agent))
        if isinstance(agent, RoutedAgent):
            handlers = defaultdict(list, agent._handlers)
            for kind, known in agent._handlers.items():
                handlers[kind] = [self._patches.around(one, self._handle) for one in known]
            self._patches.put(agent, "_handlers", handlers)

    async def _receive(self, agent: Any, original: Original, message: Any, ctx: Any) -> Any:
        """A message is in front of an agent; `_handle` takes it up, if the agent has handlers."""
        key = (ctx.message_id, agent.id)
        delivery = self._deliveries.get(key)
        if delivery is None:
            return await original(message, ctx)
        try:
            is_held = self._state.step(self._session.is_held, delivery.event, default=False)
            wait = partial(self._released, delivery.event) if is_held else None
            await self._order.wait_turn(agent.id, wait)
            if not isinstance(agent, RoutedAgent):
                return await self._take(key, message, partial(original, ctx=ctx))
            result = await original(message, ctx)
        except BaseException as error:
            await self._fail(key, error)
            raise
        await self._ignore(key, result)
        return result

    async def _released(self, event: str) -> None:
        await self._session.wait_until_released(event)

    async def _handle(self, original: Original, agent: Any, message: Any, ctx: Any) -> Any:
        key = (ctx.message_id, agent.id)
        return await self._take(key, message, partial(original, agent, ctx=ctx))

    async def _take(self, key: Key, message: Any, handle: Original) -> Any:
        delivery = self._deliveries.pop(key, None)
        if delivery is None:
            return await handle(message)

        def work(agent: str, notes: tuple[str, ...]) -> Awaitable[Any]:
            return handle(self._annotated(message, notes))

        return await delivery.run(work)

    def _annotated(self, message: Any, notes: tuple[str, ...]) -> Any:
        if self._annotate is None or not notes or self._state.only_observes:
            return message
        return self._session.guard.call(self._annotate, message, notes, default=message)

    # --- what is never taken up ---

    async def _ignore(self, key: Key, result: Any) -> None:
        """An agent has no handler for a message."""
        delivery = self._deliveries.pop(key, None)
        if isinstance(delivery, PublishedDelivery):
            self._state.step(delivery.ignore, default=None)
        elif delivery is not None:
            await delivery.run(ended(result))

    async def _fail(self, key: Key, error: BaseException) -> None:
        delivery = self._deliveries.pop(key, None)
        if isinstance(delivery, Call):
            self._state.step(delivery.take_back, error, default=None)
        elif delivery is not None:
            self._state.step(self._session.release, delivery.event, default=None)
            with suppress(type(error)):
                await delivery.run(ended(error=error))

    async def _stop(self, original: Original) -> None:
        """The runtime is stopped: what is in its queue is lost."""
        try:
            await original()
        finally:
            for key in tuple(self._deliveries):
                await self._fail(key, CalledOffError("the runtime was stopped"))


def of_chats(runtime: Any) -> set[str]:
    """The types of the agents that group chats have put into a runtime by now."""
    found = runtime._instantiated_agents.items()
    return {agent_id.type for agent_id, agent in found if isinstance(agent, CHAT)}


def name_of(agent: AgentId) -> str:
    """The name of an agent here: its type, and its key where that says anything."""
    return str(agent.type if agent.key == "default" else f"{agent.type}/{agent.key}")
