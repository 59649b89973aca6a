"""Snapshots of other programs' files.

- `itbench`: the layout in which the snapshots of ITBench are published: `alerts_*.json`,
  `k8s_events_raw.tsv`, `k8s_objects_raw.tsv`, `otel_traces_raw.tsv`. No real one was at hand.
- `openrca2`: a datapack of OpenRCA 2.0, read with DuckDB. No real one was at hand.
- `otlp`: spans as OTLP/JSON, one request per line.

Spans give services, calls, and evidence: an error whose callee failed as well is a failed call, and
an error without such a callee is one of its own. A failed request from outside is an alarm.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from dig._util.extras import importing_extra
from dig._util.files import open_file, read_file
from dig.errors import SettingsError, TraceError

from .beliefs import Alert
from .snapshot import EntityRow, EvidenceLine, Snapshot, Topology, TopologyEdge

SERVICE, CALLS, HAS, RUNS_ON, USES = "Service", "calls", "has", "runs on", "uses"
SLOW_FROM = 2.0
"""Spans that take so many times as long as usual are evidence."""
LOGGED = ("ERROR", "FATAL", "SEVERE")
"""The levels of log lines that are evidence."""
MOST_MESSAGE = 2000

WRONG_SHAPE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Errors of data that have another shape than is documented."""

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class ImportedSpan:
    """A span, with the fields for an investigation."""

    trace: str
    id: str
    parent: str
    service: str
    name: str
    ts: float
    seconds: float
    is_error: bool
    text: str = ""


def import_snapshot(form: str, path: Path) -> Snapshot:
    """A snapshot from another program's files.

    Args:
        form: `itbench`, `openrca2` or `otlp`.
        path: The directory; for `otlp` a file, too.

    Raises:
        SettingsError: There is no such format, or the directory has none of its files.
        TraceError: A file cannot be read.
    """
    if form not in READERS:
        raise SettingsError(f"there is no format {form!r}; known are: {', '.join(READERS)}")
    if not path.exists():
        raise SettingsError(f"{path} does not exist")
    return READERS[form](path)


# --- spans ---


def from_spans(spans: Iterable[ImportedSpan]) -> tuple[Topology, list[Alert], list[EvidenceLine]]:
    """The services, failed requests and errors in spans."""
    # Exporters may repeat a span; span ids are unique within a trace only.
    by_id = {(span.trace, span.id): span for span in spans}
    services: dict[str, None] = {}
    edges: dict[tuple[str, str], None] = {}
    failing: dict[tuple[str, str], set[str]] = {}
    alerts: list[Alert] = []
    for span in by_id.values():
        services[span.service] = None
        parent = by_id.get((span.trace, span.parent))
        if parent is None:
            if span.is_error:
                alerts.append(Alert(span.service, span.ts, "failed request"))
            continue
        if parent.service != span.service:
            edges[parent.service, span.service] = None
        if span.is_error:
            failing.setdefault((parent.trace, parent.id), set()).add(span.service)
    lines: list[EvidenceLine] = []
    for key, span in by_id.items():
        if span.is_error:
            callees = failing.get(key, set()) - {span.service}
            if callees:
                lines += [_line(span, "failed-call", callee) for callee in sorted(callees)]
            # With only callees of the same service the error belongs to the innermost span.
            elif key not in failing:
                lines.append(_line(span, "error", None))
    topology = Topology(
        [EntityRow(service, SERVICE) for service in services],
        [TopologyEdge(a, b, CALLS) for a, b in edges],
    )
    return topology, _first_alerts(alerts), _count(lines)


def _line(span: ImportedSpan, kind: str, about: str | None) -> EvidenceLine:
    return EvidenceLine(span.service, span.ts, kind, about=about, text=span.text or span.name)


