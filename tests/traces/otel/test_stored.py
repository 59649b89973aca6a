"""Stored traces, exported: to a receiver, or as OTLP/JSON (Jaeger's page takes it)."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from dig import Output
from dig.errors import TraceError
from dig.graph import records as kinds
from dig.graph.codec import encode
from dig.traces.otel.ids import origin_of
from dig.traces.otel.stored_spans import export_text
from tests.cli.test_cli import digmon
from tests.helpers import Stage, answer, out

from .receiver import Received, attributes, http_receiver, points

BEGAN = "2026-03-01T12:00:00.250001+00:00"
BEGAN_NS = 1_772_366_400_250_001_000
FAR = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command, to be called with its arguments."""
    return lambda *arguments: digmon(capsys, monkeypatch, *arguments)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory: two agents, a failure, an early answer that is found, and the end."""
    stage = Stage()
    stage.monitor.inject(Output("?", ("a",), "problem", traceparent=FAR))
    stage.clock.now = 0.5
    started = stage.start("a")
    stage.clock.now = 1.25
    stage.finish(started, out("b"), out("b"))
    stage.monitor.end(stage.start("b").activation, error="it broke")
    started = stage.start("b")
    stage.clock.now = 2.0
    stage.monitor.end(started.activation, [kinds.Fate("e2", "consume")], [answer()])
    records = list(stage.sink)
    t = records[-1].t + 1
    records[-1:] = [kinds.FindingRow(t - 1, 2_000_000, "ET", None, {"event": "e4"}, {})]
    records.append(kinds.Finish(t, 2_000_000, "submitted"))
    return save(tmp_path / "runs" / "r1", records)


def save(directory: Path, records: list[Any]) -> Path:
    directory.mkdir(parents=True)
    (directory / "trace.dig.jsonl").write_text("".join(encode(r) + "\n" for r in records))
    (directory / "side.json").write_text(json.dumps({"execution": "r1", "began": BEGAN}))
    return directory


def exported(run: Path, **settings: Any) -> Any:
    return json.loads("".join(export_text(run, **settings)))


def spans_of(resource: Any) -> list[Any]:
    return [span for scope in resource["scopeSpans"] for span in scope["spans"]]


def tags(part: Any) -> dict[str, Any]:
    return {pair["key"]: next(iter(pair["value"].values())) for pair in part["attributes"]}


def test_an_intervention_of_a_foreign_monitor_may_name_anything(tmp_path: Path) -> None:
    """Its row changes no graph, so only its keys are checked when a trace is read."""
    rows: list[dict[str, Any]] = [
        {"kind": "run", "version": 1, "run": "r", "agents": ["a"]},
        {"kind": "finding", "pattern": "MC", "stage": None, "subject": {}, "evidence": {}},
        {"kind": "heal", "finding": 1, "action": "create", "event": [["x"]], "to": {}, "note": 7},
    ]
    lines = [json.dumps({"t": t, "ts": 0, **each}) + "\n" for t, each in enumerate(rows)]
    (tmp_path / "h.dig.jsonl").write_text("".join(lines))
    assert exported(tmp_path / "h.dig.jsonl")["resourceSpans"]


# --- which run it is ---


def test_a_run_directory_says_which_execution_it_is_and_when_it_began(run: Path) -> None:
    for path in (run, run / "trace.dig.jsonl"):
        origin = origin_of(path)
        assert (origin.execution, origin.began_ns) == ("r1", BEGAN_NS)


def test_a_trace_alone_is_told_by_its_content(run: Path) -> None:
    """Copies have the same ids, other traces others, whatever side file lies beside them."""
    lines = (run / "trace.dig.jsonl").read_text()
    paths = [run / f"{name}.dig.jsonl" for name in "abc"]
    other = lines.replace("it broke", "it failed")
    for path, text in zip(paths, [lines, lines, other], strict=True):
        path.write_text(text)
    names = [origin_of(path).execution for path in paths]
    assert names[0] == names[1] != names[2]
    assert origin_of(paths[0]).began_ns == paths[0].stat().st_mtime_ns


@pytest.mark.parametrize("side", ["", "[]", "{}", '{"execution": "x", "began": "yesterday"}'])
def test_a_side_file_that_says_nothing_is_refused(run: Path, side: str) -> None:
    (run / "side.json").write_text(side)
    with pytest.raises(TraceError, match=r"side\.json"):
        origin_of(run)


# --- OTLP/JSON ---


def test_otlp_json_is_what_goes_over_the_wire(run: Path, call: Any, tmp_path: Path) -> None:
    """Read by protobuf's own reader, it is span for span what a receiver got."""
    path = tmp_path / "spans.json"
    assert call("export", run, "--format", "otlp", "-o", path) == (0, "", "")
    assert call("export", run, "--format", "otlp-json")[1] == path.read_text()
    read = json_format.ParseDict(with_base64(json.loads(path.read_text())), TracesData())
    with http_receiver() as receiver:
        code, told, _ = call("export", run, "--format", "otlp", "--endpoint", receiver.endpoint)
    assert code == 0
    assert "delivered 5 spans" in told
    written = [s for r in read.resource_spans for scope in r.scope_spans for s in scope.spans]
    assert written == receiver.spans()
    assert len(written) == 5


def with_base64(value: Any, key: str = "") -> Any:
    """OTLP has ids in hexadecimal where protobuf's JSON has base64; all else is the same."""
    if isinstance(value, dict):
        return {key: with_base64(part, key) for key, part in value.items()}
    if isinstance(value, list):
        return [with_base64(part) for part in value]
    if key in ("traceId", "spanId", "parentSpanId"):
        assert len(value) == (32 if key == "traceId" else 16)
        return base64.b64encode(bytes.fromhex(value)).decode()
    return value


