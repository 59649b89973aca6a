"""A group chat of AG2 classic, monitored: a handoff that goes round, and one that gets lost.

    python examples/wrap_ag2_classic.py [DIRECTORY]

Two shops, both asked twice: observed, then healed. In the first, two desks each believe that the
other one is responsible. In the second, the front desk hands over to two desks at once; AG2 carries
out the last handoff, and the other half of the question is never answered. The models are scripted;
no key, no network.
"""

import logging
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import anyio
from autogen import ConversableAgent
from autogen.agentchat import a_initiate_group_chat
from autogen.agentchat.group import AgentTarget, OnCondition, StringLLMCondition, TerminateTarget
from autogen.agentchat.group.patterns import DefaultPattern
from autogen.io import IOStream
from autogen.testing import ToolCall, tools_message
from autogen.testing.test_agent import FakeClient, FakeClientResponse, convert_fake_message

import dig

logging.getLogger("autogen").setLevel(logging.ERROR)  # else it tells of every scripted model


class Scripted(FakeClient):
    """A scripted model: it says one thing, or another one, once a note is in front of it."""

    def __init__(self, usually: Any, when_told: Any) -> None:
        super().__init__(())
        self.usually = usually
        self.when_told = when_told

    def create(self, **params: Any) -> FakeClientResponse:
        contents = (str(message.get("content")) for message in params["messages"])
        told = any(content.startswith("[monitor]") for content in contents)
        return FakeClientResponse([convert_fake_message(self.when_told if told else self.usually)])


class Desk(ConversableAgent):
    """An agent with a scripted model, which AG2 does not replace when it adds tools."""

    def __init__(self, name: str, usually: Any, when_told: Any) -> None:
        self.scripted = Scripted(usually, when_told)
        config = {"model": "scripted", "model_client_cls": "Scripted"}
        super().__init__(name, llm_config={"config_list": [config]}, human_input_mode="NEVER")

    client = property(lambda self: self.scripted, lambda self, other: None)


class Quiet(IOStream):
    """Shows nothing of what AG2 would print."""

    def print(self, *objects: Any, **more: Any) -> None:
        pass

    def send(self, event: Any) -> None:
        pass


def hand_over(*tools: str) -> dict[str, Any]:
    """What a model says that hands over."""
    return tools_message(*(ToolCall(tool) for tool in tools))


def undecided() -> DefaultPattern:
    """Refunds and billing each believe that the other one is responsible."""
    refunds = Desk("refunds", hand_over("transfer_to_billing_1"), "Paid back.")
    billing = Desk("billing", hand_over("transfer_to_refunds_1"), "Paid back.")
    return shop(refunds, billing)


def torn() -> DefaultPattern:
    """The front desk hands over to two at once, and only one of them is ever asked."""
    front = Desk("front", hand_over("transfer_to_billing_1", "transfer_to_shipping_2"), "")
    billing = Desk("billing", "Paid back.", "")
    shipping = Desk("shipping", "Sent again.", "Sent again, and billing will pay you back.")
    return shop(front, billing, shipping)


def shop(*desks: Desk) -> DefaultPattern:
    """Desks that can hand over to each other; whoever answers ends the chat."""
    for desk in desks:
        for other in desks:
            if other is not desk:
                condition = StringLLMCondition(prompt=f"This is for {other.name}.")
                handoff = OnCondition(target=AgentTarget(other), condition=condition)
                desk.handoffs.add_llm_condition(handoff)
        desk.handoffs.set_after_work(TerminateTarget())
    return DefaultPattern(initial_agent=desks[0], agents=list(desks))


def tell(finding: dig.Finding) -> None:
    """Findings are told of while the team works."""
    print(f"  found {finding.pattern} at {finding.ts:.2f} s: {finding.evidence}")


async def ask(build: Callable[[], DefaultPattern], mode: Any, runs: str, question: str) -> str:
    """Ask a shop one question, and say what the monitor has seen and done."""
    print(f"{mode}:")
    team = dig.wrap(build(), mode=mode, journal=runs, on_finding=tell)
    with IOStream.set_default(Quiet()):
        result, _, last = await a_initiate_group_chat(team, question, max_rounds=16)
    answer = f"{last.name}: {result.summary}"
    session = dig.session_of(team)
    dig.unwrap(team)
    print(f"  answer: {answer}")
    print(f"  healed: {session.result().heals or 'nothing'}")
    print(f"  trace and result: {session.directory}")
    print(f"  why: digmon check {session.directory}")
    print(f"  as a page: digmon report {session.directory}\n")
    return answer


def main(runs: str) -> list[str]:
    """Both shops, observed and healed; returns the four answers."""
    asked = (
        (undecided, "I was charged twice."),
        (torn, "I was charged twice, and nothing has come."),
    )
    return [
        anyio.run(ask, build, mode, runs, question)
        for build, question in asked
        for mode in ("observe", "heal")
    ]


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="wrapped-"))
