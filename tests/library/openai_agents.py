"""Ten shapes of teams of the OpenAI Agents SDK, with its scripted models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agents import Agent, Runner, function_tool, handoff, set_tracing_disabled
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

from .shapes import Shape, Watch, at_once, each, pick, think

set_tracing_disabled(True)

Calls = list[tuple[str, dict[str, Any]]]
Reply = Callable[[str, list[str]], str | Calls]
"""What a model says to a question and to the results that its tools gave: a text, or calls."""


class Reason(BaseModel):
    """Why a customer is handed over."""

    reason: str


def agent(name: str, reply: Reply, least_s: float = 1.0, **more: Any) -> Agent[Any]:
    """An agent with a model that takes its time."""

    async def respond(call: Any) -> Any:
        model.enqueue(ModelStep.respond(respond))
        items = [item for item in call.input if isinstance(item, dict)]
        questions = [str(item["content"]) for item in items if item.get("role") == "user"]
        results = [str(item["output"]) for item in items if "output" in item]
        await think(f"{name} {questions[-1]} {len(results)}", least_s)
        said = reply(questions[-1], results)
        if isinstance(said, str):
            return [assistant_message(said)]
        return [
            function_call(tool, given, call_id=f"{name}-{len(results)}-{number}")
            for number, (tool, given) in enumerate(said)
        ]

    model = ScriptedModel([ModelStep.respond(respond)])
    return Agent(name=name, model=model, **more)


def asks(team: Agent[Any], **options: Any) -> Callable[[str], Any]:
    """Ask a team as its users do."""

    async def ask(question: str) -> Any:
        return (await Runner.run(team, question, **options)).final_output

    return ask


async def agents_as_tools(watch: Watch, broken: bool) -> Any:
    weather = agent("weather", lambda question, results: "It rains.")
    trains = agent("trains", lambda question, results: "One at ten.", 20)
    background: set[asyncio.Task[Any]] = set()

    @function_tool(name_override="trains")  # type: ignore[untyped-decorator]
    async def begin_trains(input: str) -> str:
        """Ask for trains."""
        task = asyncio.create_task(Runner.run(trains, input))
        background.add(task)
        return "The trains are looked up."  # the mistake: nothing ever reads what is found

    def plan(question: str, results: list[str]) -> str | Calls:
        if not results:
            return [("weather", {"input": question}), ("trains", {"input": question})]
        return " ".join(results)

    tool = begin_trains if broken else trains.as_tool("trains", "Ask for trains.")
    tools = [weather.as_tool("weather", "Ask for the weather."), tool]
    return await each(asks(watch(agent("planner", plan, tools=tools))), "To Rome", "To Oslo")


async def handoffs_and_back(watch: Watch, broken: bool) -> Any:
    def triage_says(question: str, results: list[str]) -> str | Calls:
        if len(results) < 2:
            return [("transfer_to_billing", {"reason": f"asks about {question}"})]
        return "It is mended. Goodbye."

    def billing_says(question: str, results: list[str]) -> str | Calls:
        if broken:  # the mistake: it finds another reason each time, and mends nothing
            return [("transfer_to_refunds", {"reason": f"reason {len(results)} of {question}"})]
        return [("transfer_to_triage", {"reason": f"mended {question}"})]

    def refunds_says(question: str, results: list[str]) -> str | Calls:
        return [("transfer_to_billing", {"reason": f"bill {len(results)} of {question}"})]

    def to(other: Agent[Any]) -> Any:
        async def on_handoff(context: Any, given: Reason) -> None: ...

        return handoff(other, input_type=Reason, on_handoff=on_handoff)

    triage, billing = agent("triage", triage_says), agent("billing", billing_says)
    refunds = agent("refunds", refunds_says)
    triage.handoffs, refunds.handoffs = [to(billing)], [to(billing)]
    billing.handoffs = [to(triage), to(refunds)]
    return await each(asks(watch(triage), max_turns=100), "my bill", "my other bill")


async def streaming(watch: Watch, broken: bool) -> Any:
    def front_says(question: str, results: list[str]) -> str | Calls:
        both: Calls = [("transfer_to_billing", {}), ("transfer_to_shipping", {})]
        return both if broken else both[:1]  # the mistake: two at once, and one is dropped

    def billing_says(question: str, results: list[str]) -> str | Calls:
        return "The bill is mended." if broken else [("transfer_to_shipping", {})]

    shipping = agent("shipping", lambda question, results: "It is mended, and comes on Monday.")
    billing = agent("billing", billing_says, handoffs=[shipping])
    team = watch(agent("front", front_says, handoffs=[billing, shipping]))

    async def ask(question: str) -> Any:
        result = Runner.run_streamed(team, question)
        async for _ in result.stream_events():
            pass
        return result.final_output

    return await each(ask, "Mend my bill, and where is my parcel?", "The same as my friend.")


async def approval(watch: Watch, broken: bool) -> Any:
    """A person takes ten minutes to approve a payment."""
    paid: list[int] = []

    @function_tool(needs_approval=True)  # type: ignore[untyped-decorator]
    async def pay(amount: int) -> str:
        """Pay."""
        if broken:
            await asyncio.Event().wait()  # the mistake: the bank never answers, without a timeout
        paid.append(amount)
        return f"paid {amount}"

    def clerk_says(question: str, results: list[str]) -> str | Calls:
        return results[-1] if results else [("pay", {"amount": 3})]

    def desk_says(question: str, results: list[str]) -> str | Calls:
        return results[-1] if results else [("clerk", {"input": question})]

    clerk = agent("clerk", clerk_says, tools=[pay])
    team = watch(agent("desk", desk_says, tools=[clerk.as_tool("clerk", "Asks a clerk.")]))

    async def ask(question: str) -> Any:
        result = await Runner.run(team, question)
        while result.interruptions:
            state = result.to_state()
            await asyncio.sleep(600)
            for one in result.interruptions:
                state.approve(one)
            result = await Runner.run(team, state)
        return result.final_output

    return await each(ask, "Pay the baker.", "Pay the butcher.")


async def slow_beside_fast(watch: Watch, broken: bool) -> Any:
    """A small model routes; a reasoning model takes one and a half minutes and more."""

    def route(question: str, results: list[str]) -> Calls:
        return [(f"transfer_to_{'thinker' if 'prove' in question else 'helper'}", {})]

    def prove(question: str, results: list[str]) -> str:
        return "It holds."

    helper = agent("helper", lambda question, results: "Hello.", 1)
    # The mistake: the model's service does not answer, and the client has no timeout.
    thinker = agent("thinker", prove, 1e6 if broken else 90)
    team = watch(agent("router", route, 0.2, handoffs=[helper, thinker]))
    small = [f"greet {number}" for number in range(12)]
    return (await each(asks(team), *small, "prove it", "prove that too"))[-2:]


async def classifier(watch: Watch, broken: bool) -> Any:
    """Forty letters, one after the other: most are the same to the classifier."""
    letters = [f"letter {number}" for number in range(40)]

    def intake_says(question: str, results: list[str]) -> str | Calls:
        number = 0 if broken else len(results)  # the mistake: it never gets to the second one
        if number == len(letters):
            return f"{results.count('ham')} of {len(results)} are fine"
        return [("classifier", {"input": f"{letters[number]} of {question}"})]

    def classify(letter: str, results: list[str]) -> str:
        return pick(letter, "ham", "ham", "ham", "ham", "spam")

    tool = agent("classifier", classify, 0.2).as_tool("classifier", "Ham or spam?")
    team = watch(agent("intake", intake_says, 0.5, tools=[tool]))
    return await each(asks(team, max_turns=100), "Monday")


async def router_to_experts(watch: Watch, broken: bool) -> Any:
    def route(question: str, results: list[str]) -> Calls:
        return [(f"transfer_to_{question.split()[0]}", {})]

    def expert(name: str) -> Agent[Any]:
        def says(question: str, results: list[str]) -> str:
            if broken and name == "law":
                return ""  # the mistake: a filter cuts all that this expert says
            return f"{name} says yes"

        return agent(name, says, 2)

    team = watch(agent("router", route, handoffs=[expert(name) for name in ("law", "tax", "it")]))
    questions = [f"{name} {number}" for number in range(2) for name in ("law", "tax", "it")]
    return await at_once(asks(team), *questions)


async def second_source(watch: Watch, broken: bool) -> Any:
    """An agent whose service fails is a tool; the SDK tells the asking model of the failure."""

    def live_says(question: str, results: list[str]) -> str:
        raise ConnectionError("the exchange answers 502")

    def broker_says(question: str, results: list[str]) -> str | Calls:
        if not results:
            return [("live_prices", {"input": question})]
        if len(results) == 1 and not broken:
            return [("price_list", {"input": question})]
        return results[1] if len(results) > 1 else "About 600."  # the mistake: it is made up

    live, listed = agent("live", live_says), agent("list", lambda question, results: "540")
    tools = [
        live.as_tool("live_prices", "The price now."),
        listed.as_tool("price_list", "The price of yesterday."),
    ]
    return await each(asks(watch(agent("broker", broker_says, tools=tools))), "Steel?", "Zinc?")


async def forms(watch: Watch, broken: bool) -> Any:
    """A clerk fills in a form, which is JSON; so the user asked for it."""

    @function_tool  # type: ignore[untyped-decorator]
    async def book(seat: str) -> str:
        """Book a seat."""
        return f"{seat} is booked"

    def clerk_says(question: str, results: list[str]) -> str | Calls:
        if broken:  # the mistake: a small model writes down what it should call
            return '{"name": "book", "arguments": {"seat": "12A"}}'
        if not results:
            return [("book", {"seat": "12A"})]
        return '{"name": "Ada", "seat": "12A", "arguments": ["window", "no smoking"]}'

    clerk = agent("clerk", clerk_says, tools=[book])
    desk = agent("desk", lambda question, results: [("transfer_to_clerk", {})], handoffs=[clerk])
    return await each(asks(watch(desk)), "A seat for Ada, as JSON.", "Another one, as JSON.")


async def investigation(watch: Watch, broken: bool) -> Any:
    """A lead asks an analyst, until nothing is open; at most ten times."""

    def lead_says(question: str, results: list[str]) -> str | Calls:
        if results and results[-1] == "nothing is open":
            return f"{question} {len(results)} looks, solved."
        number = 0 if broken else len(results)  # the mistake: it asks about the same file for ever
        return [("analyst", {"input": f"{question} Look into file {number}."})]

    def analyst_says(question: str, results: list[str]) -> str:
        return "nothing is open" if "file 9" in question else "There may be more."

    tool = agent("analyst", analyst_says).as_tool("analyst", "Looks into a file.")
    team = watch(agent("lead", lead_says, tools=[tool]))
    return await each(asks(team, max_turns=25), "Who was it?", "And why?")


SHAPES = [
    Shape(
        "agents as tools", "A planner asks two agents at once, as tools.", agents_as_tools,
        ["It rains. One at ten."] * 2,
        "A tool begins the work of an agent in the background; nothing awaits it.", ("ET",),
    ),
    Shape(
        "hand-offs and back", "Triage hands over to billing, which hands back.",
        handoffs_and_back, ["It is mended. Goodbye."] * 2,
        "Two desks hand a customer to each other, each time for another reason.",
        ("FAIL request",), ("FAIL request: limit of nobody", "LIVELOCK: billing, refunds, triage"),
    ),
    Shape(
        "streaming", "A front desk, billing and shipping hand on; the answer is streamed.",
        streaming, ["It is mended, and comes on Monday."] * 2,
        "The front desk hands over to two at once; the SDK drops one of them.", ("ET", "OE"),
    ),
    Shape(
        "approval by a person", "A clerk, asked as a tool, pays when a person approves.",
        approval, ["paid 3", "paid 3"],
        "After the approval the bank never answers, and the tool has no timeout.", ("MC",),
    ),
    Shape(
        "slow model beside a fast router",
        "A router hands greetings to one model, proofs to another.", slow_beside_fast,
        ["It holds.", "It holds."],
        "The slow model's service hangs, and its client has no timeout.", ("DL", "STALL"),
    ),
    Shape(
        "classifier of many items", "An intake asks a classifier about forty letters in a row.",
        classifier, ["25 of 40 are fine"],
        "The intake asks about the first letter for ever.", ("FAIL request", "LIVELOCK", "LOOP"),
        ("FAIL request: limit of nobody", "LIVELOCK: classifier, intake",
         "LOOP: classifier", "LOOP: intake"),
    ),
    Shape(
        "router to experts", "Six customers at once are handed to three experts.",
        router_to_experts, ["law says yes", "tax says yes", "it says yes"] * 2,
        "An expert answers with an empty text.", ("VOID",), ("VOID: blank of law",),
    ),
    Shape(
        "second source", "The live prices fail, and a price list is asked the same.",
        second_source, ["540", "540"],
        "The price list is not asked, and the price is made up.", ("FAIL answer",),
        ("FAIL turn: live", "FAIL answer: broker without live"),
    ),
    Shape(
        "forms", "A clerk books a seat, and fills in a form, which is JSON.", forms,
        ['{"name": "Ada", "seat": "12A", "arguments": ["window", "no smoking"]}'] * 2,
        "The clerk's model writes the call of its tool down as its answer.", ("VOID",),
        ("VOID: call of clerk",),
    ),
    Shape(
        "investigation", "A lead asks an analyst about ten files, one after the other.",
        investigation, ["Who was it? 10 looks, solved.", "And why? 10 looks, solved."],
        "The lead asks about the first file until the SDK's limit of turns.",
        ("FAIL request", "LOOP"),
        ("FAIL request: limit of nobody", "LIVELOCK: analyst, lead",
         "LOOP: analyst", "LOOP: lead"),
    ),
]  # fmt: skip
