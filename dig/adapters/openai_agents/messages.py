"""What a model's response says, and to whom."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents import Agent, Handoff, ItemHelpers, ModelResponse

NOTHING = ("", "{}", "null")
"""Arguments of a handoff that say nothing."""


@dataclass(frozen=True)
class Talk:
    """What an agent said when it handed over.

    Attributes:
        said: Its words.
        given: The arguments of the handoff.
        ignored: Further handoffs of the same response, by the name of the agent, with their
            arguments: the SDK carries out one only, and drops these.
    """

    said: str = ""
    given: str = ""
    ignored: tuple[tuple[str, str], ...] = ()

    @property
    def is_silent(self) -> bool:
        """Whether it has only said who is next."""
        return not self.said and self.given in NOTHING and not self.ignored

    def payload(self, to: str) -> dict[str, Any]:
        """What the next agent is told."""
        return _told(to, self.given, self.said)

    def lost(self) -> list[dict[str, Any]]:
        """What those are not told that were to be next too."""
        return [_told(to, given, self.said) for to, given in self.ignored]


@dataclass
class Heard:
    """The latest response of each run's model, until it is known what becomes of it."""

    response: ModelResponse | None = None
    agent: Agent[Any] | None = field(default=None, repr=False)

    def handing(self, to: str) -> Talk:
        """What was said with a handoff."""
        if self.response is None or self.agent is None:
            return Talk()
        names = handoffs(self.agent)
        calls = [
            (names[item.name], item.arguments)
            for item in self.response.output
            if item.type == "function_call" and item.name in names
        ]
        words = (ItemHelpers.extract_last_text(item) for item in self.response.output)
        said = "\n".join(text for text in words if text)
        given = calls[0][1] if calls else ""
        return Talk(said, given, tuple(calls[1:]))


def handoffs(agent: Agent[Any]) -> Mapping[str, str]:
    """The tools by which an agent hands over, and to whom."""
    return {
        **{tool_name(item.name): item.name for item in agent.handoffs if isinstance(item, Agent)},
        **{item.tool_name: item.agent_name for item in agent.handoffs if isinstance(item, Handoff)},
    }


def tool_name(agent: str) -> str:
    """What the SDK calls the tool that hands over to an agent; unlike the SDK, it logs nothing."""
    return re.sub("[^a-zA-Z0-9_]", "_", f"transfer_to_{agent}").lower()


def _told(to: str, given: str, said: str) -> dict[str, Any]:
    told: dict[str, Any] = {"handoff": to}
    if said:
        told["said"] = said
    if given not in NOTHING:
        told["with"] = given
    return told
