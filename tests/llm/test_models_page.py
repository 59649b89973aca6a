"""docs/lab/models.md is right: its code runs, and its figures are those of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dig.cli import app
from dig.runtime.llm import ModelAgent, ModelSettings
from dig.runtime.llm.decisions import MOST_CALLS, MOST_OUTPUTS
from dig.runtime.llm.model import MOST_SILENCES, MOST_USELESS
from tests.llm.llama import Llama
from tests.llm.server import Answer, says, serving
from tests.llm.solver import solve

PAGE = (Path(__file__).parents[2] / "docs" / "lab" / "models.md").read_text()
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


@pytest.mark.parametrize(("agents", "size"), [(3, 20), (6, 10_000)])
def test_the_costs_are_those_of_a_run_without_a_mistake(
    agents: int, size: int, tmp_path: Path
) -> None:
    """Nearly: agents that work at once may find more or less in front of them."""
    (row,) = re.findall(rf"^\| {agents}\b.*?\| {size:,}\b.*?\| (.+) \|$", PAGE, re.MULTILINE)
    requests, *told = (int(cell.replace(",", "")) for cell in row.split(" | "))
    with serving(Llama(solve, context=10**6)) as server:
        arguments = ["run", "count-frequency", "--agents", str(agents), "--size", str(size)]
        where = ["--model", "m", "--base-url", server.url, "--runs", str(tmp_path), "--json"]
        done = CliRunner().invoke(app, [*arguments, *where])
    (file,) = tmp_path.glob("*/exchanges.jsonl")
    lines = file.read_text().splitlines()
    rows = [json.loads(json.loads(line)["reply"])["usage"] for line in lines]
    used = [sum(each[key] for each in rows) for key in ("prompt_tokens", "completion_tokens")]
    assert json.loads(done.stdout)["score"]["rmse"] == 0 and abs(len(rows) - requests) <= 2
    assert told == [pytest.approx(tokens, rel=0.25) for tokens in used]


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
