"""The lines of a journal: records, and a hash chain to find damage to the line.

A journal's line is that of its record with further keys, which a plain reader ignores: `journal`
in the first one, `blobs` where a large payload lies beside the trace, and in every line, last,
`chain`: a BLAKE2b checksum of the line and of all before it. It is compared byte by byte, so a
flipped bit anywhere in a line is found. It guards against accidents, not against a person who
writes the checksums anew.
"""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Mapping
from hashlib import blake2b, sha256
from typing import Any

from dig._util.json_values import dumps

from .codec import encode, to_row
from .records import Emit, Finish, Record

HEADER = "journal"
CHAIN = "chain"
BLOBS = "blobs"
VERSION = 1

LARGE = 64 * 1024
"""A payload that is longer as JSON, in bytes, lies beside the trace."""

_OPEN, _CLOSE = b',"chain":"', b'"}\n'
_DIGEST = 16
_SEAL = len(_OPEN) + 2 * _DIGEST + len(_CLOSE)
_EMPTY = blake2b(digest_size=_DIGEST)


class Chain:
    """The checksums of a journal's lines, in order."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        """Begin before the first line."""
        self._last = b""

    def seal(self, text: bytes) -> bytes:
        """The line for a JSON object: with checksum and newline."""
        body = text[:-1]
        digest = _EMPTY.copy()  # costs less than to make one with its parameters
        digest.update(self._last + body)
        self._last = digest.digest()
        return body + _OPEN + hexlify(self._last) + _CLOSE

    def follows(self, line: bytes) -> bool:
        """Whether a line is whole, and follows the lines before."""
        # Bytes are compared, not JSON: then a changed blank is damage, too.
        body, end = line[:-_SEAL], line[-_SEAL:]
        digest = blake2b(self._last + body, digest_size=_DIGEST).digest()
        if end != _OPEN + hexlify(digest) + _CLOSE:
            return False
        self._last = digest
        return True


def checksum(line: bytes) -> str:
    """The checksum of a sealed line, as hexadecimal digits."""
    return line[-_SEAL + len(_OPEN) : -len(_CLOSE)].decode("ascii")


def bare(line: bytes) -> str:
    """A line as text, without checksum and newline."""
    at = len(line) - _SEAL
    text = line[:at] + b"}" if line[at : at + len(_OPEN)] == _OPEN else line
    return text.decode("utf-8", "replace").rstrip("\n")


def is_journal(first: Mapping[str, Any]) -> bool:
    """Whether the JSON object of a first line begins a journal, not a plain trace.

    One of two keys is enough, so that damage to one does not make it pass for a plain trace.
    """
    return HEADER in first or CHAIN in first


class SealedLines:
    """Records as the lines of a journal.

    Attributes:
        blobs: Large payloads of the lines as JSON, by their hash; who keeps them empties it.
    """

    def __init__(self, header: Mapping[str, Any]) -> None:
        """Begin with the first line; `header` describes how the run is made."""
        self._header: dict[str, Any] | None = {"version": VERSION, **header}
        self._chain = Chain()
        self.blobs: dict[str, bytes] = {}

    def line(self, record: Record, *, keeps_payload: bool = False) -> bytes:
        """The next line, with a newline.

        Args:
            record: The record.
            keeps_payload: Whether a large payload stays in the line.
        """
        text = encode(record)
        # Only events and answers carry payloads of any size.
        if len(text) > LARGE and not keeps_payload and isinstance(record, Emit | Finish):
            text = self._lighten(record) or text
        if self._header is not None:
            # Further keys come last, so that the line begins like that of a plain trace.
            text = f'{text[:-1]},"{HEADER}":{dumps(self._header)}}}'
            self._header = None
        return self._chain.seal(text.encode("ascii"))

    def _lighten(self, record: Emit | Finish) -> str | None:
        """A record without the large payload, if any."""
        row = to_row(record)
        key = "payload" if isinstance(record, Emit) else "answer"
        value = row.get(key)
        data = dumps(value).encode("ascii")
        # A detector that reads the trace without blobs must see which payloads are not whole.
        if len(data) <= LARGE or (type(value) is dict and any(k.startswith("$") for k in value)):
            return None
        name = sha256(data).hexdigest()
        del row[key]
        self.blobs[name] = data
        return dumps({**row, BLOBS: {key: name}})
