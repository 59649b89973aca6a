"""Take-over of a session, in an order safe against a pause at any line.

    1  write the key of the session: its new revision is the epoch
    2  read the journal to its end, and drive a fresh monitor through it
    3  read the last message of every inbox
    4  append the incident `owner`: the fence, behind which an earlier owner is refused
    5  publish what the inboxes do not have yet, guarded by what 3 has read
    6  start the agents with mail, and begin the loop

The inboxes are read before the fence: an owner that looked after it might itself have been deposed
and paused in between; it would read what its successor wrote, and its old release would pass the
guard.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from nats.aio.msg import Msg

from dig.errors import DigError, FencedError, ReplayError
from dig.monitor.messages import Answered
from dig.runtime.resume import Resumption
from dig.runtime.setup import Setup

from . import owner as owners
from .connection import ANSWER_S, Connection, GaplessReader, logger, patiently, sequence_of
from .figures import SessionFigures
from .names import EPOCH, RAW, VERSION, WALL, Subjects, V
from .owner import Owner, Position, SupervisedClock
from .ownership import UNRESUMABLE, Lease, process_name, until_free
from .session import OWNER, HeldSession, Notes, Terms
from .streams import Storage, read_heads

REBUILDS = 2
"""The most sessions that a process rebuilds at the same time: the first are served meanwhile."""

SetupOf = Callable[[bytes], Setup]
"""Makes the setup of a session from the first line of the journal."""


@dataclass(frozen=True)
class Service:
    """The settings of this process for serving sessions.

    Attributes:
        lease_s: The seconds of silence after which another process takes a session over.
        is_standby: Whether the journal of another owner is followed, so that a take-over costs the
            lease and its last batch alone.
        wait_s: The seconds to wait before a free session is taken.
        terms: The terms of the sessions.
        storage: The settings of their streams.
        process: The name of this process.
    """

    lease_s: float = 6.0
    is_standby: bool = False
    wait_s: float = 0.0
    terms: Terms = field(default_factory=Terms)
    storage: Storage = field(default_factory=Storage)
    process: str = field(default_factory=process_name)


class JournalFollower:
    """Drives a monitor through the growing journal of a session.

    Attributes:
        resumption: The monitor; ``None``: there is no journal yet.
        notes: The notes of its records.
        reader: Reads the journal; its sequence is that of the last message.
        cursor: The raw sequence up to which input was dealt with there.
        epoch: The epoch of its owner.
        wall_s: When it was appended, in seconds since 1970.
        reads: Is called when something was read.
    """

    def __init__(
        self, client: Connection, names: Subjects, setup: Callable[[bytes], Setup]
    ) -> None:
        """Begin before the first message; `setup` makes the setup from the journal's first line."""
        self.resumption: Resumption | None = None
        self.notes, self.cursor, self.epoch, self.wall_s = Notes(), 0, 0, math.inf
        self.reader = GaplessReader(client, names.journal)
        self.reads: Callable[[], object] = lambda: None
        self._client, self._names, self._setup = client, names, setup

    async def follow(self) -> None:
        """Follow the journal for ever."""
        while True:
            await self._read()

    async def catch_up(self) -> None:
        """Read to the present end of the journal."""
        info = await patiently(lambda: self._client.js.stream_info(self._names.journal))
        while self.reader.sequence < (int(info.state.last_seq) if info else 0):
            await self._read()

    async def _read(self) -> None:
        messages = await self.reader.read()
        self.reads()
        if messages:
            # In a thread: the lease is renewed meanwhile, however long the journal is. Shielded: a
            # standby that is to take over may not drop what it has read.
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._drive, messages)

    def _drive(self, messages: list[Msg]) -> None:
        for message in messages:
            headers = message.headers or {}
            name = f"{self._names.journal}, message {sequence_of(message)}"
            if headers.get(V) != VERSION:
                raise ReplayError(f"{name}: its version is {headers.get(V)!r:.40}, not {VERSION}")
            try:
                self._feed(message.data.splitlines(keepends=True))
            except DigError as error:
                raise ReplayError(f"{name}: {error}") from error
            self.cursor, self.epoch = int(headers[RAW]), int(headers[EPOCH])
            self.wall_s = float(headers[WALL])

    def _feed(self, lines: list[bytes]) -> None:
        if self.resumption is None:
            name, setup = self._names.journal, self._setup(lines[0])
            self.resumption = Resumption(lines, setup, name=name, sink=self.notes, is_served=True)
            lines = []
        self.resumption.feed(lines)
        for _, effect in self.resumption.effects:
            if isinstance(effect, Answered):
                self.notes.answer(effect)
        self.resumption.effects.clear()
        self.notes.fresh.clear()


