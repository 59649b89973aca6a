"""Six agents that a model decides for, on the bus, over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import pytest

from dig.detectors import standard, standard_healers
from dig.graph.records import End, Finish, Start
from dig.runtime import Bus, RunResult, Setup
from dig.runtime.llm import Model, ModelAgent, ModelSettings
from dig.tasks.count_frequency import CountFrequency
from dig.tasks.general_agent import GeneralBrief
from tests.helpers import Recorder
from tests.llm.server import Answer, Script, calls, fails, refuses, says, serving
from tests.llm.solver import solve

pytestmark = pytest.mark.anyio

TASK = CountFrequency(size=120, seed=3, most_per_message=20)
NAMES = tuple(f"agent-{i}" for i in range(1, 7))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dig.runtime.llm.model.FIRST_WAIT_S", 0.01)


class Run:
    """One run of the team with a scripted model."""

    def __init__(self, script: Script, names: Sequence[str] = NAMES, **settings: Any) -> None:
        self.script, self.names, self.settings = script, names, settings
        self.to = names[:1]
        self.sink = Recorder()
        self.limit_s = 20.0
        self.result: RunResult

    async def __call__(self) -> RunResult:
        with serving(self.script) as self.server:
            async with Model(ModelSettings("m", self.server.url, **self.settings)) as self.model:
                setup = Setup(
                    detectors=standard, healers=standard_healers, tools=TASK.tools(),
                    limit_s=self.limit_s, retries=6, backoff_s=0.05,
                )  # fmt: skip
                agent = ModelAgent(self.model, GeneralBrief(TASK.goal))
                bus = Bus(dict.fromkeys(self.names, agent), setup, sink=self.sink)
                return await bus.run(TASK.problem(*self.to))

    def used(self, key: str) -> int:
        """What the trace says was used."""
        ended = [record.usage for record in self.sink if isinstance(record, End)]
        (last,) = [record.usage for record in self.sink if isinstance(record, Finish)]
        return sum(one.get(key, 0) for one in (*ended, *(last or {}).values()) if one)


def sometimes(faults: Mapping[int, Answer]) -> Script:
    """The solver, but for some requests, counted from 0."""
    counter = iter(range(10**6))
    return lambda request: faults.get(next(counter)) or solve(request)


@pytest.mark.parametrize("native", [True, False])
async def test_a_team_solves_its_problem(native: bool) -> None:
    """The answer is right, nothing is left, and every token that was used is in the trace.

    Whether calls of tools stand beside the answer, or are a part of it.
    """
    run = Run(solve, native_tools=native)
    result = await run()
    assert (result.outcome, result.failures, result.left.unconsumed) == ("submitted", {}, ())
    score = TASK.score(result.answer)
    assert score is not None and score.rmse == 0
    assert run.used("model_calls") == len(run.server.requests) == run.model.spending.calls
    assert run.used("input_tokens") + run.used("output_tokens") == run.model.spending.tokens


FAULTS = {
    "429": fails(429, "slow down", Retry_After="0.02"),
    "500": fails(500, "oops"),
    "dropped": Answer(b"{}", cut=0),
    "truncated": Answer(b'{"choices": [' * 9, cut=40),
    "invalid JSON": says('{"fates": ['),
    "wrong schema": says({"fates": "all"}),
    "unknown event": says({"fates": [{"event": "e999", "fate": "consume"}]}),
    "no JSON payload": says({"outputs": [{"payload": '{"a": '}]}),
    "unknown tool": calls(("rm_rf", {})),
    "wrong arguments": calls(("split", {"part": [0, 120]})),
    "torn arguments": calls(("size", '{"part": [0,')),
    "refused by a tool": calls(("raw_data", {"part": [0, 120]})),
    "refusal": refuses("I would rather not"),
    "length": says('{"fates', finish="length"),
    "content filter": says("", finish="content_filter"),
    "slow": Answer(says("late").body, delay_s=1.5),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kind", FAULTS)
async def test_no_fault_of_a_server_or_a_model_loses_anything(kind: str) -> None:
    """Whatever comes instead of a decision, twice in a row and later once more, is survived."""
    fault = FAULTS[kind]
    run = Run(
        _not_to_a_tool(sometimes({2: fault, 3: fault, 9: fault})),
        native_tools=True,
        timeout_s=1 if kind == "slow" else 10,
    )
    result = await run()
    score = TASK.score(result.answer)
    assert result.outcome == "submitted" and score is not None and score.rmse == 0
    assert run.used("model_calls") == run.model.spending.calls


def _not_to_a_tool(script: Script) -> Script:
    """The solver cannot take up results of calls that it has not made: it begins again."""

    def answer(request: dict[str, Any]) -> Answer:
        system, situation, *talk = request["messages"]
        errors = [one for one in talk if one["role"] == "tool" and "error" in one["content"]]
        if errors:
            return script({**request, "messages": [system, situation]})
        return script(request)

    return answer


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (fails(401, "wrong key"), "the key in OPENAI_API_KEY is not accepted"),
        (fails(404, "no such model"), "there is no model 'm' at this address"),
        (fails(429, "quota", "insufficient_quota"), "no credit left"),
        (Answer(b"{}", cut=0), "cannot reach http://127.0.0.1"),
    ],
)
async def test_a_run_that_can_never_succeed_stops_at_once(answer: Answer, why: str) -> None:
    """It says why, in its result and in its trace, and does not go on to its time limit."""
    run = Run(lambda request: answer)
    with anyio.fail_after(10):
        result = await run()
    assert result.outcome == "error" and why in result.reason
    assert any(why in str(getattr(record, "detail", "")) for record in run.sink)


async def test_a_server_that_dies_in_the_middle_ends_the_run_with_what_there_is() -> None:
    """Before the time limit, with a sentence, and with the events still where they were."""
    counter = iter(range(10**6))
    dead = Answer(b"{}", cut=0)
    run = Run(lambda request: solve(request) if next(counter) < 8 else dead)
    with anyio.fail_after(15):
        result = await run()
    assert result.outcome == "error" and "cannot reach" in result.reason
    assert result.left.unconsumed


async def test_a_budget_stops_the_run_and_all_that_was_used_is_in_the_trace() -> None:
    """The answers that came before count, and the next request is not sent."""
    run = Run(solve, max_tokens=600)
    result = await run()
    assert result.outcome == "stopped"
    assert result.reason.startswith("the budget of 600 tokens is used up")
    assert run.used("model_calls") == run.model.spending.calls
    assert run.used("input_tokens") + run.used("output_tokens") == run.model.spending.tokens >= 600


async def test_what_the_end_cuts_off_is_in_the_last_record_with_what_it_has_used() -> None:
    """Ada is in the middle of her second request when bob finds out that the key is wrong."""

    second = threading.Event()

    def script(request: dict[str, Any]) -> Answer:
        if '"you": "bob"' in request["messages"][1]["content"]:
            assert second.wait(10)
            return fails(401)
        if len(request["messages"]) == 2:
            return solve(request)
        second.set()
        return Answer(b"", delay_s=2.0)

    run = Run(script, names=["ada", "bob"])
    run.to = ["ada", "bob"]
    result = await run()
    finish = run.sink[-1]
    assert isinstance(finish, Finish)
    (end,) = [record for record in run.sink if isinstance(record, End)]
    used = {agent: finish.usage[name] for name, agent in result.left.unfinished.items()}
    tokens = {"input_tokens": 100, "output_tokens": 10}
    assert used == {
        "ada": {
            "model": "m",
            "model_calls": 2,
            "uncounted_calls": 1,
            **tokens,
            "tool_calls": 1,
            "reads": 0,
        },
    }
    assert end.usage == {"model": "m", "model_calls": 1, "failed_calls": 1, "reads": 0}


async def test_a_model_that_only_calls_tools_has_to_decide_in_the_end() -> None:
    """The last request forbids tools; whoever calls one all the same fails, and loses nothing."""
    stuck = calls(("size", {"part": [0, 9]}))
    run = Run(sometimes(dict.fromkeys(range(9), stuck)), names=["ada"], native_tools=True)
    result = await run()
    assert result.outcome == "submitted"
    assert "kept calling tools, 9 times in a row" in result.errors["ada"]
    choices = [request["tool_choice"] for request in run.server.requests[:9]]
    assert choices == ["auto"] * 8 + ["none"]


async def test_an_unusable_decision_costs_some_repetitions_then_the_activation() -> None:
    """The events stay in front of the agent, and the error says what was wrong."""
    run = Run(sometimes(dict.fromkeys(range(2), says({"fates": "all"}))), names=["ada"], attempts=2)
    result = await run()
    assert "unusable 2 times: fates: Input should be a valid array" in result.errors["ada"]
    failed, again = [r for r in run.sink if isinstance(r, End | Start)][1:3]
    assert isinstance(failed, End) and failed.error and failed.usage["model_calls"] == 2
    assert isinstance(again, Start) and again.inputs == ("e1",)
    assert result.outcome == "submitted"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("answer", ["", TASK.problem().payload, {"name": "size", "arguments": {}}])
async def test_an_answer_that_is_none_is_mended_and_never_accepted(answer: Any) -> None:
    """The model is told at once; VOID and the scorer need not find it afterwards."""
    nothing = says({
        "fates": [{"event": "e1", "fate": "consume"}],
        "outputs": [{"type": "solution", "payload": answer, "final": True}],
    })  # fmt: skip
    run = Run(sometimes({0: nothing, 1: nothing}), names=["ada"], attempts=3)
    result = await run()
    assert (result.outcome, result.failures) == ("submitted", {})
    assert "VOID" not in result.raised() and result.answer != answer
    told = run.server.requests[2]["messages"][-1]["content"]
    assert "outputs.0: the answer" in told
    run = Run(lambda request: nothing, names=["ada"])
    result = await run()
    assert (result.outcome, result.answer) == ("error", None)
    assert "unusable 2 times: outputs.0: the answer" in result.reason


async def test_what_a_model_is_asked_for_is_json_that_strict_mode_takes() -> None:
    """Every object names its properties, requires all of them, and has no defaults."""
    run = Run(solve, native_tools=True)
    await run()
    request = run.server.requests[0]
    shapes = [request["response_format"]["json_schema"], *(t["function"] for t in request["tools"])]
    assert [shape["name"] for shape in shapes] == ["WireDecision", "size", "split", "raw_data"]
    for shape in shapes:
        assert shape["strict"] is True
        for part in _objects(shape.get("schema") or shape["parameters"]):
            assert part["additionalProperties"] is False
            assert set(part["required"]) == set(part["properties"])
            assert all({"type", "$ref"} & set(one) for one in part["properties"].values())
            assert "default" not in json.dumps(part)


def _objects(schema: Any) -> list[Any]:
    if not isinstance(schema, dict):
        return []
    inner = [found for value in schema.values() for found in _objects(value)]
    return [schema, *inner] if schema.get("type") == "object" else inner