def _count(lines: Iterable[EvidenceLine]) -> list[EvidenceLine]:
    """Merge equal rows into the earliest, with their number as the value."""
    first: dict[EvidenceLine, float] = {}
    count: Counter[EvidenceLine] = Counter()
    for line in lines:
        # Lines that differ in nothing but their time are one fact; else a loop of errors floods it.
        timeless = replace(line, ts=0.0)
        first[timeless] = min(first.get(timeless, line.ts), line.ts)
        count[timeless] += 1
    return [replace(timeless, ts=ts, value=count[timeless]) for timeless, ts in first.items()]


def _first_alerts(alerts: Iterable[Alert]) -> list[Alert]:
    """The first alarm of each name about each entity."""
    # A later row overwrites an earlier one, so the first alarm must come last.
    latest_first = sorted(alerts, key=lambda alert: -alert.ts)
    return [*{(alert.entity, alert.name): alert for alert in latest_first}.values()]


# --- OTLP ---


def read_otlp(path: Path) -> Snapshot:
    """The spans of a file, or of all `.json` and `.jsonl` files of a directory."""
    files = sorted([*path.glob("*.json"), *path.glob("*.jsonl")]) if path.is_dir() else [path]
    spans = [span for file in files for span in _otlp_spans(file)]
    if not spans:
        raise SettingsError(f"{path} has no spans of OTLP/JSON")
    return Snapshot(path.resolve().name, *from_spans(spans))


def _otlp_spans(file: Path) -> Iterator[ImportedSpan]:
    for number, line in _text_lines(file):
        try:
            request = json.loads(line)
            for resource in request.get("resourceSpans", ()):
                named = _attributes(resource.get("resource", {}))
                service = str(named.get("service.name", "unknown"))
                for scope in resource.get("scopeSpans", ()):
                    for span in scope.get("spans", ()):
                        yield _otlp_span(span, service)
        except WRONG_SHAPE as error:
            raise TraceError(file, number, f"is no request of OTLP/JSON: {error}") from None


def _otlp_span(span: Mapping[str, Any], service: str) -> ImportedSpan:
    start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
    status = span.get("status", {})
    return ImportedSpan(
        span["traceId"], span["spanId"], span.get("parentSpanId", ""), service,
        str(span.get("name", "")), start / 1e9, (end - start) / 1e9,
        status.get("code") in (2, "STATUS_CODE_ERROR"), str(status.get("message", "")),
    )  # fmt: skip


def _attributes(owner: Mapping[str, Any]) -> dict[str, Any]:
    rows = owner.get("attributes", ())
    return {row["key"]: next(iter(row["value"].values())) for row in rows}


# --- ITBench ---


def read_itbench(path: Path) -> Snapshot:
    """A directory of an ITBench scenario; entities are `namespace/Kind/name`."""
    spans = _table(path / "otel_traces_raw.tsv", _itbench_span)
    objects = _table(path / "k8s_objects_raw.tsv", _object)
    events = _table(path / "k8s_events_raw.tsv", _event)
    alerts = [alert for file in sorted(path.rglob("alerts_*.json")) for alert in _alerts(file)]
    if not (spans or objects or events or alerts):
        raise SettingsError(f"{path} has no files of an ITBench snapshot")
    topology, failed, lines = from_spans(spans)
    entities = {entity.id: entity for entity in topology.entities}
    edges, before = dict.fromkeys(topology.edges), dict[str, str]()
    # Snapshots of an object come in any order; a change needs two in order of time.
    for record in sorted(objects, key=lambda record: record.ts):
        entities.setdefault(record.row.id, record.row)
        edges |= dict.fromkeys(record.edges)
        # The first snapshot only sets the base: what an object was before is unknown.
        if before.setdefault(record.row.id, record.spec) != record.spec:
            lines.append(EvidenceLine(record.row.id, record.ts, "change", text=CHANGED))
        before[record.row.id] = record.spec
    merged_topology = Topology(_with_aliases([*entities.values()]), [*edges])
    alarms = _first_alerts([*alerts, *failed])
    return Snapshot(path.resolve().name, merged_topology, alarms, [*lines, *_count(events)])


