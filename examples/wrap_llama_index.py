"""A team of LlamaIndex agents, monitored: hand-overs that go round, and an early answer.

    python examples/wrap_llama_index.py [DIRECTORY]

Two teams, both run twice: observed, then healed. In the first, an editor and a critic hand over to
each other again and again, until LlamaIndex's limit of steps ends it. In the second, a planner
starts a researcher in the background and answers before the researcher has reported. The models
are functions; no key, no network.
"""

import asyncio  # noqa: TID251  LlamaIndex runs on it
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection

import dig

Reply = Callable[[list[str]], Any]


class Model(FunctionCallingLLM):
    """A model that is a function: from the texts of a conversation to a text, or a call."""

    reply: Any

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True)

    async def achat(self, messages: Any, **more: Any) -> ChatResponse:
        said = self.reply([message.content or "" for message in messages])
        if asyncio.iscoroutine(said):
            said = await said
        if isinstance(said, str):
            return ChatResponse(message=ChatMessage(role="assistant", content=said))
        call = ToolSelection(
            tool_id=f"call-{len(messages)}", tool_name=said[0], tool_kwargs=said[1]
        )
        more = {"tool_calls": [call]}
        return ChatResponse(message=ChatMessage(role="assistant", additional_kwargs=more))

    def get_tool_calls_from_response(self, response: Any, **more: Any) -> list[ToolSelection]:
        return response.message.additional_kwargs.get("tool_calls", [])

    def _prepare_chat_with_tools(self, tools: Any, chat_history: Any = None, **more: Any) -> Any:
        return {"messages": chat_history}

    def chat(self, *args: Any, **more: Any) -> Any: ...
    def stream_chat(self, *args: Any, **more: Any) -> Any: ...
    async def astream_chat(self, *args: Any, **more: Any) -> Any: ...
    def complete(self, *args: Any, **more: Any) -> Any: ...
    def stream_complete(self, *args: Any, **more: Any) -> Any: ...
    async def acomplete(self, *args: Any, **more: Any) -> Any: ...
    async def astream_complete(self, *args: Any, **more: Any) -> Any: ...


def agent(name: str, reply: Reply, *tools: Callable[..., Any]) -> FunctionAgent:
    model = Model(reply=reply)
    return FunctionAgent(
        name=name, description=f"The {name}.", llm=model, tools=[*tools], streaming=False
    )


def is_told(said: list[str]) -> bool:
    """Whether there is a note of the monitor."""
    return any(text.startswith("[monitor]") for text in said)


def newsroom() -> Any:
    """An editor and a critic that hand over until somebody says that this goes round."""

    def edit(said: list[str]) -> Any:
        if is_told(said):
            return "Printed as it is."
        return "handoff", {"to_agent": "critic", "reason": "Is it good?"}

    def criticise(said: list[str]) -> Any:
        return "handoff", {"to_agent": "editor", "reason": "Make it shorter."}

    agents = [agent("editor", edit), agent("critic", criticise)]
    return AgentWorkflow(agents=agents, root_agent="editor")


def trip() -> Any:
    """A planner that answers while its researcher is still at work."""
    reports: list[Any] = []

    async def research(said: list[str]) -> str:
        await asyncio.sleep(0.2)
        return "Rain on Monday."

    researcher = agent("researcher", research)

    async def begin() -> str:
        reports.append(researcher.run(user_msg="The weather?"))
        return "The researcher is at work."

    async def wait() -> str:
        return str(await reports[0])

    def plan(said: list[str]) -> Any:
        if len(said) == 1:
            return "begin", {}
        if not is_told(said):
            return "Go on Monday."
        return f"Go on Tuesday. {said[-1]}" if "Rain" in said[-1] else ("wait", {})

    return [agent("planner", plan, begin, wait), researcher]


def tell(finding: dig.Finding) -> None:
    """Findings are told of while the team works."""
    print(f"  found {finding.pattern} at {finding.ts:.2f} s: {finding.evidence}")


async def ask(team: Any, mode: Any, runs: str, question: str) -> str:
    """Ask a team one question, and say what the monitor has seen and done."""
    print(f"{mode}:")
    team = dig.wrap(team, mode=mode, journal=runs, on_finding=tell)
    entry = team[0] if isinstance(team, list) else team
    try:
        answer = str(await entry.run(user_msg=question))
    except Exception as error:  # LlamaIndex's limit of steps
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
