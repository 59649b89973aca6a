"""`ModelAgent`: an agent with a language model for its decisions.

`Toolbox` tells a model of an agent's tools, and calls them. A tool is a plain function: its name,
its docstring's first paragraph and the types of its parameters are all that a model needs to know.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

from pydantic import BaseModel, Field, ValidationError, create_model

from dig._util.json_values import plain
from dig._util.text import one_line
from dig.errors import ModelError, SettingsError
from dig.runtime.agents import Decision, Tool, View

from .decisions import TYPES, WireDecision, WireTurn, check_fits, instruction, narrow
from .encoding import AS_JSON_TEXT, JsonText, decode_json, encode_json
from .model import Messages, Model
from .replies import ToolCall, complaints, with_instruction
from .sdk import openai

Brief = Callable[[View], Messages]
"""Tells a model what lies in front of an agent."""

LEAST_ACTIVATION_S = 60.0
"""An activation may take so long at least: its tools take time, too."""

_NEXT = "Call what you still need and have not called yet, or decide."
_ANYTHING = (JsonText, Field(description="As JSON text."))


@dataclass(frozen=True)
class ModelAgent:
    """Asks a model for a decision, and calls the tools that the model wants, in one activation.

    It remembers nothing: all that it knows is in its view.

    Attributes:
        model: The model; one for the whole team.
        brief: The instructions of the agent.
        most_rounds: The number of times that the agent may call tools; then it has to decide.
        types: The types that a grammar allows for new events.
    """

    model: Model
    brief: Brief
    most_rounds: int = 8
    types: Sequence[str] = TYPES

    @property
    def longest_s(self) -> float:
        """Seconds of real time that an activation may take: each of its requests its own limit."""
        settings = self.model.settings
        requests_s = (self.most_rounds + 1) * settings.timeout_s
        return settings.activation_timeout_s or max(requests_s, LEAST_ACTIVATION_S)

    def reseeded(self, repeat: int) -> ModelAgent:
        """The same agent: its server draws the random numbers."""
        return self

    async def act(self, view: View) -> Decision:
        """Ask the model to decide about the events of a view.

        Raises:
            ModelError: No usable decision came; the events stay where they are.
            StopRunError: None will ever come, for any agent of the team.
        """
        tools, is_native = Toolbox(view.tools), self.model.settings.keeps_tools_apart
        view.usage.update(tools.usage)
        replying = instruction(tools.described, is_native=is_native)
        talk = with_instruction(self.brief(view), replying)
        for remaining in reversed(range(self.most_rounds + 1)):
            may_call = remaining > 0  # in the last round the model has to decide
            callable_tools = tools.described if may_call else ()
            reply = await self.model.ask(
                talk,
                WireDecision if is_native else WireTurn,
                check=partial(check_fits, view, may_call=may_call),
                tools=tools.described,
                may_call=may_call,
                narrow=partial(narrow, view=view, tools=callable_tools, types=self.types),
                usage=view.usage,
                who=view.agent,
            )
            calls = reply.calls
            if reply.parsed is not None:
                calls = reply.parsed.tool_calls()
                if not calls:
                    return reply.parsed.decision()
            results = [await tools.call(call) for call in calls]
            talk += [reply.message, *_results(reply.message, calls, results)]
            view.usage["tool_calls"] = view.usage.get("tool_calls", 0) + len(calls)
            view.usage.update(tools.usage)
        raise ModelError(f"the model kept calling tools, {self.most_rounds + 1} times in a row")


def _results(
    message: Mapping[str, Any], calls: Sequence[ToolCall], results: Sequence[str]
) -> list[dict[str, Any]]:
    """The messages with the results of some calls, after the model's message."""
    pairs = [*zip(calls, results, strict=True)]
    if "tool_calls" in message:
        return [{"role": "tool", "tool_call_id": c.id, "content": text} for c, text in pairs]
    rows = [{"tool": call.function.name, "result": json.loads(text)} for call, text in pairs]
    return [{"role": "user", "content": encode_json({"results": rows, "next": _NEXT})}]


# --- tools ---


class Toolbox:
    """Some tools, described and ready to be called.

    Attributes:
        described: The description of the tools for a model.
        usage: The number of `reads` so far, calls of tools with an attribute `reads_data` that is
            true; empty without such tools.
    """

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        """Describe the tools.

        Raises:
            SettingsError: One takes any number of arguments, which no schema can say.
        """
        self._tools = tools
        self.usage = {"reads": 0} if any(map(_reads_data, tools.values())) else {}
        self._shapes = {name: _shape(name, tool) for name, tool in tools.items()}
        self.described = [
            openai.pydantic_function_tool(
                shape,
                name=name,
                description=" ".join((inspect.getdoc(tools[name]) or "").split("\n\n")[0].split()),
            )
            for name, shape in self._shapes.items()
        ]

    async def call(self, call: ToolCall) -> str:
        """Call a tool; the model is told about a wrong call or an exception."""
        name = call.function.name
        if name not in self._tools:
            names = ", ".join(self._tools) or "none"
            return encode_json({"error": f"there is no tool {name!r:.60}; there are: {names}"})
        try:
            shape = self._shapes[name]
            arguments = shape.model_validate_json(call.function.arguments or "{}")
            result = self._tools[name](
                **{
                    key: decode_json(value)
                    if AS_JSON_TEXT in shape.model_fields[key].metadata
                    else value
                    for key, value in arguments
                }
            )
            text = encode_json(plain(await result if inspect.isawaitable(result) else result))
        except ValidationError as error:
            return encode_json({"error": f"the arguments are wrong: {complaints(error)}"})
        except Exception as error:  # whatever it raises; the agent may do without it
            return encode_json({"error": one_line(error) or type(error).__name__})
        if _reads_data(self._tools[name]):
            self.usage["reads"] += 1
        return text


def _reads_data(tool: Tool) -> bool:
    return bool(getattr(tool, "reads_data", False))


def _shape(name: str, tool: Tool) -> type[BaseModel]:
    """The parameters of a tool as a pydantic model; a parameter of any type is JSON text."""
    hints = get_type_hints(tool, include_extras=True) if inspect.isroutine(tool) else {}
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(tool).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise SettingsError(f"the tool {name!r} takes any number of arguments; name them")
        hint = hints.get(parameter.name, Any)
        fields[parameter.name] = _ANYTHING if hint is Any else (hint, ...)
    return create_model(name, **fields)
