"""A team of Google ADK, monitored: a question that is asked for ever, and an early answer.

    python examples/wrap_google_adk.py [DIRECTORY]

Two teams, both run twice: observed, then healed. In the first, an editor asks a critic the same
again and again, until ADK's limit of requests to models ends it. In the second, a planner starts a
researcher in the background and answers before the researcher has reported. The models are
functions; no key, no network.
"""

import asyncio  # noqa: TID251  ADK runs on it
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from typing import Any

from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

import dig


class Scripted(BaseLlm):
    """A model that is a function of the texts that it is given."""

    reply: Callable[[list[str]], types.Part]

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        """Answer a request."""
        parts = [part for content in llm_request.contents for part in content.parts]
        texts = [part.text or str(part.function_response) for part in parts]
        content = types.Content(role="model", parts=[self.reply(texts)])
        yield LlmResponse(content=content)


def agent(name: str, reply: Callable[[list[str]], types.Part], *tools: Any) -> LlmAgent:
    return LlmAgent(name=name, model=Scripted(model="scripted", reply=reply), tools=[*tools])


def text(words: str) -> types.Part:
    return types.Part.from_text(text=words)


def call(tool: str, **arguments: Any) -> types.Part:
    return types.Part.from_function_call(name=tool, args=arguments)


def is_told(texts: list[str]) -> bool:
    """Whether there is a note of the monitor."""
    return any(words.startswith("[monitor]") for words in texts)


def newsroom() -> LlmAgent:
    """An editor that asks a critic until somebody says that this goes round."""
    critic = agent("critic", lambda texts: text("Make it shorter."))

    def edit(texts: list[str]) -> types.Part:
        if is_told(texts):
            return text("Printed as it is.")
        return call("critic", request="Is it good?")

    return agent("editor", edit, AgentTool(critic))


async def ask(team: LlmAgent, question: str) -> str:
    """Ask a team one question in a new session, and return the last words."""
    runner = InMemoryRunner(agent=team, app_name="example")
    session = await runner.session_service.create_session(app_name="example", user_id="me")
    said = ""
    async for event in runner.run_async(
        user_id="me", session_id=session.id, new_message=types.UserContent(question),
        run_config=RunConfig(max_llm_calls=40),
    ):  # fmt: skip
        if event.content and event.content.parts:
            said = event.content.parts[-1].text or said
    return said


def trip() -> LlmAgent:
    """A planner that answers while its researcher is still at work."""
    reports: list[asyncio.Task[str]] = []

    async def research() -> str:
        await asyncio.sleep(0.2)
        return "Rain on Monday."

    researcher = agent(
        "researcher",
        lambda texts: text("Rain on Monday.") if len(texts) > 1 else call("research"),
        research,
    )

    def plan(texts: list[str]) -> types.Part:
        if len(texts) == 1:
            return call("begin")
        if is_told(texts) and "Rain" not in texts[-1]:
            return call("wait")
        return text("Go on Tuesday." if is_told(texts) else "Go on Monday.")

    async def begin() -> str:
        reports.append(asyncio.create_task(ask(researcher, "The weather?")))
        await asyncio.sleep(0)
        return "The researcher is at work."

    async def wait() -> str:
        return await reports[0]

    return agent("planner", plan, begin, wait)


def tell(finding: dig.Finding) -> None:
    """Findings are told of while the team works."""
    print(f"  found {finding.pattern} at {finding.ts:.2f} s: {finding.evidence}")


async def watch(team: LlmAgent, mode: Any, runs: str, question: str) -> str:
    """Ask a wrapped team one question, and say what the monitor has seen and done."""
    print(f"{mode}:")
    dig.wrap(team, mode=mode, journal=runs, on_finding=tell)
    try:
        answer = await ask(team, question)
    except LlmCallsLimitExceededError as error:
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
    return [await watch(team(), mode, runs, q) for team, q in asked for mode in ("observe", "heal")]


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="wrapped-")))
