"""The shape of a decision: what a model is asked for, told about it, and told when it does not fit.

`WireDecision` is for servers that keep tools apart from the schema of an answer. `Decision` itself
cannot be asked for in OpenAI's strict mode, where every value has a type and every field is
required: a payload may be anything. There it is a string with JSON text in it.

`WireTurn` is for all other servers. Their grammar lets a model say nothing but the shape, so that
calls of tools have to be a part of it, in place of fates and outputs; a payload is any JSON.
`narrow` restricts the grammar to the ids, names and tools of one request.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from pydantic import BaseModel, Field

from dig._util.text import names
from dig.graph.records import FATES, NOTICE, SYSTEM
from dig.runtime.agents import Decision, EventFate, NewEvent, View

from .encoding import JsonText, decode_json, encode_json
from .replies import MOST_COMPLAINTS, Function, ToolCall, bare_schema, written_calls

TYPES = ("problem", "raw_data", "solution", "message")
"""The types of events that our instructions name."""

# A grammar without bounds lets a weak model write list items until its reply is cut off.
MOST_OUTPUTS, MOST_CALLS = 32, 8
MOST_ALLOWED = 50
"""The allowed values that a complaint lists."""


class WireFate(BaseModel):
    """What you do with one event."""

    event: str = Field(description="The event's id.")
    # No `Literal`: a wrong word is told together with all other mistakes of a reply.
    fate: str = Field(json_schema_extra={"enum": [*FATES]})
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
        outputs = [
            NewEvent(**output.model_dump() | {"payload": decode_json(output.payload)})
            for output in self.outputs
        ]
        fates = [EventFate(**fate.model_dump()) for fate in self.fates]
        return Decision(fates=fates, outputs=outputs)

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in place of a decision."""
        return ()


class WireAnyEvent(WireEvent):
    """An event that you generate."""

    payload: JsonText = Field(
        description="What it carries: any JSON.",
        json_schema_extra={"type": ["object", "array", "string", "number", "boolean"]},
    )


class WireCall(BaseModel):
    """A call of a tool."""

    tool: str = Field(description="The tool's name.")
    arguments: JsonText = Field(json_schema_extra={"type": "object"})


class WireTurn(WireDecision):
    """What you do now."""

    calls: list[WireCall] = Field(default=[], description="Tools to call; empty in a decision.")
    outputs: list[WireAnyEvent] = Field(  # type: ignore[assignment]  # nothing is appended
        default=[], description="The events that you generate."
    )

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in place of a decision."""
        functions = (Function(name=call.tool, arguments=call.arguments) for call in self.calls)
        return tuple(ToolCall(function=function) for function in functions)


def narrow(schema: dict[str, Any], view: View, tools: Sequence[Any], types: Sequence[str]) -> None:
    """Restrict the JSON schema of `WireTurn` to a view.

    Args:
        schema: The schema; it is changed.
        view: What lies in front of the agent.
        tools: The tools that may be called, as a `Toolbox` describes them.
        types: The types that new events may have, besides those of the events in the view.
    """
    parts, turn = schema["$defs"], schema["properties"]
    fate, event = (parts[name]["properties"] for name in ("WireFate", "WireAnyEvent"))
    ids, team = [event.id for event in view.events], [*view.team]
    fate["event"]["enum"] = ids
    event["type"]["enum"] = [*dict.fromkeys([*types, *(e.type for e in view.events)])]
    for recipients in (fate["to"], event["to"]):
        recipients |= {"items": {"type": "string", "enum": team}, "maxItems": len(team)}
    turn["fates"]["maxItems"], turn["outputs"]["maxItems"] = len(ids), MOST_OUTPUTS
    calls, decision = turn.pop("calls"), turn
    for key in ("type", "properties", "required", "additionalProperties"):
        del schema[key]
    del parts["WireCall"]
    variants = []
    for function in (tool["function"] for tool in tools):
        arguments = bare_schema(function["parameters"])
        parts |= arguments.pop("$defs", {})
        name = {"type": "string", "enum": [function["name"]]}
        variants.append(_closed({"tool": name, "arguments": arguments}))
    calls |= {"items": {"anyOf": variants}, "minItems": 1, "maxItems": MOST_CALLS}
    empty = {**calls, "minItems": 0, "maxItems": 0}
    # Calls come first, so that a weak model does not decide before it has read anything. Fates
    # beside calls would be written for nothing.
    choices = [_closed({"calls": calls}), _closed({"calls": empty, **decision})]
    schema |= {"anyOf": choices} if tools else _closed(decision)


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object with some properties, all of them, and no others."""
    shape = {"type": "object", "properties": properties}
    return {**shape, "required": [*properties], "additionalProperties": False}


# --- telling a model ---

