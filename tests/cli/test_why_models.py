"""`digmon try` and `why` of runs that a language model decided for, on a scripted server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dig.cli import app
from dig.graph.records import End
from dig.traces.journal.reader import read_records
from tests.llm.server import Server, serving
from tests.llm.stubborn import SERVER, answer

TEAM = "tests.llm.stubborn:team"


def invoke(server: Server, *arguments: Any) -> Result:
    given = [str(one) for one in arguments]
    return CliRunner().invoke(app, given, env={SERVER: server.url})


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that ends by its time limit, since agent-2 waits."""
    folder = tmp_path_factory.mktemp("model")
    with serving(answer) as server:
        done = invoke(
            server, "run", "count-frequency", "--size", 60, "--agents", 3, "--method", "mas",
            "--limit", 4, "--model", "m", "--base-url", server.url, "--runs", folder, "--json",
        )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["outcome"] == "timeout"
    return Path(told["directory"])


def quiet(run: Path) -> int:
    return 1 + max(one.t + len(one.outputs) for one in read_records(run) if isinstance(one, End))


def test_a_change_of_a_model_run_is_tried(failed: Path) -> None:
    """Controls are independent, the verdict says so, and what it cost is told."""
    with serving(answer) as server:
        done = invoke(
            server, "try", failed, "--tell", "agent-2=go on", "--at", quiet(failed), "--team",
            TEAM, "--max-replays", 4, "--repeat", 2, "--good", "dig.diagnosis.goal:has_answer",
            "--json",
        )  # fmt: skip
        asked = len(server.requests)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    (tried,) = found["hypotheses"]
    assert tried["verdict"] == "validated" and tried["p"] == pytest.approx(1 / 6)
    assert tried["arms"]["unchanged"] == {
        "n": 2, "good": 0, "progress": tried["arms"]["unchanged"]["progress"],
        "forks": tried["arms"]["unchanged"]["forks"],
    }  # fmt: skip
    assert found["cost"]["replays"] == 4
    assert found["cost"]["model_calls"] == asked > 0
    assert any("p = .05" in note for note in found["notes"])


def test_money_needs_a_budget_where_nobody_can_be_asked(failed: Path) -> None:
    """Without a terminal, --max-replays or --max-usd must be given before anything is asked."""
    with serving(answer) as server:
        done = invoke(server, "why", failed, "--try", "--team", TEAM)
        assert server.requests == []
    assert done.exit_code == 2 or isinstance(done.exception, Exception)
    assert "--max-usd or --max-replays" in f"{done.output}{done.exception}"


def test_a_file_never_says_who_is_paid(failed: Path) -> None:
    """A run of models is tried with a team that the user names, and without one refused."""
    with serving(answer) as server:
        done = invoke(server, "why", failed, "--try", "--max-replays", 3)
        assert server.requests == []
    assert done.exit_code == 2 or isinstance(done.exception, Exception)
    assert "--team" in f"{done.output}{done.exception}"
