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

from dig.adapters import base

from .messages import AtWork, PublishedDelivery, PublishedMessage, completed_run, payload_of

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
    deliver: base.Deliver | None,
) -> base.WrapPlan:  # fmt: skip
    """Look at a runtime.

    Raises:
        SettingsError: An option does not fit.
    """
    base.need_attributes("AutoGen", (runtime,), RUNTIME)
    external, allowed = base.names_in(outside, "outside"), base.allowing(allow, {"bounce"})
    delivery = base.NoteDelivery(deliver)

    def attach(session: base.Session) -> base.Attached:
        delivery.state = state = base.AdapterState(session)
        patches = RuntimePatches(
            runtime, state, delivery.loop, external, annotate, may_bounce=bool(allowed)
        )
        return base.Attached(runtime, patches.restore)

    unseen = external | of_chats(runtime)
    agents = tuple(name for name in runtime._agent_factories if name not in unseen)
    can = CAN | allowed | ({"wake"} if deliver else set())
    return base.WrapPlan("an AutoGen runtime", agents, attach, can, on_note=delivery.on_note)


class RuntimePatches:
    """The patches of a runtime."""

    def __init__(
        self, runtime: Any, state: base.AdapterState, loop: base.LoopCaller,
        outside: frozenset[str], annotate: Annotate | None, *, may_bounce: bool,
    ) -> None:  # fmt: skip
        self._runtime = runtime
        self._state = state
        self._session = state.session
        self._patches = patches = base.Patches()
        self._loop = loop
        self._outside = outside
        self._may_bounce = may_bounce
        self._annotate = annotate
        self._deliveries: dict[Key, base.Call | PublishedDelivery] = {}  # by message and recipient
        self._calls: dict[Key, tuple[Any, base.Call]] = {}  # what is waited for, with its token
        self._at_work: AtWork = {}
        self._order = base.RecipientOrder()
        self._patched: set[int] = set()
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
        """Restore the methods."""
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
        key, caller = (message_id, recipient), base.current_turn(self._session)
        call = self._deliveries[key] = base.Call(
            self._session, name_of(recipient), payload_of(message), tell=payload_of,
            bounces=lambda: self._may_bounce and not self._state.has_failed,
        )  # fmt: skip
        self._calls[key] = token, call
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
            self._calls.pop(key, None)

    def _take_back(self, key: Key, token: Any, error: BaseException) -> None:
        """End all calls made with a cancelled agent's token, the latest first.

        Those who were asked with it are cancelled too, but only after the agent.
        """
        keys = [other for other, (owner, _) in self._calls.items() if owner is token]
        since = keys[keys.index(key) :] if key in keys else []
        for other in reversed(since):
            self._deliveries.pop(other, None)
            self._calls.pop(other)[1].take_back(error)

    async def _publish(
        self, original: Original, message: Any, topic_id: Any, *, sender: Any = None,
        message_id: str | None = None, **more: Any,
    ) -> None:  # fmt: skip
        self._loop.bind_to_current_loop()
        message_id = message_id or str(uuid4())
        self._state.step(self._post, message, topic_id, sender, message_id, default=None)
        await original(message, topic_id, sender=sender, message_id=message_id, **more)

    def _post(self, message: Any, topic_id: Any, sender: Any, message_id: str) -> None:
        """Make the event of a published message, and a delivery for each recipient."""
        if sender is not None and sender.type in self._of_chats:
            return
        turn, payload = base.current_turn(self._session), payload_of(message)
        to = [agent for agent in self._subscribers(topic_id) if agent != sender]
        agents = [agent for agent in to if self._is_seen(message_id, agent)]
        if turn is not None and any(agent.type in self._outside for agent in to):
            if turn in self._at_work:
                self._at_work[turn].answer = payload
            else:  # the sender waits for a further answer, so this is none
                turn.send(payload, (), "notice", awaits=False)
        if to and not agents:
            return
        instances = tuple(self._session.reserve_instance(name_of(agent)) for agent in agents)
        if turn is not None:
            event = turn.call(payload, instances, awaits=bool(instances))
        else:
            kind = "problem" if self._outside else "notice"  # else no agent can ever answer it
            event = self._session.request(payload, instances, kind)
        published = PublishedMessage(event, turn, len(agents))
        for agent, instance in zip(agents, instances, strict=True):
            received = (event if turn else "", payload)
            post = PublishedDelivery(self._state, published, instance, received, self._at_work)
            self._deliveries[message_id, agent] = post

    def _subscribers(self, topic_id: Any) -> list[AgentId]:
        """The agents subscribed to a topic, as the runtime will find."""
        subscriptions = self._runtime._subscription_manager.subscriptions
        matching = (rule for rule in subscriptions if rule.is_match(topic_id))
        return [*dict.fromkeys(rule.map_to_agent(topic_id) for rule in matching)]

    def _is_seen(self, message_id: str, agent: AgentId) -> bool:
        """Whether a message is reported: not to the outside, and only once for an id."""
        unseen = self._outside | self._of_chats
        is_here = agent.type in self._runtime._agent_factories and agent.type not in unseen
        return is_here and (message_id, agent) not in self._deliveries

    # --- what is received ---

    async def _get_agent(self, original: Original, agent_id: AgentId) -> Any:
        agent = await original(agent_id)
        self._know(agent)
        return agent

    def _know(self, agent: Any) -> None:
        if id(agent) in self._patched or agent.id.type in self._outside | self._of_chats:
            return
        self._patched.add(id(agent))
        self._patches.patch(agent, "on_message", partial(self._receive, agent))
        if isinstance(agent, RoutedAgent):
            handlers = defaultdict(list, agent._handlers)
            for kind, originals in agent._handlers.items():
                handlers[kind] = [self._patches.around(each, self._handle) for each in originals]
            self._patches.put(agent, "_handlers", handlers)

    async def _receive(self, agent: Any, original: Original, message: Any, ctx: Any) -> Any:
        """Receive a message; if the agent has handlers, `_handle` takes the message up."""
        key = (ctx.message_id, agent.id)
        delivery = self._deliveries.get(key)
        if delivery is None:
            return await original(message, ctx)
        try:
            is_held = self._state.step(self._session.is_held, delivery.event, default=False)
            wait = partial(self._wait_until_released, delivery.event) if is_held else None
            await self._order.wait_turn(agent.id, wait)
            if not isinstance(agent, RoutedAgent):
                return await self._take(key, message, partial(original, ctx=ctx))
            result = await original(message, ctx)
        except BaseException as error:
            await self._fail(key, error)
            raise
        await self._ignore(key, result)
        return result

    async def _wait_until_released(self, event: str) -> None:
        await self._session.wait_until_released(event)

    async def _handle(self, original: Original, agent: Any, message: Any, ctx: Any) -> Any:
        key = (ctx.message_id, agent.id)
        return await self._take(key, message, partial(original, agent, ctx=ctx))

    async def _take(self, key: Key, message: Any, handle: Original) -> Any:
        delivery = self._deliveries.pop(key, None)
        if delivery is None:
            return await handle(message)

        def work(agent: str, notes: tuple[str, ...]) -> Awaitable[Any]:
            if self._annotate is None or not notes or self._state.only_observes:
                return handle(message)
            annotate, guard = self._annotate, self._session.guard
            return handle(guard.call(annotate, message, notes, default=message))

        return await delivery.run(work)

    # --- what is never taken up ---

    async def _ignore(self, key: Key, result: Any) -> None:
        """An agent has no handler for a message."""
        delivery = self._deliveries.pop(key, None)
        if isinstance(delivery, PublishedDelivery):
            self._state.step(delivery.ignore, default=None)
        elif delivery is not None:
            await delivery.run(completed_run(result))

    async def _fail(self, key: Key, error: BaseException) -> None:
        delivery = self._deliveries.pop(key, None)
        if isinstance(delivery, base.Call):
            self._state.step(delivery.take_back, error, default=None)
        elif delivery is not None:
            self._state.step(self._session.release, delivery.event, default=None)
            with suppress(type(error)):
                await delivery.run(completed_run(error=error))

    async def _stop(self, original: Original) -> None:
        """Stop the runtime: all queued messages are lost."""
        try:
            await original()
        finally:
            for key in tuple(self._deliveries):
                await self._fail(key, base.CalledOffError("the runtime was stopped"))


def of_chats(runtime: Any) -> set[str]:
    """The types of the agents of group chats in a runtime."""
    agents = runtime._instantiated_agents.items()
    return {agent_id.type for agent_id, agent in agents if isinstance(agent, CHAT)}


def name_of(agent: AgentId) -> str:
    """The name of an agent here: the type, and the key unless default."""
    return str(agent.type if agent.key == "default" else f"{agent.type}/{agent.key}")
