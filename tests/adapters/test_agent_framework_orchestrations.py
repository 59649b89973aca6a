"""Microsoft agent-framework, wrapped: the workflows that its orchestration builders make."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

pytest.importorskip(
    "agent_framework_orchestrations", reason="agent-framework-orchestrations is not installed"
)

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    Workflow,
)
from agent_framework.orchestrations import (
    ConcurrentBuilder,
    GroupChatBuilder,
    HandoffBuilder,
    SequentialBuilder,
)

from dig.graph.records import Emit

from .agent_framework_teams import Watched
from .harness import Scenario, Script, play

Act = Callable[[list[str]], str | None]
"""What a model says to the texts in front of it; ``None``: it hands over."""


class Model(FunctionInvocationLayer[Any], BaseChatClient[Any]):  # type: ignore[misc]
    """A scripted model, which may hand over to another agent."""

    def __init__(self, script: Script, name: str, act: Act, other: str) -> None:
        super().__init__()
        self._script = script
        self._name = name
        self._act = act
        self._other = other

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **more: Any
    ) -> Awaitable[ChatResponse[Any]]:
        texts = [message.text for message in messages]

        async def respond() -> ChatResponse[Any]:
            async with self._script.turn(self._name, texts) as number:
                text = self._act(texts)
            call = Content.from_function_call(
                f"{self._name}-{number}", f"handoff_to_{self._other}", arguments="{}"
            )
            return ChatResponse(messages=[Message("assistant", [call if text is None else text])])

        return respond()


def pair(script: Script, act: Act) -> list[Agent[Any]]:
    return [
        Agent(
            Model(script, name, act, other), name=name,
            require_per_service_call_history_persistence=True,
        )
        for name, other in (("ann", "bob"), ("bob", "ann"))
    ]  # fmt: skip


def sequential(script: Script) -> Workflow:
    return SequentialBuilder(participants=pair(script, lambda texts: "Hm")).build()


def concurrent(script: Script) -> Workflow:
    return ConcurrentBuilder(participants=pair(script, lambda texts: "Hm")).build()


def group_chat(script: Script) -> Workflow:
    return GroupChatBuilder(
        participants=pair(script, lambda texts: "Hm"), max_rounds=4,
        selection_func=lambda state: ("ann", "bob")[state.current_round % 2],
    ).build()  # fmt: skip


def handoffs(script: Script) -> Workflow:
    """Two who hand over to each other until they are told, or tired of it."""

    def act(texts: list[str]) -> str | None:
        is_tired = sum(script.turns.values()) > 14
        is_told = any(text.startswith("[monitor]") for text in texts)
        return "Solved" if is_told else "Too late" if is_tired else None

    agents = pair(script, act)
    return HandoffBuilder(participants=agents).with_start_agent(agents[0]).build()


async def ask(team: Workflow) -> Any:
    return [(event.type, event.executor_id) for event in await team.run("Help")]


TEAMS = [sequential, concurrent, group_chat, handoffs]


@pytest.mark.parametrize("build", TEAMS)
def test_who_only_observes_changes_nothing_that_a_host_can_see(build: Any) -> None:
    asked = Scenario(build.__name__, build, ask)
    for seed in range(3):
        watched = Watched()
        bare, mine = play(asked, seed=seed), play(asked, watched, seed=seed)
        assert mine == bare and mine.steps == bare.steps and not mine.raised
        assert {*watched.patterns} == ({"ER"} if build is handoffs else set())
        watched.must_be_sound()


def test_er_agents_that_hand_over_to_each_other_end_it_when_they_are_told() -> None:
    watched = Watched("heal")
    outcome = play(Scenario("handoffs", handoffs, ask), watched)
    assert watched.patterns == ["ER"] and watched.healed() == ["inject"]
    assert sum(what == "ends" for _, what, _ in outcome.log) == 6
    assert not any(isinstance(record, Emit) and record.final for record in watched.records)
    assert watched.incidents()[-1] == "waits"  # for what the user says next
    watched.must_be_sound()
