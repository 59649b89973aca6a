"""docs/models.md is right: its code runs, and its figures are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dig.runtime.llm import ModelAgent, ModelSettings
from dig.runtime.llm.decisions import MOST_CALLS, MOST_OUTPUTS
from dig.runtime.llm.model import MOST_SILENCES, MOST_USELESS
from tests.llm.server import Answer, says, serving
from tests.llm.solver import solve

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
ADDRESS = "http://localhost:8000/v1"


def test_the_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The blocks are one program; here its server is a scripted one."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))

    def script(request: dict[str, Any]) -> Answer:
        return says({"total": 4}) if "2 + 2" in str(request["messages"]) else solve(request)

    with serving(script) as server:
        exec(compile(code.replace(ADDRESS, server.url), "models.md", "exec"), {})
    team, total = capsys.readouterr().out.splitlines()
    assert team.startswith("submitted {'counts': ")
    assert total.startswith("(Sum(total=4), {'model': 'my-model', 'model_calls': 1")


def test_the_figures_are_those_of_the_code() -> None:
    """Defaults that the page names."""
    settings = ModelSettings("m")
    said = [
        f"no reply within {settings.timeout_s:g} s",
        f"`--concurrency` ({settings.concurrency})",
        f"up to {settings.longest_wait_s:g} s",
        {2: "sent again, twice at most"}[settings.retries],
        f"more than {settings.max_reply:,} tokens (`--max-reply`)",
        {8: "no usable reply to its first eight requests"}[MOST_USELESS],
        {6: "or six times in a row later"}[MOST_SILENCES],
        {2: "after two replies in all (`--attempts`;"}[settings.attempts],
        f"({MOST_OUTPUTS} events, {MOST_CALLS} calls)",
        {8: "up to eight times in a row"}[ModelAgent.most_rounds],
        {9: "longer than nine requests may"}[ModelAgent.most_rounds + 1],
    ]
    text = " ".join(PAGE.split())
    assert [one for one in said if one not in text] == []
