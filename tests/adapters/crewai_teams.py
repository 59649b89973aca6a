"""Crews that use each feature of CrewAI, and how they are asked. Nothing leaves the machine."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Sequence
from tempfile import mkdtemp
from threading import Thread
from typing import Any

import pytest

os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"
os.environ["CREWAI_TRACING_ENABLED"] = "false"
os.environ["CREWAI_TESTING"] = "true"
os.environ["CREWAI_STORAGE_DIR"] = mkdtemp(prefix="crewai-")  # it keeps the outputs of tasks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns of itself
    import crewai  # noqa: F401

from crewai import Agent, BaseLLM, Crew, Process, Task
from crewai.tasks.conditional_task import ConditionalTask
from crewai.tools import tool as as_tool
from pydantic import PrivateAttr

from dig.adapters import crewai as adapter

from . import framework_watch
from .harness import Scenario, Script

ITS_OWN = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:function callbacks cannot be serialized"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""CrewAI uses what it deprecates, and leaves connections open."""

Reply = Callable[[str, int], str]
"""What a model says: `(all that it was given, number of its turn) -> text`, or raises."""


class Watched(framework_watch.Watched):
    adapter = adapter


class Model(BaseLLM):  # type: ignore[misc]
    """A model that gives one reply after the other, and the last one from then on."""

    _script: Script = PrivateAttr()
    _name: str = PrivateAttr()
    _replies: Sequence[Reply] = PrivateAttr()

    def call(self, messages: Any, *args: Any, **options: Any) -> str:
        given = "\n".join(str(message["content"]) for message in messages)
        script, name = self._script, self._name
        script.turns[name] = number = script.turns.get(name, 0) + 1
        script.log.append((name, "sees", given))
        self._track_token_usage_internal({"prompt_tokens": 90, "completion_tokens": 10})
        reply = self._replies[min(number, len(self._replies)) - 1](given, number)
        script.log.append((name, "ends", ""))
        return reply

    async def acall(self, messages: Any, *args: Any, **options: Any) -> str:
        return self.call(messages)

    def supports_function_calling(self) -> bool:
        return False

    def supports_stop_words(self) -> bool:
        return False

    def get_context_window_size(self) -> int:
        return 100_000


def answer(text: str) -> str:
    return f"Thought: I know.\nFinal Answer: {text}"


def says(text: str) -> Reply:
    return lambda given, number: answer(text)


def uses(tool: str, **arguments: Any) -> Reply:
    """Call a tool; `ask` and `delegate` are the tools for coworkers."""
    return lambda given, number: (
        f"Thought: first this.\nAction: {tool}\nAction Input: {json.dumps(arguments)}"
    )


def asks(coworker: str, question: str) -> Reply:
    return uses("ask_question_to_coworker", question=question, context="-", coworker=coworker)


def delegates(coworker: str, task: str) -> Reply:
    return uses("delegate_work_to_coworker", task=task, context="-", coworker=coworker)


def raises(given: str, number: int) -> str:
    raise ValueError("no model today")


def notes(given: str) -> bool:
    """Whether a model was given a note."""
    return "[monitor]" in given


def model(script: Script, name: str, *replies: Reply) -> Model:
    made = Model(model="scripted")
    made._script, made._name, made._replies = script, name, replies
    return made


def agent(script: Script, name: str, *replies: Reply, **more: Any) -> Agent:
    llm = model(script, name, *replies)
    more = {"max_retry_limit": 0, "goal": "answer", "backstory": "none", **more}
    return Agent(role=name, llm=llm, **more)


def task(description: str, by: Agent | None = None, **more: Any) -> Task:
    return Task(description=description, expected_output="a text", agent=by, **more)


def crew(*tasks: Task, agents: Sequence[Agent] = (), **more: Any) -> Crew:
    found = {id(task.agent): task.agent for task in tasks if task.agent is not None}
    members = [*found.values(), *agents]
    return Crew(agents=members, tasks=[*tasks], **more)


def shown(result: Any) -> Any:
    """All of a result that a host would look at."""
    return {
        "answer": result.raw,
        "tasks": [(output.agent, output.raw) for output in result.tasks_output],
        "tokens": result.token_usage.total_tokens,
    }


INPUTS = {"what": "rain"}


async def kickoff(team: Any, inputs: Any = INPUTS) -> Any:
    """On the caller's thread, on which no loop runs."""
    return shown(await on_thread(lambda: team.kickoff(inputs=inputs)))


async def on_thread(call: Callable[[], Any]) -> Any:
    """What a thread of its own returns or raises; the loop stands still meanwhile."""
    ended: list[Any] = []

    def run() -> None:
        try:
            ended.append((call(), None))
        except BaseException as error:
            ended.append((None, error))

    thread = Thread(target=run)
    thread.start()
    thread.join()
    ((returned, raised),) = ended
    if raised is not None:
        raise raised
    return returned


async def kickoff_async(team: Any, inputs: Any = INPUTS) -> Any:
    return shown(await team.kickoff_async(inputs=inputs))


async def akickoff(team: Any, inputs: Any = INPUTS) -> Any:
    return shown(await team.akickoff(inputs=inputs))


async def for_each(team: Any) -> Any:
    made = [{"what": "rain"}, {"what": "snow"}]
    return [shown(one) for one in await on_thread(lambda: team.kickoff_for_each(inputs=made))]


