"""`ModelAgent`: an agent with a language model for its decisions.

`WireDecision` is the shape of a decision that a model is asked for. `Decision` itself cannot be
asked for in OpenAI's strict mode, where every value has a type and every field is required: a
payload may be anything. Here it is a string with JSON text in it.

`Toolbox` tells a model of an agent's tools, and calls them. A tool is a plain function: its name,
its docstring's first paragraph and the types of its parameters are all that a model needs to know.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

import openai
from pydantic import BaseModel, Field, ValidationError, create_model

from dig._util.json_values import plain
from dig._util.text import one_line
from dig.errors import DecisionError, ModelError, SettingsError
from dig.graph.records import FateName
from dig.monitor.sanitize import check_decision
from dig.runtime.agents import Decision, EventFate, NewEvent, Tool, View

from .encoding import AS_JSON_TEXT, JsonText, decode_json, encode_json
from .model import Messages, Model
from .replies import ToolCall, complaints

Brief = Callable[[View], Messages]
"""Tells a model what lies in front of an agent."""

LEAST_ACTIVATION_S = 60.0
"""An activation may take so long at least: its tools take time, too."""

_ANYTHING = (JsonText, Field(description="As JSON text."))


@dataclass(frozen=True)
class ModelAgent:
    """Asks a model for a decision, and calls the tools that the model wants, in one activation.

    It remembers nothing: all that it knows is in its view.

    Attributes:
        model: The model; one for the whole team.
        brief: The instructions of the agent.
        most_rounds: The number of times that the agent may call tools; then it has to decide.
    """

    model: Model
    brief: Brief
    most_rounds: int = 8

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
        tools, talk = Toolbox(view.tools), list(self.brief(view))
        for remaining in reversed(range(self.most_rounds + 1)):
            reply = await self.model.ask(
                talk,
                WireDecision,
                check=partial(check_fits, view),
                tools=tools.described,
                # In the last round the model has to decide.
                may_call=remaining > 0,
                usage=view.usage,
                who=view.agent,
            )
            if reply.parsed is not None:
                return reply.parsed.decision()
            view.usage["tool_calls"] = view.usage.get("tool_calls", 0) + len(reply.calls)
            results: list[Any] = [
                {"role": "tool", "tool_call_id": call.id, "content": await tools.call(call)}
                for call in reply.calls
            ]
            talk += [reply.message, *results]
        raise ModelError(f"the model kept calling tools, {self.most_rounds + 1} times in a row")


# --- the shape of a decision ---


class WireFate(BaseModel):
    """What you do with one event."""

    event: str = Field(description="The event's id.")
    fate: FateName
    to: list[str] = Field(default=[], description="For a reroute: the agents it goes to.")


class WireEvent(BaseModel):
    """An event that you generate."""

    type: str = Field(default="message", description="problem, raw_data, solution or message.")
    to: list[str] = Field(default=[], description="The agents it goes to.")
    payload: JsonText = Field(description="What it carries, as JSON text.")
    final: bool = Field(default=False, description="Whether it submits the team's answer.")


class WireDecision(BaseModel):
    """What you do now."""

    fates: list[WireFate] = Field(default=[], description="One for each event in front of you.")
    outputs: list[WireEvent] = Field(default=[], description="The events that you generate.")

    def decision(self) -> Decision:
        """The decision.

        Raises:
            ValueError: A payload is no JSON.
        """
        outputs = []
        for i, output in enumerate(self.outputs):
            try:
                payload = decode_json(output.payload)
            except ValueError as error:
                raise ValueError(f"outputs.{i}.payload: {error}") from None
            outputs.append(NewEvent(**output.model_dump() | {"payload": payload}))
        fates = [EventFate(**fate.model_dump()) for fate in self.fates]
        return Decision(fates=fates, outputs=outputs)


def check_fits(view: View, wire: WireDecision) -> None:
    """Check a decision against the view of the agent.

    Recipients are not looked at: an event without recipients is a mistake that agents make, and
    that the monitor finds.

    Raises:
        ValueError: The decision does not fit; the message says what is wrong.
    """
    try:
        check_decision([event.id for event in view.events], *wire.decision().parts())
    except DecisionError as error:
        raise ValueError(str(error)) from None


# --- tools ---


class Toolbox:
    """Some tools, described and ready to be called.

    Attributes:
        described: The description of the tools for a model.
    """

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        """Describe the tools.

        Raises:
            SettingsError: One takes any number of arguments, which no schema can say.
        """
        self._tools = tools
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
            return encode_json(plain(await result if inspect.isawaitable(result) else result))
        except ValidationError as error:
            return encode_json({"error": f"the arguments are wrong: {complaints(error)}"})
        except Exception as error:  # whatever it raises; the agent may do without it
            return encode_json({"error": one_line(error) or type(error).__name__})


def _shape(name: str, tool: Tool) -> type[BaseModel]:
    """The parameters of a tool as a pydantic model; a parameter of any type is JSON text."""
    hints = get_type_hints(tool) if inspect.isroutine(tool) else {}
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(tool).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise SettingsError(f"the tool {name!r} takes any number of arguments; name them")
        hint = hints.get(parameter.name, Any)
        fields[parameter.name] = _ANYTHING if hint is Any else (hint, ...)
    return create_model(name, **fields)
