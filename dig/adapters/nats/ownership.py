"""Ownership of sessions: a key in a bucket, and a lease for the work, never for the right.

No clock is compared with that of another host: a process takes a session over when it has seen the
same revision of its key for as long as the lease, by its own clock and without a break.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from nats.js.errors import NotFoundError

from dig.errors import WrongSequenceError

from .connection import TROUBLE, Connection, logger
from .names import LAST_IN_SUBJECT, OWNERS, Subjects

HANG_S = 3.0
"""The least time after which a loop without a step counts as one that hangs."""

FREE, UNRESUMABLE = "free", "unresumable"
"""The members of a key that nobody owns: it was given back, or its journal cannot go on."""


def process_name() -> str:
    """Make a name for this process unlike all others."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


@dataclass
class Key:
    """The key of a session: the revision, and the words of the owner."""

    revision: int = 0
    says: dict[str, Any] = field(default_factory=dict)

    @property
    def owner(self) -> str | None:
        """The owner's process; ``None``: there is none."""
        return None if FREE in self.says or UNRESUMABLE in self.says else self.says.get("owner")


async def read_key(client: Connection, names: Subjects) -> Key:
    """Read the key of a session once.

    Raises:
        nats.errors.Error: There is no answer.
    """
    with suppress(NotFoundError):
        return _key(await client.js.get_last_msg(f"KV_{OWNERS}", names.key))
    return Key()


def _key(message: Any) -> Key:
    says = None
    with suppress(ValueError):
        says = json.loads(message.data or b"{}")
    return Key(int(message.seq), says if isinstance(says, dict) else {})


class Lease:
    """The ownership of a session by this process, renewed until another one has the session.

    Attributes:
        epoch: The revision at which the session was taken.
        revision: The latest revision of the key.
        is_lost: Whether another process has taken it.
        status: Figures about the session, which stand in the key for `digmon sessions`.
    """

    def __init__(self, client: Connection, names: Subjects, owner: str, lease_s: float) -> None:
        """Begin without the session."""
        self.epoch = self.revision = 0
        self.is_lost = False
        self.status: Callable[[], dict[str, Any]] = dict
        self._client, self._names, self._owner, self._lease_s = client, names, owner, lease_s
        self._writes = 0
        self.show_life()

    def show_life(self) -> None:
        """The work goes on; without that the lease is not renewed, and another process works."""
        self._alive_s = time.monotonic()

    async def claim(self, revision: int) -> bool:
        """Take the session if the key has a revision; return success."""
        if not await self._write(revision, {}):
            return False
        self.epoch = self.revision
        return True

    async def keep(self) -> None:
        """Renew the lease, three times in a lease, until another process has the session."""
        while not self.is_lost:
            await anyio.sleep(self._lease_s / 3)
            if time.monotonic() - self._alive_s > max(2 * self._lease_s, HANG_S):
                logger.error("dig: session %s hangs: its lease ends", self._names.session)
                continue
            self.is_lost = not await self._write(self.revision, {})

    async def give_back(self, **says: Any) -> None:
        """Leave the session to another process; or to none, for the reason in `says`."""
        if not self.is_lost:
            await self._write(self.revision, says or {FREE: True})
        self.is_lost = True

    async def _write(self, last: int, says: dict[str, Any]) -> bool:
        self._writes += 1
        name = [self._owner, self._writes]
        value = {"owner": self._owner, "write": self._writes, "lease_s": self._lease_s, **says}
        data = json.dumps({**value, **self.status()}).encode()
        try:
            guard = {LAST_IN_SUBJECT: str(last)}
            self.revision = await self._client.store(self._names.key, data, guard)
        except WrongSequenceError:
            # The answer to an attempt may have been lost, so the key may be ours all the same.
            message = await self._client.last_of(f"KV_{OWNERS}", self._names.key)
            key = Key() if message is None else _key(message)
            if [key.says.get("owner"), key.says.get("write")] != name:
                return False
            self.revision = key.revision
        return True


async def until_free(client: Connection, names: Subjects, lease_s: float, wait_s: float) -> int:
    """Wait until no process owns a session any more; return the revision of the key then.

    Args:
        client: The connection.
        names: The session.
        lease_s: The length of its lease, if its owner does not say another one.
        wait_s: Seconds to wait once it is free, so that not all take it at once.
    """
    revision, since_s = -1, 0.0
    while True:
        try:
            key = await read_key(client, names)
        except TROUBLE:
            # While the server is away the owner cannot renew either: that is no silence of its.
            revision = -1
            await anyio.sleep(0.1)
            continue
        now_s = time.monotonic()
        if key.revision != revision:
            revision, since_s = key.revision, now_s
        lease_s = float(key.says.get("lease_s", lease_s))
        if UNRESUMABLE in key.says:
            logger.error("dig: session %s: %s", names.session, key.says[UNRESUMABLE])
            await anyio.sleep(lease_s)
        elif key.owner is None or now_s - since_s >= lease_s:
            await anyio.sleep(wait_s)
            return revision
        await anyio.sleep(min(0.25, lease_s / 6))