class Attendant:
    """Attends one session in this process: waits, owns, and waits again."""

    def __init__(
        self, client: Connection, names: Subjects, setup: SetupOf, service: Service,
        places: anyio.Semaphore | None = None, rebuilding: anyio.Semaphore | None = None,
    ) -> None:  # fmt: skip
        """Begin without the session.

        Args:
            client: The connection.
            names: The session.
            setup: Makes the setup.
            service: The settings of this process.
            places: Bounds the sessions of this process.
            rebuilding: Bounds those of them that are rebuilt at the same time.
        """
        self._figures, self._places = SessionFigures(names.session), places or anyio.Semaphore(1)
        self._rebuilding = rebuilding or anyio.Semaphore(1)
        self._client, self._names, self._setup, self._service = client, names, setup, service

    async def attend(self) -> None:
        """Own the session whenever no other process does, until cancellation.

        A session whose journal cannot go on is marked so that nobody owns it.
        """
        while True:
            follower = JournalFollower(self._client, self._names, self._setup)
            try:
                await self._wait_and_own(follower)
            except FencedError:
                self._figures.note("fenced", 1)
                logger.warning("dig: session %s has another owner now", self._names.session)
            finally:
                await follower.reader.close()

    async def _wait_and_own(self, follower: JournalFollower) -> None:
        service = self._service
        async with anyio.create_task_group() as tasks:
            if service.is_standby:
                tasks.start_soon(follower.follow)
            revision = await until_free(self._client, self._names, service.lease_s, service.wait_s)
            tasks.cancel_scope.cancel()
        async with self._places:
            # Before the claim: a lease that is held while its owner waits here would run out.
            await self._rebuilding.acquire()
            with ExitStack() as turn:
                turn.callback(self._rebuilding.release)
                await self._claim(revision, follower, turn)

    async def _claim(self, revision: int, follower: JournalFollower, turn: ExitStack) -> None:
        service = self._service
        lease = Lease(self._client, self._names, service.process, service.lease_s)
        if not await lease.claim(revision):  # 1
            return
        clock = SupervisedClock()
        self._client.listeners.add(clock.note_connection)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lease.keep)
                await self._own(lease, follower, clock, tasks, turn)
                tasks.cancel_scope.cancel()
        except* FencedError:
            lease.is_lost = True
            raise FencedError from None
        except* DigError as group:
            reason = str(group.exceptions[0])
            await lease.give_back(**{UNRESUMABLE: reason})
        finally:
            self._client.listeners.discard(clock.note_connection)
            with anyio.CancelScope(shield=True), anyio.move_on_after(ANSWER_S):
                await lease.give_back()

    async def _own(
        self, lease: Lease, follower: JournalFollower, clock: SupervisedClock, tasks: TaskGroup,
        turn: ExitStack,
    ) -> None:  # fmt: skip
        began_s = time.monotonic()
        follower.reads = lease.show_life
        await follower.catch_up()  # 2
        turn.close()
        assert follower.resumption is not None
        # A server that lost its last seconds may have taken the key back to an earlier revision.
        lease.epoch = max(lease.epoch, follower.epoch + 1)
        await follower.reader.close()
        heads = await read_heads(self._client, self._names)  # 3
        position = Position(follower.reader.sequence, heads)
        owners.reach("heads read")
        clock.begin(follower.resumption.now_s)
        limit = min(self._service.terms.most_bytes, self._client.max_payload)
        terms = replace(self._service.terms, most_bytes=limit)
        session = HeldSession(follower.resumption, follower.notes, clock, follower.cursor, terms)
        args = (self._client, self._names, session, position, lease, clock, self._service.storage)
        owner = Owner(*args, self._figures)
        lease.status = lambda: self._status(session)
        unreleased = session.missing_releases(position.heads)
        down_s = max(0.0, round(time.time() - follower.wall_s, 3))
        session.incident(OWNER, {"epoch": lease.epoch, "raw": follower.cursor, "down_s": down_s})
        await owner.commit()  # 4
        owners.reach("fenced")
        await owner.release(unreleased)  # 5
        rebuild_s = time.monotonic() - began_s
        self._figures.note("rebuild_s", rebuild_s)
        self._figures.note("takeovers", 1)
        logger.info("dig: session %s taken in %.2f s", self._names.session, rebuild_s)
        await owner.run(tasks)  # 6
        if session.is_over:
            raise ReplayError("a part of the monitor failed, and the run was to end then")

    def _status(self, session: HeldSession) -> dict[str, Any]:
        figures = {**self._figures, "takeovers": session.notes.takeovers}  # of all processes
        return {"raw": session.cursor, "open": len(session.notes.open), **figures}
