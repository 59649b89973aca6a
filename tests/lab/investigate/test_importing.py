"""Other programs' files as snapshots; small files of the documented shapes, made here."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dig.errors import SettingsError, TraceError
from dig.lab.investigate.importing import from_datapack, import_snapshot
from dig.lab.investigate.investigation import investigate
from dig.lab.investigate.rules import ServiceRules
from dig.lab.investigate.snapshot import Snapshot

ALL = (float("-inf"), float("inf"))


def facts(known: Snapshot, entity: str) -> list[tuple[str, str | None]]:
    return [(one.type, one.about) for one in known.evidence(entity, ALL)]


def otlp_span(name: str, parent: str, start: int, *, error: bool = False) -> dict[str, Any]:
    return {
        "traceId": "t", "spanId": name, "parentSpanId": parent, "name": f"GET /{name}",
        "startTimeUnixNano": str(start * 10**9), "endTimeUnixNano": str((start + 1) * 10**9),
        "status": {"code": 2, "message": "boom"} if error else {},
    }  # fmt: skip


def otlp_line(service: str, *spans: dict[str, Any]) -> str:
    named = [{"key": "service.name", "value": {"stringValue": service}}]
    resource = {"resource": {"attributes": named}, "scopeSpans": [{"spans": [*spans]}]}
    return json.dumps({"resourceSpans": [resource]})


def test_spans_of_otlp_give_calls_errors_and_alarms(tmp_path: Path) -> None:
    """The error is the database's own, the others' calls fail, and the request was an alarm."""
    file = tmp_path / "spans.jsonl"
    lines = [
        otlp_line("web", otlp_span("a", "", 1, error=True), otlp_span("x", "", 9)),
        otlp_line("shop", otlp_span("b", "a", 2, error=True), otlp_span("b2", "b", 2, error=True)),
        otlp_line("db", otlp_span("c", "b2", 3, error=True), otlp_span("c2", "b2", 4, error=True)),
    ]
    file.write_text("\n".join(lines))
    for path in (file, tmp_path):
        known = import_snapshot("otlp", path)
        assert list(known.entities()) == ["db", "shop", "web"]
        assert [(one.entity, one.relation) for one in known.neighbours("web")] == [
            ("shop", "calls")
        ]
        assert facts(known, "web") == [("failed-call", "shop")]
        assert facts(known, "shop") == [("failed-call", "db")]
        assert facts(known, "db") == [("error", None)]
        (error,) = known.evidence("db", ALL)
        assert error.value == 2  # twice the same
        assert [(one.entity, one.name) for one in known.alerts()] == [("web", "failed request")]
        assert investigate(known, ServiceRules()).frontier == ("db",)


def test_what_dig_exports_as_otlp_can_be_read(tmp_path: Path) -> None:
    """The spans of a run of agents are services and calls, too."""
    from dig.tasks.run.execute import execute
    from dig.tasks.run.team_run import TeamRun
    from dig.traces.otel.stored_spans import export_text

    run = execute(TeamRun(agents=3, size=300), tmp_path / "runs").directory
    text = "".join(export_text(run, service_per_agent=True))
    (tmp_path / "run.json").write_text(text)
    known = import_snapshot("otlp", tmp_path / "run.json")
    assert len(known.entities()) >= 3


def table(path: Path, columns: Sequence[str], *rows: Sequence[str]) -> None:
    quoted = [['"' + one.replace('"', '""') + '"' for one in row] for row in rows]
    path.write_text("\n".join("\t".join(row) for row in [columns, *quoted]))


SPAN = ("Timestamp", "TraceId", "SpanId", "ParentSpanId", "SpanName", "ServiceName", "Duration",
        "StatusCode", "StatusMessage")  # fmt: skip


def itbench(folder: Path) -> Path:
    alert = {
        "state": "firing", "activeAt": "2025-12-15T17:25:19.5Z",
        "labels": {"alertname": "RequestErrorRate", "namespace": "shop", "service_name": "web",
                   "severity": "critical"},
    }  # fmt: skip
    calm = {**alert, "state": "inactive"}
    rows = [alert, calm, {**alert, "labels": {"alertname": "Watchdog"}}]
    for when in ("1", "2"):  # the same alarm twice
        told = {"data": {"alerts": rows}}
        (folder / f"alerts_at_2025-12-15T17-2{when}.json").write_text(json.dumps(told))
    meta = {"name": "cart-1", "namespace": "shop"}
    owners = {"ownerReferences": [{"kind": "ReplicaSet", "name": "cart"}]}
    spec = {"nodeName": "n1", "volumes": [{"configMap": {"name": "c"}}]}
    pod = {"kind": "Pod", "metadata": {**meta, **owners}, "spec": spec}
    config = {"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}, "data": {"a": 1}}
    service = {"kind": "Service", "metadata": {"name": "web", "namespace": "shop"}}
    table(
        folder / "k8s_objects_raw.tsv", ("Timestamp", "Body"),
        ("2025-12-15 17:20:00.000000000", json.dumps({"object": pod})),
        ("2025-12-15 17:20:00", json.dumps({"object": config})),
        ("2025-12-15 17:20:00", json.dumps(service)),
        ("2025-12-15 17:24:00", json.dumps({"object": {**config, "data": {"a": 2}}})),
    )  # fmt: skip
    event = {
        "reason": "FailedMount", "type": "Warning", "message": "no config",
        "involvedObject": {"kind": "Pod", **meta}, "lastTimestamp": "2025-12-15T17:24:30Z",
    }  # fmt: skip
    table(
        folder / "k8s_events_raw.tsv", ("Timestamp", "Body"),
        ("2025-12-15 17:24:30", json.dumps({"object": event})),
        ("2025-12-15 17:24:31", json.dumps({"object": {**event, "type": "Normal"}})),
        ("2025-12-15 17:24:32", json.dumps({"object": {**event, "reason": "OOMKilling"}})),
    )  # fmt: skip
    table(
        folder / "otel_traces_raw.tsv", SPAN,
        ("2025-12-15 17:25:00.000000000", "t", "a", "", "GET", "web", "5000000", "Error", ""),
        ("2025-12-15 17:25:00.000000000", "t", "b", "a", "GET", "cart", "5000000", "Error", "no"),
    )  # fmt: skip
    return folder


def test_an_itbench_snapshot_of_the_documented_columns_is_read(tmp_path: Path) -> None:
    """Alarms, events, objects with their owners and changes, and spans."""
    known = import_snapshot("itbench", itbench(tmp_path))
    assert [(one.entity, one.name) for one in known.alerts()] == [
        ("shop/Service/web", "failed request"), ("shop/Service/web", "RequestErrorRate"),
    ]  # fmt: skip
    assert known.canonical("web") == "shop/Service/web"
    assert facts(known, "shop/ConfigMap/c") == [("change", None)]
    assert facts(known, "shop/Pod/cart-1") == [
        ("event", None), ("exhausted", None), ("log", None),
    ]  # fmt: skip
    assert {(one.entity, one.relation) for one in known.neighbours("shop/Pod/cart-1")} == {
        ("shop/ReplicaSet/cart", "has"), ("/Node/n1", "runs on"), ("shop/ConfigMap/c", "uses"),
    }  # fmt: skip
    assert facts(known, "shop/Service/web") == [("failed-call", "cart")]
    assert facts(known, "cart") == [("error", None)]


def test_a_broken_itbench_table_is_refused_with_its_line(tmp_path: Path) -> None:
    """The file and the line are named."""
    itbench(tmp_path)
    table(tmp_path / "k8s_events_raw.tsv", ("Timestamp", "Body"), ("1", "no json"))
    with pytest.raises(TraceError, match=r"k8s_events_raw\.tsv:2: is no row"):
        import_snapshot("itbench", tmp_path)
    itbench(tmp_path)
    table(tmp_path / "otel_traces_raw.tsv", SPAN[:3], ("1", "t", "a"))
    with pytest.raises(TraceError, match=r"otel_traces_raw\.tsv:2: .*ParentSpanId"):
        import_snapshot("itbench", tmp_path)
    itbench(tmp_path)
    row = ("yesterday", json.dumps({"kind": "Pod", "metadata": {"name": "p"}}))
    table(tmp_path / "k8s_objects_raw.tsv", ("Timestamp", "Body"), ("1", row[1]), row)
    with pytest.raises(TraceError, match=r"k8s_objects_raw\.tsv:3: .*yesterday"):
        import_snapshot("itbench", tmp_path)
    owned = json.dumps({"kind": "Pod", "metadata": {"name": "p", "ownerReferences": [{}]}})
    table(tmp_path / "k8s_objects_raw.tsv", ("Timestamp", "Body"), ("1", owned))
    with pytest.raises(TraceError, match=r"k8s_objects_raw\.tsv:2: .*kind"):
        import_snapshot("itbench", tmp_path)


def datapack(status: str, rate: int) -> list[tuple[Any, ...]]:
    """Each second `rate` calls of the shop by the web, which ask the database."""
    rows: list[tuple[Any, ...]] = []
    for second in range(10):
        for n in range(rate):
            key = f"{second}-{n}"
            error = "STATUS_CODE_ERROR" if status == "bad" else "STATUS_CODE_UNSET"
            slow = 9e8 if status == "bad" else 1e8
            rows += [
                (float(second), key, "a", None, "web", "GET", 1e9, error),
                (float(second), key, "b", "a", "shop", "GET", slow, error),
                (float(second), key, "c", "b", "db", "SELECT", 1e8, error),
            ]
    return rows


TABLES = {
    "abnormal_traces": datapack("bad", 3),
    "normal_traces": datapack("good", 2),
    "abnormal_logs": [(5.0, "db", "ERROR", "disk is full"), (6.0, "db", "INFO", "ok")],
    "abnormal_metrics": [(5.0, "db", "cpu", 0.9), (6.0, "db", "cpu", 0.7)],
    "normal_metrics": [(1.0, "db", "cpu", 0.2)],
}


def test_the_tables_of_a_datapack_are_compared_with_the_normal_time() -> None:
    """Errors, traffic and its usual amount, slow services, logs and metrics."""
    known = from_datapack("pack", lambda name, columns: TABLES.get(name, []))
    by_type = {one.type: one for one in known.evidence("db", ALL) if one.text != "cpu"}
    assert set(by_type) == {"error", "traffic", "log"}
    traffic = by_type["traffic"]
    assert traffic.value == pytest.approx(30 / 9) and traffic.usual == pytest.approx(20 / 9)
    assert ("metric", None) in facts(known, "shop")  # it takes nine times as long
    (cpu,) = [one for one in known.evidence("db", ALL) if one.text == "cpu"]
    assert cpu.value == pytest.approx(0.8)
    assert cpu.usual == pytest.approx(0.2)
    assert investigate(known, ServiceRules()).frontier == ("db",)


def test_a_datapack_needs_duckdb_and_spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is named: the package that reads the files, or the spans."""
    with pytest.raises(SettingsError, match="abnormal_traces"):
        from_datapack("pack", lambda name, columns: [])
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(SettingsError, match=r"dig-monitor\[openrca2\]"):
        import_snapshot("openrca2", tmp_path)