CHANGED = "its specification changed"
_KINDS = {"service_name": SERVICE, "service": SERVICE, "deployment": "Deployment", "pod": "Pod"}


def _table(file: Path, read: Callable[[dict[str, str]], R]) -> list[R]:
    """The wanted columns of each row of a table; nothing if the file is missing."""
    if not file.exists():
        return []
    # Objects of Kubernetes may exceed the default limit of 131,072 characters a field.
    csv.field_size_limit(sys.maxsize)
    rows: list[R] = []
    try:
        with TextIOWrapper(open_file(file), "utf-8", newline="") as opened:
            for row in csv.DictReader(opened, delimiter="\t"):
                rows.append(read(row))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceError(file, None, f"cannot be read: {error}") from None
    except WRONG_SHAPE as error:
        # + 2: the line of the header, and the row that failed.
        raise TraceError(file, len(rows) + 2, f"is no row of this table: {error!r}") from None
    return rows


def _body(row: Mapping[str, str]) -> Mapping[str, Any]:
    """The object of Kubernetes in the column `Body`."""
    body = json.loads(row["Body"])
    return dict(body.get("object", body))


def _itbench_span(row: Mapping[str, str]) -> ImportedSpan:
    return ImportedSpan(
        row["TraceId"], row["SpanId"], row["ParentSpanId"], row["ServiceName"],
        row["SpanName"], _ts(row["Timestamp"]), float(row["Duration"]) / 1e9,
        row["StatusCode"].lower() in ("error", "status_code_error"),
        row.get("StatusMessage") or "",
    )  # fmt: skip


def _alerts(file: Path) -> Iterator[Alert]:
    try:
        content = json.loads(read_file(file))
        content = content.get("data", content) if isinstance(content, dict) else content
        for alert in content["alerts"] if isinstance(content, dict) else content:
            labels = alert["labels"]
            if alert.get("state", "firing") not in ("firing", "active"):
                continue
            kind = next((key for key in _KINDS if labels.get(key)), None)
            if kind is None:
                continue  # it is about the cluster as a whole
            name = labels[kind]
            # Spans know services by their short name only, without a namespace.
            entity = name if _KINDS[kind] == SERVICE else _id(labels, _KINDS[kind], name)
            ts = _ts(alert.get("activeAt") or alert["startsAt"])
            yield Alert(entity, ts, labels["alertname"], severity=labels.get("severity"))
    except (OSError, *WRONG_SHAPE) as error:
        raise TraceError(file, None, f"has no list of alarms: {error!r}") from None


def _id(named: Mapping[str, Any], kind: str, name: str) -> str:
    return f"{named.get('namespace', '')}/{kind}/{name}"


@dataclass(frozen=True, slots=True)
class _Object:
    """An object of Kubernetes at some time."""

    ts: float
    row: EntityRow
    edges: tuple[TopologyEdge, ...]
    spec: str


def _object(row: Mapping[str, str]) -> _Object:
    body = _body(row)
    metadata, kind = body.get("metadata") or {}, str(body.get("kind", ""))
    entity = _id(metadata, kind, str(metadata.get("name", "")))
    spec = json.dumps([body.get("spec"), body.get("data")], sort_keys=True)
    edges = tuple(_owner_edges(entity, body))
    return _Object(_ts(row["Timestamp"]), EntityRow(entity, kind), edges, spec)


def _owner_edges(entity: str, body: Mapping[str, Any]) -> Iterator[TopologyEdge]:
    metadata, spec = body.get("metadata") or {}, body.get("spec") or {}
    for owner in metadata.get("ownerReferences") or ():
        yield TopologyEdge(_id(metadata, owner["kind"], owner["name"]), entity, HAS)
    if spec.get("nodeName"):
        yield TopologyEdge(entity, f"/Node/{spec['nodeName']}", RUNS_ON)
    for volume in spec.get("volumes") or ():
        used = (volume.get("configMap") or {}).get("name")
        if used:
            yield TopologyEdge(entity, _id(metadata, "ConfigMap", used), USES)


