"""Six shapes of teams of agents that talk over A2A, each served by an application of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from a2a.client import A2AClientError, ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, Role, SendMessageRequest
from a2a.utils.errors import A2AError
from starlette.applications import Starlette

from .shapes import Shape, Watch, at_once, each, pick, think

Ask = Callable[..., Awaitable[str]]
"""Asks an agent, by name: `await ask("weather", "Rome?")`."""

Act = Callable[[str, Ask], Awaitable[str]]
"""What an agent does with a question: it may ask others."""


class Agent(AgentExecutor):  # type: ignore[misc]
    def __init__(self, act: Act, ask: Ask) -> None:
        self._act, self._ask = act, ask

    async def execute(self, context: Any, event_queue: Any) -> None:
        said = await self._act(context.get_user_input(), self._ask)
        await event_queue.enqueue_event(new_text_message(said, role=Role.ROLE_AGENT))

    async def cancel(self, context: Any, event_queue: Any) -> None:
        raise NotImplementedError


def says(name: str, reply: Callable[[str], str], least_s: float = 1.0) -> Act:
    """An agent with a model that takes its time."""

    async def act(question: str, ask: Ask) -> str:
        await think(f"{name} {question}", least_s)
        return reply(question)

    return act


def team(watch: Watch, **acts: Act) -> Callable[[str], Awaitable[str]]:
    """Serve agents, watch both sides, and give what asks the first of them."""
    clients: dict[str, Any] = {}

    async def ask(name: str, question: str) -> str:
        request = SendMessageRequest(message=new_text_message(question, role=Role.ROLE_USER))
        answers = [item async for item in clients[name].send_message(request)]
        return str(answers[-1].message.parts[0].text)

    members: list[Any] = []
    for name, act in acts.items():
        interface = AgentInterface(
            protocol_binding="JSONRPC", url=f"http://{name}/", protocol_version="1.0"
        )
        card = AgentCard(
            name=name, description=name, version="1", supported_interfaces=[interface],
            capabilities=AgentCapabilities(), default_input_modes=["text"],
            default_output_modes=["text"],
        )  # fmt: skip
        handler = DefaultRequestHandler(
            agent_executor=Agent(act, ask), task_store=InMemoryTaskStore(), agent_card=card
        )
        app = Starlette(routes=create_jsonrpc_routes(handler, "/"))
        http = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), timeout=None)
        clients[name] = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        members += [handler, clients[name]]
    watch(members)
    first = next(iter(acts))
    return lambda question: ask(first, question)


async def delegation(watch: Watch, broken: bool) -> Any:
    background: set[asyncio.Task[Any]] = set()

    async def plan(question: str, ask: Ask) -> str:
        await think(f"planner {question}")
        trains = asyncio.ensure_future(ask("trains", question))
        weather = await ask("weather", question)
        if broken:
            background.add(trains)  # the mistake: nothing ever reads what is found
            return weather
        return f"{weather} {await trains}"

    weather = says("weather", lambda question: "It rains.")
    trains = says("trains", lambda question: "One at ten.", 20)
    return await each(
        team(watch, planner=plan, weather=weather, trains=trains), "To Rome", "To Oslo"
    )


async def pipeline(watch: Watch, broken: bool) -> Any:
    async def write(question: str, ask: Ask) -> str:
        await think(f"writer {question}")
        return await ask("editor", f"draft of {question}")

    # The mistake: a small model writes down what it should call.
    call = '{"name": "cut", "arguments": {"words": 10}}'
    edit = says("editor", lambda text: call if broken else f"edited {text}")
    return await each(team(watch, writer=write, editor=edit), "a page", "a poem")


async def second_source(watch: Watch, broken: bool) -> Any:
    async def live(question: str, ask: Ask) -> str:
        await think(f"live {question}")
        raise ConnectionError("the exchange answers 502")

    async def broker(question: str, ask: Ask) -> str:
        await think(f"broker {question}")
        try:
            return await ask("live", question)
        except (A2AError, A2AClientError):
            # The mistake: it is made up.
            return "About 600." if broken else await ask("list", question)

    listed = says("list", lambda question: "540")
    return await each(team(watch, broker=broker, live=live, list=listed), "Steel?", "Zinc?")


async def classifier(watch: Watch, broken: bool) -> Any:
    letters = [f"letter {number}" for number in range(40)]

    async def intake(day: str, ask: Ask) -> str:
        results: list[str] = []
        while len(results) < len(letters):
            number = 0 if broken else len(results)  # the mistake: it never gets to the second one
            await think(f"intake {len(results)}", 0.5)
            results.append(await ask("classifier", f"{letters[number]} of {day}"))
        return f"{results.count('ham')} of {len(results)} are fine"

    sort = says("classifier", lambda it: pick(it, "ham", "ham", "ham", "ham", "spam"), 0.2)
    return await each(team(watch, intake=intake, classifier=sort), "Monday")


async def experts(watch: Watch, broken: bool) -> Any:
    async def route(question: str, ask: Ask) -> str:
        await think(f"router {question}")
        return await ask(question.split()[0], question)

    def expert(name: str) -> Act:
        # The mistake: an expert's model stops before its first word.
        said = "" if broken and name == "law" else f"{name} says yes"
        return says(name, lambda question: said, 2)

    group = {name: expert(name) for name in ("law", "tax", "it")}
    questions = [f"{name} {number}" for number in range(2) for name in group]
    return await at_once(team(watch, router=route, **group), *questions)


async def debate(watch: Watch, broken: bool) -> Any:
    async def write(question: str, ask: Ask) -> str:
        for version in range(20):
            await think(f"writer {version}")
            shown = 0 if broken else version  # the mistake: always version 0
            if await ask("critic", f"version {shown} of {question}") == "fine":
                return f"version {version}"
        raise RuntimeError("no version is fine")

    critic = says("critic", lambda text: "fine" if "version 2" in text else "shorter")
    return await each(team(watch, writer=write, critic=critic), "the speech", "the toast")


SHAPES = [
    Shape(
        "served helpers", "A planner asks two served agents at once.", delegation,
        ["It rains. One at ten."] * 2,
        "The planner never reads the answer of one of them.", ("ET",),
    ),
    Shape(
        "served editor", "A writer has a draft edited by another application.", pipeline,
        ["edited draft of a page", "edited draft of a poem"],
        "The editor's model writes the call of its tool down as its answer.", ("VOID",),
        ("VOID: call of writer",),
    ),
    Shape(
        "served second source", "The live prices fail, and a price list is asked the same.",
        second_source, ["540", "540"],
        "The price list is not asked, and the price is made up.", ("FAIL answer",),
        ("FAIL turn: live", "FAIL answer: broker without live"),
    ),
    Shape(
        "served classifier", "An intake asks a classifier about forty letters in a row.",
        classifier, ["25 of 40 are fine"],
        "The intake asks about the first letter forty times.", ("LOOP",),
        ("LIVELOCK: classifier, intake", "LOOP: classifier", "LOOP: intake"),
    ),
    Shape(
        "served experts", "Six customers at once are answered by three served experts.", experts,
        ["law says yes", "tax says yes", "it says yes"] * 2,
        "An expert's model stops before its first word.", ("VOID",), ("VOID: blank of router",),
    ),
    Shape(
        "served critic", "A writer and a served critic, three versions.", debate,
        ["version 2"] * 2,
        "The writer shows the first version for ever.", ("FAIL request", "LOOP"),
        ("FAIL turn: writer", "FAIL request: error of writer", "LIVELOCK: critic, writer",
         "LOOP: critic", "LOOP: writer"),
    ),
]  # fmt: skip
