"""Streams, consumers and the bucket of sessions on the server.

Retention is always by limits: a work queue forgets what was acknowledged, and with it the last
sequence that the guard of a release needs. A full stream refuses (`discard: new`), so a flood stops
its sender and no input is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from nats.js import api

from dig.errors import SettingsError

from .connection import Connection, number, patiently
from .names import OWNERS, Subjects, consumer, token_in

MIB = 1024 * 1024
DAY_S = 86_400.0


@dataclass(frozen=True)
class Storage:
    """The settings of a session's streams.

    Attributes:
        replicas: The number of servers that keep each message: 1, or 3 against a power cut.
        raw_bytes: The size at which the stream of what agents say refuses more.
        max_age_s: The seconds that messages between agents are kept; longer than all monitors are
            ever away.
        window_s: The seconds in which the server knows a message again by its id.
        ack_wait_s: The seconds after which an agent's activation is given to another process of
            the same name, if its process is silent.
    """

    replicas: int = 1
    raw_bytes: int = 256 * MIB
    max_age_s: float = 7 * DAY_S
    window_s: float = 120.0
    ack_wait_s: float = 30.0


def stream_configs(names: Subjects, storage: Storage) -> list[api.StreamConfig]:
    """The three streams of a session."""
    same = {
        "retention": api.RetentionPolicy.LIMITS, "discard": api.DiscardPolicy.NEW,
        "storage": api.StorageType.FILE, "num_replicas": storage.replicas,
        "duplicate_window": storage.window_s,
    }  # fmt: skip
    raw = api.StreamConfig(
        name=names.raw, subjects=[names.raw_subject("*")], max_bytes=storage.raw_bytes,
        max_age=storage.max_age_s, allow_direct=True, **same,
    )  # fmt: skip
    inboxes = api.StreamConfig(
        name=names.to, subjects=[names.inbox("*")], max_age=storage.max_age_s, **same
    )
    journal = api.StreamConfig(
        name=names.journal, subjects=[names.journal_subject], deny_delete=True, deny_purge=True,
        **same,
    )  # fmt: skip
    return [raw, inboxes, journal]


async def make_streams(
    client: Connection, names: Subjects, storage: Storage, *, of_session: bool = True
) -> None:
    """Make the missing streams of a session; of a wrapped team's run, the journal alone."""
    js = client.js
    for config in stream_configs(names, storage)[0 if of_session else -1 :]:
        if await patiently(partial(js.stream_info, config.name)) is None:
            await patiently(partial(js.add_stream, config))


async def make_bucket(client: Connection, replicas: int = 1) -> None:
    """Make the bucket with the owners of sessions, unless one is there."""
    js = client.js
    if await patiently(lambda: js.stream_info(f"KV_{OWNERS}")) is None:
        await patiently(lambda: js.create_key_value(bucket=OWNERS, history=1, replicas=replicas))


async def make_inbox(client: Connection, names: Subjects, token: str, storage: Storage) -> None:
    """Make the consumer of an agent's inbox, and check the result.

    Raises:
        SettingsError: There is a consumer of that name that reads other subjects.
    """
    config = api.ConsumerConfig(
        name=consumer(token), durable_name=consumer(token), filter_subject=names.inbox(token),
        ack_policy=api.AckPolicy.EXPLICIT, max_ack_pending=1, ack_wait=storage.ack_wait_s,
        max_deliver=-1, deliver_policy=api.DeliverPolicy.ALL,
    )  # fmt: skip
    js = client.js
    info = await patiently(lambda: js.consumer_info(names.to, consumer(token)))
    if info is None:
        # A server ignores what it does not know, and a consumer without its filter reads all.
        info = await patiently(lambda: js.add_consumer(names.to, config))
    if info.config.filter_subject != config.filter_subject:
        raise SettingsError(f"{consumer(token)} of {names.to} reads {info.config.filter_subject}")


async def read_heads(client: Connection, names: Subjects) -> dict[str, tuple[int, int]]:
    """Read the last sequence of each inbox with a message, and the number of its record."""
    info = await patiently(
        lambda: client.js.stream_info(names.to, subjects_filter=names.inbox("*"))
    )
    heads: dict[str, tuple[int, int]] = {}
    for subject in info.state.subjects or {}:
        last = await client.last_of(names.to, subject)
        if last is not None:
            heads[token_in(subject)] = (int(last.seq), number(last))
    return heads


async def list_journals(client: Connection, *, of_sessions: bool = True) -> list[str]:
    """List the sessions with a first record; on demand, the runs of wrapped teams, too."""
    prefix, counts, offset = "DIG_JOURNAL_", dict[str, int](), 0
    while page := await client.js.streams_info(offset):
        counts |= {str(info.config.name): int(info.state.messages) for info in page}
        offset += len(page)  # more than the counts, if a stream was made meanwhile
    journals = [name[len(prefix) :] for name in counts if name.startswith(prefix)]
    begun = [name for name in journals if counts[prefix + name]]
    return sorted(n for n in begun if not of_sessions or f"DIG_RAW_{n}" in counts)
