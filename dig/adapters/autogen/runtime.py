"""The taps of a core runtime: where messages are sent and published, and where agents get them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import uuid4

from autogen_core import AgentId, RoutedAgent

from dig.adapters import Attached, Plan, Session, Turn
from dig.adapters.base.calls import Call, Sent, calling
from dig.adapters.base.capabilities import known, names_in
from dig.adapters.base.holds import OnLoop
from dig.adapters.base.lines import Lines
from dig.adapters.base.patching import Taps, Teller
from dig.errors import SettingsError

from .messages import AtWork, Post, Published, raising, returning, told
from .taps import Deliver, Messenger, must_have

RUNTIME = ("_get_agent", "_instantiated_agents", "_agent_factories", "_subscription_manager")

CAN = frozenset({"annotate", "tell", "hold"})

Annotate = Callable[[Any, tuple[str, ...]], Any]
"""Puts notes into a message: `(message, notes) -> message`."""

Whole = Callable[..., Awaitable[Any]]
Key = tuple[str, AgentId]


def plan(
    runtime: Any, outside: Iterable[str], allow: Iterable[str], annotate: Annotate | None,
    deliver: Deliver | None,
) -> Plan:  # fmt: skip
    """Look at a runtime.

    Raises:
        SettingsError: An option does not fit.
    """
    must_have(runtime, RUNTIME)
    others, allowed = names_in(outside, "outside"), known(allow, "allow")
    if not allowed <= {"bounce"}:
        raise SettingsError(f"allow can name bounce, not {sorted(allowed)}")
    messenger = Messenger(deliver)

    def attach(session: Session) -> Attached:
        messenger.teller = teller = Teller(session)
        taps = Runtime(runtime, teller, messenger.loop, others, annotate, may_bounce=bool(allowed))
        return Attached(runtime, taps.restore)

    agents = tuple(name for name in runtime._agent_factories if name not in others)
    can = CAN | allowed | ({"wake"} if deliver else set())
    return Plan("an AutoGen runtime", agents, attach, can, on_note=messenger.bring)


class Runtime:
    """The taps of one runtime."""

    def __init__(
        self, runtime: Any, teller: Teller, loop: OnLoop, outside: frozenset[str],
        annotate: Annotate | None, *, may_bounce: bool,
    ) -> None:  # fmt: skip
        """Put them in place."""
        self._runtime = runtime
        self._teller = teller
        self._session = teller.session
        self._taps = taps = Taps()
        self._loop = loop
        self._outside = outside
        self._may_bounce = may_bounce
        self._annotate = annotate
        self._mail: dict[Key, Call | Post] = {}  # by message and recipient
        self._at_work: AtWork = {}
        self._lines = Lines()
        self._known: set[int] = set()
        taps.tap(runtime, "send_message", self._send)
        taps.tap(runtime, "publish_message", self._publish)
        taps.tap(runtime, "_get_agent", self._get_agent)
        for name in ("stop", "stop_when_idle"):
            taps.tap(runtime, name, self._stop)
        for agent in runtime._instantiated_agents.values():
            self._know(agent)

    def restore(self) -> Any:
        """Take them away again; returns the runtime."""
        self._taps.restore()
        return self._runtime

    # --- what is sent ---

    async def _send(
        self, whole: Whole, message: Any, recipient: AgentId, *,
        message_id: str | None = None, **more: Any,
    ) -> Any:  # fmt: skip
        self._loop.is_here()
        message_id = message_id or str(uuid4())
        whole = partial(whole, message, recipient, message_id=message_id, **more)
        if not self._is_seen(message_id, recipient):
            return await whole()
        key, caller = (message_id, recipient), calling(self._session)
        self._mail[key] = Call(
            self._session, name_of(recipient), told(message), tell=told,
            bounces=lambda: self._may_bounce and not self._teller.is_lost,
        )  # fmt: skip
        try:
            return await whole()
        except Exception as error:
            await self._fail(key, error)
            raise
        except BaseException:  # cancelled; the agent may take up the call in any case
            if caller is not None:
                self._teller.step(caller.receive, otherwise=None)
            raise

    async def _publish(
        self, whole: Whole, message: Any, topic_id: Any, *, sender: Any = None,
        message_id: str | None = None, **more: Any,
    ) -> None:  # fmt: skip
        self._loop.is_here()
        message_id = message_id or str(uuid4())
        self._teller.step(self._post, message, topic_id, sender, message_id, otherwise=None)
        await whole(message, topic_id, sender=sender, message_id=message_id, **more)

    def _post(self, message: Any, topic_id: Any, sender: Any, message_id: str) -> None:
        """Make the event of a message that is published, and one post for each recipient."""
        turn, payload = calling(self._session), told(message)
        to = [one for one in self._subscribed(topic_id) if one != sender]
        here = [one for one in to if self._is_seen(message_id, one)]
        if turn is not None and any(one.type in self._outside for one in to):
            self._answer(turn, payload)
        if to and not here:
            return
        seats = tuple(self._session.reserve(name_of(one)) for one in here)
        event = self._event(turn, payload, seats)
        published = Published(event, turn, len(here))
        for agent, seat in zip(here, seats, strict=True):
            sent = Sent(event if turn else "", payload)
            post = Post(self._teller, published, seat, sent, self._at_work)
            self._mail[message_id, agent] = post

    def _answer(self, turn: Turn, payload: Any) -> None:
        """Something is said to the outside: an answer, unless somebody waits for another one."""
        if turn in self._at_work:
            self._at_work[turn].answer = payload
        else:
            turn.send(payload, (), "notice", awaits=False)

    def _event(self, turn: Turn | None, payload: Any, seats: tuple[str, ...]) -> str:
        if turn is None:
            kind = "problem" if self._outside else "notice"  # else nobody can ever answer it
            return self._session.request(payload, seats, kind)
        event, received = turn.sent.received if turn.sent else ("", None)
        if event and received == payload and turn.holds(event):
            turn.pass_on(event, seats)
            turn.wait_for()
            return event
        return turn.send(payload, seats, awaits=bool(seats))

    def _subscribed(self, topic_id: Any) -> list[AgentId]:
        """Who gets what is published, as the runtime finds out later."""
        subscriptions = self._runtime._subscription_manager.subscriptions
        found = (one.map_to_agent(topic_id) for one in subscriptions if one.is_match(topic_id))
        return [*dict.fromkeys(found)]

    def _is_seen(self, message_id: str, agent: AgentId) -> bool:
        """Whether a message is told of: not what the outside gets, nor two of the same id."""
        is_here = agent.type in self._runtime._agent_factories and agent.type not in self._outside
        return is_here and (message_id, agent) not in self._mail

    # --- what is received ---

    async def _get_agent(self, whole: Whole, agent_id: AgentId) -> Any:
        agent = await whole(agent_id)
        self._know(agent)
        return agent

    def _know(self, agent: Any) -> None:
        if id(agent) in self._known or agent.id.type in self._outside:
            return
        self._known.add(id(agent))
        self._taps.tap(agent, "on_message", partial(self._receive, agent))
        if isinstance(agent, RoutedAgent):
            handlers = defaultdict(list, agent._handlers)
            for kind, known in agent._handlers.items():
                handlers[kind] = [self._taps.around(one, self._handle) for one in known]
            self._taps.put(agent, "_handlers", handlers)

    async def _receive(self, agent: Any, whole: Whole, message: Any, ctx: Any) -> Any:
        """A message is in front of an agent; `_handle` takes it up, if the agent has handlers."""
        key = (ctx.message_id, agent.id)
        mail = self._mail.get(key)
        if mail is None:
            return await whole(message, ctx)
        try:
            is_held = self._teller.step(self._session.is_held, mail.event, otherwise=False)
            wait = partial(self._released, mail.event) if is_held else None
            await self._lines.through(agent.id, wait)
            if not isinstance(agent, RoutedAgent):
                return await self._take(key, message, partial(whole, ctx=ctx))
            result = await whole(message, ctx)
        except BaseException as error:
            await self._fail(key, error)
            raise
        await self._ignore(key, result)
        return result

    async def _released(self, event: str) -> None:
        await self._session.released(event)

    async def _handle(self, whole: Whole, agent: Any, message: Any, ctx: Any) -> Any:
        key = (ctx.message_id, agent.id)
        return await self._take(key, message, partial(_handled, whole, agent, ctx))

    async def _take(self, key: Key, message: Any, handle: Whole) -> Any:
        mail = self._mail.pop(key, None)
        if mail is None:
            return await handle(message)

        def work(agent: str, notes: tuple[str, ...]) -> Awaitable[Any]:
            return handle(self._annotated(message, notes))

        return await mail.through(work)

    def _annotated(self, message: Any, notes: tuple[str, ...]) -> Any:
        if self._annotate is None or not notes or self._teller.only_looks:
            return message
        return self._session.guard(self._annotate, message, notes, otherwise=message)

    # --- what is never taken up ---

    async def _ignore(self, key: Key, result: Any) -> None:
        """An agent has no handler for a message."""
        mail = self._mail.pop(key, None)
        if isinstance(mail, Post):
            self._teller.step(mail.ignore, otherwise=None)
        elif mail is not None:
            await mail.through(returning(result))

    async def _fail(self, key: Key, error: BaseException) -> None:
        mail = self._mail.pop(key, None)
        if mail is not None:
            self._teller.step(self._session.let_go, mail.event, otherwise=None)
            with suppress(type(error)):
                await mail.through(raising(error))

    async def _stop(self, whole: Whole) -> None:
        """The runtime is stopped: what is in its queue is lost."""
        try:
            await whole()
        finally:
            for key in tuple(self._mail):
                await self._fail(key, RuntimeError("the runtime was stopped"))


def name_of(agent: AgentId) -> str:
    """What an agent is called here: its type, and its key where that says anything."""
    return str(agent.type if agent.key == "default" else f"{agent.type}/{agent.key}")


async def _handled(whole: Whole, agent: Any, ctx: Any, message: Any) -> Any:
    return await whole(agent, message, ctx)
