"""The loop of a session's owner: read, handle, append, release, in an order with reasons.

    read and handle before append: a gap in raw is never skipped
    append before release: what was released is in the journal, so a rebuilt monitor has decided it
    append names the sequence that it comes after: of two owners one is refused, whatever they think

Neither the order in which a server looks at ids and sequences nor its clock is relied on: after a
refusal the owner reads what is stored. Its own message: only the answer was lost. Another one: it
is fenced, drops its state, and publishes nothing more.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from nats.aio.msg import Msg

from dig.errors import FencedError, WrongSequenceError

from .connection import ANSWER_S, Connection, GaplessReader, Message, number, sequence_of
from .envelopes import Release
from .figures import SessionFigures
from .names import (
    LAST,
    LAST_IN_SUBJECT,
    MSG_ID,
    Subjects,
    agent_in,
    journal_headers,
    token_in,
    token_of,
)
from .ownership import Lease
from .session import DISCONNECTED, HeldSession, RequestLines
from .streams import MIB, Storage, make_inbox

BATCH = 256
"""The number of requests that wait to be stored from which on reading waits, too."""

IDLE_S = 1.0


def reach(name: str) -> None:
    """Pass a named moment between two steps; tests stop a process there."""


class SupervisedClock:
    """Shows seconds of supervised time, and stands still while the server is away.

    So neither a restart of the server nor a change of owners makes an agent late; windows are
    longer by the outage, never shorter.

    Attributes:
        stood_s: The seconds for which it has stood still.
    """

    def __init__(self) -> None:
        """Begin at zero."""
        self._reasons: set[str] = set()
        self.begin(0.0)

    def begin(self, shown_s: float) -> None:
        """Go on from a moment."""
        self.stood_s, self._shown_s, self._stands_since_s = 0.0, shown_s, time.monotonic()
        self._since_s = None if self._reasons else self._stands_since_s

    def __call__(self) -> float:
        """Seconds since the run began."""
        since_s = self._since_s
        return self._shown_s + (0.0 if since_s is None else time.monotonic() - since_s)

    def note_connection(self, is_connected: bool) -> None:
        """Stand while there is no connection."""
        self.stand("connection", not is_connected)

    def stand(self, reason: str, stands: bool) -> None:
        """Set or clear a reason to stand still."""
        now_s = time.monotonic()
        (self._reasons.add if stands else self._reasons.discard)(reason)
        if self._reasons and self._since_s is not None:
            self._shown_s, self._since_s, self._stands_since_s = self(), None, now_s
        elif not self._reasons and self._since_s is None:
            self._since_s = now_s
            self.stood_s += now_s - self._stands_since_s


@dataclass
class Position:
    """How far a session is stored.

    Attributes:
        journal: The last sequence of the journal.
        heads: The last sequence of each inbox, and the record that it came from.
    """

    journal: int = 0
    heads: dict[str, tuple[int, int]] = field(default_factory=dict)


class Owner:
    """Drives one session until another owner is ahead, or the lease is gone.

    Attributes:
        position: How far the session is stored.
        fenced: Whether another owner was ahead.
    """

    def __init__(
        self, client: Connection, names: Subjects, session: HeldSession, position: Position,
        lease: Lease, clock: SupervisedClock, storage: Storage,
        figures: SessionFigures | None = None,
    ) -> None:  # fmt: skip
        """Begin; `fence` comes first, then `run`."""
        self.position = position
        self._client, self._names, self._session, self._lease = client, names, session, lease
        self._clock, self._storage = clock, storage
        self._raw = GaplessReader(client, names.raw, session.cursor, session.skip_raw)
        self._beats: set[str] = set()
        self._news, self._turn = anyio.Event(), anyio.Lock()
        self._told_s = 0.0
        self._figures = figures or SessionFigures(names.session)
        self._read_s: float | None = None

    async def run(self, tasks: TaskGroup) -> None:
        """Repeat the steps; what is handled while others are stored is one append after them.

        Args:
            tasks: Runs the storing; its error is that another owner is ahead.
        """
        tasks.start_soon(self._store_on)
        beats = await self._client.subscribe(self._names.beat("*"), cb=self._beat)
        missed = await self._client.subscribe(self._names.missed, cb=self._answer_again)
        try:
            while not (self._lease.is_lost or self._session.is_over):
                await self._step()
                self._lease.show_life()
            if not self._lease.is_lost:
                await self.commit()
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(ANSWER_S):
                await self._raw.close()
                for subscription in (beats, missed):
                    await subscription.unsubscribe()

    async def _step(self) -> None:
        session, lag = self._session, 0
        due_s = session.due_s()
        wait_s = IDLE_S if due_s is None else min(IDLE_S, max(0.0, due_s - self._clock()))
        for message in await self._raw.read(wait_s):
            stored_s = message.metadata.timestamp.timestamp()
            headers, token = message.headers or {}, token_in(message.subject)
            self._read_s = self._read_s or time.monotonic()
            session.handle(sequence_of(message), token, headers, message.data, stored_s)
            lag = message.metadata.num_pending
            if self._turn.locked():  # what is stored by now is released before the whole batch
                await anyio.lowlevel.checkpoint()
        beats, self._beats = self._beats, set()
        for agent in sorted(beats):
            session.beat(agent)
        if self._clock.stood_s > self._told_s:
            outage_s, self._told_s = self._clock.stood_s - self._told_s, self._clock.stood_s
            session.incident(DISCONNECTED, {"down_s": round(outage_s, 3)})
        session.tick()
        self._figures.note("lag", lag)
        if session.late:
            self._figures.note("late", session.late)
            session.late = 0
        self._news.set()
        if session.waiting >= BATCH:  # storing takes long, so reading has to wait
            await self.commit()

    async def _store_on(self) -> None:
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            await self.commit()

    # --- signals ---

    async def _beat(self, message: Msg) -> None:
        if agent := agent_in(token_in(message.subject), message.data):
            self._beats.add(agent)
        if self._raw.puller is not None:
            self._raw.puller.nudge()

    async def _answer_again(self, message: Msg) -> None:
        """Answer a client again, by the trace context of the problem."""
        answer = self._session.notes.by_context.get(message.data.decode("utf-8", "replace"))
        if answer is not None and message.reply:
            await message.respond(answer.body)

    # --- 4: append ---

    async def commit(self) -> None:
        """Append the lines of all requests so far, and then release."""
        async with self._turn:
            groups, releases, joined = self._session.take()
            read_s, self._read_s = self._read_s, None
            reach("handled")
            if groups:
                self._figures.note("batch", len(groups))
            for lines, t, cursor in chunks(groups):
                await self._append(lines, t, cursor)
            for agent in joined:
                await make_inbox(self._client, self._names, token_of(agent), self._storage)
            if releases:
                reach("appended")
                await self.release(releases)
                if read_s is not None:
                    self._figures.note("hold_ms", 1000 * (time.monotonic() - read_s))

    async def _append(self, lines: bytes, t: int, cursor: int) -> None:
        began_s = time.monotonic()
        headers = journal_headers(self._lease.epoch, t, cursor, self.position.journal)
        standing = self._stands("append")
        self.position.journal = await append(self._client, self._names, lines, headers, standing)
        self._figures.note("append_ms", 1000 * (time.monotonic() - began_s))

    # --- 5: release ---

    async def release(self, releases: Iterable[Release]) -> None:
        """Publish releases, in order for each inbox, and different inboxes at once."""
        inboxes: dict[str, deque[Release]] = defaultdict(deque)
        for release in releases:
            inboxes[release.token].append(release)
        while inboxes:
            first = [mail.popleft() for mail in inboxes.values()]
            inboxes = {token: mail for token, mail in inboxes.items() if mail}
            stored = await self._client.store_all([self._message(release) for release in first])
            for release, sequence in zip(first, stored, strict=True):
                if sequence is None:
                    await self._publish(release)
                else:
                    self.position.heads[release.token] = sequence, release.t
                reach("released")

    def _message(self, release: Release) -> Message:
        guard = str(self.position.heads.get(release.token, (0, -1))[0])
        headers = {**release.headers(self._lease.epoch), LAST_IN_SUBJECT: guard}
        return self._names.inbox(release.token), release.body, headers

    async def _publish(self, release: Release) -> None:
        token, heads = release.token, self.position.heads
        while True:
            subject, body, headers = self._message(release)
            try:
                sequence = await self._client.insist(subject, body, headers, self._stands(token))
                heads[token] = sequence, release.t
                return
            except WrongSequenceError:
                last = await self._client.last_of(self._names.to, subject)
                heads[token] = (int(last.seq), number(last)) if last else (0, -1)
                if heads[token][1] == release.t:  # only the answer was lost
                    return
                if heads[token][1] > release.t:
                    raise FencedError from None
                # A release of an earlier owner came in between, of an activation that has ended.

    def _stands(self, reason: str) -> Callable[[bool], None]:
        def stand(stands: bool) -> None:
            self._clock.stand(reason, stands)
            self._lease.show_life()  # to wait for the server is not to hang

        return stand


async def append(
    client: Connection, names: Subjects, lines: bytes, headers: Mapping[str, str],
    standing: Callable[[bool], None] = lambda stands: None,
) -> int:  # fmt: skip
    """Append a message to a journal; return the sequence.

    Raises:
        FencedError: The journal has another message there.
    """
    subject = names.journal_subject
    try:
        sequence = await client.store(subject, lines, headers, standing)
    except WrongSequenceError:
        last = await client.last_of(names.journal, subject)
        if last is None or (last.headers or {}).get(MSG_ID) != headers[MSG_ID]:
            raise FencedError from None
        sequence = int(last.seq)  # only the answer was lost
    if sequence != int(headers[LAST]) + 1:
        raise FencedError
    return sequence


def chunks(groups: Iterable[RequestLines]) -> Iterable[tuple[bytes, int, int]]:
    """Join the lines of requests into messages of at most 1 MiB, or of one request.

    Yields:
        The lines, the number of the last record, and the raw sequence dealt with by then.
    """
    lines: list[bytes] = []
    size, t, cursor = 0, -1, 0
    for group in groups:
        if lines and size + len(group.lines) > MIB:
            yield b"".join(lines), t, cursor
            lines, size = [], 0
        lines.append(group.lines)
        size, t, cursor = size + len(group.lines), group.t, group.cursor
    if lines:
        yield b"".join(lines), t, cursor
