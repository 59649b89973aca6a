"""A connection to the server, which comes back by itself, and publishing until it is stored.

nats-py runs on asyncio, so everything that is served or joined does. What is sent again after an
answer was lost has the same id and the same guard; what the server makes of it differs from version
to version, so callers read back what is stored (`WrongSequenceError`).
"""

from __future__ import annotations

import asyncio  # noqa: TID251  nats-py runs on it alone
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit, urlunsplit

import anyio
import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from dig._util.redaction import masking_logger
from dig.errors import ConsumerGoneError, DamageError, SettingsError, WrongSequenceError

from .names import T, no_session

logger = masking_logger("dig.nats")

CONNECT_S, REFUSED_S, ELECTION_S, ANSWER_S, HEARTBEAT_S = 5.0, 1.0, 15.0, 2.0, 2.0
"""Seconds to wait for the first connection, for one where nothing listens or a stream that is not
there, for a stream of a cluster, for an answer, and between signs of life."""

EXAMPLE = "they look like nats://127.0.0.1:4222"

_WRONG_SEQUENCE, _TOO_LARGE = (10071, 10164), 10054
_FAR = 60.0

TROUBLE = (nats.errors.Error, APIError, OSError)
"""The errors of a call while the server is away, or cannot do what was asked for."""


def public_url(url: str) -> str:
    """The addresses of servers without users and passwords."""
    parts = [_split(address) for address in url.split(",")]
    return ",".join(urlunsplit(p._replace(netloc=p.netloc.rpartition("@")[2])) for p in parts)


def check_url(url: str) -> str:
    """Return the addresses of servers.

    Raises:
        SettingsError: One of them is none.
    """
    for address in url.split(","):
        with suppress(ValueError):  # of a port, or brackets
            parts = _split(address)
            if parts.scheme in ("nats", "tls", "ws", "wss") and parts.hostname and parts.port != 0:
                continue
        raise SettingsError(f"{address.rpartition('@')[2]} is no address of a server: {EXAMPLE}")
    return url


def _split(address: str) -> SplitResult:
    address = address.strip()
    return urlsplit(address if "://" in address else f"nats://{address}")


@asynccontextmanager
async def connect(url: str, *, credentials: str | None = None) -> AsyncIterator[Connection]:
    """Connect to a server for as long as the block lasts.

    A user's replies come below `_INBOX_<user>`, so that the server can keep them from others.

    Args:
        url: Its address, or several ones, with commas between; a user may stand before the `@`.
        credentials: The path of a file with credentials.

    Raises:
        SettingsError: No server answers there, or it refuses the user.
    """
    user = urlsplit(check_url(url).partition(",")[0]).username
    refusals: list[Exception] = []
    limit = anyio.CancelScope(deadline=anyio.current_time() + CONNECT_S)

    async def note(error: Exception) -> None:
        refusals[:] = [error]
        if isinstance(error, OSError) and not isinstance(error, TimeoutError) and "," not in url:
            limit.deadline = min(limit.deadline, anyio.current_time() + REFUSED_S)
        if "permissions violation" in str(error).lower():
            logger.warning("dig: the server refuses: %s", error)

    async def go_down() -> None:
        client.tell(False)

    async def come_back() -> None:
        client.tell(True)

    client = Connection()
    try:
        with limit:
            await client.connect(
                url.split(","), name="digmon", error_cb=note, disconnected_cb=go_down,
                reconnected_cb=come_back, user_credentials=credentials, max_reconnect_attempts=-1,
                reconnect_time_wait=0.1, ping_interval=2, max_outstanding_pings=2,
                inbox_prefix=f"_INBOX_{user}" if user else "_INBOX",
            )  # fmt: skip
    except TROUBLE as error:
        refusals[:] = refusals or [error]
    if not client.is_connected:
        reason = str(refusals[0]) if refusals else "no answer"
        raise SettingsError(
            f"no connection to {public_url(url)}: {reason}; start a server on this "
            "machine (digmon serve --embedded --session NAME), or name one (--nats URL, DIG_NATS)"
        )
    try:
        yield client
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(ANSWER_S):
            await client.close()


