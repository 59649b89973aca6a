"""Names of attributes, for the spans of our exports and for the reader of all spans."""

from __future__ import annotations

KIND = "openinference.span.kind"
OPERATION = "gen_ai.operation.name"
AGENT_NAME, TOOL_NAME = "gen_ai.agent.name", "gen_ai.tool.name"
ERROR_TYPE = "error.type"
CONVERSATION = "gen_ai.conversation.id"
SESSION = "session.id"
INPUT, OUTPUT = "input.value", "output.value"
INPUT_MESSAGES, OUTPUT_MESSAGES = "gen_ai.input.messages", "gen_ai.output.messages"
INPUT_TOKENS, OUTPUT_TOKENS = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"

ACTIVATION, AGENT = "dig.activation.id", "dig.agent.name"
TRIGGER = "dig.trigger"
IN_EVENTS, IN_PRODUCERS = "dig.in.event_ids", "dig.in.producers"
OUT_EVENTS, OUT_TYPES, OUT_TO = "dig.out.event_ids", "dig.out.types", "dig.out.to"
FINAL, BECAUSE, CANCELLED = "dig.final", "dig.because", "dig.cancelled"
EVENT, TARGET = "dig.event.id", "dig.target"
MARKS = {
    "delay": "dig.event.delayed",
    "reroute": "dig.event.rerouted",
    "discard": "dig.event.discarded",
}
"""The span events for fates other than `consume`."""
