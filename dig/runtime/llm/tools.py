"""An agent's tools as a model is told of them and calls them.

A tool is a plain function: its name, its docstring's first paragraph and the types of its
parameters are all that a model needs to know.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, get_type_hints

import openai
from pydantic import BaseModel, Field, ValidationError, create_model

from dig._util.json_values import plain
from dig._util.text import one_line
from dig.errors import SettingsError
from dig.runtime.agents import Tool

from .encoding import AS_JSON_TEXT, JsonText, decoded, encoded
from .replies import Call, complaints

_ANYTHING = (JsonText, Field(description="As JSON text."))


class Toolbox:
    """Some tools, described and ready to be called.

    Attributes:
        described: What a model is told of them.
    """

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        """Describe the tools.

        Raises:
            SettingsError: One takes any number of arguments, which no schema can say.
        """
        self._tools = tools
        self._shapes = {name: _shape(name, tool) for name, tool in tools.items()}
        self.described = [
            openai.pydantic_function_tool(shape, name=name, description=_purpose(tools[name]))
            for name, shape in self._shapes.items()
        ]

    async def call(self, call: Call) -> str:
        """Call a tool. What is wrong with a call, or goes wrong in it, is told to the model."""
        name = call.function.name
        if name not in self._tools:
            known = ", ".join(self._tools) or "none"
            return encoded({"error": f"there is no tool {name!r:.60}; there are: {known}"})
        try:
            given = self._shapes[name].model_validate_json(call.function.arguments or "{}")
            made = self._tools[name](**_arguments(given))
            return encoded(plain(await made if inspect.isawaitable(made) else made))
        except ValidationError as error:
            return encoded({"error": f"the arguments are wrong: {complaints(error)}"})
        except Exception as error:  # whatever it raises; the agent may do without it
            return encoded({"error": one_line(error) or type(error).__name__})


def _shape(name: str, tool: Tool) -> type[BaseModel]:
    """The tool's parameters as a model; one that may be anything is JSON text."""
    hints = get_type_hints(tool) if inspect.isroutine(tool) else {}
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(tool).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise SettingsError(f"the tool {name!r} takes any number of arguments; name them")
        hint = hints.get(parameter.name, Any)
        fields[parameter.name] = _ANYTHING if hint is Any else (hint, ...)
    return create_model(name, **fields)


def _arguments(given: BaseModel) -> dict[str, Any]:
    kinds = type(given).model_fields
    return {
        name: decoded(value) if AS_JSON_TEXT in kinds[name].metadata else value
        for name, value in given
    }


def _purpose(tool: Tool) -> str:
    return " ".join((inspect.getdoc(tool) or "").split("\n\n")[0].split())