async def afor_each(team: Any) -> Any:
    made = [{"what": "rain"}, {"what": "snow"}]
    return [shown(one) for one in await team.akickoff_for_each(inputs=made)]


async def stream(team: Any) -> Any:
    def read() -> Any:
        team.stream = True
        streamed = team.kickoff(inputs=INPUTS)
        return [[chunk.content for chunk in streamed], shown(streamed.result)]

    return await on_thread(read)


async def ask(team: Any, question: Any = "What now?") -> Any:
    return (await on_thread(lambda: team.kickoff(question))).raw


async def ask_async(team: Any) -> Any:
    return (await team.kickoff_async([{"role": "user", "content": "What now?"}])).raw


def scenario(
    build: Callable[[Script], Any], drive: Callable[[Any], Any] = kickoff, name: str = ""
) -> Scenario:
    name = name or f"{build.__name__}-{drive.__name__}"
    return Scenario(name, build, drive, in_threads=True)


# --- what each feature of CrewAI is used by ---


def alone(script: Script) -> Any:
    """One agent, without a crew."""
    return agent(script, "a", says("all done"))


def chain(script: Script) -> Any:
    """Three tasks; the last one has the outputs of both others."""
    a, b, c = (agent(script, name, says(f"{name} done")) for name in "abc")
    return crew(task("find {what}", a), task("check it", b), task("write it", c))


def contexts(script: Script) -> Any:
    """The third task has the first one's output alone, the second has none, by one agent."""
    a, b = agent(script, "a", says("a done")), agent(script, "b", says("b done"))
    first = task("find {what}", a)
    return crew(first, task("weigh it", a, context=[]), task("write it", b, context=[first]))


def delegating(script: Script) -> Any:
    """Two coworkers are asked; a tool of one asks another agent."""
    inner, b = agent(script, "inner", says("inner done")), agent(script, "b", says("b done"))

    @as_tool("look")  # type: ignore[untyped-decorator]
    def look(text: str) -> str:
        """Look something up."""
        return str(inner.kickoff(text).raw)

    outer = agent(script, "outer", uses("look", text="x"), says("outer done"), tools=[look])
    replies = asks("b", "you"), delegates("outer", "you"), says("all done")
    first = agent(script, "a", *replies, allow_delegation=True)
    return crew(task("find {what}", first), agents=[b, outer, inner])


def hierarchy(script: Script) -> Any:
    """CrewAI makes a manager, which does each task, with the help of both workers."""
    a, b = agent(script, "a", says("a done")), agent(script, "b", says("b done"))
    replies = delegates("a", "look"), asks("b", "why"), says("one done"), says("all done")
    manager = model(script, "manager", *replies)
    return crew(
        task("find {what}"), task("write it"), agents=[a, b], process=Process.hierarchical,
        manager_llm=manager,
    )  # fmt: skip


def conditional(script: Script) -> Any:
    """Of two conditional tasks the last one is skipped."""
    a, b, c = (agent(script, name, says(f"{name} done")) for name in "abc")
    return crew(
        task("find {what}", a),
        ConditionalTask(
            description="check", expected_output="x", agent=b, condition=lambda output: True
        ),
        ConditionalTask(
            description="mend", expected_output="x", agent=c, condition=lambda output: False
        ),
    )


def guarded(script: Script) -> Any:
    """The outputs of both tasks are refused once, by a guardrail."""

    def is_better(output: Any) -> Any:
        return (True, output.raw) if "better" in output.raw else (False, "make it better")

    check: Any = lambda output: is_better(output)  # noqa: E731  CrewAI refuses other annotations
    a = agent(script, "a", says("a done"), says("a better"))
    b = agent(script, "b", says("b done"), says("b better"))
    return crew(task("find {what}", a, guardrail=check), task("write it", b, guardrail=check))


def failing(script: Script) -> Any:
    """A coworker whose model raises; CrewAI tells the asking model so."""
    b = agent(script, "b", raises)
    first = agent(script, "a", asks("b", "x"), says("without b"), allow_delegation=True)
    return crew(task("find {what}", first), agents=[b])


def raising(script: Script) -> Any:
    """The second of three tasks fails."""
    a, b, c = agent(script, "a", says("a done")), agent(script, "b", raises), agent(script, "c")
    return crew(task("find {what}", a), task("check it", b), task("write it", c))


def retrying(script: Script) -> Any:
    """A model fails once; CrewAI executes the task again, and so the agent's method."""
    a = agent(script, "a", raises, says("a done"), max_retry_limit=2)
    return crew(task("find {what}", a))


def same_roles(script: Script) -> Any:
    """Two agents of one role."""
    a, b = agent(script, "a", says("a done")), agent(script, "b", says("b done"))
    a.role = b.role = "writer"
    return crew(task("find {what}", a), task("write it", b))


SCENARIOS = [
    *(scenario(build) for build in (
        chain, contexts, delegating, hierarchy, conditional, guarded, failing, raising, retrying,
        same_roles,
    )),
    *(scenario(chain, drive) for drive in (kickoff_async, akickoff, for_each, afor_each, stream)),
    *(scenario(build, akickoff) for build in (delegating, hierarchy, conditional, guarded, raising,
                                              retrying)),
    scenario(alone, ask), scenario(alone, ask_async),
]  # fmt: skip
