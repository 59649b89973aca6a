"""Text in exports: limited in length, with secrets masked.

Payloads, notes and answers are not exported by default. Names, ids and errors always
are; they come from outside, so they are made safe and cut, too.
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
    """The limits on exported text of agents and tools.

    Attributes:
        payloads: Whether payloads, notes and answers are exported at all; by default not.
        most: The most characters of each that are exported.
        redact: Masks secrets in every exported text.
    """

    payloads: bool = False
    most: int = 2_000
    redact: Callable[[str], str] = mask_secrets

    def text(self, value: Any, most: int | None = None) -> str:
        """Any value from outside as text for an export, masked and cut."""
        text = value
        if not isinstance(value, str):
            try:
                text = json.dumps(value, ensure_ascii=False, default=repr)
            except (TypeError, ValueError, RecursionError):
                text = repr(value)
        # Masked before it is cut, so that no half of a secret slips through; text far beyond
        # the cut is not looked at.
        most = self.most if most is None else most
        return safe_text(self.redact(text[: 4 * most + 4_000]), most)

    def detail(self, value: Any) -> str:
        """A short text, always exported: an error, evidence."""
        return self.text(value, MOST_IN_DETAIL)


@lru_cache(maxsize=4096)
def label(name: str) -> str:
    """A name or id, made safe and cut for a span."""
    return safe_text(mask_secrets(name[:4_000]), MOST_IN_LABEL)


OTHER = "other"


class FewLabels:
    """A limited number of names, as values of a metric's attribute.

    After the first `most` names, every further one is `other`.
    """

    def __init__(self, most: int) -> None:
        """Begin without a name."""
        self._most = most
        self._names: set[str] = set()

    def __call__(self, name: str) -> str:
        """The name as a label, or `other`."""
        if name not in self._names:
            # Each value makes a time series, which backends charge for.
            if len(self._names) >= self._most:
                return OTHER
            self._names.add(name)
        return label(name)
