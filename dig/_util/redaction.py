"""Redaction: keys, tokens and passwords are masked in all files and exports.

A secret is recognized by the name of its key, by its shape and, if the caller
knows it, by its value. Masking a text that is masked already changes nothing, so a
recorded run can be driven again.
"""

from __future__ import annotations

import logging
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
_Q = r"\\{0,31}[\"']"
_PART = r"[^\s\"'\\,;&<>]"
_SECRET = (
    r"(?i)(?P<head>"
    rf"(?:(?<![a-z])|(?-i:(?<=[a-z])(?=[A-Z]))){_NAMES}{_Q}?\s*"
    rf"(?:=>|:=|[:=]|,\s*{_Q}value{_Q}\s*:)\s*{_Q}?(?:bearer\s+|basic\s+)?"
    # a basic skill is no secret: one has digits, padding, or a capital in a word
    rf"|\bbearer\s+|\bbasic\s+(?={_PART}{{0,64}}(?:[0-9=]|(?-i:[a-z][A-Z]))))"
    rf"(?P<tail>(?!(?:bearer|basic)\s)(?!\*\*\*|-----BEGIN ){_PART}{{6,}})"
    r"|(?P<start>\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{0,64}:)(?P<word>[^\s/@\"']{3,})(?=@)"
    # the shapes of well-known issuers, whose own documents describe them
    r"|(?<![a-z0-9])(?:"
    r"(?-i:sk|pk|rk)[-_][\w-]{8,}|(?-i:gh[oprsu])_\w{16,}|github_pat_\w{20,}"
    r"|glpat-[\w-]{8,}|xox[abeoprs]-[\w-]{8,}|xapp-[\w-]{8,}|npm_\w{20,}|pypi-[\w-]{20,}|hf_\w{20,}"
    r"|(?-i:SG)\.[\w-]{16,}\.[\w-]{16,}|(?-i:AIza)[\w-]{30,}|(?-i:ya29)\.[\w-]{20,}"
    r"|(?-i:AKIA|ASIA)(?-i:[0-9A-Z]{16,}))"
    # its run of letters has to begin here: else many beginnings would share one long run
    r"|(?<![\w-])(?-i:eyJ)[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
    r"(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
)
_RARE = (
    # the code that ends a login, and `pwd`, are often something else
    rf"(?i)(?P<head>[?&](?:amp;)?(?:(?:[\w-]{{0,40}}[-_])?sig(?:nature)?=|code=(?={_PART}{{0,64}}\d))"
    rf"|(?<![a-z])pwd{_Q}?\s*[:=]\s*{_Q}?(?={_PART}{{0,64}}\d)(?!{_PART}{{0,64}}[(/])"
    rf"|authorization{_Q}\s*,\s*{_Q}|hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/"
    r"|discord(?:app)?\.com/api/webhooks/|\.webhook\.office\.com/webhookb2/)"
    rf"(?P<tail>(?!\*\*\*){_PART}{{6,}})"
    rf"|(?P<start>cookie(?:{_Q}?\s*:|{_Q}\s*,)\s*{_Q}?)"
    r"[\w.-]{1,64}=[^\s\"'\\;,]+(?:;\s*[\w.-]{1,64}=[^\s\"'\\;,]*)*"
    r"|(?<![a-z0-9])(?-i:hvs\.[\w-]{16,}|do[opr]_v1_\w{16,}|dapi[0-9a-zA-Z]{32,}(?:-\d)?"
    r"|(?:bot)?\d{8,10}:AA[\w-]{30,})"
)
"""The shapes whose signs are seldom seen: they cost nothing where there is none."""

_NAME = rf"(?i)(?:.*[-_ .]|.*(?-i:[a-z])(?=[A-Z]))?{_NAMES}"

