"""Redaction: keys, tokens and passwords are masked in all files and exports.

A secret is recognized by the name of its key, by its shape and, if the caller
knows it, by its value. Masking a text that is masked already changes nothing, so a
recorded run can be driven again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

MASK = "***"

_NAMES = (
    r"(?:authorization|api[-_ ]?key|access[-_ ]?key(?:[-_ ]?id)?|account[-_ ]?key|secret[-_ ]?key"
    r"|private[-_ ]?key|client[-_ ]?secret|secret|token|passw(?:or)?d|passphrase|credentials?)"
)
# A quotation mark in JSON text in JSON text has a backslash before it, then 3, 7, 15 and 31.
_SECRET = (
    r"(?i)(?P<head>"
    rf"(?:(?<![a-z])|(?-i:(?<=[a-z])(?=[A-Z]))){_NAMES}\\{{0,31}}[\"']?\s*(?:=>|:=|[:=])\s*"
    r"\\{0,31}[\"']?(?:bearer\s+|basic\s+)?|\b(?:bearer|basic)\s+)"
    r"(?P<tail>(?!(?:bearer|basic)\s)(?!\*\*\*|-----BEGIN )[^\s\"'\\,;&<>]{6,})"
    r"|(?P<start>\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{0,64}:)(?P<word>[^\s/@\"']{3,})(?=@)"
    # the shapes of well-known issuers, whose own documents describe them
    r"|(?<![a-z0-9])(?:"
    r"(?-i:sk|pk|rk)[-_][\w-]{8,}|(?-i:gh[oprsu])_\w{16,}|github_pat_\w{20,}"
    r"|glpat-[\w-]{8,}|xox[abeoprs]-[\w-]{8,}|xapp-[\w-]{8,}|npm_\w{20,}|pypi-[\w-]{20,}|hf_\w{20,}"
    r"|(?-i:SG)\.[\w-]{16,}\.[\w-]{16,}|(?-i:AIza)[\w-]{30,}|(?-i:ya29)\.[\w-]{20,}"
    r"|(?-i:AKIA|ASIA)(?-i:[0-9A-Z]{16}))"
    # its run of letters has to begin here: else many beginnings would share one long run
    r"|(?<![\w-])(?-i:eyJ)[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
)
_NAME = rf"(?i)(?:.*[-_ .]|.*(?-i:[a-z])(?=[A-Z]))?{_NAMES}"

_NAMED = ("key", "secret", "token", "pass", "credential", "authorization")
_SIGNS = (
    (":", (*_NAMED, "://")),
    ("=", _NAMED),
    (".", ("sg.", "ya29.", "eyj")),
    ("-", ("k-", "key-", "glpat-", "xox", "xapp-", "pypi-")),
    ("_", ("k_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "_pat_", "npm_", "hf_")),
    ("b", ("bearer", "basic")),
    ("B", ("bearer", "basic")),
    ("A", ("aiza", "akia", "asia")),
)
"""A text with a secret has one of these characters and, in small letters, one of the signs beside
it; to look for them is cheaper than the pattern."""

_NUMBERS = {int, float, bool, type(None)}


def mask_secrets(text: str) -> str:
    """A text in which everything that looks like a key, a token or a password is masked.

    >>> mask_secrets("api_key=abcdef123456, sk-proj-0123456789")
    'api_key=***, ***'
    """
    return _compiled(_SECRET).sub(_mask, text) if _has_sign(text) else text


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern, compiled when a text first has a sign of a secret: that takes milliseconds."""
    return re.compile(pattern)


def may_hold_secrets(texts: Iterable[str]) -> bool:
    """Whether a JSON value with these texts and keys may hold a secret: if not, it holds none."""
    return _has_sign(":".join(texts))  # so that the name of a key counts as one in a text


def _has_sign(text: str) -> bool:
    lowered = ""
    for mark, signs in _SIGNS:
        if mark in text:
            lowered = lowered or text.lower()
            for sign in signs:
                if sign in lowered:
                    return True
    return False


def _mask(found: re.Match[str]) -> str:
    return (found["head"] or found["start"] or "") + MASK


def redacted(value: Any, known: Iterable[str] = ()) -> Any:
    """A copy of a JSON value without secrets.

    >>> redacted({"api_key": "hunter2", "text": ["the key is q1w2e3"]}, known=["q1w2e3"])
    {'api_key': '***', 'text': ['the key is ***']}

    Args:
        value: Plain JSON, or any other value, of which the `str` is taken.
        known: Secrets that are masked wherever they stand.
    """
    return _redacted(value, [secret for secret in known if secret])


def _redacted(value: Any, known: list[str]) -> Any:
    if isinstance(value, str):
        for secret in known:
            value = value.replace(secret, MASK)
        return mask_secrets(value)
    if isinstance(value, dict):
        return _object(value, known)
    if isinstance(value, list | tuple):
        if set(map(type, value)) <= _NUMBERS:  # raw data: long and flat
            return list(value)
        return [_redacted(item, known) for item in value]
    return value if isinstance(value, int | float | None) else _redacted(str(value), known)


def _object(value: dict[Any, Any], known: list[str]) -> dict[str, Any]:
    masked: dict[str, Any] = {}
    for key, item in value.items():
        name = _key_for(_redacted(str(key), known), masked)
        is_secret = isinstance(item, str) and _compiled(_NAME).fullmatch(str(key)) is not None
        masked[name] = MASK if is_secret else _redacted(item, known)
    return masked


def _key_for(name: str, masked: dict[str, Any]) -> str:
    """A key for a member of an object in which secrets are masked: keys that are two stay two."""
    key = name
    while key in masked:
        key = f"{name}{len(masked)}"
    return key
