"""Backends that we did not write keep what matters: names, kinds, inputs, outputs and the tree.

They are heavy, so each is installed apart and its interpreter named:

    DIG_MLFLOW=/path/to/venv/bin/python DIG_PHOENIX=... pytest -m backend tests/traces/otel
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from dig.tasks.run.execute import execute
from dig.tasks.run.team_run import TeamRun
from dig.traces.otel.content import Content
from dig.traces.otel.stored_spans import export_text, send
from tests.backends import server

CONTENT = Content(payloads=True)
SAID = ("input.value", "output.value")

pytestmark = [pytest.mark.backend, pytest.mark.timeout(300)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with all kinds of findings."""
    return execute(TeamRun(agents=6, size=10_000, seed=604), tmp_path / "runs").directory


def expected(run: Path) -> dict[str, Any]:
    """The spans that were sent, by id in hexadecimal."""
    whole = json.loads("".join(export_text(run, content=CONTENT)))
    return {
        span["spanId"]: span
        for resource in whole["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    }


READ_MLFLOW = """
import json, sys, mlflow
mlflow.set_tracking_uri(sys.argv[1])
found = mlflow.search_traces(locations=["0"], return_type="list")
print(json.dumps([
    {"id": s.span_id, "parent": s.parent_id, "name": s.name, "status": s.status.status_code.value,
     "links": [[l.trace_id, l.span_id, l.attributes] for l in s.links or []],
     "kind": s.span_type, "inputs": s.inputs, "outputs": s.outputs}
    for trace in found for s in trace.data.spans
]))
"""


def test_mlflow_keeps_the_links(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every link comes back with what it leads to and its attributes."""
    store = ["--backend-store-uri", "sqlite:///{folder}/mlflow.db"]
    arguments = ["-m", "mlflow", "server", "--host", "127.0.0.1", "--port", "{port}", *store]
    with server("DIG_MLFLOW", tmp_path, arguments) as address:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-mlflow-experiment-id=0")
        report = send(run, address, content=CONTENT)
        print(f"sent: {report}")
        read = subprocess.run(
            [os.environ["DIG_MLFLOW"], "-c", READ_MLFLOW, address],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
    assert read.returncode == 0, read.stderr
    got = {span["id"]: span for span in json.loads(read.stdout.splitlines()[-1])}
    sent = expected(run)
    assert got.keys() == sent.keys()
    assert report.lost_spans == 0
    links = 0
    for span_id, span in sent.items():
        assert got[span_id]["parent"] == span.get("parentSpanId")
        assert got[span_id]["name"] == span["name"]
        kind, *said = values(span)
        assert got[span_id]["kind"] == kind
        assert [got[span_id][key] for key in ("inputs", "outputs")] == [*map(parsed, said)]
        ends = [link["spanId"] for link in span["links"]]
        assert [link[1] for link in got[span_id]["links"]] == ends
        about = [[pair["key"] for pair in link["attributes"]] for link in span["links"]]
        assert [list(link[2]) for link in got[span_id]["links"]] == about
        links += len(ends)
    print(f"MLflow: {len(got)} spans and {links} links came back, each with its attributes")


def test_phoenix_keeps_the_tree_and_the_session(run: Path, tmp_path: Path) -> None:
    """Parents, errors and marks come back; activations are agents of one session."""
    variables = {
        "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": "{port}", "PHOENIX_GRPC_PORT": "0",
        "PHOENIX_WORKING_DIR": str(tmp_path), "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    }  # fmt: skip
    with server("DIG_PHOENIX", tmp_path, ["-m", "phoenix.server.main", "serve"], **variables) as at:
        report = send(run, at, content=CONTENT)
        print(f"sent: {report}")
        sent = expected(run)
        got = _of_phoenix(at, len(sent))
    assert got.keys() == sent.keys()
    for span_id, span in sent.items():
        back = got[span_id]
        assert (back["parent_id"] or None) == span.get("parentSpanId")
        assert back["name"] == span["name"]
        assert back["status_code"] == ("ERROR" if span["status"] else "UNSET")
        assert len(back["events"]) == len(span["events"])
        assert back["attributes"]["session.id"] == run.name
        kind, *said = values(span)
        assert back["span_kind"] == kind
        assert [back["attributes"].get(key) for key in SAID] == said
    print(f"Phoenix: {len(got)} spans came back, as one tree in session {run.name}")


def values(span: Any) -> list[str | None]:
    """The kind of a span, its input and its output."""
    found = {pair["key"]: pair["value"].get("stringValue") for pair in span["attributes"]}
    return [found.get(key) for key in ("openinference.span.kind", *SAID)]


def parsed(text: str | None) -> Any:
    """A text as MLflow has it, which reads JSON."""
    try:
        return json.loads(text or "null")
    except ValueError:
        return text


def _of_phoenix(address: str, wanted: int) -> dict[str, Any]:
    """Its spans by id; it stores them a moment after it took them."""
    for _ in range(300):
        with urlopen(f"{address}/v1/projects/default/spans?limit=1000", timeout=10) as answer:
            spans = json.load(answer)["data"]
        if len(spans) >= wanted:
            break
        time.sleep(0.1)
    return {span["context"]["span_id"]: span for span in spans}
