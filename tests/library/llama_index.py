"""Six shapes of teams of LlamaIndex agents, whose models are functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.llms import ChatMessage, ChatResponse
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import FunctionTool
from pydantic import PrivateAttr

from tests.adapters.harness import Script
from tests.adapters.llama_index_teams import Scripted

from .shapes import Shape, Watch, at_once, each, think

Calls = list[tuple[str, dict[str, Any]]]
Reply = Callable[[str, list[str]], str | Calls]
"""What a model says to a question and to the results that its tools gave: a text, or calls."""


class Thinking(Scripted):
    """A model that takes its time."""

    _reply: Reply = PrivateAttr()
    _least_s: float = PrivateAttr()

    def __init__(self, name: str, reply: Reply, least_s: float) -> None:
        super().__init__(Script(), name, ())
        self._reply, self._least_s = reply, least_s

    async def _respond(self, messages: Sequence[ChatMessage], choice: str = "") -> ChatResponse:
        question = next(str(one.content) for one in messages if one.role.value == "user")
        results = [str(one.content) for one in messages if one.role.value == "tool"]
        await think(f"{self._name} {question} {len(results)}", self._least_s)
        said = self._reply(question, results)
        text, calls = (said, []) if isinstance(said, str) else ("", said)
        selected = [
            ToolSelection(
                tool_id=f"{self._name}-{len(results)}-{number}", tool_name=tool, tool_kwargs=given
            )
            for number, (tool, given) in enumerate(calls)
        ]
        message = ChatMessage(
            role="assistant", content=text, additional_kwargs={"tool_calls": selected}
        )
        return ChatResponse(message=message, delta=text)


def agent(name: str, reply: Reply, least_s: float = 1.0, **more: Any) -> FunctionAgent:
    return FunctionAgent(
        name=name, description=f"It is {name}.", llm=Thinking(name, reply, least_s), **more
    )


def says(text: str) -> Reply:
    return lambda question, results: text


def hands(to: str, reason: str) -> Calls:
    return [("handoff", {"to_agent": to, "reason": reason})]


def asks(first: Any, **options: Any) -> Callable[[str], Any]:
    """Ask a team as its users do."""

    async def ask(question: str) -> str:
        return str(await first.run(user_msg=question, **options))

    return ask


def offer(inner: FunctionAgent) -> FunctionTool:
    """A tool that asks an agent, and awaits its answer."""

    async def ask(text: str) -> str:
        return str(await inner.run(user_msg=text))

    return FunctionTool.from_defaults(async_fn=ask, name=inner.name, description="It asks.")


async def triage(watch: Watch, broken: bool) -> Any:
    """A triage hands over to who knows, and what is left goes to the next one."""

    def sort(question: str, results: list[str]) -> str | Calls:
        if broken:  # the mistake: both are told to take over, and LlamaIndex takes the last one
            return hands("billing", f"pay {question}") + hands("shipping", f"send {question}")
        return hands("billing", f"pay {question}")

    team = AgentWorkflow(
        agents=[
            agent("triage", sort),
            agent("billing", lambda question, results: hands("shipping", f"paid {question}")),
            agent("shipping", lambda question, results: f"sent {question}"),
        ],
        root_agent="triage",
    )
    watch(team)
    return await each(asks(team), "pens", "ink")


async def delegation(watch: Watch, broken: bool) -> Any:
    weather, trains = agent("weather", says("It rains.")), agent("trains", says("One at ten."), 20)
    background: list[Any] = []

    def plan(question: str, results: list[str]) -> str | Calls:
        if not results:
            return [("weather", {"text": question}), ("trains", {"text": question})]
        return " ".join(results)

    async def begin_trains(text: str) -> str:
        background.append(trains.run(user_msg=text))
        return "The trains are looked up."  # the mistake: nothing ever reads what is found

    begin = FunctionTool.from_defaults(async_fn=begin_trains, name="trains")
    tools = [offer(weather), begin if broken else offer(trains)]
    planner = agent("planner", plan, tools=tools)
    watch([planner, weather, trains])
    return await each(asks(planner), "To Rome", "To Oslo")


async def editing(watch: Watch, broken: bool) -> Any:
    """A writer hands its draft over to an editor, in a conversation of both."""

    def edit(question: str, results: list[str]) -> str:
        if broken:  # the mistake: a small model writes down what it should call
            return '{"name": "cut", "arguments": {"words": 10}}'
        return f"edited {question}"

    team = AgentWorkflow(
        agents=[
            agent("writer", lambda question, results: hands("editor", f"draft of {question}")),
            agent("editor", edit),
        ],
        root_agent="writer",
    )
    watch(team)
    return await at_once(asks(team), "a page", "a letter")


async def second_source(watch: Watch, broken: bool) -> Any:
    """An agent whose service fails; LlamaIndex tells the asking model of the failure."""

    def live_says(question: str, results: list[str]) -> str:
        raise ConnectionError("the exchange answers 502")

    def broker_says(question: str, results: list[str]) -> str | Calls:
        if not results:
            return [("live", {"text": question})]
        if len(results) == 1 and not broken:
            return [("list", {"text": question})]
        return results[1] if len(results) > 1 else "About 600."  # the mistake: it is made up

    live, listed = agent("live", live_says), agent("list", says("540"))
    broker = agent("broker", broker_says, tools=[offer(live), offer(listed)])
    watch([broker, live, listed])
    return await each(asks(broker), "Steel?", "Zinc?")


async def drafts(watch: Watch, broken: bool) -> Any:
    """A writer and a critic have the floor in turn, three times."""

    def write(question: str, results: list[str]) -> str | Calls:
        if results and "fine" in results[-1]:
            return f"version {len(results) // 2}"
        version = 0 if broken else len(results) // 2  # the mistake: it shows the first one
        return hands("critic", f"version {version} of {question}")

    def criticise(question: str, results: list[str]) -> Calls:
        return hands("writer", "fine" if "version 2" in results[-1] else "shorter")

    team = AgentWorkflow(
        agents=[agent("writer", write), agent("critic", criticise)], root_agent="writer"
    )
    watch(team)
    return await each(asks(team, max_iterations=60), "the speech", "the toast")


async def experts(watch: Watch, broken: bool) -> Any:
    """Six customers at once are handed over to three experts, which hand back what they know."""

    def route(question: str, results: list[str]) -> str | Calls:
        if not results:
            return hands(question.split()[0], "This is yours.")
        return results[-1].partition("reason: ")[2].partition(".")[0]

    def expert(name: str) -> FunctionAgent:
        # The mistake: the model's service does not answer, and the client has no timeout.
        least_s = 1e6 if broken and name == "law" else 2
        return agent(name, lambda question, results: hands("router", f"{name} says yes"), least_s)

    group = [expert(name) for name in ("law", "tax", "it")]
    team = AgentWorkflow(agents=[agent("router", route), *group], root_agent="router")
    watch(team)
    questions = [f"{name} {number}" for number in range(2) for name in ("law", "tax", "it")]
    return await at_once(asks(team), *questions)


SHAPES = [
    Shape(
        "handed on twice", "A triage hands over to billing, which hands over to shipping.", triage,
        ["sent pens", "sent ink"],
        "The triage hands over to both at once; LlamaIndex drops the first.", ("ET", "OE"),
    ),
    Shape(
        "agents in tools of a workflow", "A planner asks two agents at once, in tools.", delegation,
        ["It rains. One at ten."] * 2,
        "A tool begins the run of an agent; nothing awaits it.", ("ET",),
    ),
    Shape(
        "a draft handed over", "A writer hands its draft over to an editor.", editing,
        ["edited a page", "edited a letter"],
        "The editor's model writes the call of its tool down as its answer.", ("VOID",),
        ("VOID: call of editor",),
    ),
    Shape(
        "second source of a broker", "The live prices fail, and a price list is asked the same.",
        second_source, ["540", "540"],
        "The price list is not asked, and the price is made up.", ("FAIL answer",),
        ("FAIL turn: live", "FAIL answer: broker without live"),
    ),
    Shape(
        "three drafts by turns", "A writer and a critic hand over to each other.", drafts,
        ["version 3"] * 2, "The writer shows the first version until the limit of steps.",
        ("FAIL request", "LOOP"),
        ("FAIL request: limit of nobody", "LIVELOCK: critic, writer",
         "LOOP: critic", "LOOP: writer"),
    ),
    Shape(
        "experts that hand back", "Six customers at once are handed over to three experts.",
        experts, ["law says yes", "tax says yes", "it says yes"] * 2,
        "An expert's model hangs, and its client has no timeout.", ("DL", "STALL"),
    ),
]  # fmt: skip
