"""An OTLP receiver: exporters by URL and environment, with a report of deliveries and losses.

The standard OTEL_* variables are honoured: OTEL_EXPORTER_OTLP_{ENDPOINT,PROTOCOL,HEADERS,TIMEOUT,
COMPRESSION,CERTIFICATE,...} and their forms for one signal, OTEL_{TRACES,METRICS,LOGS}_EXPORTER
(`none` switches one off), OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER,
OTEL_METRIC_EXPORT_INTERVAL, OTEL_SDK_DISABLED. An endpoint that is handed in goes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import environ
from typing import Any

from dig._util.extras import importing_extra

with importing_extra("otel", "sending to OpenTelemetry"):
    from opentelemetry import metrics
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_NAMESPACE, Resource
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider

from .activation_spans import MOST_LISTED
from .content import label
from .environment import SIGNALS, is_configured
from .export_queue import Delivery, LogQueue, SpanQueue, size_of
from .exporters import Hush, exporter
from .items import NAME
from .writer import Writer

PATIENCE_S = 5.0
"""Seconds without a delivery after which the end of a run waits no longer."""

MOST_SERVICES = 200


@dataclass(frozen=True)
class ExportReport:
    """The deliveries and losses of an export.

    Attributes:
        spans: The number of spans that were delivered.
        lost_spans: The number of spans that were not.
        logs: The number of log records that were delivered.
        lost_logs: The number of log records that were not.
        metrics: Whether the last metrics arrived; ``None``: there were none to send.
        reason: The last message of the exporters about a loss.
    """

    spans: int = 0
    lost_spans: int = 0
    logs: int = 0
    lost_logs: int = 0
    metrics: bool | None = None
    reason: str = ""

    @property
    def lost(self) -> int:
        """The number of lost items. Logs do not count if the receiver, like Jaeger, takes none."""
        return self.lost_spans + (self.lost_logs if self.logs or not self.spans else 0)

    def __str__(self) -> str:
        """The report as a line of text."""
        parts = [f"{self.spans:,} spans", f"{self.logs:,} log records"]
        parts += ["metrics"] if self.metrics else []
        text = f"delivered {', '.join(parts[:-1])} and {parts[-1]}"
        if self.lost:
            text += f"; lost {self.lost_spans:,} spans and {self.lost_logs:,} log records"
            text += f" ({self.reason})" if self.reason else ""
        not_taken = ["no log records"] if self.lost_logs and not self.logs else []
        not_taken += ["no metrics"] if self.metrics is False else []
        if not_taken and self.spans:
            text += f"; the receiver took {' and '.join(not_taken)}"
        return text


@contextmanager
def exported_metrics() -> Iterator[None]:
    """Send the metrics of the process to the receiver of the environment, if there is any."""
    if not is_configured():
        yield
        return
    otlp = Otlp()
    metrics.set_meter_provider(otlp._meter)
    try:
        yield
    finally:
        otlp.close()


class Otlp:
    """Providers for an OTLP receiver.

    Attributes:
        spans: The delivery of spans; ``None`` if they are switched off.
        logs: The delivery of log records.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        service_per_agent: bool = False,
        is_stored: bool = False,
    ) -> None:
        """Prepare to send; nothing is sent before there is something to send.

        Args:
            endpoint: The URL: `http://host:4318`, `grpc://host:4317`; ``None``: that of the
                environment, else `http://localhost:4318`.
            service_per_agent: Whether each agent is a service of its own, which viewers give
                colours and filters.
            is_stored: Whether a stored run is sent: metrics are of a run that goes on.

        Raises:
            SettingsError: The endpoint or a variable makes no sense, or gRPC is not installed.
        """
        exporters = {
            signal: exporter(signal, endpoint)
            for signal in SIGNALS
            if environ.get(f"OTEL_{signal.upper()}_EXPORTER") != "none"
            and not (is_stored and signal == "metrics")
        }
        self._hush = Hush()
        self._resource = _resource()
        self._tracers: dict[str | None, TracerProvider] = {}
        self._is_per_agent = service_per_agent
        self._metrics_arrived: bool | None = None  # the last ones; sums only grow
        self.spans = _delivery("spans", exporters.get("traces"), size=size_of)
        self.logs = _delivery("logs", exporters.get("logs"))
        self._logger = LoggerProvider(self._resource, shutdown_on_exit=False)
        if self.logs is not None:
            self._logger.add_log_record_processor(LogQueue(self.logs))
        readers = []
        if "metrics" in exporters:
            readers.append(PeriodicExportingMetricReader(self._checked(exporters["metrics"])))
        self._meter = MeterProvider(readers, self._resource, shutdown_on_exit=False)

    def writer(self, detector_seconds: Callable[[], Mapping[str, float]] = dict) -> Writer:
        """Make the writer of items to the providers."""
        observed = {
            "dig.detector.time": detector_seconds,
            "dig.export.dropped": self._count_dropped,
        }
        return Writer(self._tracer, self._meter, self._logger, observed)

    def wait_for_room(self, patience_s: float) -> None:
        """Wait until there is room for many spans, as long as some are still delivered."""
        if self.spans is not None:
            self.spans.wait_for_room(patience_s)

    def close(self, patience_s: float = PATIENCE_S) -> ExportReport:
        """Deliver all waiting items, and report deliveries and losses.

        Args:
            patience_s: Seconds without a delivery after which it gives up.
        """
        if self.spans is not None:
            self.spans.close(patience_s)
            if self.spans.lost and not self.spans.delivered:
                patience_s = 0.0  # there is no receiver
        if self.logs is not None:
            self.logs.close(patience_s)
        with suppress(Exception):  # `_checked` knows whether they arrived
            # Without any time it would raise before it ends the thread that exports.
            self._meter.shutdown(timeout_millis=max(1000 * patience_s, 100))
        self._hush.close()
        spans, logs = self.spans, self.logs
        return ExportReport(
            spans.delivered if spans else 0,
            spans.lost if spans else 0,
            logs.delivered if logs else 0,
            logs.lost if logs else 0,
            self._metrics_arrived,
            self._hush.last or "it did not answer in time; `digmon export` sends a stored run",
        )

    def _tracer(self, agent: str | None) -> TracerProvider:
        service = label(agent) if agent is not None and self._is_per_agent else None
        # Providers cost memory, and agents may come and go for as long as the session lasts.
        if service not in self._tracers and len(self._tracers) > MOST_SERVICES:
            service = None
        provider = self._tracers.get(service)
        if provider is None:
            resource = self._resource
            if service is not None:
                team = str(resource.attributes[SERVICE_NAME])
                names = {SERVICE_NAME: service, SERVICE_NAMESPACE: team}
                resource = resource.merge(Resource(names))
            # An aggregator may have more inputs than the SDK has room for by default.
            links, events = (
                None if environ.get(name) else MOST_LISTED
                for name in ("OTEL_SPAN_LINK_COUNT_LIMIT", "OTEL_SPAN_EVENT_COUNT_LIMIT")
            )
            limits = SpanLimits(max_links=links, max_events=events)
            provider = self._tracers[service] = TracerProvider(
                resource=resource, shutdown_on_exit=False, span_limits=limits
            )
            if self.spans is not None:
                provider.add_span_processor(SpanQueue(self.spans))
        return provider

    def _checked(self, exporter: Any) -> Any:
        """Note for each export of metrics whether the metrics arrived."""
        export = exporter.export

        def check(*args: Any, **options: Any) -> Any:
            self._metrics_arrived = False
            result = export(*args, **options)
            self._metrics_arrived = result.name == "SUCCESS"
            return result

        exporter.export = check
        return exporter

    def _count_dropped(self) -> Mapping[str, float]:
        deliveries = {"spans": self.spans, "logs": self.logs}
        return {name: d.refused + d.failed for name, d in deliveries.items() if d is not None}


# --- pieces ---


def _delivery(name: str, exporter: Any, **options: Any) -> Delivery[Any] | None:
    if exporter is None:
        return None

    def export(batch: Any) -> bool:
        return bool(exporter.export(batch).name == "SUCCESS")

    return Delivery(name, export, exporter.shutdown, **options)


def _resource() -> Resource:
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        return resource.merge(Resource({SERVICE_NAME: NAME}))
    return resource
