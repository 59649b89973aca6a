"""Serving of sessions: make, attend, list."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from dig._util.json_text import parse_row
from dig.errors import SettingsError, WrongSequenceError
from dig.graph.chain import HEADER, SealedLines
from dig.graph.records import Record
from dig.runtime.setup import Setup
from dig.traces.replay.header import header_of

from .connection import Connection, connect, number, patiently
from .figures import INSTRUMENTS
from .names import EPOCH, RAW, Subjects, journal_headers, no_session
from .ownership import UNRESUMABLE, read_key
from .streams import Storage, list_journals, make_bucket, make_streams
from .takeover import REBUILDS, Attendant, Service, SetupOf

AFTER = "comes after"
"""The first incident of a session that takes the place of another one."""


def recorded_setup(line: bytes) -> Setup:
    """Read the setup of a session from the first line of the journal.

    Raises:
        ReplayError: It was made with parts that are not dig's own.
    """
    return header_of(Path("the journal"), parse_row(line).get(HEADER) or {}).setup()


def check_setup(setup: Setup) -> None:
    """Check that sessions on several machines keep all of a setup.

    Raises:
        SettingsError: The setup has gates or a budget, or is no session.
    """
    if not setup.session:
        raise SettingsError("a served run is a session: make its setup with session=True")
    if setup.gates:
        raise SettingsError(
            "a session on several machines cannot have gates: what a gate decides is not recorded, "
            "so no other process could go on with it; use a delivery policy or a healer"
        )
    if setup.policy.budget is not None:
        raise SettingsError("a session on several machines keeps no [budget]; leave it out")


async def make_session(
    client: Connection, names: Subjects, setup: Setup, agents: Sequence[str], storage: Storage,
    after: str | None = None,
) -> None:  # fmt: skip
    """Make the streams of a session and the first message of the journal, unless present.

    Args:
        client: The connection.
        names: The session.
        setup: Its setup; its description stands in the journal's first line.
        agents: The agents that are there from the beginning; others join by their first heartbeat.
        storage: The settings of its streams.
        after: The session that it comes after; its first incident tells of the end of that one.

    Raises:
        SettingsError: The setup cannot be kept (`check_setup`); or `after` is not there.
    """
    check_setup(setup)
    end = await _end_of(client, Subjects(after)) if after else None
    await make_streams(client, names, storage)
    lines = SealedLines(setup.header())
    text: list[bytes] = []

    def take(record: Record) -> None:
        text.append(lines.line(record, keeps_payload=True))

    monitor = setup.monitor(agents, float, take)
    if end is not None:
        monitor.incident(AFTER, end)
    headers = journal_headers(0, len(text) - 1, 0, 0)
    with suppress(WrongSequenceError):  # it has begun already
        await client.store(names.journal_subject, b"".join(text), headers)


async def _end_of(client: Connection, names: Subjects) -> dict[str, Any]:
    """The last record of a session, and the reason if the session cannot go on."""
    last = await client.last_of(names.journal, names.journal_subject)
    if last is None:
        raise no_session(names.session)
    reason = (await read_key(client, names)).says.get(UNRESUMABLE)
    return {"session": names.session, "record": number(last), "reason": reason}


async def serve(
    url: str, session: str, setup: Setup, agents: Sequence[str] = (), *,
    service: Service | None = None, credentials: str | None = None, is_recorded: bool = False,
    after: str | None = None, is_only_made: bool = False,
) -> None:  # fmt: skip
    """Serve a session until cancellation.

    Args:
        url: The address of the server.
        session: The session's name; it is made if it is not there.
        setup: The setup of a session that is made now.
        agents: Its agents; others join by their first heartbeat.
        service: How it is served.
        credentials: The path of a file with credentials.
        is_recorded: Whether the setup of a session that is there is taken from its journal.
        after: As for `make_session`.
        is_only_made: Whether to end when the session is there, for other processes to serve.
    """
    service, names = service or Service(), Subjects(session)
    async with connect(url, credentials=credentials) as client:
        await make_bucket(client, service.storage.replicas)
        await make_session(client, names, setup, agents, service.storage, after)
        if not is_only_made:
            await Attendant(client, names, _setup_of(setup, is_recorded), service).attend()


async def serve_all(
    url: str, pattern: str, most: int, setup: Setup, *, service: Service | None = None,
    credentials: str | None = None, is_recorded: bool = True,
) -> None:  # fmt: skip
    """Serve sessions without an owner, until cancellation.

    Args:
        url: The address of the server.
        pattern: The sessions' names, such as `news-*`.
        most: The number of sessions at once.
        setup: The setup of sessions with parts that are not dig's own.
        service: How they are served.
        credentials: The path of a file with credentials.
        is_recorded: Whether the setup of each is taken from its journal.

    Raises:
        SettingsError: The setup cannot be kept (`check_setup`).
    """
    check_setup(setup)
    service = service or Service()
    bounds = anyio.Semaphore(most), anyio.Semaphore(REBUILDS)
    setup_of = _setup_of(setup, is_recorded)
    async with connect(url, credentials=credentials) as client:
        await make_bucket(client, service.storage.replicas)
        attended: set[str] = set()
        async with anyio.create_task_group() as tasks:
            while True:
                names = await patiently(lambda: list_journals(client))
                for name in [n for n in names if n not in attended and fnmatchcase(n, pattern)]:
                    attended.add(name)
                    # Not all processes take a free session at once.
                    waits = replace(service, wait_s=random.uniform(0, service.lease_s / 4))
                    attendant = Attendant(client, Subjects(name), setup_of, waits, *bounds)
                    tasks.start_soon(attendant.attend)
                await anyio.sleep(service.lease_s / 3)


def _setup_of(setup: Setup, is_recorded: bool) -> SetupOf:
    return recorded_setup if is_recorded else lambda line: setup


async def session_rows(client: Connection) -> list[dict[str, Any]]:
    """Make a row for each session of a server.

    `lag`: raw messages that its owner has not dealt with; the other figures are its owner's
    (`figures`), `takeovers` of all owners so far.
    """
    rows: list[dict[str, Any]] = []
    for session in await patiently(lambda: list_journals(client)):
        names = Subjects(session)
        says = (key := await read_key(client, names)).says
        raw = await patiently(partial(client.js.stream_info, names.raw))
        last = await client.last_of(names.journal, names.journal_subject)
        end, read = int(raw.state.last_seq) if raw else 0, number(last, RAW, 0)
        figures = {name: says.get(name) for name in ("open", *INSTRUMENTS)}
        rows.append({
            "session": session, "owner": key.owner, "epoch": number(last, EPOCH, 0),
            **figures, "lag": end - read, "records": number(last) + 1,
            "state": says.get(UNRESUMABLE) or ("served" if key.owner else "nobody serves it"),
        })  # fmt: skip
    return rows
