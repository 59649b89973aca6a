"""Microsoft agent-framework, wrapped: what the docs and the example show."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from .agent_framework_teams import chain
from .conformance import example, lines_of
from .harness import Script


def test_the_example_shows_both_failures_and_both_cures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    round_and_round, paid, silence, text = example("agent_framework", tmp_path, capsys, "ER", "ET")
    assert round_and_round.startswith("WorkflowConvergenceException")
    assert paid == "Nobody else will: we pay it back."
    assert silence == "none"
    assert text.endswith("it rains on 140 days a year; nothing to complain of.")


def test_the_lines_in_the_docs_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, *_ = lines_of("wrapping-agent-framework.md")

    async def drive() -> None:
        names: dict[str, Any] = {"workflow": chain(Script())}
        await eval(lines, names)
        assert names["result"].get_outputs() == ["to c done"]

    monkeypatch.chdir(tmp_path)
    asyncio.run(drive())
    assert len([*tmp_path.glob("runs/*/result.json")]) == 1
