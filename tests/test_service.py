"""The service of docs/production.md answers with two workers, each with a session of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import pytest

from dig.traces.verify import verify

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

EXAMPLES = Path(__file__).parents[1] / "examples"
PATIENCE_S = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def ask(port: int, city: str) -> str:
    """The answer, as soon as the service is up."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urlopen(f"http://127.0.0.1:{port}/ask?question={city}", timeout=20) as reply:
                answer: str = json.load(reply)["answer"]
                return answer
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def test_each_worker_answers_and_leaves_a_whole_journal(tmp_path: Path) -> None:
    """Requests overlap, each gets its own answer, and all of them are in the two journals."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "service:app", "--app-dir", str(EXAMPLES)]
    service = subprocess.Popen(
        [*command, "--workers", "2", "--port", str(port), "--log-level", "warning"],
        cwd=tmp_path,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
    )
    try:
        cities = [f"city-{number}" for number in range(40)]
        ask(port, "first")
        with ThreadPoolExecutor(8) as pool:
            answers = [*pool.map(lambda city: ask(port, city), cities)]
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(PATIENCE_S)
    assert answers == [f"a flight to {city}; a room in {city}" for city in cities]
    reports = [verify(run / "trace.dig.jsonl") for run in (tmp_path / "runs").iterdir()]
    assert [report.problems for report in reports] == [[], []]
    results = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*/result.json")]
    assert len(results) == 2
    assert all(result["outcome"] == "stopped" for result in results)
    assert all(result["findings"] == [] for result in results)