Message = tuple[str, bytes, Mapping[str, str]]
"""Subject, body and headers of a message to be stored."""


class Connection(Client):  # type: ignore[misc]
    """A connection to a server, with storing of messages.

    Attributes:
        js: Its JetStream.
        listeners: Are called when it is lost, and with True when it is back.
    """

    def __init__(self) -> None:
        """Begin without a connection."""
        super().__init__()
        self.js: JetStreamContext = self.jetstream(timeout=ANSWER_S)
        self.listeners: set[Callable[[bool], None]] = set()
        self._inbox, self._number, self._awaited = "", 0, dict[str, _Answers]()

    async def store_all(self, messages: Sequence[Message]) -> list[int | None]:
        """Publish messages to be stored, and wait for all answers together.

        Args:
            messages: Different ones, none of which waits for another.

        Returns:
            The sequence of each; ``None``: there was no answer in time, or a refusal. `insist`
            finds out which, with the same id and the same guard.
        """
        if not self._inbox:
            self._inbox = self.new_inbox()
            await self.subscribe(f"{self._inbox}.*.*", cb=self._take_answer)
        self._number += 1
        name = str(self._number)
        loop, answers = asyncio.get_running_loop(), _Answers([None] * len(messages), len(messages))
        self._awaited[name] = answers
        timer = loop.call_later(ANSWER_S, answers.done.set)
        try:
            for number, (subject, data, headers) in enumerate(messages):
                reply = f"{self._inbox}.{name}.{number}"
                await self.publish(subject, data, reply, dict(headers))
            await answers.done.wait()
        except TROUBLE as error:
            logger.debug("dig: not published: %s", error)
        finally:
            timer.cancel()
            del self._awaited[name]
        return answers.sequences

    def tell(self, is_connected: bool) -> None:
        """Tell all listeners; a new connection has no answers to the requests of a lost one."""
        for answers in self._awaited.values() if is_connected else ():
            answers.done.set()
        for listener in [*self.listeners]:
            listener(is_connected)

    async def _take_answer(self, message: Msg) -> None:
        _, name, number = message.subject.rsplit(".", 2)
        if (answers := self._awaited.get(name)) is not None:
            answer = json.loads(message.data or b"{}")
            answers.sequences[int(number)] = None if "error" in answer else answer.get("seq")
            answers.missing -= 1
            if not answers.missing:
                answers.done.set()

    async def store(
        self, subject: str, data: bytes, headers: Mapping[str, str],
        standing: Callable[[bool], None] = lambda stands: None, session: str | None = None,
    ) -> int:  # fmt: skip
        """Publish a message until the server has stored it; return the sequence.

        Args:
            subject: Its subject.
            data: Its body.
            headers: Its headers, with an id.
            standing: Is told that nothing moves until the server can store it, and that it could.
            session: The session, if it may be missing: without its streams for a while, it is.

        Raises:
            WrongSequenceError: Its guard does not hold; or the message was stored by an attempt
                whose answer was lost.
            SettingsError: It is larger than the server takes, or there is no such session.
        """
        [sequence] = await self.store_all([(subject, data, headers)])
        if sequence is None:
            return await self.insist(subject, data, headers, standing, session)
        return sequence

    async def insist(
        self, subject: str, data: bytes, headers: Mapping[str, str],
        standing: Callable[[bool], None] = lambda stands: None, session: str | None = None,
    ) -> int:  # fmt: skip
        """Publish like `store` what was not stored at once; each attempt says what is wrong."""
        # A cluster that has lost a server needs a while until another one answers for a stream.
        until_s = time.monotonic() + (ELECTION_S if "cluster" in self._server_info else REFUSED_S)
        waited_s = 0.0
        try:
            while True:
                try:
                    ack = await self.js.publish(subject, data, headers=dict(headers))
                    return int(ack.seq)
                except nats.errors.MaxPayloadError:
                    raise SettingsError(
                        f"a message of {len(data)} bytes is more than the server takes"
                    ) from None
                except APIError as error:
                    if error.err_code in _WRONG_SEQUENCE:
                        raise WrongSequenceError from None
                    if error.err_code == _TOO_LARGE:
                        raise SettingsError(f"{subject}: {error.description}") from None
                    reason = str(error.description)
                except (NoStreamResponseError, *TROUBLE) as error:
                    is_missing = isinstance(error, NoStreamResponseError)
                    if session and is_missing and time.monotonic() > until_s:
                        raise no_session(session) from None
                    reason = str(error) or type(error).__name__
                if not waited_s:
                    standing(True)
                    logger.warning("dig: %s is not stored yet: %s", subject, reason)
                waited_s = min(1.0, waited_s * 2 or 0.05)
                await anyio.sleep(waited_s)
        finally:
            if waited_s:  # after a refusal, too: the server answers again
                standing(False)

    async def last_of(self, stream: str, subject: str) -> api.RawStreamMsg | None:
        """Get a subject's last message, as soon as the server answers; ``None``: there is none."""
        return await patiently(lambda: self.js.get_last_msg(stream, subject))


