"""Agents in their own process: mail comes, the function runs, a message has the decision.

After a crash in the middle of a turn the same activation comes again, to the same name in any
process, and the function runs again; the first stored decision counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain, repeat

import anyio
from nats.aio.client import Client
from nats.aio.msg import Msg

from dig.errors import ConsumerGoneError
from dig.runtime.agents import Agent, AgentFunction, as_agent
from dig.runtime.observers import attempt

from .connection import (
    ANSWER_S,
    TROUBLE,
    Puller,
    connect,
    inbox_of,
    logger,
    patiently,
    store,
)
from .envelopes import Mail, decision_body, read_activation
from .names import KIND, MSG_ID, TRACEPARENT, VERSION, Subjects, V, consumer, token_of

_FAR = 3600.0


async def serve_agents(
    session: str, agents: Mapping[str, Agent | AgentFunction], *, nats: str,
    credentials: str | None, beat_s: float,
) -> None:  # fmt: skip
    """Serve agents of a session until cancellation; `dig.join` describes the arguments."""
    team = {name: as_agent(agent) for name, agent in agents.items()}
    posts: list[AgentPost] = []

    def note_connection(is_connected: bool) -> None:
        for post in posts:
            post.note_connection()

    async with (
        connect(nats, credentials=credentials, on_change=note_connection) as client,
        anyio.create_task_group() as tasks,
    ):
        for name, agent in team.items():
            posts.append(AgentPost(client, Subjects(session), name, agent))
            tasks.start_soon(posts[-1].work)
            tasks.start_soon(posts[-1].beat, beat_s)


class AgentPost:
    """The place of an agent in this process."""

    def __init__(self, client: Client, names: Subjects, name: str, agent: Agent) -> None:
        """Begin before the first mail."""
        self._client, self._names, self._agent = client, names, agent
        self._token = token_of(name)
        self._js = client.jetstream(timeout=ANSWER_S)
        self._inbox: Puller | None = None

    def note_connection(self) -> None:
        """The connection was lost, or is back."""
        if self._inbox is not None:
            self._inbox.is_broken = True

    async def beat(self, beat_s: float) -> None:
        """Send heartbeats; the first has the agent join."""
        while True:
            try:
                await self._client.publish(self._names.beat(self._token), b"")
            except TROUBLE as error:
                logger.debug("dig: no heartbeat: %s", error)
            await anyio.sleep(beat_s)

    async def work(self) -> None:
        """Take message after message."""
        stream, ack_wait_s = self._names.to, await self._await_inbox()
        while True:
            try:
                if self._inbox is None:
                    self._inbox = await inbox_of(self._client, stream, self._token).open()
                for message in await self._inbox.read(1, _FAR):
                    await self._answer(message, ack_wait_s)
            except ConsumerGoneError:
                if self._inbox is not None:
                    await self._inbox.close()
                self._inbox = None
            except TROUBLE as error:
                logger.debug("dig: no mail: %s", error)
                await anyio.sleep(0.1)

    async def _await_inbox(self) -> float:
        """Wait for the inbox, made by the monitor at the join; return the `ack_wait`."""
        stream, name = self._names.to, consumer(self._token)
        for attempt_s in chain((0.02, 0.05, 0.1, 0.2, 0.5), repeat(1.0)):
            if (info := await patiently(lambda: self._js.consumer_info(stream, name))) is not None:
                break
            await anyio.sleep(attempt_s)
        return float(info.config.ack_wait or 30.0)

    async def _answer(self, message: Msg, ack_wait_s: float) -> None:
        try:
            mail = read_activation(message.data)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # Only monitors write here, but of another version, perhaps.
            logger.warning("dig: mail of %s cannot be read: %r", self._token, error)
            return await message.ack()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stay, message, ack_wait_s / 3)
            await self._decide(mail)
            tasks.cancel_scope.cancel()
        await message.ack()

    async def _stay(self, message: Msg, every_s: float) -> None:
        """Tell the server of work in progress, against a redelivery."""
        while True:
            await anyio.sleep(every_s)
            try:
                await message.in_progress()
            except TROUBLE as error:
                logger.debug("dig: not told that work goes on: %s", error)

    async def _decide(self, mail: Mail) -> None:
        with trace_context(mail):
            value, error = await attempt(partial(self._agent.act, mail.view), Exception)
            context = current_context()
        body = decision_body(mail, value, error, self._client.max_payload)
        headers = {
            V: VERSION, KIND: "decision", MSG_ID: f"d.{mail.view.activation}.{mail.mark}",
            **({TRACEPARENT: context} if context else {}),
        }  # fmt: skip
        await store(self._js, self._names.raw_subject(self._token), body, headers)


def trace_context(mail: Mail) -> AbstractContextManager[object]:
    """Make the context of the first traced event the current context."""
    if not mail.contexts:
        return nullcontext()
    from opentelemetry import context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {TRACEPARENT: next(iter(mail.contexts.values()))}
    return _Attached(context.attach(TraceContextTextMapPropagator().extract(carrier)))


class _Attached(AbstractContextManager[object]):
    def __init__(self, token: object) -> None:
        self._token = token

    def __exit__(self, *error: object) -> None:
        from opentelemetry import context

        context.detach(self._token)  # type: ignore[arg-type]


def current_context() -> str | None:
    """Get the current W3C trace context; ``None``: nothing is traced."""
    import sys

    if "opentelemetry.trace" not in sys.modules:  # then nothing here can be traced
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get(TRACEPARENT)
