"""Detectors and healers of a user's own, found by name."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dig.cli import app
from dig.detectors import plugins
from dig.errors import SettingsError

MODULE = """
from dig import Create, Detector, Finding, Healer
from dig.graph.records import Emit

class Loud(Detector):
    pattern = "LOUD"
    def detect(self, graph, record):
        if isinstance(record, Emit) and record.by is None:
            yield Finding("LOUD", record.t, record.us, {"event": record.event}, {"by": "outside"},
                          severity="error")

class Hush(Healer):
    def heal(self, graph, finding):
        yield Create("hush", tuple(graph.agents))

number = 7
broken = [].pop
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with a detector and a healer, as pip would have installed it."""
    about = tmp_path / "loud-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[dig.detectors]\nloud = loud_for_a_test:Loud\n[dig.healers]\nLOUD = loud_for_a_test:Hush\n"
    )
    (tmp_path / "loud_for_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "loud_for_a_test", raising=False)


def digmon(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout


@pytest.mark.usefixtures("installed")
def test_what_a_package_brings_works_in_run_and_check(tmp_path: Path) -> None:
    """Its findings are raised and healed in a run, and found again in the trace."""
    run = ["run", "count-frequency", "--virtual", "--json", "--runs", str(tmp_path / "runs")]
    _, out = digmon(*run, "--agents", "2", "--size", "100")
    result = json.loads(out)
    assert "LOUD" in [finding["pattern"] for finding in result["findings"]]
    trace = Path(result["directory"])
    assert (trace / "trace.dig.jsonl").read_text().count('"note":"hush"') == 1
    status, out = digmon("check", str(trace), "--fail-on", "warning")
    assert status == 1
    assert "LOUD at 0.0 s (record 1): about event e1; by: outside\n      path: e1" in out
    _, out = digmon("check", str(trace), "--json")
    assert [json.loads(line) for line in out.splitlines()] == result["findings"]


@pytest.mark.usefixtures("installed")
def test_a_detector_can_be_named(tmp_path: Path) -> None:
    """What is named and installed too is there once."""
    trace = tmp_path / "x.dig.jsonl"
    rows = [
        {"t": 0, "ts": 0, "kind": "run", "version": 1, "run": "x", "agents": ["a"]},
        {"t": 1, "ts": 0, "kind": "emit", "event": "e", "by": None, "to": ["a"],
         "type": "problem", "final": False},
    ]  # fmt: skip
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    status, out = digmon(
        "check", str(trace), "--json", "--fail-on", "warning", "--detector", "loud_for_a_test:Loud"
    )
    assert (status, len(out.splitlines())) == (1, 1)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere:Loud", "No module named 'nowhere'"),
        ("loud_for_a_test:Quiet", "has no attribute 'Quiet'"),
        ("loud_for_a_test:number", "not callable"),
        ("loud_for_a_test:broken", "pop from empty list"),
        ("loud_for_a_test:Hush", "is no detector"),
        ("", "cannot be had"),
        ("no colon", "cannot be had"),
    ],
)
def test_what_cannot_be_had_is_said_to(name: str, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        plugins.detectors([name])
    assert message in str(refused.value)
