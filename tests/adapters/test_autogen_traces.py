"""AutoGen, wrapped: what the docs and the example show."""

from __future__ import annotations

import ast
import asyncio
import re
import runpy
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("autogen_agentchat", reason="AutoGen is not installed")

from autogen_core import AgentId

import dig

from .autogen_runtimes import Ask, Net, says
from .autogen_teams import round_robin
from .harness import Script

ROOT = Path(__file__).parents[2]


def test_the_example_shows_both_failures_and_both_cures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        example: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "wrap_autogen.py"))
        round_and_round, paid, half, whole = example["main"](str(tmp_path))
    assert round_and_round.startswith("Transferred to")
    assert paid == "Paid back. DONE"
    assert "snow" not in half and "snows on 12" in whole
    told = capsys.readouterr().out
    assert told.count("trace and result: ") == 4
    assert "found ER" in told and "found ET" in told
    assert len([*tmp_path.glob("*/trace.dig.jsonl")]) == 4


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="an installed package has no docs")
def test_the_lines_in_the_docs_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "wrapping-autogen.md").read_text()
    chat, core = (
        compile(code, "wrapping-autogen.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    )

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