def _event(row: Mapping[str, str]) -> EvidenceLine:
    body = _body(row)
    about = body.get("involvedObject") or body.get("regarding") or {}
    entity = _id(about, str(about.get("kind", "")), str(about.get("name", "")))
    reason = str(body.get("reason", ""))
    text = f"{reason}: {body.get('message') or body.get('note') or ''}"
    # Normal events (scheduled, pulled) are no trouble; as logs they make no entity a suspect.
    kind = "event" if body.get("type") == "Warning" else "log"
    if "OOM" in reason:
        kind = "exhausted"
    time_text = body.get("eventTime") or body.get("lastTimestamp") or row["Timestamp"]
    return EvidenceLine(entity, _ts(str(time_text)), kind, text=text)


def _with_aliases(entities: Sequence[EntityRow]) -> list[EntityRow]:
    """Merge services of spans into objects of the same name."""
    objects: dict[str, list[str]] = {}
    for entity in entities:
        if entity.kind == SERVICE and "/" in entity.id:
            objects.setdefault(entity.id.rpartition("/")[2], []).append(entity.id)
    # The same name in two namespaces is ambiguous: such services stay apart.
    only = {short: ids[0] for short, ids in objects.items() if len(ids) == 1}
    aliases = {full: short for short, full in only.items()}
    return [
        EntityRow(entity.id, entity.kind, [aliases[entity.id]] if entity.id in aliases else [])
        for entity in entities
        if entity.id not in only
    ]


def _ts(text: str) -> float:
    """A time in seconds, from a number or from ISO 8601; no zone means UTC."""
    try:
        return float(text)
    except ValueError:
        at = datetime.fromisoformat(text.strip())
        return at.replace(tzinfo=at.tzinfo or UTC).timestamp()


# --- OpenRCA 2.0 ---


