"""Six shapes of teams of Pydantic AI agents, whose models are functions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from .shapes import Shape, Watch, at_once, each, pick, think

Calls = list[tuple[str, dict[str, Any]]]
Reply = Callable[[str, list[str]], str | Calls]
"""What a model says to a question and to the results that its tools gave: a text, or calls."""


def agent(name: str, reply: Reply, least_s: float = 1.0, **more: Any) -> Agent[Any, Any]:
    """An agent with a model that takes its time."""

    async def respond(messages: Any, info: Any) -> ModelResponse:
        question = str(messages[0].parts[-1].content)
        parts = [part for message in messages for part in message.parts]
        results = [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]
        await think(f"{name} {question} {len(results)}", least_s)
        said = reply(question, results)
        if isinstance(said, str):
            return ModelResponse(parts=[TextPart(said)])
        ids = (f"{name}-{len(results)}-{number}" for number in range(len(said)))
        return ModelResponse(
            parts=[
                ToolCallPart(tool, given, tool_call_id=id)
                for (tool, given), id in zip(said, ids, strict=True)
            ]
        )

    return Agent(FunctionModel(respond), name=name, **more)


def asks(first: Agent[Any, Any], **options: Any) -> Callable[[str], Any]:
    """Ask an agent as its users do."""

    async def ask(question: str) -> Any:
        return (await first.run(question, **options)).output

    return ask


def offer(to: Agent[Any, Any], inner: Agent[Any, Any]) -> None:
    """Give an agent a tool that asks another one, and awaits its answer."""

    @to.tool_plain(name=str(inner.name))  # type: ignore[untyped-decorator]
    async def tool(text: str) -> str:
        return str((await inner.run(text)).output)


async def delegation(watch: Watch, broken: bool) -> Any:
    weather = agent("weather", lambda question, results: "It rains.")
    trains = agent("trains", lambda question, results: "One at ten.", 20)
    background: set[asyncio.Task[Any]] = set()

    def plan(question: str, results: list[str]) -> str | Calls:
        if not results:
            return [("weather", {"text": question}), ("trains", {"text": question})]
        return " ".join(results)

    planner = agent("planner", plan)
    offer(planner, weather)
    if broken:

        @planner.tool_plain(name="trains")  # type: ignore[untyped-decorator]
        async def begin_trains(text: str) -> str:
            background.add(asyncio.create_task(trains.run(text)))
            return "The trains are looked up."  # the mistake: nothing ever reads what is found
    else:
        offer(planner, trains)
    watch([planner, weather, trains])
    return await each(asks(planner), "To Rome", "To Oslo")


async def handing_on_in_code(watch: Watch, broken: bool) -> Any:
    """One agent's output is the next one's prompt, in the code of an application."""

    def edit(question: str, results: list[str]) -> str:
        if broken:  # the mistake: a small model writes down what it should call
            return '{"name": "cut", "arguments": {"words": 10}}'
        return f"edited {question}"

    def chief_says(question: str, results: list[str]) -> str | Calls:
        return results[-1] if results else [("write", {})]

    writer = agent("writer", lambda question, results: f"draft of {question}")
    editor = agent("editor", edit)
    chief = agent("chief", chief_says)

    @chief.tool_plain  # type: ignore[untyped-decorator]
    async def write() -> str:
        draft = (await writer.run("a page")).output
        return str((await editor.run(draft)).output)

    watch([chief, writer, editor])
    return await each(asks(chief), "A page!", "Another page!")


async def second_source(watch: Watch, broken: bool) -> Any:
    """An agent whose service fails; the tool tells the asking model of the failure."""

    def live_says(question: str, results: list[str]) -> str:
        raise ConnectionError("the exchange answers 502")

    def broker_says(question: str, results: list[str]) -> str | Calls:
        if not results:
            return [("live_prices", {"text": question})]
        if len(results) == 1 and not broken:
            return [("list", {"text": question})]
        return results[1] if len(results) > 1 else "About 600."  # the mistake: it is made up

    live, listed = agent("live", live_says), agent("list", lambda question, results: "540")
    broker = agent("broker", broker_says)

    @broker.tool_plain  # type: ignore[untyped-decorator]
    async def live_prices(text: str) -> str:
        try:
            return str((await live.run(text)).output)
        except ConnectionError as error:
            return str(error)

    offer(broker, listed)
    watch([broker, live, listed])
    return await each(asks(broker), "Steel?", "Zinc?")


async def classifier(watch: Watch, broken: bool) -> Any:
    """Forty letters, one after the other: most are the same to the classifier."""
    letters = [f"letter {number}" for number in range(40)]

    def intake_says(question: str, results: list[str]) -> str | Calls:
        number = 0 if broken else len(results)  # the mistake: it never gets to the second one
        if number == len(letters):
            return f"{results.count('ham')} of {len(results)} are fine"
        return [("classifier", {"text": f"{letters[number]} of {question}"})]

    def classify(letter: str, results: list[str]) -> str:
        return pick(letter, "ham", "ham", "ham", "ham", "spam")

    intake, sorter = agent("intake", intake_says, 0.5), agent("classifier", classify, 0.2)
    offer(intake, sorter)
    watch([intake, sorter])
    return await each(asks(intake, usage_limits=UsageLimits(request_limit=60)), "Monday")


async def experts(watch: Watch, broken: bool) -> Any:
    """Six customers at once are asked about by a router that knows three experts."""

    def route(question: str, results: list[str]) -> str | Calls:
        return results[0] if results else [(question.split()[0], {"text": question})]

    def expert(name: str) -> Agent[Any, Any]:
        # The mistake: the model's service does not answer, and the client has no timeout.
        least_s = 1e6 if broken and name == "law" else 2
        return agent(name, lambda question, results: f"{name} says yes", least_s)

    router, group = agent("router", route), [expert(name) for name in ("law", "tax", "it")]
    for member in group:
        offer(router, member)
    watch([router, *group])
    questions = [f"{name} {number}" for number in range(2) for name in ("law", "tax", "it")]
    return await at_once(asks(router), *questions)


async def debate(watch: Watch, broken: bool) -> Any:
    """Two agents improve a text in turn, three times."""

    def writer_says(question: str, results: list[str]) -> str | Calls:
        if results and "fine" in results[-1]:
            return f"version {len(results)}"
        return [("critic", {"text": f"version {0 if broken else len(results)} of {question}"})]

    def critic_says(question: str, results: list[str]) -> str:
        return "fine" if "version 2" in question else "shorter"  # the mistake: always version 0

    writer, critic = agent("writer", writer_says), agent("critic", critic_says)
    offer(writer, critic)
    watch([writer, critic])
    return await each(asks(writer), "the speech", "the toast")


SHAPES = [
    Shape(
        "agents in tools", "A planner asks two agents at once, in tools.", delegation,
        ["It rains. One at ten."] * 2,
        "A tool begins the work of an agent in the background; nothing awaits it.", ("ET",),
    ),
    Shape(
        "handed on in code", "A tool gives a writer's draft to an editor.", handing_on_in_code,
        ["edited draft of a page"] * 2,
        "The editor's model writes the call of its tool down as its answer.", ("VOID",),
        ("VOID: call of chief",),
    ),
    Shape(
        "second source in tools", "The live prices fail, and a price list is asked the same.",
        second_source, ["540", "540"],
        "The price list is not asked, and the price is made up.", ("FAIL answer",),
        ("FAIL turn: live", "FAIL answer: broker without live"),
    ),
    Shape(
        "letters in tools", "An intake asks a classifier about forty letters in a row.",
        classifier, ["25 of 40 are fine"],
        "The intake asks about the first letter until the limit of requests.",
        ("FAIL request", "LIVELOCK", "LOOP"),
        ("FAIL request: limit of nobody", "LIVELOCK: classifier, intake",
         "LOOP: classifier", "LOOP: intake"),
    ),
    Shape(
        "experts in tools", "Six customers at once are answered by three experts.", experts,
        ["law says yes", "tax says yes", "it says yes"] * 2,
        "An expert's model hangs, and its client has no timeout.", ("DL", "STALL"),
    ),
    Shape(
        "three drafts", "A writer and a critic, three versions.", debate, ["version 3"] * 2,
        "The writer shows the first version for ever.", ("FAIL request", "LIVELOCK", "LOOP"),
        ("FAIL request: limit of nobody", "LIVELOCK: critic, writer",
         "LOOP: critic", "LOOP: writer"),
    ),
]  # fmt: skip
