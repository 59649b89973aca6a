"""The shape of a decision on servers that keep tools and a schema apart, and on all others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dig.errors import ModelError
from dig.monitor.messages import Pending
from dig.runtime import View
from dig.runtime.agents import Decision
from dig.runtime.llm import Model, ModelAgent, ModelSettings
from dig.runtime.llm.decisions import (
    MOST_CALLS,
    MOST_OUTPUTS,
    WireDecision,
    WireTurn,
    check_fits,
    instruction,
)
from dig.runtime.llm.model_agent import Toolbox
from dig.runtime.llm.replies import parse
from dig.tasks.count_frequency import CountFrequency
from dig.tasks.general_agent import GeneralBrief
from tests.llm.server import Answer, calls, says, serving, writes

pytestmark = pytest.mark.anyio

TASK = CountFrequency(size=20, seed=1)
TOOLS = TASK.tools()
PROBLEM = Pending("e1", "problem", None, {"part": [0, 20]})
WAIT = says({"fates": [], "outputs": []})
READ = {"part": [0, 10]}


def view(*events: Pending, **changes: Any) -> View:
    return View("ada", ("ada", "bob"), 1, 0.0, events or (PROBLEM,), **{"tools": TOOLS, **changes})


class Turn:
    """One activation on a scripted server: its decision, requests and usage."""

    def __init__(self, *answers: Answer, **settings: Any) -> None:
        self.answers, self.settings = answers, settings
        self.view = view()
        self.types: dict[str, Any] = {}

    async def __call__(self) -> Decision:
        with serving(self.answers) as server:
            async with Model(ModelSettings("m", server.url, **self.settings)) as model:
                agent = ModelAgent(model, GeneralBrief("count"), **self.types)
                try:
                    return await agent.act(self.view)
                finally:
                    self.requests = server.requests

    def schema(self, number: int = 0) -> Any:
        return self.requests[number]["response_format"]["json_schema"]["schema"]

    def last(self) -> str:
        """The last message of the last request."""
        return str(self.requests[-1]["messages"][-1]["content"])


def submits(payload: Any, **fates: str) -> dict[str, Any]:
    return {
        "fates": [{"event": event, "fate": fate} for event, fate in fates.items()],
        "outputs": [{"type": "solution", "payload": payload, "final": True}],
    }


async def test_a_grammar_leaves_nothing_but_what_the_request_allows() -> None:
    """Ids, names and types are those that there are, lists have bounds, a payload is any JSON."""
    turn = Turn(WAIT)
    turn.view = view(PROBLEM, Pending("e4", "draft", "bob", 1))
    await turn()
    schema = turn.schema()
    fate, event = (schema["$defs"][name]["properties"] for name in ("WireFate", "WireAnyEvent"))
    assert fate["event"]["enum"] == ["e1", "e4"]
    assert fate["fate"]["enum"] == ["consume", "delay", "reroute", "discard"]
    assert fate["to"] == event["to"] | {"description": fate["to"]["description"]}
    assert event["to"]["items"]["enum"] == ["ada", "bob"] and event["to"]["maxItems"] == 2
    assert event["type"]["enum"] == ["problem", "raw_data", "solution", "message", "draft"]
    assert {"object", "array", "string", "number"} <= set(event["payload"]["type"])
    bounds = [
        {name: part["maxItems"] for name, part in variant["properties"].items()}
        for variant in schema["anyOf"]
    ]
    decision = {"calls": 0, "fates": 2, "outputs": MOST_OUTPUTS}
    assert bounds == [{"calls": MOST_CALLS}, decision] and [*bounds[1]] == [*decision]
    for variant in schema["anyOf"]:
        assert variant["required"] == [*variant["properties"]]
        assert variant["additionalProperties"] is False


async def test_types_of_a_users_own_can_be_allowed() -> None:
    turn = Turn(WAIT)
    turn.types = {"types": ["draft"]}
    await turn()
    event = turn.schema()["$defs"]["WireAnyEvent"]["properties"]
    assert event["type"]["enum"] == ["draft", "problem"]


async def test_calls_are_part_of_the_shape_where_tools_and_a_schema_exclude_each_other() -> None:
    """Each tool has its arguments in the grammar, and its words in the instructions."""
    turn = Turn(writes(("raw_data", READ), ("size", READ)), WAIT)
    assert await turn() == Decision()
    first, second = turn.requests
    assert "tools" not in first and "tool_choice" not in first
    wanted = turn.schema()["anyOf"][0]["properties"]["calls"]
    variants = wanted["items"]["anyOf"]
    assert wanted["minItems"] == 1
    assert [each["properties"]["tool"]["enum"] for each in variants] == [[name] for name in TOOLS]
    assert variants[1]["properties"]["arguments"]["required"] == ["part", "pieces"]
    assert all(each["additionalProperties"] is False for each in variants)
    system = first["messages"][0]["content"]
    assert "- split: Cut a part into pieces" in system and "call a tool first" in system
    results = json.loads(second["messages"][-1]["content"])["results"]
    assert results == [
        {"tool": "raw_data", "result": TOOLS["raw_data"]([0, 10])}, {"tool": "size", "result": 10}
    ]  # fmt: skip
    assert (turn.view.usage["tool_calls"], turn.view.usage["reads"]) == (2, 1)


async def test_a_server_that_keeps_both_apart_gets_tools_and_a_schema_that_stays() -> None:
    """OpenAI's own does; a schema of its own for each request would cost seconds there."""
    turn = Turn(calls(("raw_data", READ)), WAIT, native_tools=True)
    await turn()
    assert [tool["function"]["name"] for tool in turn.requests[0]["tools"]] == [*TOOLS]
    assert "calls" not in turn.schema()["properties"] and "enum" not in json.dumps(
        turn.schema()["$defs"]["WireEvent"]
    )
    assert turn.requests[1]["messages"][-1]["role"] == "tool"
    assert ModelSettings("m").keeps_tools_apart
    assert ModelSettings("m", "https://api.openai.com/v1/").keeps_tools_apart
    assert not ModelSettings("m", "http://localhost/v1").keeps_tools_apart


