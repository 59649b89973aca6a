"""What comes in from outside: plain JSON, no larger than an event may be, and without secrets.

It is looked at before anything of it happens, so that the journal, the agents and whoever looks
on all see the same, and what is refused has left no trace.
"""

from __future__ import annotations

from typing import Any

from dig._util.json_values import plain
from dig._util.redaction import mask_secrets, redacted
from dig.errors import PayloadError
from dig.graph.codec import dumps

from .messages import Output

MOST_BYTES = 16 * 1024 * 1024
"""The largest payload, as it stands in a trace; a reader takes lines that are a little longer."""

MOST_IN_ERROR = 20_000
"""Characters of an error that are kept: it may quote all that a model has said."""

PER_CHARACTER = 12
"""The most bytes that a character takes: half of what there are have two escapes of six."""


class Entrance:
    """Lets values in, as copies of their own."""

    def __init__(self, redacts: bool) -> None:
        """Open; `redacts`: secrets are masked (see `dig._util.redaction`)."""
        self._redacts = redacts

    def __call__(self, value: Any, where: str = "payload") -> Any:
        """A value as it may go on.

        Raises:
            PayloadError: It is not plain JSON, or too large; the message names the place.
        """
        copy = plain(value, where)
        kind = type(copy)
        if kind is str:
            if len(copy) * PER_CHARACTER > MOST_BYTES:
                _measure(copy, where)
            return mask_secrets(copy) if self._redacts else copy
        if kind is dict or kind is list:
            _measure(copy, where)
            return redacted(copy) if self._redacts else copy
        return copy

    def output(self, output: Output) -> Output:
        """An output with a payload of its own.

        Raises:
            PayloadError: The payload is not plain JSON, or too large.
        """
        return Output(
            self(output.payload), tuple(output.to), output.type, output.final,
            output.policy, output.traceparent,
        )  # fmt: skip

    def error(self, text: str | None) -> str | None:
        """What is kept of what went wrong."""
        if text is None:
            return None
        masked = mask_secrets(text) if self._redacts else text
        return masked if len(masked) <= MOST_IN_ERROR else f"{masked[: MOST_IN_ERROR - 1]}…"


def _measure(value: Any, where: str) -> None:
    size = len(dumps(value))
    if size > MOST_BYTES:
        raise PayloadError(
            f"{where} has {size:,} bytes as JSON, and at most {MOST_BYTES:,} go into an event; "
            "keep it elsewhere, and send where it is"
        )
