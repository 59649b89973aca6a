"""Tools: plain functions, as a model is told of them and calls them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dig.errors import SettingsError
from dig.runtime.llm.model_agent import Toolbox
from dig.runtime.llm.replies import Function, ToolCall

pytestmark = pytest.mark.anyio


def add(numbers: list[int], times: int = 1) -> int:
    """Add numbers up.

    This is not told.
    """
    return sum(numbers) * times


async def look(what: Any) -> dict[str, Any]:
    """Look at anything."""
    return {"seen": what}


def fail() -> None:
    raise RuntimeError("no \x1b[31mluck")


def strange() -> object:
    return object()


BOX = Toolbox({"add": add, "look": look, "fail": fail, "strange": strange})


async def call(name: str, arguments: str) -> Any:
    return json.loads(
        await BOX.call(ToolCall(id="c", function=Function(name=name, arguments=arguments)))
    )


def test_a_tool_is_told_by_its_name_its_purpose_and_its_parameters() -> None:
    """In strict mode: all parameters are required and have a type; what may be anything is text."""
    told = {one["function"]["name"]: one["function"] for one in BOX.described}
    assert told["add"]["description"] == "Add numbers up." and told["add"]["strict"] is True
    shape: Any = told["add"]["parameters"]
    assert shape["properties"]["numbers"]["items"] == {"type": "integer"}
    assert shape["required"] == ["numbers", "times"] and "default" not in json.dumps(shape)
    anything: Any = told["look"]["parameters"]
    assert anything["properties"]["what"]["type"] == "string"
    assert "JSON text" in anything["properties"]["what"]["description"]


async def test_a_tool_is_called_and_its_result_comes_back_as_json() -> None:
    """Whether it is a plain or an async function; JSON text and JSON are as good."""
    assert await call("add", '{"numbers": [1, 2], "times": 3}') == 9
    assert await call("look", '{"what": "[1, {}]"}') == {"seen": [1, {}]}
    assert await call("look", '{"what": [1, {}]}') == {"seen": [1, {}]}


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("rm", "{}", "there is no tool 'rm'; there are: add, look, fail, strange"),
        ("add", '{"numbers": "many", "times": 1}', "the arguments are wrong: numbers: "),
        ("add", "{", "the arguments are wrong: the whole: Invalid JSON"),
        ("add", '{"numbers": [1]}', "the arguments are wrong: times: Field required"),
        ("fail", "", "no \\u001b[31mluck"),
        ("strange", "{}", "of type object, which is not plain JSON"),
    ],
)
async def test_what_goes_wrong_is_told_to_the_model(name: str, arguments: str, why: str) -> None:
    """A tool that is not there, wrong arguments, a tool that raises or returns what is no JSON."""
    assert why in (await call(name, arguments))["error"]


def test_a_tool_that_takes_anything_is_refused() -> None:
    """No schema can say what it takes."""
    with pytest.raises(SettingsError, match="the tool 'print' takes any number of arguments"):
        Toolbox({"print": print})
