"""Running an agent once more, with an answer that came back in front of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.run import DEFAULT_MAX_TURNS


def turns_left(result: Any, options: Mapping[str, Any]) -> int | None:
    """How many turns a run has left of those that its caller allows; ``None``: any number."""
    most = options.get("max_turns", DEFAULT_MAX_TURNS)
    return None if most is None else most - len(result.raw_responses)


async def further(runner: Any, result: Any, options: Mapping[str, Any]) -> Any:
    """Go on where a run has ended: its last agent is given all that was said."""
    kept = {name: value for name, value in options.items() if name != "context"}
    kept["max_turns"] = turns_left(result, options)
    given = [] if options.get("session") is not None else result.to_input_list()
    return await runner.run(result.last_agent, given, context=result.context_wrapper, **kept)


def joined(first: Any, second: Any) -> Any:
    """The result of a run that was taken up again, as that of one run."""
    second.input = first.input
    for name in (
        "new_items", "raw_responses", "input_guardrail_results", "output_guardrail_results",
        "tool_input_guardrail_results", "tool_output_guardrail_results",
    ):  # fmt: skip
        setattr(second, name, [*getattr(first, name), *getattr(second, name)])
    return second
