"""Subjects on the server: sessions, tokens of agents, subjects, streams, consumers, headers."""

from __future__ import annotations

import re
import secrets
import time
from contextlib import suppress
from functools import lru_cache

from dig.errors import SettingsError

_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")

OUT = "_out"
"""The token of the inbox with accepted answers."""

CLIENT = "client"
"""The token under which clients pose problems."""

OWNERS = "DIG_OWNERS"
"""The bucket with the owner of each session."""

VERSION = "1"
"""The version of the envelopes."""

V, KIND, T, EPOCH, RAW, WALL = "Dig-V", "Dig-Kind", "Dig-T", "Dig-Epoch", "Dig-Raw", "Dig-Wall"
ABOUT, UNREPLAYABLE = "Dig-About", "Dig-Unreplayable"  # of a wrapped team's journal alone
MSG_ID, TRACEPARENT = "Nats-Msg-Id", "traceparent"
LAST, LAST_IN_SUBJECT = "Nats-Expected-Last-Sequence", "Nats-Expected-Last-Subject-Sequence"


def child_context(parent: str | None) -> str:
    """Make a trace context below a parent, or a new context."""
    trace = parent.split("-")[1] if parent else secrets.token_hex(16)
    return f"00-{trace}-{secrets.token_hex(8)}-01"


def check_session(name: str) -> str:
    """Return the name of a session.

    Raises:
        SettingsError: It is not 1 to 64 letters, digits, `_` and `-`.
    """
    if not _SESSION.fullmatch(name):
        raise SettingsError(f"a session's name has 1 to 64 of A-Z a-z 0-9 _ -, got {name!r:.80}")
    return name


@lru_cache(4096)
def token_of(agent: str) -> str:
    """The subject token of an agent: every byte but letters, digits, `_` and `-` is `=XX`.

    The first byte of a name that would be one of our own tokens is written so, too.

    Raises:
        SettingsError: The name is empty.
    """
    if not agent:
        raise SettingsError("an agent on several machines needs a name that is not empty")
    data = agent.encode("utf-8", "surrogatepass")
    is_ours = agent.startswith("_") or agent == CLIENT
    return "".join(
        chr(byte) if byte in _PLAIN and not (is_ours and at == 0) else f"={byte:02X}"
        for at, byte in enumerate(data)
    )


def agent_in(token: str, beat: bytes) -> str:
    """The agent that a heartbeat names; empty: it is not the agent of the subject's token."""
    if not 0 < len(beat) <= len(token):  # a token has at least a letter for each byte
        return ""
    with suppress(UnicodeDecodeError):
        agent = beat.decode("utf-8", "surrogatepass")
        return agent if token_of(agent) == token else ""
    return ""


def journal_headers(epoch: int, t: int, cursor: int, last: int) -> dict[str, str]:
    """The headers of a message of the journal.

    Args:
        epoch: The epoch of its owner. It is a part of the id: an old server looks for duplicates
            before it looks at sequences, and would take another owner's record for this one.
        t: The number of its last record.
        cursor: The raw sequence up to which input is dealt with then.
        last: The sequence that it must come after.
    """
    return {
        MSG_ID: f"{epoch}.{t}", LAST: str(last), RAW: str(cursor), T: str(t), V: VERSION,
        EPOCH: str(epoch), WALL: f"{time.time():.3f}",
    }  # fmt: skip


class Subjects:
    """The names of one session on the server.

    Attributes:
        session: The session's name.
        raw, to, journal: Its streams.
        journal_subject: The subject of the journal.
        key: The subject of the key with its owner.
        missed: The subject on which clients ask for answers that they have missed.
    """

    def __init__(self, session: str) -> None:
        """Check the name.

        Raises:
            SettingsError: It is no name for a session.
        """
        self.session = check_session(session)
        self.raw, self.to = f"DIG_RAW_{session}", f"DIG_TO_{session}"
        self.journal = f"DIG_JOURNAL_{session}"
        self.journal_subject = f"dig.{session}.journal"
        self.key = f"$KV.{OWNERS}.{session}"
        self.missed = f"dig.{session}.missed"

    def raw_subject(self, token: str) -> str:
        """The subject for messages from an agent or client."""
        return f"dig.{self.session}.raw.{token}"

    def inbox(self, token: str) -> str:
        """The subject of an agent's inbox."""
        return f"dig.{self.session}.to.{token}"

    def beat(self, token: str) -> str:
        """The subject of an agent's heartbeats."""
        return f"dig.{self.session}.beat.{token}"


def no_session(session: str) -> SettingsError:
    """Make the error about a session that nobody has made."""
    return SettingsError(
        f"there is no session {session} on this server; "
        f"start it with: digmon serve --session {session}"
    )


def consumer(token: str) -> str:
    """The durable consumer of an agent's inbox."""
    return f"agent-{token}"


def token_in(subject: str) -> str:
    """The last token of a subject."""
    return subject.rpartition(".")[2]
