"""Two crews of CrewAI, monitored: a question that is asked for ever, and an early answer.

    python examples/wrap_crewai.py [DIRECTORY]

Both crews are run twice: observed, then healed. In the first, an editor asks a critic the same
again and again, until CrewAI's limit of iterations ends it. In the second, a planner starts a
researcher in the background and answers before the researcher has reported. The models are
scripted; no key, no network, and CrewAI's telemetry is off.
"""

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextvars import copy_context
from threading import Event, Thread
from typing import Any

os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"
os.environ["CREWAI_TRACING_ENABLED"] = "false"
os.environ.setdefault("CREWAI_STORAGE_DIR", tempfile.mkdtemp(prefix="crewai-"))
warnings.simplefilter("ignore")  # CrewAI warns of itself

from crewai import Agent, BaseLLM, Crew, Task  # noqa: E402
from crewai.tools import tool  # noqa: E402

import dig  # noqa: E402


class Scripted(BaseLLM):
    """A model that is a function of all that it is given."""

    def call(self, messages: Any, *args: Any, **options: Any) -> str:
        return SCRIPTS[self.model]("\n".join(str(message["content"]) for message in messages))

    def supports_function_calling(self) -> bool:
        return False


SCRIPTS: dict[str, Callable[[str], str]] = {}


def agent(role: str, script: Callable[[str], str], *tools: Any) -> Agent:
    SCRIPTS[role] = script
    llm = Scripted(model=role)
    return Agent(role=role, goal="help", backstory="-", llm=llm, tools=[*tools], max_iter=12)


def crew(first: Agent, what: str, *others: Agent) -> Crew:
    task = Task(description=what, expected_output="a sentence", agent=first)
    return Crew(agents=[first, *others], tasks=[task])


def answer(text: str) -> str:
    return f"Thought: done.\nFinal Answer: {text}"


def use(name: str, **arguments: Any) -> str:
    return f"Thought: first this.\nAction: {name}\nAction Input: {json.dumps(arguments)}"


def is_told(given: str) -> bool:
    """Whether there is a note of the monitor."""
    return "[monitor]" in given


def newsroom() -> Crew:
    """An editor that asks a critic until somebody says that this goes round."""
    critic = agent("critic", lambda given: answer("Make it shorter."))

    @tool("ask_critic")
    def ask_critic(version: int) -> str:
        """Ask the critic about a version."""
        return critic.kickoff("Is it good?").raw

    def edit(given: str) -> str:
        if is_told(given) or "Tool" not in given:
            return answer("Printed as it is.")
        return use("ask_critic", version=given.count("Make it shorter."))

    return crew(agent("editor", edit, ask_critic), "Print it.", critic)


def trip() -> Crew:
    """A planner that answers while its researcher is still at work."""
    reports: list[Thread] = []
    begun, wanted = Event(), Event()

    def research(given: str) -> str:
        begun.set()
        wanted.wait(0.5)
        return answer("Rain on Monday.")

    researcher = agent("researcher", research)

    @tool("begin")
    def begin(question: str) -> str:
        """Start the researcher."""
        # A thread that is to belong to its agent's turn runs in a copy of the context.
        context = copy_context()
        reports.append(Thread(target=context.run, args=(researcher.kickoff, question)))
        reports[0].start()
        begun.wait()
        return "The researcher is at work."

    @tool("wait")
    def wait(question: str) -> str:
        """Wait for the researcher."""
        wanted.set()
        reports[0].join()
        return "Rain on Monday."

    def plan(given: str) -> str:
        if "Rain on" in given:
            return answer("Go on Tuesday. Rain on Monday.")
        if is_told(given):
            return use("wait", question="The weather?")
        return (
            answer("Go on Monday.") if "at work" in given else use("begin", question="The weather?")
        )

    return crew(agent("planner", plan, begin, wait), "When shall I go?", researcher)


def tell(finding: dig.Finding) -> None:
    """Findings are told of while the crew works."""
    print(f"  found {finding.pattern} at {finding.ts:.2f} s: {finding.evidence}")


def ask(team: Crew, mode: Any, runs: str) -> str:
    """Kick a crew off, and say what the monitor has seen and done."""
    print(f"{mode}:")
    team = dig.wrap(team, mode=mode, journal=runs, on_finding=tell)
    answer = str(team.kickoff().raw)
    session = dig.session_of(team)
    Event().wait(0.6)  # for work that nobody has waited for
    dig.unwrap(team)
    print(f"  answer: {answer}")
    print(f"  healed: {session.result().heals or 'nothing'}")
    print(f"  trace and result: {session.directory}")
    print(f"  why: digmon check {session.directory}")
    print(f"  as a page: digmon report {session.directory}\n")
    return answer


def main(runs: str) -> list[str]:
    """Both crews, observed and healed; returns the four answers."""
    return [ask(build(), mode, runs) for build in (newsroom, trip) for mode in ("observe", "heal")]


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="wrapped-"))
