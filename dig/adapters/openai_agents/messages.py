"""The words of a model's response, and their recipient."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents import Agent, Handoff, ItemHelpers, ModelResponse

from dig.adapters.base import NOTE, Session

Annotate = Callable[[list[Any], tuple[str, ...]], Sequence[Any]]
"""Puts notes into what a model is given: `(input items, notes) -> input items`."""

NOTHING = ("", "{}", "null")
"""Arguments of a handoff that say nothing."""


@dataclass(eq=False)
class AgentTeam:
    """A wrapped team.

    Attributes:
        session: Its session.
        first: The agent that was wrapped.
        agents: All of its agents.
        annotate: Puts notes into what a model is given.
        tools: Whether calls of function tools are told, too.
        has_failed: Whether the adapter has failed in any of its runs: events that this has left
            open may concern others, so that none is healed any more.
    """

    session: Session
    first: Agent[Any] = field(repr=False)
    agents: tuple[Agent[Any], ...] = field(repr=False)
    annotate: Annotate
    tools: bool = False
    has_failed: bool = False

    def has(self, agent: Any) -> bool:
        """Whether an agent is one of its own."""
        return any(agent is one for one in self.agents)


@dataclass(frozen=True)
class HandoffMessage:
    """The words of an agent that hands over.

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
        """Whether the agent has only named the next agent."""
        return not self.said and self.given in NOTHING and not self.ignored

    def payload(self, to: str) -> dict[str, Any]:
        """The words for the next agent."""
        return _told(to, self.given, self.said)

    def lost(self) -> list[dict[str, Any]]:
        """The words for the agents that were to be next too, and are not told."""
        return [_told(to, given, self.said) for to, given in self.ignored]


def handing_over(agent: Agent[Any], response: ModelResponse) -> HandoffMessage:
    """The words of an agent, by its model's response, when it handed over."""
    names = handoffs(agent)
    calls = [
        (names[item.name], item.arguments)
        for item in response.output
        if item.type == "function_call" and item.name in names
    ]
    words = (ItemHelpers.extract_last_text(item) for item in response.output)
    said = "\n".join(text for text in words if text)
    given = calls[0][1] if calls else ""
    return HandoffMessage(said, given, tuple(calls[1:]))


def as_messages(items: list[Any], notes: tuple[str, ...]) -> Sequence[Any]:
    """The input of a model with the notes at its end, each a message of the user.

    It is not the system's: a note quotes what agents have said.
    """
    return [*items, *({"role": "user", "content": NOTE.format(note)} for note in notes)]


def handoffs(agent: Agent[Any]) -> Mapping[str, str]:
    """The tools by which an agent hands over, with the names of the next agents."""
    return {
        **{tool_name(item.name): item.name for item in agent.handoffs if isinstance(item, Agent)},
        **{item.tool_name: item.agent_name for item in agent.handoffs if isinstance(item, Handoff)},
    }


def tool_name(agent: str) -> str:
    """The SDK's name of the tool that hands over to an agent; unlike the SDK, it logs nothing."""
    return re.sub("[^a-zA-Z0-9_]", "_", f"transfer_to_{agent}").lower()


def _told(to: str, given: str, said: str) -> dict[str, Any]:
    more = {"said": said, "with": "" if given in NOTHING else given}
    return {"handoff": to, **{name: text for name, text in more.items() if text}}