def read_openrca2(path: Path) -> Snapshot:
    """A datapack: spans, logs and metrics of a normal and of an abnormal time."""
    with importing_extra("openrca2", "a datapack"):
        import duckdb

    def rows(table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        file = path / f"{table}.parquet"
        if not file.exists():
            return []
        chosen = ", ".join(f'"{column}"' for column in columns)
        try:
            # Parquet promises no order of rows, and the first row of a metric gives its time.
            query = f"SELECT epoch(time), {chosen} FROM read_parquet(?) ORDER BY ALL"
            return [*duckdb.execute(query, [str(file)]).fetchall()]
        except duckdb.Error as error:
            raise TraceError(file, None, f"cannot be read: {error}") from None

    return from_datapack(path.resolve().name, rows)


Rows = Callable[[str, Sequence[str]], list[tuple[Any, ...]]]
"""Reads the columns of a table, the time in seconds before them."""

_SPAN = ("trace_id", "span_id", "parent_span_id", "service_name", "span_name", "duration",
         "attr.status_code")  # fmt: skip


def from_datapack(name: str, rows: Rows) -> Snapshot:
    """A snapshot from the tables of a datapack.

    Args:
        name: Its name.
        rows: Reads a table; one that is not there has no rows.

    Raises:
        SettingsError: The pack has no spans of an abnormal time.
    """
    spans = [_datapack_span(row) for row in rows("abnormal_traces", _SPAN)]
    if not spans:
        raise SettingsError(f"{name} has no abnormal_traces.parquet with spans")
    normal = [_datapack_span(row) for row in rows("normal_traces", _SPAN)]
    topology, alerts, lines = from_spans(spans)
    # Failed requests of the normal time are usual, and no alarms.
    before, _, _ = from_spans(normal)
    lines += _compare(spans, normal)
    lines += _count(
        EvidenceLine(service, ts, "log", text=str(message)[:MOST_MESSAGE])
        for ts, service, level, message in rows(
            "abnormal_logs", ("service_name", "level", "message")
        )
        if service and str(level).upper() in LOGGED
    )
    lines += _metrics(
        rows("abnormal_metrics", ("service_name", "metric", "value")),
        rows("normal_metrics", ("service_name", "metric", "value")),
    )
    entities = {entity.id: entity for entity in [*topology.entities, *before.entities]}
    edges = dict.fromkeys([*topology.edges, *before.edges])
    return Snapshot(name, Topology([*entities.values()], [*edges]), alerts, lines)


def _datapack_span(row: tuple[Any, ...]) -> ImportedSpan:
    ts, trace, span, parent, service, name, duration, status = row
    is_error = str(status).upper().endswith("ERROR")
    return ImportedSpan(
        str(trace), str(span), str(parent or ""), str(service), str(name), float(ts),
        float(duration) / 1e9, is_error,
    )  # fmt: skip


def _compare(
    spans: Sequence[ImportedSpan], normal: Sequence[ImportedSpan]
) -> Iterator[EvidenceLine]:
    """Compare call rates and service times with the usual values."""
    now, usual = _rates(spans), _rates(normal)
    first = min(span.ts for span in spans)
    for (caller, service), rate in sorted(now.items()):
        if (caller, service) in usual:
            yield EvidenceLine(
                service, first, "traffic", about=caller, text="calls a second",
                value=rate, usual=usual[caller, service],
            )  # fmt: skip
    took, before = (
        _means((span.service, span.seconds) for span in group) for group in (spans, normal)
    )
    for service in sorted({*took} & {*before}):
        if took[service] > SLOW_FROM * before[service]:
            yield EvidenceLine(
                service, first, "metric", text="seconds a span",
                value=took[service], usual=before[service],
            )  # fmt: skip


def _rates(spans: Sequence[ImportedSpan]) -> dict[tuple[str, str], float]:
    if not spans:
        return {}
    services = {(span.trace, span.id): span.service for span in spans}
    calls: Counter[tuple[str, str]] = Counter()
    for span in spans:
        caller = services.get((span.trace, span.parent))
        if caller is not None and caller != span.service:
            calls[caller, span.service] += 1
    # Spans of a single moment have no rate; 1 s avoids a division by 0.
    lasted = max(span.ts for span in spans) - min(span.ts for span in spans) or 1.0
    return {pair: count / lasted for pair, count in calls.items()}


def _metrics(
    now: Sequence[tuple[Any, ...]], usual: Sequence[tuple[Any, ...]]
) -> Iterator[EvidenceLine]:
    """The mean of each metric of a service, with the usual mean."""
    first: dict[tuple[str, str], float] = {}
    for ts, service, metric, _ in now:
        first.setdefault((service, metric), ts)
    means, before = (
        _means(((service, metric), value) for _, service, metric, value in rows if service)
        for rows in (now, usual)
    )
    for key in sorted({*means} & {*before}):
        value, usually = means[key], before[key]
        yield EvidenceLine(key[0], first[key], "metric", text=key[1], value=value, usual=usually)


def _means(values: Iterable[tuple[K, float | None]]) -> dict[K, float]:
    """The mean of the values of each key."""
    groups: dict[K, list[float]] = {}
    for key, value in values:
        if value is not None:
            groups.setdefault(key, []).append(float(value))
    return {key: fmean(group) for key, group in groups.items()}


def _text_lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        with TextIOWrapper(open_file(file), "utf-8") as opened:
            for number, line in enumerate(opened, 1):
                if line.strip():
                    yield number, line
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(file, None, f"cannot be read: {error}") from None


READERS: Mapping[str, Callable[[Path], Snapshot]] = {
    "itbench": read_itbench, "openrca2": read_openrca2, "otlp": read_otlp,
}  # fmt: skip
