"""The words and the recipient of a model's response; a team with the waiting runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents import Agent, Handoff, ItemHelpers, ModelResponse, RunState

from dig.adapters.base import NOTE, Session, as_payload

Annotate = Callable[[list[Any], tuple[str, ...]], Sequence[Any]]
"""Puts notes into what a model is given: `(input items, notes) -> input items`."""

NOTHING = ("", "{}", "null")
"""Arguments of a handoff that say nothing."""

IDS = frozenset(
    {"id", "call_id", "approval_request_id", "response_id", "provider_data", "encrypted_content"}
)
"""Keys of a message that no agent reads, and that are new each time the same is said."""


MOST_WAITING = 1_000
"""The number of runs of a team that are known to wait for a person."""


def question(approvals: Iterable[Any]) -> str:
    """Write the question of a run waiting for approvals of tool calls."""
    texts = [f"{item.tool_name}({getattr(item.raw_item, 'arguments', '')})" for item in approvals]
    return f"May this be called: {', '.join(texts)}?"


class WaitingRuns:
    """The waiting runs of a team, the longest waiting first.

    Runs in and outside of a sample are under locks of their own, and share this.
    """

    def __init__(self) -> None:
        self._calls: dict[Any, list[Any]] = {}  # run -> the calls that are to be approved

    def add(self, run: Any, questions: Iterable[Any]) -> list[Any]:
        """A run waits from now on.

        Returns:
            The runs that have waited longest and are too many; they are forgotten.
        """
        self._calls[run] = [question.raw_item for question in questions]
        oldest = [*self._calls][: max(0, len(self._calls) - MOST_WAITING)]
        return [old for old in oldest if self._calls.pop(old, None) is not None]

    def take(self, state: RunState[Any], caller: Any) -> Any:
        """Take the waiting run of a state; ``None``: unknown.

        Ids of calls may repeat, so the run whose calls are the very same objects comes first; a
        state that was stored and read again has others.

        Args:
            state: The state.
            caller: The run that resumes it; ``None``: it is resumed from outside.
        """
        calls = [
            question.raw_item for question in getattr(state._current_step, "interruptions", ())
        ]
        objects, ids, all_calls = {id(call) for call in calls}, _ids(calls), self._calls.copy()
        runs = [
            run for run, waiting in all_calls.items()
            if ids and run.caller in (caller, None) and _ids(waiting) == ids
        ]  # fmt: skip

        def rank(run: Any) -> tuple[bool, bool]:
            has_objects = any(id(call) in objects for call in all_calls[run])
            return run.caller is not caller, not has_objects

        runs.sort(key=rank)
        return next((run for run in runs if self._calls.pop(run, None) is not None), None)

    def take_inner(self, caller: Any) -> list[tuple[Any, list[Any]]]:
        """Take the waiting runs called by a run, with the calls to be approved."""
        inner = [run for run in self._calls.copy() if run.caller is caller]
        return [(run, self._calls.pop(run)) for run in inner]


def _ids(calls: Iterable[Any]) -> set[str]:
    """The ids of calls, given as objects or dicts."""
    fields = (call if isinstance(call, dict) else vars(call) for call in calls)
    return {str(call.get("call_id") or call.get("id")) for call in fields}


@dataclass(eq=False)
class AgentTeam:
    """A wrapped team.

    Attributes:
        session: Its session.
        first: The agent that was wrapped.
        agents: All of its agents, by the names that they have in the trace.
        annotate: Puts notes into what a model is given.
        tools: Whether calls of function tools are told, too.
        has_failed: Whether the adapter has failed in any of its runs: events that this has left
            open may concern others, so that none is healed any more.
        waiting: The runs that wait for a person.
    """

    session: Session
    first: Agent[Any] = field(repr=False)
    agents: Mapping[str, Agent[Any]] = field(repr=False)
    annotate: Annotate
    tools: bool = False
    has_failed: bool = False
    waiting: WaitingRuns = field(default_factory=WaitingRuns, repr=False)

    def has(self, agent: Any) -> bool:
        """Whether an agent belongs to the team."""
        return any(agent is mine for mine in self.agents.values())

    def name_of(self, agent: Agent[Any]) -> str:
        """The name of an agent in the trace; of an agent made by code, the SDK's name."""
        return next((name for name, mine in self.agents.items() if mine is agent), agent.name)


