"""Faults between us and a model's server, each in a sentence with the cure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

from dig._util.redaction import redact
from dig._util.text import one_line

from .sdk import openai
from .settings import BOUNDS, ModelSettings

_BUSY = (408, 409, 425, 429)
_SHAPE = re.compile(
    r"(?i)response[_ ]?format|json[_ ](?:schema|object|mode)|structured[_ ]output|\bstrict\b"
)
"""Words by which a server names the way in which it was asked for a shape."""

MOST_SAID = 500
"""Characters of a server's message that are shown."""

_NO_MONEY = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")


@dataclass(frozen=True)
class ModelFault:
    """A request without a usable reply.

    Attributes:
        what: The fault, and the cure if that can be told.
        again: Whether to send the request once more.
        wait_s: The seconds that the server asks us to wait before that.
        is_end: Whether every other request would go wrong as well.
        is_silence: Whether nothing came back at all.
        status: The HTTP status, if there was one.
        is_about_shape: Whether the server refuses the way in which it was asked for a shape.
        is_about_bound: Whether it refuses the bound on a reply, or the name of that.
    """

    what: str
    again: bool = False
    wait_s: float | None = None
    is_end: bool = False
    is_silence: bool = False
    status: int | None = None
    is_about_shape: bool = False
    is_about_bound: bool = False


def as_fault(error: Exception, settings: ModelSettings, key: str) -> ModelFault:
    """The meaning of an error of the client.

    Args:
        error: The error that the client raised.
        settings: The settings of the model, for the server's address and the limits of patience.
        key: The key that was sent, which is masked in the server's message.
    """
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        limit = f"{settings.timeout_s:g} s (--request-timeout)"
        message = f"{settings.where} did not answer within {limit}"
        return ModelFault(message, is_silence=True)
    if isinstance(error, openai.APIConnectionError):
        reason = one_line(redact(str(error.__cause__ or error), [key]))
        return ModelFault(f"cannot reach {settings.where}: {reason}", again=True, is_silence=True)
    if isinstance(error, openai.APIStatusError):
        fault = _status_fault(error, settings, key)
        message = f"{error.message} {error.body}"
        is_request = not fault.is_end and not fault.again
        return replace(
            fault,
            is_about_shape=_SHAPE.search(message) is not None and not fault.is_end,
            is_about_bound=is_request and any(bound in message for bound in BOUNDS),
        )
    return ModelFault(f"{settings.where}: {one_line(redact(repr(error), [key]))}", again=True)


def _status_fault(error: openai.APIStatusError, settings: ModelSettings, key: str) -> ModelFault:
    status = error.status_code
    message = (
        f"{settings.where} says {status}: {one_line(redact(_message(error), [key]), MOST_SAID)}"
    )
    if status in (401, 403):
        text = f"the key in {settings.api_key_env} is not accepted; {message}"
        return ModelFault(text, is_end=True, status=status)
    if status == 404:
        text = f"there is no model {settings.model!r} at this address, or no such address"
        return ModelFault(f"{text}; {message}", is_end=True, status=status)
    if status == 402 or error.code in _NO_MONEY:
        return ModelFault(f"the account has no credit left; {message}", is_end=True, status=status)
    wait_s = _wait_s(error.response.headers)
    again = status in _BUSY or status >= 500
    if wait_s is not None and wait_s > settings.longest_wait_s:
        message, again = f"{message} (and asks us to wait {wait_s:g} s)", False
    return ModelFault(message, again, wait_s, status=status)


def _message(error: openai.APIStatusError) -> str:
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return str(body["message"])
    return error.message


def _wait_s(headers: Any) -> float | None:
    """Seconds to wait, by the headers of the server."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if 0 <= seconds < 1e9:
            return seconds
    # From a date; by the server's clock, since ours may differ.
    try:
        retry_at, now = (parsedate_to_datetime(headers[name]) for name in ("retry-after", "date"))
        return max(0.0, (retry_at - now).total_seconds())
    except (KeyError, TypeError, ValueError):
        return None