async def test_the_last_round_has_no_calls() -> None:
    """The grammar has no place for them, and a server without a grammar is told."""
    stuck = writes(("size", READ))
    turn = Turn(*[stuck] * 8, WAIT)
    await turn()
    assert '"calls"' in json.dumps(turn.schema(7)) and '"calls"' not in json.dumps(turn.schema(8))
    turn = Turn(stuck, json_mode="text")
    with pytest.raises(ModelError, match="there is no tool that you may call now; decide"):
        await turn()
    assert len(turn.requests) == 8 + 2


async def test_an_agent_without_tools_is_told_of_none() -> None:
    turn = Turn(WAIT)
    turn.view = view(tools={})
    await turn()
    assert [*turn.schema()["properties"]] == ["fates", "outputs"]
    assert '"calls"' not in turn.requests[0]["messages"][0]["content"]


@pytest.mark.parametrize("mode", ["strict", "object", "text"])
async def test_instructions_are_the_same_in_every_turn(mode: Any) -> None:
    """So that a server that keeps what it has read does not read them again."""
    texts = set()
    for event in (PROBLEM, Pending("e7", "message", "bob", "hello")):
        turn = Turn(WAIT, json_mode=mode)
        turn.view = view(event)
        await turn()
        texts.add(turn.requests[0]["messages"][0]["content"])
    assert len(texts) == 1


