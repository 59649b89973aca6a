"""Agents in their own process: mail comes, the function runs, a message has the decision.

After a crash in the middle of a turn the same activation comes again, to the same name in any
process, and the function runs again; the first stored decision counts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import nullcontext
from functools import partial
from inspect import iscoroutinefunction, isfunction, unwrap
from itertools import chain, repeat
from math import inf
from typing import Any

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus
from nats.aio.msg import Msg

from dig.errors import ConsumerGoneError, SettingsError
from dig.runtime.agent_errors import describe
from dig.runtime.agents import as_agent
from dig.runtime.observers import attempt

from .calls import Callees, PlainAgent, is_plain
from .client import ask
from .connection import TROUBLE, Connection, Puller, connect, logger, patiently
from .contexts import current_context, trace_context
from .envelopes import ROOM, Mail, decision_body, read_activation
from .names import KIND, MSG_ID, TRACEPARENT, VERSION, Subjects, V, consumer, token_of

WAIT_S = 5.0
"""Seconds after which an agent says that it waits for its session."""


class Membership:
    """Agents of a session in this process; `dig.join` describes the arguments.

    Await it to serve until cancellation, or enter it to call agents meanwhile.
    """

    def __init__(
        self, session: str, agents: Mapping[str, Any], nats: str, credentials: str | None,
        beat_s: float,
    ) -> None:  # fmt: skip
        """Begin without a connection."""
        self._a2a = None
        if {"a2a.client", "a2a.server"} & sys.modules.keys():
            from .over_a2a import AgentsOverA2A  # else there is none

            self._a2a = AgentsOverA2A(agents)
            agents = {**self._a2a.others, **self._a2a.functions}
        for name, agent in agents.items():
            if isfunction(agent) and not iscoroutinefunction(unwrap(agent)):
                raise SettingsError(f"the function of {name!r} waits for nothing: make it async")
        self._agents: dict[str, Any] = {
            name: a if is_plain(a) else as_agent(a) for name, a in agents.items()
        }
        self._names, self._nats, self._credentials = Subjects(session), nats, credentials
        self._beat_s = beat_s

    def __await__(self) -> Generator[Any, None, None]:
        """Serve the agents until cancellation."""
        return self._serve().__await__()

    async def __aenter__(self) -> Callees:
        """Serve the agents as long as the block lasts; the agents of the session as functions."""
        self._tasks = await anyio.create_task_group().__aenter__()
        callees: Callees = await self._tasks.start(self._serve)
        return callees

    async def __aexit__(self, *error: Any) -> bool | None:
        """End the agents of this process."""
        self._tasks.cancel_scope.cancel()
        return await self._tasks.__aexit__(*error)

    async def _serve(self, *, task_status: TaskStatus[Callees] = TASK_STATUS_IGNORED) -> None:
        async with (
            connect(self._nats, credentials=self._credentials) as client,
            anyio.create_task_group() as tasks,
        ):
            most = client.max_payload - 2 * ROOM
            for name, agent in self._agents.items():
                member: Any = PlainAgent(agent, tasks, most) if is_plain(agent) else agent
                post = AgentPost(client, self._names, name, member)
                tasks.start_soon(post.work)
                tasks.start_soon(post.beat, self._beat_s)
            callees = Callees(self._agents)
            callees.outside = partial(ask, client, self._names.session)
            with nullcontext() if self._a2a is None else self._a2a.attached(callees, tasks):
                task_status.started(callees)
                await anyio.sleep_forever()


class AgentPost:
    """The place of an agent in this process."""

    def __init__(self, client: Connection, names: Subjects, name: str, agent: Any) -> None:
        """Begin before the first mail."""
        self._client, self._names, self._agent = client, names, agent
        self._name, self._token = name, token_of(name)
        self._consumer = names.to, consumer(self._token)
        self._inbox: Puller | None = None
        self._at_work: Msg | None = None

    async def beat(self, beat_s: float) -> None:
        """Send heartbeats; the first has the agent join."""
        name = self._name.encode("utf-8", "surrogatepass")
        while True:
            try:
                await self._client.publish(self._names.beat(self._token), name)
            except TROUBLE as error:
                logger.debug("dig: no heartbeat: %s", error)
            await anyio.sleep(beat_s)

    async def work(self) -> None:
        """Take message after message."""
        ack_wait_s = await self._await_inbox()
        logger.info("dig: %s has joined %s", self._name, self._names.session)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stay, ack_wait_s / 3)
            while True:
                await self._take_mail()

    async def _take_mail(self) -> None:
        try:
            if self._inbox is None:
                self._inbox = await Puller(self._client, *self._consumer, 1).open()
            for message in await self._inbox.read():
                self._at_work = message
                await self._answer(message)
                await self._inbox.finish(message)
        except ConsumerGoneError:
            if self._inbox is not None:
                await self._inbox.close()
            self._inbox = None
        except TROUBLE as error:
            logger.debug("dig: no mail: %s", error)
            await anyio.sleep(0.1)
        self._at_work = None

    async def _await_inbox(self) -> float:
        """Wait for the inbox, made by the monitor at the join; return the `ack_wait`."""
        session = self._names.session
        until_s = time.monotonic() + WAIT_S
        for attempt_s in chain((0.02, 0.05, 0.1, 0.2, 0.5), repeat(1.0)):
            info = await patiently(lambda: self._client.js.consumer_info(*self._consumer))
            if info is not None:
                break
            if time.monotonic() >= until_s:
                until_s = inf
                text = "dig: %s waits: nobody serves session %s (digmon serve --session %s)"
                logger.warning(text, self._name, session, session)
            await anyio.sleep(attempt_s)
        return float(info.config.ack_wait or 30.0)

    async def _answer(self, message: Msg) -> None:
        try:
            mail = read_activation(message.data)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # Only monitors write here, but of another version, perhaps.
            logger.warning("dig: mail of %s cannot be read: %r", self._token, error)
        else:
            await self._decide(mail)

    async def _stay(self, every_s: float) -> None:
        """Tell the server of work in progress, against a redelivery."""
        while True:
            await anyio.sleep(every_s)
            if self._at_work is not None:
                try:
                    await self._at_work.in_progress()
                except TROUBLE as error:
                    logger.debug("dig: not told that work goes on: %s", error)

    async def _decide(self, mail: Mail) -> None:
        with trace_context(mail):
            act: Callable[[], Any]
            if isinstance(self._agent, PlainAgent):
                act = partial(self._agent.step, mail.view, mail.contexts)
            else:
                act = partial(self._agent.act, mail.view)
            value, error = await attempt(act, Exception)
            if error is not None:
                logger.warning("dig: %s: %s", mail.view.agent, describe(error))
            # The spans that the function began are over, so the context is that of its mail again.
            context = next(iter(mail.contexts.values()), None) or current_context()
        body = decision_body(mail, value, error, self._client.max_payload)
        headers = {
            V: VERSION, KIND: "decision", MSG_ID: f"d.{mail.view.activation}.{mail.mark}",
            **({TRACEPARENT: context} if context else {}),
        }  # fmt: skip
        await self._client.store(self._names.raw_subject(self._token), body, headers)
