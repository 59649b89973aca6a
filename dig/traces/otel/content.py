"""What text may leave: how much of it, and with which secrets masked.

What agents write to each other stays here unless it is asked for. Names, ids and errors always
leave, so they are made safe and cut too: they come from outside.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dig._util.redaction import mask_secrets
from dig._util.text import safe_text

MOST_IN_LABEL = 200
MOST_IN_DETAIL = 1_000


@dataclass(frozen=True)
class Content:
    """What leaves of what agents and their tools write.

    Attributes:
        payloads: Whether payloads, notes and answers leave at all.
        most: Characters of each that leave.
        redact: Masks what must not leave, in everything that does.
    """

    payloads: bool = False
    most: int = 2_000
    redact: Callable[[str], str] = mask_secrets

    def text(self, value: Any, most: int | None = None) -> str:
        """Anything from outside as text that may leave."""
        text = value if isinstance(value, str) else _json(value)
        # Masked before it is cut, so that no half of a secret slips through; what is far beyond
        # the cut is not looked at.
        most = self.most if most is None else most
        return safe_text(self.redact(text[: 4 * most + 4_000]), most)

    def detail(self, value: Any) -> str:
        """A short text that always leaves: an error, evidence."""
        return self.text(value, MOST_IN_DETAIL)


@lru_cache(maxsize=4096)
def label(name: str) -> str:
    """A name or an id, as it may stand in a span."""
    return safe_text(name, MOST_IN_LABEL)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
