"""A2A agents that use each feature of the SDK, in one process, and how they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    CancelTaskRequest,
    Part,
    Role,
    SendMessageRequest,
    TaskState,
)
from starlette.applications import Starlette

import dig
from dig.adapters import a2a as adapter

from . import framework_watch
from .harness import Scenario, Script

Act = Callable[["Agent", Any, Any], Any]
"""What an agent does: `(agent, context, updater)`; returns words, or what works on a task."""


class Watched(framework_watch.Watched):
    adapter = adapter


class Team(dict[str, Any]):
    """What is wrapped, by name.

    Attributes:
        clients: Clients of the agents, watched or not.
        handlers: What serves them.
        cards: What they say of themselves.
        polling: What asks without waiting for an answer.
    """

    clients: dict[str, Any]
    handlers: dict[str, Any]
    cards: dict[str, Any]
    polling: dict[str, Any]


class Agent(AgentExecutor):  # type: ignore[misc]
    """A scripted agent.

    Attributes:
        peers: Clients of the other agents.
    """

    def __init__(self, script: Script, name: str, act: Act) -> None:
        self.script, self.name, self.act = script, name, act
        self.peers: dict[str, Any] = {}

    async def execute(self, context: Any, event_queue: Any) -> None:
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        async with self.script.turn(self.name, context.get_user_input()):
            said = self.act(self, context, updater)
            said = await said if asyncio.iscoroutine(said) else said
        if isinstance(said, str):
            message = new_text_message(
                said, context_id=context.context_id, task_id=context.task_id, role=Role.ROLE_AGENT
            )
            await event_queue.enqueue_event(message)
        else:
            if context.current_task is None:
                await event_queue.enqueue_event(new_task_from_user_message(context.message))
            await said(updater)

    async def cancel(self, context: Any, event_queue: Any) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def handler_of(agent: Agent) -> tuple[AgentCard, DefaultRequestHandler]:
    interface = AgentInterface(
        protocol_binding="JSONRPC", url=f"http://{agent.name}/", protocol_version="1.0"
    )
    card = AgentCard(
        name=agent.name, description="scripted", version="1",
        capabilities=AgentCapabilities(streaming=True), supported_interfaces=[interface],
        default_input_modes=["text"], default_output_modes=["text"],
        skills=[AgentSkill(id="act", name="act", description="acts", tags=["act"])],
    )  # fmt: skip
    store = InMemoryTaskStore()
    return card, DefaultRequestHandler(agent_executor=agent, task_store=store, agent_card=card)


def team(script: Script, watch: str = "both", *, streaming: bool = False, **acts: Act) -> Team:
    """Agents that are served, and clients of them; `watch` says which of these are wrapped."""
    made = Team()
    made.clients, made.handlers, made.polling, made.cards = {}, {}, {}, {}
    agents = [Agent(script, name, act) for name, act in acts.items()]
    for agent in agents:
        card, handler = handler_of(agent)
        made.handlers[agent.name], made.cards[agent.name] = handler, card
        app = Starlette(routes=create_jsonrpc_routes(handler, "/"))
        http = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), timeout=None)
        for clients, polling in ((made.clients, False), (made.polling, True)):
            config = ClientConfig(httpx_client=http, streaming=streaming, polling=polling)
            clients[agent.name] = ClientFactory(config).create(card)
        if watch != "client":
            made[f"{agent.name}-served" if watch == "both" else agent.name] = handler
        if watch != "server":
            made[agent.name] = made.clients[agent.name]
            made[f"{agent.name}-polling"] = made.polling[agent.name]
    for agent in agents:
        agent.peers = made.clients
    return made


def request(text: str, task: str = "", context: str = "") -> SendMessageRequest:
    message = new_text_message(text, task_id=task, context_id=context, role=Role.ROLE_USER)
    return SendMessageRequest(message=message)


def shown(item: Any) -> Any:
    """What a host sees of an item, without ids."""
    kind = item.WhichOneof("payload")
    event = getattr(item, kind)
    if kind == "message":
        return [kind, *(part.text for part in event.parts)]
    if kind == "artifact_update":
        return [kind, *(part.text for part in event.artifact.parts)]
    said = [part.text for part in event.status.message.parts]
    shows = [kind, TaskState.Name(event.status.state), *said]
    if kind == "task":
        shows += [part.text for artifact in event.artifacts for part in artifact.parts]
        shows += [part.text for message in event.history for part in message.parts]
    return shows


async def ask(client: Any, text: str, **more: str) -> list[Any]:
    async with aclosing(client.send_message(request(text, **more))) as items:
        return [shown(item) async for item in items]


async def words(client: Any, text: str) -> str:
    """The last words of an answer."""
    return str((await ask(client, text))[-1][-1])


def first(team: Team) -> Any:
    return next(iter(team.clients.values()))


async def ask_first(team: Team) -> Any:
    return await ask(first(team), "What now?")


async def ask_at_once(team: Team) -> Any:
    return await asyncio.gather(*(ask(first(team), f"question {n}") for n in range(3)))


async def ask_in_time(team: Team) -> Any:
    try:
        async with asyncio.timeout(20):
            return await ask_first(team)
    except TimeoutError:
        await asyncio.sleep(20)
        raise


async def ask_patiently(team: Team) -> Any:
    """Ask, and stay there: the SDK's servers hang if the loop ends in the midst of a request."""
    try:
        return await ask_first(team)
    except asyncio.CancelledError:
        await asyncio.sleep(20)
        raise asyncio.CancelledError("called off") from None  # some texts have addresses


