"""Teams of a model behind a server that behaves like llama.cpp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dig.graph.codec import encode
from dig.runtime import RunResult
from dig.traces.usage import Costs, cost_text
from dig.traces.verify import verify
from tests.llm.llama import Llama, babble
from tests.llm.server import says
from tests.llm.solver import solve
from tests.llm.test_team import TASK, Run

pytestmark = pytest.mark.anyio


def is_right(result: RunResult) -> bool:
    """Whether the answer is that of the task."""
    score = TASK.score(result.answer)
    return score is not None and score.rmse == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mode", ["strict", "object", "text"])
@pytest.mark.parametrize("knows_calls", [True, False])
async def test_data_are_read_by_tools_whatever_the_grammar_allows(
    mode: Any, knows_calls: bool
) -> None:
    """Calls are a part of the decision, so a grammar around it lets them through."""
    run = Run(Llama(solve, knows_calls=knows_calls), json_mode=mode)
    result = await run()
    assert is_right(result) and result.failures == {}
    assert run.used("tool_calls") > 0


async def test_a_reply_without_an_end_costs_its_turn_and_loses_nothing() -> None:
    """It is cut off at the bound; the events stay, and the next turn decides."""
    run = Run(Llama(solve, endless=[0, 2]), max_reply=1500)
    result = await run()
    assert is_right(result)
    assert "its length limit (--max-reply)" in result.errors["agent-1"]


async def test_a_server_that_counts_no_tokens_has_runs_of_unknown_cost() -> None:
    """And not of none."""
    run = Run(Llama(solve, counts=False))
    result = await run()
    costs = Costs()
    for record in run.sink:
        costs(record)
    requests = len(run.server.requests)
    assert is_right(result)
    assert cost_text(costs.sums) == f"{requests} requests to a model, tokens unknown"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("seed", range(4))
async def test_a_model_that_makes_no_sense_breaks_nothing(seed: int, tmp_path: Path) -> None:
    """Its decisions fit the grammar and nothing else; the trace is sound, and all is counted."""
    run = Run(Llama(lambda request: says(""), invent=babble(seed)))
    run.limit_s = 0.7
    result = await run()
    assert result.outcome in ("submitted", "stopped", "timeout", "error")
    path = tmp_path / "run.dig.jsonl"
    path.write_text("".join(f"{encode(record)}\n" for record in run.sink))
    assert verify(path).problems == []
    assert run.used("model_calls") == run.model.spending.calls
    assert result.component_failures == ()
