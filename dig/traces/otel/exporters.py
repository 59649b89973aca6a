"""Exporters of OTLP, configured by URL and environment, with log messages caught."""

from __future__ import annotations

import logging
from importlib import import_module
from os import environ
from typing import Any
from urllib.parse import urlsplit

from dig._util.extras import importing_extra
from dig.errors import SettingsError

TIMEOUT_S = 60.0
"""Seconds for which an exporter tries to send a batch: as long as a receiver may be away."""

_EXPORTERS = {
    "traces": ("trace_exporter", "OTLPSpanExporter"),
    "metrics": ("metric_exporter", "OTLPMetricExporter"),
    "logs": ("_log_exporter", "OTLPLogExporter"),
}
_PROTOCOLS = {"http/protobuf": "http", "grpc": "grpc"}
_SCHEMES = {"grpc": "http", "grpcs": "https"}


def exporter(signal: str, endpoint: str | None) -> Any:
    """The SDK's exporter of a signal, to an endpoint or, by default, to the environment's.

    Raises:
        SettingsError: The endpoint or a variable makes no sense, or gRPC is not installed.
    """
    name = signal.upper()
    protocol = environ.get(f"OTEL_EXPORTER_OTLP_{name}_PROTOCOL") or environ.get(
        "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"
    )
    if protocol not in _PROTOCOLS:
        raise SettingsError(
            f"the OTLP protocol {protocol!r} is not known; try http/protobuf or grpc"
        )
    kind = _PROTOCOLS[protocol]
    options: dict[str, Any] = {}
    if endpoint is not None:
        kind, options["endpoint"] = _target(signal, endpoint, kind)
    if not any(environ.get(f"OTEL_EXPORTER_OTLP_{n}TIMEOUT") for n in ("", f"{name}_")):
        options["timeout"] = TIMEOUT_S
    module, cls = _EXPORTERS[signal]
    with importing_extra("otlp-grpc" if kind == "grpc" else "otel", f"OTLP ({kind})"):
        package = import_module(f"opentelemetry.exporter.otlp.proto.{kind}.{module}")
    try:
        return getattr(package, cls)(**options)
    except Exception as error:  # a wrong variable: a timeout that is no number, ...
        raise SettingsError(f"the OTLP exporter for {signal} cannot be set up: {error}") from None


def _target(signal: str, endpoint: str, kind: str) -> tuple[str, str]:
    """The protocol of an endpoint, and the URL for a signal."""
    try:
        url = urlsplit(endpoint)
        is_sound = url.scheme in ("http", "https", *_SCHEMES) and bool(url.hostname)
        is_sound = is_sound and url.port != 0
    except ValueError:  # a port that is none, ...
        is_sound = False
    if not is_sound:
        raise SettingsError(
            f"{endpoint!r} is no OTLP endpoint; try http://localhost:4318 or grpc://localhost:4317"
        )
    if url.scheme in _SCHEMES:
        return "grpc", f"{_SCHEMES[url.scheme]}://{url.netloc}"
    # gRPC has one address for all signals.
    if kind == "grpc":
        return kind, endpoint
    # Users paste the address of traces, too.
    base = endpoint.rstrip("/").removesuffix("/v1/traces")
    return kind, f"{base}/v1/{signal}"


class Hush(logging.Handler):
    """Keeps log messages of exporters from the terminal, and remembers the last."""

    def __init__(self) -> None:
        """Begin to listen."""
        super().__init__(logging.WARNING)
        self.last = ""
        self._logger = logging.getLogger("opentelemetry")
        self._was_heard = self._logger.propagate
        self._logger.propagate = False
        self._logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Remember a message, unless about a shutdown: dig itself causes the shutdown."""
        if "hutdown" not in (message := record.getMessage()):
            self.last = message[:300]

    def close(self) -> None:
        """Let the messages of exporters reach the terminal again."""
        self._logger.removeHandler(self)
        self._logger.propagate = self._was_heard
        super().close()
