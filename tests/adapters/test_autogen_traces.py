"""AutoGen, wrapped: what the docs and the example show."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("autogen_agentchat", reason="AutoGen is not installed")

from autogen_core import AgentId

import dig

from .autogen_runtimes import Ask, Net, says
from .autogen_teams import round_robin
from .conformance import example, lines_of
from .harness import Script


def test_the_example_shows_both_failures_and_both_cures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        round_and_round, paid, half, whole = example("autogen", tmp_path, capsys, "ER", "ET")
    assert round_and_round.startswith("Transferred to")
    assert paid == "Paid back. DONE"
    assert "snow" not in half and "snows on 12" in whole


def test_the_lines_in_the_docs_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chat, core = lines_of("wrapping-autogen.md")

    async def drive() -> None:
        names: dict[str, Any] = {"team": round_robin(Script())}
        await eval(chat, names)
        assert names["result"].messages[-1].content == "TERMINATE"
        net = Net(Script(), {"planner": says("It rains.")})
        async with net:
            planner = AgentId("planner", "default")
            names = {"dig": dig, "runtime": net.runtime, "planner": planner, "question": Ask("?")}
            await eval(core, names)
            assert names["answer"].text == "It rains."
        dig.unwrap(net.runtime)

    monkeypatch.chdir(tmp_path)
    asyncio.run(drive())
    assert len([*tmp_path.glob("runs/*/result.json")]) == 2