@dataclass
class _Answers:
    """The answers to messages of one call of `store_all`."""

    sequences: list[int | None]
    missing: int
    done: asyncio.Event = field(default_factory=asyncio.Event)


async def patiently(ask: Callable[[], Any]) -> Any:
    """Ask the server until an answer comes; ``None``: nothing of the kind is there."""
    for attempt in count():
        try:
            return await ask()
        except NotFoundError:
            return None
        except TROUBLE as error:
            level = logging.WARNING if attempt == 10 else logging.DEBUG
            logger.log(level, "dig: the server is asked again: %s", error)
            await anyio.sleep(0.1)


def number(message: api.RawStreamMsg | None, header: str = T, default: int = -1) -> int:
    """The number in a header of a stored message."""
    text = ((message and message.headers) or {}).get(header)
    return int(text) if text is not None else default


class Puller:
    """Reads a pull consumer; one request for many messages is under way at any time."""

    def __init__(self, client: Connection, stream: str, name: str, batch: int) -> None:
        """Begin; `open` subscribes."""
        self._is_broken = self._is_nudged = False
        self._client, self._batch = client, batch
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}"
        self._messages: list[Msg] = []
        self._news: asyncio.Future[None] | None = None
        self._ordered, self._heard_s = 0, 0.0
        heartbeat, expires = (int(s * 1e9) for s in (HEARTBEAT_S, _FAR))
        order = f'{{"batch":{batch},"expires":{expires},"idle_heartbeat":{heartbeat}}}'
        self._order = order.encode()

    async def open(self) -> Puller:
        """Subscribe to the inbox of the replies."""
        self._inbox = self._client.new_inbox()
        self._subscription = await self._client.subscribe(self._inbox, cb=self._take)
        self._client.listeners.add(self._break)  # its consumer or request did not survive
        return self

    async def close(self) -> None:
        """Stop reading; the server forgets the consumer by itself."""
        self._client.listeners.discard(self._break)
        try:
            await self._subscription.unsubscribe()
        except TROUBLE as error:
            logger.debug("dig: not unsubscribed: %s", error)

    def _break(self, is_connected: bool = False) -> None:
        self._is_broken = True
        self._wake()

    def nudge(self) -> None:
        """Have the read under way return, with nothing if there is nothing."""
        self._is_nudged = True
        self._wake()

    async def read(self, wait_s: float = _FAR) -> list[Msg]:
        """The next messages, in order; none when the time is up.

        Raises:
            ConsumerGoneError: The consumer must be made anew.
        """
        until_s = time.monotonic() + wait_s
        while not self._messages:
            now_s = time.monotonic()
            if self._is_broken or (self._ordered and now_s > self._heard_s + 2.5 * HEARTBEAT_S):
                raise ConsumerGoneError
            if not self._ordered:
                await self._ask(now_s)
            if now_s >= until_s or self._is_nudged:
                break
            await self._wait(min(until_s - now_s, HEARTBEAT_S))
        self._is_nudged = False
        messages, self._messages = self._messages, []
        return messages

    async def _wait(self, seconds: float) -> None:
        # Each message waits here once; a timer costs a fifth of a cancel scope.
        loop = asyncio.get_running_loop()
        self._news, timer = loop.create_future(), loop.call_later(seconds, self._wake)
        try:
            await self._news
        finally:
            timer.cancel()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def finish(self, message: Msg) -> None:
        """Acknowledge the message that was read, and ask for the next one by the same message."""
        if self._is_broken:  # the next one would go to a reader that nobody reads any more
            await message.ack()
        else:
            await self._ask(time.monotonic(), message.reply, b"+NXT ")

    async def _ask(self, now_s: float, subject: str = "", prefix: bytes = b"") -> None:
        self._ordered, self._heard_s = self._batch, now_s
        order = prefix + self._order
        try:
            await self._client.publish(subject or self._subject, order, reply=self._inbox)
        except TROUBLE:
            raise ConsumerGoneError from None

    async def _take(self, message: Msg) -> None:
        self._heard_s = time.monotonic()
        status = (message.headers or {}).get("Status")
        if status is None:
            self._ordered -= 1
            self._messages.append(message)
        elif status == "408" or status == "404":  # the request has expired
            self._ordered = 0
        elif status != "100":  # 100 is a sign of life; 409 and 503: no such consumer any more
            self._is_broken = True
        else:
            return
        self._wake()


