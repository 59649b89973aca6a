"""Seven shapes of agent-framework: workflows of agents and executors, and one within another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    Case,
    ChatResponse,
    Content,
    Default,
    FunctionInvocationLayer,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowExecutor,
)
from agent_framework.orchestrations import HandoffBuilder

from tests.adapters.agent_framework_teams import Act, Parts, send
from tests.adapters.harness import Script

from .shapes import Shape, Watch, each, think

Say = Callable[[list[str], int], str | Content]
"""The answer of a model to the texts in front of it, and the number of its turn."""


class Model(FunctionInvocationLayer[Any], BaseChatClient[Any]):  # type: ignore[misc]
    """A fake model."""

    def __init__(self, say: Say) -> None:
        super().__init__()
        self._say = say
        self._turns = 0

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **more: Any
    ) -> Awaitable[ChatResponse[Any]]:
        texts = [message.text for message in messages]
        self._turns += 1

        async def respond() -> ChatResponse[Any]:
            await think(f"{texts[-1]} {self._turns}")
            return ChatResponse(messages=[Message("assistant", [self._say(texts, self._turns)])])

        return respond()


def agent(name: str, say: Say) -> Agent[Any]:
    """An agent with a fake model."""
    return Agent(
        Model(say), name=name, description=name, require_per_service_call_history_persistence=True
    )


def says(text: str, least_s: float = 1.0) -> Act:
    """An executor that thinks, and then says the same to whatever it is given."""

    async def act(given: Any, number: int, ctx: Any) -> None:
        await think(f"{given} {number}", least_s)
        await ctx.send_message(text)

    return act


def answers(what: str = "{}") -> Act:
    """An executor that ends the work with what it was given."""

    async def act(given: Any, number: int, ctx: Any) -> None:
        await think(str(given))
        await ctx.yield_output(what.format(given))

    return act


async def outputs(workflow: Workflow, message: str) -> str:
    """The outputs of a workflow for a message."""
    result = await workflow.run(message)
    return "; ".join(str(getattr(one, "text", one)) for one in result.get_outputs())


async def review(watch: Watch, broken: bool) -> Any:
    def judge(texts: list[str], turn: int) -> str:
        # The mistake: there is no last round.
        return f"Point {turn} is missing." if broken or turn % 4 else "Good."

    def is_good(response: Any) -> bool:
        return bool(response.agent_response.text == "Good.")

    writer = agent("writer", lambda texts, turn: f"Draft {turn}")
    critic = agent("critic", judge)
    press = agent("press", lambda texts, turn: "It is printed.")
    built = WorkflowBuilder(start_executor=writer, output_from=[press]).add_edge(writer, critic)
    built = built.add_edge(critic, writer, condition=lambda response: not is_good(response))
    workflow = watch(built.add_edge(critic, press, condition=is_good).build())
    return await each(lambda question: outputs(workflow, question), "On rain", "On snow")


async def analysts(watch: Watch, broken: bool) -> Any:
    async def silent(given: Any, number: int, ctx: Any) -> None:
        await think(str(given))  # the mistake: it has found nothing, and says nothing

    p = Parts(
        Script(), desk=says("the numbers"), tax=says("no tax"), law=says("no law", 4.0),
        risk=silent if broken else says("no risk"), report=answers(),
    )  # fmt: skip
    experts = [p.tax, p.law, p.risk]
    built = p.build("desk").add_fan_out_edges(p.desk, experts)
    workflow = watch(built.add_fan_in_edges(experts, p.report).build())
    return await each(lambda question: outputs(workflow, question), "May I?", "May we?")


async def ticket_desk(watch: Watch, broken: bool) -> Any:
    async def sort(given: str, number: int, ctx: Any) -> None:
        await think(given)
        # The mistake: it sends the number of the ticket, with which no desk can work.
        await ctx.send_message(number if broken else given)

    p = Parts(
        Script(), sorter=sort, bills=answers("{}: paid back"), repairs=answers("{}: mended"),
        rest=answers("{}: answered"),
    )  # fmt: skip
    ways = [
        Case(condition=lambda ticket: "bill" in str(ticket), target=p.bills),
        Case(condition=lambda ticket: "broken" in str(ticket), target=p.repairs),
        Default(target=p.rest),
    ]
    workflow = watch(p.build("sorter").add_switch_case_edge_group(p.sorter, ways).build())
    tickets = ("a wrong bill", "a broken lamp", "a greeting")
    return await each(lambda ticket: outputs(workflow, ticket), *tickets)


async def approved_payment(watch: Watch, broken: bool) -> Any:
    async def clerk(given: str, number: int, ctx: Any) -> None:
        await think(given)
        if given == "yes":
            await ctx.send_message("7 euros")
        else:
            await ctx.request_info(f"{given}?", str, request_id="approval")

    async def bank(given: str, number: int, ctx: Any) -> None:
        await (asyncio.Event().wait() if broken else think(given))  # the mistake: no timeout
        await ctx.yield_output(f"{given} paid")

    p = Parts(Script(), clerk=clerk, bank=bank)
    workflow = watch(p.build("clerk").add_edge(p.clerk, p.bank).build())
    asked = await workflow.run("Pay the plumber")
    await asyncio.sleep(600)  # a person looks for the bill
    result = await workflow.run(responses={"approval": "yes"})
    return [event.data for event in asked.get_request_info_events()] + result.get_outputs()


async def team_within(watch: Watch, broken: bool) -> Any:
    """The inner workflow is watched from inside."""

    async def check(given: str, number: int, ctx: Any) -> None:
        await think(f"{given} {number}")
        if broken or number % 3:  # the mistake: it never finds that the text is short enough
            await ctx.send_message("Shorter, please.")
        else:
            await ctx.yield_output("A short text")

    p = Parts(Script(), writer=says("A text"), checker=check)
    inner = p.build("writer").add_edge(p.writer, p.checker).add_edge(p.checker, p.writer).build()
    q = Parts(Script(), order=send("Write"), press=answers("{} is printed"))
    desk = WorkflowExecutor(inner, id="desk")
    workflow = q.build("order").add_edge(q.order, desk).add_edge(desk, q.press).build()
    watched = watch(workflow, inside=True)
    return await each(lambda question: outputs(watched, question), "On rain", "On snow")


async def desks(watch: Watch, broken: bool) -> Any:
    def hands_to(other: str) -> Say:
        return lambda texts, turn: Content.from_function_call(
            f"{other} {turn}", f"handoff_to_{other}", arguments="{}"
        )

    def refunds(texts: list[str], turn: int) -> str | Content:
        if not broken:
            return "Paid back."
        return "I give up." if turn > 12 else hands_to("triage")(texts, turn)  # the mistake

    agents = [agent("triage", hands_to("refunds")), agent("refunds", refunds)]
    workflow = HandoffBuilder(participants=agents).with_start_agent(agents[0]).build()
    result = await watch(workflow).run("I was charged twice.")
    return [one.data.agent_response.text for one in result.get_request_info_events()]


async def news_desk(watch: Watch, broken: bool) -> Any:
    """Agencies are asked at once; one that fails is asked again by its executor."""
    calls: dict[str, int] = {}

    def agency(name: str, least_s: float) -> Act:
        async def look(given: Any, number: int, ctx: Any) -> None:
            for tries in range(3):
                await think(f"{name} {given} {tries}", least_s)
                calls[f"{name} {given}"] = calls.get(f"{name} {given}", 0) + 1
                if name == "abroad" and calls[f"{name} {given}"] == 1:
                    if broken:  # the mistake: nothing is tried again
                        raise ConnectionError("the agency answers 504")
                    continue
                break
            await ctx.send_message(f"{name}: {given}")

        return look

    p = Parts(
        Script(), desk=says("the strike"), home=agency("home", 1), abroad=agency("abroad", 2),
        sport=agency("sport", 3), page=answers(),
    )  # fmt: skip
    agencies = [p.home, p.abroad, p.sport]
    built = p.build("desk").add_fan_out_edges(p.desk, agencies)
    workflow = watch(built.add_fan_in_edges(agencies, p.page).build())
    return await each(lambda question: outputs(workflow, question), "Monday")


SHAPES = [
    Shape(
        "review by conditions", "A critic sends drafts back three times, then they are printed.",
        review, ["It is printed."] * 2,
        "There is no last round, and the critic always has something new to say.",
        ("FAIL request", "LIVELOCK"),
        ("FAIL request: limit of nobody", "LIVELOCK: critic, writer"),
    ),
    Shape(
        "analysts", "Three analysts work at once, and a report waits for all of them.", analysts,
        ["['no tax', 'no law', 'no risk']"] * 2,
        "One analyst has found nothing and says nothing, so the report is never written.",
        ("CLA consumption", "CLA delivery", "ET"),
    ),
    Shape(
        "ticket desk", "A sorter's tickets go to one of three desks, by conditions.", ticket_desk,
        ["a wrong bill: paid back", "a broken lamp: mended", "a greeting: answered"],
        "The sorter sends numbers of tickets, with which no desk can work.", ("ET", "OE"),
    ),
    Shape(
        "approved payment", "A clerk asks a person, who approves after ten minutes; a bank pays.",
        approved_payment, ["Pay the plumber?", "7 euros paid"],
        "The bank never answers, and the call has no timeout.", ("DL",),
    ),
    Shape(
        "team within a team", "A workflow is an executor; in it, a text is sent back twice.",
        team_within, ["A short text is printed"] * 2,
        "In the inner workflow the text is sent back for ever, with the same words.",
        ("FAIL request", "LIVELOCK", "LOOP"),
        ("FAIL request: limit of nobody", "FAIL turn: desk/__end__",
         "LIVELOCK: desk, desk/checker, desk/writer", "LOOP: desk/checker", "LOOP: desk/writer"),
    ),
    Shape(
        "hand-offs of agents", "Triage hands a customer over to refunds.", desks, ["Paid back."],
        "Two desks hand a customer to each other without a word.", ("ER",),
    ),
    Shape(
        "news desk", "Three agencies are asked at once; one that fails is asked again.", news_desk,
        ["['home: the strike', 'abroad: the strike', 'sport: the strike']"],
        "Nothing is tried again, and the exception ends the workflow.", ("FAIL request",),
        ("FAIL turn: abroad", "FAIL request: error of abroad"),
    ),
]  # fmt: skip