def test_the_same_run_has_the_same_bytes_again(run: Path) -> None:
    assert list(export_text(run)) == list(export_text(run))


# --- live and afterwards ---


@pytest.mark.parametrize("how", [["--virtual"], ["--speed", "1000", "--quiet"]])
def test_a_run_exported_live_is_the_run_exported_afterwards(
    call: Any, tmp_path: Path, how: list[str]
) -> None:
    """The command sends the same spans and log records while it runs and later."""
    with http_receiver() as live, http_receiver() as after:
        arguments = ["--seed", "25", "--runs", tmp_path, "--otlp", live.endpoint, "--json", *how]
        code, result, told = call("run", "count-frequency", *arguments)
        directory = json.loads(result)["directory"]
        assert "OTLP: delivered" in told
        call("export", directory, "--format", "otlp", "--endpoint", after.endpoint)
    assert len(live.spans()) > 2
    assert live.spans() == after.spans()
    assert live.logs() == after.logs()
    assert edges(live) and not after.metrics()
    (execution,) = {attributes(span)["session.id"] for span in live.spans()}
    assert execution == Path(directory).name
    assert code in (0, 1)


def edges(received: Received) -> dict[Any, int]:
    found = points(received.metrics()["dig.events"])
    return {about: point.as_int for about, point in found.items()}


def test_the_environment_can_name_the_receiver(
    run: Path, call: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """OTEL_* variables are honoured: endpoint, headers, service, signals that are off."""
    with http_receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=ada")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "my-team")
        monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
        call("run", "count-frequency", "--virtual", "--runs", tmp_path, "--json")
        assert {service for service, _ in receiver.spans_by_service()} == {"my-team"}
        assert receiver.headers[0]["x-team"] == "ada"
        assert receiver.metrics() == {}
        assert receiver.logs()


def test_each_agent_can_be_a_service(run: Path, call: Any) -> None:
    """In Jaeger a service has a colour; what is the monitor's own stays one service."""
    with http_receiver() as receiver:
        call(
            "export",
            run,
            "--format",
            "otlp",
            "--endpoint",
            receiver.endpoint,
            "--service-per-agent",
        )
    services = {span.name: service for service, span in receiver.spans_by_service()}
    assert services == {
        "invoke_agent a": "a", "invoke_agent b": "b",
        "dig.finding ET": "dig-monitor", "invoke_workflow run": "dig-monitor",
    }  # fmt: skip
    written = {
        span["name"]: tags(resource["resource"])["service.name"]
        for resource in exported(run, service_per_agent=True)["resourceSpans"]
        for span in spans_of(resource)
    }
    assert written == services


def test_a_root_leads_to_the_report_and_so_does_a_finding(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address for reports is filled with the run's id; without one nothing is told."""
    (bare,) = exported(run)["resourceSpans"]
    assert all("dig.report.url" not in tags(span) for span in spans_of(bare))
    monkeypatch.setenv("DIG_REPORT_URL", "https://example.org/{run}/report.html")
    (whole,) = exported(run)["resourceSpans"]
    told = {span["name"]: tags(span) for span in spans_of(whole)}
    address = "https://example.org/r1/report.html"
    assert told["invoke_workflow run"]["dig.report.url"] == address
    found = told["dig.finding ET"]
    assert found["dig.report.url"] == f"{address}#is=finding&id={found['dig.finding.t']}"


# --- what is wrong with a call ---


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--format", "zipkin"], "otlp-json; and otlp, which is sent"),
        (["--format", "dot", "--endpoint", "http://x"], "try --format otlp"),
        (["--format", "jaeger"], "Jaeger's page loads OTLP/JSON: write it with --format otlp -o"),
        (["--format", "otlp-json", "--at", "3"], "are for graphs"),
        (["--format", "otlp", "--endpoint", "localhost:4318"], "try http://localhost:4318"),
        (["--format", "otlp", "--endpoint", "http://host:port"], "try http://localhost:4318"),
    ],
)
def test_a_call_that_makes_no_sense_says_what_does(
    call: Any, run: Path, arguments: list[str], says: str
) -> None:
    code, out, err = call("export", run, *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_protocol_that_is_not_known_is_refused(
    call: Any, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    code, _, err = call("export", run, "--format", "otlp", "--endpoint", "http://127.0.0.1:9")
    assert code == 2
    assert "http/protobuf or grpc" in err


def test_a_broken_trace_leaves_no_file(call: Any, run: Path, tmp_path: Path) -> None:
    """The line is named, and nothing half is written."""
    trace = run / "trace.dig.jsonl"
    lines = trace.read_text().splitlines()
    trace.write_text("\n".join([*lines[:5], lines[2], ""]))
    path = tmp_path / "x.json"
    code, _, err = call("export", run, "--format", "otlp-json", "-o", path)
    assert code == 2
    assert "trace.dig.jsonl:6: " in err
    assert not path.exists()


def test_what_was_lost_is_an_exit_status(
    call: Any, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dig.traces.otel.stored_spans.PATIENCE_S", 0.05)
    with http_receiver() as receiver:
        receiver.refuses = {"/v1/traces": 403}
        code, out, err = call("export", run, "--format", "otlp", "--endpoint", receiver.endpoint)
    assert (code, out) == (1, "")
    assert "lost 5 spans" in err
    assert "403" in err