class GaplessReader:
    """Reads a stream message by message, and reads again what a lost connection has swallowed.

    Attributes:
        sequence: The last sequence that was read.
        puller: Reads the present consumer; ``None``: there is none.
    """

    def __init__(
        self, client: Connection, stream: str, after: int = 0,
        skip: Callable[[int], object] | None = None,
    ) -> None:  # fmt: skip
        """Begin behind a sequence.

        Args:
            client: The connection.
            stream: The stream.
            after: The sequence.
            skip: Is told the next sequence if the stream lacks those before it; ``None``: that is
                an error.
        """
        self.sequence, self.puller = after, cast("Puller | None", None)
        self._client, self._stream, self._skip = client, stream, skip
        self._is_new = False

    async def read(self, wait_s: float = 1.0) -> list[Msg]:
        """Read the next messages; none when the time is up, or while the server is away.

        Raises:
            DamageError: The stream itself lacks the next message, and none may be skipped.
        """
        messages: list[Msg] = []
        last = self.sequence
        try:
            puller = self.puller or await self._open()
            for message in await puller.read(wait_s=wait_s):
                sequence = sequence_of(message)
                if sequence > last + 1:
                    if not self._is_new:  # it was sent into a connection that has gone
                        raise ConsumerGoneError
                    if self._skip is None:
                        raise DamageError(self._stream, None, f"message {last + 1} is missing")
                    self._skip(sequence)
                    last = sequence - 1
                if sequence == last + 1:
                    messages.append(message)
                    last, self._is_new = sequence, False
        except ConsumerGoneError:
            await self.close()
        except TROUBLE as error:
            logger.debug("dig: %s cannot be read yet: %s", self._stream, error)
            await anyio.sleep(0.1)
        # Only now, with no wait behind it: what a cancelled read has taken is read again.
        self.sequence = last
        return messages

    async def _open(self) -> Puller:
        # Nothing is acknowledged: how far a reader has come is its own affair.
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=self.sequence + 1,
            ack_policy=api.AckPolicy.NONE, inactive_threshold=30.0, mem_storage=True,
        )  # fmt: skip
        info = await self._client.js.add_consumer(self._stream, config)
        self._is_new = True
        self.puller = await Puller(self._client, self._stream, str(info.name), 256).open()
        return self.puller

    async def close(self) -> None:
        """Stop reading, until the next read."""
        puller, self.puller = self.puller, None
        if puller is not None:
            await puller.close()


def sequence_of(message: Msg) -> int:
    """Get the sequence of a message in the stream."""
    return int(message.metadata.sequence.stream)
