"""Six shapes of teams of Google ADK, whose models are functions."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable
from typing import Any

from google.adk.agents import BaseAgent, LlmAgent, LoopAgent, RunConfig
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import exit_loop
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import JoinNode, Workflow
from google.genai import types

from .shapes import Shape, Watch, at_once, each, think

Calls = list[tuple[str, dict[str, Any]]]
Reply = Callable[[str, list[str]], str | Calls]
"""What a model says to a question and to what was said since: a text, or calls of tools."""


class Model(BaseLlm):  # type: ignore[misc]
    """A model that takes its time."""

    reply: Any
    least_s: float

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        parts = [part for content in llm_request.contents for part in content.parts]
        question = str(parts[0].text)
        said = [
            str(part.text or next(iter((part.function_response.response or {"": ""}).values())))
            for part in parts[1:]
            if not part.function_call
        ]
        await think(f"{self.model} {question} {len(parts)}", self.least_s)
        does = self.reply(question, said)
        if isinstance(does, str):
            does = [types.Part.from_text(text=does)]
        else:
            does = [types.Part.from_function_call(name=tool, args=given) for tool, given in does]
        yield LlmResponse(content=types.Content(role="model", parts=does))


def agent(name: str, reply: Reply, least_s: float = 1.0, **more: Any) -> LlmAgent:
    return LlmAgent(name=name, model=Model(model=name, reply=reply, least_s=least_s), **more)


def asks(team: Any, most: int = 60) -> Callable[[str], Any]:
    """Ask a team as its users do, in a new session; its answer is its last text."""
    root = {"agent": team} if isinstance(team, BaseAgent) else {"node": team}
    runner = InMemoryRunner(app_name="app", **root)

    async def ask(question: str) -> Any:
        place: dict[str, Any] = {"app_name": "app", "user_id": "me"}
        session = await runner.session_service.create_session(**place)
        answer = None
        async for event in runner.run_async(
            user_id="me", session_id=session.id, new_message=types.UserContent(question),
            run_config=RunConfig(max_llm_calls=most),
        ):  # fmt: skip
            if event.content and event.content.parts and event.content.parts[-1].text:
                answer = event.content.parts[-1].text
        return answer

    return ask


async def desks(watch: Watch, broken: bool) -> Any:
    """A front desk that hands over to one of two others."""

    def front_says(question: str, said: list[str]) -> str | Calls:
        return [("transfer_to_agent", {"agent_name": question.split()[0]})]

    def desk(name: str) -> LlmAgent:
        def reply(question: str, said: list[str]) -> str | Calls:
            if broken and name == "refunds":  # the mistake: its instruction says: not for refunds
                return [("transfer_to_agent", {"agent_name": "front"})]
            return f"{name} has done it"

        return agent(name, reply)

    front = agent("front", front_says, sub_agents=[desk("refunds"), desk("orders")])
    watch(front)
    return await each(asks(front, 40), "refunds please", "orders please")


async def background(watch: Watch, broken: bool) -> Any:
    """A planner asks two agents at once, as tools."""
    weather = agent("weather", lambda question, said: "It rains.")
    trains = agent("trains", lambda question, said: "One at ten.", 20)
    tasks: set[asyncio.Task[Any]] = set()

    def plan(question: str, said: list[str]) -> str | Calls:
        if not said:
            return [("weather", {"request": question}), ("trains", {"request": question})]
        return " ".join(said)

    async def begin_trains(request: str) -> str:
        tasks.add(asyncio.create_task(asks(trains)(request)))
        return "The trains are looked up."  # the mistake: nothing ever reads what is found

    begin_trains.__name__ = "trains"
    tools = [AgentTool(weather), begin_trains if broken else AgentTool(trains)]
    planner = agent("planner", plan, tools=tools)
    watch(planner)
    return await each(asks(planner), "To Rome", "To Oslo")


async def reports(watch: Watch, broken: bool) -> Any:
    """A workflow: two reports beside each other, joined, and put together by an editor."""

    def edit(question: str, said: list[str]) -> str:
        if broken:  # the mistake: a small model writes down what it should call
            return '{"name": "cut", "arguments": {"words": 10}}'
        return "two reports in one"

    def put_together(node_input: Any) -> str:
        return " ".join(node_input.values())

    north, south = (agent(name, lambda question, said: "all quiet") for name in ("north", "south"))
    joined, editor = JoinNode(name="joined"), agent("editor", edit)
    flow = Workflow(name="flow", edges=[("START", (north, south), joined, put_together, editor)])
    watch(flow)
    return await each(asks(flow), "Monday", "Tuesday")


async def price_list(watch: Watch, broken: bool) -> Any:
    """An agent whose service fails; the asking model is told by a callback."""

    def live_says(question: str, said: list[str]) -> str:
        raise ConnectionError("the exchange answers 502")

    def broker_says(question: str, said: list[str]) -> str | Calls:
        if not said:
            return [("live", {"request": question})]
        if len(said) == 1 and not broken:
            return [("list", {"request": question})]
        return said[1] if len(said) > 1 else "About 600."  # the mistake: it is made up

    def tell(tool: Any, args: Any, tool_context: Any, error: Any) -> Any:
        return {"error": str(error)}

    live, listed = agent("live", live_says), agent("list", lambda question, said: "540")
    broker = agent(
        "broker", broker_says, tools=[AgentTool(live), AgentTool(listed)],
        on_tool_error_callback=tell,
    )  # fmt: skip
    watch(broker)
    return await each(asks(broker), "Steel?", "Zinc?")


async def rounds(watch: Watch, broken: bool) -> Any:
    """A writer and a critic in a loop, which the critic leaves."""

    def write(question: str, said: list[str]) -> str:
        return "version 0" if broken else f"version {len(said)}"  # the mistake: always the first

    def judge(question: str, said: list[str]) -> str | Calls:
        return [("exit_loop", {})] if not broken and len(said) >= 5 else "shorter"

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for loops, ADK would have workflows
        team = LoopAgent(
            name="rounds", max_iterations=30,
            sub_agents=[agent("writer", write), agent("critic", judge, tools=[exit_loop])],
        )  # fmt: skip
    watch(team)
    return await each(asks(team, 100), "the speech", "the toast")


async def transferred(watch: Watch, broken: bool) -> Any:
    """Six customers at once are handed over to three experts by a router."""

    def route(question: str, said: list[str]) -> str | Calls:
        return [("transfer_to_agent", {"agent_name": question.split()[0]})]

    def expert(name: str) -> LlmAgent:
        # The mistake: the model's service does not answer, and the client has no timeout.
        least_s = 1e6 if broken and name == "law" else 2
        return agent(name, lambda question, said: f"{name} says yes", least_s)

    router = agent("router", route, sub_agents=[expert(name) for name in ("law", "tax", "it")])
    watch(router)
    questions = [f"{name} {number}" for number in range(2) for name in ("law", "tax", "it")]
    return await at_once(asks(router), *questions)


SHAPES = [
    Shape(
        "two desks", "A front desk hands over to one of two others.", desks,
        ["refunds has done it", "orders has done it"],
        "A desk hands back what is its own to do, until the limit of calls of models.",
        ("ER", "FAIL request"), ("FAIL request: limit of nobody",),
    ),
    Shape(
        "two tools at once", "A planner asks two agents at once, as tools.", background,
        ["It rains. One at ten."] * 2,
        "A tool begins the work of an agent in the background; nothing awaits it.", ("ET",),
    ),
    Shape(
        "two reports", "A workflow of two reports and an editor.", reports,
        ["two reports in one"] * 2,
        "The editor's model writes the call of its tool down as its answer.", ("VOID",),
        ("VOID: call of flow",),
    ),
    Shape(
        "price list as a tool", "The live prices fail, and a price list is asked the same.",
        price_list, ["540", "540"],
        "The price list is not asked, and the price is made up.", ("FAIL answer",),
        ("FAIL turn: live", "FAIL answer: broker without live"),
    ),
    Shape(
        "rounds of drafts", "A writer and a critic in a loop, three versions.", rounds,
        ["version 3"] * 2,
        "The writer shows the first version until the loop ends.", ("LIVELOCK", "LOOP"),
        ("LIVELOCK: critic, rounds, writer", "LOOP: critic", "LOOP: rounds", "LOOP: writer"),
    ),
    Shape(
        "experts by transfer", "Six customers at once are handed over to three experts.",
        transferred, ["law says yes", "tax says yes", "it says yes"] * 2,
        "An expert's model hangs, and its client has no timeout.", ("DL", "STALL"),
    ),
]  # fmt: skip