@dataclass(frozen=True)
class HandoffMessage:
    """The words of an agent at a handoff.

    Attributes:
        words: The words of the agent.
        arguments: The arguments of the handoff.
        ignored: Further handoffs of the same response, by the name of the agent, with their
            arguments: the SDK carries out one only, and drops these.
    """

    words: str = ""
    arguments: str = ""
    ignored: tuple[tuple[str, str], ...] = ()

    @property
    def is_silent(self) -> bool:
        """Whether the agent has only named the next agent."""
        return not self.words and self.arguments in NOTHING and not self.ignored

    def payload(self, to: str) -> dict[str, Any]:
        """The words for the next agent."""
        return _handoff_payload(to, self.arguments, self.words)

    def ignored_payloads(self) -> list[dict[str, Any]]:
        """The words for the targets of ignored handoffs."""
        return [_handoff_payload(to, arguments, self.words) for to, arguments in self.ignored]


def words_of(inputs: Any) -> Any:
    """The input of a run as plain JSON, without ids of messages and calls."""
    payload = as_payload(inputs)
    if not isinstance(payload, list):
        return payload
    return [
        {key: value for key, value in item.items() if key not in IDS}
        if isinstance(item, dict) else item
        for item in payload
    ]  # fmt: skip


def handing_over(team: AgentTeam, agent: Agent[Any], response: ModelResponse) -> HandoffMessage:
    """Read the words of a handing-over agent from the model's response."""
    names = handoffs(team, agent)
    calls = [
        (names[item.name], item.arguments)
        for item in response.output
        if item.type == "function_call" and item.name in names
    ]
    words = (ItemHelpers.extract_last_text(item) for item in response.output)
    text = "\n".join(filter(None, words))
    return HandoffMessage(text, calls[0][1] if calls else "", tuple(calls[1:]))


def usage_of(agent: Agent[Any], response: ModelResponse) -> dict[str, Any]:
    """The usage of a model's response, for the budget."""
    usage, model = response.usage, getattr(agent.model, "model", agent.model)
    return {
        "model": model,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": getattr(usage.input_tokens_details, "cached_tokens", None) or 0,
    }


def as_messages(items: list[Any], notes: tuple[str, ...]) -> Sequence[Any]:
    """The input of a model with notes at the end, each a message of the user.

    It is not the system's: a note quotes what agents have said.
    """
    return [*items, *({"role": "user", "content": NOTE.format(note)} for note in notes)]


def handoffs(team: AgentTeam, agent: Agent[Any]) -> Mapping[str, str]:
    """The handoff tools of an agent, with the names of the next agents."""
    names: dict[str, str] = {}
    for item in agent.handoffs:
        tool = item.tool_name if isinstance(item, Handoff) else tool_name(item.name)
        to = next_agent(item)
        names[tool] = item.agent_name if to is None else team.name_of(to)
    return names


def next_agent(item: Any) -> Agent[Any] | None:
    """The target of a handoff, if known before the handoff."""
    to = item._agent_ref() if isinstance(item, Handoff) and item._agent_ref else item
    return to if isinstance(to, Agent) else None


def tool_name(agent: str) -> str:
    """The SDK's name of the handoff tool to an agent; unlike the SDK, logs nothing."""
    return re.sub("[^a-zA-Z0-9_]", "_", f"transfer_to_{agent}").lower()


def _handoff_payload(to: str, arguments: str, words: str) -> dict[str, Any]:
    texts = {"said": words, "with": "" if arguments in NOTHING else arguments}
    return {"handoff": to, **{name: text for name, text in texts.items() if text}}
