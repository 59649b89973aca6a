"""A team of Pydantic AI agents, monitored: a question that is asked for ever, and an early answer.

    python examples/wrap_pydantic_ai.py [DIRECTORY]

Two teams, both run twice: observed, then healed. In the first, an editor asks a critic the same
again and again, until Pydantic AI's limit of requests ends it. In the second, a planner starts a
researcher in the background and answers before the researcher has reported. The models are
functions; no key, no network.
"""

import asyncio  # noqa: TID251  Pydantic AI runs on it
import sys
import tempfile
from typing import Any

from pydantic_ai import Agent, UsageLimitExceeded
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

import dig

Team = dict[str, Agent[None, str]]


def said(messages: Any) -> list[str]:
    """The texts of a conversation, the last one last."""
    parts = (part for message in messages for part in message.parts)
    return [str(getattr(part, "content", "")) for part in parts]


def is_told(messages: Any) -> bool:
    """Whether there is a note of the monitor."""
    return any(text.startswith("[monitor]") for text in said(messages))


def text(words: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(words)])


def call(tool: str, number: int) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart(tool, {}, tool_call_id=f"{tool}-{number}")])


def newsroom() -> Team:
    """An editor that asks a critic until somebody says that this goes round."""
    critic = Agent(FunctionModel(lambda messages, info: text("Make it shorter.")), name="critic")

    def edit(messages: Any, info: Any) -> ModelResponse:
        if is_told(messages):
            return text("Printed as it is.")
        return call("ask_critic", len(messages))

    editor = Agent(FunctionModel(edit), name="editor")

    @editor.tool_plain
    async def ask_critic() -> str:
        return (await critic.run("Is it good?")).output

    return {"editor": editor, "critic": critic}


def trip() -> Team:
    """A planner that answers while its researcher is still at work."""
    reports: list[asyncio.Task[Any]] = []

    async def research(messages: Any, info: Any) -> ModelResponse:
        await asyncio.sleep(0.2)
        return text("Rain on Monday.")

    researcher = Agent(FunctionModel(research), name="researcher")

    def plan(messages: Any, info: Any) -> ModelResponse:
        if len(messages) == 1:
            return call("begin", 1)
        if is_told(messages) and "Rain" not in said(messages)[-1]:
            return call("wait", len(messages))
        if is_told(messages):
            return text(f"Go on Tuesday. {said(messages)[-1]}")
        return text("Go on Monday.")

    planner = Agent(FunctionModel(plan), name="planner")

    @planner.tool_plain
    async def begin() -> str:
        reports.append(asyncio.create_task(researcher.run("The weather?")))
        await asyncio.sleep(0)
        return "The researcher is at work."

    @planner.tool_plain
    async def wait() -> str:
        return str((await reports[0]).output)

    return {"planner": planner, "researcher": researcher}


def tell(finding: dig.Finding) -> None:
    """Findings are told of while the team works."""
    print(f"  found {finding.pattern} at {finding.ts:.2f} s: {finding.evidence}")


async def ask(team: Team, mode: Any, runs: str, question: str) -> str:
    """Ask a team one question, and say what the monitor has seen and done."""
    print(f"{mode}:")
    team = dig.wrap(team, mode=mode, journal=runs, on_finding=tell)
    try:
        answer = (await next(iter(team.values())).run(question)).output
    except UsageLimitExceeded as error:
        answer = f"{type(error).__name__}: {error}"
    await asyncio.sleep(0.3)  # for work that nobody has waited for
    session = dig.session_of(team)
    dig.unwrap(team)
    print(f"  answer: {answer}")
    print(f"  healed: {session.result().heals or 'nothing'}")
    print(f"  trace and result: {session.directory}")
    print(f"  why: digmon check {session.directory}")
    print(f"  as a page: digmon report {session.directory}\n")
    return answer


async def main(runs: str) -> list[str]:
    """Both teams, observed and healed; returns the four answers."""
    asked = ((newsroom, "Print it."), (trip, "When shall I go?"))
    return [await ask(team(), mode, runs, q) for team, q in asked for mode in ("observe", "heal")]


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="wrapped-")))
