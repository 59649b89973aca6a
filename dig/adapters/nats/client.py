"""Clients pose problems to a session, and wait for answers.

A client knows its answer by the trace context of its problem. It listens while the answer comes,
and asks the session's owner for what it missed while it was away.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from typing import Any

import anyio
from nats.aio.msg import Msg

from dig._util.json_values import dumps
from dig.errors import SettingsError

from .connection import TROUBLE, Connection, logger
from .contexts import problem_context
from .names import CLIENT, KIND, MSG_ID, OUT, TRACEPARENT, VERSION, Subjects, V

POLL_S = 2.0


async def pose(
    client: Connection, names: Subjects, payload: Any, to: Sequence[str] = (), context: str = ""
) -> str:
    """Store a problem; return the trace context of the answer.

    Raises:
        SettingsError: There is no such session.
    """
    context, name = context or problem_context(), secrets.token_hex(12)
    body = dumps({"payload": payload, "to": list(to), "type": "problem", "sent": time.time()})
    headers = {V: VERSION, KIND: "problem", MSG_ID: f"p.{name}", TRACEPARENT: context}
    subject = names.raw_subject(CLIENT)
    await client.store(subject, body.encode(), headers, session=names.session)
    return context


async def ask(
    client: Connection, session: str, payload: Any, to: Sequence[str] = (), context: str = ""
) -> Any:
    """Pose a problem and wait for the answer.

    Args:
        client: The connection.
        session: The session's name.
        payload: The payload of the problem.
        to: The agents that it goes to; empty: the first one.
        context: The trace context of the problem; empty: a new one.

    Raises:
        SettingsError: The session refuses it, or its work failed for good.
    """
    names, answers = Subjects(session), AwaitedAnswers(client, Subjects(session))
    await answers.open()
    return await answers.of(await pose(client, names, payload, to, context=context))


class AwaitedAnswers:
    """Collects the answers of a session."""

    def __init__(self, client: Connection, names: Subjects) -> None:
        """Begin; `open` listens."""
        self._client, self._names = client, names
        self._bodies: dict[str, dict[str, Any]] = {}
        self._news = anyio.Event()

    async def open(self) -> None:
        """Listen, before a problem is posed."""
        await self._client.subscribe(self._names.inbox(OUT), cb=self._take)

    async def of(self, context: str) -> Any:
        """Wait for the answer to a problem.

        Args:
            context: The trace context of the problem.

        Raises:
            SettingsError: The session refuses it, or its work failed for good.
        """
        while context not in self._bodies:
            self._news = anyio.Event()
            with anyio.move_on_after(POLL_S) as waiting:
                await self._news.wait()
            if waiting.cancelled_caught:
                await self._ask_again(context)
        body = self._bodies.pop(context)
        if "error" in body:
            raise SettingsError(str(body["error"]))
        return body["answer"]

    async def _ask_again(self, context: str) -> None:
        try:
            reply = await self._client.request(self._names.missed, context.encode(), timeout=0.5)
            await self._take(reply)
        except TROUBLE as error:  # there is no owner now, or no answer yet
            logger.debug("dig: no answer yet: %s", error)

    async def _take(self, message: Msg) -> None:
        body = json.loads(message.data)
        for context in body["asked"]:
            self._bodies[context] = body
        self._news.set()