async def leave(team: Team) -> Any:
    """Leave the stream after the first item."""
    async with aclosing(first(team).send_message(request("What now?"))) as items:
        item = await anext(items)
    await asyncio.sleep(10)
    return shown(item)


async def poll(team: Team) -> Any:
    """Ask for a task, do not wait for its end."""
    said = await ask(next(iter(team.polling.values())), "What now?")
    await asyncio.sleep(10)
    return said


async def go_on(team: Team) -> Any:
    """Answer what an agent asks."""
    async with aclosing(first(team).send_message(request("Pay."))) as items:
        asked = [item async for item in items]
    event = getattr(asked[-1], asked[-1].WhichOneof("payload"))
    task = event.task_id if hasattr(event, "task_id") else event.id
    more = await ask(first(team), "Yes.", task=task, context=event.context_id)
    return [*map(shown, asked), *more]


async def call_off(team: Team) -> Any:
    """Cancel the task of an agent that asks."""
    async with aclosing(first(team).send_message(request("Pay."))) as items:
        asked = [item async for item in items]
    event = getattr(asked[-1], asked[-1].WhichOneof("payload"))
    task = event.task_id if hasattr(event, "task_id") else event.id
    canceled = await first(team).cancel_task(CancelTaskRequest(id=task))
    return [*map(shown, asked), TaskState.Name(canceled.status.state)]


# --- what agents do ---


def says(text: str) -> Act:
    return lambda agent, context, updater: text


def raises(agent: Agent, context: Any, updater: Any) -> Any:
    raise ValueError("no model today")


def asks(*names: str) -> Act:
    """Ask other agents, one after the other, and say what they have said."""

    async def act(agent: Agent, context: Any, updater: Any) -> str:
        return " and ".join([await words(agent.peers[name], f"to {name}") for name in names])

    return act


def asks_at_once(*names: str) -> Act:
    async def act(agent: Agent, context: Any, updater: Any) -> str:
        said = await asyncio.gather(*(words(agent.peers[name], "both") for name in names))
        return "done twice" if dig.notes() else " and ".join(said)

    return act


def works(*results: str, ends: str = "complete", says: str = "") -> Act:
    """Make a task with results, and end it."""

    async def work(updater: Any) -> None:
        await updater.start_work()
        for result in results:
            await asyncio.sleep(1)
            await updater.add_artifact([Part(text=result)])
        message = updater.new_agent_message([Part(text=says)]) if says else None
        await getattr(updater, ends)(message)

    return lambda agent, context, updater: work


def pays(agent: Agent, context: Any, updater: Any) -> Any:
    """Ask a person, and go on with the answer."""

    if context.current_task is None:
        return works(ends="requires_input", says="Really?")(agent, context, updater)
    return works(says="paid")(agent, context, updater)


def scenario(
    name: str, drive: Callable[[Any], Any] = ask_first, *, watch: str = "both",
    streaming: bool = False, **acts: Act,
) -> Scenario:  # fmt: skip
    """A scenario by the name of its team, how it is asked, and which side is watched."""
    named = f"{name}-{drive.__name__}-{watch}{'-stream' if streaming else ''}"
    return Scenario(named, lambda script: team(script, watch, streaming=streaming, **acts), drive)


TEAMS: dict[str, Any] = {
    "alone": {"a": says("all done")},
    "chain": {"a": asks("b", "c"), "b": asks("c"), "c": says("c done")},
    "at_once": {"a": asks_at_once("b", "c"), "b": says("b done"), "c": says("c done")},
    "task": {"a": works("one", "two", says="both done")},
    "failing": {"a": works(ends="failed", says="no luck")},
    "rejecting": {"a": works(ends="reject")},
    "raising": {"a": raises},
    "passing": {"a": asks("b"), "b": raises},
}
SCENARIOS = [
    *(scenario(name, watch=watch, streaming=streaming, **acts)
      for name, acts in TEAMS.items() for watch in ("both", "client", "server")
      for streaming in (False, True)),
    *(scenario("paying", drive, watch=watch, a=pays)
      for drive in (go_on, call_off) for watch in ("client", "server", "both")),
    scenario("task", leave, streaming=True, **TEAMS["task"]),
    *(scenario(name, ask_patiently, watch=watch, streaming=True, **TEAMS[name])
      for name in ("alone", "chain", "task") for watch in ("both", "client", "server")),
    scenario("task", poll, **TEAMS["task"]),
    scenario("task", poll, watch="client", **TEAMS["task"]),
    scenario("chain", ask_at_once, **TEAMS["chain"]),
]  # fmt: skip
