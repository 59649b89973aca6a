"""What no file and no export may show: keys, tokens and passwords, masked.

They are told by the name of the key that they stand under, by their shape, and, where somebody
knows them, by their value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

MASK = "***"

_NAMES = r"(?:authorization|api[-_ ]?key|access[-_]?key|secret|token|passw(?:or)?d)"
_SECRET = re.compile(
    r"(?i)(?P<head>"
    rf"\b{_NAMES}[\"']?\s*[:=]\s*"
    r"[\"']?(?:bearer\s+|basic\s+)?|\b(?:bearer|basic)\s+)(?P<tail>[^\s\"',;]{6,})"
    r"|\b(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[abp])[-_][\w-]{8,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)
_NAME = re.compile(rf"(?i)(?:.*[-_ ])?{_NAMES}")


def mask_secrets(text: str) -> str:
    """Text with what looks like a key, a token or a password masked.

    >>> mask_secrets("api_key=abcdef123456, sk-proj-0123456789")
    'api_key=***, ***'
    """
    return _SECRET.sub(lambda found: (found["head"] or "") + MASK, text)


def redacted(value: Any, known: Iterable[str] = ()) -> Any:
    """A copy of a JSON value without secrets.

    >>> redacted({"api_key": "hunter2", "text": ["the key is q1w2e3"]}, known=["q1w2e3"])
    {'api_key': '***', 'text': ['the key is ***']}

    Args:
        value: Plain JSON, or any other value, of which the `str` is taken.
        known: Secrets that are masked wherever they stand.
    """
    known = [secret for secret in known if secret]
    if isinstance(value, str):
        for secret in known:
            value = value.replace(secret, MASK)
        return mask_secrets(value)
    if isinstance(value, dict):
        return {
            redacted(str(key), known): MASK
            if isinstance(item, str) and _NAME.fullmatch(str(key))
            else redacted(item, known)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redacted(item, known) for item in value]
    return value if isinstance(value, int | float | None) else redacted(str(value), known)