WRITTEN = json.dumps({"name": "raw_data", "arguments": READ})
TEXTS = [
    WRITTEN,
    json.dumps({"type": "function", "name": "raw_data", "parameters": READ}),
    json.dumps({"name": "raw_data", "arguments": json.dumps(READ)}),
    f"<tool_call>\n{WRITTEN}\n</tool_call>",
    f"```json\n{WRITTEN}\n```",
    f"<think>{{}}</think>I read the data. {WRITTEN}",
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("text", TEXTS)
async def test_a_call_that_comes_as_text_is_taken_for_one(text: str, native: bool) -> None:
    """Bare, in tags or in a fence, on each kind of server; its result comes in the same way."""
    turn = Turn(says(text), WAIT, native_tools=native, json_mode="text")
    await turn()
    assert turn.view.usage["reads"] == 1
    call, result = turn.requests[1]["messages"][-2:]
    assert result["role"] == ("tool" if native else "user")
    assert str(TOOLS["raw_data"]([0, 10])) in result["content"]
    assert ("tool_calls" in call) is native


async def test_several_calls_may_stand_in_one_text() -> None:
    turn = Turn(says(f"<tool_call>{WRITTEN}</tool_call>\n" * 2), WAIT, json_mode="text")
    await turn()
    assert turn.view.usage["tool_calls"] == 2


@pytest.mark.parametrize(
    "text", [WRITTEN.replace("raw_data", "rm_rf"), f'{{"name": 3}} {WRITTEN}', f"{{ {WRITTEN}"]
)
async def test_another_text_is_no_call(text: str) -> None:
    """A tool that there is not, an object before the call: the model is told of the shape."""
    turn = Turn(says(text), WAIT, json_mode="text")
    await turn()
    assert turn.view.usage["reads"] == 0 and "could not be used" in turn.last()


async def test_a_call_in_a_payload_is_part_of_a_decision() -> None:
    asks = {"to": ["bob"], "payload": json.loads(WRITTEN)}
    turn = Turn(says({"fates": [{"event": "e1", "fate": "consume"}], "outputs": [asks]}))
    decision = await turn()
    assert decision.outputs[0].payload == json.loads(WRITTEN) and turn.view.usage["reads"] == 0


async def test_all_complaints_are_told_at_once_with_what_is_allowed() -> None:
    """The model need not find out mistake by mistake."""
    wrong = {
        "fates": [
            {"event": "consume", "fate": "use", "to": ["cyd"]},
            {"event": "e1", "fate": "consume"}, {"event": "e1", "fate": "delay"},
        ],
        "outputs": [{"to": ["eve"], "payload": "{0: 12"}, {"payload": 1, "final": True}],
    }  # fmt: skip
    turn = Turn(says(wrong), WAIT)
    await turn()
    told = turn.last()
    for part in (
        "fates.0.event: 'consume' is none of these: e1;",
        "fates.0.fate: 'use' is none of these: consume, delay, reroute, discard;",
        "fates.0.to: 'cyd' is none of these: ada, bob;",
        "fates.2.event: 'e1' has a fate already",
        "outputs.0.to: 'eve' is none of these: ada, bob;",
        "outputs.0.payload: it is no JSON text",
        "outputs: an event that is final must be the only output",
    ):
        assert part in told


def complaint(payload: Any, *events: Pending, fates: dict[str, str] | None = None) -> str:
    """What is said about an answer."""
    wire = WireTurn.model_validate(submits(payload, **(fates or {"e1": "consume"})))
    try:
        check_fits(view(*events), wire)
    except ValueError as error:
        return str(error)
    return ""


NOTE = Pending("e9", "system", "system", None, ("submit",))
DATA = Pending("e2", "raw_data", "bob", [1, 2])


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        (PROBLEM.payload, "repeats the payload of e1"),
        (json.dumps(PROBLEM.payload), "repeats the payload of e1"),
        (json.loads(WRITTEN), "is a call of a tool"),
        *((text, "is a call of a tool") for text in TEXTS),
        ({"counts": {}}, ""),
        ("none", ""),
        ({"name": "ada", "arguments": {}}, ""),
    ],
)
def test_an_answer_that_is_none_is_a_complaint(payload: Any, why: str) -> None:
    """An empty one, the problem, a call in words; whatever else is for the scorer to judge."""
    said = complaint(payload)
    assert (why in said) if why else not said


@pytest.mark.parametrize(
    ("fates", "delayed"),
    [
        ({"e1": "consume"}, "e2"),
        ({"e1": "delay", "e2": "delay"}, "e1, e2"),
        ({"e1": "consume", "e2": "consume"}, ""),
        ({"e1": "consume", "e2": "discard"}, ""),
    ],
)
def test_an_answer_beside_what_is_delayed_is_a_complaint(
    fates: dict[str, str], delayed: str
) -> None:
    """Its lineage would not show what it is made of. A note of the system may stay unnamed."""
    said = complaint({"counts": {}}, PROBLEM, DATA, NOTE, fates=fates)
    assert f"{delayed} would be delayed" in said if delayed else not said


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("tools", [{}, TOOLS])
def test_the_worked_examples_have_the_shape_that_is_asked_for(native: bool, tools: Any) -> None:
    """One of each decision, and a call where calls are part of the shape; none fits a real run."""
    schema = WireDecision if native else WireTurn
    text = instruction(Toolbox(tools).described, is_native=native)
    lines = [line.partition(": ") for line in text.splitlines() if line.startswith("- ")]
    assert all(bool(tools) or "calls" not in reply for _, _, reply in lines)
    shown = {title[2:]: parse(reply, schema) for title, _, reply in lines if title[2:] not in tools}
    decisions = ["respond", "wait", "reroute", "discard", "submit"]
    assert [*shown][-5:] == decisions and len(shown) == 5 + bool(tools and not native)
    for title in decisions:
        assert not shown[title].tool_calls()
        with pytest.raises(ValueError, match="is none of these: e1"):
            check_fits(view(), shown[title])
    assert ("call a tool first" in text) is bool(tools)
    if not native:
        assert [bool(reply.tool_calls()) for reply in shown.values()][:-5] == [True] * bool(tools)