COLUMNS = {
    "traces": 'trace_id TEXT, span_id TEXT, parent_span_id TEXT, service_name TEXT, '
              'span_name TEXT, duration UBIGINT, "attr.status_code" TEXT',
    "logs": "service_name TEXT, level TEXT, message TEXT",
    "metrics": "service_name TEXT, metric TEXT, value DOUBLE",
}  # fmt: skip


def parquet(duckdb: Any, folder: Path, name: str, columns: str, rows: Sequence[Any]) -> None:
    """A table as a parquet file, as a datapack has it: with a time and a further column."""
    given = f"time TIMESTAMPTZ, {columns}, further STRUCT(a INTEGER)"
    filled = ", ".join("?" for _ in columns.split(", "))
    duckdb.execute(f"CREATE OR REPLACE TABLE made ({given})")
    duckdb.executemany(
        f"INSERT INTO made VALUES (to_timestamp(?), {filled}, {{'a': 1}})", [[*row] for row in rows]
    )
    duckdb.execute(f"COPY made TO '{folder / name}.parquet' (FORMAT parquet)")


def test_parquet_files_of_a_datapack_are_read(tmp_path: Path) -> None:
    """All tables, as from rows in memory; a file that is none and a lacking column are told."""
    duckdb = pytest.importorskip("duckdb")
    for name, rows in TABLES.items():
        parquet(duckdb, tmp_path, name, COLUMNS[name.partition("_")[2]], rows)
    known = import_snapshot("openrca2", tmp_path)
    made = from_datapack(tmp_path.name, lambda name, columns: TABLES.get(name, []))
    assert known.sha256 == made.sha256
    assert investigate(known, ServiceRules()).frontier == ("db",)
    parquet(duckdb, tmp_path, "abnormal_logs", "service_name TEXT", [(1.0, "db")])
    with pytest.raises(TraceError, match=r"abnormal_logs\.parquet.*level"):
        import_snapshot("openrca2", tmp_path)
    (tmp_path / "abnormal_traces.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(TraceError, match=r"abnormal_traces\.parquet.*cannot be read"):
        import_snapshot("openrca2", tmp_path)


@pytest.mark.parametrize(
    ("form", "name", "text", "says"),
    [
        ("pcap", "x", "", "there is no format 'pcap'"),
        ("otlp", "spans.json", "", "no spans"),
        ("otlp", "spans.json", '{"resourceSpans": [3]}', "spans.json:1"),
        ("otlp", "spans.json", "{", "spans.json:1"),
        ("itbench", "x", "", "no files of an ITBench"),
        ("itbench", "alerts_at_1.json", '{"data": {}}', "no list of alarms"),
    ],
)
def test_what_cannot_be_imported_is_refused(
    tmp_path: Path, form: str, name: str, text: str, says: str
) -> None:
    """An unknown format, nothing to read, and broken files."""
    (tmp_path / name).write_text(text)
    with pytest.raises((SettingsError, TraceError), match=says):
        import_snapshot(form, tmp_path)
    with pytest.raises(SettingsError):
        import_snapshot(form, tmp_path / "missing")
