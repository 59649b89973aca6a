"""The journal of a wrapped team as a stream, for `digmon pull`: many hosts, one directory of runs.

The team never waits for the server. Records without room in the queue are not kept: the trace ends
before them, and is marked as not replayable.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  nats-py runs on it alone
import json
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from threading import Thread
from typing import Any

import anyio

from dig._util.redaction import redact
from dig.errors import PART_ERRORS, DigError, JournalError, SettingsError
from dig.graph.chain import SealedLines
from dig.graph.records import Record
from dig.traces.journal.journal import describe_execution

from .connection import REFUSED_S, Connection, connect, logger, public_url
from .names import ABOUT, UNREPLAYABLE, Subjects, journal_headers
from .owner import append, chunks
from .session import RequestLines
from .streams import Storage, make_streams

ROOM = 10_000
"""The most requests that wait for a server that is away or too slow."""

EVERY_S, PATIENCE_S = 0.05, 5.0
"""Seconds between two messages; seconds for which the end of a run waits until all have arrived."""


class SentRun:
    """A run whose records go to a server, in place of a run directory.

    Attributes:
        path: Nothing: no directory is here.
        journal: Itself.
    """

    path = None

    def __init__(self, url: str, about: Mapping[str, Any], *, header: Mapping[str, Any]) -> None:
        """Begin to send, on a thread of its own; the server may come later."""
        side = describe_execution(about)
        self._side = json.dumps(redact(side) if header.get("redacts", True) else side)
        self._names, self._url, self.journal = Subjects(side["execution"]), url, self
        self._lines, self._waiting = SealedLines(header), deque[RequestLines]()
        self._is_whole, self._is_closing = True, False
        self._client: Connection | None = None
        self._thread = Thread(target=self._send, name="dig-journal", daemon=True)
        self._thread.start()

    def write(self, records: Sequence[Record]) -> None:
        """Queue the records of one request."""
        if self._is_whole and len(self._waiting) < ROOM:
            lines = b"".join(self._lines.line(record, keeps_payload=True) for record in records)
            self._waiting.append(RequestLines(lines, records[-1].t, 0))
        else:
            self._is_whole = False  # for good: nothing comes after a gap

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Wait until all records have arrived; the last one says how the run ended.

        Raises:
            JournalError: A part of the trace has not arrived.
        """
        self.close()
        self._thread.join(REFUSED_S)
        if self._client is None or self._client.is_connected:  # not for a server that went away
            self._thread.join(PATIENCE_S)
        if self._thread.is_alive() or not self._is_whole:
            place = f"{self._names.journal} on {public_url(self._url)}"
            raise JournalError(f"the end of {place} has not arrived")

    def close(self) -> None:
        """Send the waiting records, and nothing more."""
        self._is_closing = True

    # --- the thread ---

    def _send(self) -> None:
        try:
            anyio.run(self._connect_and_store, backend="asyncio")
        except PART_ERRORS as error:
            self._is_whole = False
            logger.error("dig: the journal is not sent: %s", error)

    async def _connect_and_store(self) -> None:
        # asyncio looks up names on other threads, and a program that ends can begin none.
        asyncio.get_running_loop().getaddrinfo = _look_up  # type: ignore[method-assign]
        client = None
        while client is None:
            try:
                async with connect(self._url) as client:
                    self._client = client
                    await make_streams(client, self._names, Storage(), of_session=False)
                    await self._store(client)
            except SettingsError as error:  # the server may come later
                if client is not None or self._is_closing:
                    raise
                logger.warning("dig: the journal waits: %s", error)
                await anyio.sleep(1.0)

    async def _store(self, client: Connection) -> None:
        sequence, last = 0, -1
        try:
            # In this order: after the end, or a gap, the host's thread queues nothing more.
            while (self._is_whole and not self._is_closing) or self._waiting:
                batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
                for lines, t, _ in chunks(batch):
                    headers = journal_headers(0, t, 0, sequence)
                    if not sequence:
                        headers[ABOUT] = self._side
                    sequence, last = await append(client, self._names, lines, headers), t
                await anyio.sleep(EVERY_S)
        except DigError as error:  # a request is more than a message, for instance
            self._is_whole = False
            logger.error("dig: the journal ends after record %d: %s", last, error)
        if not self._is_whole:
            headers = {**journal_headers(0, last + 1, 0, sequence), UNREPLAYABLE: "1"}
            await append(client, self._names, b"", headers)


async def _look_up(*args: Any, **options: Any) -> list[Any]:
    return socket.getaddrinfo(*args, **options)
