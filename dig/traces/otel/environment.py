"""The environment variables about exporting, read without importing OpenTelemetry."""

from __future__ import annotations

from math import inf
from os import environ

from dig.errors import SettingsError

from .content import Content

SIGNALS = ("traces", "metrics", "logs")
OPEN_VARIABLE = "DIG_OTLP_OPEN_S"


def is_configured() -> bool:
    """Whether the environment names a receiver, and does not switch everything off."""
    names = ["", *(f"{signal.upper()}_" for signal in SIGNALS)]
    is_off = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not is_off and any(environ.get(f"OTEL_EXPORTER_OTLP_{name}ENDPOINT") for name in names)


def content_of_environment() -> Content:
    """The limits on text by the environment; a variable can allow payloads."""
    capture = environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "")
    return Content(payloads=capture.strip().lower() in ("true", "1", "span_only", "span_and_event"))


def open_s_of_environment(default: float) -> float:
    """The seconds between two signs of open spans (`DIG_OTLP_OPEN_S`).

    Raises:
        SettingsError: The variable is no number of seconds.
    """
    text = environ.get(OPEN_VARIABLE) or default
    try:
        seconds = float(text)
        if 0 < seconds < inf:
            return seconds
        raise ValueError
    except ValueError:
        raise SettingsError(f"{OPEN_VARIABLE}={text!r:.60} is no number, such as 30") from None
