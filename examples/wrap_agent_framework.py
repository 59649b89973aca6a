"""Workflows of Microsoft's agent-framework, monitored: a handoff that goes round, a silent join.

    python examples/wrap_agent_framework.py [DIRECTORY]

Two workflows, both run twice: observed, then healed. In the first, two desks of a shop each
believe that the other one is responsible, until the workflow's iterations are used up. In the
second, a writer waits for two reviews; one reviewer has nothing to say and says nothing, and the
workflow ends in silence, without a text. The models are scripted; no key, no network.
"""

import logging
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
from agent_framework import (
    Agent,
    AgentExecutorResponse,
    BaseChatClient,
    ChatResponse,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowConvergenceException,
    executor,
)

import dig

NOT_MINE = "That is not my department."


class Clerk(BaseChatClient[Any]):
    """A scripted model: it says that it is not responsible, until a note is in front of it."""

    async def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **more: Any
    ) -> ChatResponse[Any]:
        is_told = messages[-1].text.startswith("[monitor]")
        text = "Nobody else will: we pay it back." if is_told else NOT_MINE
        return ChatResponse(messages=[Message("assistant", [text])])


def is_not_mine(said: AgentExecutorResponse) -> bool:
    """Whether a desk has only sent a customer away."""
    return said.agent_response.text == NOT_MINE


def shop() -> Workflow:
    """Two desks that hand a customer to each other."""
    refunds, billing = (Agent(Clerk(), name=name) for name in ("refunds", "billing"))
    return (
        WorkflowBuilder(start_executor=refunds, max_iterations=12)
        .add_edge(refunds, billing, condition=is_not_mine)
        .add_edge(billing, refunds, condition=is_not_mine)
        .build()
    )


@executor(id="router")
async def router(question: str, ctx: WorkflowContext[str]) -> None:
    """Gives a draft to both reviewers."""
    await ctx.send_message(f"A draft: {question}")


@executor(id="facts")
async def facts(draft: str, ctx: WorkflowContext[str]) -> None:
    """A reviewer who answers."""
    await ctx.send_message("it rains on 140 days a year")


@executor(id="style")
async def style(draft: str, ctx: WorkflowContext[str]) -> None:
    """A reviewer who only speaks when there is something wrong, or when told that all wait."""
    if dig.notes():
        await ctx.send_message("nothing to complain of")


@executor(id="writer")
async def writer(reviews: list[str], ctx: WorkflowContext[Any, str]) -> None:
    """Writes the text, when all reviews are there."""
    await ctx.yield_output(f"A text about rain; reviews: {'; '.join(reviews)}.")


def writers() -> Workflow:
    """A writer who waits for two reviews, of which one never comes."""
    return (
        WorkflowBuilder(start_executor=router)
        .add_fan_out_edges(router, [facts, style])
        .add_fan_in_edges([facts, style], writer)
        .build()
    )


def tell(finding: dig.Finding) -> None:
    """Findings are told of while the team works."""
    print(f"  found {finding.pattern} at {finding.ts:.2f} s: {finding.evidence}")


def is_handoff(given: Any, sent: Any) -> bool:
    """Whether what an executor sends only hands on what it was given."""
    return isinstance(sent, AgentExecutorResponse) and is_not_mine(sent)


async def ask(workflow: Workflow, mode: Any, runs: str, question: str) -> str:
    """Ask a team one question, and say what the monitor has seen and done."""
    print(f"{mode}:")
    team = dig.wrap(workflow, mode=mode, journal=runs, on_finding=tell, handoff=is_handoff)
    try:
        outputs = (await team.run(question)).get_outputs()
        answer = str(getattr(outputs[-1], "text", outputs[-1])) if outputs else "none"
    except WorkflowConvergenceException as error:
        answer = f"{type(error).__name__}: {error}"
    session = dig.session_of(team)
    dig.unwrap(team)
    print(f"  answer: {answer}")
    print(f"  healed: {session.result().heals or 'nothing'}")
    print(f"  trace and result: {session.directory}")
    print(f"  why: digmon check {session.directory}")
    print(f"  as a page: digmon report {session.directory}\n")
    return answer


def main(runs: str) -> list[str]:
    """Both teams, observed and healed; returns the four answers."""
    logging.getLogger("agent_framework").setLevel(logging.ERROR)  # the clerks have no tools
    asked = ((shop, "I was charged twice."), (writers, "rain in Rome."))
    return [
        anyio.run(ask, team(), mode, runs, question)
        for team, question in asked
        for mode in ("observe", "heal")
    ]


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="wrapped-"))