_NAMED = ("key", "secret", "token", "pass", "credential", "authorization")
_SIGNS = {
    ":": (*_NAMED, "://"),
    "=": _NAMED,
    ".": ("sg.", "ya29.", "eyj"),
    "-": ("k-", "-----b", "glpat-", "xox", "xapp-", "pypi-"),
    "_": ("k_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "_pat_", "npm_", "hf_"),
    "b": ("bearer", "basic"),
    "B": ("bearer", "basic"),
    "A": ("aiza", "akia", "asia"),
}
_RARE_SIGNS = {
    ":": ("cookie", "pwd", ":aa", "authorization", "hooks.slack", "/api/webhooks", ".webhook."),
    "=": ("cookie", "pwd", "sig=", "signature=", "code="),
    "hvs.": ("hvs.",),
    "_v1_": ("_v1_",),
    "dapi": ("dapi",),
}
# Every payload is searched for these: as few marks as possible, and no sign that another one has.
_ALL_SIGNS = {
    **_SIGNS,
    ":": (*_SIGNS[":"], "cookie", "pwd", ":aa"),
    "=": (*_SIGNS["="], *_RARE_SIGNS["="]),
    ".": (*_SIGNS["."], "hvs."),
    "_": (*_SIGNS["_"], "_v1_"),
    "dapi": ("dapi",),
}
"""A text with a secret has one of these characters and, in small letters, one of the signs beside
it; to look for them is cheaper than the pattern."""

_TITLES, _TITLED = ("name", "Name", "key", "Key"), ("value", "Value")
"""The members of an object that names a header, a field or a variable, and that holds it."""

_DIGITS = frozenset("0123456789")
_NUMBERS = {int, float, bool, type(None)}


def mask_secrets(text: str) -> str:
    """Mask everything in a text that looks like a key, a token or a password.

    >>> mask_secrets("api_key=abcdef123456, sk-proj-0123456789")
    'api_key=***, ***'
    """
    if _has_sign(text, _SIGNS):
        text = _compile(_SECRET).sub(_mask, text)
    return _compile(_RARE).sub(_mask, text) if _has_sign(text, _RARE_SIGNS) else text


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on first use: it takes milliseconds."""
    return re.compile(pattern)


def masking_logger(name: str) -> logging.Logger:
    """A logger with secrets masked in messages and tracebacks."""
    logger = logging.getLogger(name)
    logger.addFilter(_mask_record)
    return logger


def _mask_record(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    if (masked := mask_secrets(message)) != message:
        record.msg, record.args = masked, ()
    if record.exc_info:
        message = logging.Formatter().formatException(record.exc_info)
        if (masked := mask_secrets(message)) != message:
            record.exc_info, record.exc_text = None, masked
    return True


def may_hold_secrets(texts: Iterable[str]) -> bool:
    """Whether a JSON value with the given texts and keys may hold a secret; surely not if false."""
    return _has_sign(
        ":".join(texts), _ALL_SIGNS
    )  # so that the name of a key counts as one in a text


def _has_sign(text: str, by_mark: dict[str, tuple[str, ...]]) -> bool:
    lowered = ""  # made once, and only for a text that has a mark
    for mark in filter(text.__contains__, by_mark):
        lowered = lowered or text.lower()
        if any(map(lowered.__contains__, by_mark[mark])):
            return True
    return False


def _mask(match: re.Match[str]) -> str:
    return (match["head"] or match["start"] or "") + MASK


def redact(value: Any, secrets: Iterable[str] = ()) -> Any:
    """A copy of a JSON value without secrets.

    >>> redact({"api_key": "hunter2", "text": ["the key is q1w2e3"]}, secrets=["q1w2e3"])
    {'api_key': '***', 'text': ['the key is ***']}

    Args:
        value: Plain JSON, or any other value, of which the `str` is taken.
        secrets: Secrets that are masked wherever they stand.
    """
    return _redact(value, [secret for secret in secrets if secret])


def _redact(value: Any, secrets: list[str], is_secret: bool = False) -> Any:
    if isinstance(value, str):
        if is_secret:
            return MASK
        for secret in secrets:
            value = value.replace(secret, MASK)
        return mask_secrets(value)
    if isinstance(value, dict):
        return _object(value, secrets, is_secret)
    if isinstance(value, list | tuple):
        if set(map(type, value)) <= _NUMBERS:  # raw data: long and flat
            return list(value)
        if len(value) == 2 and _is_pair(*value):
            return [_redact(value[0], secrets, is_secret), MASK]
        return [_redact(item, secrets, is_secret) for item in value]
    if isinstance(value, int | float | None):
        return value
    return _redact(str(value), secrets, is_secret)


def _object(value: dict[Any, Any], secrets: list[str], is_secret: bool) -> dict[str, Any]:
    masked: dict[str, Any] = {}
    title = next((value[key] for key in _TITLES if isinstance(value.get(key), str)), "")
    for key, item in value.items():
        name = _key_for(_redact(str(key), secrets), masked)
        names = _is_name(title if key in _TITLED else str(key), item)
        masked[name] = _redact(item, secrets, is_secret or names)
    return masked


def _is_name(name: str, item: Any) -> bool:
    """Whether a name names a secret; for some names, the value decides."""
    if name[-6:].lower().endswith(("cookie", "pwd")):
        return isinstance(item, str) and f"{name}: {MASK}" in mask_secrets(f"{name}: {item}")
    return _compile(_NAME).fullmatch(name) is not None


def _is_pair(name: Any, item: Any) -> bool:
    """Whether two values are a name and a secret, not two words side by side."""
    if not (isinstance(name, str) and isinstance(item, str)):
        return False
    is_opaque = "=" in item or (" " not in item and not _DIGITS.isdisjoint(item))
    return is_opaque and _is_name(name, item)


def _key_for(name: str, masked: dict[str, Any]) -> str:
    """A free key for a masked object, so that two keys stay two."""
    key = name
    while key in masked:
        key = f"{name}{len(masked)}"
    return key
