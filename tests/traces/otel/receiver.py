"""A real OTLP receiver, over HTTP and over gRPC, that decodes what comes over the wire."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import grpc  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs_pb
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as logs_rpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_pb
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_rpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as trace_rpc

PATHS: dict[str, tuple[Any, Any]] = {
    "/v1/traces": (trace_pb.ExportTraceServiceRequest, trace_pb.ExportTraceServiceResponse),
    "/v1/metrics": (
        metrics_pb.ExportMetricsServiceRequest,
        metrics_pb.ExportMetricsServiceResponse,
    ),
    "/v1/logs": (logs_pb.ExportLogsServiceRequest, logs_pb.ExportLogsServiceResponse),
}


@dataclass
class Received:
    """What a receiver was sent, and how it behaves.

    Attributes:
        requests: The decoded requests, in order.
        refuses: HTTP status by path, for what it does not take.
        away: How many requests it answers with 503 before it is back.
        delay_s: How long it takes over each request.
    """

    endpoint: str = ""
    requests: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refuses: dict[str, int] = field(default_factory=dict)
    away: int = 0
    delay_s: float = 0.0

    def spans(self) -> list[Any]:
        return [span for _, span in self.spans_by_service()]

    def spans_by_service(self) -> list[tuple[str, Any]]:
        return [
            (attributes(resource.resource)["service.name"], span)
            for request in self.requests
            if isinstance(request, trace_pb.ExportTraceServiceRequest)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def logs(self) -> list[Any]:
        return [
            record
            for request in self.requests
            if isinstance(request, logs_pb.ExportLogsServiceRequest)
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def metrics(self) -> dict[str, Any]:
        """The latest of each metric, by name."""
        return {
            metric.name: metric
            for request in self.requests
            if isinstance(request, metrics_pb.ExportMetricsServiceRequest)
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def attributes(owner: Any) -> dict[str, Any]:
    """Attributes of a decoded span, link, event, point, ..."""
    return {pair.key: _value(pair.value) for pair in owner.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(part) for part in value.array_value.values]
    return getattr(value, kind) if kind else None


def points(metric: Any) -> dict[frozenset[tuple[str, Any]], Any]:
    """The points of a metric by their attributes."""
    data = getattr(metric, metric.WhichOneof("data"))
    return {frozenset(attributes(point).items()): point for point in data.data_points}


@contextmanager
def http_receiver() -> Iterator[Received]:
    """A receiver on a port of its own."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            time.sleep(received.delay_s)
            status = received.refuses.get(self.path, 200)
            if received.away:
                received.away, status = received.away - 1, 503
            answer = b""
            if status == 200:
                request, response = PATHS[self.path]
                received.headers.append(dict(self.headers.items()))
                received.requests.append(request.FromString(body))
                answer = response().SerializeToString()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *what: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        received.endpoint = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield received
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def grpc_receiver() -> Iterator[Received]:
    """A receiver on a port of its own."""
    received = Received()

    class Service:
        def __init__(self, response: Any) -> None:
            self._response = response

        def Export(self, request: Any, context: Any) -> Any:
            received.requests.append(request)
            received.headers.append(dict(context.invocation_metadata()))
            return self._response()

    with ThreadPoolExecutor(max_workers=4) as workers:
        server = grpc.server(workers)
        add: Any = trace_rpc.add_TraceServiceServicer_to_server
        add(Service(trace_pb.ExportTraceServiceResponse), server)
        add = metrics_rpc.add_MetricsServiceServicer_to_server
        add(Service(metrics_pb.ExportMetricsServiceResponse), server)
        add = logs_rpc.add_LogsServiceServicer_to_server
        add(Service(logs_pb.ExportLogsServiceResponse), server)
        received.endpoint = f"grpc://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        try:
            yield received
        finally:
            server.stop(None).wait()