_REPLIES = """\
Your reply is one JSON object. These are replies of kim, who is in another team and works with lou
and max on parcels; take over their form, and none of their names, ids and numbers:
"""
_EXAMPLES = """\
{"calls": [{"tool": "weigh", "arguments": {"parcel": 41}}]}
{"calls": [], "fates": [{"event": "e31", "fate": "consume", "to": []}], "outputs": [{"type": "problem", "to": ["lou"], "payload": {"weigh_parcels": [40, 60], "report_to": "kim"}, "final": false}, {"type": "problem", "to": ["max"], "payload": {"weigh_parcels": [60, 80], "report_to": "kim"}, "final": false}]}
{"calls": [], "fates": [{"event": "e32", "fate": "delay", "to": []}], "outputs": []}
{"calls": [], "fates": [{"event": "e33", "fate": "reroute", "to": ["max"]}], "outputs": []}
{"calls": [], "fates": [{"event": "e34", "fate": "discard", "to": []}], "outputs": []}
{"calls": [], "fates": [{"event": "e35", "fate": "consume", "to": []}, {"event": "e36", "fate": "consume", "to": []}], "outputs": [{"type": "solution", "to": [], "payload": {"weight_kg": 734}, "final": true}]}
"""  # noqa: E501
_TITLES = ("call a tool first", "respond", "wait", "reroute", "discard", "submit")
_CALLS = """
The tools that you may put into "calls", with the JSON schema of their arguments. You are shown what
they return, and then go on. When you decide, "calls" is empty.
"""
_READ_FIRST = """
What you have not read you do not know: if you have not read the data, call a tool first."""


def instruction(tools: Sequence[Any], *, is_native: bool) -> str:
    """The way to reply, in words: the same for all agents and all their turns.

    Args:
        tools: The tools, as a `Toolbox` describes them.
        is_native: Whether the server keeps tools apart from the schema, and tells them itself.
    """
    text = _REPLIES
    for title, line in zip(_TITLES, _EXAMPLES.splitlines(), strict=True):
        example = json.loads(line)
        if (is_native or not tools) and example.pop("calls"):
            continue
        for output in example["outputs"] if is_native else ():
            output["payload"] = json.dumps(output["payload"])
        text += f"- {title}: {json.dumps(example)}\n"
    if tools and not is_native:
        text += _CALLS
        for function in (tool["function"] for tool in tools):
            arguments = encode_json(bare_schema(function["parameters"]["properties"]))
            text += f"- {function['name']}: {function['description']} Arguments: {arguments}\n"
    return text + (_READ_FIRST if tools else "")


# --- complaints ---


def check_fits(view: View, wire: WireDecision, *, may_call: bool = True) -> None:
    """Check a decision against the view of the agent.

    An event without recipients is accepted: it is a mistake that agents make, and that the monitor
    finds.

    Raises:
        ValueError: The decision does not fit; the message has all complaints, with the values that
            are allowed.
    """
    if wire.tool_calls() and may_call and view.tools:
        return
    complaints = [*_fate_complaints(view, wire), *_output_complaints(view, wire)]
    if wire.tool_calls():
        complaints.append("calls: there is no tool that you may call now; decide")
    if complaints:
        raise ValueError("; ".join(complaints[:MOST_COMPLAINTS]))


def _fate_complaints(view: View, wire: WireDecision) -> Iterator[str]:
    fated: set[str] = set()
    ids = [event.id for event in view.events]
    for i, fate in enumerate(wire.fates):
        yield from _not_among(f"fates.{i}.event", [fate.event], ids)
        yield from _not_among(f"fates.{i}.fate", [fate.fate], FATES)
        yield from _not_among(f"fates.{i}.to", fate.to, view.team)
        if fate.event in fated:
            yield f"fates.{i}.event: {fate.event!r:.60} has a fate already; name each event once"
        fated.add(fate.event)


def _output_complaints(view: View, wire: WireDecision) -> Iterator[str]:
    for i, output in enumerate(wire.outputs):
        yield from _not_among(f"outputs.{i}.to", output.to, view.team)
        if not output.type:
            yield f"outputs.{i}.type: a type is not empty"
        try:
            payload = decode_json(output.payload)
        except ValueError as error:
            yield f"outputs.{i}.payload: {error}"
            continue
        if output.final:
            yield from (f"outputs.{i}: {flaw}" for flaw in _answer_complaints(view, wire, payload))
    if len(wire.outputs) > 1 and any(output.final for output in wire.outputs):
        yield "outputs: an event that is final must be the only output"


def _answer_complaints(view: View, wire: WireDecision, payload: Any) -> Iterator[str]:
    """The reasons why a final event is no answer, or not yet one."""
    fates = {fate.event: fate.fate for fate in wire.fates}
    work = [e.id for e in view.events if e.sender != SYSTEM and e.type != NOTICE]
    delayed = [event for event in work if fates.get(event, "delay") == "delay"]
    # What is delayed is no part of the answer's lineage, so its loss could not be seen.
    if delayed:
        yield (
            f"an answer consumes what it uses, and {names(delayed)} would be delayed; consume what "
            "it uses, discard what is of no use, or do not submit yet"
        )
    text = payload if isinstance(payload, str) else json.dumps(payload)
    if not text.strip():
        yield "the answer is empty"
    elif written_calls(text, view.tools):
        yield "the answer is a call of a tool that was written down; call the tool instead"
    elif not isinstance(payload, str):  # a text that repeats a text may be right
        for event in view.events:
            if event.sender is None and event.payload == payload:
                yield f"the answer repeats the payload of {event.id}; submit the answer to it"


def _not_among(place: str, values: Sequence[str], allowed: Collection[str]) -> Iterator[str]:
    for value in values:
        if value not in allowed:
            choices = names([*allowed], MOST_ALLOWED)
            yield f"{place}: {value!r:.60} is none of these: {choices}"
