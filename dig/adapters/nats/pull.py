"""Journals as run directories, for `digmon pull`.

The journal's messages one after the other are the bytes of `trace.dig.jsonl`. How far a copy has
come stands in the side file; what stands behind it was torn by a crash, and is cut off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio
from nats.aio.msg import Msg

from dig.errors import JournalError, SettingsError
from dig.traces.journal.durable_files import mark, write_file
from dig.traces.journal.journal import SIDE, read_side
from dig.traces.journal.journal import UNREPLAYABLE as SUFFIX
from dig.traces.journal.locking import lock
from dig.traces.journal.reader import TRACE

from .connection import Connection, GaplessReader, patiently, sequence_of
from .names import ABOUT, UNREPLAYABLE, WALL, Subjects, check_session, no_session
from .streams import list_journals


class JournalCopy:
    """A copy of a session's journal in a run directory.

    Attributes:
        path: The run directory.
        sequence: The last message that was written.
    """

    def __init__(self, runs: Path, session: str) -> None:
        """Make the run directory, or go on with an older copy.

        Raises:
            JournalError: Another process writes it.
            SettingsError: There is a run of that name that was pulled from no session.
        """
        self.path, self.names = runs / check_session(session), Subjects(session)
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._side: dict[str, object] = {}
        self.sequence = self._bytes = 0
        if (self.path / SIDE).exists():
            self._side = read_side(self.path)
            state = self._side.get("nats")
            if not isinstance(state, dict) or state.get("session") != session:
                raise SettingsError(f"{self.path} is a run that was pulled from no session")
            self.sequence, self._bytes = int(state["sequence"]), int(state["bytes"])
        self._file = os.open(self.path / TRACE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if not lock(self._file):
            os.close(self._file)
            raise JournalError(f"cannot write {self.path / TRACE}: another process has locked it")
        os.ftruncate(self._file, self._bytes)

    def write(self, messages: list[Msg]) -> None:
        """Append messages of the journal, which follow those before."""
        for message in messages:
            data = memoryview(message.data)
            while data:
                data = data[os.write(self._file, data) :]
            self.sequence, self._bytes = sequence_of(message), self._bytes + len(message.data)
            headers = message.headers or {}
            if not self._side:
                moment = datetime.fromtimestamp(float(headers.get(WALL, 0)), UTC).isoformat()
                self._side = {"execution": self.path.name, "began": moment}
                self._side |= json.loads(headers.get(ABOUT, "{}"))
            if UNREPLAYABLE in headers:
                mark(self.path / f"{TRACE}{SUFFIX}")
        state = {"session": self.names.session, "sequence": self.sequence, "bytes": self._bytes}
        text = json.dumps({**self._side, "nats": state}, indent=2)
        write_file(self.path / SIDE, f"{text}\n".encode())

    def close(self) -> None:
        """Let other processes write."""
        os.close(self._file)


async def copy_session(
    client: Connection, copy: JournalCopy, follow: bool, tell: Callable[[str], object]
) -> None:
    """Write a journal to the end, or follow the journal until cancellation.

    Args:
        client: The connection.
        copy: The copy.
        follow: Whether to go on at the end.
        tell: Is told what is there.
    """
    last, is_told = await _last_sequence(client, copy.names), False
    reader = GaplessReader(client, copy.names.journal, copy.sequence)
    try:
        while follow or copy.sequence < last:
            if messages := await reader.read():
                copy.write(messages)
            if not is_told and copy.sequence >= last:
                is_told = True
                tell(f"{copy.path}: {copy.sequence} messages")
    finally:
        copy.close()


async def _last_sequence(client: Connection, names: Subjects) -> int:
    """The last sequence of a journal; a SettingsError, if there is no such session."""
    info = await patiently(lambda: client.js.stream_info(names.journal))
    if info is None:
        raise no_session(names.session)
    return int(info.state.last_seq)


async def pull(
    client: Connection, runs: Path, session: str | None, *, follow: bool,
    tell: Callable[[str], object],
) -> None:  # fmt: skip
    """Write the journals of a session, or of all, as run directories.

    Args:
        client: The connection.
        runs: The directory of runs.
        session: The session; ``None``: all, also those that begin later.
        follow: Whether to follow them until the call is cancelled.
        tell: Is told what is there.
    """
    copied, journals = set[str](), partial(list_journals, client, of_sessions=False)
    async with anyio.create_task_group() as tasks:
        while True:
            for name in [session] if session else await patiently(journals):
                if name not in copied:
                    await _last_sequence(client, Subjects(name))  # before a directory is made
                    copied.add(name)
                    tasks.start_soon(copy_session, client, JournalCopy(runs, name), follow, tell)
            if not follow or session:
                return
            await anyio.sleep(1.0)
